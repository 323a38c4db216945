//! The fields of entities and of flattened structs.

use proc_macro2::{Ident, Span};
use syn::{LitStr, Path, Type, Visibility};

use crate::{
    attr::{Encrypt, FieldAttr},
    names::{self, Case},
};

/// What follows a property's name in the name of the property with its token.
const COMPANION: &str = "Blind";

/// How a field is kept in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Storage {
    /// A property, or a part of a key.
    Plain,
    /// A property with JSON text.
    Json,
    /// Properties under a prefix.
    Flattened(String),
    /// The properties that the struct does not know.
    Extra,
    /// Not at all.
    Skipped,
}

/// What stands for a property that is not there.
#[derive(Debug, Clone)]
pub(crate) enum Absent {
    /// What the field's type says: an error, or `None`.
    Refused,
    /// The type's default.
    Default,
    /// What that function returns.
    Call(Path),
}

/// A field.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) ident: Ident,
    pub(crate) vis: Visibility,
    pub(crate) ty: Type,
    /// The name without `r#`.
    pub(crate) name: String,
    /// The property's name.
    pub(crate) property: String,
    /// Where the property's name was given.
    pub(crate) property_span: Span,
    /// The name of the column's constant.
    pub(crate) constant: Ident,
    pub(crate) storage: Storage,
    pub(crate) absent: Absent,
    /// Whether a key has a token of it.
    pub(crate) has_token: bool,
    /// What was written on it.
    pub(crate) attr: FieldAttr,
}

impl Field {
    /// The field of that struct, by its attributes.
    pub(crate) fn new(
        field: &syn::Field,
        attr: FieldAttr,
        case: Case,
        this: &Ident,
    ) -> Option<Self> {
        let ident = field.ident.clone()?;
        let name = names::unraw(&ident);
        let property = match attr.rename.get() {
            Some(rename) => rename.value(),
            None => case.apply(&name),
        };
        Some(Self {
            property_span: attr.rename.get().map_or_else(|| ident.span(), LitStr::span),
            constant: names::constant(&ident),
            vis: field.vis.clone(),
            ty: names::without_self(&field.ty, this),
            storage: storage(&attr, &property),
            absent: absent(&attr),
            has_token: false,
            ident,
            name,
            property,
            attr,
        })
    }

    /// Where the prefix of a flattened struct was given.
    pub(crate) fn prefix_span(&self) -> Span {
        let prefix = self.attr.flatten.get().and_then(Option::as_ref);
        prefix.map_or(self.property_span, LitStr::span)
    }

    /// Whether it can be absent, as far as its type's name tells.
    pub(crate) fn is_option(&self) -> bool {
        names::is_named(&self.ty, &["Option"])
    }

    /// Whether no message may show its value.
    pub(crate) fn is_secret(&self) -> bool {
        self.has_token || self.sealed().is_some()
    }

    /// How it is sealed, if it is.
    pub(crate) fn sealed(&self) -> Option<Encrypt> {
        let is_property = matches!(self.storage, Storage::Plain | Storage::Json);
        self.attr.encrypt.get().copied().filter(|_| is_property)
    }

    /// The property that holds the token of its value, if there is one, and how long that is.
    pub(crate) fn companion(&self) -> Option<(String, u32)> {
        let chars = *self.attr.blind.get()?;
        self.sealed().map(|_| (format!("{}{COMPANION}", self.property), chars))
    }

    /// Whether a patch can remove it.
    pub(crate) fn is_removable(&self) -> bool {
        self.storage == Storage::Plain && self.is_option()
    }

    /// Whether its type is a point in time or a date, by its name.
    pub(crate) fn is_time(&self) -> bool {
        names::is_named(&self.ty, &["OffsetDateTime", "DateTime"]) || self.is_date()
    }

    /// Whether its type is a date, by its name.
    pub(crate) fn is_date(&self) -> bool {
        names::is_named(&self.ty, &["Date", "NaiveDate"])
    }

    /// Whether its type is text, by its name.
    pub(crate) fn is_text(&self) -> bool {
        names::is_named(&self.ty, &["String"])
    }
}

fn storage(attr: &FieldAttr, property: &str) -> Storage {
    if attr.skip.is_set() {
        Storage::Skipped
    } else if attr.extra.is_set() {
        Storage::Extra
    } else if let Some(prefix) = attr.flatten.get() {
        Storage::Flattened(prefix.as_ref().map_or_else(|| property.to_owned(), LitStr::value))
    } else if attr.json.is_set() {
        Storage::Json
    } else {
        Storage::Plain
    }
}

fn absent(attr: &FieldAttr) -> Absent {
    match attr.default.get() {
        Some(Some(path)) => Absent::Call(path.clone()),
        Some(None) => Absent::Default,
        None if attr.skip.is_set() => Absent::Default,
        None => Absent::Refused,
    }
}
