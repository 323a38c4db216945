//! Writes many rows of a table: grouped into transactions, several at once, slower while the store
//! throttles.

use std::{future::Future, pin::Pin, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};

use super::digest::RowsDigest;
use crate::{
    batch::{Batch, Operation, Verb},
    error::{Error, Result},
    limits::BATCH_OPERATIONS,
    row::Row,
    store::Store,
    timers,
};

/// Transactions that are sent at once, unless the caller says otherwise.
pub(crate) const CONCURRENCY: usize = 16;
/// How often a transaction is sent while the store refuses it for a moment.
const ATTEMPTS: u32 = 6;
/// The wait before the second attempt; doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(50);

/// The longest wait that a store may ask for. It equals the time that [`RetryPolicy::new`] retries for.
///
/// [`RetryPolicy::new`]: crate::backend::layer::RetryPolicy::new
const LONGEST_ASKED_WAIT: Duration = Duration::from_secs(120);

/// A write, and the line of a file that asks for it.
pub(crate) struct RowWrite {
    pub(crate) operation: Operation,
    /// The line, from 1; 0 for a row that comes from no file.
    pub(crate) line: u64,
    /// The text of the line, if the lines of refused rows are set aside.
    pub(crate) text: Option<Vec<u8>>,
}

impl RowWrite {
    fn row(&self) -> &Row {
        self.operation.row()
    }
}

/// The outcome of one group.
#[derive(Default)]
struct GroupOutcome {
    partition_key: String,
    written: RowsDigest,
    deleted: u64,
    refused: Vec<(RowWrite, Error)>,
    failure: Option<(u64, Error)>,
    requests: u64,
    is_throttled: bool,
}

impl GroupOutcome {
    /// Counts a write that was carried out. A row that cannot be counted is refused.
    fn count_write(&mut self, write: RowWrite) {
        if write.operation.verb() == Verb::Delete {
            self.deleted += 1;
        } else if let Err(error) = self.written.add(write.row()) {
            self.refused.push((write, error));
        }
    }
}

/// Writes rows in groups of up to 100 rows in one partition. Rows with the same key are written in the order
/// of arrival.
pub(crate) struct RowWriter {
    store: Store,
    table: String,
    group: Vec<RowWrite>,
    group_bytes: usize,
    running: FuturesUnordered<Pin<Box<dyn Future<Output = GroupOutcome> + Send>>>,
    running_partitions: Vec<String>,
    /// The number of groups that may run now, and at most.
    limit: usize,
    most: usize,
    highest: Vec<u8>,
    pub(crate) written: RowsDigest,
    pub(crate) deleted: u64,
    pub(crate) requests: u64,
    /// Writes that the store refused for good, for the caller to take.
    pub(crate) refused: Vec<(RowWrite, Error)>,
    /// The first line that was not written because of a failure of the store, and the failure.
    failure: Option<(u64, Error)>,
}

impl RowWriter {
    pub(crate) fn new(store: &Store, table: &str, concurrency: usize) -> Self {
        // With 0, the first group would wait for ever.
        let most = concurrency.max(1);
        Self {
            store: store.clone(),
            table: table.to_owned(),
            group: Vec::new(),
            group_bytes: 0,
            running: FuturesUnordered::new(),
            running_partitions: Vec::new(),
            limit: most,
            most,
            highest: Vec::new(),
            written: RowsDigest::default(),
            deleted: 0,
            requests: 0,
            refused: Vec::new(),
            failure: None,
        }
    }

    /// Adds a write, and sends the group that it completes. Fails once the store has failed.
    ///
    /// # Errors
    ///
    /// The failure of the store, after all groups that were sent have ended.
    pub(crate) async fn add_write_to_group(&mut self, write: RowWrite) -> Result<(), (u64, Error)> {
        let bytes = match write.operation.request_bytes() {
            Ok(bytes) => bytes,
            Err(error) => {
                self.refused.push((write, error));
                return Ok(());
            }
        };
        let same_partition = self
            .group
            .first()
            .is_some_and(|first| first.row().partition_key() == write.row().partition_key());
        let key = write.row().sort_key();
        let is_ascending = key > self.highest;
        let has_room = same_partition
            && self.group.len() < BATCH_OPERATIONS
            && self.group_bytes + bytes < GROUP_BYTES;
        // If the key is not above all earlier ones, an unwritten group may hold it. Wait for the partition's
        // groups, which keeps the rows of one key in order.
        if !has_room || !is_ascending {
            self.send_group().await?;
        }
        if is_ascending {
            self.highest = key;
        } else {
            let partition_key = write.row().partition_key().to_owned();
            while self.running_partitions.contains(&partition_key) {
                self.end_one_group().await?;
            }
        }
        self.group_bytes += bytes;
        self.group.push(write);
        Ok(())
    }

    /// Sends the groups that are not full yet, and waits for all groups.
    ///
    /// # Errors
    ///
    /// The failure of the store, and the first line that was not written because of it.
    pub(crate) async fn finish_groups(&mut self) -> Result<(), (u64, Error)> {
        self.send_group().await?;
        while !self.running.is_empty() {
            self.end_one_group().await?;
        }
        Ok(())
    }

