//! A query: built step by step, run when it is asked for items.

use std::{fmt, marker::PhantomData, sync::Arc};

use futures_util::{
    StreamExt, TryStreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};

use super::{
    lists,
    decode::decode_or_skip,
    request::{Request, SOME_TOKEN},
};
use crate::{
    access::CostClass,
    entity::{
        Access, DynamicEntity, FromRow, FullCopy, ListRows, PartialCopy, Predicate, PrimaryRow, Projection,
        ReadableAs, Stored, TableEntity, View,
    },
    error::{Error, Result},
    filter::Filter,
    key::{FamilyKind, HELD},
    page::{Cursor, Page},
    row::Row,
};

/// The items of a query, page after page, each fetched when the one before is used up.
pub type Items<T> = BoxStream<'static, Result<T>>;

/// How a row becomes an item; `None`: it is skipped. Errors name the row's keys.
pub(super) type Decode<T> = Arc<dyn Fn(Row) -> Result<Option<T>> + Send + Sync>;

/// How a page of a request is read.
type Fetch<T> = Arc<
    dyn Fn(Request, Option<Cursor>) -> BoxFuture<'static, Result<(Vec<T>, Option<Cursor>)>>
        + Send
        + Sync,
>;

/// What a query reads: the rows that it asks for, or the entities of the lists that it asks for.
pub(super) enum Source<T> {
    Rows(Decode<T>),
    Lists(Fetch<T>),
}

impl<T> Clone for Source<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Rows(decode) => Self::Rows(decode.clone()),
            Self::Lists(fetch) => Self::Lists(fetch.clone()),
        }
    }
}

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
    source: Source<T>,
    of: PhantomData<fn() -> E>,
}

impl<E, T> Clone for Query<E, T> {
    fn clone(&self) -> Self {
        Self { request: self.request.clone(), source: self.source.clone(), of: PhantomData }
    }
}

impl<E, T> fmt::Debug for Query<E, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Query").field(&self.explain()).finish()
    }
}

impl<E: TableEntity> Query<E, Stored<E>> {
    /// Only the fields of a projection: the others are not sent.
    #[must_use]
    pub fn select<P: Projection<Entity = E>>(self) -> Query<E, Stored<P>> {
        selected::<E, P>(self.request)
    }
}

fn selected<E: TableEntity, T: FromRow>(mut request: Request) -> Query<E, Stored<T>> {
    request.select::<T>();
    let source = source::<E, T>(&request);
    Query { request, source, of: PhantomData }
}

/// Rows of the request's family as `T`, other rows skipped; or the entities of its lists.
fn source<E: TableEntity, T: FromRow>(request: &Request) -> Source<Stored<T>> {
    let family = request.family();
    if family.is_some_and(|family| family.kind == FamilyKind::List) {
        return Source::Lists(Arc::new(|request, cursor| {
            Box::pin(async move { lists::page::<E, T>(&request, cursor.as_ref()).await })
        }));
    }
    Source::Rows(Arc::new(move |row| {
        decode_or_skip::<E, T>(row, family.map_or(E::SCHEMA.primary(), Ok)?)
    }))
}

/// What a query of a path is, by the rows that the path leads to.
#[diagnostic::on_unimplemented(message = "this path cannot be queried")]
pub trait Queried<E: TableEntity>: View {
    /// The query.
    type Query;

    #[doc(hidden)]
    fn query(request: TypedRequest) -> Self::Query;
}

/// A path in a table, on its way to become a query.
#[derive(Debug)]
pub struct TypedRequest(pub(super) Request);

macro_rules! queried {
    ($($view:ty),*) => {
        $(impl<E: TableEntity> Queried<E> for $view {
            type Query = Query<E, Stored<E>>;

            fn query(request: TypedRequest) -> Self::Query {
                selected::<E, E>(request.0.typed(E::SCHEMA))
            }
        })*
    };
}

queried!(PrimaryRow, FullCopy, ListRows);

impl<E: TableEntity, M: 'static> Queried<E> for PartialCopy<M> {
    type Query = PartialQuery<E, M>;

    fn query(request: TypedRequest) -> Self::Query {
        PartialQuery { request: request.0.typed(E::SCHEMA), of: PhantomData }
    }
}

