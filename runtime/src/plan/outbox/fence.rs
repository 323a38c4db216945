//! Fences and directory markers: how a worker finds the partitions with open work.
//!
//! A fence is a row in such a partition, its marker a row of the directory table. Every transaction
//! that leaves open work writes its partition's fence. The marker is inserted before the fence and
//! deleted after it.

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

/// The registration of one partition by one process, as a row in that partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fence {
    pub(crate) partition_key: String,
    /// The id of the registration, which is never used twice.
    pub(crate) id: String,
    /// The PartitionKey of the directory marker.
    pub(crate) shard: String,
    /// The RowKey of the directory marker.
    pub(crate) marker: String,
}

impl Fence {
    /// Creates a fence for a registration that begins `now`.
    pub(crate) fn new(table: &str, partition_key: &str, id: String, now: Ticks) -> Self {
        let table = table.to_ascii_lowercase();
        let hash = hash128(&[&table, partition_key]);
        let digits = hash.get(..8).unwrap_or_default();
        let number = u32::from_str_radix(digits, 16).unwrap_or_default() % SHARDS;
        Self {
            partition_key: partition_key.to_owned(),
            shard: format!("{FORMAT}{SHARDS:02}{number:02}"),
            marker: format!("{:019}_{hash}_{id}", now.get()),
            id,
        }
    }

    /// Reads a fence.
    ///
    /// # Errors
    ///
    /// `is_decode` if the row lacks a property of a fence.
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
    pub(crate) fn insert(&self) -> Result<Operation> {
        let mut row = Row::build(&self.partition_key, &self.row_key());
        row.put(TYPE_NAME, ValueRef::String("entable.fence"));
        row.put(FORMAT_NAME, ValueRef::Int32(FORMAT));
        row.put("Shard", ValueRef::String(&self.shard));
        row.put("Marker", ValueRef::String(&self.marker));
        row.finish().map(Operation::insert)
    }

    /// Returns the operation that gives the fence a new ETag. It fails if a worker deleted the fence.
    pub(crate) fn touch(&self, beat: i64) -> Result<Operation> {
        let mut row = Row::build(&self.partition_key, &self.row_key());
        row.put("Beat", ValueRef::Int64(beat));
        Ok(Operation::merge(row.finish()?, Condition::Any))
    }

    /// Returns the operation that deletes the fence under the condition `seen` on its ETag.
    pub(crate) fn delete(&self, seen: Condition) -> Result<Operation> {
        Operation::delete(&self.partition_key, &self.row_key(), seen)
    }

    /// Returns the operation that inserts the partition's marker into the directory, the table in
    /// which workers find partitions with open work.
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

/// A row of the directory: a partition that may have open work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DirectoryMarker {
    pub(crate) table: String,
    pub(crate) partition_key: String,
    pub(crate) id: String,
    pub(crate) shard: String,
    pub(crate) row_key: String,
}

impl DirectoryMarker {
    /// Reads a row of the directory.
    ///
    /// # Errors
    ///
    /// `is_decode` if the row lacks a property of a marker.
    pub(crate) fn from_row(row: &Row) -> Result<Self> {
        Ok(Self {
            table: required_text(row, "Table")?.to_owned(),
            partition_key: required_text(row, "Partition")?.to_owned(),
            id: required_text(row, "Registration")?.to_owned(),
            shard: row.partition_key().to_owned(),
            row_key: row.row_key().to_owned(),
        })
    }
}

/// Returns the filter for directory markers of the format that this program knows.
// It does not depend on the number of shards, which another version may have changed.
pub(crate) fn directory_markers_filter() -> Filter {
    let (first, after) = (FORMAT.to_string(), (FORMAT + 1).to_string());
    Filter::ge("PartitionKey", first) & Filter::lt("PartitionKey", after)
}

/// Returns a property of an outbox row that must be a text.
///
/// # Errors
///
/// `is_decode` if the property is missing or not a String.
pub(super) fn required_text<'r>(row: &'r Row, name: &str) -> Result<&'r str> {
    match row.get(name)? {
        Some(ValueRef::String(text)) => Ok(text),
        _ => {
            let message = "a row of the outbox lacks a text";
            let error = Error::new(ErrorKind::Decode, message).in_property(name);
            Err(error.at_keys(row.partition_key(), row.row_key()))
        }
    }
}
