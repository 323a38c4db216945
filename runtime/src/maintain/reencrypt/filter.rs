//! Filters for the rows to encrypt again.

use std::borrow::Cow;

use crate::{
    edm::Value,
    entity::{SEAL, Schema},
    filter::Filter,
    query::conditions::written_version_condition,
    seal::{KeyId, envelope_range},
};

/// Returns a filter for rows of the entity in all versions, even unknown ones. Returns `None` if the entity has
/// no type property.
pub(super) fn filter_of_type_rows(schema: &'static Schema) -> Option<Filter> {
    let name = schema.type_property()?;
    let named = written_version_condition(name, schema);
    Some(filter_of_version_rows(name, schema.entity_type) | named)
}

/// Returns a filter for rows whose discriminator, property `name`, is the marker of a version's primaries,
/// copies or parts, such as `Note` and `Note#ByText`.
fn filter_of_version_rows(name: &str, marker: &str) -> Filter {
    // `$` follows `#` in ASCII.
    Filter::ge(name, marker) & Filter::lt(name, [marker, "$"].concat())
}

/// Returns a filter for rows with a property that is encrypted with one of `keys` and declared by any version.
/// Among rows of the entity, it also finds all rows of unknown versions.
pub(super) fn filter_of_encrypted_rows(schema: &'static Schema, keys: &[KeyId]) -> Filter {
    let names = sealed_names(schema);
    let each = names.iter().flat_map(|name| {
        keys.iter().map(move |key| {
            let (mut from, mut to) = envelope_range(*key);
            if name == SEAL {
                for bound in [&mut from, &mut to] {
                    // A seal begins like a value's envelope, except for the second byte.
                    if let Some(byte) = bound.get_mut(1) {
                        *byte = 0x5e;
                    }
                }
            }
            Filter::ge(&**name, Value::Binary(from.into()))
                & Filter::lt(&**name, Value::Binary(to.into()))
        })
    });
    // The encrypted properties of an unknown version are not known here.
    let unknown = schema.type_property().map(|name| {
        let known = schema.versions().map(|version| filter_of_version_rows(name, version.marker));
        !Filter::any(known)
    });
    Filter::any(each.chain(unknown))
}

/// Returns the names of the properties that any version declares encrypted, each once, and the seal's name if
/// any version has a seal.
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
