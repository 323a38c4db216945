//! Visits of partitions: what a worker found there, and when it visits them again.
//!
//! Each row that waits has a time at which it is due. Work that was left since the last visit has
//! none, so a worker also looks at partitions in between. These looks are the cost of a store with
//! much waiting work: they become rarer in a partition where nothing changes, and one worker makes
//! at most [`LOOKS_PER_MINUTE`].

use std::{collections::BTreeSet, time::Duration};

use tokio::time::Instant;

use crate::{row::ETag, timers::instant_after};

/// The greatest number of looks (visits of partitions without due rows) of one worker in a minute.
pub(super) const LOOKS_PER_MINUTE: u32 = 60;

/// Number of visits of an unchanged partition after which looks at it become rarer.
const VISITS_BEFORE_DOUBLING: u32 = 5;

/// Most doublings of the wait between two looks at an unchanged partition.
const MAX_DOUBLINGS: u32 = 4;

/// Table and PartitionKey.
pub(super) type TableAndPartitionKey = (String, String);

/// The state of a partition at a worker's last visit, and the time of the next visit.
#[derive(Debug, Clone, Default)]
pub(super) struct PartitionVisit {
    pub(super) open: u64,
    pub(super) waiting: u64,
    pub(super) unknown: u64,
    pub(super) oldest: Option<Duration>,
    /// The time at which the first row is due, or the partition may be closed.
    pub(super) next: Option<Instant>,
    /// The time at which to look for new work, if the bound on looks allows it then.
    look: Option<Instant>,
    /// Number of visits in a row that found the partition unchanged.
    unchanged: u32,
    /// The state of the partition that this visit read.
    seen: SeenPartitionState,
}

/// The state of a partition that a visit read. If a later visit reads another state, the partition
/// may have other work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SeenPartitionState {
    /// The ETags of the fences. Every transaction with open work changes one of them.
    pub(super) fences: Vec<Option<ETag>>,
    /// Number of entity types that the client knew.
    pub(super) known_types: usize,
}

impl PartitionVisit {
    /// Counts an outbox row whose work is open. `age` is `None` if the row's age is unknown.
    pub(super) fn add_open_row(&mut self, age: Option<Duration>) {
        self.open += 1;
        self.oldest = self.oldest.max(age);
    }

    /// Subtracts rows that are no longer open.
    pub(super) fn remove_open_rows(&mut self, rows: u64) {
        self.open = self.open.saturating_sub(rows);
    }

    /// Counts an open row as unknown to this program.
    pub(super) fn move_open_to_unknown(&mut self) {
        self.remove_open_rows(1);
        self.unknown += 1;
    }

    /// Counts an open row as waiting for its second look.
    pub(super) fn move_open_to_waiting(&mut self) {
        self.remove_open_rows(1);
        self.waiting += 1;
    }

    /// Plans the next visit after `wait`, unless an earlier visit is planned.
    pub(super) fn revisit_after(&mut self, wait: Duration) {
        let next = instant_after(Instant::now(), wait);
        self.next = Some(self.next.map_or(next, |earlier| earlier.min(next)));
    }

    /// Plans the next visit of a partition, in addition to visits for rows that become due earlier. `before`
    /// is the previous visit. If the partition has no rows or has changed since `before`, visits it after one
    /// lease. Otherwise plans a look, after a wait that grows while nothing changes.
    pub(super) fn plan_next_visit(
        &mut self,
        before: Option<&Self>,
        seen: SeenPartitionState,
        lease: Duration,
    ) {
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
        // After five visits without a change the wait doubles, up to 16 leases.
        let doublings = self.unchanged.saturating_sub(VISITS_BEFORE_DOUBLING).min(MAX_DOUBLINGS);
        let wait = lease.saturating_mul(1 << doublings);
        self.look = Some(instant_after(Instant::now(), wait));
    }

    /// Returns whether the last visit met rows of unknown types and the client has learnt a type
    /// since: reason for another visit.
    pub(super) fn may_recognize_unknown_rows(&self, known_types: usize) -> bool {
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

/// Bounds the looks of a worker: visits of partitions that have no due row.
#[derive(Debug, Default)]
pub(super) struct LookBudget {
    /// The moment from which the next look is allowed.
    next: Option<Instant>,
}

impl LookBudget {
    /// Chooses the partitions to look at in this round, the longest waiting ones first. Chooses as many as
    /// [`LOOKS_PER_MINUTE`] allows for the time since the last look, of which at most one `interval` between
    /// rounds counts.
    pub(super) fn choose_partitions_to_look_at<'v>(
        &mut self,
        visits: impl Iterator<Item = (&'v TableAndPartitionKey, &'v PartitionVisit)>,
        interval: Duration,
    ) -> BTreeSet<TableAndPartitionKey> {
        let now = Instant::now();
        let planned = visits.filter_map(|(partition, visit)| {
            let look = visit.look.filter(|look| *look <= now && !visit.is_due(now))?;
            Some((look, partition))
        });
        let mut planned: Vec<_> = planned.collect();
        planned.sort_unstable();
        let pause = Duration::from_secs(60) / LOOKS_PER_MINUTE;
        // Unused looks are saved for one round, not for longer: a pause must not end in a burst.
        let saved = interval.clamp(pause, Duration::from_secs(60));
        let earliest = now.checked_sub(saved).unwrap_or(now);
        let mut next = self.next.map_or(now, |next| next.max(earliest));
        let mut chosen = BTreeSet::new();
        for (_, partition) in planned {
            if next > now {
                break;
            }
            // Each look costs at least one request, so each moves the bound on.
            next += pause;
            chosen.insert(partition.clone());
        }
        self.next = Some(next);
        chosen
    }
}
