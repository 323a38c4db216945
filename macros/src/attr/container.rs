//! Reads `#[table(..)]` attributes of structs and enums.

use proc_macro2::{Ident, Span};
use syn::{Attribute, Expr, Lit, LitStr, Path, spanned::Spanned};

use super::{IndexAttr, Setting, SettingValue, read_settings};
use crate::{errors::Errors, names::Case, once_setting::OnceSetting};

/// Where a row's entity type is stored.
#[derive(Debug, Clone)]
pub(crate) enum Discriminator {
    /// In a property of this name.
    Property(LitStr),
    /// In no property: the form of the row's keys determines the type.
    RowKey,
}

/// Settings of `#[table(..)]` on a struct with `#[derive(TableEntity)]`.
#[derive(Debug, Default)]
pub(crate) struct EntityAttr {
    pub(crate) name: OnceSetting<LitStr>,
    pub(crate) partition_key: OnceSetting<LitStr>,
    pub(crate) row_key: OnceSetting<LitStr>,
    pub(crate) entity_type: OnceSetting<LitStr>,
    pub(crate) discriminator: OnceSetting<Discriminator>,
    pub(crate) rename_all: OnceSetting<Case>,
    pub(crate) validate: OnceSetting<Path>,
    pub(crate) hot_partition: OnceSetting<()>,
    /// Whether `allow` silences each note of a report, in the order of [`NOTES`].
    silenced: [OnceSetting<()>; NOTES.len()],
    /// Whether rows of other types may have the keys of this type's, from `allow(same_keys)`.
    pub(crate) same_keys: OnceSetting<()>,
    pub(crate) version: OnceSetting<(u32, Span)>,
    pub(crate) upgrade_from: OnceSetting<Path>,
    pub(crate) seal: OnceSetting<()>,
    pub(crate) wide: OnceSetting<()>,
    pub(crate) drop_unknown: OnceSetting<()>,
    /// The field with the time of expiry, from `expires = field`.
    pub(crate) expires: OnceSetting<Ident>,
    /// The `index(..)` and `list(..)` declarations, in source order.
    pub(crate) indexes: Vec<IndexAttr>,
    pub(crate) runtime: OnceSetting<Path>,
}

/// The names in `allow(..)`.
const ALLOWED: [&str; 5] = ["hot_partition", "same_keys", NOTES[0], NOTES[1], NOTES[2]];

/// The names in `allow(..)` that silence a note of a report and do nothing else.
const NOTES: [&str; 3] = ["growing_list", "copied_blob", "unread_index"];

const ENTITY_KEYS: [&str; 17] = [
    "name",
    "partition_key",
    "row_key",
    "entity_type",
    "discriminator",
    "rename_all",
    "validate",
    "allow",
    "crate",
    "version",
    "upgrade_from",
    "index",
    "list",
    "wide",
    "seal",
    "drop_unknown",
    "expires",
];

impl EntityAttr {
    /// Reads all `#[table(..)]` attributes of the struct.
    pub(crate) fn read(attrs: &[Attribute], errors: &mut Errors) -> Self {
        let mut read = Self::default();
        for setting in read_settings(attrs, errors) {
            let taken = read.take_setting(&setting, errors);
            errors.take_ok(taken);
        }
        read
    }

    fn take_setting(&mut self, setting: &Setting, errors: &mut Errors) -> syn::Result<()> {
        let key = &setting.key;
        match setting.name().as_str() {
            "name" => self.name.set_once(key, setting.string()),
            "partition_key" => self.partition_key.set_once(key, setting.string()),
            "row_key" => self.row_key.set_once(key, setting.string()),
            "entity_type" => self.entity_type.set_once(key, setting.string()),
            "discriminator" => self.discriminator.set_once(key, discriminator(setting)),
            "rename_all" => self.rename_all.set_once(key, setting.read_case()),
            "validate" => self.validate.set_once(key, setting.path("a function")),
            "crate" => self.runtime.set_once(key, setting.quoted_path()),
            "allow" => {
                // A mistake in the list is reported here. It hides whether a permission is missing.
                let list = setting
                    .readable_list("allow(hot_partition)", errors)
                    .inspect_err(|_| self.mark_misspelt_setting("allow"));
                for setting in list? {
                    let taken = self.allow(&setting);
                    errors.take_ok(taken);
                }
                Ok(())
            }
            name @ ("index" | "list") => {
                self.indexes.extend(IndexAttr::read(setting, name == "list", errors));
                Ok(())
            }
            "version" => self.version.set_once(key, version(setting)),
            "upgrade_from" => self.upgrade_from.set_once(key, setting.path_in_parentheses()),
            "seal" => self.seal.set_once(key, setting.flag()),
            "drop_unknown" => self.drop_unknown.set_once(key, setting.flag()),
            "wide" => self.wide.set_once(key, setting.flag()),
            "expires" => self.expires.set_once(key, field(setting)),
            _ => {
                match setting.guess_known_name(&ENTITY_KEYS) {
                    // Its path and mistakes are those of the intended declaration.
                    Some(name @ ("index" | "list"))
                        if matches!(setting.value, SettingValue::List(..)) =>
                    {
                        self.indexes.extend(IndexAttr::read(setting, name == "list", errors));
                    }
                    Some(name) => self.mark_misspelt_setting(name),
                    // It may be any setting that seems missing.
                    None => errors.mark_incomplete(),
                }
                setting.refuse_unknown("container", &ENTITY_KEYS)
            }
        }
    }

