//! Fences and directory markers, through which workers find partitions with open work.
//!
//! A fence is a row in such a partition, and its marker is a row of the directory. Every transaction that leaves
//! open work writes its partition's fence. The fence is inserted before its marker, and deleted before it.

use super::{
    hash::hash128,
    reserved_keys::{FENCE, FORMAT, FORMAT_NAME, TYPE_NAME},
};
use crate::{
    batch::{Condition, Operation},
    edm::{Ticks, ValueRef},
    error::{Error, ErrorKind, Result},
    filter::Filter,
    row::Row,
};

/// The table of the directory markers.
pub(crate) const DIRECTORY: &str = "EntableDirectory";

/// The number of partitions that the directory is spread over.
pub(crate) const SHARDS: u32 = 16;

/// A fence row: the registration of one partition by one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fence {
    pub(crate) partition_key: String,
    /// The id of the registration, which is never reused.
    pub(crate) id: String,
    /// The PartitionKey of the directory marker.
    pub(crate) shard: String,
    /// The RowKey of the directory marker.
    pub(crate) marker: String,
}

impl Fence {
    /// Creates a fence for a registration that begins at `now`.
    pub(crate) fn new(table: &str, partition_key: &str, id: String, now: Ticks) -> Self {
        let hash = partition_hash(table, partition_key);
        Self {
            partition_key: partition_key.to_owned(),
            shard: shard_of(&hash, SHARDS),
            // The time comes first, so workers read the oldest registrations first.
            marker: format!("{:019}_{hash}_{id}", now.get()),
            id,
        }
    }

    /// Returns whether the directory marker in the fence has the keys for this fence's registration in its partition of
    /// `table`. A damaged or copied fence may contain another fence's marker, which a worker must not delete.
    pub(crate) fn names_own_marker(&self, table: &str) -> bool {
        are_marker_keys([table, &self.partition_key, &self.id], &self.shard, &self.marker)
    }

    /// Reads a fence.
    ///
    /// # Errors
    ///
    /// Fails with `is_decode` if the row lacks a property of a fence.
    pub(crate) fn from_row(row: &Row) -> Result<Self> {
        let id = row.row_key().strip_prefix(FENCE).unwrap_or_default().to_owned();
        Ok(Self {
            partition_key: row.partition_key().to_owned(),
            id,
            shard: required_text(row, "Shard")?.to_owned(),
            marker: required_text(row, "Marker")?.to_owned(),
        })
    }

    /// Returns the RowKey of the fence.
    pub(crate) fn row_key(&self) -> String {
        [FENCE, &self.id].concat()
    }

    /// Returns the operation that inserts the fence.
    pub(crate) fn insert_operation(&self) -> Result<Operation> {
        let mut row = Row::build(&self.partition_key, &self.row_key());
        row.put(TYPE_NAME, ValueRef::String("entable.fence"));
        row.put(FORMAT_NAME, ValueRef::Int32(FORMAT));
        row.put("Shard", ValueRef::String(&self.shard));
        row.put("Marker", ValueRef::String(&self.marker));
        row.finish().map(Operation::insert)
    }

    /// Returns the operation that changes the fence's ETag. It fails if a worker has deleted the fence.
    pub(crate) fn touch_operation(&self, beat: i64) -> Result<Operation> {
        let mut row = Row::build(&self.partition_key, &self.row_key());
        row.put("Beat", ValueRef::Int64(beat));
        // `Any` requires the fence to exist. The merge fails once a worker has deleted it.
        Ok(Operation::merge(row.finish()?, Condition::Any))
    }

    /// Returns the operation that deletes the fence under the condition `seen` on its ETag.
    pub(crate) fn delete_operation(&self, seen: Condition) -> Result<Operation> {
        Operation::delete(&self.partition_key, &self.row_key(), seen)
    }

