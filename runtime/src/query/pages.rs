//! How a query is run: as a stream, at once, page by page.

use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};

use super::build::{Items, Query, Source};
use crate::{
    error::{Error, Result},
    page::{Cursor, Page},
};

impl<E: 'static, T: Send + 'static> Query<E, T> {
    /// The items as a stream.
    ///
    /// A row that cannot be read is an error in its place, and the rows after it follow; the error
    /// of a request is the last item.
    pub fn stream(&self) -> Items<T> {
        let start = (self.clone(), Position::Start);
        stream::try_unfold(start, |(query, position)| async move {
            let cursor = match position {
                Position::Start => None,
                Position::At(cursor) => Some(cursor),
                Position::End => return Ok(None),
            };
            let page = query.fetch(cursor).await?;
            let position = page.next.map_or(Position::End, Position::At);
            Ok(Some((stream::iter(page.items), (query, position))))
        })
        .try_flatten()
        .boxed()
    }

    /// All items.
    ///
    /// # Errors
    ///
    /// The first error of a request or a row.
    pub async fn collect(&self) -> Result<Vec<T>> {
        self.stream().try_collect().await
    }

    /// The first item, if there is one.
    ///
    /// # Errors
    ///
    /// As [`collect`](Self::collect).
    pub async fn first(&self) -> Result<Option<T>> {
        let most = self.request.take.unwrap_or(1).min(1);
        self.clone().take(most).stream().try_next().await
    }

    /// One page, in one request: from the start or from a cursor that an earlier page gave, in this
    /// process or another. A page may be empty and still have a next one.
    ///
    /// A page with a row that cannot be read is an error; [`results`](Self::results) has the others.
    ///
    /// # Errors
    ///
    /// `is_invalid_cursor` for a cursor of another query; the errors of the request and its rows.
    pub async fn page(&self, cursor: Option<Cursor>) -> Result<Page<T>> {
        let Page { items, next } = self.fetch(cursor).await?;
        Ok(Page::new(items.into_iter().collect::<Result<_>>()?, next))
    }

    /// The same rows, each with its own result: a row that cannot be read is an item, and neither a
    /// page nor [`collect`](Self::collect) ends at it. The errors of requests stay errors.
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
            Source::Rows(decode) => Source::Rows(Arc::new(move |row| {
                let item = decode(row).map_err(|error| error.in_table(&table));
                Ok(item.transpose())
            })),
            Source::Lists(fetch) => Source::Lists(Arc::new(move |request, cursor| {
                let page = fetch(request, cursor);
                Box::pin(async move {
                    let (items, next) = page.await?;
                    Ok((items.into_iter().map(Ok).collect(), next))
                })
            })),
        })
    }

    /// One page, its rows with their own results. A row that cannot be read counts as an item.
    pub(crate) async fn fetch(&self, cursor: Option<Cursor>) -> Result<Page<Result<T>>> {
        if self.request.take == Some(0) {
            return Ok(Page::new(Vec::new(), None));
        }
        let (returned, mixed) = cursor.as_ref().map_or((0, false), |at| (at.returned, at.mixed));
        let left = self.request.take.map_or(u64::MAX, |take| take.saturating_sub(returned));
        let (mut items, found, next) = match &self.source {
            Source::Rows(decode) => {
                let (rows, next) = self.request.page(cursor.as_ref()).await?;
                let found = rows.len();
                let place = |error: Error| error.in_table(&self.request.table);
                let items = rows.into_iter().filter_map(|row| decode(row).transpose());
                let items = items.take(usize::try_from(left).unwrap_or(usize::MAX));
                (items.map(|item| item.map_err(place)).collect::<Vec<_>>(), found, next)
            }
            Source::Lists(fetch) => {
                let (items, next) = fetch(self.request.clone(), cursor).await?;
                let found = items.len();
                (items, found, next)
            }
        };
        items.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        let count = u64::try_from(items.len()).unwrap_or(u64::MAX);
        let next = next.filter(|_| count < left).map(|cursor| Cursor {
            returned: returned + count,
            mixed: mixed || items.len() < found,
            ..cursor
        });
        Ok(Page::new(items, next))
    }
}

/// Where a stream stands.
enum Position {
    Start,
    At(Cursor),
    End,
}
