//! What stands on a member of a set: a variant of an enum, a field of a struct.

use proc_macro2::Span;
use syn::Attribute;

use super::entries;
use crate::{errors::Errors, spanned::Slot};

/// `#[table(..)]` on a variant of a set.
#[derive(Debug, Default)]
pub(crate) struct MemberAttr {
    pub(crate) other: Slot<()>,
}

impl MemberAttr {
    /// Reads the attributes of a variant.
    pub(crate) fn read(attrs: &[Attribute], errors: &mut Errors) -> Self {
        let mut read = Self::default();
        for entry in entries(attrs, errors) {
            let taken = match entry.name().as_str() {
                "other" => read.other.set(&entry.key, entry.flag()),
                _ => entry.unknown("variant", &["other"]),
            };
            errors.take(taken);
        }
        read
    }
}

/// `#[table(..)]` on a field of a struct that folds a partition.
#[derive(Debug, Default)]
pub(crate) struct FoldAttr {
    pub(crate) one: Slot<()>,
    pub(crate) many: Slot<()>,
    pub(crate) other: Slot<()>,
}

impl FoldAttr {
    /// Reads the attributes of a field, which says exactly one of them.
    pub(crate) fn read(attrs: &[Attribute], span: Span, errors: &mut Errors) -> Self {
        let mut read = Self::default();
        for entry in entries(attrs, errors) {
            let key = &entry.key;
            let taken = match entry.name().as_str() {
                "one" => read.one.set(key, entry.flag()),
                "many" => read.many.set(key, entry.flag()),
                "other" => read.other.set(key, entry.flag()),
                _ => entry.unknown("field", &["one", "many", "other"]),
            };
            errors.take(taken);
        }
        let slots = [&read.one, &read.many, &read.other];
        let given: Vec<Span> = slots.into_iter().filter_map(Slot::span).collect();
        match (given.first(), given.get(1)) {
            (Some(_), None) => {}
            (Some(_), Some(second)) => {
                errors.at(*second, "`one`, `many` and `other` on one field, expected one of them");
            }
            (None, _) => errors.at(
                span,
                "expected `#[table(one)]`, `#[table(many)]` or `#[table(other)]` on the field: the rows that go there",
            ),
        }
        read
    }
}
