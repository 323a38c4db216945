//! Writing the changes of a batch, runs of new rows together.

use redb::CursorError;

use super::layout::{RowsTable, SEAL, seal};
use crate::row::Row;

/// What becomes of one address.
pub(super) struct Change {
    pub(super) key: Vec<u8>,
    /// The row to store; `None`: nothing, it is deleted.
    pub(super) row: Option<Row>,
    /// Whether it is a new row after the one of the change before, with no row between.
    pub(super) follows: bool,
}

/// Writes all changes, in order.
pub(super) fn put_all(rows: &mut RowsTable<'_>, changes: &[Change]) -> Result<(), redb::Error> {
    let mut rest = changes;
    while let Some((_, others)) = rest.split_first() {
        let more = others.iter().take_while(|change| change.follows).count();
        let (run, after) = rest.split_at(1 + more);
        let done = if more == 0 { 0 } else { put_run(rows, run)? };
        // A run ends early where rows of this very batch lie in its way.
        run.iter().skip(done).try_for_each(|change| put(rows, change))?;
        rest = after;
    }
    Ok(())
}

/// Writes rows that stand beside each other; the engine finds their place once. How many it wrote.
fn put_run(rows: &mut RowsTable<'_>, run: &[Change]) -> Result<usize, redb::Error> {
    let Some(first) = run.first() else { return Ok(0) };
    let mut cursor = rows.lower_bound_mut(std::ops::Bound::Included(&*first.key))?;
    let mut value = Vec::new();
    let mut done = 0;
    for change in run {
        let Some(row) = &change.row else { break };
        value.clear();
        value.extend_from_slice(row.as_bytes());
        value.extend_from_slice(&seal(row.as_bytes()));
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

fn put(rows: &mut RowsTable<'_>, change: &Change) -> Result<(), redb::Error> {
    let Some(row) = &change.row else {
        rows.remove(&*change.key)?;
        return Ok(());
    };
    let row = row.as_bytes();
    let mut space = rows.insert_reserve(&*change.key, row.len() + SEAL)?;
    let (bytes, end) = space.as_mut().split_at_mut(row.len());
    bytes.copy_from_slice(row);
    end.copy_from_slice(&seal(row));
    Ok(())
}
