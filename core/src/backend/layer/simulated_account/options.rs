//! The options of a simulated account: its limits, its latency, and how often its partitions move.

use std::time::Duration;

use super::bucket::Rate;
use crate::{
    limits::{ACCOUNT_REQUESTS_PER_SECOND, PARTITION_ENTITIES_PER_SECOND},
    random::RandomSource,
};

/// The 99th percentile of the standard normal distribution.
const Z_OF_P99: f64 = 2.326_347_874;

#[derive(Debug, Clone)]
pub(super) struct AccountOptions {
    pub(super) partition_entities: f64,
    pub(super) account_requests: f64,
    /// The share to which both limits are reduced. 1 does not reduce them.
    pub(super) share: f64,
    pub(super) burst: Duration,
    pub(super) latency: Latency,
    pub(super) retry_after: Option<Duration>,
    pub(super) moves: Option<Moves>,
}

impl Default for AccountOptions {
    fn default() -> Self {
        Self {
            partition_entities: f64::from(PARTITION_ENTITIES_PER_SECOND),
            account_requests: f64::from(ACCOUNT_REQUESTS_PER_SECOND),
            share: 1.0,
            burst: Duration::from_millis(100),
            latency: Latency { median: Duration::from_millis(5), p99: Duration::from_millis(40) },
            retry_after: None,
            moves: None,
        }
    }
}

impl AccountOptions {
    pub(super) fn partition_entity_rate(&self) -> Rate {
        Rate { a_second: self.partition_entities * self.share, burst: self.burst }
    }

    pub(super) fn account_rate(&self) -> Rate {
        Rate { a_second: self.account_requests * self.share, burst: self.burst }
    }
}

/// The distribution of the times of answers, which is log-normal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Latency {
    pub(super) median: Duration,
    pub(super) p99: Duration,
}

impl Latency {
    /// Returns the standard deviation of the logarithm, or `None` if every answer takes the same time.
    fn sigma(self) -> Option<f64> {
        let is_constant = self.median.is_zero() || self.p99 <= self.median;
        let tail = || self.p99.as_secs_f64() / self.median.as_secs_f64();
        (!is_constant).then(|| tail().ln() / Z_OF_P99)
    }

    /// Returns the mean time of an answer.
    pub(super) fn mean(self) -> Duration {
        self.median
            .mul_f64(self.sigma().map_or(1.0, |sigma| (sigma * sigma / 2.0).exp().min(1_000.0)))
    }

    /// Chooses the time of one answer at random.
    pub(super) fn draw(self, random: &RandomSource) -> Duration {
        let Some(sigma) = self.sigma() else { return self.median };
        // Box and Muller: two uniform numbers make a normal one.
        let (radius, angle) = (unit(random), unit(random));
        let normal = (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos();
        self.median.mul_f64((sigma * normal).exp().min(1_000.0))
    }
}

/// Returns a random number above 0 and up to 1.
#[allow(clippy::cast_precision_loss, reason = "53 bits are enough for a time")]
fn unit(random: &RandomSource) -> f64 {
    ((random.random_number() >> 11) as f64 + 1.0) / (1_u64 << 53) as f64
}

/// Moves of partitions to another server. While a partition is moving, no server answers for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moves {
    pub(super) every: Duration,
    pub(super) lasting: Duration,
}

impl Moves {
    /// The number of servers. The partitions of one server move together.
    const SERVERS: u64 = 16;

    /// Returns whether the partition with this hash is moving, when the time `since` has passed since the account was
    /// created.
    pub(super) fn is_moving(self, seed: u64, partition: u64, since: Duration) -> bool {
        let every = self.every.as_nanos().max(1);
        let (turn, into) = (since.as_nanos() / every, since.as_nanos() % every);
        // Nothing moves in the first turn: the account has just been made.
        if turn == 0 || into >= self.lasting.as_nanos() {
            return false;
        }
        let turn = (turn % u128::from(u64::MAX)) as u64;
        let moved = RandomSource::seeded(seed ^ turn).random_number() % Self::SERVERS;
        partition % Self::SERVERS == moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_have_the_median_and_the_tail_that_were_asked_for() {
        let (median, p99) = (Duration::from_millis(5), Duration::from_millis(40));
        let random = RandomSource::seeded(7);
        let mut times: Vec<_> =
            (0..20_000).map(|_| Latency { median, p99 }.draw(&random)).collect();
        times.sort_unstable();
        let mean = times.iter().sum::<Duration>().as_secs_f64() / 20_000.0;
        let expected = Latency { median, p99 }.mean().as_secs_f64();
        assert!((mean / expected - 1.0).abs() < 0.05, "mean {mean}, expected {expected}");
        let (half, tail) = (times[10_000].as_secs_f64(), times[19_800].as_secs_f64());
        assert!((half / 0.005 - 1.0).abs() < 0.03, "median {half}");
        assert!((tail / 0.040 - 1.0).abs() < 0.1, "p99 {tail}");
        let constant = Latency { median, p99: median };
        assert_eq!((constant.draw(&random), constant.mean()), (median, median));
    }

    #[test]
    fn a_sixteenth_of_the_partitions_moves_at_a_time_and_comes_back() {
        let moves = Moves { every: Duration::from_secs(10), lasting: Duration::from_secs(1) };
        let moving = |millis| {
            let at = Duration::from_millis(millis);
            (0_u64..160).filter(|partition| moves.is_moving(3, *partition, at)).collect::<Vec<_>>()
        };
        assert!(moving(500).is_empty());
        assert_eq!(moving(10_999).len(), 10);
        assert!(moving(11_000).is_empty());
        let servers: std::collections::HashSet<_> =
            (1..40).map(|turn| moving(turn * 10_000)[0]).collect();
        assert!(servers.len() > 8, "the moves go round: {servers:?}");
    }
}
