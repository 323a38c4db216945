//! What stands on a field.

use syn::{Attribute, LitStr, Path};

use super::{Entry, Given, entries};
use crate::{errors::Errors, spanned::Slot};

/// `#[table(..)]` on a field.
#[derive(Debug, Default)]
pub(crate) struct FieldAttr {
    pub(crate) rename: Slot<LitStr>,
    pub(crate) json: Slot<()>,
    /// With the prefix, where one is given.
    pub(crate) flatten: Slot<Option<LitStr>>,
    /// With the function, where one is given.
    pub(crate) default: Slot<Option<Path>>,
    pub(crate) skip: Slot<()>,
    pub(crate) store: Slot<()>,
    pub(crate) extra: Slot<()>,
}

const ENTITY_KEYS: [&str; 12] = [
    "rename", "json", "flatten", "default", "skip", "store", "extra", "encrypt", "blind", "blob",
    "split", "series",
];
const PROPERTIES_KEYS: [&str; 5] = ["rename", "json", "flatten", "default", "skip"];

impl FieldAttr {
    /// Reads the attributes of an entity's field.
    pub(crate) fn of_entity(attrs: &[Attribute], errors: &mut Errors) -> Self {
        Self::read(attrs, errors, |read, entry| match entry.name().as_str() {
            "store" => read.store.set(&entry.key, entry.flag()),
            "extra" => read.extra.set(&entry.key, entry.flag()),
            "encrypt" | "blind" | "blob" | "split" | "series" => entry.not_yet(),
            _ => entry.unknown("field", &ENTITY_KEYS),
        })
    }

    /// Reads the attributes of a field of a flattened struct.
    pub(crate) fn of_properties(attrs: &[Attribute], errors: &mut Errors) -> Self {
        Self::read(attrs, errors, |_, entry| match entry.name().as_str() {
            "store" | "extra" => Err(syn::Error::new(
                entry.key.span(),
                format!("`{}` is for fields of an entity, not of a flattened struct", entry.key),
            )),
            _ => entry.unknown("field", &PROPERTIES_KEYS),
        })
    }

    /// Refuses attributes on a projection's field: the entity says how the field is stored.
    pub(crate) fn of_projection(attrs: &[Attribute], errors: &mut Errors) {
        for entry in entries(attrs, errors) {
            errors.at(
                entry.key.span(),
                format!(
                    "`{}` on a projection's field, expected none: the entity says how it is stored",
                    entry.key
                ),
            );
        }
    }

    fn read(
        attrs: &[Attribute],
        errors: &mut Errors,
        other: impl Fn(&mut Self, &Entry) -> syn::Result<()>,
    ) -> Self {
        let mut read = Self::default();
        for entry in entries(attrs, errors) {
            let key = &entry.key;
            let taken = match entry.name().as_str() {
                "rename" => read.rename.set(key, entry.string()),
                "json" => read.json.set(key, entry.flag()),
                "flatten" => read.flatten.set(key, flatten(&entry)),
                "default" => read.default.set(key, default(&entry)),
                "skip" => read.skip.set(key, entry.flag()),
                _ => other(&mut read, &entry),
            };
            errors.take(taken);
        }
        read
    }
}

/// `flatten` or `flatten(prefix = "..")`
fn flatten(entry: &Entry) -> syn::Result<Option<LitStr>> {
    if matches!(entry.value, Given::Nothing) {
        return Ok(None);
    }
    let mut prefix = Slot::default();
    for inner in entry.list()? {
        match inner.name().as_str() {
            "prefix" => prefix.set(&inner.key, inner.string())?,
            _ => inner.unknown("`flatten`", &["prefix"])?,
        }
    }
    Ok(prefix.get().cloned())
}

/// `default` or `default = path`
fn default(entry: &Entry) -> syn::Result<Option<Path>> {
    match entry.value {
        Given::Nothing => Ok(None),
        _ => entry.path().map(Some),
    }
}
