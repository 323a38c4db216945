//! Reads `#[table(..)]` attributes of fields.

use proc_macro2::Ident;
use syn::{Attribute, Expr, Lit, LitStr, Path};

use super::{Setting, SettingValue, read_settings};
use crate::{errors::Errors, once_setting::OnceSetting};

/// Settings of `#[table(encrypt(..))]`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EncryptSettings {
    /// Bytes of a padding block. The encrypted value is padded to a multiple of it. 0 means no padding.
    pub(crate) pad: u32,
    /// Set by `hide_none`: `None` is also stored as an encrypted value, which hides from readers of the table whether
    /// there is a value.
    pub(crate) hide_none: bool,
}

/// Settings of `#[table(..)]` on a field, as written.
#[derive(Debug, Default)]
pub(crate) struct FieldAttr {
    pub(crate) rename: OnceSetting<LitStr>,
    pub(crate) json: OnceSetting<()>,
    /// Set by `flatten`. The value is the prefix of `flatten(prefix = "..")`, if given.
    pub(crate) flatten: OnceSetting<Option<LitStr>>,
    /// Set by `default`. The value is the function of `default = path`, if given.
    pub(crate) default: OnceSetting<Option<Path>>,
    pub(crate) skip: OnceSetting<()>,
    pub(crate) store: OnceSetting<()>,
    pub(crate) extra: OnceSetting<()>,
    pub(crate) encrypt: OnceSetting<EncryptSettings>,
    /// Set by `series`. The value is the pattern of `series("..")`, if given.
    pub(crate) series: OnceSetting<Option<LitStr>>,
    /// Set by `split(n)`. The value is the number of pieces.
    pub(crate) split: OnceSetting<usize>,
    /// Set by `part = n`. The value is the number of the row of a wide entity.
    pub(crate) part: OnceSetting<u32>,
    pub(crate) blob: OnceSetting<()>,
    /// Set by `blind`. The value is the length of the blind token in characters.
    pub(crate) blind: OnceSetting<u32>,
    /// Set by `plaintext`: the field is stored in plain text although its token is in a key.
    pub(crate) plaintext: OnceSetting<()>,
    /// The names of all settings of the field, in source order.
    pub(crate) names: Vec<Ident>,
}

/// The default length of a blind token in characters: 40 bits. A filter on a million rows then matches few rows with
/// other values, and the blind token reveals little about the value.
const DEFAULT_TOKEN_CHARS: u32 = 8;

/// The length of a full-strength blind token in characters, which is the maximum of `blind(chars = n)`.
const MAX_TOKEN_CHARS: u32 = 26;

/// The highest number of a part of a wide entity.
const MAX_PART: u32 = 99;

/// The largest padding block that `encrypt(pad = n)` accepts, in bytes.
const MAX_PAD: u32 = 32_768;

const ENTITY_KEYS: [&str; 14] = [
    "rename",
    "json",
    "flatten",
    "default",
    "skip",
    "store",
    "extra",
    "encrypt",
    "blind",
    "blob",
    "split",
    "series",
    "part",
    "plaintext",
];
const PROPERTIES_KEYS: [&str; 7] =
    ["rename", "json", "flatten", "default", "skip", "encrypt", "blind"];

impl FieldAttr {
    /// Reads the attributes of an entity's field.
    pub(crate) fn read_entity_field(attrs: &[Attribute], errors: &mut Errors) -> Self {
        Self::read(attrs, errors, |read, setting| match setting.name().as_str() {
            "store" => read.store.set_once(&setting.key, setting.flag()),
            "extra" => read.extra.set_once(&setting.key, setting.flag()),
            "series" => read.series.set_once(&setting.key, series(setting)),
            "split" => read.split.set_once(&setting.key, split(setting)),
            "part" => read.part.set_once(&setting.key, number(setting, 1..=MAX_PART, "part = 2")),
            "blob" => read.blob.set_once(&setting.key, setting.flag()),
            "plaintext" => read.plaintext.set_once(&setting.key, setting.flag()),
            _ => {
                read.mark_misspelt_setting(setting.guess_known_name(&ENTITY_KEYS));
                setting.refuse_unknown("field", &ENTITY_KEYS)
            }
        })
    }

