//! Writes the changed rows of a batch to the engine. Adjacent new rows are inserted with one search
//! instead of one search each.

use entable_core::row::Row;
use redb::CursorError;

use crate::{file_format::RowsForWrite, row_encoder::RowEncoder};

/// The change of the row at one address.
pub(crate) struct RowChange {
    pub(crate) key: Vec<u8>,
    /// The row to store, or `None` to delete it.
    pub(crate) row: Option<Row>,
    /// Whether the row is new and comes directly after the row of the previous change, with no stored
    /// row between them.
    pub(crate) follows: bool,
}

impl RowChange {
    /// Returns the bytes of the row and its address.
    pub(crate) fn byte_len(&self) -> usize {
        self.key.len() + self.row.as_ref().map_or(0, Row::byte_len)
    }
}

/// Writes all changes to the engine's table, in order.
pub(crate) fn write_changes(
    rows: &mut RowsForWrite<'_>,
    changes: &[RowChange],
    encoder: &mut RowEncoder<'_>,
) -> Result<(), redb::Error> {
    let mut rest = changes;
    while let Some((_, others)) = rest.split_first() {
        let more = others.iter().take_while(|change| change.follows).count();
        let (run, after) = rest.split_at(1 + more);
        let done = if more == 0 { 0 } else { write_adjacent_rows(rows, run, encoder)? };
        // A run ends early if a row that this batch has written is between its rows.
        run.iter().skip(done).try_for_each(|change| write_one_row(rows, change, encoder))?;
        rest = after;
    }
    Ok(())
}

/// Writes a run of adjacent new rows with one search of the engine. Returns how many were written.
fn write_adjacent_rows(
    rows: &mut RowsForWrite<'_>,
    run: &[RowChange],
    encoder: &mut RowEncoder<'_>,
) -> Result<usize, redb::Error> {
    let Some(first) = run.first() else { return Ok(0) };
    let mut cursor = rows.lower_bound_mut(std::ops::Bound::Included(&*first.key))?;
    let mut done = 0;
    for change in run {
        let Some(row) = &change.row else { break };
        match cursor.insert_before(&*change.key, encoder.encode(&change.key, row)) {
            Ok(()) => done += 1,
            Err(CursorError::UnorderedKey) => break,
            Err(CursorError::Storage(error)) => return Err(error.into()),
            Err(error) => return Err(redb::Error::Corrupted(error.to_string())),
        }
    }
    cursor.close()?;
    Ok(done)
}

fn write_one_row(
    rows: &mut RowsForWrite<'_>,
    change: &RowChange,
    encoder: &mut RowEncoder<'_>,
) -> Result<(), redb::Error> {
    match &change.row {
        Some(row) => rows.insert(&*change.key, encoder.encode(&change.key, row))?,
        None => rows.remove(&*change.key)?,
    };
    Ok(())
}
