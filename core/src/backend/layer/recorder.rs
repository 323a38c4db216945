//! A layer that records requests, so a test can check how many requests a call makes.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{
    backend::{
        Backend, BoxFuture, ReadRequest, Rows, ScanRequest, TableNames, TableRequest,
        layer::forward::forward_to_inner,
    },
    batch::{Batch, Verb, Written},
    error::Result,
    row::Row,
};

/// A layer that logs every request before it passes it on. Clones share the log.
///
/// ```
/// use entable_core::backend::{Backend, Memory, TableRequest, layer::Recorder};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let recorder = Recorder::around(Memory::new());
/// recorder.tables(TableRequest::Create("Staff")).await?;
/// assert_eq!(recorder.to_string(), "create Staff");
/// assert_eq!(recorder.count(), 1);
/// # Ok::<(), entable_core::Error>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct Recorder {
    inner: Arc<dyn Backend>,
    log: Arc<Mutex<Vec<Request>>>,
}

/// A recorded request to a backend.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request {
    /// A point read.
    Read {
        /// The table.
        table: String,
        /// The PartitionKey.
        partition_key: String,
        /// The RowKey.
        row_key: String,
        /// The selected properties.
        select: Option<Vec<String>>,
    },
    /// One page of a query.
    Scan {
        /// The table.
        table: String,
        /// The filter as OData.
        filter: String,
        /// The selected properties.
        select: Option<Vec<String>>,
        /// The limit of rows of the page.
        top: Option<u32>,
        /// Whether the page continues an earlier one.
        continued: bool,
    },
    /// One operation or an entity group transaction.
    Apply {
        /// The table.
        table: String,
        /// The PartitionKey.
        partition_key: String,
        /// The verb and the RowKey of each operation, in order.
        operations: Vec<(Verb, String)>,
    },
    /// The creation of a table.
    CreateTable(String),
    /// The deletion of a table.
    DeleteTable(String),
    /// A page of a list of tables.
    ListTables,
}

impl Request {
    /// Returns whether the request is a point read.
    pub fn is_read(&self) -> bool {
        matches!(self, Self::Read { .. })
    }

    /// Returns whether the request is a page of a query.
    pub fn is_scan(&self) -> bool {
        matches!(self, Self::Scan { .. })
    }

    /// Returns whether the request is a write.
    pub fn is_apply(&self) -> bool {
        matches!(self, Self::Apply { .. })
    }

    /// Returns the number of operations of a write; 0 for other requests.
    pub fn operations(&self) -> usize {
        match self {
            Self::Apply { operations, .. } => operations.len(),
            _ => 0,
        }
    }

    /// Returns the verbs of the operations of a write, in order; empty for other requests.
    pub fn verbs(&self) -> Vec<Verb> {
        match self {
            Self::Apply { operations, .. } => operations.iter().map(|(verb, _)| *verb).collect(),
            _ => Vec::new(),
        }
    }
}

impl fmt::Display for Request {
    /// Writes the request as one line, such as `read Staff (Sales, empid_000223)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { table, partition_key, row_key, select } => {
                write!(f, "read {table} ({partition_key}, {row_key})")?;
                write_select(f, select.as_deref())
            }
            Self::Scan { table, filter, select, top, continued } => {
                write!(f, "scan {table} {filter}")?;
                write_select(f, select.as_deref())?;
                top.map_or(Ok(()), |top| write!(f, " top {top}"))?;
                f.write_str(if *continued { " continued" } else { "" })
            }
            Self::Apply { table, partition_key, operations } => {
                write!(f, "apply {table} {partition_key}:")?;
                operations.iter().try_for_each(|(verb, row_key)| write!(f, " {verb:?} {row_key}"))
            }
            Self::CreateTable(table) => write!(f, "create {table}"),
            Self::DeleteTable(table) => write!(f, "delete {table}"),
            Self::ListTables => f.write_str("list tables"),
        }
    }
}

fn write_select(f: &mut fmt::Formatter<'_>, select: Option<&[String]>) -> fmt::Result {
    select.map_or(Ok(()), |names| write!(f, " select {}", names.join(",")))
}

impl Recorder {
    /// Makes a recorder in front of `backend`.
    pub fn around(backend: impl Backend) -> Self {
        Self { inner: Arc::new(backend), log: Arc::default() }
    }

