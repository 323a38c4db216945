//! Reads the rows of a table page by page, without decrypting them.

use super::rows::Store;
use crate::{
    backend::{Rows, ScanRequest},
    error::Result,
    filter::Filter,
    page::{Continuation, PageLoop},
};

/// The pages of one table's rows that match a filter, in reading order.
pub(crate) struct StoredRowPages<'s> {
    store: &'s Store,
    table: &'s str,
    filter: Filter,
    columns: Option<Vec<String>>,
    may_lack_table: bool,
    pages: PageLoop<Continuation>,
}

impl Store {
    /// Returns the pages of `table`'s rows that match `filter`. Reads nothing yet.
    pub(crate) fn pages<'s>(&'s self, table: &'s str, filter: Filter) -> StoredRowPages<'s> {
        let pages = PageLoop::from_start();
        StoredRowPages { store: self, table, filter, columns: None, may_lack_table: false, pages }
    }
}

impl StoredRowPages<'_> {
    /// Limits the read to these properties.
    pub(crate) fn with_columns(self, columns: Vec<String>) -> Self {
        Self { columns: Some(columns), ..self }
    }

    /// Treats a missing table as empty.
    pub(crate) fn empty_without_table(self) -> Self {
        Self { may_lack_table: true, ..self }
    }

    /// Reads the next page. Returns `None` after the last page and after an error.
    pub(crate) async fn next_page(&mut self) -> Result<Option<Rows>> {
        let Some(from) = self.pages.take_position() else { return Ok(None) };
        let (filter, select) = (&self.filter, self.columns.as_deref());
        let scan =
            ScanRequest { table: self.table, filter, select, top: None, from: from.as_ref() };
        match self.store.scan(scan).await {
            Ok(mut page) => {
                self.pages.continue_at(page.next.take());
                Ok(Some(page))
            }
            Err(error) if self.may_lack_table && error.is_table_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns whether there is no further page, after the last one, a missing table or an error.
    pub(crate) const fn is_over(&self) -> bool {
        self.pages.is_over()
    }
}
