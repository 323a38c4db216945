//! `Explain` shows what a query will send before it is sent.

use std::fmt;

use crate::{access::CostClass, error::Error};

/// A query's cost class, and the request that it sends to the service.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Explain {
    /// The cost class.
    pub class: CostClass,
    /// The table that is read.
    pub table: String,
    /// The `$filter` as it is sent, with a placeholder for each blind token.
    pub filter: String,
    /// The `$select`; empty means all properties.
    pub select: Vec<String>,
    /// The `$top` of the first request.
    pub top: Option<u32>,
    /// The least number of requests, if every page is full.
    pub estimated_requests: u64,
    /// Whether each entity costs one more request, a point read: the query reads a list.
    pub reads_each: bool,
    /// The name of the blob that is read instead of rows.
    pub blob: Option<String>,
    /// The error that running the query would return at once.
    pub fault: Option<Error>,
}

impl fmt::Display for Explain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.class, self.table)?;
        match (&self.fault, &self.blob) {
            (Some(fault), _) => write!(f, ", refused: {fault}")?,
            (None, Some(blob)) => write!(f, "\n  blob={blob}")?,
            (None, None) => write!(f, "\n  $filter={}", self.filter)?,
        }
        if !self.select.is_empty() {
            write!(f, "\n  $select={}", self.select.join(","))?;
        }
        if let Some(top) = self.top {
            write!(f, "\n  $top={top}")?;
        }
        write!(f, "\n  requests >= {}", self.estimated_requests)?;
        f.write_str(if self.reads_each { ", and one more for each entity" } else { "" })
    }
}
