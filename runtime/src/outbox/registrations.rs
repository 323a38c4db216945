//! The registrations of a client: for which partitions its fence stands and its marker is in the
//! directory.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{sync::OnceCell, time::Instant};

use crate::plan::outbox::Fence;

/// Registrations that are kept without asking whether they are still in use.
const KEPT: usize = 4096;

/// The registrations of a client, by table and partition.
#[derive(Debug, Default)]
pub(crate) struct Registrations(Mutex<HashMap<(String, String), Registration>>);

/// A registration, and when it was last used.
#[derive(Debug)]
struct Registration {
    slot: Arc<Slot>,
    used: Instant,
}

/// The state of one registration: tasks that need it at once wait for the one that makes it.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    /// The fence of a registration that is complete: the fence stands and its marker is written.
    pub(crate) made: OnceCell<Fence>,
    /// A fence that stands, but whose marker could not be written: the next attempt goes on with it,
    /// so that a directory that is down does not fill partitions with fences.
    unmarked: Mutex<Option<Fence>>,
}

impl Slot {
    /// Returns the fence that an earlier attempt inserted without getting its marker written.
    pub(crate) fn unmarked(&self) -> Option<Fence> {
        self.unmarked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps a fence that stands for the next attempt to write its marker.
    pub(crate) fn keep_unmarked(&self, fence: &Fence) {
        *self.unmarked.lock().unwrap_or_else(PoisonError::into_inner) = Some(fence.clone());
    }
}

impl Registrations {
    /// Returns whether the client has a complete registration for a partition.
    pub(crate) fn has(&self, table: &str, partition_key: &str) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&key(table, partition_key))
            .is_some_and(|registration| registration.slot.made.initialized())
    }

    /// Returns the slot of a partition, and marks it as used now. Slots that were not used for
    /// `lease` are forgotten once there are many.
    pub(crate) fn slot(&self, table: &str, partition_key: &str, lease: Duration) -> Arc<Slot> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if all.len() > KEPT {
            // A registration that is forgotten while its fence stands is closed by a worker.
            all.retain(|_, registration| now.duration_since(registration.used) < lease);
        }
        let registration = all
            .entry(key(table, partition_key))
            .or_insert_with(|| Registration { slot: Arc::default(), used: now });
        registration.used = now;
        registration.slot.clone()
    }

    /// Forgets a registration whose fence was deleted; a newer one of that partition stays.
    pub(crate) fn forget(&self, table: &str, closed: &Fence) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = key(table, &closed.partition_key);
        if all.get(&key).is_some_and(|registration| registration.slot.made.get() == Some(closed)) {
            all.remove(&key);
        }
    }
}

/// Tables whose names differ in case alone are one table for the service.
fn key(table: &str, partition_key: &str) -> (String, String) {
    (table.to_ascii_lowercase(), partition_key.to_owned())
}
