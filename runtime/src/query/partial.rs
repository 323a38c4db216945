//! Queries of partial copies, which need a projection before they can run.

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

/// A query of partial copies. [`select`](Self::select) makes it a query that can run.
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
    /// Keeps only the rows that meet a condition.
    #[must_use]
    pub fn filter(mut self, condition: impl Condition<E>) -> Self {
        self.request.condition(condition.into_filter());
        self
    }

    /// Returns at most `items` items in total.
    #[must_use]
    pub fn take(mut self, items: u64) -> Self {
        self.request.take = Some(items);
        self
    }

    /// Reads at most `rows` rows per request, 1 to 1,000.
    #[must_use]
    pub fn page_size(mut self, rows: u32) -> Self {
        self.request.page_size(rows);
        self
    }

    /// Reads the fields of a projection, all of which the copies hold.
    #[must_use]
    pub fn select<P>(self) -> Query<E, Stored<P>>
    where
        P: Projection<Entity = E>,
        PartialCopy<M>: ReadableAs<P>,
    {
        selected::<E, P>(self.request)
    }
}

/// The methods that run a query, which a partial query refuses: they exist so that the compiler
/// explains why. The bound stands on each method, where the compiler reports it, and the futures
/// are boxed so that it reports it once.
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
