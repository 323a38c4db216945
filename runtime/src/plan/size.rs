//! Computes the size of an operation after encryption, before any key is fetched.

use std::borrow::Cow;

use super::planned::StoredAs;
use crate::{
    batch::{Operation, Verb},
    edm::ValueRef,
    entity::{SEAL, Schema, SealedColumn},
    error::Result,
    key::RowFamily,
    limits,
    row::{Row, RowBuilder},
};

/// The number of bytes in the seal, the property that authenticates all others.
const SEAL_BYTES: usize = 43;

/// Returns the operation with a row as large as the stored one, in which zeros replace the encrypted values, their
/// blind tokens, and the seal. Returns a deletion, and an operation on a type without encryption, unchanged.
/// `family` is the family of a copy, or `None` for a primary.
pub(super) fn operation_with_stored_size<'o>(
    operation: &'o Operation,
    schema: Option<&'static Schema>,
    family: Option<&'static RowFamily>,
) -> Result<Cow<'o, Operation>> {
    let Some(schema) = schema.filter(|schema| schema.is_sealed()) else {
        return Ok(Cow::Borrowed(operation));
    };
    if operation.verb() == Verb::Delete {
        return Ok(Cow::Borrowed(operation));
    }
    let stored_as = match family {
        Some(family) => StoredAs::storage_kind_of_copy(Some(schema), family),
        None => StoredAs::storage_kind_of_primary(Some(schema))?,
    };
    let row = with_stored_size(operation.row(), operation.verb(), stored_as)?;
    Ok(Cow::Owned(operation.with_row(row)))
}

/// Returns an upper bound of the bytes that an insert of a copy takes in a request, once it is encrypted.
pub(super) fn stored_bytes_of_copy(
    row: &Row,
    schema: Option<&'static Schema>,
    family: &'static RowFamily,
) -> Result<usize> {
    if !schema.is_some_and(Schema::is_sealed) {
        // Before the row is cloned, so that the row and its clones share the result of the check.
        row.check()?;
    }
    let insert = Operation::insert(row.clone());
    operation_with_stored_size(&insert, schema, Some(family))?.request_bytes()
}

/// Returns a row in which zeros of equal length replace encrypted values.
fn with_stored_size(row: &Row, verb: Verb, stored_as: StoredAs) -> Result<Row> {
    let Some((schema, family)) = stored_as.type_and_family() else { return Ok(row.clone()) };
    let columns = schema.sealed_columns();
    let mut out = Row::build(row.partition_key(), row.row_key());
    let mut properties = row.properties();
    while let Some((name, value)) = properties.next()? {
        let name = String::from_utf8_lossy(name);
        match columns.iter().find(|column| column.name == name) {
            None => out.put(&name, value),
            Some(column) => put_zeros(&mut out, column, Some(value)),
        }
    }
    for column in hidden_nulls(&columns, row, verb, family)? {
        put_zeros(&mut out, column, None);
    }
    if schema.sealed {
        out.put(SEAL, ValueRef::Binary(&[0; SEAL_BYTES]));
    }
    out.finish()
}

fn put_zeros(out: &mut RowBuilder, column: &SealedColumn, value: Option<ValueRef<'_>>) {
    // Only the length of the ciphertext matters here.
    let zeros = vec![0; stored_value_len(value, column)];
    out.put(&column.name, ValueRef::Binary(&zeros));
    if let (Some((name, chars)), Some(_)) = (&column.companion, value) {
        out.put(name, ValueRef::String(&"0".repeat(*chars as usize)));
    }
}

fn stored_value_len(value: Option<ValueRef<'_>>, column: &SealedColumn) -> usize {
    // Capped to avoid huge buffers. A value over the limit is refused anyway.
    crate::seal::sealed_len(value, column.sealed.pad as usize).min(limits::PROPERTY_BYTES + 1)
}

/// Returns the columns with `hide_none` that are `None` in the row. Each is stored as an encrypted value, so a reader
/// without the keys cannot tell it from a column with a value. Returns none unless the verb writes the whole row.
pub(crate) fn hidden_nulls<'c>(
    columns: &'c [SealedColumn],
    row: &Row,
    verb: Verb,
    family: &RowFamily,
) -> Result<Vec<&'c SealedColumn>> {
    // A merge does not change a property that it lacks. Only a whole row has absences to hide.
    let is_whole = matches!(verb, Verb::Insert | Verb::Replace | Verb::InsertOrReplace);
    let mut absent = Vec::new();
    for column in columns.iter().filter(|column| is_whole && column.sealed.hide_none) {
        if !family.leaves_out(&column.name) && row.get(&column.name)?.is_none() {
            absent.push(column);
        }
    }
    Ok(absent)
}
