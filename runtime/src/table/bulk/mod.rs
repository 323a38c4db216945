//! Bulk writes: many entities, grouped by partition into as few transactions as they fit in.

pub(crate) mod group;
pub(crate) mod rewrite;
pub(crate) mod run;

use std::{fmt, sync::Arc, time::Duration};

use futures_util::{Stream, StreamExt, stream};

pub use group::{BulkChange, BulkVerb, Deletable, Rewritable, Writable, bulk_change};
use rewrite::Rewrite;
use run::{Run, Work};

use crate::{
    entity::Stored,
    error::{BoxError, Error, Result},
    page::Cursor,
};
use crate::{query::build::Query, table::client::Client};

/// How far a bulk write is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Progress {
    /// Entities that are written.
    pub done: u64,
    /// Entities that failed.
    pub failed: u64,
    /// Requests that were made.
    pub requests: u64,
}

/// An entity that was not written.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Failure {
    /// Its place in the input, counted from 0.
    pub index: u64,
    /// Why.
    pub error: Error,
}

/// What became of a bulk write.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct BulkReport {
    /// Entities that are written.
    pub done: u64,
    /// Those that are not, in the order of the input.
    pub failed: Vec<Failure>,
    /// Requests that were made.
    pub requests: u64,
}

impl Client {
    /// Many writes, grouped into as few transactions as they fit in; not atomic as a whole.
    pub fn bulk(&self) -> Bulk {
        Bulk::new(self.clone(), None)
    }
}

impl BulkReport {
    /// Whether every entity was written.
    pub fn is_complete(&self) -> bool {
        self.failed.is_empty()
    }

    /// The report, or the first failure.
    ///
    /// # Errors
    ///
    /// The error of the first entity that was not written; its place is
    /// [`failed_index`](Error::failed_index).
    pub fn into_result(self) -> Result<Self> {
        match self.failed.first() {
            None => Ok(self),
            Some(first) => {
                let index = usize::try_from(first.index).unwrap_or(usize::MAX);
                Err(first.error.clone().at_operation(index))
            }
        }
    }
}

type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;
type OnCheckpoint = Arc<dyn Fn(&Cursor) + Send + Sync>;

/// Many writes: grouped by partition, split by count and bytes, several transactions in flight.
///
/// Not atomic as a whole: the report says what failed, and the rest is written. The rows of one
/// partition keep their order where they write the same entity.
///
/// A row waits until a hundred of its partition are there, until the input ends, or, where the
/// input is a stream that has nothing at the moment, for as long as [`linger`](Self::linger) says.
///
/// ```ignore
/// let report = client.bulk().concurrency(8).on_progress(|p| bar.set_position(p.done))
///     .insert_all(employees).await?;
/// ```
#[derive(Clone)]
pub struct Bulk {
    client: Client,
    table: Option<String>,
    concurrency: usize,
    linger: Duration,
    on_progress: Option<OnProgress>,
    on_checkpoint: Option<OnCheckpoint>,
    start: Option<Cursor>,
}

impl fmt::Debug for Bulk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bulk")
            .field("table", &self.table)
            .field("concurrency", &self.concurrency)
            .field("linger", &self.linger)
            .finish_non_exhaustive()
    }
}

/// How long a row of a slow stream waits for others of its partition: more than a stream pauses
/// between two packets of the network, less than somebody waits who looks for the row.
const LINGER: Duration = Duration::from_millis(200);

impl Bulk {
    pub(super) fn new(client: Client, table: Option<String>) -> Self {
        Self {
            client,
            table,
            concurrency: 8,
            linger: LINGER,
            on_progress: None,
            on_checkpoint: None,
            start: None,
        }
    }

    /// At most so many transactions in flight; 8 unless told.
    #[must_use]
    pub fn concurrency(mut self, transactions: usize) -> Self {
        self.concurrency = transactions.max(1);
        self
    }

    /// How long a row of a stream waits for others of its partition while the stream has nothing;
    /// 200 ms unless told. Then it is sent with those that came: a longer time makes fewer requests
    /// of a slow stream, [`Duration::MAX`] the fewest.
    #[must_use]
    pub fn linger(mut self, time: Duration) -> Self {
        self.linger = time;
        self
    }

    /// Called after every transaction, and after an entity that is refused before it is sent.
    #[must_use]
    pub fn on_progress(mut self, report: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.on_progress = Some(Arc::new(report));
        self
    }

    /// Called by [`update_all`](Self::update_all) after every page whose entities are all written or
    /// failed, with the cursor that [`resume`](Self::resume) goes on from in another process.
    #[must_use]
    pub fn on_checkpoint(mut self, save: impl Fn(&Cursor) + Send + Sync + 'static) -> Self {
        self.on_checkpoint = Some(Arc::new(save));
        self
    }

