//! Reads and deletes directory markers, which contain the partitions that may have open work.

use std::collections::BTreeMap;

use super::{failure::ignore_missing, state::Worker};
use crate::{
    batch::{Batch, Condition, Operation},
    error::{Error, Result},
    guard::Guard,
    limits::BATCH_OPERATIONS,
    plan::outbox::{DIRECTORY, DirectoryMarker, directory_markers_filter},
    store::pages::StoredRowPages,
    table::Client,
};

/// Directory markers, by table and PartitionKey.
pub(super) type MarkersByPartition = BTreeMap<(String, String), Vec<DirectoryMarker>>;

/// One page of directory markers.
#[derive(Debug, Default)]
pub(super) struct DirectoryPage {
    pub(super) markers: MarkersByPartition,
    /// The number of markers that do not contain their partition, or whose keys differ from those of the
    /// partition's own marker. A worker ignores them.
    pub(super) damaged: u64,
}

/// The pages of the directory, in reading order.
pub(super) struct DirectoryPages<'c> {
    client: &'c Client,
    pages: StoredRowPages<'c>,
}

impl<'c> DirectoryPages<'c> {
    /// Begins with the first page. A missing directory table counts as empty.
    pub(super) fn from_start(client: &'c Client) -> Self {
        // The table is created by the first writer that registers.
        let pages = client.store().pages(DIRECTORY, directory_markers_filter());
        Self { client, pages: pages.empty_without_table() }
    }

    /// Reads the next page. Returns `None` after the last one.
    pub(super) async fn next_page(&mut self) -> Result<Option<DirectoryPage>> {
        let Some(page) = self.pages.next_page().await? else { return Ok(None) };
        let guards = self.client.outbox().guards;
        let (mut markers, mut damaged) = (MarkersByPartition::new(), 0);
        for row in &page.rows {
            // A marker with the wrong keys would let its writer remove another partition's marker from the
            // directory.
            let is_own = |marker: &DirectoryMarker| {
                marker.has_expected_keys() || !guards.is_guard_enabled(Guard::OwnMarker)
            };
            let marker = row.as_ref().ok().and_then(|row| DirectoryMarker::from_row(row).ok());
            let Some(marker) = marker.filter(is_own) else {
                damaged += 1;
                continue;
            };
            let key = (marker.table.clone(), marker.partition_key.clone());
            markers.entry(key).or_default().push(marker);
        }
        Ok(Some(DirectoryPage { markers, damaged }))
    }

    /// Returns whether there is no further page, after the last one, a missing table or an error.
    pub(super) const fn is_over(&self) -> bool {
        self.pages.is_over()
    }
}

impl Worker {
    /// Deletes directory markers, given by PartitionKey and RowKey, in transactions of 100.
    pub(super) async fn delete_markers(&self, markers: Vec<(String, String)>) -> Result<()> {
        // A shard is one partition of the directory, and a transaction is limited to one partition.
        let mut shards: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (shard, row_key) in markers {
            shards.entry(shard).or_default().push(row_key);
        }
        for (shard, row_keys) in shards {
            for row_keys in row_keys.chunks(BATCH_OPERATIONS) {
                self.delete_markers_together(&shard, row_keys).await?;
            }
        }
        Ok(())
    }

    async fn delete_markers_together(&self, shard: &str, row_keys: &[String]) -> Result<()> {
        // Needs no condition: a marker is never written again, and its fence is gone.
        let delete = |row_key: &String| Operation::delete(shard, row_key, Condition::Any);
        let deletions = row_keys.iter().map(delete).collect::<Result<_>>()?;
        self.delete_rows_of_partition(DIRECTORY, deletions, Error::is_not_found).await.map(drop)
    }

    /// Deletes rows of one partition in one transaction. If it fails because a row was deleted or rewritten in the
    /// meantime, deletes the rows one by one. `is_raced` recognises such an error. Returns `false` if a rewritten row
    /// is left.
    pub(super) async fn delete_rows_of_partition(
        &self,
        table: &str,
        deletions: Vec<Operation>,
        is_raced: fn(&Error) -> bool,
    ) -> Result<bool> {
        if self.delete_in_transaction(table, &deletions, is_raced).await? {
            return Ok(true);
        }
        let mut is_all_gone = true;
        for deletion in deletions {
            match self.store().apply(&Batch::single(table, deletion)?).await {
                Err(error) if error.is_precondition_failed() => is_all_gone = false,
                answer => ignore_missing(answer)?,
            }
        }
        Ok(is_all_gone)
    }

    /// Deletes rows of one partition in one transaction. Returns `false` and deletes nothing if one of them was
    /// deleted or rewritten in the meantime. `is_raced` recognises this from the error.
    pub(super) async fn delete_in_transaction(
        &self,
        table: &str,
        deletions: &[Operation],
        is_raced: fn(&Error) -> bool,
    ) -> Result<bool> {
        let mut batch = Batch::new(table);
        for deletion in deletions {
            batch.push(deletion.clone())?;
        }
        match self.store().apply(&batch).await {
            Ok(_) => Ok(true),
            Err(error) if is_raced(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