    /// Marks the setting `name` as given under a misspelt name, which prevents another report that it is missing.
    fn mark_misspelt_setting(&mut self, name: &str) {
        match name {
            "name" => self.name.mark_misspelt(),
            "partition_key" => self.partition_key.mark_misspelt(),
            "row_key" => self.row_key.mark_misspelt(),
            "entity_type" => self.entity_type.mark_misspelt(),
            "discriminator" => self.discriminator.mark_misspelt(),
            "rename_all" => self.rename_all.mark_misspelt(),
            "validate" => self.validate.mark_misspelt(),
            "crate" => self.runtime.mark_misspelt(),
            "allow" => self.hot_partition.mark_misspelt(),
            "version" => self.version.mark_misspelt(),
            "upgrade_from" => self.upgrade_from.mark_misspelt(),
            "wide" => self.wide.mark_misspelt(),
            "seal" => self.seal.mark_misspelt(),
            "drop_unknown" => self.drop_unknown.mark_misspelt(),
            _ => {}
        }
    }

    /// Returns the names of the notes that reports leave out.
    pub(crate) fn silenced_notes(&self) -> Vec<&'static str> {
        let notes = NOTES.into_iter().zip(&self.silenced);
        let silenced = notes.filter(|(_, given)| given.is_set()).map(|(note, _)| note);
        self.hot_partition.is_set().then_some("hot_partition").into_iter().chain(silenced).collect()
    }

    fn allow(&mut self, setting: &Setting) -> syn::Result<()> {
        match setting.name().as_str() {
            "hot_partition" => self.hot_partition.set_once(&setting.key, setting.flag()),
            "same_keys" => self.same_keys.set_once(&setting.key, setting.flag()),
            name => {
                let mut notes = NOTES.iter().zip(&mut self.silenced);
                if let Some((_, silenced)) = notes.find(|(note, _)| **note == name) {
                    return silenced.set_once(&setting.key, setting.flag());
                }
                // Without `hot_partition` one more message would follow, and without another name none.
                self.hot_partition.mark_misspelt();
                setting.refuse_unknown("`allow`", &ALLOWED)
            }
        }
    }
}

/// Reads `expires = field`, the field with an entity's time of expiry.
fn field(setting: &Setting) -> syn::Result<Ident> {
    if let SettingValue::Value(value) = &setting.value
        && let Expr::Path(path) = &**value
        && let Some(name) = path.path.get_ident()
    {
        return Ok(name.clone());
    }
    setting.error(format!(
        "`{0}` expects the name of a field; write `{0} = field` without quotes",
        setting.key
    ))
}

/// Reads `version = n`. Refuses 0.
fn version(setting: &Setting) -> syn::Result<(u32, Span)> {
    if let SettingValue::Value(value) = &setting.value
        && let Expr::Lit(lit) = &**value
        && let Lit::Int(number) = &lit.lit
        && let Ok(number @ 1..) = number.base10_parse()
    {
        return Ok((number, lit.span()));
    }
    setting.error("`version` expects a number of at least 1; write `version = 2`".to_owned())
}

