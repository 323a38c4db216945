//! What a backend is asked, and what it answers.

use crate::{edm::Ticks, filter::Filter, page::Continuation, row::Row};

/// What a backend can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// What it is called in messages.
    pub name: &'static str,
    /// Whether rows come in the order of their keys.
    pub ordered: bool,
    /// Whether rows outlive the process.
    pub durable: bool,
    /// Whether its tables are this process's alone: nobody else can write them meanwhile.
    pub exclusive: bool,
}

impl Capabilities {
    /// The capabilities of a backend that keeps order.
    pub const fn new(name: &'static str, durable: bool) -> Self {
        Self { name, ordered: true, durable, exclusive: false }
    }

    /// The same for tables of one process alone.
    #[must_use]
    pub const fn exclusive(self) -> Self {
        Self { exclusive: true, ..self }
    }

    /// The same without a promise of order.
    #[must_use]
    pub const fn unordered(self) -> Self {
        Self { ordered: false, ..self }
    }
}

/// A point read.
#[derive(Debug, Clone, Copy)]
pub struct Read<'a> {
    /// The table.
    pub table: &'a str,
    /// The PartitionKey.
    pub partition_key: &'a str,
    /// The RowKey.
    pub row_key: &'a str,
    /// The properties that are wanted; `None`: all. Keys, Timestamp and ETag always come.
    pub select: Option<&'a [String]>,
}

/// One page of a query.
#[derive(Debug, Clone, Copy)]
pub struct Scan<'a> {
    /// The table.
    pub table: &'a str,
    /// Which rows.
    pub filter: &'a Filter,
    /// The properties that are wanted; `None`: all. Keys, Timestamp and ETag always come.
    pub select: Option<&'a [String]>,
    /// At most so many rows in this page, 1 to 1,000; `None`: the service's own size.
    pub top: Option<u32>,
    /// Where the page begins; `None`: at the first row.
    pub from: Option<&'a Continuation>,
}

/// One page of rows.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    /// The rows.
    pub rows: Vec<Row>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<Continuation>,
    /// When the page was answered, by the clock that the store takes Timestamps from: how the age of
    /// a row is told. `None`: it does not say.
    pub date: Option<Ticks>,
}

/// A request about tables.
#[derive(Debug, Clone, Copy)]
pub enum TableRequest<'a> {
    /// Creates a table; `TableAlreadyExists` where there is one of that name in any case.
    Create(&'a str),
    /// Deletes a table with all its rows; `ResourceNotFound` where there is none.
    Delete(&'a str),
    /// Lists the tables in the order of their names, in lower case.
    List {
        /// Where the page begins.
        from: Option<&'a str>,
    },
}

/// The answer to a request about tables: empty for create and delete.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableNames {
    /// The names as they were created.
    pub names: Vec<String>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<String>,
}
