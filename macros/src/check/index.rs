//! Checks indexes and lists.

use crate::{
    errors::Errors,
    model::{Entity, RowFamily, Storage, TemplatePart},
    names,
};

/// The maximum number of operations in an entity group transaction, which an entity shares with its local copies.
const MAX_OPERATIONS: usize = 100;

/// The number of outbox rows in the primary's transaction that record pending writes of remote copies: the dirty row
/// and the fence.
const OUTBOX_ROWS: usize = 2;

/// Properties of a remote copy for its primary entity.
const OWNER_PROPERTIES: [&str; 6] = ["Src", "SrcP", "SrcR", "SrcT", "SrcC", "SrcF"];

/// Reports an entity with more rows than one transaction can write: its primary or parts, its local copies and
/// lists, and the outbox rows for its remote copies and lists.
pub(super) fn check_rows_fit_transaction(entity: &Entity, errors: &mut Errors) {
    let local = entity.families.iter().filter(|family| !family.is_remote).count();
    // The dirty row and the fence. Every transaction with open work also writes the fence.
    let outbox_rows = if local < entity.families.len() { OUTBOX_ROWS } else { 0 };
    // One claim covers all unique values of a transaction.
    let has_claim = entity.families.iter().any(|family| family.is_remote && family.unique);
    let parts = entity.wide.map_or(1, |_| entity.wide_part_count());
    let rows = local + (parts - 1) + outbox_rows + usize::from(has_claim);
    if let (true, Some(family)) = (rows > MAX_OPERATIONS, entity.families.last()) {
        let copies = if parts > 1 { "parts and copies" } else { "row and copies" };
        let message = format!(
            "the entity needs {rows} operations for its {copies}, but a transaction has at most {MAX_OPERATIONS}; remove an index, or give one a `partition_key` of its own"
        );
        errors.add_at(family.name.span(), message);
    }
}

/// Reports `except(..)` of a field that is in the copy's own keys, and `only(..)` or `except(..)` of a field that
/// no row stores.
pub(super) fn check_selected_fields(entity: &Entity, errors: &mut Errors) {
    for family in entity.families.iter().filter(|family| family.has_sound_templates()) {
        let Some(declaration) = entity.declaration(family) else { continue };
        // Both together have already been reported.
        if declaration.only.is_set() && declaration.except.is_set() {
            continue;
        }
        let selections = [("only", &declaration.only), ("except", &declaration.except)];
        for (setting, names) in selections {
            for name in names.get().into_iter().flatten() {
                let text = names::ident_text(name);
                let at = entity.fields.iter().position(|field| field.name == text);
                let Some((at, field)) = at.zip(at.and_then(|at| entity.fields.get(at))) else {
                    continue;
                };
                let message = if field.storage == Storage::Skipped {
                    format!(
                        "`{setting}({text})` refers to a field marked `skip`, which no row stores: remove it from the list"
                    )
                } else if setting == "except"
                    && family.exact_part_of_field(at, &entity.fields).is_some()
                {
                    format!(
                        "`except({text})` refers to a field in the copy's keys, which the copy always contains: remove it from the list"
                    )
                } else {
                    continue;
                };
                errors.add_at(name.span(), message);
            }
        }
    }
}

/// Reports a remote copy whose keys do not determine the primary's keys, because two entities could then have the
/// same copy keys. Does not report `unique` indexes. If the entity has remote copies, also reports fields that are
/// stored under the names of the properties for a copy's primary (`OWNER_PROPERTIES`).
pub(super) fn check_remote_copy_owners(entity: &Entity, errors: &mut Errors) {
    let copies = entity.families.iter().filter(|family| family.is_copy());
    let mut has_any = false;
    for family in copies.filter(|family| family.is_remote && entity.has_only_sound_templates()) {
        has_any = true;
        if !family.unique {
            report_missing_owner_fields(entity, family, errors);
        }
    }
    for field in entity.fields.iter().filter(|field| has_any && !field.is_name_lost) {
        if OWNER_PROPERTIES.contains(&field.property.as_str()) {
            let message = format!(
                "the property `{}` is reserved in entities with copies in other partitions: it stores the owner of a copy; write `rename = \"..\"`",
                field.property
            );
            errors.add_at(field.property_span, message);
        }
    }
}

/// Reports the fields of the primary's keys that cannot be derived from the copy's keys.
fn report_missing_owner_fields(entity: &Entity, family: &RowFamily, errors: &mut Errors) {
    let Some(primary) = entity.primary() else { return };
    let follows = |part: &TemplatePart| {
        let field = entity.fields.get(part.field);
        family.parts().any(|own| {
            own.field == part.field
                && (own.form == part.form
                    || field.is_some_and(|field| own.is_read_back_exactly(field)))
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
        "the key of a copy in another partition must contain every key field of the entity, otherwise another entity could overwrite the copy; this key lacks {}: add it to `row_key`, or write `unique` if no two entities have the same key",
        missing.join(", ")
    );
    let end = family.row.text.chars().count();
    errors.add_at(family.row.literal.span(), family.row.template_error_text(&(end..end), message));
}
