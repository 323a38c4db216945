//! Describes the fields of structs with `#[derive(TableEntity)]` and `#[derive(Properties)]`.

use proc_macro2::{Ident, Span, TokenStream};
use syn::{LitStr, Path, Type};

use super::series;
use crate::{
    attr::{EncryptSettings, FieldAttr},
    names::{self, Case},
};

/// The suffix of the property with a value's blind token: `SalaryBlind` for `Salary`.
const TOKEN_SUFFIX: &str = "Blind";

/// The suffixes of a row's properties for a blob: name, length, hash, content type, and the key of an encrypted blob.
const BLOB_SUFFIXES: [&str; 5] = ["", "Length", "Hash", "Type", "Key"];

/// How a field is stored in a row.
///
/// Other modules call the methods of [`Storage`] and [`Field`]. The code for each kind is generated in `emit::field`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Storage {
    /// As one property, or as a part of a key.
    Plain,
    /// As one property with JSON text.
    Json,
    /// One property for each slot of an array. The list contains the properties' names.
    Series(Vec<String>),
    /// Several properties, each with a piece of one text. The list contains the properties' names.
    Split(Vec<String>),
    /// As a blob. The row has its name, length, hash and content type in properties with these names, and the key of an
    /// encrypted blob in a fifth one.
    Blob(Vec<String>),
    /// As several properties whose names begin with this prefix.
    Flattened(String),
    /// As all properties of the row that no other field takes.
    Extra,
    /// Not at all.
    Skipped,
}

impl Storage {
    /// Returns whether a field with this storage is a single property. Rows whose keys contain the value do not
    /// store the property.
    pub(crate) fn is_one_property(&self) -> bool {
        matches!(self, Self::Plain | Self::Json)
    }

    /// Returns whether the field has its own properties, whose names are known.
    pub(crate) fn has_own_properties(&self) -> bool {
        !matches!(self, Self::Skipped | Self::Extra)
    }

    /// Returns whether the field can be a part of a key.
    pub(crate) fn can_be_in_key(&self) -> bool {
        *self == Self::Plain
    }

    /// Returns whether the field takes every property that no other field takes.
    pub(crate) fn takes_every_property(&self) -> bool {
        *self == Self::Extra
    }

    /// Returns the prefix of the property names of a flattened struct's fields, or `None` for other fields.
    pub(crate) fn prefix(&self) -> Option<&str> {
        match self {
            Self::Flattened(prefix) => Some(prefix),
            Self::Plain
            | Self::Json
            | Self::Series(_)
            | Self::Split(_)
            | Self::Blob(_)
            | Self::Extra
            | Self::Skipped => None,
        }
    }

    /// Returns whether the field is stored as one or more properties and the derive knows all their names. It does
    /// not know the names of a flattened struct.
    pub(crate) fn has_known_names(&self) -> bool {
        self.is_one_property() || matches!(self, Self::Series(_) | Self::Split(_) | Self::Blob(_))
    }
}

/// The value of a field whose property is missing in the row.
#[derive(Debug, Clone)]
pub(crate) enum AbsenceRule {
    /// The field's type decides: `None` for an `Option`, otherwise an error.
    Refused,
    /// The `Default` of the field's type.
    Default,
    /// The value that this function returns.
    Call(Path),
}

/// A field, with its attributes interpreted.
#[derive(Debug)]
pub(crate) struct Field {
    /// The field's name in generated code. Its span marks it as written by a macro, which makes lints such as
    /// `deprecated` ignore it.
    pub(crate) ident: Ident,
    /// The span of the field's name, for messages.
    pub(crate) span: Span,
    pub(crate) vis: TokenStream,
    pub(crate) ty: Type,
    /// The field's name, without `r#`.
    pub(crate) name: String,
    /// The name of the property that stores the field: from `rename`, or else the field's name in the case of
    /// `rename_all`. For a field stored as several properties, it is the prefix of their names, unless a setting
    /// names them.
    pub(crate) property: String,
    /// The span of the property's name: of `rename = ".."`, of the pattern in `series("..")`, or else of the field.
    pub(crate) property_span: Span,
    /// The name of the column constant: `FIRST_NAME` for `first_name`.
    pub(crate) constant: Ident,
    pub(crate) storage: Storage,
    pub(crate) absent: AbsenceRule,
    /// Whether a key contains a keyed hash of the field, `{field:hmac}`.
    pub(crate) has_token: bool,
    /// Whether the entity is stored as several rows. A long series is then divided among several parts.
    pub(crate) is_wide: bool,
    /// Whether the property's name is unknown, because it depends on a setting that could not be read.
    pub(crate) is_name_lost: bool,
    /// The attributes as written, for spans in error messages.
    pub(crate) attr: FieldAttr,
}

