//! The id of a write, as a property of the rows that it writes.

use uuid::Uuid;

use crate::{
    batch::{Batch, Operation, Verb},
    edm::ValueRef,
    error::Result,
    row::Row,
};

/// The property that holds the id.
pub(super) const NAME: &str = "OpId";

/// Twelve random bytes, the same for all rows and all attempts of one write.
pub(super) type OpId = [u8; 12];

/// The batch with a new id in every row that it writes. A row that has no room for one more
/// property goes without; `None` where no row has.
pub(super) fn stamped(batch: &Batch) -> Option<(Batch, OpId)> {
    let id: OpId = Uuid::new_v4().into_bytes().first_chunk().copied()?;
    let mut copy = Batch::new(batch.table());
    let mut any = false;
    for operation in batch.operations() {
        let with_id = match operation.verb() {
            Verb::Delete => None,
            _ => with_id(operation, id).ok().filter(|operation| operation.row().check().is_ok()),
        };
        any |= with_id.is_some();
        copy.push(with_id.unwrap_or_else(|| operation.clone())).ok()?;
    }
    any.then_some((copy, id))
}

fn with_id(operation: &Operation, id: OpId) -> Result<Operation> {
    let row = operation.row();
    let mut builder = Row::build(row.partition_key(), row.row_key());
    let mut properties = row.properties();
    while let Some((name, value)) = properties.next()? {
        let name = String::from_utf8_lossy(name);
        if name != NAME {
            builder.put(&name, value);
        }
    }
    builder.put(NAME, ValueRef::Binary(&id));
    let row = builder.finish()?;
    let condition = operation.condition().cloned();
    Ok(match (operation.verb(), condition) {
        (Verb::Insert, _) => Operation::insert(row),
        (Verb::InsertOrReplace, _) => Operation::insert_or_replace(row),
        (Verb::InsertOrMerge, _) => Operation::insert_or_merge(row),
        (Verb::Replace, Some(condition)) => Operation::replace(row, condition),
        (Verb::Merge, Some(condition)) => Operation::merge(row, condition),
        _ => operation.clone(),
    })
}

/// Whether the row was written last by the write of that id.
pub(super) fn carries(row: Option<&Row>, id: OpId) -> Result<bool> {
    let found = row.map(|row| row.get(NAME)).transpose()?.flatten();
    Ok(matches!(found, Some(ValueRef::Binary(found)) if found == id))
}
