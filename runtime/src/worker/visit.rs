//! Visits of partitions: what a worker saw there, and when it goes there again.
//!
//! Each row that waits says by itself when it is due. Work that was left since the last visit says
//! nothing, so that a partition is also looked at in between. These looks are what a store with much
//! waiting work costs while nothing is due: they become rarer in a partition where nothing changes, and
//! one worker makes at most [`LOOKS_PER_MINUTE`] of them.

use std::{collections::BTreeSet, time::Duration};

use tokio::time::Instant;

use crate::row::ETag;

/// Number of looks at partitions with nothing due that one worker makes in a minute, at most.
pub(super) const LOOKS_PER_MINUTE: u32 = 60;

/// Number of visits of an unchanged partition after which its looks become rarer.
const STEADY_LOOKS: u32 = 5;

/// A look at an unchanged partition waits at most 2 to the power of this, in leases.
const MOST_DOUBLINGS: u32 = 4;

/// Table and PartitionKey.
pub(super) type PartitionTexts = (String, String);

/// The state of a partition when a worker last visited it, and when to visit it again.
#[derive(Debug, Clone, Default)]
pub(super) struct PartitionVisit {
    pub(super) open: u64,
    pub(super) waiting: u64,
    pub(super) unknown: u64,
    pub(super) oldest: Option<Duration>,
    /// When the first row is due, or the partition may be closed.
    pub(super) next: Option<Instant>,
    /// When to look whether somebody left work since, if a look is left in that minute.
    look: Option<Instant>,
    /// Number of visits in a row that found the partition unchanged.
    unchanged: u32,
    /// What changes with every transaction that leaves work.
    seen: Seen,
}

/// What tells whether a partition may have other work than at the last visit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// The ETags of the fences, of which every transaction with open work changes one.
    pub(super) fences: Vec<Option<ETag>>,
    /// The number of entity types that the client knew.
    pub(super) known_types: usize,
}

impl PartitionVisit {
    /// Counts an outbox row whose work is not done. `age` is `None` if the row's age is unknown.
    pub(super) fn add_open(&mut self, age: Option<Duration>) {
        self.open += 1;
        self.oldest = self.oldest.max(age);
    }

    /// Counts that many rows as no longer open.
    pub(super) fn remove_open(&mut self, rows: u64) {
        self.open = self.open.saturating_sub(rows);
    }

    /// Counts an open row as one that this program does not know.
    pub(super) fn open_to_unknown(&mut self) {
        self.remove_open(1);
        self.unknown += 1;
    }

    /// Counts an open row as one that waits for its second look.
    pub(super) fn open_to_waiting(&mut self) {
        self.remove_open(1);
        self.waiting += 1;
    }

    /// Plans the next visit in `wait`, unless an earlier one is planned.
    pub(super) fn revisit_after(&mut self, wait: Duration) {
        let next = Instant::now() + wait;
        self.next = Some(self.next.map_or(next, |earlier| earlier.min(next)));
    }

    /// Plans when the partition is visited although none of its rows is due, given the visit before.
    pub(super) fn plan_look(&mut self, before: Option<&Self>, seen: Seen, lease: Duration) {
        self.unchanged = match before {
            Some(before) if before.seen == seen => before.unchanged.saturating_add(1),
            _ => 0,
        };
        let has_changed = before.is_some_and(|before| before.seen != seen);
        self.seen = seen;
        // By a lease later, a partition without rows may be idle long enough to be closed, and one that
        // is written to may have new work.
        let has_rows = self.open + self.waiting + self.unknown > 0;
        if !has_rows || has_changed {
            self.revisit_after(lease);
            return;
        }
        let doublings = self.unchanged.saturating_sub(STEADY_LOOKS).min(MOST_DOUBLINGS);
        let wait = lease.saturating_mul(1 << doublings);
        self.look = Some(Instant::now() + wait);
    }

    /// Returns whether the client, which knows that many types, may know rows that were unknown.
    pub(super) fn may_be_known(&self, known_types: usize) -> bool {
        self.unknown > 0 && self.seen.known_types != known_types
    }

    /// Returns whether a row of the partition is due, or the partition may be closed.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        match self.next {
            Some(next) => next <= now,
            None => self.look.is_none(),
        }
    }
}

/// The looks at partitions with nothing due that a worker has left.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// When the next look may be made.
    next: Option<Instant>,
}

impl Looks {
    /// Chooses the partitions that are looked at in this round: those that wait the longest, as many as
    /// the time since the last look allows, and no more than belong to the `interval` between rounds.
    pub(super) fn choose<'v>(
        &mut self,
        visits: impl Iterator<Item = (&'v PartitionTexts, &'v PartitionVisit)>,
        interval: Duration,
    ) -> BTreeSet<PartitionTexts> {
        let now = Instant::now();
        let planned = visits.filter_map(|(partition, visit)| {
            let look = visit.look.filter(|look| *look <= now && !visit.is_due(now))?;
            Some((look, partition))
        });
        let mut planned: Vec<_> = planned.collect();
        planned.sort_unstable();
        let pause = Duration::from_secs(60) / LOOKS_PER_MINUTE;
        let saved = interval.clamp(pause, Duration::from_secs(60));
        let earliest = now.checked_sub(saved).unwrap_or(now);
        let mut next = self.next.map_or(now, |next| next.max(earliest));
        let mut chosen = BTreeSet::new();
        for (_, partition) in planned {
            if next > now {
                break;
            }
            next += pause;
            chosen.insert(partition.clone());
        }
        self.next = Some(next);
        chosen
    }
}
