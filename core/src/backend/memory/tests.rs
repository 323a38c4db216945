//! Tests of the in-memory backend beyond the conformance suite.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use super::Memory;
use crate::{
    backend::{Backend, NameRange, ReadRequest, Rows, ScanRequest, TableNames, TableRequest},
    batch::{Batch, Condition, Operation, Written},
    clock::{Clock, SteppedClock},
    edm::{Ticks, ValueRef},
    error::Result,
    filter::Filter,
    page::Continuation,
    row::Row,
};

/// A clock that is set at will, backwards as well.
#[derive(Debug)]
struct Set(AtomicI64);

impl Set {
    fn to(&self, seconds: i64) {
        self.0.store(Ticks::UNIX_EPOCH.get() + seconds * 10_000_000, Ordering::SeqCst);
    }
}

impl Clock for Set {
    fn now(&self) -> Ticks {
        Ticks::new(self.0.load(Ordering::SeqCst)).unwrap()
    }
}

fn bare(row_key: &str) -> Row {
    Row::build("p", row_key).finish().unwrap()
}

async fn write(memory: &Memory, operation: Operation) -> Result<Written> {
    let written = memory.apply(&Batch::single("Staff", operation)?).await?;
    Ok(written.into_iter().next().unwrap())
}

async fn page(memory: &Memory, filter: &str, from: Option<&Continuation>) -> Rows {
    let filter = Filter::parse(filter).unwrap();
    let scan = ScanRequest { table: "Staff", filter: &filter, select: None, top: None, from };
    memory.scan(scan).await.unwrap()
}

async fn staff(memory: Memory) -> Memory {
    memory.tables(TableRequest::Create("Staff")).await.unwrap();
    memory
}

fn code<T: fmt::Debug>(result: Result<T>) -> String {
    result.unwrap_err().code().unwrap().to_owned()
}

#[tokio::test]
async fn a_deleted_name_stays_taken_for_a_while() {
    let clock = Arc::new(SteppedClock::new(Ticks::UNIX_EPOCH));
    let takes = Duration::from_secs(40);
    let memory = staff(Memory::with_clock(clock.clone()).deleting_takes(takes)).await;
    write(&memory, Operation::insert(bare("r"))).await.unwrap();
    memory.tables(TableRequest::Delete("Staff")).await.unwrap();

    clock.advance(Duration::from_secs(39));
    assert_eq!(code(memory.tables(TableRequest::Create("STAFF")).await), "TableBeingDeleted");
    assert_eq!(code(memory.tables(TableRequest::Delete("Staff")).await), "ResourceNotFound");
    assert_eq!(code(write(&memory, Operation::insert(bare("r"))).await), "TableNotFound");
    let listed = memory.tables(TableRequest::List { from: None, within: None }).await.unwrap();
    assert_eq!(listed, TableNames::default());
    memory.tables(TableRequest::Create("Other")).await.unwrap();

    clock.advance(Duration::from_secs(1));
    memory.tables(TableRequest::Create("Staff")).await.unwrap();
    assert!(page(&memory, "", None).await.rows.is_empty());
}

#[tokio::test]
async fn versions_differ_while_the_clock_stands_or_goes_back() {
    let clock = Arc::new(Set(AtomicI64::new(0)));
    clock.to(100);
    let memory = staff(Memory::with_clock(clock.clone())).await;
    let mut versions = Vec::new();
    for seconds in [100, 100, 50, 0, 100, 101] {
        clock.to(seconds);
        versions.push(write(&memory, Operation::insert_or_replace(bare("r"))).await.unwrap().etag);
        write(&memory, Operation::delete("p", "r", Condition::Any).unwrap()).await.unwrap();
        versions.push(write(&memory, Operation::insert(bare("r"))).await.unwrap().etag);
    }
    let unique: std::collections::HashSet<_> = versions.iter().collect();
    assert_eq!(unique.len(), versions.len());
    let row = page(&memory, "", None).await.rows.pop().unwrap().unwrap();
    assert_eq!(row.timestamp().unwrap().to_string(), "1970-01-01T00:01:41.0000002Z");
}

