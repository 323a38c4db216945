//! The entity types that a client has met: by them it understands the work that rows of the outbox name.

use std::sync::{PoisonError, RwLock};

use crate::{
    entity::{CopyFamily, Schema},
    plan::outbox::CopyAddress,
};

/// The schemas of all entity types whose tables the client has opened, the newest version first.
#[derive(Debug, Default)]
pub(crate) struct KnownTypes(RwLock<Vec<&'static Schema>>);

impl KnownTypes {
    /// Adds a type, unless it is known.
    pub(crate) fn add(&self, schema: &'static Schema) {
        let is_known =
            |types: &[&'static Schema]| types.iter().any(|known| std::ptr::eq(*known, schema));
        if is_known(&self.0.read().unwrap_or_else(PoisonError::into_inner)) {
            return;
        }
        let mut types = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if !is_known(&types) {
            types.push(schema);
            // The newest version knows how to read the older ones, so it is found first.
            types.sort_by_key(|schema| std::cmp::Reverse(schema.version));
        }
    }

    /// Returns the type and the index that a name in a dirty row means, if the type is known.
    pub(crate) fn of_copy(&self, name: &CopyAddress) -> Option<(&'static Schema, CopyFamily)> {
        let (entity_type, index) = name.split_index()?;
        self.find(|schema| {
            let kinds = schema.remote_copies_named(index)?;
            (schema.entity_type == entity_type).then_some((schema, kinds))
        })
    }

    /// Returns the type whose list a name in a dirty row means, if the type is known.
    pub(crate) fn of_list(&self, name: &CopyAddress) -> Option<&'static Schema> {
        let (entity_type, list, in_blob) = name.split_list()?;
        self.find(|schema| {
            let is_it = schema.entity_type == entity_type && schema.has_remote_list(list, in_blob);
            is_it.then_some(schema)
        })
    }

    /// Returns the newest known version of the type with that name.
    pub(crate) fn named(&self, entity_type: &str) -> Option<&'static Schema> {
        self.find(|schema| (schema.entity_type == entity_type).then_some(schema))
    }

    fn find<T>(&self, look: impl Fn(&'static Schema) -> Option<T>) -> Option<T> {
        let types = self.0.read().unwrap_or_else(PoisonError::into_inner);
        types.iter().find_map(|schema| look(schema))
    }
}
