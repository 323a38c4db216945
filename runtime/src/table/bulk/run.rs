//! The public interface of bulk writes: options, and one method for each kind of input.

use std::{borrow::Cow, fmt, time::Duration};

use futures_util::{Stream, StreamExt};

use super::{
    handled::HandledEntities,
    pipeline::Pipeline,
    report::{BulkReport, Progress},
    rewrite::Rewrite,
};
use crate::{
    backend::BoxFuture,
    entity::{Stored, dated::check_home_table},
    error::{BoxError, Result},
    page::{Cursor, PageLoop},
    query::build::Query,
    store::InFlight,
    table::{
        client::Client,
        job::Listener,
        writable::{BulkChange, BulkVerb, Deletable, Rewritable, Writable},
    },
};

/// The number of transactions in flight by default.
pub(crate) const CONCURRENCY: usize = 8;

/// How long a change from a slow stream waits for other changes of its partition. It is longer than the gap
/// between two network packets and too short for users to notice.
const LINGER: Duration = Duration::from_millis(200);

/// Writes many entities. Groups them by partition, splits groups by count and bytes, and keeps several
/// transactions in flight.
///
/// A bulk write is not atomic. The report lists the entities that failed, and all others are written. Changes
/// of one entity are written in input order.
///
/// A change waits until its partition has a hundred changes or the input ends. While an input stream has
/// nothing to offer, the change waits no longer than [`linger`](Self::linger).
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let staff = staff().await?;
/// let bulk = staff.bulk().concurrency(8).on_progress(|progress| println!("{}", progress.done));
/// let report = bulk.insert_all((300..400).map(|id| employee(id, "Hall"))).await?;
/// assert_eq!(report.done, 100);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Bulk {
    client: Client,
    table: Option<String>,
    concurrency: InFlight,
    linger: Duration,
    on_progress: Listener<Progress>,
    on_checkpoint: Listener<Cursor>,
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

impl Client {
    /// Starts a bulk write, which packs many writes into as few transactions as possible. It is not atomic.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let client = staff().await?.client().clone();
    /// let report = client.bulk().insert_all((1..=5).map(|id| employee(id, "Hall"))).await?;
    /// assert_eq!(report.done, 5);
    /// # Ok(())
    /// # }
    /// ```
    pub fn bulk(&self) -> Bulk {
        Bulk::new(self.clone(), None)
    }
}

impl Bulk {
    /// Creates a bulk write to `table`, or to each entity's own table if `table` is `None`.
    pub(in crate::table) fn new(client: Client, table: Option<String>) -> Self {
        Self {
            client,
            table,
            concurrency: InFlight::Default(CONCURRENCY),
            linger: LINGER,
            on_progress: Listener::silent(),
            on_checkpoint: Listener::silent(),
            start: None,
        }
    }

