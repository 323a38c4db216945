//! Takes an idle partition out of the directory.
//!
//! Deletes the partition's fence row under the ETag that was read when the partition had no open
//! work. A commit in between changes that ETag and keeps the partition registered. Then the directory
//! marker is deleted, which stands for nothing any more.
//!
//! A store whose reads lag proves nothing by showing no open work: there every partition stays.

use super::{partition::Fences, state::Worker};
use crate::{
    batch::Batch,
    error::Result,
    guard::{Guard, Mutation},
    plan::outbox::DirectoryMarker,
};

impl Worker {
    /// Returns whether this store's reads can prove that a partition has no open work.
    pub(super) fn can_trust_store_reads(&self) -> bool {
        self.store().capabilities().strong_reads
            || self.outbox().guards.has_mutation(Mutation::LaggingReadsTrusted)
    }

    /// Deletes the fences of an idle partition. Returns PartitionKey and RowKey of each directory
    /// marker without a fence, for the caller to delete.
    pub(super) async fn delete_idle_fences(
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
            // A worker that died between the two deletions left such a marker.
            let is_damaged = partition.damaged_fences.contains(&marker.id)
                && !self.outbox().guards.has_mutation(Mutation::DamagedFenceForgotten);
            let has_fence = fences.any(|id| *id == marker.id) || is_damaged;
            if !has_fence {
                closed.push((marker.shard.clone(), marker.row_key.clone()));
            }
        }
        if partition.may_have_open_work {
            return Ok(closed);
        }
        let lease = self.outbox().options.lease;
        for (fence, row) in &partition.fences {
            // Written to within a lease: the partition is in use, and would be registered again
            // soon.
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
                // A transaction recorded open work under this fence since it was read.
                Err(error) if error.is_precondition_failed() => continue,
                Err(error) => return Err(error),
            }
            self.lock_memory().stats.closed += 1;
            // The marker follows its fence: in the other order open work could be left where no
            // worker looks.
            closed.push((fence.shard.clone(), fence.marker.clone()));
        }
        Ok(closed)
    }
}
