//! Rules for indexes and lists.

use crate::{
    errors::Errors,
    model::{Entity, Family, FamilyKind, Part},
};

/// Rows of one entity: it and its copies are written in one entity group transaction.
const OPERATIONS: usize = 100;

/// The rows in the primary's transaction that record copies in other partitions.
const OUTBOX_ROWS: usize = 2;

/// The properties that say whose copy a row in another partition is.
const OWNER: [&str; 6] = ["Src", "SrcP", "SrcR", "SrcT", "SrcC", "SrcF"];

/// The primary and its copies fit into one transaction.
pub(super) fn count(entity: &Entity, errors: &mut Errors) {
    let within = entity.families.iter().filter(|family| !family.is_elsewhere).count();
    let recorded = if within < entity.families.len() { OUTBOX_ROWS } else { 0 };
    // A claim stands for all unique values of a transaction.
    let is_claimed = entity.families.iter().any(|family| family.is_elsewhere && family.unique);
    let rows = within + recorded + usize::from(is_claimed);
    if let (true, Some(family)) = (rows > OPERATIONS, entity.families.last()) {
        let message = format!(
            "the entity has {rows} rows with its copies, a transaction has at most {OPERATIONS} operations"
        );
        errors.at(family.name.span(), message);
    }
}

/// A copy in another partition has one possible owner, so that nobody else's copy is overwritten
/// there, and says whose it is in properties of its own.
pub(super) fn elsewhere(entity: &Entity, errors: &mut Errors) {
    let copies = entity.families.iter().filter(|family| family.kind == FamilyKind::Copy);
    let mut has_any = false;
    for family in copies.filter(|family| family.is_elsewhere && entity.has_keys()) {
        has_any = true;
        if !family.unique {
            one_owner(entity, family, errors);
        }
    }
    for field in entity.fields.iter().filter(|_| has_any) {
        if OWNER.contains(&field.property.as_str()) {
            let message = format!(
                "copies in other partitions keep their owner in the property `{}`, write `rename = \"..\"`",
                field.property
            );
            errors.at(field.property_span, message);
        }
    }
}

/// Every part of the primary's keys follows from the copy's keys.
fn one_owner(entity: &Entity, family: &Family, errors: &mut Errors) {
    let Some(primary) = entity.primary() else { return };
    let follows = |part: &Part| {
        let field = entity.fields.get(part.field);
        family.parts().any(|own| {
            own.field == part.field
                && (own.form == part.form || field.is_some_and(|field| own.is_exact(field)))
        })
    };
    let missing: Vec<String> = primary
        .parts()
        .filter(|part| !follows(part))
        .filter_map(|part| Some(format!("`{}`", entity.fields.get(part.field)?.name)))
        .collect();
    if missing.is_empty() {
        return;
    }
    let message = format!(
        "a copy in another partition needs every field of the primary's keys in its own, else another entity could overwrite it; this lacks {}: add it to `row_key`, or write `unique` if no two entities have the same key",
        missing.join(", ")
    );
    let end = family.row.text.chars().count();
    errors.at(family.row.literal.span(), family.row.fault(&(end..end), message));
}
