//! Fences and markers: how a worker finds the partitions with open work.
//!
//! A fence stands in the partition, its marker in the directory. Every transaction that leaves open
//! work writes its fence; the marker is older than the first of them, and outlives the fence.

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

/// The table of the markers.
pub(crate) const DIRECTORY: &str = "EntableDirectory";

/// Partitions that the directory is spread over.
pub(crate) const SHARDS: u32 = 16;

/// One registration of one process for one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fence {
    pub(crate) partition_key: String,
    /// The registration: never used twice.
    pub(crate) id: String,
    /// The PartitionKey of its marker.
    pub(crate) shard: String,
    /// The RowKey of its marker.
    pub(crate) marker: String,
}

impl Fence {
    /// A fence that is to be put up at that time.
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

    /// The fence of that row.
    pub(crate) fn of(row: &Row) -> Result<Self> {
        let id = row.row_key().strip_prefix(FENCE).unwrap_or_default().to_owned();
        Ok(Self {
            partition_key: row.partition_key().to_owned(),
            id,
            shard: text(row, "Shard")?.to_owned(),
            marker: text(row, "Marker")?.to_owned(),
        })
    }

    /// Its RowKey.
    pub(crate) fn row_key(&self) -> String {
        [FENCE, &self.id].concat()
    }

    /// What puts it up.
    pub(crate) fn raised(&self) -> Result<Operation> {
        let mut row = Row::build(&self.partition_key, &self.row_key());
        row.put(TYPE_NAME, ValueRef::String("entable.fence"));
        row.put(FORMAT_NAME, ValueRef::Int32(FORMAT));
        row.put("Shard", ValueRef::String(&self.shard));
        row.put("Marker", ValueRef::String(&self.marker));
        row.finish().map(Operation::insert)
    }

    /// What moves its version in a transaction, and fails where it was taken down.
    pub(crate) fn touched(&self, beat: i64) -> Result<Operation> {
        let mut row = Row::build(&self.partition_key, &self.row_key());
        row.put("Beat", ValueRef::Int64(beat));
        Ok(Operation::merge(row.finish()?, Condition::Any))
    }

    /// What takes it down, if it stands as it was seen.
    pub(crate) fn lowered(&self, seen: Condition) -> Result<Operation> {
        Operation::delete(&self.partition_key, &self.row_key(), seen)
    }

    /// What puts its marker into the directory.
    pub(crate) fn marked(&self, table: &str) -> Result<Operation> {
        let mut row = Row::build(&self.shard, &self.marker);
        row.put(TYPE_NAME, ValueRef::String("entable.marker"));
        row.put(FORMAT_NAME, ValueRef::Int32(FORMAT));
        row.put("Table", ValueRef::String(table));
        row.put("Partition", ValueRef::String(&self.partition_key));
        row.put("Registration", ValueRef::String(&self.id));
        row.finish().map(Operation::insert)
    }
}

/// An entry of the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Marker {
    pub(crate) table: String,
    pub(crate) partition_key: String,
    pub(crate) id: String,
    pub(crate) shard: String,
    pub(crate) row_key: String,
}

impl Marker {
    /// The marker of that row of the directory.
    pub(crate) fn of(row: &Row) -> Result<Self> {
        Ok(Self {
            table: text(row, "Table")?.to_owned(),
            partition_key: text(row, "Partition")?.to_owned(),
            id: text(row, "Registration")?.to_owned(),
            shard: row.partition_key().to_owned(),
            row_key: row.row_key().to_owned(),
        })
    }
}

/// The markers in all shards, however many there are: of formats that this program knows.
pub(crate) fn all_markers() -> Filter {
    let (first, after) = (FORMAT.to_string(), (FORMAT + 1).to_string());
    Filter::ge("PartitionKey", first) & Filter::lt("PartitionKey", after)
}

/// A property that has to be text.
pub(super) fn text<'r>(row: &'r Row, name: &str) -> Result<&'r str> {
    match row.get(name)? {
        Some(ValueRef::String(text)) => Ok(text),
        _ => {
            let message = "a row of the outbox lacks a text";
            let error = Error::new(ErrorKind::Decode, message).in_property(name);
            Err(error.at_keys(row.partition_key(), row.row_key()))
        }
    }
}
