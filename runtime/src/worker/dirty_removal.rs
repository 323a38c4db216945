//! Deletes dirty rows whose work is done, under the ETag with which their passes began. A dirty row lists the remote copies
//! and lists of one primary that may be wrong, and a pass makes them right.

use super::{pass::FinishedDirtyRow, state::Worker};
use crate::{
    batch::{Batch, Operation},
    error::{Error, Result},
    guard::Guard,
    limits::{BATCH_OPERATIONS, saturating_u64},
    outbox::registration::record_outbox_rows,
    plan::outbox::StoredDirtyRow,
};

/// The result of deleting several dirty rows.
#[derive(Debug, Default)]
pub(super) struct DirtyRowRemovalCounts {
    pub(super) deleted: u64,
    /// The number of rows that were kept because they record newer work.
    pub(super) raced: u64,
}

impl Worker {
    /// Deletes dirty rows of one partition in transactions, or one by one if a transaction fails because a row
    /// records newer work.
    pub(super) async fn remove_dirty_rows(
        &self,
        table: &str,
        finished: Vec<FinishedDirtyRow>,
    ) -> Result<DirtyRowRemovalCounts> {
        let mut removed = DirtyRowRemovalCounts::default();
        for finished in finished.chunks(BATCH_OPERATIONS) {
            // A single request for up to a hundred rows, unless newer work is among them.
            if finished.len() > 1 && self.remove_together(table, finished).await? {
                removed.deleted += saturating_u64(finished.len());
                continue;
            }
            for finished in finished {
                if self.remove_one_dirty_row(table, finished).await? {
                    removed.deleted += 1
                } else {
                    removed.raced += 1
                }
            }
        }
        Ok(removed)
    }

    /// Deletes dirty rows in one transaction. Returns `false` and deletes nothing if one of them has changed or is
    /// gone.
    async fn remove_together(&self, table: &str, finished: &[FinishedDirtyRow]) -> Result<bool> {
        let deletions = finished.iter().map(|finished| self.remove_dirty_row(&finished.dirty));
        let deletions = deletions.collect::<Result<Vec<_>>>()?;
        self.delete_in_transaction(table, &deletions, Error::is_row_changed_or_gone).await
    }

    /// Deletes one dirty row. Returns `false` and keeps the row if it records newer work.
    async fn remove_one_dirty_row(&self, table: &str, finished: &FinishedDirtyRow) -> Result<bool> {
        match self
            .store()
            .apply(&Batch::single(table, self.remove_dirty_row(&finished.dirty)?)?)
            .await
        {
            Ok(_) => Ok(true),
            // A newer commit merged addresses into the row.
            Err(error) if error.is_precondition_failed() => Ok(false),
            Err(error) if error.is_not_found() => {
                // Another actor deleted the row before this pass wrote. This pass may have written older
                // content than that actor saw, so record the work again.
                if finished.has_written && self.outbox().guards.is_guard_enabled(Guard::PutBack) {
                    self.record_outbox_row_again(table, finished.dirty.restore_operation()?)
                        .await?;
                    return Ok(false);
                }
                // Another actor deleted the row, and this pass wrote nothing: the work is done.
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    fn remove_dirty_row(&self, dirty: &StoredDirtyRow) -> Result<Operation> {
        // A newer commit merges into the dirty row. Deleting the merged version would lose its work.
        let seen = self.outbox().guards.condition_if_guarded(Guard::DirtyVersion, dirty.row.etag());
        Operation::delete(dirty.row.partition_key(), dirty.row.row_key(), seen)
    }

    /// Writes an outbox row again that was deleted or moved to the poison table, together with the partition's
    /// fence. Its work is then done again. If the operation is an insertion and the row exists, the existing row
    /// is kept.
    pub(super) async fn record_outbox_row_again(
        &self,
        table: &str,
        operation: Operation,
    ) -> Result<()> {
        match record_outbox_rows(self.outbox(), table, vec![operation]).await {
            Err(error) if !error.row_exists() => Err(error),
            _ => Ok(()),
        }
    }
}
