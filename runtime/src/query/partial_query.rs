//! Queries of partial copies, which need a projection before they can run.

use std::{fmt, marker::PhantomData, sync::Arc};

use futures_util::{FutureExt, future::BoxFuture};

use super::{
    build::{Items, Queried, Query, QueryCondition, TypedRequest, query_decoded_as, setters},
    explain::Explain,
    request::Request,
};
use crate::{
    entity::{FullView, HoldsProjection, PartialCopy, Projection, Stored, TableEntity},
    error::Result,
    page::{Cursor, Page},
};

impl<E: TableEntity, M: 'static> Queried<E> for PartialCopy<M> {
    type Query = PartialQuery<E, M>;

    fn query(request: TypedRequest) -> Self::Query {
        PartialQuery { request: request.0.for_entity::<E>().into(), of: PhantomData }
    }
}

/// A query of partial copies. Call [`select`](Self::select) to turn it into a query that can run.
pub struct PartialQuery<E, M> {
    pub(crate) request: Arc<Request>,
    of: PhantomData<fn() -> (E, M)>,
}

impl<E, M> fmt::Debug for PartialQuery<E, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PartialQuery").field(&self.request).finish()
    }
}

impl<E: TableEntity, M: 'static> PartialQuery<E, M> {
    fn request_mut(&mut self) -> &mut Request {
        Request::unshared(&mut self.request)
    }

    setters!();

    /// Reads the fields of a projection. The copies must hold all of these fields.
    #[must_use]
    pub fn select<P>(self) -> Query<E, Stored<P>>
    where
        P: Projection<Entity = E>,
        PartialCopy<M>: HoldsProjection<P>,
    {
        query_decoded_as::<E, P>(self.request)
    }
}

impl<E: TableEntity, M> PartialQuery<E, M> {
    /// Returns what the query will send, without sending it. [`select`](Self::select) reads fewer properties.
    ///
    /// ```
    /// use entable::prelude::*;
    ///
    /// #[derive(TableEntity)]
    /// #[table(name = "Orders", partition_key = "{customer:08}", row_key = "order_{number:010}",
    ///     index(ByState, row_key = "state_{state}_{number:010}", only(total)))]
    /// struct Order { customer: u32, number: u32, state: String, total: f64 }
    ///
    /// let orders = Client::memory().table::<Order>();
    /// let explain = orders.query(Order::by_state().customer(7).state("open")).explain();
    /// assert_eq!(explain.class, CostClass::Range);
    /// ```
    pub fn explain(&self) -> Explain {
        Explain::of_request(&self.request)
    }
}

/// Methods that run a query. A partial query has them only for the compiler's explanation of why it cannot
/// run. Each method has the bound itself, because the compiler reports it there, and returns a boxed future,
/// because the compiler then reports it once.
#[doc(hidden)]
impl<E: TableEntity, M: 'static> PartialQuery<E, M> {
    /// Never compiles. It exists for the compiler's error message: a partial copy does not hold the whole entity.
    /// Call [`select`](Self::select) first.
    pub fn stream(&self) -> Items<Stored<E>>
    where
        PartialCopy<M>: FullView,
    {
        self.query_whole_entities().stream()
    }

    /// Never compiles. It exists for the compiler's error message: a partial copy does not hold the whole entity.
    /// Call [`select`](Self::select) first.
    pub fn collect(&self) -> BoxFuture<'static, Result<Vec<Stored<E>>>>
    where
        PartialCopy<M>: FullView,
    {
        let query = self.query_whole_entities();
        async move { query.collect().await }.boxed()
    }

    /// Never compiles. It exists for the compiler's error message: a partial copy does not hold the whole entity.
    /// Call [`select`](Self::select) first.
    pub fn first(&self) -> BoxFuture<'static, Result<Option<Stored<E>>>>
    where
        PartialCopy<M>: FullView,
    {
        let query = self.query_whole_entities();
        async move { query.first().await }.boxed()
    }

    /// Never compiles. It exists for the compiler's error message: a partial copy does not hold the whole entity.
    /// Call [`select`](Self::select) first.
    pub fn page(&self, cursor: Option<Cursor>) -> BoxFuture<'static, Result<Page<Stored<E>>>>
    where
        PartialCopy<M>: FullView,
    {
        let query = self.query_whole_entities();
        async move { query.page(cursor).await }.boxed()
    }

    fn query_whole_entities(&self) -> Query<E, Stored<E>> {
        query_decoded_as::<E, E>(self.request.clone())
    }
}