    fn lock_log(&self) -> MutexGuard<'_, Vec<Request>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record_request(&self, request: Request) {
        self.lock_log().push(request);
    }

    /// Returns the requests in the log, in order.
    pub fn requests(&self) -> Vec<Request> {
        self.lock_log().clone()
    }

    /// Returns the number of requests in the log.
    pub fn count(&self) -> usize {
        self.lock_log().len()
    }

    /// Empties the log.
    pub fn clear(&self) {
        self.lock_log().clear();
    }

    /// Empties the log and returns its requests, in order.
    pub fn take(&self) -> Vec<Request> {
        std::mem::take(&mut *self.lock_log())
    }
}

impl fmt::Display for Recorder {
    /// Writes the log, one line for each request.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.requests().iter().map(Request::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

#[deny(clippy::missing_trait_methods)]
impl Backend for Recorder {
    forward_to_inner!(origin);
    forward_to_inner!(store);

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>>> {
        self.record_request(Request::Read {
            table: request.table.to_owned(),
            partition_key: request.partition_key.to_owned(),
            row_key: request.row_key.to_owned(),
            select: request.select.map(<[String]>::to_vec),
        });
        self.inner.read(request)
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows>> {
        self.record_request(Request::Scan {
            table: request.table.to_owned(),
            filter: request.filter.to_string(),
            select: request.select.map(<[String]>::to_vec),
            top: request.top,
            continued: request.from.is_some(),
        });
        self.inner.scan(request)
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>>> {
        let operations = batch.operations().iter();
        self.record_request(Request::Apply {
            table: batch.table().to_owned(),
            partition_key: batch.partition_key().to_owned(),
            operations: operations.map(|o| (o.verb(), o.row().row_key().to_owned())).collect(),
        });
        self.inner.apply(batch)
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames>> {
        self.record_request(match request {
            TableRequest::Create(name) => Request::CreateTable(name.to_owned()),
            TableRequest::Delete(name) => Request::DeleteTable(name.to_owned()),
            TableRequest::List { .. } => Request::ListTables,
        });
        self.inner.tables(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{backend::Memory, batch::Operation, filter::Filter, page::Continuation};

    #[tokio::test]
    async fn every_request_is_one_line() {
        let recorder = Recorder::around(Memory::new());
        recorder.tables(TableRequest::Create("Staff")).await.unwrap();
        let mut batch = Batch::new("Staff");
        for key in ["a", "b"] {
            let row = Row::build("p", key).finish().unwrap();
            batch.push(Operation::insert_or_replace(row)).unwrap();
        }
        recorder.apply(&batch).await.unwrap();
        let select = ["Age".to_owned(), "Name".to_owned()];
        let read =
            ReadRequest { table: "Staff", partition_key: "p", row_key: "a", select: Some(&select) };
        recorder.read(read).await.unwrap();
        let filter = Filter::eq("Age", 3);
        let from = Continuation { partition_key: "p".to_owned(), row_key: None };
        let scan = ScanRequest {
            table: "Staff",
            filter: &filter,
            select: Some(&select),
            top: Some(5),
            from: Some(&from),
        };
        recorder.scan(scan).await.unwrap();
        recorder.scan(ScanRequest { select: None, top: None, from: None, ..scan }).await.unwrap();
        recorder.tables(TableRequest::List { from: None, within: None }).await.unwrap();
        recorder.tables(TableRequest::Delete("Staff")).await.unwrap();
        let lines = [
            "create Staff",
            "apply Staff p: InsertOrReplace a InsertOrReplace b",
            "read Staff (p, a) select Age,Name",
            "scan Staff Age eq 3 select Age,Name top 5 continued",
            "scan Staff Age eq 3",
            "list tables",
            "delete Staff",
        ];
        assert_eq!(recorder.to_string(), lines.join("\n"));
    }

    #[tokio::test]
    async fn clones_share_the_log_and_failures_are_in_it() {
        let recorder = Recorder::around(Memory::new());
        let reader = recorder.clone();
        let read = ReadRequest { table: "Staff", partition_key: "p", row_key: "r", select: None };
        assert!(recorder.read(read).await.is_err());
        assert_eq!(reader.count(), 1);
        assert!(reader.take()[0].is_read());
        assert_eq!(recorder.count(), 0);
    }
}
