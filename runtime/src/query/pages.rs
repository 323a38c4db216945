//! Runs a query as a stream, completely, or page by page.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_util::{Stream, TryStreamExt};

use super::{
    build::{DecodeRow, Items, Query},
    fetched_page::{FetchedPage, NextPage},
    query_plan::QueryPlan,
};
use crate::{
    error::Result,
    page::{Cursor, Page},
};

impl<E: 'static, T: Send + 'static> Query<E, T> {
    /// Makes [`stream`](Self::stream) request the next page while you use the items of the current one, so that the request
    /// overlaps with your work. By default, a stream requests a page when the one before is used up.
    ///
    /// At most two pages are in memory. If you drop the stream early, it has requested one page in vain. It has no effect on
    /// a query with [`take`](Self::take), on other calls, and outside of a tokio runtime.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let mut found = staff().await?.query(sales()).page_size(1).read_ahead().stream();
    /// let mut ids = Vec::new();
    /// while let Some(one) = found.try_next().await? {
    ///     ids.push(one.id);
    /// }
    /// assert_eq!(ids, [7, 223, 224]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn read_ahead(mut self) -> Self {
        self.request_mut().reads_ahead = true;
        self
    }

    /// Returns the items as a stream. Fetches each page when the previous one is used up, or
    /// [ahead](Self::read_ahead). A query of several dated tables fetches the first pages of up to eight tables ahead.
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
        Box::pin(ItemStream {
            decode: self.decode.clone(),
            page: None,
            next: Some(self.request.clone().fetch_first_page()),
        })
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
        let mut items = Vec::new();
        let mut next = Some(self.request.clone().fetch_first_page());
        while let Some(page) = next.take() {
            let Some(mut page) = page.await? else { break };
            items.reserve(page.items_left());
            while let Some(item) = page.next_item(&self.decode) {
                items.push(item?);
            }
            next = page.fetch_next();
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
        match self.request.clone().fetch_page(cursor).await? {
            Some(page) => page.decode_all(&self.decode),
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
        self.map_decode(|decode| {
            Arc::new(move |page, row| {
                Ok(decode(page, row).map_err(|error| page.place_error(error)).transpose())
            })
        })
    }

    /// Plans the query once for all its pages, or for the page at a cursor. Returns `None` if the limit is 0, which
    /// needs no request.
    pub(crate) async fn plan(&self, cursor: Option<&Cursor>) -> Result<Option<PlannedQuery<T>>> {
        let plan = self.request.clone().plan_boxed(cursor).await?;
        Ok(plan.map(|plan| PlannedQuery { plan, decode: self.decode.clone() }))
    }
}

/// A running query: its plan, and the conversion of its rows into items.
pub(crate) struct PlannedQuery<T> {
    pub(crate) plan: Arc<QueryPlan>,
    decode: DecodeRow<T>,
}

impl<T: Send + 'static> PlannedQuery<T> {
    /// Reads the page at `cursor`. Fails with the error of the first row that cannot be read.
    pub(crate) async fn page(&self, cursor: Option<Cursor>) -> Result<Page<T>> {
        self.plan.fetch_page(cursor).await?.decode_all(&self.decode)
    }

    /// Reads the page at `cursor`. Returns a result for each item, and nothing for rows that the query skips.
    pub(crate) async fn page_of_results(&self, cursor: Option<Cursor>) -> Result<Page<Result<T>>> {
        let mut page = self.plan.fetch_page(cursor).await?;
        let mut items = Vec::with_capacity(page.items_left());
        while let Some(item) = page.next_item(&self.decode) {
            items.push(item);
        }
        Ok(Page::new(items, page.next_cursor()))
    }
}

impl FetchedPage {
    /// Decodes rows until one of them is an item or cannot be read.
    fn next_item<T>(&mut self, decode: &DecodeRow<T>) -> Option<Result<T>> {
        loop {
            let row = self.next_row()?;
            let item = decode(self, row).map_err(|error| self.place_error(error)).transpose();
            if item.is_some() {
                self.count_item();
                return item;
            }
        }
    }

    /// Decodes all rows. Fails with the error of the first row that cannot be read.
    fn decode_all<T>(mut self, decode: &DecodeRow<T>) -> Result<Page<T>> {
        let mut items = Vec::with_capacity(self.items_left());
        while let Some(item) = self.next_item(decode) {
            items.push(item?);
        }
        Ok(Page::new(items, self.next_cursor()))
    }
}

/// The items of a query. A row is decoded when its item is polled for.
struct ItemStream<T> {
    decode: DecodeRow<T>,
    /// The page whose rows are being decoded.
    page: Option<FetchedPage>,
    next: Option<NextPage>,
}

impl<T> Stream for ItemStream<T> {
    type Item = Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        loop {
            let Self { decode, page, next } = &mut *self;
            if let Some(item) = page.as_mut().and_then(|page| page.next_item(decode)) {
                return Poll::Ready(Some(item));
            }
            // Fetch each page when it is polled for: an error of its request must not discard earlier items.
            *next = next.take().or_else(|| page.take()?.fetch_next());
            let Some(fetched) = next else { return Poll::Ready(None) };
            let fetched = ready!(fetched.as_mut().poll(context));
            *next = None;
            match fetched {
                Ok(fetched) => {
                    *page = fetched;
                    *next = page.as_mut().and_then(FetchedPage::fetch_ahead);
                }
                // The error of a request is the last item, because later items would hide the gap.
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }
}
