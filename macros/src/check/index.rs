//! Rules for indexes and lists.

use crate::{errors::Errors, model::Entity};

/// Rows of one entity: it and its copies are written in one entity group transaction.
const OPERATIONS: usize = 100;

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
