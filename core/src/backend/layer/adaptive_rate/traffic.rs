//! Counts what the store has accepted in the last two seconds, in total and for each partition. The counts show where
//! the limit is, and whether a refusal concerns a partition or the account.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

/// The length of a turn, in which traffic is counted.
const TURN: Duration = Duration::from_secs(1);
/// If a partition has this many times the traffic of an average partition, a refusal concerns the partition's limit,
/// not the account's.
const HOT: f64 = 2.0;
/// A partition with fewer requests in a turn is never hot, because twice the average may be chance.
const FEW: f64 = 16.0;
/// The shortest time, in seconds, that a rate is computed from.
const SHORT: f64 = 0.05;

/// The counts of the current turn and of the turn before.
#[derive(Debug)]
pub(super) struct Traffic {
    began: Instant,
    now: Counts,
    before: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    requests: f64,
    entities: f64,
    /// Requests and entities of each partition.
    partitions: HashMap<u64, (f64, f64)>,
}

impl Traffic {
    pub(super) fn new(now: Instant) -> Self {
        Self { began: now, now: Counts::default(), before: Counts::default() }
    }

    /// Counts a request that was carried out.
    pub(super) fn count(&mut self, partition: Option<u64>, entities: f64, now: Instant) {
        self.begin_turn_if_due(now);
        self.now.requests += 1.0;
        self.now.entities += entities;
        if let Some(partition) = partition {
            let counts = self.now.partitions.entry(partition).or_default();
            *counts = (counts.0 + 1.0, counts.1 + entities);
        }
    }

    /// Returns the number of requests per second, measured over the last second.
    pub(super) fn request_rate(&self, now: Instant) -> f64 {
        self.rate(now, |counts| counts.requests)
    }

    /// Returns the number of entities per second in a partition, measured over the last second.
    pub(super) fn partition_entity_rate(&self, partition: u64, now: Instant) -> f64 {
        self.rate(now, |counts| counts.of_partition(partition).1)
    }

    /// Returns whether the partition gets far more than an average one. The store does not say whose limit a
    /// request has exceeded: one partition among equals would not be refused before the account is.
    #[allow(clippy::cast_precision_loss, reason = "a number of partitions is small")]
    pub(super) fn is_hot(&self, partition: u64, now: Instant) -> bool {
        let partitions = self.now.partitions.len().max(self.before.partitions.len()).max(1) as f64;
        let average = self.rate(now, |counts| counts.entities) / partitions;
        let requests =
            self.now.of_partition(partition).0.max(self.before.of_partition(partition).0);
        let is_above_average = self.partition_entity_rate(partition, now) > HOT * average;
        partitions < HOT || (requests >= FEW && is_above_average)
    }

    fn rate(&self, now: Instant, count: impl Fn(&Counts) -> f64) -> f64 {
        let passed = now.saturating_duration_since(self.began).as_secs_f64().clamp(SHORT, 1.0);
        if self.before.requests > 0.0 {
            // The turn before counts with the part of it that lies within the last second.
            count(&self.now) + count(&self.before) * (1.0 - passed)
        } else {
            count(&self.now) / passed
        }
    }

    fn begin_turn_if_due(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.began);
        if passed < TURN {
            return;
        }
        let ended = std::mem::take(&mut self.now);
        self.before = if passed < 2 * TURN { ended } else { Counts::default() };
        self.began = now;
    }
}

impl Counts {
    /// Returns the requests and the entities of a partition.
    fn of_partition(&self, partition: u64) -> (f64, f64) {
        self.partitions.get(&partition).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_the_last_second() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut traffic = Traffic::new(start);
        for millis in 0..1_500 {
            traffic.count(Some(millis % 2), 3.0, at(millis));
        }
        assert!((traffic.request_rate(at(1_500)) - 1_000.0).abs() < 5.0);
        assert!((traffic.partition_entity_rate(1, at(1_500)) - 1_500.0).abs() < 10.0);
        traffic.count(Some(9), 1.0, at(60_000));
        assert!((traffic.request_rate(at(61_000)) - 1.0).abs() < 1e-9);
        assert!((traffic.request_rate(at(60_100)) - 10.0).abs() < 1e-9, "a tenth of a second");
        assert!(traffic.partition_entity_rate(1, at(60_000)).abs() < 1e-9);
    }

    #[test]
    fn a_partition_is_hot_beside_others_or_alone() {
        let start = Instant::now();
        let mut traffic = Traffic::new(start);
        for partition in 0..10 {
            traffic.count(Some(partition), 5.0, start);
        }
        assert!(!traffic.is_hot(3, start), "one among equals");
        for _ in 0..14 {
            traffic.count(Some(3), 5.0, start);
        }
        assert!(!traffic.is_hot(3, start), "it may be chance");
        traffic.count(Some(3), 5.0, start);
        assert!(traffic.is_hot(3, start) && !traffic.is_hot(4, start));
        let mut alone = Traffic::new(start);
        alone.count(Some(3), 1.0, start);
        assert!(alone.is_hot(3, start));
    }
}
