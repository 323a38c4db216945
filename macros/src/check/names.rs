//! Rules for the names of properties and columns.

use std::collections::HashMap;

use crate::{
    errors::Errors,
    model::{Entity, Field, Storage},
};

/// The names that the service keeps for itself.
pub(super) const RESERVED: [&str; 3] = ["PartitionKey", "RowKey", "Timestamp"];

/// The property that vouches for a row.
const SEAL: &str = "EntitySeal";

/// UTF-16 units of a property's name.
const MAX_UNITS: usize = 255;

/// A letter or `_`, then letters, digits and `_`.
pub(super) fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c == '_' || c.is_alphabetic())
        && name.chars().all(|c| c == '_' || c.is_alphanumeric())
}

/// Property names are distinct, well formed and not taken by the system.
pub(super) fn properties(fields: &[Field], marker: Option<String>, errors: &mut Errors) {
    let mut seen: HashMap<&str, &str> = HashMap::new();
    for field in fields {
        let is_named = matches!(field.storage, Storage::Plain | Storage::Json);
        if let Storage::Flattened(prefix) = &field.storage
            && !prefix.is_empty()
            && !is_identifier(prefix)
        {
            let span = field.prefix_span();
            errors.at(span, format!("`{prefix}` cannot begin a property's name"));
        }
        if !is_named {
            continue;
        }
        let name = field.property.as_str();
        let error = if RESERVED.contains(&name) {
            Some(format!(
                "the service reserves the property name `{name}`, write `rename = \"..\"`"
            ))
        } else if marker.as_deref() == Some(name) {
            Some(format!(
                "the property `{name}` says the row's type, write `rename = \"..\"` or another `discriminator`"
            ))
        } else if !is_identifier(name) {
            Some(format!(
                "`{name}` is not a property's name, expected a letter or `_`, then letters, digits and `_`"
            ))
        } else if name.encode_utf16().count() > MAX_UNITS {
            Some(format!("a property's name of more than {MAX_UNITS} characters"))
        } else {
            let first = seen.insert(name, &field.name);
            first.map(|first| {
                format!("fields `{first}` and `{}` are both property `{name}`", field.name)
            })
        };
        if let Some(message) = error {
            errors.at(field.property_span, message);
        }
    }
    companions(fields, marker.as_deref(), &seen, errors);
}

/// What vouches for a row is a property too.
pub(super) fn seal(entity: &Entity, errors: &mut Errors) {
    for field in entity.fields.iter().filter(|field| entity.is_sealed && field.property == SEAL) {
        let message = format!(
            "the property `{SEAL}` vouches for the rows of an entity with `seal`, write `rename = \"..\"`"
        );
        errors.at(field.property_span, message);
    }
}

/// The tokens of fields are properties too.
fn companions(
    fields: &[Field],
    marker: Option<&str>,
    seen: &HashMap<&str, &str>,
    errors: &mut Errors,
) {
    for field in fields {
        let Some((name, _)) = field.companion() else { continue };
        let taken = match seen.get(name.as_str()) {
            Some(other) => format!("field `{other}` is"),
            None if marker == Some(name.as_str()) => "the row's type is".to_owned(),
            None => continue,
        };
        let span = field.attr.blind.span().unwrap_or(field.property_span);
        errors.at(span, format!("{taken} property `{name}`, which holds the token of `{}`: write `rename = \"..\"` on one of them", field.name));
    }
}

/// Columns are constants of the struct: one name, one column.
pub(super) fn constants(fields: &[Field], errors: &mut Errors) {
    let mut seen: HashMap<String, &str> = HashMap::new();
    let columns =
        fields.iter().filter(|field| !matches!(field.storage, Storage::Extra | Storage::Skipped));
    for field in columns {
        let name = field.constant.to_string();
        if let Some(first) = seen.insert(name.clone(), &field.name) {
            errors.at(
                field.ident.span(),
                format!("the columns of fields `{first}` and `{}` are both `{name}`", field.name),
            );
        }
    }
}

/// A patch has a method for each field, and `remove_x` for an optional field `x`.
pub(super) fn patches(entity: &Entity, errors: &mut Errors) {
    for (at, removed) in entity.fields.iter().enumerate() {
        if entity.is_in_key(at) || !removed.is_removable() {
            continue;
        }
        if let Some(field) = entity.setter_named(&format!("remove_{}", removed.name)) {
            let message = format!(
                "`{}` is the patch's method that removes field `{}`; name the field otherwise and keep its property with `rename = \"{}\"`",
                field.name, removed.name, field.property
            );
            errors.at(field.ident.span(), message);
        }
    }
}