/// Reads `discriminator = "Property"` or `discriminator = row_key`.
fn discriminator(setting: &Setting) -> syn::Result<Discriminator> {
    match &setting.value {
        SettingValue::Value(value) if is_ident(value, "row_key") => Ok(Discriminator::RowKey),
        SettingValue::Value(value) if !matches!(&**value, Expr::Path(_)) => {
            let name = setting.string()?;
            match name.value().as_str() {
                "row_key" | "RowKey" => Err(syn::Error::new(
                    name.span(),
                    "`row_key` in quotes would be the name of a property; to tell types apart by RowKey, write `discriminator = row_key` without quotes",
                )),
                _ => Ok(Discriminator::Property(name)),
            }
        }
        _ => setting.error(
            "`discriminator` expects the name of a property, or `row_key`; write `discriminator = \"EntityType\"` or `discriminator = row_key`"
                .to_owned(),
        ),
    }
}

fn is_ident(value: &Expr, name: &str) -> bool {
    matches!(value, Expr::Path(path) if path.path.is_ident(name))
}

/// Settings of `#[table(..)]` on a struct with `#[derive(Properties)]`.
#[derive(Debug, Default)]
pub(crate) struct PropertiesAttr {
    pub(crate) rename_all: OnceSetting<Case>,
    pub(crate) runtime: OnceSetting<Path>,
}

/// Settings of `#[table(..)]` on an enum with `#[derive(EdmEnum)]`.
pub(crate) type EnumAttr = PropertiesAttr;

impl PropertiesAttr {
    /// Reads all `#[table(..)]` attributes of the struct or enum.
    pub(crate) fn read(attrs: &[Attribute], errors: &mut Errors) -> Self {
        let mut read = Self::default();
        for setting in read_settings(attrs, errors) {
            let key = &setting.key;
            let taken = match setting.name().as_str() {
                "rename_all" => read.rename_all.set_once(key, setting.read_case()),
                "crate" => read.runtime.set_once(key, setting.quoted_path()),
                _ => {
                    match setting.guess_known_name(&["rename_all", "crate"]) {
                        Some("rename_all") => read.rename_all.mark_misspelt(),
                        Some("crate") => read.runtime.mark_misspelt(),
                        _ => {}
                    }
                    setting.refuse_unknown("container", &["rename_all", "crate"])
                }
            };
            errors.take_ok(taken);
        }
        read
    }
}

/// Settings of `#[table(..)]` on a struct with `#[derive(Message)]`.
#[derive(Debug, Default)]
pub(crate) struct MessageAttr {
    pub(crate) name: OnceSetting<LitStr>,
    pub(crate) version: OnceSetting<(u32, Span)>,
    pub(crate) authenticated: OnceSetting<()>,
    pub(crate) unauthenticated: OnceSetting<()>,
    /// The time, in seconds, after which a message is no longer handled.
    pub(crate) expires: OnceSetting<u64>,
    pub(crate) runtime: OnceSetting<Path>,
}

impl MessageAttr {
    /// Reads all `#[table(..)]` attributes of the message's struct.
    pub(crate) fn read(attrs: &[Attribute], errors: &mut Errors) -> Self {
        let mut read = Self::default();
        for setting in read_settings(attrs, errors) {
            let key = &setting.key;
            let taken = match setting.name().as_str() {
                "name" => read.name.set_once(key, setting.string()),
                "version" => read.version.set_once(key, version(&setting)),
                "authenticated" => read.authenticated.set_once(key, setting.flag()),
                "unauthenticated" => read.unauthenticated.set_once(key, setting.flag()),
                "expires" => read.expires.set_once(key, duration(&setting)),
                "crate" => read.runtime.set_once(key, setting.quoted_path()),
                _ => {
                    if setting.guess_known_name(&MESSAGE_KEYS) == Some("crate") {
                        read.runtime.mark_misspelt();
                    }
                    setting.refuse_unknown("container", &MESSAGE_KEYS)
                }
            };
            errors.take_ok(taken);
        }
        read
    }
}

const MESSAGE_KEYS: [&str; 6] =
    ["name", "version", "authenticated", "unauthenticated", "expires", "crate"];

/// Reads a duration such as `"7d"` and returns it in seconds.
fn duration(setting: &Setting) -> syn::Result<u64> {
    let text = setting.string().ok();
    let value = text.as_ref().map(LitStr::value).unwrap_or_default();
    let units = [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400)];
    let seconds = units.into_iter().find_map(|(unit, seconds)| {
        let number: u64 = value.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(seconds).filter(|seconds| (1..=MOST_SECONDS).contains(seconds))
    });
    seconds.ok_or_else(|| {
        let message = "`expires` expects a number with the unit `s`, `m`, `h` or `d`, at most 100 years; write `expires = \"7d\"`";
        syn::Error::new(setting.span(), message)
    })
}

