//! Receiving: reading what is due, and taking it by moving its rows.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    guard::QueueGuard,
    letter::{Found, Letter, Place, Receipt, due_by, is_of_holder},
    table_queue::{TABLE, TableQueue},
};
use crate::{
    backend::Read,
    batch::{Batch, Operation, Written},
    edm::Ticks,
    error::{Error, Result},
    queue::{
        Received,
        port::{check_name, check_time},
        server_clock::{after, ticks},
    },
    row::ETag,
};

/// Pages that one look reads at most, where rows that are hidden stand among those that are due: a
/// wrong clock put them there.
const PAGES: u32 = 8;

/// How long a correction of the clock has to be for another look.
const CORRECTION: i64 = 2 * Ticks::PER_SECOND;

impl TableQueue {
    pub(crate) async fn take_due(
        &self,
        most: usize,
        visibility: Duration,
    ) -> Result<Vec<Received>> {
        check_name(&self.name)?;
        check_time("a visibility timeout", Duration::from_secs(1), visibility)?;
        let (mut received, mut damaged) = (Vec::new(), None);
        for shard in self.all_shards() {
            if received.len() >= most {
                break;
            }
            match self.take_from(&shard, most - received.len(), visibility).await {
                Ok(more) => received.extend(more),
                // What was taken is not lost for an error elsewhere.
                Err(_) if !received.is_empty() => break,
                // What cannot be read holds nothing up, and is told where there is nothing else.
                Err(error) if error.is_decode() => damaged = Some(error),
                Err(error) => return Err(error),
            }
        }
        match damaged {
            Some(error) if received.is_empty() => Err(error),
            _ => Ok(received),
        }
    }

    async fn take_from(
        &self,
        shard: &str,
        most: usize,
        visibility: Duration,
    ) -> Result<Vec<Received>> {
        let mut open = vec![self.look(shard, most).await?];
        let (mut received, mut failure) = (Vec::new(), None);
        while let Some(mut found) = open.pop() {
            if found.is_empty() {
                continue;
            }
            match self.take_all(&found, visibility).await {
                Ok(taken) => received.extend(taken),
                Err(error) if error.lost_race() => {
                    // Two operations for each message; those before the one that failed were there.
                    let lost = error.failed_index().unwrap_or(0) / 2;
                    let mut rest = found.split_off(lost.min(found.len()));
                    rest = rest.split_off(1.min(rest.len()));
                    if lost == 0 {
                        // Another receiver has read the same, and is likely to have all of it.
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

    /// The messages of a shard that are visible.
    async fn look(&self, shard: &str, most: usize) -> Result<Vec<Found>> {
        let (mut visible, mut from, mut now) = (Vec::new(), None, self.clock.now());
        let mut damaged = None;
        for _ in 0..PAGES {
            let filter = due_by(shard, now);
            let page = self.scan(&filter, most, from.as_ref()).await?;
            for row in &page.rows {
                let date = page.date.filter(|_| self.holds(QueueGuard::HiddenByStore));
                match Found::of(row) {
                    Ok(found) => visible.extend(found.filter(|found| found.is_visible(date))),
                    Err(error) => damaged = Some(error),
                }
            }
            visible.truncate(most);
            let corrected = self.clock.now();
            match page.next {
                _ if visible.len() >= most => break,
                Some(next) => from = Some(next),
                // The first answer told that it is later than was thought.
                None if corrected.get().saturating_sub(now.get()) > CORRECTION => {
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

    /// Takes all of the messages, or as many of the first as one transaction holds, or none.
    async fn take_all(&self, found: &[Found], visibility: Duration) -> Result<Vec<Received>> {
        let (until, holder) = (Instant::now() + visibility, self.random.id());
        let due = after(self.clock.now(), visibility);
        let place = Place { due, hidden: ticks(visibility), holder: &holder };
        let (mut batch, mut moved) = (Batch::new(TABLE), Vec::new());
        for one in found {
            let letter = Letter { count: one.letter.count.saturating_add(1), ..one.letter.clone() };
            let due = distinct(&letter, due, &one.row_key);
            let (delete, row) = (one.removed()?, letter.queued(Place { due, ..place })?);
            let insert = Operation::insert(row);
            let bytes = delete.request_bytes()? + insert.request_bytes()?;
            if !moved.is_empty() && !batch.has_room_for(2, bytes) {
                break;
            }
            batch.push(delete)?;
            batch.push(insert)?;
            moved.push((letter, due));
        }
        let written = match self.holds(QueueGuard::Moved) {
            true => self.backend.apply(&batch).await,
            false => self.copy_then_delete(&batch).await,
        };
        let written = written.map_err(|error| error.in_table(TABLE));
        let etags: Vec<Option<ETag>> = match written {
            Ok(written) => written.into_iter().skip(1).step_by(2).map(|one| one.etag).collect(),
            Err(error) if error.is_answer_lost() => vec![None; moved.len()],
            Err(error) => return Err(error),
        };
        let mut received = Vec::with_capacity(moved.len());
        for ((letter, due), etag) in moved.into_iter().zip(etags) {
            let row_key = letter.row_key(due);
            let etag = match etag {
                Some(etag) => Some(etag),
                None => self.version_of(&letter.partition_key, &row_key, &holder).await?,
            };
            // One that was not taken is visible as before; one whose fate is unknown comes again.
            let Some(etag) = etag else { continue };
            let receipt = Receipt::text(&letter, &row_key, etag.to_string());
            received.push(Received::new(letter.id, letter.body, letter.count, until, receipt));
        }
        Ok(received)
    }

    /// What is wrong: two requests in place of one transaction.
    async fn copy_then_delete(&self, batch: &Batch) -> Result<Vec<Written>> {
        let mut written = Vec::new();
        for operation in batch.operations().iter().rev() {
            let one = Batch::single(TABLE, operation.clone())?;
            match self.backend.apply(&one).await {
                Err(error) if !error.lost_race() => return Err(error),
                Err(_) => written.push(Written { status: 404, etag: None }),
                Ok(more) => written.extend(more),
            }
        }
        written.reverse();
        Ok(written)
    }

    /// The version of a row that this holder put there.
    pub(crate) async fn version_of(
        &self,
        partition_key: &str,
        row_key: &str,
        holder: &str,
    ) -> Result<Option<ETag>> {
        let read = Read { table: TABLE, partition_key, row_key, select: None };
        let row = self.backend.read(read).await.map_err(|error: Error| error.in_table(TABLE))?;
        match row {
            Some(row) if is_of_holder(&row, holder)? => Ok(row.etag()),
            _ => Ok(None),
        }
    }
}

/// A time to be due that gives another RowKey than that.
pub(crate) fn distinct(letter: &Letter, due: Ticks, row_key: &str) -> Ticks {
    let is_same = letter.row_key(due) == row_key;
    if is_same { after(due, Duration::from_nanos(100)) } else { due }
}
