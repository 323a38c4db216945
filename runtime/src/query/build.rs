//! A query: built step by step, run when it is asked for items.

use std::{fmt, marker::PhantomData, sync::Arc};

use futures_util::{future::BoxFuture, stream::BoxStream};

use super::{
    decode::decode_or_skip,
    explain::Explain,
    list_query as lists,
    request::{Request, SOME_TOKEN},
};
use crate::{
    entity::{
        Access, DynamicEntity, FromRow, FullCopy, ListRows, Predicate, PrimaryRow, Projection,
        Stored, TableEntity, View,
    },
    error::Result,
    filter::Filter,
    key::{FamilyKind, TOKEN_PLACEHOLDER},
    page::Cursor,
    row::Row,
    store::sealing::open::Reading,
};

/// The items of a query, page after page, each fetched when the one before is used up.
pub type Items<T> = BoxStream<'static, Result<T>>;

/// How what became of a row becomes an item; `None`: it is skipped. A row that does not open is an
/// error already. Errors name the row's keys.
pub(crate) type Each<T> = Arc<dyn Fn(Result<Row>) -> Result<Option<T>> + Send + Sync>;

/// How a page of a request is read.
type Fetch<T> = Arc<
    dyn Fn(Request, Option<Cursor>) -> BoxFuture<'static, Result<(Vec<Result<T>>, Option<Cursor>)>>
        + Send
        + Sync,
>;

/// What a query reads: the rows that it asks for, or the entities of the lists that it asks for.
pub(crate) enum Source<T> {
    Rows(Each<T>),
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
    pub(crate) request: Request,
    pub(crate) source: Source<T>,
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

pub(crate) fn selected<E: TableEntity, T: FromRow>(mut request: Request) -> Query<E, Stored<T>> {
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
        decode_or_skip::<E, T>(row?, family.map_or(E::SCHEMA.primary(), Ok)?)
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
pub struct TypedRequest(pub(crate) Request);

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

impl<E, T> Query<E, T> {
    pub(crate) fn new(
        request: Request,
        decode: impl Fn(Row) -> Result<Option<T>> + Send + Sync + 'static,
    ) -> Self {
        let source = Source::Rows(Arc::new(move |row| decode(row?)));
        Self { request, source, of: PhantomData }
    }

    /// The same rows, read as something else.
    pub(crate) fn read_as<F, U>(
        self,
        decode: impl Fn(Row) -> Result<Option<U>> + Send + Sync + 'static,
    ) -> Query<F, U> {
        Query::new(self.request, decode)
    }

    /// The same request, its rows made into something else.
    pub(crate) fn map_source<U>(self, map: impl FnOnce(Source<T>) -> Source<U>) -> Query<E, U> {
        Query { request: self.request, source: map(self.source), of: PhantomData }
    }

    pub(crate) fn edit(mut self, change: impl FnOnce(&mut Request)) -> Self {
        change(&mut self.request);
        self
    }

    /// What its rows are read as.
    pub(crate) fn reading(&self) -> Reading {
        self.request.reading()
    }

    /// A path with the tokens of its keys.
    pub(crate) async fn keyed(&self, access: &Access) -> Result<Access> {
        self.request.keyed(access).await
    }

    pub(crate) fn table_name(&self) -> &str {
        &self.request.table
    }

    /// Only the rows that meet a condition; several conditions have to be met all.
    #[must_use]
    pub fn filter(mut self, condition: impl Condition<E>) -> Self {
        self.request.condition(condition.into_filter());
        self
    }

    /// At most so many items in all: the first in the order of their keys. On a store without order
    /// that is refused, see [`any_order`](Self::any_order).
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

    /// Takes the first rows that come, on a store that keeps no order too: Cosmos DB.
    #[must_use]
    pub fn any_order(mut self) -> Self {
        self.request.any_order();
        self
    }

    /// What the query will ask, without asking it.
    pub fn explain(&self) -> Explain {
        let blob = lists::blob_of(&self.request);
        let (filter, fault) =
            match self.request.filter().and_then(|filter| blob.clone().map(|_| filter)) {
                Ok(filter) => (filter.to_string().replace(TOKEN_PLACEHOLDER, SOME_TOKEN), None),
                Err(error) => (String::new(), Some(error)),
            };
        let top = self.request.top(None);
        let pages =
            self.request.take.zip(top).map(|(take, top)| take.div_ceil(u64::from(top.max(1))));
        Explain {
            class: self.request.class(),
            table: self.request.rows_table().to_owned(),
            filter,
            select: self.request.selected().unwrap_or_default(),
            top,
            estimated_requests: pages.unwrap_or(1).max(1),
            reads_each: self.request.is_list(),
            blob: blob.ok().flatten(),
            fault,
        }
    }
}
