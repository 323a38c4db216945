//! What the receiver of a message does with it: extend, delete, put aside; and putting back.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    guard::QueueGuard,
    letter::{Place, Receipt, check_body},
    receive::distinct,
    table_queue::{ATTEMPTS, TABLE, TableQueue},
};
use crate::{
    backend::Read,
    batch::Operation,
    error::{Error, ErrorKind, Result},
    queue::{
        Poison, Received,
        port::{check_time, lease_lost},
        server_clock::{after, ticks},
    },
    row::ETag,
};

/// What reading its row again says of a change whose answer was lost.
enum Look {
    /// The row is as it was.
    Unchanged,
    /// The row is gone, while nobody else could have it.
    Done,
    Unclear,
}

impl TableQueue {
    pub(crate) async fn hide(
        &self,
        message: &mut Received,
        visibility: Duration,
        body: Option<&str>,
    ) -> Result<()> {
        check_time("a visibility timeout", Duration::ZERO, visibility)?;
        let body = body.map_or_else(|| message.body().to_owned(), str::to_owned);
        check_body(&body)?;
        let receipt = Receipt::parse(message.receipt())?;
        let letter = receipt.letter(message.id(), &body, message.dequeue_count());
        let (until, holder) = (Instant::now() + visibility, self.random.id());
        let due = distinct(&letter, after(self.clock.now(), visibility), &receipt.row_key);
        let place = Place { due, hidden: ticks(visibility), holder: &holder };
        let (row_key, row) = (letter.row_key(due), letter.queued(place)?);
        let change = vec![receipt.removed()?, Operation::insert(row)];
        let etag = match self.changed(message, &receipt, change).await? {
            Some(etag) => Some(etag),
            None => self.version_of(&letter.partition_key, &row_key, &holder).await?,
        };
        // Not there: it was visible at once, and somebody has it.
        let etag = etag.ok_or_else(|| lease_lost(message.id()));
        let etag = if visibility.is_zero() { etag.unwrap_or("W/\"\"".into()) } else { etag? };
        let receipt = Receipt::text(&letter, &row_key, etag.to_string());
        message.extended(until, receipt, Some(&body));
        Ok(())
    }

    pub(crate) async fn remove(&self, message: &Received) -> Result<()> {
        let receipt = Receipt::parse(message.receipt())?;
        self.changed(message, &receipt, vec![receipt.removed()?]).await.map(drop)
    }

    pub(crate) async fn put_aside(&self, message: &Received, reason: &str) -> Result<()> {
        let receipt = Receipt::parse(message.receipt())?;
        let letter = receipt.letter(message.id(), message.body(), message.dequeue_count());
        let change = vec![receipt.removed()?, letter.poisoned(reason)?];
        self.changed(message, &receipt, change).await.map(drop)
    }

    /// Makes a change that begins with the removal of the message's row; the new version of the row
    /// that comes next, where the answer told it.
    async fn changed(
        &self,
        message: &Received,
        receipt: &Receipt,
        change: Vec<Operation>,
    ) -> Result<Option<ETag>> {
        let (mut attempt, mut doubt) = (0, None);
        loop {
            attempt += 1;
            let error = match self.apply(change.clone()).await {
                Ok(mut written) => return Ok(written.pop().and_then(|one| one.etag)),
                Err(error) => error,
            };
            let is_mine = Instant::now() < message.until();
            match doubt.take() {
                // Gone by the attempt before, or, where others may have it, by anybody's.
                Some(_) if error.lost_race() && is_mine => return Ok(None),
                Some(doubt) if error.lost_race() => return Err(doubt),
                None if error.lost_race() => return Err(lease_lost(message.id())),
                _ if !error.is_answer_lost() => return Err(error),
                _ => {}
            }
            if !self.holds(QueueGuard::LookedInto) {
                return Ok(None);
            }
            let error = in_doubt(error);
            match self.look_again(message, receipt).await {
                Ok(Look::Done) => return Ok(None),
                Ok(Look::Unchanged) if attempt < ATTEMPTS => doubt = Some(error),
                _ => return Err(error),
            }
        }
    }

    async fn look_again(&self, message: &Received, receipt: &Receipt) -> Result<Look> {
        let (partition_key, row_key) = (&*receipt.partition_key, &*receipt.row_key);
        let read = Read { table: TABLE, partition_key, row_key, select: None };
        let row = self.backend.read(read).await?;
        let is_mine = Instant::now() < message.until();
        Ok(match row {
            Some(row) if row.etag() == Some(ETag::from(&*receipt.etag)) => Look::Unchanged,
            None if is_mine => Look::Done,
            _ => Look::Unclear,
        })
    }

    pub(crate) async fn put_back(&self, poison: &Poison) -> Result<()> {
        let receipt = Receipt::parse(poison.place())?;
        let letter = receipt.letter(poison.id(), poison.body(), 0);
        self.set_clock().await?;
        let place = Place { due: self.clock.now(), hidden: 0, holder: "" };
        let change = vec![receipt.removed()?, Operation::insert(letter.queued(place)?)];
        let Err(error) = self.apply(change).await else { return Ok(()) };
        if !error.lost_race() {
            return Err(error);
        }
        let message = "the message is not among those put aside any more";
        Err(Error::new(ErrorKind::NotFound, message).with_source(error))
    }
}

/// The error of a change that may have been carried out.
fn in_doubt(error: Error) -> Error {
    if error.is_ambiguous() {
        return error;
    }
    let message = "the answer was lost, the message may have been changed; it comes again if not";
    Error::new(ErrorKind::Ambiguous, message).with_source(error)
}