    /// Reads the attributes of a field of a struct with `#[derive(Properties)]`.
    pub(crate) fn read_properties_field(attrs: &[Attribute], errors: &mut Errors) -> Self {
        Self::read(attrs, errors, |read, setting| match setting.name().as_str() {
            name if ENTITY_KEYS.contains(&name) => {
                // Do not also report what the field lacks without the setting.
                read.mark_misspelt_setting(Some(name));
                Err(syn::Error::new(
                    setting.key.span(),
                    format!(
                        "`{name}` is only allowed on fields of an entity, not on fields of a flattened struct"
                    ),
                ))
            }
            _ => {
                read.mark_misspelt_setting(setting.guess_known_name(&PROPERTIES_KEYS));
                setting.refuse_unknown("field", &PROPERTIES_KEYS)
            }
        })
    }

    /// Marks the setting `name` as given under a misspelt name, which prevents another report that it is missing. Does
    /// nothing for `None`.
    fn mark_misspelt_setting(&mut self, name: Option<&str>) {
        match name {
            Some("rename") => self.rename.mark_misspelt(),
            Some("json") => self.json.mark_misspelt(),
            Some("flatten") => self.flatten.mark_misspelt(),
            Some("default") => self.default.mark_misspelt(),
            Some("skip") => self.skip.mark_misspelt(),
            Some("store") => self.store.mark_misspelt(),
            Some("extra") => self.extra.mark_misspelt(),
            Some("encrypt") => self.encrypt.mark_misspelt(),
            Some("blind") => self.blind.mark_misspelt(),
            Some("blob") => self.blob.mark_misspelt(),
            Some("split") => self.split.mark_misspelt(),
            Some("series") => self.series.mark_misspelt(),
            Some("part") => self.part.mark_misspelt(),
            Some("plaintext") => self.plaintext.mark_misspelt(),
            _ => {}
        }
    }

    fn read(
        attrs: &[Attribute],
        errors: &mut Errors,
        other: impl Fn(&mut Self, &Setting) -> syn::Result<()>,
    ) -> Self {
        let mut read = Self::default();
        for setting in read_settings(attrs, errors) {
            let key = &setting.key;
            read.names.push(key.clone());
            let taken = match setting.name().as_str() {
                "rename" => read.rename.set_once(key, setting.string()),
                "json" => read.json.set_once(key, setting.flag()),
                "flatten" => read.flatten.set_once(key, flatten(&setting)),
                "default" => read.default.set_once(key, default(&setting)),
                "skip" => read.skip.set_once(key, setting.flag()),
                "encrypt" => read.encrypt.set_once(key, encrypt(&setting)),
                "blind" => read.blind.set_once(key, blind(&setting)),
                _ => other(&mut read, &setting),
            };
            errors.take_ok(taken);
        }
        read
    }
}

/// Reads `flatten` or `flatten(prefix = "..")`.
fn flatten(setting: &Setting) -> syn::Result<Option<LitStr>> {
    if matches!(setting.value, SettingValue::Nothing) {
        return Ok(None);
    }
    let mut prefix = OnceSetting::default();
    for inner in setting.list("flatten(prefix = \"..\")")? {
        match inner.name().as_str() {
            "prefix" => prefix.set_once(&inner.key, inner.string())?,
            _ => inner.refuse_unknown("`flatten`", &["prefix"])?,
        }
    }
    Ok(prefix.get().cloned())
}

/// Reads `series` or `series("Day{:03}")`, which stores an array as one numbered property per slot. Returns the pattern
/// of the properties' names, if given.
fn series(setting: &Setting) -> syn::Result<Option<LitStr>> {
    match &setting.value {
        SettingValue::Nothing => Ok(None),
        SettingValue::List(_, inner) if let Ok(pattern) = syn::parse2::<LitStr>(inner.clone()) => {
            Ok(Some(pattern))
        }
        _ => setting.error(
            "`series` expects a pattern for the names of its properties; write `series(\"Day{:03}\")`"
                .to_owned(),
        ),
    }
}

