//! Filters by which the store finds the rows to encrypt again.

use std::borrow::Cow;

use crate::{
    edm::Value,
    entity::{SEAL, Schema},
    filter::Filter,
    seal::{KeyId, envelope_range},
};

/// Returns a filter for primaries and copies of the entity in all versions; `None` if the entity's
/// type is not a property.
pub(super) fn filter_of_type_rows(schema: &'static Schema) -> Option<Filter> {
    let name = schema.type_property()?;
    let markers = schema.versions().flat_map(|version| {
        let kept = version.families.iter().filter(|family| family.is_primary_or_copy());
        let later = version.parts.iter().skip(1).copied();
        kept.map(|family| family.marker).chain(later).map(|marker| Filter::eq(name, marker))
    });
    Some(Filter::any(markers))
}

/// Returns a filter for rows with a property that is encrypted with one of `keys` and that any version
/// declares.
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
    Filter::any(each)
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
