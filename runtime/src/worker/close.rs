//! Removes an idle partition from the directory.
//!
//! Deletes the partition's fence row under the ETag that was read while the partition had no open work. A
//! commit in between changes that ETag, which keeps the partition registered. Then deletes the directory
//! marker, which is now unused.
//!
//! If a store's reads may lag, they cannot prove that there is no open work, and no partition is removed.

use super::{partition::Fences, state::Worker};
use crate::{batch::Batch, error::Result, guard::Guard, plan::outbox::DirectoryMarker};

impl Worker {
    /// Returns whether this store's reads can prove that a partition has no open work.
    pub(super) fn can_trust_store_reads(&self) -> bool {
        self.store().capabilities().strong_reads
    }

    /// Deletes the fences of an idle partition. Returns the PartitionKey and RowKey of each directory marker
    /// without a fence, for the caller to delete.
    pub(super) async fn delete_fences_of_idle_partition(
        &self,
        partition: &Fences,
        markers: &[DirectoryMarker],
    ) -> Result<Vec<(String, String)>> {
        let mut closed = Vec::new();
        if !self.can_trust_store_reads() {
            return Ok(closed);
        }
        for marker in markers {
            let mut fences = partition.fences.iter().map(|(fence, _)| &fence.id);
            let has_fence =
                fences.any(|id| *id == marker.id) || partition.damaged_fences.contains(&marker.id);
            // A worker that died between the two deletions left a marker without a fence.
            if !has_fence {
                closed.push((marker.shard.clone(), marker.row_key.clone()));
            }
        }
        if partition.may_have_open_work {
            return Ok(closed);
        }
        let lease = self.outbox().options.close_idle_after;
        for (fence, row) in &partition.fences {
            // The partition was written to within a lease. It is in use and would soon be registered
            // again.
            if !row.is_older_than(lease) {
                continue;
            }
            let seen =
                self.outbox().guards.condition_if_guarded(Guard::FenceVersion, row.row.etag());
            match self
                .store()
                .apply(&Batch::single(&partition.table, fence.delete_operation(seen)?)?)
                .await
            {
                Ok(_) => {}
                Err(error) if error.is_not_found() => {}
                // A transaction has recorded open work under this fence in the meantime.
                Err(error) if error.is_precondition_failed() => continue,
                Err(error) => return Err(error),
            }
            self.lock_memory().stats.closed += 1;
            // Delete the marker after its fence. In the other order, open work could be left where no
            // worker looks.
            closed.push((fence.shard.clone(), fence.marker.clone()));
        }
        Ok(closed)
    }
}
