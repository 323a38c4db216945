//! Writes the changed rows of a batch to the engine. Adjacent new rows are inserted with one search
//! instead of one search each.

use entable_core::row::Row;
use redb::CursorError;

use crate::layout::{CHECKSUM_BYTES, RowsForWrite, row_checksum};

/// The change of the row at one address.
pub(crate) struct RowChange {
    pub(crate) key: Vec<u8>,
    /// The row to store, or `None` to delete it.
    pub(crate) row: Option<Row>,
    /// Whether the row is new and comes directly after the row of the previous change, with no stored
    /// row between them.
    pub(crate) follows: bool,
}

/// Writes all changes to the engine's table, in order.
pub(crate) fn write_changes(
    rows: &mut RowsForWrite<'_>,
    changes: &[RowChange],
) -> Result<(), redb::Error> {
    let mut rest = changes;
    while let Some((_, others)) = rest.split_first() {
        let more = others.iter().take_while(|change| change.follows).count();
        let (run, after) = rest.split_at(1 + more);
        let done = if more == 0 { 0 } else { write_adjacent_rows(rows, run)? };
        // A run ends early if a row that this batch has written is between its rows.
        run.iter().skip(done).try_for_each(|change| write_one_row(rows, change))?;
        rest = after;
    }
    Ok(())
}

/// Writes a run of adjacent new rows with one search of the engine. Returns how many were written.
fn write_adjacent_rows(
    rows: &mut RowsForWrite<'_>,
    run: &[RowChange],
) -> Result<usize, redb::Error> {
    let Some(first) = run.first() else { return Ok(0) };
    let mut cursor = rows.lower_bound_mut(std::ops::Bound::Included(&*first.key))?;
    let mut value = Vec::new();
    let mut done = 0;
    for change in run {
        let Some(row) = &change.row else { break };
        value.clear();
        value.extend_from_slice(row.as_bytes());
        value.extend_from_slice(&row_checksum(row.as_bytes()));
        match cursor.insert_before(&*change.key, &*value) {
            Ok(()) => done += 1,
            Err(CursorError::UnorderedKey) => break,
            Err(CursorError::Storage(error)) => return Err(error.into()),
            Err(error) => return Err(redb::Error::Corrupted(error.to_string())),
        }
    }
    cursor.close()?;
    Ok(done)
}

fn write_one_row(rows: &mut RowsForWrite<'_>, change: &RowChange) -> Result<(), redb::Error> {
    let Some(row) = &change.row else {
        rows.remove(&*change.key)?;
        return Ok(());
    };
    let row = row.as_bytes();
    // The row and its checksum go straight into the page, without a buffer that joins them.
    let mut space = rows.insert_reserve(&*change.key, row.len() + CHECKSUM_BYTES)?;
    let (bytes, end) = space.as_mut().split_at_mut(row.len());
    bytes.copy_from_slice(row);
    end.copy_from_slice(&row_checksum(row));
    Ok(())
}
