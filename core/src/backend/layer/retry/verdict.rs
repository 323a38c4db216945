//! Judges from the rows of a write whether it was carried out, after its answer was lost.
//!
//! An operation id in a row proves the write. Equal content proves it only for writes without a guard:
//! insert-or-replace, insert-or-merge, and replace and merge with `If-Match: *`. For an insert, a write
//! under an ETag, and a transaction that contains one, equal content proves nothing: two writers that
//! each add 1 to 30 both write 31.

use std::collections::BTreeMap;

use super::operation_id::{self, OperationId};
use crate::{
    batch::{Batch, Condition, Operation, Verb, Written},
    edm::ValueRef,
    error::{Result, Seen},
    row::{Row, is_operation_id},
};

/// The judgement of a write whose rows were read.
#[derive(Debug)]
pub(super) enum WriteVerdict {
    /// The write was carried out.
    Done(Vec<Written>),
    /// The rows satisfy the guards of the write. It can be repeated: if the first request arrives late,
    /// one of the two fails.
    Repeatable {
        /// Whether a row still has the ETag that the write expects, which proves that the write was not
        /// carried out so far.
        certain: bool,
    },
    /// The rows do not show whether the write was carried out.
    Unclear {
        seen: Seen,
        /// Whether no operation has a guard: a repeated write would overwrite the writes of others.
        unguarded: bool,
    },
}

/// The verdict of one row about its operation.
enum RowEvidence {
    /// The row is as the operation leaves it, and the operation has no condition on the ETag.
    Made,
    /// The row has the ETag that the operation expects, so the operation was not carried out so far.
    Unchanged,
    /// The row does not exist, as the insert requires. A row may have been inserted and deleted meanwhile.
    Free,
    Unclear(Seen),
}

/// Judges a write by the rows as they are now. `rows` has one item for each operation, or for each of the first ones.
pub(super) fn judge_write_from_rows(
    batch: &Batch,
    rows: &[Option<Row>],
    id: Option<OperationId>,
) -> Result<WriteVerdict> {
    let operations = || batch.operations().iter().zip(rows);
    if let Some(id) = id {
        let mut has_id = Vec::with_capacity(rows.len());
        for (_, row) in operations() {
            has_id.push(operation_id::has_operation_id(row.as_ref(), id)?);
        }
        if has_id.contains(&true) {
            let mut written = Vec::with_capacity(rows.len());
            for ((operation, row), ours) in operations().zip(has_id) {
                // The ETag of another writer is not returned: a write under that ETag would overwrite a
                // change that the caller has never seen.
                let etag = match row {
                    Some(row) if ours && has_no_later_write(operation, row)? => row.etag(),
                    _ => None,
                };
                written.push(Written::new(204, etag));
            }
            return Ok(WriteVerdict::Done(written));
        }
    }
    let (mut all_made, mut guards_hold, mut guarded, mut first) = (true, true, false, None);
    for (operation, row) in operations() {
        let has_guard = is_guarded(operation);
        guarded |= has_guard;
        match evidence_of_write(operation, row.as_ref())? {
            RowEvidence::Made => continue,
            // A transaction is all or nothing: one row that is unchanged proves that no row was
            // written.
            RowEvidence::Unchanged => return Ok(WriteVerdict::Repeatable { certain: true }),
            RowEvidence::Free => {}
            RowEvidence::Unclear(seen) => {
                guards_hold &= !has_guard;
                first.get_or_insert(seen);
            }
        }
        all_made = false;
    }
    Ok(if all_made {
        WriteVerdict::Done(operations().map(|(_, row)| written_answer(row.as_ref())).collect())
    } else if guarded && guards_hold {
        WriteVerdict::Repeatable { certain: false }
    } else {
        WriteVerdict::Unclear { seen: first.unwrap_or(Seen::Other), unguarded: !guarded }
    })
}

/// Returns whether the operation fails if another writer came first: an insert, or a write under an ETag.
fn is_guarded(operation: &Operation) -> bool {
    operation.verb() == Verb::Insert || matches!(operation.condition(), Some(Condition::Match(_)))
}

/// Compares a row that was read after a lost answer with the row that its operation expects and the
/// row that it writes. Returns whether the row shows that the write happened, did not happen, or
/// neither. Fails if the row cannot be compared.
fn evidence_of_write(operation: &Operation, row: Option<&Row>) -> Result<RowEvidence> {
    let Some(row) = row else {
        return Ok(match (operation.verb(), operation.condition()) {
            (Verb::Insert, _) => RowEvidence::Free,
            (Verb::Delete, Some(Condition::Any)) => RowEvidence::Made,
            _ => RowEvidence::Unclear(Seen::Absent),
        });
    };
    if let Some(Condition::Match(etag)) = operation.condition()
        && row.etag().as_ref() == Some(etag)
    {
        return Ok(RowEvidence::Unchanged);
    }
    if operation.verb() == Verb::Delete || !is_as_written(operation, row)? {
        return Ok(RowEvidence::Unclear(Seen::Other));
    }
    Ok(if is_guarded(operation) { RowEvidence::Unclear(Seen::Equal) } else { RowEvidence::Made })
}

/// Returns whether a row with the operation's own id shows that nobody has changed it since. A merge by
/// a writer without ids keeps the id, so only the content can show it.
fn has_no_later_write(operation: &Operation, row: &Row) -> Result<bool> {
    // The writer of a merge under an ETag knows the properties that the merge does not name, too. The
    // batch does not hold them, so a later change of one of them cannot be seen here.
    let is_partial = operation.verb() == Verb::Merge && is_guarded(operation);
    Ok(!is_partial && is_as_written(operation, row)?)
}

/// Returns whether the row contains everything that the operation writes and, after a replacement,
/// nothing else.
fn is_as_written(operation: &Operation, row: &Row) -> Result<bool> {
    let wanted = properties_of_row(operation.row())?;
    let found = properties_of_row(row)?;
    let merges = matches!(operation.verb(), Verb::Merge | Verb::InsertOrMerge);
    let has = |(name, value): (&&[u8], &ValueRef<'_>)| {
        found.get(*name).is_some_and(|other| is_same_value(*other, *value))
    };
    Ok((merges || wanted.len() == found.len()) && wanted.iter().all(has))
}

fn properties_of_row(row: &Row) -> Result<BTreeMap<&[u8], ValueRef<'_>>> {
    let mut all = BTreeMap::new();
    let mut properties = row.properties();
    while let Some((name, value)) = properties.next()? {
        // The id differs between writes of equal content, and was judged before.
        if !is_operation_id(name, value) {
            all.insert(name, value);
        }
    }
    Ok(all)
}

/// Compares stored values. Unlike `==`, a NaN equals a NaN of the same bits.
fn is_same_value(a: ValueRef<'_>, b: ValueRef<'_>) -> bool {
    match (a, b) {
        (ValueRef::Double(a), ValueRef::Double(b)) => a.to_bits() == b.to_bits() || a == b,
        (a, b) => a == b,
    }
}

/// Returns the answer for a write that was found carried out, with the ETag of the row that was
/// read. The ETag is `None` if the write deleted the row.
fn written_answer(row: Option<&Row>) -> Written {
    Written::new(204, row.and_then(Row::etag))
}
