//! Estimates the size of a row from its declaration, by the service's formula.

use crate::{
    edm::EdmType,
    entity::{ColumnSchema, Schema},
    key::RowFamily,
    limits::saturating_u64,
};

/// The assumed length of a text in UTF-16 units, and of a binary value in bytes. The type does not determine it.
const ASSUMED_LENGTH: u64 = 32;
/// The assumed length of PartitionKey and RowKey together, in UTF-16 units.
const ASSUMED_KEY_UNITS: u64 = 40;

/// Estimates the bytes that the service stores for a row of the family. Assumes 32 characters in each text, 32 bytes in
/// each binary value, and 40 characters in both keys together. Assumes one entity in a list row.
///
/// The service counts 4 bytes for the row and 8 bytes for each property, and adds the keys, names and values. Keys,
/// names and texts take 2 bytes for each UTF-16 unit. Texts and binary values take 4 bytes more. Source: "How the size
/// of an entity is calculated in Windows Azure table storage".
pub(super) fn estimate_row_bytes(schema: &Schema, family: &RowFamily) -> u64 {
    let head = 4 + 2 * ASSUMED_KEY_UNITS;
    if family.is_list() {
        // The keys of one entity.
        head + 8 + 2 * ASSUMED_KEY_UNITS
    } else {
        head + column_bytes(schema.columns, "", &|name| family.leaves_out(name))
    }
}

fn column_bytes(columns: &[ColumnSchema], prefix: &str, leaves_out: &dyn Fn(&str) -> bool) -> u64 {
    columns.iter().fold(0, |sum, column| {
        let name = [prefix, column.name].concat();
        let bytes = match column.edm {
            None => column_bytes(column.nested, &name, leaves_out),
            Some(edm) if column.stored && !leaves_out(&name) => {
                8 + 2 * saturating_u64(name.len()) + value_bytes(edm)
            }
            Some(_) => 0,
        };
        sum.saturating_add(bytes)
    })
}

const fn value_bytes(edm: EdmType) -> u64 {
    match edm {
        EdmType::String => 4 + 2 * ASSUMED_LENGTH,
        EdmType::Binary => 4 + ASSUMED_LENGTH,
        EdmType::Boolean => 1,
        EdmType::Int32 => 4,
        EdmType::Int64 | EdmType::Double | EdmType::DateTime => 8,
        EdmType::Guid => 16,
    }
}
