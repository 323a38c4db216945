//! The requests to a backend and their answers.

pub use crate::address::TableCase;
use crate::{edm::Ticks, error::Result, filter::Filter, page::Continuation, row::Row};

/// The promises that a backend makes and that callers rely on, such as the order of rows and
/// durability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// The name of the backend in error messages, traces and metrics.
    pub name: &'static str,
    /// Whether queries return rows in the order of their keys.
    pub ordered: bool,
    /// Whether rows are kept when the process ends.
    pub durable: bool,
    /// Whether only this process can write the tables.
    pub exclusive: bool,
    /// Whether names that differ in case alone name one table.
    pub table_case: TableCase,
    /// Whether a read shows every write that was acknowledged before the read was sent. If `false`,
    /// unique values in other partitions and moves between partitions are refused, and workers take no
    /// partition out of the directory of open work.
    pub strong_reads: bool,
}

impl Capabilities {
    /// Makes the capabilities of a backend called `name`. `durable` says whether rows are kept when
    /// the process ends. By default, the backend returns rows in order, its reads show every
    /// acknowledged write, other processes may write, and case does not count in names of tables.
    pub const fn new(name: &'static str, durable: bool) -> Self {
        let table_case = TableCase::Insensitive;
        Self { name, ordered: true, durable, exclusive: false, table_case, strong_reads: true }
    }

    /// Marks the tables as writable by this process only.
    #[must_use]
    pub const fn exclusive(self) -> Self {
        Self { exclusive: true, ..self }
    }

    /// Removes the promise that rows come in the order of their keys.
    #[must_use]
    pub const fn unordered(self) -> Self {
        Self { ordered: false, ..self }
    }

    /// Sets whether names that differ in case alone name one table.
    #[must_use]
    pub const fn with_table_case(self, table_case: TableCase) -> Self {
        Self { table_case, ..self }
    }

    /// Removes the promise that a read shows every acknowledged write.
    #[must_use]
    pub const fn lagging_reads(self) -> Self {
        Self { strong_reads: false, ..self }
    }
}

/// A point read: the request for one row by its keys.
#[derive(Debug, Clone, Copy)]
pub struct ReadRequest<'a> {
    /// The table.
    pub table: &'a str,
    /// The PartitionKey.
    pub partition_key: &'a str,
    /// The RowKey.
    pub row_key: &'a str,
    /// The properties to return. `None` returns all. Keys, Timestamp and ETag are always returned.
    pub select: Option<&'a [String]>,
}

/// The request for one page of a query.
#[derive(Debug, Clone, Copy)]
pub struct ScanRequest<'a> {
    /// The table.
    pub table: &'a str,
    /// The condition that returned rows fulfil.
    pub filter: &'a Filter,
    /// The properties to return. `None` returns all. Keys, Timestamp and ETag are always returned.
    pub select: Option<&'a [String]>,
    /// The maximum number of rows in this page, at most 1,000. `None` uses the page size of the service. 0 returns a
    /// page without rows and without a continuation.
    pub top: Option<u32>,
    /// Where the page begins. `None` begins with the first row.
    pub from: Option<&'a Continuation>,
}

/// The answer to a scan: one page of rows, and where the next page begins.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    /// The rows, each with its own result: a row that does not decode, such as one that gives a property
    /// twice, is an error at its place and spoils no other row.
    pub rows: Vec<Result<Row>>,
    /// Where the next page begins, or `None` at the end.
    pub next: Option<Continuation>,
    /// The time of the answer by the clock of the store's Timestamps. A row's age is this time minus
    /// its Timestamp. `None` if the store does not give its time.
    pub date: Option<Ticks>,
}

impl Rows {
    /// Returns all rows of the page.
    ///
    /// # Errors
    ///
    /// Returns the error of the first row that does not decode.
    pub fn into_rows(self) -> Result<Vec<Row>> {
        self.rows.into_iter().collect()
    }
}

/// A request about tables.
#[derive(Debug, Clone, Copy)]
pub enum TableRequest<'a> {
    /// Creates a table. Fails with `TableAlreadyExists` if there is a table whose name is equal by
    /// [`Capabilities::table_case`].
    Create(&'a str),
    /// Deletes a table with all its rows. Fails with `ResourceNotFound` if the table does not exist.
    Delete(&'a str),
    /// Lists the tables in the order of their names, in lower case where case does not count in them.
    List {
        /// Where the page begins.
        from: Option<&'a str>,
        /// The names to list. `None` lists all. A store may also list names outside the range, so callers must check
        /// them.
        within: Option<NameRange<'a>>,
    },
}

/// The table names between two names, both included, in the store's listing order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameRange<'a> {
    /// The first name.
    pub first: &'a str,
    /// The last name.
    pub last: &'a str,
}

/// The answer to a request about tables: empty for create and delete.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableNames {
    /// The names, in the case that the tables were created with.
    pub names: Vec<String>,
    /// The continuation of the next page, to be passed as `from`, or `None` at the end.
    pub next: Option<String>,
}

/// Counts the tables, rows and bytes that a backup wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupReport {
    /// The number of tables.
    pub tables: u64,
    /// The number of rows of every kind, including outbox rows.
    pub rows: u64,
    /// The bytes of the rows.
    pub row_bytes: u64,
    /// The bytes of the new file.
    pub file_bytes: u64,
}