impl Field {
    /// Interprets the attributes of a field. `this` is the name of the struct, which replaces `Self`.
    pub(crate) fn new(
        field: &syn::Field,
        attr: FieldAttr,
        case: Case,
        this: &Ident,
    ) -> Option<Self> {
        let ident = field.ident.as_ref()?;
        let name = names::ident_text(ident);
        let property = match attr.rename.get() {
            Some(rename) => rename.value(),
            None => case.convert_name(&name),
        };
        Some(Self {
            property_span: property_span(&attr, ident),
            constant: names::column_constant_name(ident),
            vis: names::respanned_visibility(&field.vis),
            ty: names::replace_self_type(&field.ty, this),
            storage: storage_of(&attr, &property, &field.ty),
            absent: absent_of(&attr),
            has_token: false,
            is_wide: false,
            is_name_lost: attr.rename.is_unreadable(),
            ident: names::generated_ident_of(ident),
            span: ident.span(),
            name,
            property,
            attr,
        })
    }

    /// Records that the setting for the case of property names could not be read. The property name of a field
    /// without `rename` is then unknown.
    pub(crate) fn mark_case_unknown(&mut self) {
        self.is_name_lost |= !self.attr.rename.is_set();
    }

    /// Returns the names of the field's properties for the list of properties that copies lack. A name that ends
    /// with `*` means all names that begin with the text before it.
    pub(crate) fn property_patterns(&self) -> Vec<String> {
        match self.storage.prefix() {
            Some(prefix) => vec![format!("{prefix}*")],
            None => self.known_property_names().into_iter().map(str::to_owned).collect(),
        }
    }

    /// Returns the names of the properties that store the field. Returns none for a flattened struct and for the
    /// bag of extra properties, whose names the derive does not know, and for a skipped field, which is not stored.
    pub(crate) fn known_property_names(&self) -> Vec<&str> {
        match &self.storage {
            Storage::Plain | Storage::Json => vec![&self.property],
            Storage::Series(names) | Storage::Split(names) | Storage::Blob(names) => {
                names.iter().map(String::as_str).collect()
            }
            Storage::Flattened(_) | Storage::Extra | Storage::Skipped => Vec::new(),
        }
    }

    /// Returns the number of the part that stores one of the field's properties. `property` is the position among
    /// the field's property names, counted from 0. Returns 1 for every property of an entity that is not wide.
    pub(crate) fn wide_part_of_property(&self, property: usize) -> usize {
        let first = self.attr.part.get().and_then(|part| usize::try_from(*part).ok()).unwrap_or(1);
        match &self.storage {
            Storage::Series(names) if self.is_wide => {
                first + series::part_offset_of_slot(property, names.len())
            }
            _ => first,
        }
    }

    /// Returns the type of a series' slots.
    pub(crate) fn series_slot_type(&self) -> Option<&Type> {
        match self.storage {
            Storage::Series(_) => series::array_slot_type_and_count(&self.ty).map(|(slot, _)| slot),
            _ => None,
        }
    }

    /// Returns whether the type is written as `Option` with a type argument. A user's own type of this name may be
    /// written without one.
    pub(crate) fn is_option_with_argument(&self) -> bool {
        let last = names::last_segment(&self.ty);
        self.is_option() && last.is_some_and(|last| !last.arguments.is_empty())
    }

    /// Returns whether the type is written as `KeyRef<T>` or `Option<KeyRef<T>>`.
    pub(crate) fn is_reference(&self) -> bool {
        let inner = self.is_option().then(|| names::first_argument_type(&self.ty)).flatten();
        names::is_named_one_of(inner.unwrap_or(&self.ty), &["KeyRef"])
    }

