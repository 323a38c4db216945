//! Identifies the partition of a request by a number. Layers keep figures of partitions without their keys.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::{
    backend::{ReadRequest, ScanRequest},
    batch::Batch,
    filter::KeyBounds,
};

/// Returns the same number for a table and a PartitionKey in every process.
pub(super) fn stable_partition_hash(table: &str, partition_key: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (table, partition_key).hash(&mut hasher);
    hasher.finish()
}

/// Returns the partition of a point read.
pub(super) fn partition_of_read(request: &ReadRequest<'_>) -> u64 {
    stable_partition_hash(request.table, request.partition_key)
}

/// Returns the only partition that a query can read. Returns `None` if it can read several.
pub(super) fn partition_of_scan(request: &ScanRequest<'_>) -> Option<u64> {
    let bounds = KeyBounds::of_filter(request.filter);
    bounds.single_partition_key().map(|key| stable_partition_hash(request.table, key))
}

/// Returns the partition of a write, which all its operations share. Returns `None` if it has none.
pub(super) fn partition_of_batch(batch: &Batch) -> Option<u64> {
    let first = batch.operations().first()?;
    Some(stable_partition_hash(batch.table(), first.row().partition_key()))
}

/// Converts the number of entities or rows of one request to a floating-point number, for rates.
#[allow(clippy::cast_precision_loss, reason = "one request has at most 1,000 rows")]
pub(super) const fn count_to_f64(count: usize) -> f64 {
    count as f64
}
