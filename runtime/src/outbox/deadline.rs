//! The deadline of remote writes, which each client enforces on itself: a remote copy is written within
//! a flight of the read or commit of its primary, or not at all. No other rule depends on time.

use std::{future::Future, time::Duration};

use tokio::time::{Instant, timeout};

use super::options::{OutboxOptions, SERVER_LIMIT};
use crate::{
    batch::{Operation, Written},
    entity::CopyFamily,
    error::{Error, ErrorKind, Result},
    plan::StoredAs,
    store::{Store, sealing::plan::Placed},
};

/// The last moment at which a request to another partition may begin, as a consequence of one read
/// or commit of a primary.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteDeadline {
    until: Instant,
    request_timeout: Duration,
}

impl WriteDeadline {
    /// Starts the time of a flight. To be called before the primary is read or committed.
    pub(crate) fn start(options: &OutboxOptions) -> Self {
        // A request that begins at the deadline may run for its timeout, and the service may go on
        // with it after that.
        let slack = options.request_timeout.saturating_add(SERVER_LIMIT);
        Self {
            until: Instant::now() + options.flight.saturating_sub(slack),
            request_timeout: options.request_timeout,
        }
    }

    /// Seals and writes one remote copy; fails with `Contended` after the deadline.
    pub(crate) async fn write(
        self,
        store: &Store,
        table: &str,
        kinds: CopyFamily,
        operation: Operation,
    ) -> Result<Written> {
        let home = StoredAs::Entity(kinds.schema, kinds.copy);
        let request = store.write_one(table, Placed::new(operation, home));
        self.run(request).await.map_err(|error| error.in_table(table))
    }

    /// Sends a request to another partition. Fails with `Contended` after the deadline, and with
    /// `Ambiguous` if the request takes longer than the request timeout.
    pub(crate) async fn run<T>(self, request: impl Future<Output = Result<T>>) -> Result<T> {
        if Instant::now() >= self.until {
            let message =
                "the row may not be written any more: too long since its primary was read";
            return Err(Error::new(ErrorKind::Contended, message));
        }
        // The timeout drops the request, so that no layer below sends it again after the deadline.
        match timeout(self.request_timeout, request).await {
            Ok(answer) => answer,
            Err(_) => {
                let message = "the request took too long; whether it was carried out is unknown";
                Err(Error::new(ErrorKind::Ambiguous, message))
            }
        }
    }
}