    /// Returns the span of `flatten(prefix = "..")`, or else of the property's name.
    pub(crate) fn prefix_span(&self) -> Span {
        let prefix = self.attr.flatten.get().and_then(Option::as_ref);
        prefix.map_or(self.property_span, LitStr::span)
    }

    /// Returns whether the type is written as `Option<..>`. Does not recognise an alias.
    pub(crate) fn is_option(&self) -> bool {
        names::is_named_one_of(&self.ty, &["Option"])
    }

    /// Returns whether error messages must not show the value, because it is encrypted or is in a key as a blind token
    /// (`{field:hmac}`).
    pub(crate) fn is_secret(&self) -> bool {
        self.has_token || self.encrypt_settings().is_some()
    }

    /// Returns the settings of `encrypt`, if the field is stored as encrypted properties.
    pub(crate) fn encrypt_settings(&self) -> Option<EncryptSettings> {
        self.attr.encrypt.get().copied().filter(|_| self.storage.has_known_names())
    }

    /// Returns the name and length of the property with the blind token, if the field has one.
    pub(crate) fn token_property_and_length(&self) -> Option<(String, u32)> {
        let chars = *self.attr.blind.get()?;
        self.encrypt_settings().map(|_| (format!("{}{TOKEN_SUFFIX}", self.property), chars))
    }

    /// Returns whether a patch can remove the property, which must belong to an `Option`.
    pub(crate) fn is_removable(&self) -> bool {
        match &self.storage {
            Storage::Plain | Storage::Split(_) | Storage::Blob(_) => self.is_option(),
            Storage::Series(_) => self
                .series_slot_type()
                .is_some_and(|slot| names::is_named_one_of(slot, &["Option"])),
            Storage::Json | Storage::Flattened(_) | Storage::Extra | Storage::Skipped => false,
        }
    }

    /// Returns whether the type is written as a time or a date.
    pub(crate) fn is_time_or_date(&self) -> bool {
        names::is_named_one_of(&self.ty, &["OffsetDateTime", "DateTime"])
            || self.is_date_without_time()
    }

    /// Returns whether the type is written as a date without a time.
    pub(crate) fn is_date_without_time(&self) -> bool {
        names::is_named_one_of(&self.ty, &["Date", "NaiveDate"])
    }

    /// Returns whether the type is written as `String`.
    pub(crate) fn is_text(&self) -> bool {
        names::is_named_one_of(&self.ty, &["String"])
    }
}

fn property_span(attr: &FieldAttr, ident: &Ident) -> Span {
    let pattern = attr.series.get().and_then(Option::as_ref);
    attr.rename.get().or(pattern).map_or_else(|| ident.span(), LitStr::span)
}

fn storage_of(attr: &FieldAttr, property: &str, ty: &Type) -> Storage {
    if attr.skip.is_set() {
        Storage::Skipped
    } else if attr.extra.is_set() {
        Storage::Extra
    } else if attr.flatten.is_set() {
        let prefix = attr.flatten.get().and_then(Option::as_ref);
        Storage::Flattened(prefix.map_or_else(|| property.to_owned(), LitStr::value))
    } else if attr.series.is_set() {
        let pattern = attr.series.get().and_then(Option::as_ref).map(LitStr::value);
        // 0 slots represent a type that is not an array of literal length, which `check` reports.
        let slots = series::array_slot_type_and_count(ty).map_or(0, |(_, slots)| slots);
        Storage::Series(series::slot_names(property, pattern.as_deref(), slots))
    } else if let Some(pieces) = attr.split.get() {
        Storage::Split(series::piece_names(property, *pieces))
    } else if attr.blob.is_set() {
        let count = BLOB_SUFFIXES.len() - usize::from(!attr.encrypt.is_set());
        let suffixes = BLOB_SUFFIXES.iter().take(count);
        Storage::Blob(suffixes.map(|suffix| format!("{property}{suffix}")).collect())
    } else if attr.json.is_set() {
        Storage::Json
    } else {
        Storage::Plain
    }
}

fn absent_of(attr: &FieldAttr) -> AbsenceRule {
    match attr.default.get() {
        Some(Some(path)) => AbsenceRule::Call(path.clone()),
        Some(None) => AbsenceRule::Default,
        None if attr.skip.is_set() => AbsenceRule::Default,
        None => AbsenceRule::Refused,
    }
}
