//! Tests of every failure on every verb, with and without the write carried out: no write is lost
//! or doubled, and no conflict is reported that did not happen.

use std::time::Duration;

mod doubt;
mod limits;
mod verbs;

use super::{Retry, RetryPolicy};
use crate::{
    backend::{
        Backend, Memory, ReadRequest, ScanRequest, TableRequest,
        layer::{FaultInjector, InjectedFault, Recorder, RequestKind},
    },
    batch::{Batch, Condition, Operation, Verb},
    edm::ValueRef,
    error::{Error, ErrorKind, Seen, ServiceCode},
    row::{ETag, Row},
};

const VERBS: [Verb; 6] = [
    Verb::Insert,
    Verb::Replace,
    Verb::Merge,
    Verb::InsertOrReplace,
    Verb::InsertOrMerge,
    Verb::Delete,
];

/// A store behind a retry layer and injected faults, and a way to it around both.
struct Store {
    retry: Retry,
    fault: FaultInjector,
    /// Records what passes the injected faults.
    plain: Recorder,
}

async fn store(policy: RetryPolicy) -> Store {
    let plain = Recorder::around(Memory::new());
    plain.tables(TableRequest::Create("Rows")).await.unwrap();
    let fault = FaultInjector::around(plain.clone());
    Store { retry: Retry::around(fault.clone(), policy), fault, plain }
}

fn row(key: &str, text: &str) -> Row {
    Row::build("p", key).with("Text", ValueRef::String(text)).unwrap().finish().unwrap()
}

impl Store {
    async fn write(&self, operation: Operation) -> ETag {
        let batch = Batch::single("Rows", operation).unwrap();
        self.plain.apply(&batch).await.unwrap().remove(0).etag.unwrap()
    }

    async fn text(&self, key: &str) -> Option<String> {
        let request = ReadRequest { table: "Rows", partition_key: "p", row_key: key, select: None };
        let row = self.plain.read(request).await.unwrap()?;
        match row.get("Text").unwrap() {
            Some(ValueRef::String(text)) => Some(text.to_owned()),
            _ => None,
        }
    }

    async fn version(&self, key: &str) -> Option<ETag> {
        let request = ReadRequest { table: "Rows", partition_key: "p", row_key: key, select: None };
        self.plain.read(request).await.unwrap()?.etag()
    }

    /// The operation of that verb on row `r`, which is there for all but an insert.
    async fn operation(&self, verb: Verb, guarded: bool) -> Operation {
        let condition = if verb == Verb::Insert {
            Condition::Any
        } else {
            let etag = self.write(Operation::insert(row("r", "old"))).await;
            if guarded { Condition::Match(etag) } else { Condition::Any }
        };
        let new = row("r", "new");
        match verb {
            Verb::Insert => Operation::insert(new),
            Verb::Replace => Operation::replace(new, condition),
            Verb::Merge => Operation::merge(new, condition),
            Verb::InsertOrReplace => Operation::insert_or_replace(new),
            Verb::InsertOrMerge => Operation::insert_or_merge(new),
            Verb::Delete => Operation::delete("p", "r", condition).unwrap(),
        }
    }

    /// How many writes reached the store.
    fn writes(&self) -> usize {
        use crate::backend::layer::Request;
        self.plain.requests().iter().filter(|r| matches!(r, Request::Apply { .. })).count()
    }
}

fn busy() -> Error {
    Error::service(ServiceCode::ServerBusy, "busy")
}

/// Returns errors that leave the outcome of a write unknown: a lost connection, a timeout, a reset, a server error.
fn open() -> [Error; 4] {
    [
        Error::new(ErrorKind::Backend, "connection lost"),
        Error::new(ErrorKind::Ambiguous, "no answer within 30 s"),
        Error::new(ErrorKind::Ambiguous, "connection reset")
            .with_code(ServiceCode::Other("Http502".into(), 502)),
        Error::service(ServiceCode::InternalError, "internal error"),
    ]
}
