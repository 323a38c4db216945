//! Checks the names of properties, columns and patch methods.

use std::collections::HashMap;

use super::identifier::is_identifier;
use crate::{
    errors::Errors,
    model::{Entity, Field},
};

/// Property names that the service reserves.
pub(super) const RESERVED_NAMES: [&str; 3] = ["PartitionKey", "RowKey", "Timestamp"];

/// The property with the id of a write, which clients add on request.
pub(super) const OPERATION_ID: &str = "OpId";

/// The prefix of the types of the library's own rows and the names of its own messages.
pub(super) const LIBRARY_PREFIX: &str = "entable.";

/// The property from `seal`, which authenticates all others of a row.
const SEAL_PROPERTY: &str = "EntitySeal";

/// The maximum length of a property name that the service accepts, in UTF-16 units.
const MAX_NAME_UNITS: usize = 255;

/// Reports property names that are malformed, reserved or used twice.
pub(super) fn check_property_names(fields: &[Field], marker: Option<String>, errors: &mut Errors) {
    let mut seen: HashMap<&str, &str> = HashMap::new();
    for field in fields.iter().filter(|field| !field.is_name_lost) {
        if let Some(prefix) = field.storage.prefix()
            && !prefix.is_empty()
            && !is_identifier(prefix)
        {
            let span = field.prefix_span();
            let message = format!(
                "`{prefix}` cannot begin a property name: expected a letter or `_`, followed by letters, digits, `_` \
                 and combining marks; write `flatten(prefix = \"Office\")`"
            );
            errors.add_at(span, message);
        }
        for name in field.known_property_names() {
            if let Some(message) = name_fault(field, name, marker.as_deref(), &mut seen) {
                errors.add_at(field.property_span, message);
                break;
            }
        }
    }
    report_taken_token_names(fields, marker.as_deref(), &seen, errors);
}

/// Returns what is wrong with a property name: malformed, reserved, or already used.
fn name_fault<'f>(
    field: &'f Field,
    name: &'f str,
    marker: Option<&str>,
    seen: &mut HashMap<&'f str, &'f str>,
) -> Option<String> {
    if name.is_empty() {
        let found = if field.attr.rename.is_set() {
            "`rename` is empty".to_owned()
        } else {
            format!("`{}` results in an empty name", field.name)
        };
        Some(format!("{found}: expected a property name; write `rename = \"FirstName\"`"))
    } else if RESERVED_NAMES.contains(&name) {
        Some(format!("the service reserves the property name `{name}`; write `rename = \"..\"`"))
    } else if name == OPERATION_ID {
        Some(format!(
            "the property `{name}` is reserved for the id of a write; write `rename = \"..\"`"
        ))
    } else if marker == Some(name) {
        Some(format!(
            "the property `{name}` stores the type of the row; write `rename = \"..\"` or choose another `discriminator`"
        ))
    } else if !is_identifier(name) {
        Some(format!(
            "`{name}` is not a valid property name: expected a letter or `_`, followed by letters, digits, `_` and combining marks"
        ))
    } else if name.encode_utf16().count() > MAX_NAME_UNITS {
        Some(format!(
            "the property name has more than {MAX_NAME_UNITS} characters, the most that the service allows; write `rename = \"..\"`"
        ))
    } else {
        let first = seen.insert(name, &field.name);
        first.map(|first| {
            format!("fields `{first}` and `{}` are both stored as property `{name}`", field.name)
        })
    }
}

/// Reports a field that is stored under the name of the property that `seal` adds.
pub(super) fn refuse_seal_property_name(entity: &Entity, errors: &mut Errors) {
    let known = entity.fields.iter().filter(|field| entity.is_sealed && !field.is_name_lost);
    for field in known.filter(|field| field.property == SEAL_PROPERTY) {
        let message = format!(
            "the property `{SEAL_PROPERTY}` is reserved in entities with `seal`: it stores the seal of the row; write `rename = \"..\"`"
        );
        errors.add_at(field.property_span, message);
    }
}

/// Reports a blind token's property that has the name of another property.
fn report_taken_token_names(
    fields: &[Field],
    marker: Option<&str>,
    seen: &HashMap<&str, &str>,
    errors: &mut Errors,
) {
    for field in fields.iter().filter(|field| !field.is_name_lost) {
        let Some((name, _)) = field.token_property_and_length() else { continue };
        let taken = match seen.get(name.as_str()) {
            Some(other) => format!("field `{other}` is stored as"),
            None if marker == Some(name.as_str()) => "the type of the row is stored as".to_owned(),
            None => continue,
        };
        let span = field.attr.blind.span().unwrap_or(field.property_span);
        errors.add_at(span, format!("{taken} property `{name}`, which also stores the token of `{}`: write `rename = \"..\"` on one of them", field.name));
    }
}

/// Reports two fields whose column constants have the same name.
pub(super) fn report_equal_column_names(fields: &[Field], errors: &mut Errors) {
    let mut seen: HashMap<String, &Field> = HashMap::new();
    let columns = fields.iter().filter(|field| field.storage.has_own_properties());
    for field in columns {
        let name = field.constant.to_string();
        let Some(first) = seen.insert(name.clone(), field) else { continue };
        // Two fields with the same property name have already been reported.
        let share_property = first.storage.is_one_property()
            && field.storage.is_one_property()
            && !(first.is_name_lost || field.is_name_lost)
            && first.property == field.property;
        if !share_property {
            errors.add_at(
                field.span,
                format!(
                    "fields `{}` and `{}` both have the column `{name}`: rename one of the fields",
                    first.name, field.name
                ),
            );
        }
    }
}

/// Reports a field with the name of the patch method that removes another field, such as `remove_x` and `x`.
pub(super) fn report_remove_method_clashes(entity: &Entity, errors: &mut Errors) {
    for (at, removed) in entity.fields.iter().enumerate() {
        if !entity.can_change_in_place(at) || !removed.is_removable() {
            continue;
        }
        if let Some(field) = entity.field_with_setter(&format!("remove_{}", removed.name)) {
            let message = format!(
                "the patch already has a method `{}`, which removes field `{}`: rename the field, and keep its property with `rename = \"{}\"`",
                field.name, removed.name, field.property
            );
            errors.add_at(field.span, message);
        }
    }
}
