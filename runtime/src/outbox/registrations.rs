//! The client's registrations: for each partition, the fence row that the client inserted there, and whether its
//! directory marker exists.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::{
    address::Names,
    plan::outbox::Fence,
    single_flight::{FlightSlot, SingleFlight},
};

/// The number of registrations that are kept even if they are not in use.
const MAX_IDLE_REGISTRATIONS: usize = 4096;

/// The registrations of a client, by table and PartitionKey. Tasks that need the registration of the same partition
/// wait for the task that makes it.
#[derive(Debug)]
pub(crate) struct Registrations {
    slots: SingleFlight<(String, String), Registration>,
    /// The store's rule for the case of table names.
    names: Names,
}

/// The registration of one partition as far as this client knows. It lets workers find the partition.
#[derive(Debug, Default)]
pub(crate) struct Registration {
    /// The fence of a complete registration, whose fence row and marker exist.
    complete: Option<Fence>,
    /// A fence row that exists without its marker, because the marker could not be written. The next attempt uses
    /// this fence, which keeps a partition from collecting fences while the directory table does not answer.
    pub(crate) without_marker: Option<Fence>,
    last_used: Option<Instant>,
}

impl Registration {
    /// Returns the fence of a complete registration, or `None` before its marker is written.
    pub(crate) fn complete_fence(&self) -> Option<&Fence> {
        self.complete.as_ref()
    }

    /// Records the fence of a registration whose fence row and directory marker exist, unless another task has
    /// recorded one.
    pub(crate) fn set_complete(&mut self, fence: &Fence) {
        self.complete.get_or_insert_with(|| fence.clone());
    }
}

impl Registrations {
    /// Creates the registrations of a client that has not registered for any partition.
    pub(crate) fn new(names: Names) -> Self {
        Self { slots: SingleFlight::default(), names }
    }

    /// Returns the key of a partition in the cache. Different spellings of one table have the same key.
    fn cache_key(&self, table: &str, partition_key: &str) -> (String, String) {
        (self.names.name(table).form().into_owned(), partition_key.to_owned())
    }

    /// Returns whether the client has a complete registration for a partition.
    pub(crate) fn is_registered(&self, table: &str, partition_key: &str) -> bool {
        let slots = self.slots.lock_slots();
        let slot = slots.get(&self.cache_key(table, partition_key));
        slot.is_some_and(|slot| slot.lock_state().complete.is_some())
    }

    /// Returns the slot of a partition, which contains the partition's registration and a lock. When there are many
    /// slots, forgets those that were not used for `lease`.
    pub(crate) fn flight_slot_of_partition(
        &self,
        table: &str,
        partition_key: &str,
        lease: Duration,
    ) -> Arc<FlightSlot<Registration>> {
        let now = Instant::now();
        // A worker closes the fence of a forgotten registration, so nothing has to be undone.
        let is_in_use = |registration: &Registration, _| {
            registration.last_used.is_some_and(|used| now.duration_since(used) < lease)
        };
        let slot = self.slots.flight_slot_of_key(
            self.cache_key(table, partition_key),
            MAX_IDLE_REGISTRATIONS + 1,
            is_in_use,
        );
        slot.lock_state().last_used = Some(now);
        slot
    }

    /// Forgets a registration whose fence a worker deleted, but not a newer registration of the partition.
    pub(crate) fn forget_registration(&self, table: &str, closed: &Fence) {
        let mut slots = self.slots.lock_slots();
        let key = self.cache_key(table, &closed.partition_key);
        // Another task may have already registered again, with a different fence.
        let is_closed = |slot: &Arc<FlightSlot<Registration>>| {
            slot.lock_state().complete_fence() == Some(closed)
        };
        if slots.get(&key).is_some_and(is_closed) {
            slots.remove(&key);
        }
    }
}
