//! A number for a partition, by which layers keep figures of it without its keys.

use std::hash::{DefaultHasher, Hash, Hasher};

/// Returns the same number for a table and a PartitionKey in every process.
pub(super) fn partition_hash((table, partition_key): (&str, &str)) -> u64 {
    let mut hasher = DefaultHasher::new();
    (table, partition_key).hash(&mut hasher);
    hasher.finish()
}
