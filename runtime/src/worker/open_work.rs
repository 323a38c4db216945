//! Finds the tables that have open outbox work.

use std::collections::BTreeSet;

use super::{directory::DirectoryPages, partition::PartitionReader};
use crate::{error::Result, table::Client};

/// Returns the tables among `tables` that have open work, which are outbox rows that no worker has finished.
/// Reads the directory, and the partitions of these tables that are in it. Stops reading a table at its first
/// partition with open work.
pub(crate) async fn tables_with_open_work(
    client: &Client,
    tables: &[String],
) -> Result<BTreeSet<String>> {
    let names = client.store().names();
    let mut open = BTreeSet::new();
    let mut pages = DirectoryPages::from_start(client);
    while let Some(page) = pages.next_page().await? {
        for (table, partition_key) in page.markers.keys() {
            let table = tables.iter().find(|name| names.is_same_table(name, table));
            let Some(table) = table.filter(|name| !open.contains(*name)) else { continue };
            match may_have_open_work(client, table, partition_key).await {
                Ok(false) => {}
                Ok(true) => {
                    open.insert(table.clone());
                }
                // The table was dropped in the meantime.
                Err(error) if error.is_table_missing() || error.is_table_being_deleted() => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(open)
}

/// Reads the outbox rows of a partition until one of them is open work. Returns whether there is one.
async fn may_have_open_work(client: &Client, table: &str, partition_key: &str) -> Result<bool> {
    let mut reader = PartitionReader::new(client, table, partition_key);
    while let Some(chunk) = reader.next_chunk().await? {
        if chunk.may_have_open_work() {
            return Ok(true);
        }
    }
    Ok(false)
}