    /// Goes on where an earlier [`update_all`](Self::update_all) of the same query was.
    #[must_use]
    pub fn resume(mut self, checkpoint: Cursor) -> Self {
        self.start = Some(checkpoint);
        self
    }

    /// Creates all entities.
    ///
    /// # Errors
    ///
    /// None for a single entity: these are in the report.
    pub async fn insert_all<I>(self, entities: I) -> Result<BulkReport>
    where
        I: IntoIterator<Item: Writable>,
    {
        self.write_all(stream::iter(entities), BulkVerb::Insert).await
    }

    /// Creates the entities of a stream as they come: none waits much longer than
    /// [`linger`](Self::linger) for others of its partition.
    ///
    /// # Errors
    ///
    /// As [`insert_all`](Self::insert_all).
    pub async fn insert_stream<S>(self, entities: S) -> Result<BulkReport>
    where
        S: Stream<Item: Writable>,
    {
        self.write_all(entities, BulkVerb::Insert).await
    }

    /// Creates all entities or puts them in place of what is there.
    ///
    /// # Errors
    ///
    /// As [`insert_all`](Self::insert_all).
    pub async fn insert_or_replace_all<I>(self, entities: I) -> Result<BulkReport>
    where
        I: IntoIterator<Item: Writable>,
    {
        self.write_all(stream::iter(entities), BulkVerb::InsertOrReplace).await
    }

    /// Deletes entities (in the version that was read) or points (in any version; a missing one is
    /// a success).
    ///
    /// # Errors
    ///
    /// As [`insert_all`](Self::insert_all).
    pub async fn delete_all<I>(self, entities: I) -> Result<BulkReport>
    where
        I: IntoIterator<Item: Deletable>,
    {
        let mut run = self.run();
        for entity in entities {
            let table = self.table.clone().unwrap_or_else(|| entity.table().to_owned());
            let change = entity.removal().map(|change| change.0);
            run.add(table, change, entity.is_done_when_missing()).await;
        }
        Ok(run.finish().await)
    }

    /// Changes every entity of a query and writes the version that was read; one that another
    /// writer changed meanwhile is read and changed again. The query is one of entities, of a set,
    /// or of entities without a type.
    ///
    /// An entity that failed, or could not be read, is in the report, and a checkpoint passes it.
    ///
    /// # Errors
    ///
    /// Those of the query's requests; `is_invalid_cursor` for a checkpoint of another query. What
    /// the entities fail with is in the report.
    pub async fn update_all<Q, T>(
        self,
        query: Query<Q, Stored<T>>,
        change: impl FnMut(&mut T) -> Result<(), BoxError>,
    ) -> Result<BulkReport>
    where
        Q: 'static,
        T: Rewritable + Send + 'static,
    {
        self.rewrite_all(query, change, |_| false).await
    }

    /// The same, where another writer may have done what there is to do.
    pub(crate) async fn rewrite_all<Q, T>(
        self,
        query: Query<Q, Stored<T>>,
        change: impl FnMut(&mut T) -> Result<(), BoxError>,
        is_done: fn(Option<&Stored<T>>) -> bool,
    ) -> Result<BulkReport>
    where
        Q: 'static,
        T: Rewritable + Send + 'static,
    {
        let mut run = self.run();
        let table = query.table_name().to_owned();
        let client = self.client.clone();
        let mut rewrite =
            Rewrite { client, table: table.clone(), reading: query.reading(), change, is_done };
        let mut cursor = self.start.clone();
        loop {
            let page = run.beside(query.fetch(cursor)).await?;
            for item in page.items {
                let replacement = item.and_then(|stored| rewrite.replacement(stored));
                run.add(table.clone(), replacement, false).await;
            }
            if let (Some(save), Some(next)) = (&self.on_checkpoint, &page.next) {
                run.retry_lost_races(&mut rewrite).await;
                save(next);
            }
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        run.retry_lost_races(&mut rewrite).await;
        Ok(run.finish().await)
    }

    async fn write_all<S>(self, entities: S, verb: BulkVerb) -> Result<BulkReport>
    where
        S: Stream<Item: Writable>,
    {
        let mut run = self.run();
        let mut entities = std::pin::pin!(entities);
        while let Some(entity) = run.next(entities.next(), self.linger).await {
            let table = self.table.clone().unwrap_or_else(|| entity.table().to_owned());
            let change = entity.change(verb).map(|change| change.0);
            run.add(table, change, false).await;
        }
        Ok(run.finish().await)
    }

    fn run(&self) -> Run {
        Run::new(Work {
            client: self.client.clone(),
            concurrency: self.concurrency,
            on_progress: self.on_progress.clone(),
        })
    }
}
