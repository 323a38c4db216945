//! Writes the changed rows of a batch to the engine. Adjacent new rows are inserted with one search
//! instead of one search each.

use entable_core::row::Row;
use redb::CursorError;

use crate::{file_format::RowsForWrite, journal_frame::FrameWriter, row_encoder::RowEncoder};

/// Takes the changes of a table down for the journal, if there is one.
pub(crate) struct ChangeRecord<'f> {
    pub(crate) table: u64,
    pub(crate) frame: Option<&'f mut FrameWriter>,
}

impl ChangeRecord<'_> {
    fn put_row(&mut self, address: &[u8], value: &[u8]) {
        if let Some(frame) = &mut self.frame {
            frame.put_row(self.table, address, value);
        }
    }

    fn put_deletion(&mut self, address: &[u8]) {
        if let Some(frame) = &mut self.frame {
            frame.put_deletion(self.table, address);
        }
    }
}

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
    record: &mut ChangeRecord<'_>,
) -> Result<(), redb::Error> {
    let mut rest = changes;
    while let Some((_, others)) = rest.split_first() {
        let more = others.iter().take_while(|change| change.follows).count();
        let (run, after) = rest.split_at(1 + more);
        let done = if more == 0 { 0 } else { write_adjacent_rows(rows, run, encoder, record)? };
        // A run ends early if a row that this batch has written is between its rows.
        run.iter()
            .skip(done)
            .try_for_each(|change| write_one_row(rows, change, encoder, record))?;
        rest = after;
    }
    Ok(())
}

/// Writes a run of adjacent new rows with one search of the engine. Returns how many were written.
fn write_adjacent_rows(
    rows: &mut RowsForWrite<'_>,
    run: &[RowChange],
    encoder: &mut RowEncoder<'_>,
    record: &mut ChangeRecord<'_>,
) -> Result<usize, redb::Error> {
    let Some(first) = run.first() else { return Ok(0) };
    let mut cursor = rows.lower_bound_mut(std::ops::Bound::Included(&*first.key))?;
    let mut done = 0;
    for change in run {
        let Some(row) = &change.row else { break };
        let value = encoder.encode(&change.key, row);
        match cursor.insert_before(&*change.key, value) {
            Ok(()) => record.put_row(&change.key, value),
            Err(CursorError::UnorderedKey) => break,
            Err(CursorError::Storage(error)) => return Err(error.into()),
            Err(error) => return Err(redb::Error::Corrupted(error.to_string())),
        }
        done += 1;
    }
    cursor.close()?;
    Ok(done)
}

fn write_one_row(
    rows: &mut RowsForWrite<'_>,
    change: &RowChange,
    encoder: &mut RowEncoder<'_>,
    record: &mut ChangeRecord<'_>,
) -> Result<(), redb::Error> {
    match &change.row {
        Some(row) => {
            let value = encoder.encode(&change.key, row);
            rows.insert(&*change.key, value)?;
            record.put_row(&change.key, value);
        }
        None => {
            rows.remove(&*change.key)?;
            record.put_deletion(&change.key);
        }
    }
    Ok(())
}
