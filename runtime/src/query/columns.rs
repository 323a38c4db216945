//! Chooses the properties that a read requests for the reader and for the library.

use crate::{
    entity::{Schema, set::Members},
    key::RowFamily,
    plan::outbox::OWNER_PROPERTIES,
};

/// The properties that every read requests: the keys and the Timestamp.
pub(crate) const SYSTEM: [&str; 3] = ["PartitionKey", "RowKey", "Timestamp"];

/// Returns `columns` together with the system properties and the properties that hold a row's type and
/// expiry. Each name occurs once.
pub(crate) fn columns_with_system(
    columns: Vec<String>,
    schema: Option<&'static Schema>,
) -> Vec<String> {
    let marker = schema.and_then(Schema::type_property);
    let expiry = schema.into_iter().flat_map(Schema::expiry_properties);
    let system = SYSTEM.into_iter().chain(marker).chain(expiry).map(str::to_owned);
    let mut names: Vec<String> = Vec::new();
    for name in system.chain(columns) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Returns whether rows of the entity are always read with all properties, because an older version may use
/// other names or a seal covers the whole row.
pub(crate) fn is_read_whole(schema: &'static Schema) -> bool {
    schema.older.is_some() || schema.sealed
}

/// Returns whether a member of the set seals its rows. A seal is a code over all properties, which proves
/// that nobody without the keys has changed the row.
pub(crate) fn any_member_seals_rows(members: &'static Members) -> bool {
    members.schemas().iter().any(|schema| schema.sealed)
}

/// Returns whether rows of the family may be reservations. The keys of a unique remote index are reserved
/// before the entity's transaction is sent.
pub(crate) fn may_be_reserved(family: &RowFamily) -> bool {
    family.unique && family.is_remote
}

/// Returns `columns` together with the properties that name the owner of a reservation, if rows of the
/// family may be reservations.
pub(crate) fn columns_with_owner(
    mut columns: Vec<String>,
    family: Option<&'static RowFamily>,
) -> Vec<String> {
    if family.is_some_and(may_be_reserved) {
        columns.extend(OWNER_PROPERTIES.map(str::to_owned));
    }
    columns
}

/// Returns a row family of the set whose rows may be reservations, if there is one.
pub(crate) fn find_reservable_family(members: &'static Members) -> Option<&'static RowFamily> {
    let families = members.schemas().iter().flat_map(|schema| schema.families);
    families.into_iter().find(|family| may_be_reserved(family))
}

/// Returns the properties that a read of one row of `family` requests, or `None` for all. `columns` returns
/// the properties that the reader needs.
pub(crate) fn columns_of_row(
    schema: &'static Schema,
    family: &'static RowFamily,
    columns: fn(Option<&'static RowFamily>) -> Option<Vec<String>>,
) -> Option<Vec<String>> {
    if is_read_whole(schema) {
        return None;
    }
    let columns = columns(Some(family))?;
    Some(columns_with_owner(columns_with_system(columns, Some(schema)), Some(family)))
}
