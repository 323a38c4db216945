//! Receiving: finds the rows of visible messages, and takes the messages by replacing the rows.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    message_row::{
        PopReceipt, StoredMessageRow, TableQueueMessage, Visibility, due_filter,
        is_written_by_request,
    },
    table_queue::{TABLE, TableQueue},
};
use crate::{
    backend::ReadRequest,
    batch::{Batch, Operation, Written},
    edm::Ticks,
    error::{Error, Result},
    guard::Guard,
    queue::{Received, check_duration, check_name},
    row::ETag,
    server_clock::{duration_ticks, later_time},
};

/// The most pages that one search reads, not counting pages without messages for this program. A search
/// needs more than one page only because of such rows, or if a sender with a wrong clock wrote rows that are
/// due by their RowKey but still hidden.
const MAX_PAGES: u32 = 8;

/// The number of rows to request while skipping pages; the service returns fewer.
const FULL_PAGE: usize = usize::MAX;

/// A search is repeated if an answer advances the clock by more than this many ticks.
const RELEVANT_CORRECTION: i64 = 2 * Ticks::PER_SECOND;

impl TableQueue {
    /// Receives at most `most` visible messages, shard by shard.
    pub(crate) async fn receive_messages(
        &self,
        most: usize,
        visibility: Duration,
    ) -> Result<Vec<Received>> {
        check_name(&self.name)?;
        check_duration("a visibility timeout", Duration::from_secs(1), visibility)?;
        let (mut received, mut damaged) = (Vec::new(), None);
        for shard in self.shards_from_random_start() {
            if received.len() >= most {
                break;
            }
            match self.receive_from_shard(&shard, most - received.len(), visibility).await {
                Ok(more) => received.extend(more),
                // Messages of earlier shards are already taken, so the caller must get them.
                Err(_) if !received.is_empty() => break,
                // A damaged row must not block other shards. It is reported if those are empty.
                Err(error) if error.is_decode() => damaged = Some(error),
                Err(error) => return Err(error),
            }
        }
        match damaged {
            Some(error) if received.is_empty() => Err(error),
            _ => Ok(received),
        }
    }

