//! Expiry markers, which are rows of the table `EntableExpiry`. Each contains a partition, an entity type and an
//! hour: rows of that type in the partition expire in that hour.

use super::{
    fence::{SHARDS, required_text, shard_number},
    hash::hash128,
    reserved_keys::{FORMAT, FORMAT_NAME, TYPE_NAME, has_known_format},
};
use crate::{
    address::Names,
    batch::{Condition, Operation},
    edm::{Ticks, ValueRef},
    error::{Error, ErrorKind, Result},
    filter::Filter,
    row::Row,
};

/// The table of expiry markers.
pub(crate) const EXPIRY: &str = "EntableExpiry";

/// The EntityType of a marker.
const MARKER: &str = "entable.expiry";

/// The number of ticks in an hour.
const HOUR: i64 = 3600 * Ticks::PER_SECOND;

/// An hour of the store's time, counted from the year 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ExpiryHour(i64);

impl ExpiryHour {
    /// Returns the hour that contains a time.
    pub(crate) const fn hour_of(time: Ticks) -> Self {
        Self(time.get().div_euclid(HOUR))
    }

    /// Returns the end of the hour, in ticks.
    pub(crate) const fn end_in_ticks(self) -> i64 {
        (self.0 + 1).saturating_mul(HOUR)
    }
}

/// A marker: rows of a type in this partition expire in this hour.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ExpiryMarker {
    pub(crate) hour: ExpiryHour,
    pub(crate) entity_type: String,
    pub(crate) table: String,
    pub(crate) partition_key: String,
}

impl ExpiryMarker {
    /// Returns the marker's RowKey, a hash of type, table and partition, on a store with this rule for table names.
    fn hash(&self, names: Names) -> String {
        let Self { entity_type, table, partition_key, .. } = self;
        hash128(&[entity_type, &names.name(table).form(), partition_key])
    }

    /// Returns the PartitionKey and RowKey of the marker on a store with this rule for table names. The hour comes
    /// first, which makes all past hours one range of keys. The shards of an hour share the load of the writers.
    fn keys(&self, shards: u32, names: Names) -> (String, String) {
        let hash = self.hash(names);
        (format!("{}_{:02}", hour_key(self.hour), shard_number(&hash, shards)), hash)
    }

    /// Returns the operation that inserts the marker into a store with this rule for table names.
    pub(crate) fn insert_operation(&self, names: Names) -> Result<Operation> {
        let (partition_key, row_key) = self.keys(SHARDS, names);
        let mut row = Row::build(&partition_key, &row_key);
        row.put(TYPE_NAME, ValueRef::String(MARKER));
        row.put(FORMAT_NAME, ValueRef::Int32(FORMAT));
        row.put("Type", ValueRef::String(&self.entity_type));
        row.put("Table", ValueRef::String(&self.table));
        row.put("Partition", ValueRef::String(&self.partition_key));
        row.finish().map(Operation::insert)
    }
}

/// A marker that was read, with its ETag.
#[derive(Debug, Clone)]
pub(crate) struct StoredExpiryMarker {
    pub(crate) marker: ExpiryMarker,
    row: Row,
}

impl StoredExpiryMarker {
    /// Reads an expiry marker. `names` is the store's rule for table names.
    ///
    /// # Errors
    ///
    /// Fails with `is_decode` if the row lacks its format, type, table or partition, has another format, or has
    /// keys that do not follow from its hour, type, table and partition. Any shard is accepted.
    pub(crate) fn from_row(row: Row, names: Names) -> Result<Self> {
        let damaged = || {
            let error =
                Error::new(ErrorKind::Decode, "a row is not an expiry marker in this format");
            error.at_keys(row.partition_key(), row.row_key())
        };
        let hour = row.partition_key().split('_').nth(1).and_then(|hour| hour.parse().ok());
        let marker = ExpiryMarker {
            hour: ExpiryHour(hour.ok_or_else(damaged)?),
            entity_type: required_text(&row, "Type")?.to_owned(),
            table: required_text(&row, "Table")?.to_owned(),
            partition_key: required_text(&row, "Partition")?.to_owned(),
        };
        // Another version may use a different number of shards, which readers do not depend on.
        let hour_key = hour_key(marker.hour);
        let is_own = row.row_key() == marker.hash(names)
            && row
                .partition_key()
                .strip_prefix(&hour_key)
                .is_some_and(|rest| rest.starts_with('_'));
        if !is_own || !has_known_format(&row)? {
            return Err(damaged());
        }
        Ok(Self { marker, row })
    }

    /// Returns PartitionKey and RowKey of the marker.
    pub(crate) fn keys(&self) -> (&str, &str) {
        self.row.keys()
    }

    /// Returns the operation that deletes the marker under the ETag that was read.
    pub(crate) fn delete_operation(&self) -> Result<Operation> {
        let (partition_key, row_key) = self.keys();
        Operation::delete(partition_key, row_key, Condition::for_etag(self.row.etag()))
    }
}

/// Returns the prefix of the PartitionKeys of an hour's markers.
fn hour_key(ExpiryHour(hour): ExpiryHour) -> String {
    // Eight digits are enough until the year 9999.
    format!("{FORMAT}_{hour:08}")
}

/// Returns the filter for the markers of all hours before `hour`.
pub(crate) fn expiry_markers_before(hour: ExpiryHour) -> Filter {
    let first = format!("{FORMAT}_");
    Filter::ge("PartitionKey", first) & Filter::lt("PartitionKey", hour_key(hour))
}

#[cfg(test)]
mod tests {
    use super::{ExpiryHour, ExpiryMarker};
    use crate::{address::Names, backend::TableCase, edm::Ticks};

    #[test]
    fn the_rule_for_names_of_tables_tells_the_key_of_a_marker() {
        let key = |table: &str, case| {
            let (entity_type, partition_key) = ("Key".to_owned(), "don".to_owned());
            let hour = ExpiryHour::hour_of(Ticks::UNIX_EPOCH);
            ExpiryMarker { hour, entity_type, table: table.to_owned(), partition_key }
                .keys(16, Names::with_case(case))
        };
        let stored = ("1_17259888_00".to_owned(), "4650f880a689ec880a92bc86f68e25ec".to_owned());
        assert_eq!(key("Sessions", TableCase::Insensitive), stored);
        assert_eq!(key("sessions", TableCase::Insensitive), stored);
        assert_eq!(key("sessions", TableCase::Sensitive), stored);
        assert_ne!(key("Sessions", TableCase::Sensitive), stored);
    }
}
