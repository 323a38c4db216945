//! Reads `index(..)` and `list(..)`, which declare additional rows of an entity.

use proc_macro2::{Ident, Span};
use syn::{LitStr, Path};

use super::{Setting, SettingValue};
use crate::{errors::Errors, names, once_setting::OnceSetting};

/// One `index(..)` or `list(..)` declaration, as written.
#[derive(Debug)]
pub(crate) struct IndexAttr {
    pub(crate) name: Ident,
    pub(crate) is_list: bool,
    pub(crate) row_key: OnceSetting<LitStr>,
    pub(crate) partition_key: OnceSetting<LitStr>,
    pub(crate) table: OnceSetting<LitStr>,
    /// Set by `in_blob`: the list is stored in blobs instead of rows.
    pub(crate) in_blob: OnceSetting<()>,
    pub(crate) unique: OnceSetting<()>,
    pub(crate) when: OnceSetting<Path>,
    /// The fields in `only(..)`. The copy stores no other fields.
    pub(crate) only: OnceSetting<Vec<Ident>>,
    /// The fields in `except(..)`. The copy stores all others.
    pub(crate) except: OnceSetting<Vec<Ident>>,
}

const INDEX_KEYS: [&str; 7] =
    ["row_key", "partition_key", "table", "only", "except", "unique", "when"];
const LIST_KEYS: [&str; 4] = ["row_key", "partition_key", "table", "in_blob"];

impl IndexAttr {
    /// Reads one declaration: first the name of the index, then settings such as `row_key = ".."`.
    pub(super) fn read(setting: &Setting, is_list: bool, errors: &mut Errors) -> Option<Self> {
        let (what, example) = if is_list {
            ("list", "list(ByLastName, row_key = \"..\")")
        } else {
            ("index", "index(ByEmail, row_key = \"..\")")
        };
        let list = setting.readable_list(example, errors);
        let settings = errors.take_ok(list)?;
        let mut settings = settings.iter();
        let Some(name) = settings.next().and_then(Setting::as_name) else {
            errors.add_unless_incomplete(
                setting.span(),
                format!("`{what}` expects a name first; write `{example}`"),
            );
            return None;
        };
        let mut read = Self {
            name,
            is_list,
            row_key: OnceSetting::default(),
            partition_key: OnceSetting::default(),
            table: OnceSetting::default(),
            in_blob: OnceSetting::default(),
            unique: OnceSetting::default(),
            when: OnceSetting::default(),
            only: OnceSetting::default(),
            except: OnceSetting::default(),
        };
        for setting in settings {
            let taken = read.take_setting(setting, errors);
            errors.take_ok(taken);
        }
        Some(read)
    }

    fn take_setting(&mut self, setting: &Setting, errors: &mut Errors) -> syn::Result<()> {
        let key = &setting.key;
        match (setting.name().as_str(), self.is_list) {
            ("row_key", _) => self.row_key.set_once(key, setting.string()),
            ("partition_key", _) => self.partition_key.set_once(key, setting.string()),
            ("table", _) => self.table.set_once(key, setting.string()),
            ("in_blob", true) => self.in_blob.set_once(key, setting.flag()),
            ("in_blob", false) => setting.refuse_in_index(),
            ("unique" | "when" | "only" | "except", true) => setting.refuse_in_list(),
            ("unique", false) => self.unique.set_once(key, setting.flag()),
            ("when", false) => self.when.set_once(key, setting.path("a function")),
            ("only", false) => self.only.set_once(key, setting.names()),
            ("except", false) => self.except.set_once(key, setting.names()),
            (_, is_list) => {
                let (what, known): (_, &[&str]) =
                    if is_list { ("list", &LIST_KEYS) } else { ("index", &INDEX_KEYS) };
                match setting.guess_known_name(known) {
                    Some(name) => self.mark_misspelt_setting(name),
                    // It may be any setting that seems missing.
                    None => errors.mark_incomplete(),
                }
                setting.refuse_unknown(what, known)
            }
        }
    }

    /// Marks the setting `name` as given under a misspelt name, which prevents another report that it is missing.
    fn mark_misspelt_setting(&mut self, name: &str) {
        match name {
            "row_key" => self.row_key.mark_misspelt(),
            "partition_key" => self.partition_key.mark_misspelt(),
            "table" => self.table.mark_misspelt(),
            "in_blob" => self.in_blob.mark_misspelt(),
            "unique" => self.unique.mark_misspelt(),
            "when" => self.when.mark_misspelt(),
            "only" => self.only.mark_misspelt(),
            "except" => self.except.mark_misspelt(),
            _ => {}
        }
    }
}

impl IndexAttr {
    /// Returns the span that excludes a field from copies: the field in `except(..)`, or else `only`.
    pub(crate) fn span_of_left_out(&self, field: &str) -> Span {
        let except = self.except.get().into_iter().flatten();
        let mut named = except.filter(|name| names::ident_text(name) == field);
        let named = named.next().map(Ident::span);
        named.or_else(|| self.only.span()).unwrap_or_else(|| self.name.span())
    }

    /// Returns the span of `unique`, or else of the name.
    pub(crate) fn unique_span(&self) -> Span {
        self.unique.span().unwrap_or_else(|| self.name.span())
    }

    /// Returns the span of `in_blob`, or else of the name.
    pub(crate) fn in_blob_span(&self) -> Span {
        self.in_blob.span().unwrap_or_else(|| self.name.span())
    }
}

impl Setting {
    /// Returns the error for `in_blob` on an index, because only lists can be stored in blobs.
    fn refuse_in_index(&self) -> syn::Result<()> {
        self.error("`in_blob` is only allowed in `list(..)`: the copies of an index are always rows of a table".to_owned())
    }

    /// Returns the error for a setting on a list that only indexes can have.
    fn refuse_in_list(&self) -> syn::Result<()> {
        let key = &self.key;
        let message = format!(
            "`{key}` is only allowed in `index(..)`, not in `list(..)`: a list stores keys of entities, not copies; remove `{key}`, or write `index(..)`"
        );
        Err(syn::Error::new(key.span(), message))
    }

    fn as_name(&self) -> Option<Ident> {
        matches!(self.value, SettingValue::Nothing).then(|| self.key.clone())
    }

    /// Reads `only(a, b)`: a setting with a list of field names. The list of `only()` may be empty: such a copy
    /// stores its keys alone.
    fn names(&self) -> syn::Result<Vec<Ident>> {
        let example = format!("{}(first_name, age)", self.key);
        let names: Option<Vec<Ident>> = self.list(&example)?.iter().map(Self::as_name).collect();
        match names {
            Some(names) if !names.is_empty() || self.key == "only" => Ok(names),
            _ => self.error(format!("`{}` expects a list of fields; write `{example}`", self.key)),
        }
    }
}
