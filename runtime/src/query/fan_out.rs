//! Several queries at once: the fan-out over partitions.

use std::fmt;

use futures_util::{StreamExt, TryStreamExt, stream};

use super::{
    build::{Condition, Items, Query},
    explain::Explain,
};
use crate::{
    entity::{Stored, TableEntity},
    error::Result,
};

/// Queries of several paths, some of them in flight at a time.
pub struct QueryMany<E> {
    queries: Vec<Query<E, Stored<E>>>,
    concurrency: usize,
}

impl<E> fmt::Debug for QueryMany<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryMany")
            .field("queries", &self.queries)
            .field("concurrency", &self.concurrency)
            .finish()
    }
}

impl<E: TableEntity> QueryMany<E> {
    pub(crate) fn new(queries: Vec<Query<E, Stored<E>>>) -> Self {
        Self { queries, concurrency: 8 }
    }

    /// At most so many queries in flight; 8 unless told.
    #[must_use]
    pub fn concurrency(mut self, queries: usize) -> Self {
        self.concurrency = queries.max(1);
        self
    }

    /// Only the rows that meet a condition.
    #[must_use]
    pub fn filter(mut self, condition: impl Condition<E> + Clone) -> Self {
        self.queries =
            self.queries.into_iter().map(|query| query.filter(condition.clone())).collect();
        self
    }

    /// What each query will ask, in the order of the paths, without asking it.
    pub fn explain(&self) -> Vec<Explain> {
        self.queries.iter().map(Query::explain).collect()
    }

    /// The items of all queries, each query's in its order, the queries as they answer.
    pub fn stream(&self) -> Items<Stored<E>> {
        let streams: Vec<_> = self.queries.iter().map(Query::stream).collect();
        stream::iter(streams).flatten_unordered(self.concurrency).boxed()
    }

    /// All items, in the order of the paths.
    ///
    /// # Errors
    ///
    /// The first error of a request or a row.
    pub async fn collect(&self) -> Result<Vec<Stored<E>>> {
        let queries = self.queries.clone();
        let parts: Vec<Vec<Stored<E>>> = stream::iter(queries)
            .map(|query| async move { query.collect().await })
            .buffered(self.concurrency)
            .try_collect()
            .await?;
        Ok(parts.into_iter().flatten().collect())
    }
}
