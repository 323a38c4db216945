//! The one bound on time that anything depends on, enforced by each client on itself: rows
//! elsewhere are written soon after their primary was read, or not at all.

use std::future::Future;

use tokio::time::{Instant, timeout};

use super::{options::SERVER_LIMIT, state::Outbox};
use crate::{
    batch::{Operation, Written},
    entity::CopyFamily,
    error::{Error, ErrorKind, Result},
    plan::StoredAs,
    store::sealing::plan::Placed,
};

/// How long rows elsewhere may be written by what was read or committed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteDeadline {
    /// A request that begins later might land too late.
    until: Instant,
}

impl WriteDeadline {
    /// The flight that begins with the read, or the commit, that is about to be sent.
    pub(crate) fn begin(outbox: &Outbox) -> Self {
        let options = &outbox.options;
        let slack = options.request_timeout.saturating_add(SERVER_LIMIT);
        Self { until: Instant::now() + options.flight.saturating_sub(slack) }
    }

    /// Writes a row elsewhere, if there is time.
    pub(crate) async fn write(
        self,
        outbox: &Outbox,
        table: &str,
        kinds: CopyFamily,
        operation: Operation,
    ) -> Result<Written> {
        let home = StoredAs::Entity(kinds.schema, kinds.copy);
        let request = outbox.store.write_one(table, Placed::new(operation, home));
        self.run(outbox, request).await.map_err(|error| error.in_table(table))
    }

    /// Carries a request to another partition out, if there is time.
    pub(crate) async fn run<T>(
        self,
        outbox: &Outbox,
        request: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        if Instant::now() >= self.until {
            let message =
                "the row may not be written any more: too long since its primary was read";
            return Err(Error::new(ErrorKind::Contended, message));
        }
        // What is given up here is never sent again by a layer below.
        match timeout(outbox.options.request_timeout, request).await {
            Ok(answer) => answer,
            Err(_) => {
                let message = "the request took too long; whether it was carried out is unknown";
                Err(Error::new(ErrorKind::Ambiguous, message))
            }
        }
    }
}
