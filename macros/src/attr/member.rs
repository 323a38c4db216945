//! Reads `#[table(..)]` attributes of the members of a set: variants of an enum, fields of a struct.

use proc_macro2::Span;
use syn::Attribute;

use super::read_settings;
use crate::{errors::Errors, once_setting::OnceSetting};

/// Settings of `#[table(..)]` on a variant of an enum with `#[derive(EntitySet)]`.
#[derive(Debug, Default)]
pub(crate) struct MemberAttr {
    pub(crate) other: OnceSetting<()>,
}

impl MemberAttr {
    /// Reads all `#[table(..)]` attributes of the variant.
    pub(crate) fn read(attrs: &[Attribute], errors: &mut Errors) -> Self {
        let mut read = Self::default();
        for setting in read_settings(attrs, errors) {
            let taken = match setting.name().as_str() {
                "other" => read.other.set_once(&setting.key, setting.flag()),
                _ => setting.refuse_unknown("variant", &["other"]),
            };
            errors.take_ok(taken);
        }
        read
    }
}

/// Settings of `#[table(..)]` on a field of a struct with `#[derive(EntitySet)]`.
#[derive(Debug, Default)]
pub(crate) struct AggregateFieldAttr {
    pub(crate) one: OnceSetting<()>,
    pub(crate) many: OnceSetting<()>,
    pub(crate) other: OnceSetting<()>,
}

impl AggregateFieldAttr {
    /// Reads the attributes of the field. Reports a field that does not have exactly one of `one`, `many` and
    /// `other`, and returns `None`.
    pub(crate) fn read(attrs: &[Attribute], span: Span, errors: &mut Errors) -> Option<Self> {
        let mut read = Self::default();
        let settings = read_settings(attrs, errors);
        let has_any = !settings.is_empty();
        for setting in settings {
            let key = &setting.key;
            let taken = match setting.name().as_str() {
                "one" => read.one.set_once(key, setting.flag()),
                "many" => read.many.set_once(key, setting.flag()),
                "other" => read.other.set_once(key, setting.flag()),
                _ => setting.refuse_unknown("field", &["one", "many", "other"]),
            };
            errors.take_ok(taken);
        }
        let slots = [&read.one, &read.many, &read.other];
        let given: Vec<Span> = slots.into_iter().filter_map(OnceSetting::span).collect();
        match (given.first(), given.get(1)) {
            (Some(_), None) => {}
            (Some(_), Some(second)) => {
                let message = "a field can have only one of `one`, `many` and `other`";
                errors.add_unreadable(syn::Error::new(*second, message));
            }
            // An unknown key is in place of one of the three.
            (None, _) if has_any => errors.mark_incomplete(),
            (None, _) => errors.add_unless_incomplete(
                span,
                "this field does not say which rows it takes: write `#[table(one)]`, `#[table(many)]` or `#[table(other)]` on it",
            ),
        }
        (given.len() == 1).then_some(read)
    }
}
