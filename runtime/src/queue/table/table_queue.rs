//! A queue whose messages are rows of a table: on every backend.
//!
//! When a message is due stands in its RowKey, so that a receiver reads what is due and never what
//! is hidden. To take a message is to move its row, in one transaction, so that one of several
//! wins. The steps are written down in `docs/queues.md`.

use std::{fmt, sync::Arc, time::Duration};

use super::guard::QueueGuard;
use super::letter::{Found, Letter, Place, all_poison, check_body};
use crate::{
    backend::{Backend, BoxFuture, Rows, Scan, TableRequest},
    batch::{Batch, Operation, Written},
    clock::SystemClock,
    error::Result,
    filter::Filter,
    page::Continuation,
    queue::{
        Poison, Received, ServerClock,
        port::{Queue, QueueCapabilities, check_name, check_time},
        server_clock::{after, ticks},
    },
    random::RandomSource,
};

/// The table of all queues.
pub(crate) const TABLE: &str = "EntableQueues";
/// Messages that one request takes: each is two operations of a transaction.
const RECEIVE: usize = 32;
/// Shards that a queue may have.
const SHARDS: u32 = 100;
/// How often a change whose answer was lost is looked into.
pub(crate) const ATTEMPTS: u32 = 4;

/// A queue in the table `EntableQueues` of a backend.
///
/// ```
/// use std::time::Duration;
/// use entable::{Queue, backend::Memory, queue::TableQueue};
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let queue = TableQueue::new(Memory::new(), "letters").shards(4);
/// queue.send("hello", Duration::ZERO).await?;
/// assert_eq!(queue.receive(32, Duration::from_secs(30)).await?.len(), 1);
/// # Ok::<(), entable::Error>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct TableQueue {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) name: String,
    shards: u32,
    pub(crate) clock: Arc<ServerClock>,
    pub(crate) random: Arc<RandomSource>,
    without: Option<QueueGuard>,
}

impl TableQueue {
    /// The queue of that name. Nothing is sent yet.
    pub fn new(backend: impl Backend, name: impl Into<String>) -> Self {
        let clock = Arc::new(ServerClock::new(Arc::new(SystemClock)));
        Self::of(Arc::new(backend), name.into(), clock, RandomSource::default())
    }

    pub(crate) fn of(
        backend: Arc<dyn Backend>,
        name: String,
        clock: Arc<ServerClock>,
        random: RandomSource,
    ) -> Self {
        Self { backend, name, shards: 1, clock, random: Arc::new(random), without: None }
    }

    /// Spreads the messages over so many partitions, at most 100: 1 unless told. One takes some 500
    /// messages a second, and each more costs receivers a request where there are few messages.
    ///
    /// Receivers look at as many as they were told: raise it there first, and lower it in senders
    /// first.
    #[must_use]
    pub fn shards(self, shards: u32) -> Self {
        Self { shards: shards.clamp(1, SHARDS), ..self }
    }

    /// Leaves a guard out, to show what goes wrong then. For tests.
    #[cfg(feature = "conformance")]
    #[doc(hidden)]
    #[must_use]
    pub fn without_guard(self, guard: QueueGuard) -> Self {
        Self { without: Some(guard), ..self }
    }

    pub(crate) fn holds(&self, guard: QueueGuard) -> bool {
        self.without != Some(guard)
    }

    /// The shards, in an order that is another one each time.
    pub(crate) fn all_shards(&self) -> impl Iterator<Item = String> {
        let shards = u64::from(self.shards);
        let first = self.random.number() % shards;
        (0..shards).map(move |at| {
            let shard = (first + at) % shards;
            Letter::shard(&self.name, u32::try_from(shard).unwrap_or(0))
        })
    }

    pub(crate) async fn scan(
        &self,
        filter: &Filter,
        top: usize,
        from: Option<&Continuation>,
    ) -> Result<Rows> {
        let asked = self.clock.local();
        let top = u32::try_from(top).unwrap_or(u32::MAX).clamp(1, crate::limits::PAGE_ROWS);
        let scan = Scan { table: TABLE, filter, select: None, top: Some(top), from };
        let page = match self.backend.scan(scan).await {
            Err(error) if error.is_table_missing() => return Ok(Rows::default()),
            page => page.map_err(|error| error.in_table(TABLE))?,
        };
        match page.date {
            Some(date) => self.clock.set(date, asked),
            None => self.clock.trust(),
        }
        Ok(page)
    }

