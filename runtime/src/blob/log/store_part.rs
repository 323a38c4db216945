//! Stores parts under the next free numbers of their hours, each exactly once.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use super::{
    buffer::HourLines,
    hour::{LogFolder, LogHour},
    source::{LogBlobs, PutAnswer},
};
use crate::{
    error::{Error, ErrorKind, Result},
    timers,
};

/// `store_part` fails after this many puts of one part with an unknown outcome.
const UNANSWERED: u32 = 3;

/// The writer gives up after this many taken numbers. Other writers' blobs took them, so the log itself makes
/// progress.
const TAKEN_NUMBERS: u32 = 100;

/// The most hours whose next number a writer remembers.
const KNOWN_HOURS: usize = 1_000;

/// For each hour that a writer has written, the number of the next blob that it tries to create in the hour's folder.
#[derive(Debug, Default)]
pub(super) struct NextBlobNumbers(Mutex<HashMap<LogHour, u32>>);

impl NextBlobNumbers {
    /// Returns the next number of an hour, and counts it as used. The `bool` is `false` if this is
    /// the first number of the hour, as far as the writer remembers.
    fn take_number(&self, hour: LogHour) -> (u32, bool) {
        let mut numbers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The numbers only save requests: a put never replaces a blob.
        if numbers.len() >= KNOWN_HOURS {
            numbers.clear();
        }
        let is_known = numbers.contains_key(&hour);
        let next = numbers.entry(hour).or_insert(1);
        let number = *next;
        *next = next.saturating_add(1);
        (number, is_known)
    }

    /// Records that no number up to `number` is free.
    fn skip_numbers(&self, hour: LogHour, number: u32) {
        let mut numbers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = numbers.entry(hour).or_insert(1);
        *next = number.saturating_add(1).max(*next);
    }
}

/// Stores the lines of one hour (`part`) as a blob of their own. After an error the caller can call this again with the
/// same lines: they are stored only once, even if the put that failed did store them.
///
/// # Errors
///
/// `is_backend` if the store failed or its answers were lost; `is_contended` if other writers took too
/// many numbers in a row. Other kinds if the store refused the blob.
pub(super) async fn store_hour_lines(
    source: &LogBlobs,
    numbers: &NextBlobNumbers,
    part: &mut HourLines,
) -> Result<()> {
    let (mut unanswered, mut taken) = (0, 0);
    loop {
        // A number whose put may still arrive is tried again: only one of the two puts can create it.
        let (number, is_known, was_lost) = match part.sent_as {
            Some(number) => (number, true, true),
            None => {
                let (number, is_known) = numbers.take_number(part.hour);
                (number, is_known, false)
            }
        };
        // Set before the request, in case this future is dropped before the answer.
        part.sent_as = Some(number);
        let owner = match source.create_log_blob(part, number).await? {
            PutAnswer::Stored => return Ok(()),
            PutAnswer::Refused(error) => {
                // After a lost answer, an earlier put under this number may still arrive: the
                // number stays, and the next attempt begins with it.
                if !was_lost {
                    part.sent_as = None;
                }
                return Err(error);
            }
            // If the blob is gone again, it was another writer's: nobody deletes ours before it is known.
            PutAnswer::Taken => find_blob_owner(source, part, number, was_lost)
                .await
                .map(|owner| owner.unwrap_or(Owner::Another)),
            PutAnswer::Lost(error) => find_blob_owner(source, part, number, true)
                .await
                .and_then(|owner| owner.ok_or(error)),
        };
        match owner {
            Ok(Owner::Us) => return Ok(()),
            Ok(Owner::Another) => {
                part.sent_as = None;
                taken += 1;
                if taken >= TAKEN_NUMBERS {
                    return Err(contended_error(source, part.hour));
                }
                // After one taken number the next is usually free. Otherwise list the hour once,
                // instead of sending the whole part under each taken number.
                if !is_known || taken > 1 {
                    let last = source
                        .list_blobs_of(LogFolder::of_hour(part.hour))
                        .await?
                        .last()
                        .map(|(name, _)| name.number());
                    numbers.skip_numbers(part.hour, last.unwrap_or(number).max(number));
                }
            }
            Err(error) => {
                unanswered += 1;
                if unanswered >= UNANSWERED || error.kind() != ErrorKind::Backend {
                    return Err(error);
                }
                wait_before_put(source, unanswered).await;
            }
        }
    }
}

/// The writer of the blob that has a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Us,
    Another,
}

/// Finds out who wrote the blob with that number. Returns `None` if there is none. `was_lost` means that a put
/// of this part may have created it.
///
/// Asks even though a taken number usually belongs to another writer: the store's client may itself have sent
/// the put twice.
async fn find_blob_owner(
    source: &LogBlobs,
    part: &HourLines,
    number: u32,
    was_lost: bool,
) -> Result<Option<Owner>> {
    let name = source.log_blob_name(part.hour, number);
    let Some(metadata) = source.read_blob_metadata(&name).await? else { return Ok(None) };
    let is_ours = match metadata.flush {
        Some(flush) => *flush == *part.batch,
        // Without metadata, compare the lines, but only after a lost answer: two writers may log equal
        // lines.
        None if was_lost => match source.read_whole_log_blob(&name).await? {
            Some(text) => text == part.text,
            None => return Ok(None),
        },
        None => false,
    };
    Ok(Some(if is_ours { Owner::Us } else { Owner::Another }))
}

/// Waits a random time of at most 50 ms before the second put, twice that before the third.
async fn wait_before_put(source: &LogBlobs, unanswered: u32) {
    let bound = 50_u64 << unanswered.saturating_sub(1).min(4);
    timers::sleep(Duration::from_millis(source.random.random_number() % bound)).await;
}

fn contended_error(source: &LogBlobs, hour: LogHour) -> Error {
    let message = format!(
        "other writers took {TAKEN_NUMBERS} numbers in a row in the hour of `{}`",
        source.log_blob_name(hour, 1)
    );
    Error::new(ErrorKind::Contended, message)
}
