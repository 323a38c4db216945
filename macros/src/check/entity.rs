//! Checks the attributes of an entity's struct.

use syn::spanned::Spanned;

use crate::{
    attr::Discriminator,
    check::{
        identifier::is_identifier,
        names::{LIBRARY_PREFIX, OPERATION_ID, RESERVED_NAMES},
    },
    errors::Errors,
    model::{Entity, is_table_name_template},
    names,
};

/// Reports table names that the service refuses.
pub(super) fn check_table_names(entity: &Entity, errors: &mut Errors) {
    let table_literals = entity.families.iter().filter_map(|family| family.table.as_ref());
    let hint = if entity.has_table_name { "" } else { "; write `name = \"..\"`" };
    if !is_table_name_template(&entity.table) && !entity.attr.name.is_unreadable() {
        report_invalid_table_name(&entity.table, hint, errors);
    }
    // Tables of dated entities are checked elsewhere.
    for literal in table_literals.filter(|_| entity.dated.is_none()) {
        report_invalid_table_name(literal, "", errors);
    }
}

/// Reports a table name that the service refuses, or that contains a date form although the entity's tables are not
/// dated. `hint` is appended to the message and says what to write.
fn report_invalid_table_name(literal: &syn::LitStr, hint: &str, errors: &mut Errors) {
    let (name, span) = (literal.value(), literal.span());
    if name.contains(['{', '}']) {
        errors.add_at(
            span,
            "the tables of copies and lists can only be dated if the tables of the entity are: add the date form to `name` too",
        );
        return;
    }
    // The struct's own name replaces a missing `name`, which may be in a part of the attribute that could not be
    // read.
    let mut report = |message: String| match hint {
        "" => errors.add_at(span, message),
        _ => errors.add_unless_incomplete(span, message),
    };
    let letters = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric());
    if !letters || !(3..=63).contains(&name.len()) {
        report(format!(
            "`{name}` is not a valid table name: expected 3 to 63 letters and digits, starting with a letter{hint}"
        ));
    } else if name.eq_ignore_ascii_case("tables") {
        report(format!("the service reserves the table name `{name}`{hint}"));
    }
}

/// Reports entity types that look like index copies (`#`), versions (`.v2`) or the library's own rows (`entable.`).
pub(super) fn check_entity_type(entity: &Entity, errors: &mut Errors) {
    let name = entity.entity_type.value();
    let span = entity.entity_type.span();
    let version = name.rsplit_once(".v").map(|(_, digits)| digits);
    if name.is_empty() {
        errors.add_at(span, "`entity_type` is empty; write a name");
    } else if name.contains('#') || name.starts_with('~') {
        errors.add_at(span, "`entity_type` cannot contain `#` or begin with `~`: these mark copies and rows of the library");
    } else if name.starts_with(LIBRARY_PREFIX) {
        errors.add_at(
            span,
            format!(
                "`{name}` begins with `{LIBRARY_PREFIX}`, which is reserved for rows of the library; choose another name with `entity_type = \"..\"`"
            ),
        );
    } else if version.is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit())) {
        errors.add_at(
            span,
            "an `entity_type` cannot end with a version such as `.v2`: the library adds this ending itself; write `version = 2`",
        );
    }
}

/// Reports a discriminator that is not a valid property name.
pub(super) fn check_discriminator_name(entity: &Entity, errors: &mut Errors) {
    let Discriminator::Property(literal) = &entity.discriminator else { return };
    let name = literal.value();
    if name == OPERATION_ID {
        errors.add_at(
            literal.span(),
            format!(
                "the property `{name}` is reserved for the id of a write; choose another `discriminator`"
            ),
        );
    } else if name.is_empty() {
        let message = "`discriminator` is empty; write the name of a property, such as `discriminator = \"EntityType\"`";
        errors.add_at(literal.span(), message);
    } else if RESERVED_NAMES.contains(&name.as_str()) || !is_identifier(&name) {
        errors.add_at(literal.span(), format!("`{name}` is not a valid property name"));
    }
}

/// Reports `allow(same_keys)` on a type with `discriminator = row_key`, whose rows have no property with their type.
pub(super) fn check_shared_keys(entity: &Entity, errors: &mut Errors) {
    let Some(span) = entity.shares_keys else { return };
    if matches!(entity.discriminator, Discriminator::RowKey) {
        errors.add_at(
            span,
            "`same_keys` lets rows of other types have the same keys, so the keys cannot tell the types apart: remove `discriminator = row_key` or `same_keys`",
        );
    }
}

/// Reports a version without a property to store it in, and `upgrade_from` on version 1.
pub(super) fn check_version_and_upgrade(entity: &Entity, errors: &mut Errors) {
    let span = entity.version_span;
    if entity.version > 1 && matches!(entity.discriminator, Discriminator::RowKey) {
        errors.add_at(
            span,
            "`version` needs a property that stores it, and `discriminator = row_key` stores none; write `discriminator = \"EntityType\"`",
        );
    }
    let Some(path) = &entity.upgrade_from else { return };
    let is_known = !entity.attr.version.is_unreadable();
    if path.is_ident(&entity.ident) || path.is_ident("Self") {
        let message = format!(
            "`upgrade_from({})` refers to this struct itself: keep the declaration of the previous version under another name, and write that name here",
            names::source_text(path)
        );
        errors.add_at(path.span(), message);
    } else if is_known && entity.version == 1 {
        errors.add_at(path.span(), "`upgrade_from` needs a `version` above 1; write `version = 2`");
    }
}
