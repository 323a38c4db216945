//! Queries of partial copies: a projection first.

use std::{fmt, marker::PhantomData};

use futures_util::{FutureExt, future::BoxFuture};

use super::{
    build::{Condition, Items, Queried, Query, TypedRequest, selected},
    request::Request,
};
use crate::{
    entity::{FullView, PartialCopy, Projection, ReadableAs, Stored, TableEntity},
    error::Result,
    page::{Cursor, Page},
};

impl<E: TableEntity, M: 'static> Queried<E> for PartialCopy<M> {
    type Query = PartialQuery<E, M>;

    fn query(request: TypedRequest) -> Self::Query {
        PartialQuery { request: request.0.typed(E::SCHEMA), of: PhantomData }
    }
}

/// A query of partial copies: it needs a projection of the fields that they hold.
pub struct PartialQuery<E, M> {
    pub(crate) request: Request,
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

/// The finishers of a query, which a partial one does not have: they are here to say so. The bound
/// stands at each, where the compiler gives its reason, and futures are boxed so that it gives it
/// once.
#[doc(hidden)]
impl<E: TableEntity, M: 'static> PartialQuery<E, M> {
    pub fn stream(&self) -> Items<Stored<E>>
    where
        PartialCopy<M>: FullView,
    {
        self.whole().stream()
    }

    pub fn collect(&self) -> BoxFuture<'static, Result<Vec<Stored<E>>>>
    where
        PartialCopy<M>: FullView,
    {
        let query = self.whole();
        async move { query.collect().await }.boxed()
    }

    pub fn first(&self) -> BoxFuture<'static, Result<Option<Stored<E>>>>
    where
        PartialCopy<M>: FullView,
    {
        let query = self.whole();
        async move { query.first().await }.boxed()
    }

    pub fn page(&self, cursor: Option<Cursor>) -> BoxFuture<'static, Result<Page<Stored<E>>>>
    where
        PartialCopy<M>: FullView,
    {
        let query = self.whole();
        async move { query.page(cursor).await }.boxed()
    }

    fn whole(&self) -> Query<E, Stored<E>> {
        selected::<E, E>(self.request.clone())
    }
}
