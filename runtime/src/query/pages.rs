//! Runs a query as a stream, completely, or page by page.

use std::{pin::pin, sync::Arc};

use futures_util::{StreamExt, TryStreamExt, future, stream, stream::BoxStream};

use super::{
    build::{DecodeRow, ItemSource, Items, Query},
    query_plan::QueryPlan,
    read_page::RowPage,
};
use crate::{
    backend::layer::record_count_in_span,
    error::{Error, Result},
    limits::{saturating_u64, saturating_usize},
    page::{Cursor, Page, PageLoop},
    row::Row,
};

/// The number of tables of a window that are read concurrently.
pub(crate) const TABLES_IN_FLIGHT: usize = 8;

impl<E: 'static, T: Send + 'static> Query<E, T> {
    /// Returns the items of several tables, table by table. Reads the first pages of eight tables concurrently,
    /// and later pages of a table when its turn comes.
    fn stream_tables(&self) -> Items<T> {
        let query = self.clone();
        let take = self.request.take.map_or(usize::MAX, saturating_usize);
        let items = async move {
            let run = query.plan(None).await?;
            // Only the existing tables, if the plan has listed them.
            let run = run.and_then(|run| Some((run.clone(), run.plan.request.tables.clone()?)));
            let periods = run.iter().flat_map(|(_, tables)| tables.iter()).collect::<Vec<_>>();
            let first_pages = stream::iter(periods)
                .map(move |period| {
                    let run = run.clone();
                    async move {
                        let Some((run, tables)) = run else { return Ok(None) };
                        // A cursor into each table allows eight first pages to be read before the first one is
                        // used up.
                        let fingerprint = run.plan.fingerprint();
                        let start = tables.cursor_at_beginning(period, fingerprint, None)?;
                        let page = run.fetch_page_in_span(Some(start.clone())).await?;
                        Ok::<_, Error>(Some((run, start.table, page)))
                    }
                })
                .buffered(TABLES_IN_FLIGHT);
            // The error of a request is the last item, because later items would hide the gap.
            let pages = first_pages.map_ok(pages_of_table).try_flatten();
            let pages = pages.scan(false, |is_over, page| {
                let page = (!*is_over).then_some(page);
                *is_over = page.as_ref().is_some_and(Result::is_err);
                future::ready(page)
            });
            Ok::<_, Error>(pages.map_ok(stream::iter).try_flatten())
        };
        // Each table is read separately, so the total limit of items is applied here.
        stream::once(items).try_flatten().take(take).boxed()
    }