/// The numbers of pieces that `split(n)` accepts. Fifteen pieces of 64 KiB nearly fill a row of 1 MiB.
const PIECES: std::ops::RangeInclusive<usize> = 2..=15;

/// Reads `split(4)`, which stores a long text in several properties. Returns the number of properties.
fn split(setting: &Setting) -> syn::Result<usize> {
    if let SettingValue::List(_, inner) = &setting.value
        && let Ok(number) = syn::parse2::<syn::LitInt>(inner.clone())
        && let Ok(pieces) = number.base10_parse::<usize>()
        && PIECES.contains(&pieces)
    {
        return Ok(pieces);
    }
    setting.error("`split` expects a number of pieces from 2 to 15; write `split(4)`".to_owned())
}

/// Reads `default` or `default = path`, which provides the value of a field without a stored property. Returns the path
/// of the function.
fn default(setting: &Setting) -> syn::Result<Option<Path>> {
    match setting.value {
        SettingValue::Nothing => Ok(None),
        _ => setting.path("a function").map(Some),
    }
}

/// The default padding block with `hide_none`, in bytes. Every type of fixed length fits into it.
const DEFAULT_HIDE_NONE_PAD: u32 = 32;

/// Reads `encrypt` or `encrypt(pad = 64, hide_none)`, which encrypts the property of a field.
fn encrypt(setting: &Setting) -> syn::Result<EncryptSettings> {
    let mut read = EncryptSettings::default();
    if matches!(setting.value, SettingValue::Nothing) {
        return Ok(read);
    }
    let (mut pad, mut hide_none) = (OnceSetting::default(), OnceSetting::default());
    for inner in setting.list("encrypt(pad = 64)")? {
        match inner.name().as_str() {
            "pad" => pad.set_once(&inner.key, number(&inner, 1..=MAX_PAD, "encrypt(pad = 64)"))?,
            "hide_none" => hide_none.set_once(&inner.key, inner.flag())?,
            _ => inner.refuse_unknown("`encrypt`", &["pad", "hide_none"])?,
        }
    }
    read.hide_none = hide_none.is_set();
    // Without padding, the length alone would distinguish a null from a value.
    let default_pad = if read.hide_none { DEFAULT_HIDE_NONE_PAD } else { 0 };
    read.pad = pad.get().copied().unwrap_or(default_pad);
    Ok(read)
}

/// Reads `blind` or `blind(chars = 8)`, which stores a blind token with an encrypted property for filters to compare.
/// Returns the blind token's length in characters.
fn blind(setting: &Setting) -> syn::Result<u32> {
    if matches!(setting.value, SettingValue::Nothing) {
        return Ok(DEFAULT_TOKEN_CHARS);
    }
    let mut chars = OnceSetting::default();
    for inner in setting.list("blind(chars = 8)")? {
        match inner.name().as_str() {
            "chars" => chars
                .set_once(&inner.key, number(&inner, 1..=MAX_TOKEN_CHARS, "blind(chars = 8)"))?,
            _ => inner.refuse_unknown("`blind`", &["chars"])?,
        }
    }
    Ok(chars.get().copied().unwrap_or(DEFAULT_TOKEN_CHARS))
}

/// Reads a setting such as `pad = 64`. Fails unless the number is within `bounds`.
fn number(
    setting: &Setting,
    bounds: std::ops::RangeInclusive<u32>,
    example: &str,
) -> syn::Result<u32> {
    if let SettingValue::Value(value) = &setting.value
        && let Expr::Lit(lit) = &**value
        && let Lit::Int(number) = &lit.lit
        && let Ok(number) = number.base10_parse::<u32>()
        && bounds.contains(&number)
    {
        return Ok(number);
    }
    let (first, last) = (bounds.start(), bounds.end());
    setting.error(format!(
        "`{}` expects a number from {first} to {last}; write `{example}`",
        setting.key
    ))
}
