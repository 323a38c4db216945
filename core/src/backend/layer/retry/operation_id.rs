//! Operation ids: a property of written rows that identifies a write whose answer was lost.

use uuid::Uuid;

use crate::{
    batch::{Batch, Operation, Verb},
    edm::ValueRef,
    error::Result,
    row::{OPERATION_ID as PROPERTY, OPERATION_ID_BYTES, Row, is_operation_id},
};

/// Twelve random bytes that all rows and all attempts of one write share.
pub(super) type OperationId = [u8; OPERATION_ID_BYTES];

/// Adds one new operation id to every written row of the batch that has room for one more property and no `OpId` of its
/// own. Returns `None` if no row qualifies.
pub(super) fn batch_with_operation_id(batch: &Batch) -> Option<(Batch, OperationId)> {
    // A UUID has 16 bytes, and 89 bits of the first 12 stay random.
    let mut id: OperationId = Uuid::new_v4().into_bytes().first_chunk().copied()?;
    // Without the highest bit no id begins as an encrypted value does, which readers would try to decrypt.
    let [first, ..] = &mut id;
    *first &= 0x7f;
    let mut copy = Batch::new(batch.table()).with_deadline(batch.deadline().cloned());
    let mut any = false;
    for operation in batch.operations() {
        let with_id = match operation.verb() {
            Verb::Delete => None,
            _ => with_operation_id(operation, id)
                .ok()
                .flatten()
                .filter(|operation| operation.row().check().is_ok()),
        };
        any |= with_id.is_some();
        // A transaction near the limit of bytes may not take the ids. It is then sent without any.
        copy.push(with_id.unwrap_or_else(|| operation.clone())).ok()?;
    }
    any.then_some((copy, id))
}

/// Returns the operation with the id in its row. Returns `None` if the row has an `OpId` of its own, which the
/// id would replace.
fn with_operation_id(operation: &Operation, id: OperationId) -> Result<Option<Operation>> {
    let row = operation.row();
    let mut builder = Row::build(row.partition_key(), row.row_key());
    let mut properties = row.properties();
    while let Some((name, value)) = properties.next()? {
        // A row that was read and is written again holds the id of an earlier write.
        if is_operation_id(name, value) {
            continue;
        }
        if name == PROPERTY.as_bytes() {
            return Ok(None);
        }
        builder.put(&String::from_utf8_lossy(name), value);
    }
    builder.put(PROPERTY, ValueRef::Binary(&id));
    let row = builder.finish()?;
    let condition = operation.condition().cloned();
    Ok(Some(match (operation.verb(), condition) {
        (Verb::Insert, _) => Operation::insert(row),
        (Verb::InsertOrReplace, _) => Operation::insert_or_replace(row),
        (Verb::InsertOrMerge, _) => Operation::insert_or_merge(row),
        (Verb::Replace, Some(condition)) => Operation::replace(row, condition),
        (Verb::Merge, Some(condition)) => Operation::merge(row, condition),
        _ => operation.clone(),
    }))
}

/// Returns whether the last write of the row had this operation id.
pub(super) fn has_operation_id(row: Option<&Row>, id: OperationId) -> Result<bool> {
    let found = row.map(|row| row.get(PROPERTY)).transpose()?.flatten();
    Ok(matches!(found, Some(ValueRef::Binary(found)) if found == id))
}