    /// Returns the items as a stream. Fetches each page when the previous one is used up. A query of several dated
    /// tables fetches the first pages of up to eight tables ahead.
    ///
    /// A row that cannot be read is an error in its place, and the rows after it follow. An error of a request is
    /// the last item.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let mut found = staff().await?.query(sales()).stream();
    /// let mut ids = Vec::new();
    /// while let Some(one) = found.try_next().await? {
    ///     ids.push(one.id);
    /// }
    /// assert_eq!(ids, [7, 223, 224]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn stream(&self) -> Items<T> {
        if self.request.tables.is_some() {
            return self.stream_tables();
        }
        stream::try_unfold(StreamPosition::Start(Box::new(self.clone())), |position| async move {
            let (run, cursor) = match position {
                StreamPosition::Start(query) => match query.plan(None).await? {
                    Some(run) => (run, None),
                    None => return Ok(None),
                },
                StreamPosition::At(run, cursor) => (run, Some(cursor)),
                StreamPosition::End => return Ok(None),
            };
            let page = run.fetch_page_in_span(cursor).await?;
            let position = match page.next {
                Some(next) => StreamPosition::At(run, next),
                None => StreamPosition::End,
            };
            Ok(Some((stream::iter(page.items), position)))
        })
        .try_flatten()
        .boxed()
    }

    /// Reads all items.
    ///
    /// # Errors
    ///
    /// Returns the first error of a request or a row.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// assert_eq!(staff().await?.query(sales()).collect().await?.len(), 3);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn collect(&self) -> Result<Vec<T>> {
        if self.request.tables.is_some() {
            // Boxed because queries of several tables are rare.
            return self.stream_tables().try_collect().await;
        }
        let Some(run) = self.plan(None).await? else { return Ok(Vec::new()) };
        let (mut items, mut pages) = (Vec::new(), PageLoop::from_start());
        while let Some(cursor) = pages.take_position() {
            let page = run.page(cursor).await?;
            if items.is_empty() {
                items = page.items
            } else {
                items.extend(page.items)
            }
            pages.continue_at(page.next);
        }
        Ok(items)
    }

    /// Returns the first item, or `None` if the query finds nothing.
    ///
    /// # Errors
    ///
    /// Returns the first error of a request or a row.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// assert_eq!(staff().await?.query(sales()).first().await?.map(|first| first.id), Some(7));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn first(&self) -> Result<Option<T>> {
        // At most one item, or none if the caller's limit is 0.
        let most = self.request.take.unwrap_or(1).min(1);
        self.clone().take(most).stream().try_next().await
    }

    /// Reads one page in one request, from the start or from the cursor of an earlier page, even in another
    /// process. A page may be empty and still have a next page.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid_cursor` for a cursor of another query, and with the first error of the request or of
    /// a row. Use [`results`](Self::results) to keep the other rows of such a page.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let query = staff().await?.query(sales()).page_size(2);
    /// let first = query.page(None).await?;
    /// // A cursor is text: another process can go on with it.
    /// let text = first.next.map(|next| next.to_string()).unwrap_or_default();
    /// let second = query.page(Some(text.parse()?)).await?;
    /// assert_eq!((first.items.len(), second.items.len(), second.next.is_none()), (2, 1, true));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn page(&self, cursor: Option<Cursor>) -> Result<Page<T>> {
        match self.plan(cursor.as_ref()).await? {
            Some(run) => run.page(cursor).await,
            None => Ok(Page::new(Vec::new(), None)),
        }
    }

    /// Reads the page after a cursor in one request, as [`page`](Self::page) does.
    ///
    /// ```
    /// use entable::prelude::*;
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let client = Client::memory();
    /// client.create_table("Staff").await?;
    /// let staff = client.dynamic("Staff");
    /// for row_key in ["1", "2", "3"] {
    ///     staff.insert(&DynamicEntity::new("Sales", row_key)).await?;
    /// }
    /// let query = staff.query(Keys::partition("Sales")).page_size(2);
    /// let cursor = query.page(None).await?.next.expect("three rows are two pages");
    /// assert_eq!(query.page_after(&cursor).await?.items.len(), 1);
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails as [`page`](Self::page) does.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let query = staff().await?.query(sales()).page_size(2);
    /// let Some(cursor) = query.page(None).await?.next else { return Ok(()) };
    /// assert_eq!(query.page_after(&cursor).await?.items.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn page_after(&self, cursor: &Cursor) -> Result<Page<T>> {
        self.page(Some(cursor.clone())).await
    }

    /// Makes the result of each row an item. A row that cannot be read then ends neither a page nor
    /// [`collect`](Self::collect). Errors of requests are still errors of the query.
    ///
    /// ```
    /// use entable::prelude::*;
    ///
    /// #[derive(Debug, TableEntity)]
    /// #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
    /// pub struct Employee { pub department: String, pub id: u32, pub age: i32 }
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let client = Client::memory();
    /// let staff: Table<Employee> = client.table();
    /// staff.create().await?;
    /// staff.insert(&Employee { department: "Sales".into(), id: 2, age: 34 }).await?;
    /// let bad = DynamicEntity::new("Sales", "empid_000001").with("EntityType", "Employee");
    /// client.dynamic("Staff").insert(&bad.with("Age", "old")).await?;
    ///
    /// let rows = staff.query(Employee::primary().department("Sales"));
    /// assert!(rows.collect().await.unwrap_err().is_decode());
    /// let (good, bad): (Vec<_>, Vec<_>) =
    ///     rows.results().collect().await?.into_iter().partition(Result::is_ok);
    /// assert_eq!((good.len(), bad.len()), (1, 1));
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn results(self) -> Query<E, Result<T>> {
        let table = self.request.table.clone();
        self.map_source(|source| match source {
            ItemSource::Rows(decode) => ItemSource::Rows(Arc::new(move |plan, row| {
                let item = decode(plan, row).map_err(|error| error.in_table(&table));
                Ok(item.transpose())
            })),
            ItemSource::Lists(fetch) => ItemSource::Lists(Arc::new(move |plan, cursor| {
                let page = fetch(plan, cursor);
                Box::pin(async move {
                    let (items, next) = page.await?;
                    Ok((items.into_iter().map(Ok).collect(), next))
                })
            })),
        })
    }

    /// Plans the query once for all its pages, or for the page at a cursor. Returns `None` if the limit is 0, which
    /// needs no request.
    pub(crate) async fn plan(&self, cursor: Option<&Cursor>) -> Result<Option<PlannedQuery<T>>> {
        if self.request.take == Some(0) {
            return Ok(None);
        }
        let plan = Arc::new(self.request.clone().plan(cursor).await?);
        Ok(Some(PlannedQuery { plan, source: self.source.clone() }))
    }
}

/// A running query: its plan, and the conversion of its rows into items.
pub(crate) struct PlannedQuery<T> {
    pub(crate) plan: Arc<QueryPlan>,
    pub(super) source: ItemSource<T>,
}