    /// Returns the operation that inserts the fence's directory marker, through which workers find the partition.
    pub(crate) fn insert_marker(&self, table: &str) -> Result<Operation> {
        let mut row = Row::build(&self.shard, &self.marker);
        row.put(TYPE_NAME, ValueRef::String("entable.marker"));
        row.put(FORMAT_NAME, ValueRef::Int32(FORMAT));
        row.put("Table", ValueRef::String(table));
        row.put("Partition", ValueRef::String(&self.partition_key));
        row.put("Registration", ValueRef::String(&self.id));
        row.finish().map(Operation::insert)
    }
}

/// A directory marker. It contains a partition that may have open work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DirectoryMarker {
    pub(crate) table: String,
    pub(crate) partition_key: String,
    pub(crate) id: String,
    pub(crate) shard: String,
    pub(crate) row_key: String,
}

impl DirectoryMarker {
    /// Reads a directory marker.
    ///
    /// # Errors
    ///
    /// Fails with `is_decode` if the row lacks a property of a marker.
    pub(crate) fn from_row(row: &Row) -> Result<Self> {
        Ok(Self {
            table: required_text(row, "Table")?.to_owned(),
            partition_key: required_text(row, "Partition")?.to_owned(),
            id: required_text(row, "Registration")?.to_owned(),
            shard: row.partition_key().to_owned(),
            row_key: row.row_key().to_owned(),
        })
    }

    /// Returns whether the marker has the keys for its partition and registration.
    pub(crate) fn has_expected_keys(&self) -> bool {
        are_marker_keys([&self.table, &self.partition_key, &self.id], &self.shard, &self.row_key)
    }
}

/// Returns the hash that represents a partition in directory markers.
fn partition_hash(table: &str, partition_key: &str) -> String {
    hash128(&[&table.to_ascii_lowercase(), partition_key])
}

/// Returns the directory's shard for a partition, one of `shards`.
fn shard_of(partition_hash: &str, shards: u32) -> String {
    format!("{FORMAT}{shards:02}{:02}", shard_number(partition_hash, shards))
}

/// Returns the number of a hash's shard, one of `shards`.
pub(super) fn shard_number(hash: &str, shards: u32) -> u32 {
    let digits = hash.get(..8).unwrap_or_default();
    // A damaged marker may contain 0 as the number of shards, and division by 0 must be avoided.
    let number = u32::from_str_radix(digits, 16).unwrap_or_default().checked_rem(shards);
    number.unwrap_or_default()
}

/// Returns whether these are the keys of the directory marker for a table, PartitionKey and
/// registration id.
fn are_marker_keys([table, partition_key, id]: [&str; 3], shard: &str, row_key: &str) -> bool {
    let hash = partition_hash(table, partition_key);
    // The PartitionKey contains the number of shards, because another version may use a different one.
    let digits = shard.strip_prefix(&FORMAT.to_string()).and_then(|rest| rest.get(..2));
    let shards = digits.and_then(|digits| digits.parse().ok());
    let has_own_shard = shards.is_some_and(|shards| shard_of(&hash, shards) == shard);
    let time = row_key.strip_suffix(&format!("_{hash}_{id}"));
    let is_time = |time: &str| time.len() == 19 && time.bytes().all(|digit| digit.is_ascii_digit());
    has_own_shard && time.is_some_and(is_time)
}

/// Returns the filter for directory markers in this program's format. It does not depend on the number of shards,
/// because another version may use a different one.
pub(crate) fn directory_markers_filter() -> Filter {
    let (first, after) = (FORMAT.to_string(), (FORMAT + 1).to_string());
    Filter::ge("PartitionKey", first) & Filter::lt("PartitionKey", after)
}

/// Returns a property of an outbox row that must be a String.
///
/// # Errors
///
/// Fails with `is_decode` if the property is missing or not a String.
pub(super) fn required_text<'r>(row: &'r Row, name: &str) -> Result<&'r str> {
    match row.get(name)? {
        Some(ValueRef::String(text)) => Ok(text),
        _ => {
            let message = "a row of the outbox lacks a text property";
            let error = Error::new(ErrorKind::Decode, message).in_property(name);
            Err(error.at_keys(row.partition_key(), row.row_key()))
        }
    }
}
