//! Closing: an idle partition leaves the directory.
//!
//! The fence goes first, in the version that was read beside no open work; who commits under it
//! meanwhile changes that version. Then the marker, which has nothing to stand for any more.

use super::{directory::is_gone, partition::Partition, state::Worker};
use crate::{batch::Condition, error::Result, outbox::guard::Guard, plan::outbox::DirectoryMarker};

impl Worker {
    /// Takes down what stands for no open work. Gives back the markers that have to go: PartitionKey
    /// and RowKey of each.
    pub(super) async fn close(
        &self,
        partition: &Partition,
        markers: &[DirectoryMarker],
    ) -> Result<Vec<(String, String)>> {
        let mut closed = Vec::new();
        for marker in markers {
            let mut fences = partition.fences.iter().map(|(fence, _)| &fence.id);
            if !fences.any(|id| *id == marker.id) && !partition.unread.contains(&marker.id) {
                closed.push((marker.shard.clone(), marker.row_key.clone()));
            }
        }
        if !partition.is_idle() {
            return Ok(closed);
        }
        let lease = self.client.outbox().options.lease;
        for (fence, aged) in &partition.fences {
            if aged.age.is_none_or(|age| age < lease) {
                continue;
            }
            let seen = match self.client.outbox().guards.holds(Guard::FenceVersion) {
                true => Condition::for_etag(aged.row.etag()),
                false => Condition::Any,
            };
            match self.client.store().apply_one(&partition.table, fence.delete(seen)?).await {
                Ok(_) => {}
                Err(error) if is_gone(&error) => {}
                // Something was committed under it meanwhile.
                Err(error) if error.is_precondition_failed() => continue,
                Err(error) => return Err(error),
            }
            self.memory().stats.closed += 1;
            closed.push((fence.shard.clone(), fence.marker.clone()));
        }
        Ok(closed)
    }
}