    pub(crate) async fn apply(&self, operations: Vec<Operation>) -> Result<Vec<Written>> {
        let mut batch = Batch::new(TABLE);
        for operation in operations {
            batch.push(operation)?;
        }
        self.backend.apply(&batch).await.map_err(|error| error.in_table(TABLE))
    }

    /// Asks the store for its time before something is put where that says.
    pub(crate) async fn set_clock(&self) -> Result<()> {
        if self.clock.is_set() {
            return Ok(());
        }
        let shard = Letter::shard(&self.name, 0);
        let filter = crate::access::Keys::point(shard, "q_").filter();
        self.scan(&filter, 1, None).await?;
        if self.clock.is_set() {
            return Ok(());
        }
        // There was no table to ask.
        self.create().await?;
        self.scan(&filter, 1, None).await.map(drop)
    }

    /// Adds a message; a lost answer is asked for again, and a row that is there then is the message's.
    async fn put(&self, letter: &Letter, place: Place<'_>) -> Result<()> {
        let operation = Operation::insert(letter.queued(place)?);
        let mut attempt = 0;
        loop {
            attempt += 1;
            match self.apply(vec![operation.clone()]).await {
                Ok(_) => return Ok(()),
                Err(error) if error.is_table_missing() && attempt < ATTEMPTS => {
                    self.create().await?;
                }
                // The id is this message's alone.
                Err(error) if error.row_exists() => return Ok(()),
                Err(error) if error.is_answer_lost() && attempt < ATTEMPTS => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn create(&self) -> Result<()> {
        match self.backend.tables(TableRequest::Create(TABLE)).await {
            Err(error) if !error.table_exists() => Err(error.in_table(TABLE)),
            _ => Ok(()),
        }
    }

    async fn add(&self, body: &str, delay: Duration) -> Result<String> {
        check_name(&self.name)?;
        check_body(body)?;
        check_time("a delay", Duration::ZERO, delay)?;
        self.set_clock().await?;
        let id = self.random.id();
        let shard = self.all_shards().next().unwrap_or_default();
        let now = self.clock.now();
        let letter =
            Letter { partition_key: shard, id, body: body.to_owned(), count: 0, sent: now };
        let place = Place { due: after(now, delay), hidden: ticks(delay), holder: "" };
        self.put(&letter, place).await?;
        Ok(letter.id)
    }

    async fn list_poison(&self, most: usize) -> Result<Vec<Poison>> {
        check_name(&self.name)?;
        let mut all = Vec::new();
        for shard in (0..self.shards).map(|shard| Letter::shard(&self.name, shard)) {
            let (filter, mut from) = (all_poison(&shard), None);
            while all.len() < most {
                let page = self.scan(&filter, most - all.len(), from.as_ref()).await?;
                for row in &page.rows {
                    let Some(found) = Found::of(row)? else { continue };
                    let place = found.receipt();
                    let Letter { id, body, count, .. } = found.letter;
                    all.push(Poison::new(id, body, count, found.reason, place));
                }
                match page.next {
                    Some(next) => from = Some(next),
                    None => break,
                }
            }
        }
        Ok(all)
    }
}

impl fmt::Debug for TableQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableQueue")
            .field("name", &self.name)
            .field("shards", &self.shards)
            .finish_non_exhaustive()
    }
}

#[deny(clippy::missing_trait_methods)]
impl Queue for TableQueue {
    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> QueueCapabilities {
        QueueCapabilities::new("table", RECEIVE).with_reasons()
    }

    fn send<'a>(&'a self, body: &'a str, delay: Duration) -> BoxFuture<'a, Result<String>> {
        Box::pin(self.add(body, delay))
    }

    fn receive(&self, most: usize, visibility: Duration) -> BoxFuture<'_, Result<Vec<Received>>> {
        Box::pin(self.take_due(most.min(RECEIVE), visibility))
    }

    fn extend<'a>(
        &'a self,
        message: &'a mut Received,
        visibility: Duration,
        body: Option<&'a str>,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.hide(message, visibility, body))
    }

    fn delete<'a>(&'a self, message: &'a Received) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.remove(message))
    }

    fn poison<'a>(&'a self, message: &'a Received, reason: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.put_aside(message, reason))
    }

    fn poisoned(&self, most: usize) -> BoxFuture<'_, Result<Vec<Poison>>> {
        Box::pin(self.list_poison(most))
    }

    fn requeue<'a>(&'a self, poison: &'a Poison) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.put_back(poison))
    }
}
