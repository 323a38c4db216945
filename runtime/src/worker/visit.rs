//! Visits of partitions with outbox rows: what a worker found there, and when it visits them again.
//!
//! Each waiting row has a time when it is due. Work that was left since the last visit has none, so a worker also
//! looks at partitions in between. For a store with much waiting work, these looks are the main cost. They become
//! rarer in a partition where nothing changes, and a worker makes at most [`LOOKS_PER_MINUTE`].

use std::{collections::BTreeSet, time::Duration};

use tokio::time::Instant;

use crate::{row::ETag, timers::instant_after};

/// The maximum number of looks (visits of partitions without due rows) of one worker per minute.
pub(super) const LOOKS_PER_MINUTE: u32 = 60;

/// Looks become rarer after this many visits of an unchanged partition.
const VISITS_BEFORE_DOUBLING: u32 = 5;

/// The maximum number of times that the wait between looks at an unchanged partition doubles.
const MAX_DOUBLINGS: u32 = 4;

/// Table and PartitionKey.
pub(super) type TableAndPartitionKey = (String, String);

/// The findings of a worker's last visit to a partition, and the time of the next visit.
#[derive(Debug, Clone, Default)]
pub(super) struct LastPartitionVisit {
    pub(super) open: u64,
    pub(super) waiting: u64,
    pub(super) unknown: u64,
    pub(super) oldest: Option<Duration>,
    /// When the first row is due or the partition may be closed.
    pub(super) next: Option<Instant>,
    /// When to look for new work, if the limit on looks allows it.
    look: Option<Instant>,
    /// The number of consecutive visits that found the partition unchanged.
    unchanged: u32,
    /// The state of the partition that this visit read.
    seen: SeenPartitionState,
}

/// The state of a partition at a visit. If a later visit reads a different state, the partition may have new
/// work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SeenPartitionState {
    /// The ETags of the fences. Every transaction with open work changes one of them.
    pub(super) fences: Vec<Option<ETag>>,
    /// The number of entity types that the client knew.
    pub(super) known_types: usize,
}

impl LastPartitionVisit {
    /// Counts an outbox row with open work. `age` is `None` if the row's age is unknown.
    pub(super) fn add_open_row(&mut self, age: Option<Duration>) {
        self.open += 1;
        self.oldest = self.oldest.max(age);
    }

    /// Subtracts rows that are no longer open.
    pub(super) fn subtract_open_rows(&mut self, rows: u64) {
        self.open = self.open.saturating_sub(rows);
    }

    /// Counts an open row as unknown to this program.
    pub(super) fn count_open_row_as_unknown(&mut self) {
        self.subtract_open_rows(1);
        self.unknown += 1;
    }

    /// Counts an open row as waiting for its second look.
    pub(super) fn count_open_row_as_waiting(&mut self) {
        self.subtract_open_rows(1);
        self.waiting += 1;
    }

    /// Schedules the next visit after `wait`, unless an earlier visit is scheduled.
    pub(super) fn revisit_after(&mut self, wait: Duration) {
        let next = instant_after(Instant::now(), wait);
        self.next = Some(self.next.map_or(next, |earlier| earlier.min(next)));
    }

    /// Schedules the next visit of a partition, in addition to visits for rows that become due earlier. `before` is
    /// the previous visit. If the partition has no rows or has changed since `before`, schedules it after one lease.
    /// Otherwise schedules a look, after a wait that grows while nothing changes.
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
        // After a lease, a partition without rows may be idle long enough to be closed, and one that is written to
        // may have new work.
        let has_rows = self.open + self.waiting + self.unknown > 0;
        if !has_rows || has_changed {
            self.revisit_after(lease);
            return;
        }
        // After five visits without a change, the wait doubles each time, up to 16 leases.
        let doublings = self.unchanged.saturating_sub(VISITS_BEFORE_DOUBLING).min(MAX_DOUBLINGS);
        let wait = lease.saturating_mul(1 << doublings);
        self.look = Some(instant_after(Instant::now(), wait));
    }

    /// Returns whether the last visit found rows of unknown types and the client has since learned a type, which
    /// justifies another visit.
    pub(super) fn may_recognize_unknown_rows(&self, known_types: usize) -> bool {
        self.unknown > 0 && self.seen.known_types != known_types
    }

    /// Returns whether a row of the partition is due or the partition may be closed.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        match self.next {
            Some(next) => next <= now,
            None => self.look.is_none(),
        }
    }
}

/// Limits a worker's looks, which are visits of partitions without due rows.
#[derive(Debug, Default)]
pub(super) struct LookBudget {
    /// When the next look is allowed.
    next: Option<Instant>,
}

impl LookBudget {
    /// Selects the partitions to look at in this round, longest waiting first. Selects as many as
    /// [`LOOKS_PER_MINUTE`] allows for the time since the last look, counting at most one `interval` between rounds.
    pub(super) fn choose_partitions_to_look_at<'v>(
        &mut self,
        visits: impl Iterator<Item = (&'v TableAndPartitionKey, &'v LastPartitionVisit)>,
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
        // Unused looks are saved for one round only: a pause must not end in a burst.
        let saved = interval.clamp(pause, Duration::from_secs(60));
        let earliest = now.checked_sub(saved).unwrap_or(now);
        let mut next = self.next.map_or(now, |next| next.max(earliest));
        let mut chosen = BTreeSet::new();
        for (_, partition) in planned {
            if next > now {
                break;
            }
            // Each look costs at least one request and uses up part of the limit.
            next += pause;
            chosen.insert(partition.clone());
        }
        self.next = Some(next);
        chosen
    }
}
