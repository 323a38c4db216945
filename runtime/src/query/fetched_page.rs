//! Fetches pages as rows, which their query then decodes.
//!
//! Nothing here depends on the type of the items. The futures are boxed in plain functions, so that programs only call
//! them and do not compile them.

use std::{pin::pin, sync::Arc, vec};

use futures_util::{
    StreamExt, TryStreamExt,
    future::{BoxFuture, ready},
    stream::{self, BoxStream},
};

use super::{
    list_query::{self, EntityRowPage},
    plan::ItemOrigin,
    query_plan::QueryPlan,
    read_page::RowPage,
    request::Request,
};
use crate::{
    backend::layer::record_count_in_span,
    entity::dated::Period,
    error::{Error, Result},
    limits::{saturating_u64, saturating_usize},
    page::Cursor,
    row::Row,
    store::task_or_future::TaskOrFuture,
};

/// The number of tables of a window that are read concurrently.
pub(crate) const TABLES_IN_FLIGHT: usize = 8;

/// The next page of a query, while it is fetched. `None` if the query has no page left.
pub(crate) type NextPage = BoxFuture<'static, Result<Option<FetchedPage>>>;

/// The first pages of the tables of a query that come later.
type LaterTables = BoxStream<'static, Result<FetchedPage>>;

/// The rows of a page, and the position of the next page.
pub(crate) struct FetchedPage {
    pub(crate) plan: Arc<QueryPlan>,
    rows: vec::IntoIter<Result<Row>>,
    /// The number of rows on the page.
    found: usize,
    /// The number of items that the rows have been decoded into so far.
    items: u64,
    /// The number of items on earlier pages, which count for the limit of `take`.
    returned: u64,
    /// The cursor that the page was read from.
    from: Option<Cursor>,
    next: Option<Cursor>,
    /// The table of the entities in lists, which errors name. `None` for the query's table.
    table: Option<String>,
    later_tables: Option<LaterTables>,
}

impl FetchedPage {
    /// Removes and returns the next row. Returns `None` after the last row, and once the query has all its items.
    pub(crate) fn next_row(&mut self) -> Option<Result<Row>> {
        if self.items < self.most_items() { self.rows.next() } else { None }
    }

    /// Counts an item, which may be the error of a row.
    pub(crate) fn count_item(&mut self) {
        self.items += 1;
    }

    /// Returns the most items that the rest of the page can have.
    pub(crate) fn items_left(&self) -> usize {
        self.rows.len().min(saturating_usize(self.most_items() - self.items))
    }

    /// Adds the name of the entities' table to an error of a row.
    pub(crate) fn place_error(&self, error: Error) -> Error {
        error.in_table(self.table.as_ref().unwrap_or(&self.plan.request.table))
    }

    /// Returns the number of items that the limit of `take` leaves for this page.
    fn most_items(&self) -> u64 {
        self.plan.request.take.map_or(u64::MAX, |take| take.saturating_sub(self.returned))
    }

    /// Returns the cursor of the page after this one, whose rows have been decoded. The cursor holds the number of items
    /// so far, which later pages need for the limit of `take`.
    pub(crate) fn next_cursor(&mut self) -> Option<Cursor> {
        // Once the limit is reached there is no next page, even if the store has more rows.
        let next = self.next.take().filter(|_| self.items < self.most_items())?;
        let (mixed, as_of) = self.from.as_ref().map_or((false, None), |at| (at.mixed, at.as_of));
        let has_other_rows = self.items < saturating_u64(self.found);
        Some(Cursor {
            returned: self.returned + self.items,
            mixed: next.mixed || mixed || has_other_rows,
            as_of,
            ..next
        })
    }

    /// Begins to fetch the page after this one before its rows are decoded, if the query reads ahead. A query with a limit
    /// does not: only the items of this page tell whether another one is needed.
    pub(crate) fn fetch_ahead(&mut self) -> Option<NextPage> {
        let request = &self.plan.request;
        if !request.reads_ahead || request.take.is_some() {
            return None;
        }
        let next = self.fetch_next()?;
        Some(Box::pin(TaskOrFuture::begin_task(next)))
    }

    /// Begins to fetch the page after this one, whose rows have been decoded. Returns `None` after the last page, and if
    /// the page was fetched already.
    pub(crate) fn fetch_next(&mut self) -> Option<NextPage> {
        if self.items >= self.most_items() {
            return None;
        }
        let returned = self.returned + self.items;
        let table = self.from.as_ref().and_then(|from| from.table.clone());
        let (next, plan) = (self.next_cursor(), self.plan.clone());
        let Some(tables) = self.later_tables.take() else {
            return next.map(|cursor| plan.fetch_page_of_one_table(Some(cursor)));
        };
        Some(match next.filter(|next| next.table == table) {
            Some(cursor) => plan.fetch_page_of_table(cursor, tables),
            // After the last page of the table, the cursor points to the next table.
            None => first_page_of_next_table(tables, returned),
        })
    }
}

impl Request {
    /// Begins to fetch the first of all pages. A query of several tables fetches the first pages of up to eight tables
    /// ahead.
    pub(crate) fn fetch_first_page(self: Arc<Self>) -> NextPage {
        if self.tables.is_some() {
            Box::pin(self.fetch_first_page_of_tables())
        } else {
            self.fetch_page(None)
        }
    }

