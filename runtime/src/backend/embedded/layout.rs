//! What the file holds: the engine's tables and the bytes in them, as `docs/embedded-format.md`
//! writes them down.

use std::str::from_utf8;

use bytes::Bytes;
use redb::{Table, TableDefinition};

use crate::{edm::Ticks, key::BOUNDARY, row::Row};

/// The version of everything in this file.
pub(super) const FORMAT: u32 = 1;

/// Facts about the whole file.
pub(super) const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("entable.meta");
/// The tables: name in lower case, then [`Entry`].
pub(super) const CATALOG: TableDefinition<'_, &str, &[u8]> =
    TableDefinition::new("entable.catalog");
/// The ids of deleted tables whose rows still take space.
pub(super) const TRASH: TableDefinition<'_, u64, ()> = TableDefinition::new("entable.trash");

/// The rows of one table: [`encode_sort_key`](crate::key::encode_sort_key), then [`seal`].
pub(super) type RowTable<'a> = TableDefinition<'a, &'static [u8], &'static [u8]>;
/// The rows of one table, as the writer sees them.
pub(super) type RowsTable<'t> = Table<'t, &'static [u8], &'static [u8]>;

/// Keys of [`META`].
pub(super) mod meta {
    /// [`FORMAT`](super::FORMAT), u32.
    pub(crate) const FORMAT: &str = "format";
    /// A tick that no row written before is after, i64.
    pub(crate) const TICK: &str = "tick";
    /// The id of the next table, u64.
    pub(crate) const NEXT_TABLE: &str = "next table";
}

/// The engine's name for the rows of a table.
pub(super) fn rows_name(id: u64) -> String {
    format!("rows.{id:016x}")
}

/// One table of the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) id: u64,
    /// The name as it was created.
    pub(super) name: String,
    pub(super) created: Ticks,
}

/// The one state that a table of the catalog has.
const LIVE: u8 = 1;

impl Entry {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![LIVE];
        bytes.extend_from_slice(&self.id.to_le_bytes());
        bytes.extend_from_slice(&self.created.get().to_le_bytes());
        bytes.extend_from_slice(self.name.as_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (state, rest) = bytes.split_first()?;
        let (id, rest) = rest.split_first_chunk()?;
        let (created, name) = rest.split_first_chunk()?;
        (*state == LIVE).then_some(())?;
        Some(Self {
            id: u64::from_le_bytes(*id),
            created: Ticks::new(i64::from_le_bytes(*created))?,
            name: from_utf8(name).ok()?.to_owned(),
        })
    }
}

/// Bytes after a row's own.
pub(super) const SEAL: usize = 4;

/// The checksum that stands after a row: the engine has its own of every page, and looks at them
/// only when it repairs a file.
pub(super) fn seal(row: &[u8]) -> [u8; SEAL] {
    crc32fast::hash(row).to_le_bytes()
}

/// The row that a value holds, checked against its address, copied once; `None`: it is damaged.
pub(super) fn unseal(address: &[u8], value: &[u8]) -> Option<Row> {
    let (row, found) = value.split_last_chunk::<SEAL>()?;
    if seal(row) != *found {
        return None;
    }
    let row = Row::from_bytes(Bytes::copy_from_slice(row)).ok()?;
    is_at(address, &row).then_some(row)
}

/// Whether the row is one of that address: a page that was damaged may give it the row of another.
fn is_at(address: &[u8], row: &Row) -> bool {
    let Some((partition_key, row_key)) = row.key_bytes() else { return false };
    let Some((partition, rest)) = address.split_at_checked(partition_key.len()) else {
        return false;
    };
    let [BOUNDARY, rest @ ..] = rest else { return false };
    // Nearly all keys are without the characters that addresses spell otherwise.
    (partition == partition_key && rest == row_key) || *address == *row.sort_key()
}
