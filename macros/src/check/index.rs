//! Rules for indexes and lists.

use std::collections::HashMap;

use crate::{
    errors::Errors,
    model::Entity,
    names::{self, Case},
};

/// Names whose methods the trait has.
const RESERVED: [&str; 3] = ["primary", "scan", "patch"];

/// Rows of one entity: it and its copies are written in one entity group transaction.
const OPERATIONS: usize = 100;

/// Every index has a path builder of its own.
pub(super) fn names(entity: &Entity, errors: &mut Errors) {
    let mut seen: HashMap<String, String> = HashMap::new();
    for family in entity.families.iter().filter(|family| !family.is_primary()) {
        let name = names::unraw(&family.name);
        let method = Case::Snake.apply(&name);
        if RESERVED.contains(&method.as_str()) {
            let message = format!("an index cannot be named `{name}`: `{method}()` is taken");
            errors.at(family.name.span(), message);
        } else if let Some(first) = seen.insert(method.clone(), name.clone()) {
            let message = format!("indexes `{first}` and `{name}` both have the path `{method}()`");
            errors.at(family.name.span(), message);
        }
    }
}

/// The primary and its copies fit into one transaction.
pub(super) fn count(entity: &Entity, errors: &mut Errors) {
    let rows = entity.families.len();
    if let (true, Some(family)) = (rows > OPERATIONS, entity.families.last()) {
        let message = format!(
            "the entity has {rows} rows with its copies, a transaction has at most {OPERATIONS} operations"
        );
        errors.at(family.name.span(), message);
    }
}
