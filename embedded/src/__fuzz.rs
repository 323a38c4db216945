//! What the fuzz target of rows and layouts calls.

use std::sync::Arc;

use entable_core::row::Row;

use crate::{
    dictionary::Dictionary,
    row_encoder::RowEncoder,
    row_layout::RowLayout,
    stored_row::{StoredRow, TableSeed},
};

/// Reads a row by a layout, both without their checksums. Returns `None` if one is damaged, or if they do not fit.
pub fn read_by_layout(layout: &[u8], address: &[u8], row: &[u8]) -> Option<Row> {
    let (layout, _) = RowLayout::decode_body(0, layout)?;
    StoredRow::open_checked(Some(&layout), address, row)?.to_row().ok()
}

/// Encodes a row for a file without layouts, and reads it again.
pub fn store_and_read(row: &Row) -> Option<Row> {
    let (table, address) = (TableSeed::of_table(1), row.sort_key());
    let mut layouts = Arc::new(Dictionary::default());
    let value = RowEncoder::new(table, "Staff", &mut layouts).encode(&address, row).to_vec();
    StoredRow::open(table, &layouts, &address, &value).and_then(|row| row.to_row()).ok()
}