    /// Begins to fetch the page at a cursor, in one request.
    pub(crate) fn fetch_page(self: Arc<Self>, cursor: Option<Cursor>) -> NextPage {
        if self.sends_requests_to_plan() {
            return Box::pin(async move {
                match self.plan_if_any(cursor.as_ref()).await? {
                    Some(plan) => plan.fetch_page_in_span(cursor).await.map(Some),
                    None => Ok(None),
                }
            });
        }
        if self.take == Some(0) {
            return Box::pin(ready(Ok(None)));
        }
        // Planned before the future is boxed, which would reserve space for the request otherwise.
        match self.plan_without_requests() {
            Ok(plan) => Arc::new(plan).fetch_page_of_one_table(cursor),
            Err(error) => Box::pin(ready(Err(error))),
        }
    }

    /// Plans the query once for all its pages, or for the page at a cursor. Returns `None` if the limit is 0, which
    /// needs no request.
    pub(crate) fn plan_boxed(
        self: Arc<Self>,
        cursor: Option<&Cursor>,
    ) -> BoxFuture<'_, Result<Option<Arc<QueryPlan>>>> {
        Box::pin(self.plan_if_any(cursor))
    }

    async fn plan_if_any(
        self: Arc<Self>,
        cursor: Option<&Cursor>,
    ) -> Result<Option<Arc<QueryPlan>>> {
        if self.take == Some(0) {
            return Ok(None);
        }
        self.plan(cursor).await.map(|plan| Some(Arc::new(plan)))
    }

    async fn fetch_first_page_of_tables(self: Arc<Self>) -> Result<Option<FetchedPage>> {
        let Some(plan) = self.plan_if_any(None).await? else { return Ok(None) };
        // Only the existing tables, if the plan has listed them.
        let periods = plan.request.tables.iter().flat_map(|tables| tables.iter());
        let periods: Vec<_> = periods.collect();
        let read = move |period| plan.clone().fetch_first_page_of_period(period);
        let first_pages = stream::iter(periods).map(read).buffered(TABLES_IN_FLIGHT).boxed();
        first_page_of_next_table(first_pages, 0).await
    }
}

/// Takes the first page of the next table. `returned` is the number of items that earlier tables returned.
fn first_page_of_next_table(mut tables: LaterTables, returned: u64) -> NextPage {
    Box::pin(async move {
        let first = tables.try_next().await?;
        Ok(first.map(|first| FetchedPage { returned, later_tables: Some(tables), ..first }))
    })
}

impl QueryPlan {
    /// Begins to fetch the page at a cursor.
    pub(crate) fn fetch_page(
        self: &Arc<Self>,
        cursor: Option<Cursor>,
    ) -> BoxFuture<'static, Result<FetchedPage>> {
        Box::pin(self.clone().fetch_page_in_span(cursor))
    }

    fn fetch_page_of_one_table(self: Arc<Self>, cursor: Option<Cursor>) -> NextPage {
        Box::pin(async move { self.fetch_page_in_span(cursor).await.map(Some) })
    }

    fn fetch_page_of_table(self: Arc<Self>, cursor: Cursor, later: LaterTables) -> NextPage {
        Box::pin(async move {
            let page = self.fetch_page_in_span(Some(cursor)).await?;
            Ok(Some(FetchedPage { later_tables: Some(later), ..page }))
        })
    }

    async fn fetch_first_page_of_period(self: Arc<Self>, period: Period) -> Result<FetchedPage> {
        // A cursor into each table allows eight first pages to be read before the first one is used up.
        let tables = self.request.tables.as_ref();
        let start = tables
            .map(|tables| tables.cursor_at_beginning(period, self.fingerprint(), None))
            .transpose()?;
        self.fetch_page_in_span(start).await
    }

    /// Reads the page at `cursor` in a tracing span.
    async fn fetch_page_in_span(self: Arc<Self>, cursor: Option<Cursor>) -> Result<FetchedPage> {
        let request = &self.request;
        let verb = request.store.usage.begin_verb("query", &request.table);
        if !verb.span().is_disabled() {
            let class = tracing::field::display(self.cost_class());
            verb.span().record("entable.cost_class", class);
        }
        let page = verb.run(pin!(self.read_page_of_items(cursor.as_ref()))).await;
        if let Ok((page, _)) = &page {
            record_count_in_span(verb.span(), "entable.rows", page.rows.len());
        }
        drop(verb);
        let (RowPage { rows, next }, table) = page?;
        Ok(FetchedPage {
            found: rows.len(),
            rows: rows.into_iter(),
            items: 0,
            returned: cursor.as_ref().map_or(0, |cursor| cursor.returned),
            from: cursor,
            next,
            table,
            later_tables: None,
            plan: self,
        })
    }

    /// Reads the rows of the page at `cursor`, and the table of the entities if the rows are of entities in lists.
    async fn read_page_of_items(
        &self,
        cursor: Option<&Cursor>,
    ) -> Result<(RowPage, Option<String>)> {
        match self.request.origin_of_items {
            ItemOrigin::Rows => Ok((self.read_page(cursor).await?, None)),
            ItemOrigin::EntitiesOfLists(of) => {
                let page = list_query::read_entity_page_boxed(self, of, cursor).await?;
                let EntityRowPage { rows, next, table } = page;
                Ok((RowPage { rows, next }, Some(table)))
            }
            ItemOrigin::IdsOfLists(schema) => {
                let (ids, next) = list_query::read_key_page_boxed(self, schema, cursor).await?;
                let rows = vec![Ok(Row::without_keys()); ids.len()];
                Ok((RowPage { rows, next }, None))
            }
        }
    }
}