    /// Receives visible messages of one shard. Skips those that another receiver took first.
    async fn receive_from_shard(
        &self,
        shard: &str,
        most: usize,
        visibility: Duration,
    ) -> Result<Vec<Received>> {
        // A stack of groups: a group that lost a race is split and tried again.
        let mut open = vec![self.find_visible(shard, most).await?];
        let (mut received, mut failure) = (Vec::new(), None);
        while let Some(mut found) = open.pop() {
            if found.is_empty() {
                continue;
            }
            match self.take_messages(&found, visibility).await {
                Ok(taken) => received.extend(taken),
                Err(error) if error.is_lost_race() => {
                    // Each message has two operations. Those before the failed one found their rows.
                    let lost = error.failed_index().unwrap_or(0) / 2;
                    let mut rest = found.split_off(lost.min(found.len()));
                    rest = rest.split_off(1.min(rest.len()));
                    if lost == 0 {
                        // Another receiver read this page too and probably takes its first half.
                        rest = rest.split_off(rest.len() / 2);
                    }
                    open.push(rest);
                    open.push(found);
                }
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        match failure {
            Some(error) if received.is_empty() => Err(error),
            _ => Ok(received),
        }
    }

    /// Finds at most `most` visible messages of a shard.
    async fn find_visible(&self, shard: &str, most: usize) -> Result<Vec<StoredMessageRow>> {
        let (mut visible, mut from, mut now) = (Vec::new(), None, self.clock.now());
        let mut damaged = None;
        let (mut pages, mut rows) = (0, most);
        while pages < MAX_PAGES {
            let filter = due_filter(shard, now);
            let page = self.scan_page(&filter, rows, from.as_ref()).await?;
            let mut has_message = false;
            for row in &page.rows {
                let date = page.date.filter(|_| self.guards.is_guard_enabled(Guard::HiddenByStore));
                match row.as_ref().map_err(Error::clone).and_then(StoredMessageRow::parse) {
                    Ok(found) => {
                        has_message |= found.is_some();
                        visible.extend(found.filter(|found| found.is_visible(date)));
                    }
                    Err(error) => damaged = Some(error),
                }
            }
            // Damaged rows and rows of newer formats stay at the front for ever. Skip whole pages of them, however
            // many, because they would hide the messages behind them.
            let is_read_over = !has_message && !page.rows.is_empty() && page.next.is_some();
            pages += u32::from(!is_read_over);
            rows = if is_read_over { FULL_PAGE } else { most };
            // The caller asked for no more; the rest stays visible to other receivers.
            visible.truncate(most);
            let corrected = self.clock.now();
            match page.next {
                _ if visible.len() >= most => break,
                Some(next) => from = Some(next),
                // The answer showed that the store's time is later than assumed: more rows are due.
                None if corrected.get().saturating_sub(now.get()) > RELEVANT_CORRECTION => {
                    (visible, from, now) = (Vec::new(), None, corrected);
                }
                None => break,
            }
        }
        match damaged {
            Some(error) if visible.is_empty() => Err(error),
            _ => Ok(visible),
        }
    }

    /// Takes messages in one transaction: all, or the first ones that fit into it. Takes none if
    /// another receiver took one of them.
    async fn take_messages(
        &self,
        found: &[StoredMessageRow],
        visibility: Duration,
    ) -> Result<Vec<Received>> {
        let (until, holder) = (Instant::now() + visibility, self.random.random_id());
        // Use the corrected clock: receivers with wrong clocks then agree about due times.
        let latest_due = later_time(self.clock.now(), visibility);
        let hidden_ticks = duration_ticks(visibility);
        let (mut batch, mut taken) = (Batch::new(TABLE), Vec::new());
        for row in found {
            let dequeue_count = row.message.dequeue_count.saturating_add(1);
            let message = TableQueueMessage { dequeue_count, ..row.message.clone() };
            let due = due_time_that_changes_row_key(&message, latest_due, &row.row_key);
            let visibility = Visibility { due, hidden_ticks, holder: &holder };
            let delete = row.delete_operation()?;
            let insert = Operation::insert(message.queued_row(visibility)?);
            let bytes = delete.request_bytes()? + insert.request_bytes()?;
            if !taken.is_empty() && !batch.has_room_for(2, bytes) {
                break;
            }
            // Deletion and insertion stay together: each message takes two operations of the
            // transaction.
            batch.push(delete)?;
            batch.push(insert)?;
            taken.push((message, due));
        }
        let written = if self.guards.is_guard_enabled(Guard::MoveInOneTransaction) {
            self.backend.apply(&batch).await
        } else {
            self.insert_then_delete(&batch).await
        };
        let written = written.map_err(|error| error.in_table(TABLE));
        let etags: Vec<Option<ETag>> = match written {
            Ok(written) => written.into_iter().skip(1).step_by(2).map(|one| one.etag).collect(),
            // The answer was lost: the rows are read below, by the id of this request.
            Err(error) if error.is_answer_lost() => vec![None; taken.len()],
            Err(error) => return Err(error),
        };
        let mut received = Vec::with_capacity(taken.len());
        for ((message, due), etag) in taken.into_iter().zip(etags) {
            let row_key = message.row_key(due);
            let etag = match etag {
                Some(etag) => Some(etag),
                None => {
                    self.etag_if_written_by_request(&message.partition_key, &row_key, &holder)
                        .await?
                }
            };
            // Without its row the message was not taken, or the transaction still arrives. Either
            // way the message becomes visible again.
            let Some(etag) = etag else { continue };
            let receipt = PopReceipt::encode(&message, &row_key, etag.to_string());
            let TableQueueMessage { id, body, dequeue_count, .. } = message;
            received.push(Received::new(id, body, dequeue_count, until, receipt));
        }
        Ok(received)
    }

    /// Sends the inserts and deletes one by one. Only a test does so, to show that
    /// [`Guard::MoveInOneTransaction`] is needed.
    async fn insert_then_delete(&self, batch: &Batch) -> Result<Vec<Written>> {
        let mut written = Vec::new();
        // In reverse order: each insertion before its deletion.
        for operation in batch.operations().iter().rev() {
            let one = Batch::single(TABLE, operation.clone())?;
            match self.backend.apply(&one).await {
                Err(error) if !error.is_lost_race() => return Err(error),
                Err(_) => written.push(Written::new(404, None)),
                Ok(more) => written.extend(more),
            }
        }
        written.reverse();
        Ok(written)
    }

    /// Returns the ETag of a row if the request `holder` wrote it.
    pub(crate) async fn etag_if_written_by_request(
        &self,
        partition_key: &str,
        row_key: &str,
        holder: &str,
    ) -> Result<Option<ETag>> {
        let read = ReadRequest { table: TABLE, partition_key, row_key, select: None };
        let row = self.backend.read(read).await.map_err(|error: Error| error.in_table(TABLE))?;
        match row {
            Some(row) if is_written_by_request(&row, holder)? => Ok(row.etag()),
            _ => Ok(None),
        }
    }
}

/// Returns `due`, or the next tick if the message would keep the RowKey `row_key`: one transaction
/// cannot delete and insert one row.
pub(crate) fn due_time_that_changes_row_key(
    message: &TableQueueMessage,
    due: Ticks,
    row_key: &str,
) -> Ticks {
    let keeps_row_key = message.row_key(due) == row_key;
    if keeps_row_key { later_time(due, Duration::from_nanos(100)) } else { due }
}
