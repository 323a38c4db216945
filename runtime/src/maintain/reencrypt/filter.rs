//! Filters by which the store finds the rows to encrypt again.

use std::borrow::Cow;

use crate::{
    edm::Value,
    entity::{SEAL, Schema},
    filter::Filter,
    query::conditions::written_version_condition,
    seal::{KeyId, envelope_range},
};

/// Returns a filter for rows of the entity in all versions, also in versions that this program does
/// not know; `None` if the entity's type is not a property.
pub(super) fn filter_of_type_rows(schema: &'static Schema) -> Option<Filter> {
    let name = schema.type_property()?;
    let named = written_version_condition(name, schema);
    Some(filter_of_version_rows(name, schema.entity_type) | named)
}

/// Returns a filter for rows whose discriminator, property `name`, is the marker of a version's
/// primaries, or that of its copies and parts: `Note` and `Note#ByText`.
fn filter_of_version_rows(name: &str, marker: &str) -> Filter {
    // `$` is the character after `#`.
    Filter::ge(name, marker) & Filter::lt(name, [marker, "$"].concat())
}

/// Returns a filter for rows with a property that is encrypted with one of `keys` and that any version
/// declares. Where it is applied to rows of the entity, it finds all rows of unknown versions too.
pub(super) fn filter_of_encrypted_rows(schema: &'static Schema, keys: &[KeyId]) -> Filter {
    let names = sealed_names(schema);
    let each = names.iter().flat_map(|name| {
        keys.iter().map(move |key| {
            let (mut from, mut to) = envelope_range(*key);
            if name == SEAL {
                for bound in [&mut from, &mut to] {
                    // A seal begins as the envelope of a value does, but for its second byte.
                    if let Some(byte) = bound.get_mut(1) {
                        *byte = 0x5e;
                    }
                }
            }
            Filter::ge(&**name, Value::Binary(from.into()))
                & Filter::lt(&**name, Value::Binary(to.into()))
        })
    });
    // Nobody here knows which properties of an unknown version are encrypted.
    let unknown = schema.type_property().map(|name| {
        let known = schema.versions().map(|version| filter_of_version_rows(name, version.marker));
        !Filter::any(known)
    });
    Filter::any(each.chain(unknown))
}

/// Returns the names of the properties that any version declares encrypted, each once, and that of the
/// seal if any version has one.
fn sealed_names(schema: &'static Schema) -> Vec<Cow<'static, str>> {
    let mut names: Vec<Cow<'static, str>> = Vec::new();
    for version in schema.versions() {
        let seal = version.sealed.then_some(Cow::Borrowed(SEAL));
        let columns = version.sealed_columns().into_iter().map(|column| column.name);
        for name in columns.chain(seal) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}
