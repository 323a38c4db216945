//! `Explain` shows the requests of a query before they are sent.

use std::fmt;

use super::{
    list_query,
    plan::ItemParts,
    request::{Request, TOKEN_IN_EXPLAIN},
    tables::QueriedTables,
};
use crate::{access::CostClass, error::Error, key::TOKEN_PLACEHOLDER};

/// A query's cost class, and the request that it sends to the service.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Explain {
    /// The cost class.
    pub class: CostClass,
    /// The table that is read.
    pub table: String,
    /// The `$filter`, with a placeholder for each blind token.
    pub filter: String,
    /// The `$select`. Empty if all properties are read.
    pub select: Vec<String>,
    /// The `$top` of the first request.
    pub top: Option<u32>,
    /// The least number of requests, if every page is full.
    pub estimated_requests: u64,
    /// The number of tables that the query covers, whether they exist or not: 1, or the dated tables of a window.
    pub tables: u64,
    /// Whether the query first lists the existing tables and reads only those, which it does above 32 tables.
    pub lists_tables: bool,
    /// Whether each entity costs one more request, a point read. This is so for queries of lists.
    pub reads_each: bool,
    /// The name of the blob that is read instead of rows.
    pub blob: Option<String>,
    /// The error, if the query would fail immediately.
    pub fault: Option<Error>,
}

impl Explain {
    /// Describes the first request that a query sends.
    pub(super) fn of_request(request: &Request) -> Self {
        let (parts, blob) = (request.item_rows(), list_query::list_blob_of_request(request));
        let filter = request.checked_item_rows().and_then(|parts| request.filter_to_explain(parts));
        let class = match &filter {
            Ok(filter) => request.cost_class(filter),
            // A query that is refused still has its path.
            Err(_) => request.cost_class(&request.access.keys.filter()),
        };
        let (filter, fault) = match filter.and_then(|filter| blob.clone().map(|_| filter)) {
            Ok(filter) => (filter.to_string().replace(TOKEN_PLACEHOLDER, TOKEN_IN_EXPLAIN), None),
            Err(error) => (String::new(), Some(error)),
        };
        let select = parts.as_ref().ok().and_then(|parts| request.columns_to_read(*parts));
        let parts = parts.unwrap_or(ItemParts::Single);
        let top = request.page_limit(parts, None);
        let rows = |items: u64| items.saturating_mul(u64::from(parts.rows_per_item()));
        let pages = request.take.zip(top);
        let pages = pages.map(|(take, top)| rows(take).div_ceil(u64::from(top.max(1))));
        let lists_tables = request.tables.as_ref().is_some_and(QueriedTables::lists_tables);
        let (tables, pages) = (request.count_tables(), pages.unwrap_or(1));
        Self {
            class,
            table: request.table_to_read().into_owned(),
            filter,
            select: select.unwrap_or_default(),
            top,
            estimated_requests: if lists_tables {
                pages.saturating_add(1)
            } else {
                pages.max(tables)
            },
            tables,
            lists_tables,
            reads_each: request.reads_list(),
            blob: blob.ok().flatten(),
            fault,
        }
    }
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
        if self.lists_tables {
            write!(f, "\n  tables={}, listed first", self.tables)?;
        } else if self.tables > 1 {
            write!(f, "\n  tables={}", self.tables)?;
        }
        write!(f, "\n  requests >= {}", self.estimated_requests)?;
        f.write_str(if self.reads_each { ", and one more for each entity" } else { "" })
    }
}