    /// Sets how many transactions may be in flight. The default is 8, or as many as the store
    /// welcomes if the client [adapts its rate](crate::ClientBuilder::adaptive_rate).
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let all = (1..=5).map(|id| employee(id, "Hall"));
    /// let report = staff().await?.bulk().concurrency(2).insert_all(all).await?;
    /// assert!(report.is_complete());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn concurrency(mut self, transactions: usize) -> Self {
        self.concurrency = InFlight::at_most(transactions);
        self
    }

    /// Sets how long a change waits for other changes of its partition while the input stream has nothing to
    /// offer. The default is 200 ms. With a slow stream, a longer time takes fewer requests, and
    /// [`Duration::MAX`] takes the fewest.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let bulk = staff().await?.bulk().linger(std::time::Duration::from_millis(50));
    /// let all = futures_util::stream::iter([employee(1, "Hall")]);
    /// assert_eq!(bulk.insert_stream(all).await?.done, 1);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn linger(mut self, time: Duration) -> Self {
        self.linger = time;
        self
    }

    /// Calls `report` after every transaction, and after each entity that is refused before it is sent.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let bulk = staff().await?.bulk().on_progress(|progress| assert!(progress.done <= 5));
    /// assert_eq!(bulk.insert_all((1..=5).map(|id| employee(id, "Hall"))).await?.done, 5);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn on_progress(mut self, report: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.on_progress = Listener::new(move |progress| report(*progress));
        self
    }

    /// Makes [`update_all`](Self::update_all) call `save` after every page except the last, once all entities up to
    /// that point are written or have failed. `save` receives a cursor. [`resume`](Self::resume) continues from it,
    /// even in another process.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// use std::sync::{Arc, atomic::{AtomicU32, Ordering}};
    ///
    /// let staff = staff().await?;
    /// let checkpoints = Arc::new(AtomicU32::new(0));
    /// let counted = checkpoints.clone();
    /// let bulk = staff.client().bulk().on_checkpoint(move |_| {
    ///     counted.fetch_add(1, Ordering::Relaxed);
    /// });
    /// let query = staff.query(sales()).page_size(1);
    /// let report = bulk.update_all(query, |employee| { employee.age += 1; Ok(()) }).await?;
    /// assert_eq!(report.done, 3);
    /// assert!(checkpoints.load(Ordering::Relaxed) > 0);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn on_checkpoint(mut self, save: impl Fn(&Cursor) + Send + Sync + 'static) -> Self {
        self.on_checkpoint = Listener::new(save);
        self
    }

    /// Continues an earlier [`update_all`](Self::update_all) of the same query from a checkpoint.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// use std::sync::{Arc, Mutex};
    ///
    /// let staff = staff().await?;
    /// let first = Arc::new(Mutex::new(None));
    /// let saved = first.clone();
    /// let bulk = staff.client().bulk().on_checkpoint(move |cursor| {
    ///     saved.lock().unwrap().get_or_insert(cursor.clone());
    /// });
    /// let query = || staff.query(sales()).page_size(1);
    /// bulk.update_all(query(), |employee| { employee.age += 1; Ok(()) }).await?;
    ///
    /// // Another process goes on behind the first page: two employees are left.
    /// let checkpoint = first.lock().unwrap().clone().expect("there were pages");
    /// let rest = staff.client().bulk().resume(checkpoint);
    /// let report = rest.update_all(query(), |employee| { employee.age += 1; Ok(()) }).await?;
    /// assert_eq!(report.done, 2);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn resume(mut self, checkpoint: Cursor) -> Self {
        self.start = Some(checkpoint);
        self
    }

    /// Inserts all entities.
    ///
    /// # Errors
    ///
    /// Never fails because of a single entity, whose error is in the report.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// // Number 7 exists: it is reported, and the others are written.
    /// let report = staff().await?.bulk().insert_all((5..=8).map(|id| employee(id, "Hall"))).await?;
    /// assert_eq!((report.done, report.failed.len()), (3, 1));
    /// assert!(report.failed[0].error.is_conflict());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn insert_all<I>(self, entities: I) -> Result<BulkReport>
    where
        I: IntoIterator<Item: Writable>,
    {
        self.write_all(entities, BulkVerb::Insert).await
    }

    /// Inserts the entities of a stream as they arrive. While the stream has nothing to offer, no entity waits much
    /// longer than [`linger`](Self::linger) for others of its partition.
    ///
    /// # Errors
    ///
    /// Never fails because of a single entity, whose error is in the report.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let all = futures_util::stream::iter((1..=5).map(|id| employee(id, "Hall")));
    /// assert_eq!(staff().await?.bulk().insert_stream(all).await?.done, 5);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn insert_stream<S>(self, entities: S) -> Result<BulkReport>
    where
        S: Stream<Item: Writable>,
    {
        let mut pipeline = self.pipeline();
        let mut entities = std::pin::pin!(entities);
        while let Some(entity) = pipeline.wait_for_input(entities.next(), self.linger).await {
            if let Some(sent) = self.add_entity(&mut pipeline, &entity, BulkVerb::Insert) {
                sent.await;
            }
        }
        Ok(pipeline.finish_all().await)
    }

    /// Inserts each entity or replaces the existing one.
    ///
    /// # Errors
    ///
    /// Never fails because of a single entity, whose error is in the report.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let all = (5..=8).map(|id| employee(id, "Hall"));
    /// assert_eq!(staff().await?.bulk().insert_or_replace_all(all).await?.done, 4);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn insert_or_replace_all<I>(self, entities: I) -> Result<BulkReport>
    where
        I: IntoIterator<Item: Writable>,
    {
        self.write_all(entities, BulkVerb::InsertOrReplace).await
    }

    /// Deletes entities and points. A stored entity is deleted only if its ETag is unchanged. A point is deleted
    /// whatever its ETag, and counts as deleted if it does not exist.
    ///
    /// # Errors
    ///
    /// Never fails because of a single entity, whose error is in the report.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let all = staff.query(sales()).collect().await?;
    /// assert_eq!(staff.bulk().delete_all(all).await?.done, 3);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete_all<I>(self, entities: I) -> Result<BulkReport>
    where
        I: IntoIterator<Item: Deletable>,
    {
        let mut pipeline = self.pipeline();
        for entity in entities {
            let change = entity.removal().map(|change| change.0);
            let (table, change) = match (&self.table, entity.table()) {
                (Some(named), _) => (named.clone(), change),
                (None, Ok(table)) => (table.into_owned(), change),
                // The error is in the report and nothing is written, so no table is needed.
                (None, Err(error)) => (String::new(), Err(error)),
            };
            if let Some(sent) = pipeline.add_item(table, change, entity.is_done_when_missing()) {
                sent.await;
            }
        }
        Ok(pipeline.finish_all().await)
    }

    /// Changes every entity that a query finds and writes it under the ETag that was read. If another writer changed
    /// the entity in the meantime, reads and changes it again. The query may be of entities, of a set, or of dynamic
    /// entities. If it selects a window of times over dated tables, the tables are changed one after another.
    ///
    /// Each entity is changed once, even if the change moves it to keys that the query has yet to read, or if several
    /// copies lead to it. An entity that is found again still counts for [`take`](Query::take). A run remembers the
    /// first 1,000,000 entities of a query of copies, and at most 1,000,000 others at a time that its changes moved
    /// ahead of the query. It refuses further such changes with `is_too_large`. A run that resumes from a checkpoint
    /// does not know which entities the earlier run handled. To be able to resume, query primaries by keys that the
    /// change does not modify.
    ///
    /// If another writer changes the RowKey of an entity's primary during the run, the entity may be changed twice. It
    /// may also be missed, if it takes keys that another entity had before the run moved it. In a query of copies,
    /// entities after the first 1,000,000 may be changed twice.
    ///
    /// The report lists entities that failed or could not be read. A run that resumes from a checkpoint does not
    /// retry the entities before it.
    ///
    /// # Errors
    ///
    /// Fails with the errors of the query's requests, and with `is_invalid_cursor` for a checkpoint of another
    /// query. Errors of single entities are in the report.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let report = staff.bulk().update_all(staff.query(sales()), |one| { one.age += 1; Ok(()) }).await?;
    /// assert_eq!(report.done, 3);
    /// assert_eq!(staff.get(at(7)).await?.map(|cao| cao.age), Some(31));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn update_all<Q, T>(
        self,
        query: Query<Q, Stored<T>>,
        change: impl FnMut(&mut T) -> Result<(), BoxError>,
    ) -> Result<BulkReport>
    where
        Q: 'static,
        T: Rewritable + Send + 'static,
    {
        self.rewrite_entities(query, change, |_| false).await
    }

    /// Changes every entity that a query finds. After a lost race, `is_done` receives the current entity and
    /// returns whether another writer left nothing to do.
    pub(crate) async fn rewrite_entities<Q, T>(
        self,
        query: Query<Q, Stored<T>>,
        change: impl FnMut(&mut T) -> Result<(), BoxError>,
        is_done: fn(Option<&Stored<T>>) -> bool,
    ) -> Result<BulkReport>
    where
        Q: 'static,
        T: Rewritable + Send + 'static,
    {
        let mut pipeline = self.pipeline();
        let (client, table) = (self.client.clone(), String::new());
        pipeline.handled = HandledEntities::of_query(&query.request);
        let read_as = query.request.types_to_decrypt_as();
        let mut rewrite = Rewrite { client, table, read_as, change, is_done };
        let Some(run) = query.plan(None).await? else { return Ok(pipeline.finish_all().await) };
        let mut pages = PageLoop::from_cursor(self.start.clone());
        while let Some(cursor) = pages.take_position() {
            let table = run.plan.request.table_of_page(cursor.as_ref())?;
            if table != rewrite.table {
                // Rows that lost a race are read again from the table of their page.
                pipeline.retry_lost_races(&mut rewrite).await;
                rewrite.table.clone_from(&table);
            }
            let page = pipeline.drive_transactions_while(run.page_of_results(cursor)).await?;
            for item in page.items {
                let change = match item {
                    Ok(stored) => match pipeline.was_handled(&stored, &rewrite).await {
                        Ok(true) => continue,
                        // A transaction in flight may hold the key request that this change waits for.
                        Ok(false) => {
                            pipeline.drive_transactions_while(rewrite.plan_change(stored)).await
                        }
                        Err(error) => Err(error),
                    },
                    Err(error) => Err(error),
                };
                if let Some(sent) = pipeline.add_change(table.clone(), change, false) {
                    sent.await;
                }
            }
            if let Some(next) = page.next.as_ref().filter(|_| self.on_checkpoint.has_callback()) {
                // A checkpoint promises that nothing before it is still open.
                pipeline.retry_lost_races(&mut rewrite).await;
                self.on_checkpoint.notify_callback(|| next.clone());
            }
            pages.continue_at(page.next);
        }
        pipeline.retry_lost_races(&mut rewrite).await;
        Ok(pipeline.finish_all().await)
    }

    async fn write_all<I>(self, entities: I, verb: BulkVerb) -> Result<BulkReport>
    where
        I: IntoIterator<Item: Writable>,
    {
        let mut pipeline = self.pipeline();
        for entity in entities {
            if let Some(sent) = self.add_entity(&mut pipeline, &entity, verb) {
                sent.await;
            }
        }
        Ok(pipeline.finish_all().await)
    }

    /// Adds the write of an entity. Returns what must be done before the next one.
    fn add_entity<'p>(
        &self,
        pipeline: &'p mut Pipeline,
        entity: &impl Writable,
        verb: BulkVerb,
    ) -> Option<BoxFuture<'p, ()>> {
        self.add_write(pipeline, entity.table(), entity.change(verb))
    }

    fn add_write<'p>(
        &self,
        pipeline: &'p mut Pipeline,
        home: Cow<'static, str>,
        change: Result<BulkChange>,
    ) -> Option<BoxFuture<'p, ()>> {
        let table = self.table.clone().unwrap_or_else(|| home.clone().into_owned());
        let change = check_home_table(&table, &home).and(change).map(|change| change.0);
        pipeline.add_item(table, change, false)
    }

    fn pipeline(&self) -> Pipeline {
        Pipeline::new(self.client.clone(), self.concurrency, self.on_progress.clone())
    }
}
