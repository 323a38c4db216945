//! What an operation takes when its row is sealed: sizes are known before any key is.

use std::borrow::Cow;

use super::planned::Home;
use crate::{
    batch::{Operation, Verb},
    entity::{SEAL, Schema, SealedColumn},
    error::Result,
    key::Family,
    row::{Row, RowBuilder},
};
use crate::{edm::ValueRef, limits};

/// Bytes of the property that vouches for all others.
const SEAL_BYTES: usize = 43;

/// The operation with a row of the size that it is stored in; `family`: the primary's unless told.
pub(super) fn as_stored<'o>(
    operation: &'o Operation,
    schema: Option<&'static Schema>,
    family: Option<&'static Family>,
) -> Result<Cow<'o, Operation>> {
    let Some(schema) = schema.filter(|schema| schema.is_sealed()) else {
        return Ok(Cow::Borrowed(operation));
    };
    if operation.verb() == Verb::Delete {
        return Ok(Cow::Borrowed(operation));
    }
    let home = match family {
        Some(family) => Home::copy(Some(schema), family),
        None => Home::primary(Some(schema))?,
    };
    let row = shape(operation.row(), operation.verb(), home)?;
    Ok(Cow::Owned(operation.with_row(row)))
}

fn shape(row: &Row, verb: Verb, home: Home) -> Result<Row> {
    let Some((schema, family)) = home.schema() else { return Ok(row.clone()) };
    let columns = schema.sealed_columns();
    let mut out = Row::build(row.partition_key(), row.row_key());
    let mut properties = row.properties();
    while let Some((name, value)) = properties.next()? {
        let name = String::from_utf8_lossy(name);
        match columns.iter().find(|column| column.name == name) {
            None => out.put(&name, value),
            Some(column) => put(&mut out, column, Some(value)),
        }
    }
    for column in hidden(&columns, row, verb, family)? {
        put(&mut out, column, None);
    }
    if schema.sealed {
        out.put(SEAL, ValueRef::Binary(&[0; SEAL_BYTES]));
    }
    out.finish()
}

fn put(out: &mut RowBuilder, column: &SealedColumn, value: Option<ValueRef<'_>>) {
    let zeros = vec![0; stored_len(value, column)];
    out.put(&column.name, ValueRef::Binary(&zeros));
    if let (Some((name, chars)), Some(_)) = (&column.companion, value) {
        out.put(name, ValueRef::String(&"0".repeat(*chars as usize)));
    }
}

#[cfg(feature = "encrypt")]
fn stored_len(value: Option<ValueRef<'_>>, column: &SealedColumn) -> usize {
    // More than a property holds is refused all the same.
    crate::seal::sealed_len(value, column.sealed.pad as usize).min(limits::PROPERTY_BYTES + 1)
}

#[cfg(not(feature = "encrypt"))]
fn stored_len(_: Option<ValueRef<'_>>, _: &SealedColumn) -> usize {
    limits::PROPERTY_BYTES
}

/// The columns that are absent and not to be seen to be: of a row that is written whole.
pub(crate) fn hidden<'c>(
    columns: &'c [SealedColumn],
    row: &Row,
    verb: Verb,
    family: &Family,
) -> Result<Vec<&'c SealedColumn>> {
    let is_whole = matches!(verb, Verb::Insert | Verb::Replace | Verb::InsertOrReplace);
    let mut absent = Vec::new();
    for column in columns.iter().filter(|column| is_whole && column.sealed.hide_none) {
        if !family.leaves_out(&column.name) && row.get(&column.name)?.is_none() {
            absent.push(column);
        }
    }
    Ok(absent)
}
