//! What a query will ask, before it is asked.

use std::fmt;

use crate::{access::CostClass, error::Error};

/// What a query asks of the service.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Explain {
    /// What it costs.
    pub class: CostClass,
    /// The table.
    pub table: String,
    /// `$filter`, as it is sent.
    pub filter: String,
    /// `$select`; empty: all properties.
    pub select: Vec<String>,
    /// `$top` of the first request.
    pub top: Option<u32>,
    /// Requests at least, if every page is full.
    pub estimated_requests: u64,
    /// Whether each entity costs one more, a point read: the query is of a list.
    pub reads_each: bool,
    /// The blob that is read in place of rows.
    pub blob: Option<String>,
    /// Why the query cannot be asked, if it cannot.
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
