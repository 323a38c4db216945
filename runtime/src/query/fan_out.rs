//! Runs queries of several paths concurrently.

use std::fmt;

use futures_util::{StreamExt, TryStreamExt, stream};

use super::{
    build::{Items, Query, QueryCondition},
    explain::Explain,
};
use crate::{
    entity::{Stored, TableEntity},
    error::Result,
    store::{InFlight, Load},
};

/// Queries of several paths. [`stream`](Self::stream) and [`collect`](Self::collect) run at most
/// [`concurrency`](Self::concurrency) queries at the same time, 8 by default. `stream` interleaves their
/// items. `collect` returns them in the order of the paths.
pub struct QueryMany<E> {
    queries: Vec<Query<E, Stored<E>>>,
    concurrency: InFlight,
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
        Self { queries, concurrency: InFlight::Default(8) }
    }

    /// Returns the query of each path, in the order of the paths.
    pub(crate) fn into_queries(self) -> Vec<Query<E, Stored<E>>> {
        self.queries
    }

    /// Begins a load on the store of the queries. Returns `None` if there are none.
    fn begin_load(&self) -> Option<Load> {
        self.queries.first().map(|query| query.request.store.begin_load(self.concurrency))
    }

    /// Sets how many queries run concurrently. The default is 8, or as many as the store
    /// welcomes if the client [adapts its rate](crate::ClientBuilder::adaptive_rate).
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let paths = ["Sales", "Marketing"].map(|name| Employee::primary().department(name));
    /// assert_eq!(staff().await?.query_many(paths).concurrency(2).collect().await?.len(), 3);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn concurrency(mut self, queries: usize) -> Self {
        self.concurrency = InFlight::at_most(queries);
        self
    }

    /// Keeps only the rows that meet a condition.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let found = staff().await?.query_many([sales()]).filter(Employee::AGE.gt(30)).collect().await?;
    /// assert!(found.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn filter(mut self, condition: impl QueryCondition<E> + Clone) -> Self {
        self.queries =
            self.queries.into_iter().map(|query| query.filter(condition.clone())).collect();
        self
    }

    /// Returns what each query will send, in the order of the paths. Sends nothing.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// assert_eq!(staff().await?.query_many([sales(), sales()]).explain().len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn explain(&self) -> Vec<Explain> {
        self.queries.iter().map(Query::explain).collect()
    }

    /// Returns the items of all queries as a stream. Items of one query keep their order, and the queries are
    /// interleaved as their answers arrive.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let found = staff().await?.query_many([sales()]).stream();
    /// assert_eq!(found.try_collect::<Vec<_>>().await?.len(), 3);
    /// # Ok(())
    /// # }
    /// ```
    pub fn stream(&self) -> Items<Stored<E>> {
        let Some(load) = self.begin_load() else { return stream::empty().boxed() };
        let streams: Vec<_> = self.queries.iter().map(Query::stream).collect();
        load.merge_streams(streams.into_iter()).boxed()
    }

    /// Reads all items, in the order of the paths.
    ///
    /// # Errors
    ///
    /// Returns the first error of a request or a row.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// assert_eq!(staff().await?.query_many([sales()]).collect().await?.len(), 3);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn collect(&self) -> Result<Vec<Stored<E>>> {
        let Some(load) = self.begin_load() else { return Ok(Vec::new()) };
        let queries = self.queries.clone().into_iter();
        let found = queries.map(|query| async move { query.collect().await });
        let parts: Vec<Vec<Stored<E>>> = load.run_in_order(found).try_collect().await?;
        Ok(parts.into_iter().flatten().collect())
    }
}
