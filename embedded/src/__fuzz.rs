//! What the fuzz targets of rows, layouts and journals call.

use std::sync::Arc;

use entable_core::row::Row;

use crate::{
    dictionary::Dictionary,
    journal_frame::{Frame, FrameChange, FramePlace, FrameWriter},
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

/// Makes a frame of changes that nobody wrote, and of the changes that are read from it another one. Returns both, without the
/// bytes behind what can be read.
pub fn frames_of_changes(changes: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let journal = [7; 16];
    let place = FramePlace { generation: 1, sequence: 2 };
    let (mut given, mut again) = (FrameWriter::default(), FrameWriter::default());
    given.put_encoded(changes);
    let given = given.complete(&journal, place, None).to_vec();
    let mut is_whole = true;
    for change in Frame::decode(&journal, &given)?.changes() {
        match change {
            Some(FrameChange::Row { table, address, value: Some(value) }) => {
                again.put_row(table, address, value);
            }
            Some(FrameChange::Row { table, address, value: None }) => {
                again.put_deletion(table, address);
            }
            Some(FrameChange::Layout { id, bytes }) => again.put_layout(id, bytes),
            None => is_whole = false,
        }
    }
    is_whole.then(|| (given, again.complete(&journal, place, None).to_vec()))
}

/// Reads bytes as a frame. Returns the number of its changes.
pub fn read_frame(bytes: &[u8]) -> Option<usize> {
    Frame::decode(&[7; 16], bytes).map(|frame| frame.changes().count())
}