    async fn send_group(&mut self) -> Result<(), (u64, Error)> {
        if self.group.is_empty() {
            return Ok(());
        }
        while self.running.len() >= self.limit {
            self.end_one_group().await?;
        }
        let group = std::mem::take(&mut self.group);
        self.group_bytes = 0;
        let partition_key = group.first().map(|first| first.row().partition_key().to_owned());
        self.running_partitions.extend(partition_key);
        let (store, table) = (self.store.clone(), self.table.clone());
        // Not spawned as tasks: the embedded store commits together what arrives together.
        self.running.push(Box::pin(write_group(store, table, group)));
        Ok(())
    }

    /// Waits until one group has ended. After a failure, waits for all groups and returns it.
    async fn end_one_group(&mut self) -> Result<(), (u64, Error)> {
        while let Some(outcome) = self.running.next().await {
            let ended =
                self.running_partitions.iter().position(|key| *key == outcome.partition_key);
            if let Some(ended) = ended {
                self.running_partitions.swap_remove(ended);
            }
            self.written.add_all(&outcome.written);
            self.deleted += outcome.deleted;
            self.requests += outcome.requests;
            self.refused.extend(outcome.refused);
            self.limit = if outcome.is_throttled {
                (self.limit / 2).max(1)
            } else {
                (self.limit + 1).min(self.most)
            };
            if let Some((line, error)) = outcome.failure
                && self.failure.as_ref().is_none_or(|(first, _)| line < *first)
            {
                self.failure = Some((line, error));
            }
            if self.failure.is_none() {
                return Ok(());
            }
        }
        self.failure.take().map_or(Ok(()), Err)
    }
}

/// Bytes of a group: a request has less than 4 MiB, with the envelope.
const GROUP_BYTES: usize = 3 * 1024 * 1024;

/// Writes a group, again without the writes that the store refuses.
async fn write_group(store: Store, table: String, mut group: Vec<RowWrite>) -> GroupOutcome {
    let mut outcome = GroupOutcome::default();
    if let Some(first) = group.first() {
        outcome.partition_key = first.row().partition_key().to_owned();
    }
    // An insert that is sent again after a lost answer would meet its own row.
    let is_repeatable = group.iter().all(|write| write.operation.verb() != Verb::Insert);
    let mut attempt = 0;
    // Whether an earlier attempt may have been carried out: its answer was lost, or it was refused as "too busy",
    // which may be the answer of a proxy.
    let mut is_in_doubt = false;
    while let Some(first) = group.first() {
        let line = first.line;
        let error = match send_group(&store, &table, &group, &mut outcome.requests).await {
            Ok(()) => {
                group.drain(..).for_each(|write| outcome.count_write(write));
                return outcome;
            }
            Err(error) => error,
        };
        outcome.is_throttled |= error.is_throttled();
        is_in_doubt |= error.is_throttled() || error.is_answer_lost();
        let asked = error.retry_after().unwrap_or_default();
        if attempt + 1 < ATTEMPTS && asked <= LONGEST_ASKED_WAIT && may_pass(&error, is_repeatable)
        {
            // The asked wait may be 0, which must not leave a busy store without any pause.
            timers::sleep(asked + FIRST_WAIT * (1 << attempt)).await;
            attempt += 1;
        } else if error.refuses_one_row() {
            // A single write has no position. One beyond the group cannot come from the service.
            let refused = error.failed_index().unwrap_or(0).min(group.len() - 1);
            let write = group.remove(refused);
            let is_done = match write.operation.verb() {
                _ if !is_in_doubt => Ok(false),
                // A missing row is what the delete wanted, whether the earlier attempt or another writer deleted it. If
                // another writer changed or reinserted the row, its ETag differs: the deletion is refused and the row
                // stays.
                Verb::Delete => Ok(error.is_row_missing()),
                _ if error.row_exists() => {
                    is_stored(&store, &table, write.row(), &mut outcome.requests).await
                }
                _ => Ok(false),
            };
            match is_done {
                Ok(true) => outcome.count_write(write),
                Ok(false) => outcome.refused.push((write, error)),
                Err(error) if error.refuses_one_row() => outcome.refused.push((write, error)),
                Err(error) => {
                    outcome.failure = Some((write.line.min(line), error));
                    return outcome;
                }
            }
        } else {
            outcome.failure = Some((line, error));
            return outcome;
        }
    }
    outcome
}

/// Returns whether the store has the row with the properties that were to be written.
async fn is_stored(store: &Store, table: &str, row: &Row, requests: &mut u64) -> Result<bool> {
    *requests += 1;
    let found =
        store.read_row(store.names().row_at(table, row.partition_key(), row.row_key())).await?;
    Ok(found.is_some_and(|found| row.has_same_content(&found)))
}

/// Sends the group as one request.
async fn send_group(
    store: &Store,
    table: &str,
    group: &[RowWrite],
    requests: &mut u64,
) -> Result<()> {
    let mut batch = Batch::new(table);
    for write in group {
        batch.push(write.operation.clone())?;
    }
    *requests += 1;
    store.apply(&batch).await.map(drop)
}

/// Returns whether a request that failed may succeed if it is sent again a moment later. After any
/// failure but "too busy", a request is sent again only if `is_repeatable`: none of its writes is an
/// insert.
fn may_pass(error: &Error, is_repeatable: bool) -> bool {
    // The group may have been written: only a write that may be repeated is.
    error.is_throttled() || (is_repeatable && error.is_answer_lost())
}
