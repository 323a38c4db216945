//! Keeps a bound of all Timestamps in the file, to prevent that an ETag is issued twice.
//!
//! The file stores a time that is at or after every Timestamp that anybody has seen. An opening continues after that
//! time, also if the clock was set back. Proof that no two versions of a row share a Timestamp:
//!
//! 1. While a store is open, each batch gets a later time than the batch before.
//! 2. A Timestamp is seen only once the stored bound covers it, or after a durable commit or a frame of the
//!    [journal](crate::journal) that stores a later bound. So at each moment a bound on disk covers every Timestamp seen,
//!    also one whose row is deleted or whose commit is not on disk yet.
//! 3. A crash loses no durable commit, so the next opening finds that bound or a later one. The bound is only lowered to
//!    the last Timestamp, in a durable commit that keeps all rows before it.
//!
//! The bound runs ahead of the clock, so few commits store one. After a crash, Timestamps are in the future by as much.
//! A store that is closed stores the last Timestamp itself.

use entable_core::edm::Ticks;
use redb::{Table, WriteTransaction};

use crate::{
    file_format::{META, meta},
    options::Durability,
};

/// How far a bound runs ahead of the clock if every commit of rows is durable. A later bound costs a page of the commit,
/// and no sync.
const AHEAD_IF_SYNCED: i64 = Ticks::PER_SECOND / 10;
/// How far a bound runs ahead of the clock if commits may be off the disk. A commit that would pass the bound has to be
/// synced.
const AHEAD_IF_RELAXED: i64 = 5 * Ticks::PER_SECOND;
/// How far a bound runs at least ahead of the last Timestamp, enough for as many batches. Timestamps that are ahead of
/// the clock are one tick apart, so crashes one soon after the other hardly take them further ahead.
const AHEAD_OF_LAST: i64 = Ticks::PER_SECOND / 100;

/// The bound that is stored in the file, and how far the next one runs ahead.
#[derive(Debug)]
pub(crate) struct TimestampBound {
    /// The bound in the newest durable commit or frame.
    stored: Ticks,
    is_relaxed: bool,
}

impl TimestampBound {
    /// Returns a bound that covers nothing, until one is found in the file.
    pub(crate) fn new(durability: Durability) -> Self {
        let is_relaxed = matches!(durability, Durability::Relaxed { .. });
        Self { stored: Ticks::MIN, is_relaxed }
    }

    /// Takes over the bound of a file that was opened. Returns the time after which Timestamps continue, where
    /// `last` is the last Timestamp before the opening.
    pub(crate) fn take_over(&mut self, found: Ticks, last: Ticks) -> Ticks {
        // A file that this store opens again has its own bound, which says no more than `last`.
        let is_own = found <= self.stored;
        self.stored = found;
        if is_own { last } else { last.max(found) }
    }

    /// Returns whether a Timestamp may be seen without a durable commit of a later bound.
    pub(crate) fn covers(&self, timestamp: Ticks) -> bool {
        timestamp <= self.stored
    }

    /// Returns the bound that a durable commit at time `now` has to store, or `None` if the stored one is
    /// late enough. `last` is the last Timestamp of the commit.
    pub(crate) fn for_commit(&self, last: Ticks, now: Ticks) -> Option<Ticks> {
        let ahead = |parts: i64, of_clock: i64| {
            later(now, of_clock / parts).max(later(last, AHEAD_OF_LAST / parts))
        };
        if self.is_relaxed {
            // Renewed early, by commits that are durable anyway: none then has to be synced only for the bound.
            let is_near = !self.covers(ahead(2, AHEAD_IF_RELAXED));
            is_near.then(|| ahead(1, AHEAD_IF_RELAXED))
        } else {
            (!self.covers(last)).then(|| ahead(1, AHEAD_IF_SYNCED))
        }
    }

    /// Returns the bound to store when writes end, or `None` if it is stored already: the last Timestamp.
    pub(crate) fn for_rest(&self, last: Ticks) -> Option<Ticks> {
        (self.stored != last).then_some(last)
    }

    /// Notes that a durable commit has stored a bound.
    pub(crate) fn note_stored(&mut self, bound: Ticks) {
        self.stored = bound;
    }
}

