//! A query: built step by step, run when it is asked for items.

use std::{fmt, marker::PhantomData, sync::Arc};

use futures_util::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};

use super::request::{Request, decode_or_skip};
use crate::{
    access::CostClass,
    entity::{DynamicEntity, FromRow, Predicate, Projection, Stored, TableEntity},
    error::{Error, Result},
    filter::Filter,
    page::{Cursor, Page},
    row::Row,
};

/// The items of a query, page after page, each fetched when the one before is used up.
pub type Items<T> = BoxStream<'static, Result<T>>;

/// How a row becomes an item; `None`: it is skipped. Errors name the row's keys.
pub(super) type Decode<T> = Arc<dyn Fn(Row) -> Result<Option<T>> + Send + Sync>;

/// What may be given to [`Query::filter`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a condition on `{E}`",
    note = "compare the entity's own columns, as in `Employee::AGE.ge(30)`; untyped filters are for `client.dynamic(..)`"
)]
pub trait Condition<E> {
    /// The filter.
    ///
    /// # Errors
    ///
    /// `is_invalid` where a value cannot be stored in its column.
    fn into_filter(self) -> Result<Filter>;
}

impl<E> Condition<E> for Predicate<E> {
    fn into_filter(self) -> Result<Filter> {
        Self::into_filter(self)
    }
}

impl Condition<DynamicEntity> for Filter {
    fn into_filter(self) -> Result<Filter> {
        Ok(self)
    }
}

/// A query of entity `E` that yields `T`.
///
/// It is cheap to clone, and asks nothing before [`stream`](Self::stream),
/// [`collect`](Self::collect), [`first`](Self::first) or [`page`](Self::page).
pub struct Query<E, T> {
    request: Request,
    decode: Decode<T>,
    of: PhantomData<fn() -> E>,
}

impl<E, T> Clone for Query<E, T> {
    fn clone(&self) -> Self {
        Self { request: self.request.clone(), decode: self.decode.clone(), of: PhantomData }
    }
}

impl<E, T> fmt::Debug for Query<E, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Query").field(&self.explain()).finish()
    }
}

impl<E: TableEntity> Query<E, Stored<E>> {
    pub(super) fn typed(request: Request) -> Self {
        let decode = decode_as::<E, E>(&request);
        Self { request: request.typed(E::SCHEMA), decode, of: PhantomData }
    }

    /// Only the fields of a projection: the others are not sent.
    #[must_use]
    pub fn select<P: Projection<Entity = E>>(mut self) -> Query<E, Stored<P>> {
        self.request.select::<P>();
        let decode = decode_as::<E, P>(&self.request);
        Query { request: self.request, decode, of: PhantomData }
    }
}

/// Rows of the request's family as `T`; other rows are skipped.
fn decode_as<E: TableEntity, T: FromRow>(request: &Request) -> Decode<Stored<T>> {
    let family = request.family();
    Arc::new(move |row| decode_or_skip::<E, T>(row, family.map_or(E::SCHEMA.primary(), Ok)?))
}

impl<E, T> Query<E, T> {
    pub(super) fn new(request: Request, decode: Decode<T>) -> Self {
        Self { request, decode, of: PhantomData }
    }

    pub(super) fn table_name(&self) -> &str {
        &self.request.table
    }

    /// Only the rows that meet a condition; several conditions have to be met all.
    #[must_use]
    pub fn filter(mut self, condition: impl Condition<E>) -> Self {
        self.request.condition(condition.into_filter());
        self
    }

    /// At most so many items in all.
    #[must_use]
    pub fn take(mut self, items: u64) -> Self {
        self.request.take = Some(items);
        self
    }

    /// At most so many rows per request, 1 to 1,000.
    #[must_use]
    pub fn page_size(mut self, rows: u32) -> Self {
        self.request.page_size(rows);
        self
    }

    /// Allows a table scan where nothing narrows the partition.
    #[must_use]
    pub fn allow_scan(mut self) -> Self {
        self.request.allow_scan();
        self
    }

    /// What the query will ask, without asking it.
    pub fn explain(&self) -> Explain {
        let (filter, fault) = match self.request.filter() {
            Ok(filter) => (filter.to_string(), None),
            Err(error) => (String::new(), Some(error)),
        };
        let top = self.request.top(0);
        let pages =
            self.request.take.zip(top).map(|(take, top)| take.div_ceil(u64::from(top.max(1))));
        Explain {
            class: self.request.class(),
            table: self.request.table.clone(),
            filter,
            select: self.request.selected().unwrap_or_default(),
            top,
            estimated_requests: pages.unwrap_or(1).max(1),
            fault,
        }
    }
}

impl<E: 'static, T: Send + 'static> Query<E, T> {
    /// The items as a stream.
    pub fn stream(&self) -> Items<T> {
        let start = (self.clone(), Position::Start);
        stream::try_unfold(start, |(query, position)| async move {
            let cursor = match position {
                Position::Start => None,
                Position::At(cursor) => Some(cursor),
                Position::End => return Ok(None),
            };
            let page = query.page(cursor).await?;
            let position = page.next.map_or(Position::End, Position::At);
            Ok(Some((stream::iter(page.items.into_iter().map(Ok::<T, Error>)), (query, position))))
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
        self.clone().take(1).stream().try_next().await
    }

    /// One page, in one request: from the start or from a cursor that an earlier page gave, in this
    /// process or another. A page may be empty and still have a next one.
    ///
    /// # Errors
    ///
    /// `is_invalid_cursor` for a cursor of another query; the errors of the request and its rows.
    pub async fn page(&self, cursor: Option<Cursor>) -> Result<Page<T>> {
        if self.request.take == Some(0) {
            return Ok(Page::new(Vec::new(), None));
        }
        let (rows, next) = self.request.page(cursor.as_ref()).await?;
        let returned = cursor.map_or(0, |cursor| cursor.returned);
        let left = self.request.take.map_or(u64::MAX, |take| take.saturating_sub(returned));
        let mut items = Vec::with_capacity(rows.rows.len());
        for row in rows.rows {
            if u64::try_from(items.len()).is_ok_and(|count| count == left) {
                break;
            }
            let item = (self.decode)(row).map_err(|error| error.in_table(&self.request.table))?;
            items.extend(item);
        }
        let count = u64::try_from(items.len()).unwrap_or(u64::MAX);
        let next = next
            .filter(|_| count < left)
            .map(|cursor| Cursor { returned: returned + count, ..cursor });
        Ok(Page::new(items, next))
    }
}

/// Where a stream stands.
enum Position {
    Start,
    At(Cursor),
    End,
}

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
    /// Why the query cannot be asked, if it cannot.
    pub fault: Option<Error>,
}

impl fmt::Display for Explain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.class, self.table)?;
        match &self.fault {
            Some(fault) => write!(f, ", refused: {fault}")?,
            None => write!(f, "\n  $filter={}", self.filter)?,
        }
        if !self.select.is_empty() {
            write!(f, "\n  $select={}", self.select.join(","))?;
        }
        if let Some(top) = self.top {
            write!(f, "\n  $top={top}")?;
        }
        write!(f, "\n  requests >= {}", self.estimated_requests)
    }
}