/// The maximum expiry of a message: 100 years.
const MOST_SECONDS: u64 = 100 * 366 * 86_400;

/// Settings of `#[table(..)]` on a type that takes the path of the crate alone.
#[derive(Debug, Default)]
pub(crate) struct CrateAttr {
    pub(crate) runtime: OnceSetting<Path>,
}

impl CrateAttr {
    /// Reads all `#[table(..)]` attributes of the type.
    pub(crate) fn read(attrs: &[Attribute], errors: &mut Errors) -> Self {
        let mut read = Self::default();
        for setting in read_settings(attrs, errors) {
            let taken = match setting.name().as_str() {
                "crate" => read.runtime.set_once(&setting.key, setting.quoted_path()),
                _ => {
                    if setting.guess_known_name(&["crate"]).is_some() {
                        read.runtime.mark_misspelt();
                    }
                    setting.refuse_unknown("container", &["crate"])
                }
            };
            errors.take_ok(taken);
        }
        read
    }
}

/// Settings of `#[table(..)]` on a type with `#[derive(EntitySet)]`.
#[derive(Debug, Default)]
pub(crate) struct SetAttr {
    /// Whether primaries of two members may have the same key, from `allow(same_keys)`.
    pub(crate) same_keys: OnceSetting<()>,
    pub(crate) runtime: OnceSetting<Path>,
}

impl SetAttr {
    /// Reads all `#[table(..)]` attributes of the set's enum or struct.
    pub(crate) fn read(attrs: &[Attribute], errors: &mut Errors) -> Self {
        let mut read = Self::default();
        for setting in read_settings(attrs, errors) {
            let taken = match setting.name().as_str() {
                "crate" => read.runtime.set_once(&setting.key, setting.quoted_path()),
                "allow" => {
                    let list = setting.readable_list("allow(same_keys)", errors);
                    list.map(|list| {
                        for setting in list {
                            let taken = read.allow(&setting);
                            errors.take_ok(taken);
                        }
                    })
                }
                _ => {
                    match setting.guess_known_name(&["allow", "crate"]) {
                        Some("allow") => read.same_keys.mark_misspelt(),
                        Some("crate") => read.runtime.mark_misspelt(),
                        _ => {}
                    }
                    setting.refuse_unknown("container", &["allow", "crate"])
                }
            };
            errors.take_ok(taken);
        }
        read
    }

    fn allow(&mut self, setting: &Setting) -> syn::Result<()> {
        match setting.name().as_str() {
            "same_keys" => self.same_keys.set_once(&setting.key, setting.flag()),
            _ => {
                self.same_keys.mark_misspelt();
                setting.refuse_unknown("`allow`", &["same_keys"])
            }
        }
    }
}

/// Settings of `#[table(..)]` on a struct with `#[derive(Projection)]`.
#[derive(Debug, Default)]
pub(crate) struct ProjectionAttr {
    pub(crate) of: OnceSetting<Path>,
    pub(crate) runtime: OnceSetting<Path>,
}

impl ProjectionAttr {
    /// Reads all `#[table(..)]` attributes of the projection. Reports a missing `of = Entity`.
    pub(crate) fn read(attrs: &[Attribute], ident: &Ident, errors: &mut Errors) -> Self {
        let mut read = Self::default();
        for setting in read_settings(attrs, errors) {
            let key = &setting.key;
            let taken = match setting.name().as_str() {
                "of" => read.of.set_once(key, setting.path("an entity")),
                "crate" => read.runtime.set_once(key, setting.quoted_path()),
                _ => {
                    match setting.guess_known_name(&["of", "crate"]) {
                        Some("of") => read.of.mark_misspelt(),
                        Some("crate") => read.runtime.mark_misspelt(),
                        // It may be the `of` that seems missing.
                        _ => errors.mark_incomplete(),
                    }
                    setting.refuse_unknown("container", &["of", "crate"])
                }
            };
            errors.take_ok(taken);
        }
        // A misspelt `of` counts as given, because its unknown name has already been reported.
        if !read.of.is_set() {
            errors.add_unless_incomplete(
                ident.span(),
                "a projection needs the entity it reads; write `#[table(of = Entity)]`",
            );
        }
        read
    }
}