impl<T> Clone for PlannedQuery<T> {
    fn clone(&self) -> Self {
        Self { plan: self.plan.clone(), source: self.source.clone() }
    }
}

impl<T: Send + 'static> PlannedQuery<T> {
    /// Reads the page at `cursor`. Fails with the error of the first row that cannot be read.
    pub(crate) async fn page(&self, cursor: Option<Cursor>) -> Result<Page<T>> {
        let Page { items, next } = self.fetch_page_in_span(cursor).await?;
        Ok(Page::new(items.into_iter().collect::<Result<_>>()?, next))
    }

    /// Reads the page at `cursor` in a tracing span. Returns a result for each item, and nothing for rows that the
    /// query skips. The next cursor holds the number of items returned so far, which later pages need for the limit
    /// of `take`. A row that cannot be read counts as an item.
    pub(crate) async fn fetch_page_in_span(
        &self,
        cursor: Option<Cursor>,
    ) -> Result<Page<Result<T>>> {
        let request = &self.plan.request;
        let verb = request.store.usage.begin_verb("query", &request.table);
        if !verb.span().is_disabled() {
            let class = tracing::field::display(self.plan.cost_class());
            verb.span().record("entable.cost_class", class);
        }
        let page = verb.run(pin!(self.fetch_page(cursor))).await;
        if let Ok(page) = &page {
            record_count_in_span(verb.span(), "entable.rows", page.items.len());
        }
        page
    }

    /// Reads the page at `cursor`, and counts the returned items into the next cursor.
    async fn fetch_page(&self, cursor: Option<Cursor>) -> Result<Page<Result<T>>> {
        let request = &self.plan.request;
        let (returned, mixed) = cursor.as_ref().map_or((0, false), |at| (at.returned, at.mixed));
        let as_of = cursor.as_ref().and_then(|cursor| cursor.as_of);
        let left = request.take.map_or(u64::MAX, |take| take.saturating_sub(returned));
        let most = saturating_usize(left);
        let (mut items, found, next) = match &self.source {
            ItemSource::Rows(decode) => {
                let RowPage { rows, next } = self.plan.read_page(cursor.as_ref()).await?;
                let found = rows.len();
                (self.plan.decode_rows(rows, decode, most), found, next)
            }
            ItemSource::Lists(fetch) => {
                let (items, next) = fetch(self.plan.clone(), cursor).await?;
                let found = items.len();
                (items, found, next)
            }
        };
        // A list is read completely, whatever the limit.
        items.truncate(most);
        let count = saturating_u64(items.len());
        // The limit is reached, so there is no next page even if the store has one.
        let next = next.filter(|_| count < left).map(|cursor| Cursor {
            returned: returned + count,
            mixed: cursor.mixed || mixed || items.len() < found,
            as_of,
            ..cursor
        });
        Ok(Page::new(items, next))
    }
}

impl QueryPlan {
    /// Decodes rows until there are `most` items. Skipped rows produce no item.
    fn decode_rows<T>(
        &self,
        rows: Vec<Result<Row>>,
        decode: &DecodeRow<T>,
        most: usize,
    ) -> Vec<Result<T>> {
        let mut items = Vec::with_capacity(rows.len().min(most));
        for row in rows {
            if items.len() == most {
                break;
            }
            match decode(self, row) {
                Ok(None) => {}
                Ok(Some(item)) => items.push(Ok(item)),
                Err(error) => items.push(Err(error.in_table(&self.request.table))),
            }
        }
        items
    }
}

/// A table, with the running query and the table's first page.
type FirstPage<T> = (PlannedQuery<T>, Option<String>, Page<Result<T>>);

/// Returns the items of a table, page by page. `read` is the table's first page.
fn pages_of_table<T: Send + 'static>(
    read: Option<FirstPage<T>>,
) -> BoxStream<'static, Result<Vec<Result<T>>>> {
    let Some((run, table, first)) = read else { return stream::empty().boxed() };
    // After the last page of the table, the cursor points to the next table.
    let next = first.next.filter(|next| next.table == table);
    // Fetch each page when it is polled for: an error of its request must not discard earlier items.
    let later = stream::try_unfold((run, table, next), |(run, table, next)| async move {
        let Some(cursor) = next else { return Ok(None) };
        let page = run.fetch_page_in_span(Some(cursor)).await?;
        let next = page.next.filter(|next| next.table == table);
        Ok::<_, Error>(Some((page.items, (run, table, next))))
    });
    stream::iter([Ok(first.items)]).chain(later).boxed()
}

/// The position of a stream.
enum StreamPosition<E, T> {
    /// Nothing has been sent yet.
    Start(Box<Query<E, T>>),
    /// The next page begins at the cursor.
    At(PlannedQuery<T>, Cursor),
    /// The last page has been read.
    End,
}
