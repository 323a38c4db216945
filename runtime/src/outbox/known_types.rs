//! The entity types that a client knows, through which it finds the type and index that an outbox row names.

use std::sync::{PoisonError, RwLock};

use crate::{
    address::{RowAt, TableName},
    entity::{CopyAndPrimaryFamily, Schema},
    guard::{ActiveGuards, Guard},
    key::table_given_primary_table,
    plan::outbox::CopyAddress,
};

/// The target of an address in an outbox row, if this client knows its type.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Named {
    /// A remote copy.
    Copy(CopyAndPrimaryFamily),
    /// A remote list of entities of this type.
    List(&'static Schema),
    /// A blob that a field of the row's primary pointed to.
    Blob,
    /// Something that this client cannot write: it does not know the type, index or list, or has no store for the blob.
    Unknown,
}

impl Named {
    /// Returns the type that derives the copy or list, or `None` for anything else.
    pub(crate) fn schema(self) -> Option<&'static Schema> {
        match self {
            Self::Copy(kinds) => Some(kinds.schema),
            Self::List(schema) => Some(schema),
            Self::Blob | Self::Unknown => None,
        }
    }
}

/// The schemas of the entity types that a client knows, newest version first. A client knows a type once it has
/// opened the type's table, registered it with a worker ([`Worker::with`](crate::Worker::with)), or planned a
/// write of an entity that needs a dirty row.
#[derive(Debug, Default)]
pub(crate) struct KnownTypes(RwLock<Vec<&'static Schema>>);

impl KnownTypes {
    /// Adds a version of a type, unless it is known.
    pub(crate) fn add_type(&self, schema: &'static Schema) {
        // Most calls add a known type and only need a read lock.
        let is_known =
            |types: &[&'static Schema]| types.iter().any(|known| known.is_of_same_struct(schema));
        if is_known(&self.0.read().unwrap_or_else(PoisonError::into_inner)) {
            return;
        }
        let mut types = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // Check again under the write lock, because another task may have added it in between.
        if !is_known(&types) {
            types.push(schema);
            // The newest version can read rows of all older ones and must be found first.
            types.sort_by_key(|schema| std::cmp::Reverse(schema.version));
        }
    }

    /// Returns what an address in an outbox row of `owner` names, with one look at the known types. An address in any
    /// table except the index's own is unknown. Otherwise, somebody who can write one table could make a worker change
    /// rows in a table that they have no access to.
    pub(crate) fn named(
        &self,
        owner: RowAt<'_>,
        address: &CopyAddress,
        guards: ActiveGuards,
    ) -> Named {
        if address.owned_blob_name(owner).is_some() {
            return Named::Blob;
        }
        let is_own = is_own_address(owner.table, address, guards);
        let found = match address.split_list() {
            Some((entity_type, list, in_blob)) => self.find_in_versions(|schema| {
                let is_it = schema.entity_type == entity_type
                    && schema.has_remote_list_named(list, in_blob, &is_own);
                is_it.then_some(Named::List(schema))
            }),
            None => address.split_index().and_then(|(entity_type, index)| {
                self.find_in_versions(|schema| {
                    let family = || schema.find_remote_copy_family(index, &is_own);
                    (schema.entity_type == entity_type).then(family).flatten().map(Named::Copy)
                })
            }),
        };
        found.unwrap_or(Named::Unknown)
    }

    /// Returns the number of known type versions.
    pub(crate) fn type_version_count(&self) -> usize {
        self.0.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns the newest known version of an entity type.
    pub(crate) fn newest_version(&self, entity_type: &str) -> Option<&'static Schema> {
        self.find_in_versions(|schema| (schema.entity_type == entity_type).then_some(schema))
    }

    /// Returns whether any known type meets a condition.
    pub(crate) fn has_type_where(&self, is_met: impl Fn(&'static Schema) -> bool) -> bool {
        self.find_in_versions(|schema| is_met(schema).then_some(())).is_some()
    }

    /// Returns the first value that `look` finds in the known versions of all types, highest versions first.
    fn find_in_versions<T>(&self, look: impl Fn(&'static Schema) -> Option<T>) -> Option<T> {
        let types = self.0.read().unwrap_or_else(PoisonError::into_inner);
        types.iter().find_map(|schema| look(schema))
    }
}

/// Returns a function that checks whether an address is in the table that an index or list declares. Without a
/// declared table, the address must be in `home`, the primary's table.
fn is_own_address<'a>(
    home: TableName<'a>,
    address: &'a CopyAddress,
    guards: ActiveGuards,
) -> impl Fn(Option<&str>) -> bool + 'a {
    move |declared| {
        // Otherwise, a forged dirty row could make a worker write into any table.
        home.sibling(&table_given_primary_table(declared, home.as_str()))
            == address.as_row_at().table
            || !guards.is_guard_enabled(Guard::OwnTable)
    }
}

#[cfg(test)]
mod tests {
    use std::any::TypeId;

    use super::KnownTypes;
    use crate::entity::Schema;

    /// Returns a schema with its own address.
    fn schema(type_id: fn() -> TypeId) -> &'static Schema {
        Box::leak(Box::new(Schema { type_id, ..Schema::NONE }))
    }

    #[test]
    fn a_type_is_added_once_wherever_its_schema_lies_in_memory() {
        let known = KnownTypes::default();
        for type_id in [TypeId::of::<u8>, TypeId::of::<u16>, TypeId::of::<u8>] {
            known.add_type(schema(type_id));
        }
        assert_eq!(known.type_version_count(), 2);
    }
}