/// Returns the time some ticks later, or the latest of all times.
fn later(time: Ticks, ticks: i64) -> Ticks {
    Ticks::new(time.get().saturating_add(ticks)).unwrap_or(Ticks::MAX)
}

/// Stores a bound with a transaction.
pub(crate) fn store_bound(transaction: &WriteTransaction, bound: Ticks) -> Result<(), redb::Error> {
    let mut facts: Table<'_, &str, &[u8]> = transaction.open_table(META)?;
    facts.insert(meta::TICK, &bound.get().to_le_bytes()[..])?;
    Ok(())
}

/// Decodes a stored bound.
pub(crate) fn decode_bound(bytes: &[u8]) -> Result<Ticks, redb::Error> {
    let ticks = bytes.try_into().ok().map(i64::from_le_bytes).and_then(Ticks::new);
    ticks.ok_or_else(|| redb::Error::Corrupted("the bound of Timestamps is damaged".to_owned()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const AT: Ticks = Ticks::UNIX_EPOCH;

    fn bound(durability: Durability, stored: Ticks) -> TimestampBound {
        TimestampBound { stored, ..TimestampBound::new(durability) }
    }

    fn relaxed(stored: Ticks) -> TimestampBound {
        bound(Durability::Relaxed { delay: Duration::from_secs(1) }, stored)
    }

    #[test]
    fn a_damaged_bound_is_not_taken_for_none() {
        assert_eq!(decode_bound(&AT.get().to_le_bytes()).unwrap(), AT);
        for damaged in [&[][..], &[0; 7], &[0; 9], &(-1_i64).to_le_bytes(), &[0xff; 8]] {
            let error = decode_bound(damaged).unwrap_err();
            assert!(matches!(error, redb::Error::Corrupted(_)), "{damaged:?}");
        }
    }

    #[test]
    fn an_opening_continues_after_a_bound_that_it_does_not_know() {
        let mut bound = relaxed(Ticks::MIN);
        assert_eq!(bound.take_over(AT, Ticks::MIN), AT);
        let (last, later) = (later(AT, 7), later(AT, 100));
        bound.note_stored(later);
        assert_eq!(bound.take_over(later, last), last, "its own bound");
        assert_eq!(bound.take_over(AT, last), last, "the file lost a bound");
        assert!(!bound.covers(last));
    }

    #[test]
    fn a_synced_commit_stores_a_bound_only_where_it_would_pass_the_last_one() {
        let bound = bound(Durability::Sync, AT);
        assert_eq!(bound.for_commit(AT, later(AT, 1)), None);
        let next = later(AT, 1);
        assert_eq!(bound.for_commit(next, AT), Some(later(AT, AHEAD_IF_SYNCED)));
        let far = later(AT, AHEAD_IF_RELAXED);
        assert_eq!(bound.for_commit(far, AT), Some(later(far, AHEAD_OF_LAST)));
    }

    #[test]
    fn a_relaxed_store_renews_its_bound_before_it_is_passed() {
        let half = AHEAD_IF_RELAXED / 2;
        let bound = relaxed(later(AT, half));
        assert_eq!(bound.for_commit(AT, AT), None);
        let next = later(AT, 1);
        assert_eq!(bound.for_commit(AT, next), Some(later(next, AHEAD_IF_RELAXED)));
        // The clock was set back, so Timestamps move by one tick for each batch.
        let last = later(AT, half - AHEAD_OF_LAST / 2);
        assert_eq!(bound.for_commit(last, Ticks::MIN), None);
        let last = later(last, 1);
        assert_eq!(bound.for_commit(last, Ticks::MIN), Some(later(last, AHEAD_OF_LAST)));
    }

    #[test]
    fn the_latest_time_is_its_own_bound() {
        for mut bound in [bound(Durability::Sync, AT), relaxed(AT)] {
            let stored = bound.for_commit(Ticks::MAX, AT);
            assert_eq!(stored, Some(Ticks::MAX));
            bound.note_stored(Ticks::MAX);
            assert!(bound.covers(Ticks::MAX));
            assert_eq!(
                (bound.for_commit(Ticks::MAX, AT), bound.for_rest(Ticks::MAX)),
                (None, None)
            );
        }
    }
}
