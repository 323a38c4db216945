//! The deadline of remote writes, which each client enforces itself. A remote row is written within the write
//! deadline after the read or commit of its primary, or not at all.

use std::{future::Future, sync::Arc, time::Duration};

use tokio::time::Instant;

use super::options::{OutboxOptions, SERVER_LIMIT};
use crate::{
    batch::{Batch, Deadline, Operation, Written},
    clock::Clock,
    entity::CopyAndPrimaryFamily,
    error::{Error, ErrorKind, Result},
    guard::{ActiveGuards, Guard},
    plan::StoredAs,
    store::{Store, sealing::plan::OperationToSeal},
    timers,
};

/// The latest time for starting a request to another partition, as a consequence of one read or commit of a
/// primary.
#[derive(Debug, Clone)]
pub(crate) struct WriteDeadline {
    /// The latest time for starting a request. `None` if a simulation disables [`Guard::WriteDeadline`].
    last_moment: Option<Deadline>,
    request_timeout: Duration,
    /// Whether a timer ends a request that is not answered.
    has_timer: bool,
}

impl WriteDeadline {
    /// Starts the deadline. Must be called before the primary is read or committed.
    pub(crate) fn start_deadline(
        options: &OutboxOptions,
        clock: &Arc<dyn Clock>,
        guards: ActiveGuards,
    ) -> Self {
        // A request that begins at the deadline may run until its timeout, and the service may continue with it
        // after that.
        let slack = options.request_timeout.saturating_add(SERVER_LIMIT);
        let last_moment =
            Deadline::after(options.write_deadline.saturating_sub(slack), clock.clone());
        Self {
            last_moment: guards.value_if_guarded(Guard::WriteDeadline, last_moment),
            request_timeout: options.request_timeout,
            has_timer: !options.is_exclusive,
        }
    }

    /// Returns the latest time for starting a request. A batch carries it, and the backend checks it again
    /// right before it sends the batch, because the program may have been suspended after the first check. Returns
    /// `None` only if a simulation disables [`Guard::WriteDeadline`].
    pub(crate) fn batch_deadline(&self) -> Option<&Deadline> {
        self.last_moment.as_ref()
    }

    /// Seals and writes one remote copy. After the deadline, fails with `is_contended` and sends nothing.
    pub(crate) async fn write_copy(
        &self,
        store: &Store,
        table: &str,
        kinds: CopyAndPrimaryFamily,
        operation: Operation,
    ) -> Result<Written> {
        let home = StoredAs::Entity(kinds.schema, kinds.copy);
        let placed = OperationToSeal::new(operation, home);
        let request = store.seal_and_write(table, vec![placed], self.batch_deadline());
        self.send_if_before_deadline(request)
            .await
            .and_then(Written::of_single_operation)
            .map_err(|error| error.in_table(table))
    }

    /// Writes one remote row unencrypted. After the deadline, fails with `is_contended` and sends nothing.
    pub(crate) async fn write_unencrypted(
        &self,
        store: &Store,
        table: &str,
        operation: Operation,
    ) -> Result<Written> {
        let batch = Batch::single(table, operation)?.with_deadline(self.batch_deadline().cloned());
        self.send_if_before_deadline(store.apply(&batch))
            .await
            .and_then(Written::of_single_operation)
    }

    /// Sends a request to another partition. Fails with `is_contended` after the deadline, and with `is_ambiguous` if
    /// the request takes longer than the request timeout.
    pub(crate) async fn send_if_before_deadline<T>(
        &self,
        request: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        // Checked before the request. The batch also carries the deadline, for the time that it waits below.
        self.batch_deadline().map_or(Ok(()), Deadline::check)?;
        // The timeout drops the request, which keeps layers below from repeating it after the deadline.
        let answer = if self.has_timer {
            timers::timeout(self.request_timeout, request).await
        } else {
            let until = timers::instant_after(Instant::now(), self.request_timeout);
            timers::poll_until_instant(until, request).await
        };
        // Ambiguous: the service may still carry the request out, for up to 30 s.
        answer.unwrap_or_else(|| {
            let message = "the request took too long; whether it was carried out is unknown";
            Err(Error::new(ErrorKind::Ambiguous, message))
        })
    }
}
