//! The queue itself: its table, its shards, and sending.

use std::{fmt, sync::Arc, time::Duration};

use super::message_row::{
    StoredMessageRow, TableQueueMessage, Visibility, check_body, poison_filter,
};
use crate::{
    backend::{Backend, Rows, ScanRequest, TableRequest},
    batch::{Batch, Operation, Written},
    clock::SystemClock,
    error::Result,
    filter::Filter,
    guard::ActiveGuards,
    limits::saturating_u32,
    page::{Continuation, PageLoop},
    queue::{Poison, check_duration, check_name},
    random::RandomSource,
    server_clock::{ServerClock, duration_ticks, later_time},
};

/// The name of the table that holds all queues.
pub(crate) const TABLE: &str = "EntableQueues";
/// The most messages that one call receives. Each takes two operations of a transaction.
pub(super) const MAX_RECEIVED: usize = 32;
/// The most shards of a queue.
const MAX_SHARDS: u32 = 100;
/// How often a change is sent at most, if its table is missing or its answer was lost.
pub(crate) const MAX_ATTEMPTS: u32 = 4;

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
    pub(crate) guards: ActiveGuards,
}

impl TableQueue {
    /// Names a queue, without a request. The first message creates the table.
    pub fn new(backend: impl Backend, name: impl Into<String>) -> Self {
        let clock = Arc::new(ServerClock::new(Arc::new(SystemClock)));
        let random = RandomSource::default();
        Self::new_with_clock(Arc::new(backend), name.into(), clock, random, ActiveGuards::default())
    }

    /// Names a queue that takes the time from `clock` and random numbers from `random`.
    pub(crate) fn new_with_clock(
        backend: Arc<dyn Backend>,
        name: String,
        clock: Arc<ServerClock>,
        random: RandomSource,
        guards: ActiveGuards,
    ) -> Self {
        Self { backend, name, shards: 1, clock, random: Arc::new(random), guards }
    }

    /// Sets the number of shards, the partitions that hold the messages: 1 by default. A number outside 1 to
    /// 100 becomes the nearest of the two. A shard takes about 500 messages per second. While messages are
    /// few, each shard costs one more request per receive.
    ///
    /// Receivers only read the shards that they know: raise the number in receivers first, and lower
    /// it in senders first.
    #[must_use]
    pub fn shards(self, shards: u32) -> Self {
        Self { shards: shards.clamp(1, MAX_SHARDS), ..self }
    }

    /// Returns the PartitionKeys of all shards, starting at a random one to spread receivers and senders.
    pub(crate) fn shards_from_random_start(&self) -> impl Iterator<Item = String> {
        let shards = u64::from(self.shards);
        let first = self.random.random_number() % shards;
        (0..shards).map(move |at| {
            let shard = (first + at) % shards;
            TableQueueMessage::shard_key(&self.name, u32::try_from(shard).unwrap_or(0))
        })
    }

    /// Reads a page of the queue's table with the rows that match `filter`, at most `top`. Corrects the
    /// queue's clock by the date of the answer. Returns no rows if the table does not exist.
    pub(crate) async fn scan_page(
        &self,
        filter: &Filter,
        top: usize,
        from: Option<&Continuation>,
    ) -> Result<Rows> {
        // Taken before the request, since the answer's date lies between then and now.
        let sent = self.clock.local_ticks();
        let top = saturating_u32(top).clamp(1, crate::limits::PAGE_ROWS);
        let scan = ScanRequest { table: TABLE, filter, select: None, top: Some(top), from };
        let page = match self.backend.scan(scan).await {
            Err(error) if error.is_table_missing() => return Ok(Rows::default()),
            page => page.map_err(|error| error.in_table(TABLE))?,
        };
        match page.date {
            Some(date) => self.clock.correct_by_date(date, sent),
            None => self.clock.accept_local_time(),
        }
        Ok(page)
    }