#[tokio::test]
async fn a_page_is_a_snapshot() {
    let memory = staff(Memory::new()).await;
    write(&memory, Operation::insert(bare("a"))).await.unwrap();
    let before = page(&memory, "", None).await;
    let two = Row::build("p", "a").with("P", ValueRef::Int32(2)).unwrap().finish().unwrap();
    write(&memory, Operation::insert_or_replace(two)).await.unwrap();
    assert_eq!(before.rows[0].as_ref().unwrap().property_count().unwrap(), 0);
}

#[tokio::test]
async fn tables_are_listed_page_by_page() {
    let memory = Memory::new();
    for at in 0..1001 {
        memory.tables(TableRequest::Create(&format!("T{at:04}"))).await.unwrap();
    }
    let first = memory.tables(TableRequest::List { from: None, within: None }).await.unwrap();
    assert_eq!((first.names.len(), first.next.as_deref()), (1000, Some("t1000")));
    let second = TableRequest::List { from: first.next.as_deref(), within: None };
    let second = memory.tables(second).await.unwrap();
    assert_eq!(second, TableNames { names: vec!["T1000".to_owned()], next: None });
    let within = Some(NameRange { first: "t0990", last: "T0992" });
    let some = memory.tables(TableRequest::List { from: None, within }).await.unwrap();
    assert_eq!(
        some,
        TableNames { names: ["T0990", "T0991", "T0992"].map(str::to_owned).into(), next: None }
    );
    // A page goes on to the end of the range.
    let within = Some(NameRange { first: "t0000", last: "t1000" });
    let some = memory.tables(TableRequest::List { from: Some("t0999"), within }).await.unwrap();
    assert_eq!(some.names, ["T0999", "T1000"]);
}

#[tokio::test]
async fn a_merge_of_nothing_is_a_write() {
    let memory = staff(Memory::new()).await;
    let first = write(&memory, Operation::insert(bare("r"))).await.unwrap();
    let merge = Operation::merge(bare("r"), Condition::Any);
    assert_ne!(write(&memory, merge).await.unwrap().etag, first.etag);
}

#[tokio::test]
async fn what_the_service_leaves_open_is_refused() {
    let memory = staff(Memory::new()).await;
    assert_eq!(code(memory.apply(&Batch::new("Staff")).await), "InvalidInput");
    let filter = Filter::Constant(true);
    let scan =
        ScanRequest { table: "Staff", filter: &filter, select: None, top: Some(1001), from: None };
    assert_eq!(code(memory.scan(scan).await), "InvalidInput");
    let nothing = memory.scan(ScanRequest { top: Some(0), ..scan }).await.unwrap();
    assert_eq!((nothing.rows.len(), nothing.next), (0, None));
    let read = ReadRequest { table: "Staff", partition_key: "p", row_key: "a/b", select: None };
    assert_eq!(code(memory.read(read).await), "OutOfRangeInput");
}

#[tokio::test]
async fn a_continuation_outside_the_bounds_is_an_end() {
    let memory = staff(Memory::new()).await;
    write(&memory, Operation::insert(bare("r"))).await.unwrap();
    for partition_key in ["q", "\u{e000}"] {
        let from = Continuation { partition_key: partition_key.to_owned(), row_key: None };
        let found = page(&memory, "PartitionKey eq 'p'", Some(&from)).await;
        assert_eq!((found.rows.len(), found.next), (0, None));
    }
}

#[tokio::test]
async fn a_long_query_lets_others_run() {
    let memory = Arc::new(staff(Memory::new()).await);
    let others = tokio::spawn(async {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
    });
    for _ in 0..100 {
        page(&memory, "", None).await;
    }
    assert!(others.is_finished());
}

#[test]
fn debug_shows_tables_and_counts_only() {
    let memory = Memory::new();
    memory.create_table("Staff").unwrap();
    assert!(format!("{memory:?}").contains("{\"Staff\": 0}"), "{memory:?}");
}
