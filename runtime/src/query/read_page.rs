//! Reads the pages of a planned query.

use std::borrow::Cow;

use futures_util::future::BoxFuture;

use super::{open::OpenedRows, query_plan::QueryPlan, tables::QueriedTables};
use crate::{
    backend::ScanRequest,
    error::{Error, ErrorKind, Result},
    page::Cursor,
    row::Row,
    store::{
        dated::{is_dated_table_missing, name_of_period},
        replace_by_table_name_error,
    },
};

/// The opened rows of a page, and the cursor of the next page.
#[derive(Debug, Default)]
pub(crate) struct RowPage {
    /// The rows. A row that cannot be read is an error in its place.
    pub(crate) rows: Vec<Result<Row>>,
    pub(crate) next: Option<Cursor>,
}

impl QueryPlan {
    /// Reads one page from `cursor` on.
    pub(crate) async fn read_page(&self, cursor: Option<&Cursor>) -> Result<RowPage> {
        if self.finds_nothing {
            return Ok(RowPage::default());
        }
        // With another filter, a cursor would silently skip or repeat rows.
        if cursor.is_some_and(|cursor| cursor.fingerprint != self.fingerprint()) {
            let message = "the cursor belongs to another query; use the same table, path, filter, selection and \
                           `take`";
            let error = Error::new(ErrorKind::InvalidCursor, message);
            return Err(error.in_table(&self.request.table));
        }
        match &self.request.tables {
            None => self.read_rows(&self.request.table_to_read(), cursor).await,
            Some(tables) => self.read_page_of_tables_boxed(tables, cursor).await,
        }
    }

    // In a function of its own, so that programs do not compile it.
    fn read_page_of_tables_boxed<'r>(
        &'r self,
        tables: &'r QueriedTables,
        cursor: Option<&'r Cursor>,
    ) -> BoxFuture<'r, Result<RowPage>> {
        Box::pin(self.read_page_of_tables(tables, cursor))
    }

    /// Reads one page of a query of several tables.
    async fn read_page_of_tables(
        &self,
        tables: &QueriedTables,
        cursor: Option<&Cursor>,
    ) -> Result<RowPage> {
        let Some(period) = tables.period_of(cursor)? else { return Ok(RowPage::default()) };
        let table = name_of_period(tables.dated, period)?;
        let table_to_read = match self.request.family() {
            Some(family) => family.table_given_primary_table(&table),
            None => Cow::Borrowed(&*table),
        };
        let RowPage { rows, next } = self.read_rows(&table_to_read, cursor).await?;
        let next = match (next, tables.period_after(period)) {
            (Some(next), _) => Some(Cursor { table: Some(table), ..next }),
            (None, Some(after)) => {
                Some(tables.cursor_at_beginning(after, self.fingerprint(), cursor)?)
            }
            (None, None) => None,
        };
        Ok(RowPage { rows, next })
    }

    /// Reads one page of a table from `cursor` on. Returns no rows if a dated table does not exist.
    async fn read_rows(&self, table: &str, cursor: Option<&Cursor>) -> Result<RowPage> {
        let (request, read) = (&self.request, &self.read);
        let scan = ScanRequest {
            table,
            filter: &read.filter.sent,
            select: read.columns.as_deref(),
            top: request.page_limit(read.parts, cursor),
            from: cursor.filter(|cursor| !cursor.is_at_table_start()).map(|cursor| &cursor.at),
        };
        let page = match request.store.scan(scan).await {
            Err(error) if is_dated_table_missing(&error) && request.is_dated() => {
                return Ok(RowPage::default());
            }
            page => page,
        };
        let page = page.map_err(|error| replace_by_table_name_error(error, table))?;
        let OpenedRows { rows, is_mixed } =
            read.open_rows(&request.store, table, page.rows).await?;
        let next = page.next.map(|at| {
            let (returned, mixed) = cursor.map_or((0, false), |at| (at.returned, at.mixed));
            let fingerprint = self.fingerprint();
            // Some rows were not items, so `top` requests full pages from now on.
            Cursor { fingerprint, returned, mixed: mixed || is_mixed, at, table: None, as_of: None }
        });
        Ok(RowPage { rows, next })
    }
}