/// A query of partial copies: it needs a projection of the fields that they hold.
pub struct PartialQuery<E, M> {
    request: Request,
    of: PhantomData<fn() -> (E, M)>,
}

impl<E, M> fmt::Debug for PartialQuery<E, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PartialQuery").field(&self.request).finish()
    }
}

impl<E: TableEntity, M: 'static> PartialQuery<E, M> {
    /// Only the rows that meet a condition.
    #[must_use]
    pub fn filter(mut self, condition: impl Condition<E>) -> Self {
        self.request.condition(condition.into_filter());
        self
    }

    /// The fields of a projection, which the copies hold.
    #[must_use]
    pub fn select<P>(self) -> Query<E, Stored<P>>
    where
        P: Projection<Entity = E>,
        PartialCopy<M>: ReadableAs<P>,
    {
        selected::<E, P>(self.request)
    }
}

impl<E, T> Query<E, T> {
    pub(super) fn new(request: Request, decode: Decode<T>) -> Self {
        Self { request, source: Source::Rows(decode), of: PhantomData }
    }

    /// The same rows, read as something else.
    pub(super) fn read_as<F, U>(self, decode: Decode<U>) -> Query<F, U> {
        Query::new(self.request, decode)
    }

    /// The same request, its rows made into something else.
    pub(super) fn map_source<U>(self, map: impl FnOnce(Source<T>) -> Source<U>) -> Query<E, U> {
        Query { request: self.request, source: map(self.source), of: PhantomData }
    }

    pub(super) fn edit(mut self, change: impl FnOnce(&mut Request)) -> Self {
        change(&mut self.request);
        self
    }

    /// A path with the tokens of its keys.
    pub(super) async fn keyed(&self, access: &Access) -> Result<Access> {
        self.request.keyed(access).await
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
            Ok(filter) => (filter.to_string().replace(HELD, SOME_TOKEN), None),
            Err(error) => (String::new(), Some(error)),
        };
        let top = self.request.top(0, false);
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
    ///
    /// A row that cannot be read is an error at its place, and the rows after it follow; a request
    /// that fails ends the stream.
    pub fn stream(&self) -> Items<T> {
        let start = (self.clone(), Position::Start);
        stream::try_unfold(start, |(query, position)| async move {
            let cursor = match position {
                Position::Start => None,
                Position::At(cursor) => Some(cursor),
                Position::End => return Ok(None),
            };
            let (items, next) = query.rows(cursor).await?;
            let position = next.map_or(Position::End, Position::At);
            Ok::<_, Error>(Some((stream::iter(items), (query, position))))
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
    /// # Errors
    ///
    /// `is_invalid_cursor` for a cursor of another query; the errors of the request and its rows.
    pub async fn page(&self, cursor: Option<Cursor>) -> Result<Page<T>> {
        let (items, next) = self.rows(cursor).await?;
        Ok(Page::new(items.into_iter().collect::<Result<_>>()?, next))
    }

    /// The items of one page, one by one: a row that cannot be read spoils no other.
    async fn rows(&self, cursor: Option<Cursor>) -> Result<(Vec<Result<T>>, Option<Cursor>)> {
        if self.request.take == Some(0) {
            return Ok((Vec::new(), None));
        }
        let returned = cursor.as_ref().map_or(0, |cursor| cursor.returned);
        let left = self.request.take.map_or(u64::MAX, |take| take.saturating_sub(returned));
        let left_items = usize::try_from(left).unwrap_or(usize::MAX);
        let (items, next): (Vec<Result<T>>, _) = match &self.source {
            Source::Rows(decode) => {
                let (rows, next) = self.request.page(cursor.as_ref()).await?;
                let items = rows.into_iter().filter_map(|row| row.and_then(|row| decode(row)).transpose());
                let place = |error: Error| error.in_table(&self.request.table);
                (items.take(left_items).map(|item| item.map_err(place)).collect(), next)
            }
            Source::Lists(fetch) => {
                let (mut items, next) = fetch(self.request.clone(), cursor).await?;
                items.truncate(left_items);
                (items.into_iter().map(Ok).collect(), next)
            }
        };
        let count = u64::try_from(items.len()).unwrap_or(u64::MAX);
        let next = next
            .filter(|_| count < left)
            .map(|cursor| Cursor { returned: returned + count, ..cursor });
        Ok((items, next))
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
