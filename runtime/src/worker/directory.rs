//! The directory: which partitions may have open work.

use std::collections::BTreeMap;

use super::state::Worker;
use crate::{
    backend::Scan,
    batch::{Batch, Condition, Operation},
    error::{Error, Result},
    limits::BATCH_OPERATIONS,
    page::Continuation,
    plan::outbox::{DIRECTORY, DirectoryMarker, directory_markers_filter},
    table::Client,
};

/// The markers of one page, by table and partition.
pub(super) type Found = BTreeMap<(String, String), Vec<DirectoryMarker>>;

/// One page of the directory.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) found: Found,
    /// Rows that do not say which partition they stand for: they hold up nothing else.
    pub(super) unread: u64,
    pub(super) next: Option<Continuation>,
}

/// Reads one page of the directory.
pub(super) async fn page(client: &Client, from: Option<&Continuation>) -> Result<Page> {
    let filter = directory_markers_filter();
    let scan = Scan { table: DIRECTORY, filter: &filter, select: None, top: None, from };
    let page = match client.store().scan(scan).await {
        Ok(page) => page,
        // Nobody has registered yet.
        Err(error) if error.is_table_missing() => return Ok(Page::default()),
        Err(error) => return Err(error),
    };
    let (mut found, mut unread) = (Found::new(), 0);
    for row in &page.rows {
        let Ok(marker) = DirectoryMarker::from_row(row) else {
            unread += 1;
            continue;
        };
        let key = (marker.table.clone(), marker.partition_key.clone());
        found.entry(key).or_default().push(marker);
    }
    Ok(Page { found, unread, next: page.next })
}

impl Worker {
    /// Takes markers out of the directory whose fences are gone: transactions of 100 for each shard.
    pub(super) async fn unmark(&self, markers: Vec<(String, String)>) -> Result<()> {
        let mut shards: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (shard, row_key) in markers {
            shards.entry(shard).or_default().push(row_key);
        }
        for (shard, row_keys) in shards {
            for row_keys in row_keys.chunks(BATCH_OPERATIONS) {
                self.unmark_together(&shard, row_keys).await?;
            }
        }
        Ok(())
    }

    async fn unmark_together(&self, shard: &str, row_keys: &[String]) -> Result<()> {
        let mut batch = Batch::new(DIRECTORY);
        for row_key in row_keys {
            batch.push(Operation::delete(shard, row_key, Condition::Any)?)?;
        }
        match self.client.store().apply(&batch).await {
            Ok(_) => return Ok(()),
            Err(error) if !is_gone(&error) => return Err(error),
            Err(_) => {}
        }
        // Another worker was first at one of them.
        for row_key in row_keys {
            let delete = Operation::delete(shard, row_key, Condition::Any)?;
            match self.client.store().apply_one(DIRECTORY, delete).await {
                Ok(_) => {}
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Whether what was to be deleted is not there.
pub(super) fn is_gone(error: &Error) -> bool {
    error.is_not_found()
}
