//! The state that a client keeps for its work in other partitions.

use std::sync::{Arc, PoisonError, RwLock};

use super::{
    background::Background,
    guard::{Guard, Guards},
    list_retry::Lanes,
    options::OutboxOptions,
    registration::Registrations,
};
use crate::{
    batch::{Batch, Operation, Written},
    clock::Clock,
    entity::{CopyFamily, Schema},
    error::{Error, ErrorKind, Result},
    plan::outbox::{CopyAddress, Fence},
    queue::ServerClock,
    random::Chance,
    store::backoff,
    table::Client,
};

/// What a client keeps for its work in other partitions.
#[derive(Debug)]
pub(crate) struct Outbox {
    pub(crate) options: OutboxOptions,
    pub(crate) clock: Arc<dyn Clock>,
    /// The store's time, as far as the client's queues have met it.
    pub(crate) server: Arc<ServerClock>,
    pub(crate) chance: Chance,
    pub(crate) guards: Guards,
    pub(crate) background: Background,
    pub(crate) lanes: Lanes,
    registrations: Registrations,
    /// The types that this client has met.
    types: RwLock<Vec<&'static Schema>>,
}

impl Outbox {
    pub(crate) fn new(
        options: OutboxOptions,
        clock: Arc<dyn Clock>,
        chance: Chance,
        guards: Guards,
    ) -> Self {
        Self {
            options,
            server: Arc::new(ServerClock::new(clock.clone())),
            clock,
            chance,
            guards,
            background: Background::default(),
            lanes: Lanes::default(),
            registrations: Registrations::default(),
            types: RwLock::default(),
        }
    }

    /// Makes a type known.
    pub(crate) fn meet(&self, schema: &'static Schema) {
        let is_known =
            |types: &[&'static Schema]| types.iter().any(|known| std::ptr::eq(*known, schema));
        if is_known(&self.types.read().unwrap_or_else(PoisonError::into_inner)) {
            return;
        }
        let mut types = self.types.write().unwrap_or_else(PoisonError::into_inner);
        if !is_known(&types) {
            types.push(schema);
            // The newest version knows how to read the older ones.
            types.sort_by_key(|schema| std::cmp::Reverse(schema.version));
        }
    }

    /// The type and the index that a name in a dirty row means, where they are known.
    pub(crate) fn known(&self, name: &CopyAddress) -> Option<(&'static Schema, CopyFamily)> {
        let (entity_type, index) = name.split()?;
        let types = self.types.read().unwrap_or_else(PoisonError::into_inner);
        types.iter().find_map(|schema| {
            let schema: &'static Schema = schema;
            let kinds = schema.remote_copies_named(index)?;
            (schema.entity_type == entity_type).then_some((schema, kinds))
        })
    }

    /// The type whose list a name in a dirty row means, where the list is known.
    pub(crate) fn known_list(&self, name: &CopyAddress) -> Option<&'static Schema> {
        let (entity_type, list, in_blob) = name.split_list()?;
        let types = self.types.read().unwrap_or_else(PoisonError::into_inner);
        types.iter().find_map(|schema| {
            let schema: &'static Schema = schema;
            let is_it = schema.entity_type == entity_type && schema.has_remote_list(list, in_blob);
            is_it.then_some(schema)
        })
    }

    /// The type of that name, in its newest version, where it is known.
    pub(crate) fn type_named(&self, entity_type: &str) -> Option<&'static Schema> {
        let types = self.types.read().unwrap_or_else(PoisonError::into_inner);
        types.iter().find(|schema| schema.entity_type == entity_type).copied()
    }

    /// The fence of the client's registration for a partition.
    pub(crate) async fn fence(
        &self,
        client: &Client,
        table: &str,
        partition_key: &str,
    ) -> Result<Fence> {
        self.registrations.fence(client, table, partition_key).await
    }

    /// Registers for many partitions, those that are not registered yet.
    pub(crate) async fn prepare(&self, client: &Client, places: Vec<(String, String)>) {
        self.registrations.prepare(client, places).await;
    }

    /// Whether this client is registered for a partition.
    pub(crate) fn is_registered(&self, table: &str, partition_key: &str) -> bool {
        self.registrations.has(table, partition_key)
    }

    /// Forgets a registration that was closed.
    pub(crate) fn closed(&self, table: &str, fence: &Fence) {
        self.registrations.forget(table, fence);
    }

    /// Records open work in one partition, under a fence as everybody does; the answers for the
    /// rows, and the fence's.
    pub(crate) async fn record(
        &self,
        client: &Client,
        table: &str,
        operations: Vec<Operation>,
    ) -> Result<Vec<Written>> {
        let Some(first) = operations.first() else { return Ok(Vec::new()) };
        let partition_key = first.row().partition_key().to_owned();
        for attempt in 0..backoff::ATTEMPTS {
            let fence = self.fence(client, table, &partition_key).await?;
            let mut batch = Batch::new(table);
            for operation in &operations {
                batch.push(operation.clone())?;
            }
            if self.guards.hold(Guard::FenceInTransaction) {
                batch.push(fence.touched(self.beat())?)?;
            }
            match client.apply(&batch).await {
                Err(error) if error.is_row_missing() => {
                    self.closed(table, &fence);
                }
                answer => return answer,
            }
            backoff::wait(client, attempt).await;
        }
        let message = "the partition's registration was closed again and again";
        Err(Error::new(ErrorKind::Contended, message).in_table(table))
    }

    /// A number for a fence to change to.
    pub(crate) fn beat(&self) -> i64 {
        i64::from_ne_bytes(self.chance.number().to_ne_bytes())
    }
}
