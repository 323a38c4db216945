//! The state that a client keeps for its outbox: registrations, known types, background work.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;

use super::{
    background::BackgroundTasks,
    deadline::WriteDeadline,
    expiry_markers::ExpiryMarkers,
    keyed_locks::KeyedLocks,
    known_types::{KnownTypes, Named},
    left_claims::LeftClaims,
    options::{OutboxOptions, SERVER_LIMIT},
    registrations::Registrations,
};
use crate::{
    address::RowAt,
    authentic::WorkCodes,
    clock::Clock,
    entity::{BackgroundWork, Schema},
    error::Result,
    guard::ActiveGuards,
    plan::outbox::{CopyAddress, WriterRun},
    server_clock::ServerClock,
    store::Store,
};

/// A client's store, and the state of its work in other partitions.
#[derive(Debug)]
pub(crate) struct Outbox {
    pub(crate) store: Store,
    pub(crate) options: OutboxOptions,
    pub(crate) clock: Arc<dyn Clock>,
    /// The store's time, estimated from the dates of its answers.
    pub(crate) server: Arc<ServerClock>,
    pub(crate) guards: ActiveGuards,
    /// Makes and verifies the authenticity codes of messages and moves.
    pub(crate) codes: WorkCodes,
    pub(crate) background: BackgroundTasks,
    pub(crate) locks: KeyedLocks,
    pub(crate) left_claims: Arc<LeftClaims>,
    /// The name of this writer, if the caller set one, and the current run of its program.
    pub(crate) writer: Option<WriterRun>,
    pub(crate) registrations: Registrations,
    pub(crate) expiry: ExpiryMarkers,
    pub(crate) known_types: KnownTypes,
}

/// Where writes to the entities of a query go.
#[derive(Debug, Clone)]
pub(crate) struct BulkWriteTarget {
    /// The outbox of the client that made the query.
    pub(crate) outbox: Arc<Outbox>,
    /// The table of the entities. Remote copies are in another table.
    pub(crate) table: String,
}

impl Outbox {
    /// Creates the state of a client that has not registered for any partition and knows no type.
    pub(crate) fn new(
        store: Store,
        options: OutboxOptions,
        clock: Arc<dyn Clock>,
        guards: ActiveGuards,
        codes: WorkCodes,
    ) -> Self {
        Self {
            registrations: Registrations::new(store.names()),
            options: OutboxOptions { is_exclusive: store.capabilities().exclusive, ..options },
            store,
            server: Arc::new(ServerClock::new(clock.clone())),
            clock,
            guards,
            codes,
            background: BackgroundTasks::default(),
            locks: KeyedLocks::default(),
            left_claims: Arc::default(),
            writer: None,
            expiry: ExpiryMarkers::default(),
            known_types: KnownTypes::default(),
        }
    }

    /// Does the work that follows a commit. Finishes it before returning if the options or an exclusive store require
    /// this, otherwise runs it in the background.
    pub(crate) async fn run_after_commit(
        &self,
        work: BoxFuture<'static, Result<()>>,
    ) -> BackgroundWork {
        let OutboxOptions { background: most, copies_before_answer, is_exclusive, .. } =
            self.options;
        // A store of this process alone answers quickly, and its users expect to read their own writes.
        if copies_before_answer.unwrap_or(is_exclusive) {
            self.background.run_unless_paused(most, work).await
        } else {
            self.background.begin_task(most, work)
        }
    }

    /// Returns the longest lease that this client may take on a message. Receipts are kept for one write deadline,
    /// and a handler that ran longer could repeat an effect.
    pub(crate) fn longest_lease(&self) -> Duration {
        self.options.write_deadline.saturating_sub(SERVER_LIMIT)
    }

    /// Starts the deadline of remote writes. Must be called before their primary is read or committed.
    pub(crate) fn start_deadline(&self) -> WriteDeadline {
        WriteDeadline::start_deadline(&self.options, &self.clock, self.guards)
    }

    /// Adds a known type, which lets this client's workers do the type's open work.
    pub(crate) fn add_type(&self, schema: &'static Schema) {
        self.known_types.add_type(schema);
        self.store.estimate_store_time_if_expiring([schema]);
    }

    /// Returns the number of type versions that this client knows. If it has grown, outbox rows of formerly unknown
    /// types can be worked on.
    pub(crate) fn known_type_version_count(&self) -> usize {
        self.known_types.type_version_count()
    }

    /// Returns what an address in an outbox row of `owner` names, as far as this client can write it.
    pub(crate) fn named(&self, owner: RowAt<'_>, address: &CopyAddress) -> Named {
        if address.is_in_blob_store() && !self.store.has_blobs() {
            return Named::Unknown;
        }
        self.known_types.named(owner, address, self.guards)
    }

    /// Returns a random number for a fence row's `Beat`, which makes each write change the row.
    pub(crate) fn random_fence_beat(&self) -> i64 {
        i64::from_ne_bytes(self.store.random.random_number().to_ne_bytes())
    }
}
