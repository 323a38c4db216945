//! Repairs remote findings by writing dirty rows with the primaries, as every writer does. Workers then
//! correct the copies. Repair itself writes no remote row.

use std::collections::BTreeMap;

use super::finding::{Finding, FindingKind};
use crate::{
    entity::TableEntity,
    error::Result,
    maintain::outbox_writer::{DirtyRowOperation, record_dirty_rows},
    plan::outbox::{CopyAddress, insert_or_merge_dirty_row},
    table::Table,
};

/// The most addresses that a repair adds to a dirty row, which has room for about 250. The next check finds
/// the rest.
const ADDRESSES_PER_ROW: usize = 100;

/// Writes dirty rows for the remote findings. Returns how many findings they contain.
pub(crate) async fn repair_remote<E: TableEntity>(
    table: &Table<E>,
    findings: &[Finding],
) -> Result<u64> {
    // Sorted by partition, because rows of one partition share transactions.
    let mut by_primary: BTreeMap<(&str, &str), Vec<CopyAddress>> = BTreeMap::new();
    for finding in findings.iter().filter(|finding| finding.kind != FindingKind::Contested) {
        if let (Some(address), Some(partition_key), Some(primary)) =
            (&finding.remote_address, &finding.primary_partition_key, &finding.primary)
        {
            let addresses = by_primary.entry((partition_key, primary)).or_default();
            addresses.push(CopyAddress::clone(address));
        }
    }
    let mut rows = Vec::new();
    for ((partition_key, primary), mut addresses) in by_primary {
        addresses.truncate(ADDRESSES_PER_ROW);
        // Merge into an existing dirty row, whose addresses must be kept.
        let operation = insert_or_merge_dirty_row(partition_key, primary, &addresses)?;
        rows.push(DirtyRowOperation { operation, addresses: addresses.len() });
    }
    record_dirty_rows(table, rows).await
}
