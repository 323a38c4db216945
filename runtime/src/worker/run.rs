//! Runs a worker until nothing is left that can be done now, or until it is stopped.

use std::{future::Future, pin::pin, time::Duration};

use futures_util::future::{Either, join, select};

use super::{
    state::{RoundResult, WorkSelectionByAge, Worker},
    stats::WorkerStats,
};
use crate::{error::Result, store::backoff, timers};

/// How long a stopping worker may take to give its leases back.
const GIVE_BACK_TIME: Duration = Duration::from_secs(5);

/// How long `drain` waits after a round in which work failed and there was no other progress. The wait doubles
/// with each such round.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const MOST_DOUBLINGS: u32 = 6;

impl Worker {
    /// Does all work that can be done now, even work younger than the
    /// [`grace`](crate::OutboxOptions::grace), and returns.
    ///
    /// Work that remains afterwards is waiting for its second look ([`waiting`](WorkerStats::waiting)), has types
    /// that this program does not know, or is in the poison table. Copies that wait for a second look already
    /// have the correct content.
    ///
    /// # Errors
    ///
    /// Fails with the first failure of the last round if 16 repetitions of the round brought no progress. All other
    /// work has been done by then.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let done = staff.client().worker().drain().await?;
    /// assert_eq!((done.open, done.poisoned), (0, 0));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn drain(&self) -> Result<WorkerStats> {
        // The client's own background work first, which would otherwise race with this at every copy.
        self.client.wait_for_copies().await;
        let (mut attempt, mut failures) = (0, 0_u32);
        loop {
            let round = self.run_round(WorkSelectionByAge::All).await;
            let mut round = round.unwrap_or_else(|error| {
                self.count_and_report_failure(&error);
                RoundResult::failed_round(error)
            });
            round.add_round(self.sweep_expired().await);
            round.add_round(self.drain_queues().await);
            if round.progressed > 0 {
                // Only failures: wait before the next try, so a short fault does not use up all attempts.
                if round.progressed == round.counted {
                    timers::sleep(FIRST_PAUSE * (1 << failures.min(MOST_DOUBLINGS))).await;
                    failures += 1;
                } else {
                    failures = 0
                }
                // Progress may make more work possible, so start counting attempts from zero.
                attempt = 0;
                continue;
            }
            // A race means that another actor is working. Another round sees its result.
            match round.failure {
                None if round.raced == 0 => return Ok(self.stats()),
                Some(failure) if attempt >= backoff::ATTEMPTS => return Err(failure),
                None if attempt >= backoff::ATTEMPTS => return Ok(self.stats()),
                _ => backoff::wait_before_retry(&self.store().random, attempt).await,
            }
            attempt += 1;
        }
    }

    /// Works until `stop` is ready, such as a signal, a channel or a timer. Work in progress is then dropped and
    /// done by the next worker. [`stop_timeout`](Self::stop_timeout) gives it time to finish.
    ///
    /// Failures of the backend are counted in [`stats`](Self::stats) and reported to [`on_error`](Self::on_error)
    /// immediately, and the work is tried again.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let worker = Client::memory().worker();
    /// // In a server: `tokio::signal::ctrl_c()`, or a channel.
    /// let stop = tokio::time::sleep(std::time::Duration::from_millis(20));
    /// worker.run(stop).await;
    /// assert_eq!(worker.stats().failures, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn run(&self, stop: impl Future<Output = ()>) {
        let worker = self.for_one_run();
        let rounds = async {
            while !worker.stopping.has_begun() {
                let round = worker.run_round(WorkSelectionByAge::PastGrace).await;
                let swept = worker.sweep_expired().await;
                match round {
                    Ok(round) if round.failure.is_none() && swept.failure.is_none() => {
                        worker.lock_memory().failures_in_row = 0;
                    }
                    Ok(_) => {}
                    Err(error) => worker.count_and_report_failure(&error),
                }
                worker.stopping.sleep(worker.interval).await;
            }
        };
        let work = pin!(join(rounds, worker.run_queues()));
        // Each step may be dropped safely: rows are written under conditions, and outbox rows are kept until
        // their work is done.
        let Either::Left(((), work)) = select(pin!(stop), work).await else { return };
        if let Some(time) = self.stop_time {
            worker.stopping.begin_stop(time);
            // Work that has not finished by then is dropped.
            let _ = tokio::time::timeout(time.saturating_add(GIVE_BACK_TIME), work).await;
        }
    }
}