    /// Sends operations as one transaction and returns their results. Fails with the backend's error, also
    /// for a missing table.
    pub(crate) async fn send_transaction(
        &self,
        operations: Vec<Operation>,
    ) -> Result<Vec<Written>> {
        let mut batch = Batch::new(TABLE);
        for operation in operations {
            batch.push(operation)?;
        }
        self.backend.apply(&batch).await.map_err(|error| error.in_table(TABLE))
    }

    /// Reads the store's time, unless an earlier answer has given it. Due times are computed from the store's
    /// time.
    pub(crate) async fn ensure_clock(&self) -> Result<()> {
        if self.clock.is_known() {
            return Ok(());
        }
        let shard = TableQueueMessage::shard_key(&self.name, 0);
        let filter = crate::access::Keys::point(shard, "q_").filter();
        self.scan_page(&filter, 1, None).await?;
        if self.clock.is_known() {
            return Ok(());
        }
        // The answer had no date because the table does not exist.
        self.create_table().await?;
        self.scan_page(&filter, 1, None).await.map(drop)
    }

    /// Inserts the row of a new message, and repeats that after a lost answer.
    async fn insert_message(
        &self,
        message: &TableQueueMessage,
        visibility: Visibility<'_>,
    ) -> Result<()> {
        let operation = Operation::insert(message.queued_row(visibility)?);
        let mut attempt = 0;
        loop {
            attempt += 1;
            match self.send_transaction(vec![operation.clone()]).await {
                Ok(_) => return Ok(()),
                Err(error) if error.is_table_missing() && attempt < MAX_ATTEMPTS => {
                    self.create_table().await?;
                }
                // The RowKey contains the message's random id, so the row is from an earlier attempt.
                Err(error) if error.row_exists() => return Ok(()),
                Err(error) if error.is_answer_lost() && attempt < MAX_ATTEMPTS => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Creates the table, unless it exists.
    async fn create_table(&self) -> Result<()> {
        match self.backend.tables(TableRequest::Create(TABLE)).await {
            Err(error) if !error.table_exists() => Err(error.in_table(TABLE)),
            _ => Ok(()),
        }
    }

    /// Adds a message that becomes visible after `delay`, and returns its id. If an answer is lost, repeats
    /// the insertion under the same key, which adds the message only once.
    pub(super) async fn send_message(&self, body: &str, delay: Duration) -> Result<String> {
        check_name(&self.name)?;
        check_body(body)?;
        check_duration("a delay", Duration::ZERO, delay)?;
        // The due time is part of the RowKey: a wrong clock would hide the message.
        self.ensure_clock().await?;
        let id = self.random.random_id();
        // A random shard spreads the load of senders.
        let shard = self.shards_from_random_start().next().unwrap_or_default();
        let now = self.clock.now();
        let message = TableQueueMessage {
            partition_key: shard,
            id,
            body: body.to_owned(),
            dequeue_count: 0,
            sent: now,
        };
        let due = later_time(now, delay);
        let visibility = Visibility { due, hidden_ticks: duration_ticks(delay), holder: "" };
        self.insert_message(&message, visibility).await?;
        Ok(message.id)
    }

    /// Returns at most `most` poison messages of all shards together, shard by shard.
    pub(super) async fn poison_messages(&self, most: usize) -> Result<Vec<Poison>> {
        check_name(&self.name)?;
        let mut all = Vec::new();
        for shard in (0..self.shards).map(|shard| TableQueueMessage::shard_key(&self.name, shard)) {
            let (filter, mut pages) = (poison_filter(&shard), PageLoop::from_start());
            while all.len() < most
                && let Some(from) = pages.take_position()
            {
                let page = self.scan_page(&filter, most - all.len(), from.as_ref()).await?;
                for row in &page.rows {
                    let row = row.as_ref().map_err(|error| error.clone().in_table(TABLE))?;
                    let Some(found) = StoredMessageRow::parse(row)? else { continue };
                    let place = found.pop_receipt();
                    let TableQueueMessage { id, body, dequeue_count, .. } = found.message;
                    all.push(Poison::new(id, body, dequeue_count, found.reason, place));
                }
                pages.continue_at(page.next);
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
