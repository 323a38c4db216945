//! Reads `#[table(..)]` attributes of structs and enums.

use proc_macro2::{Ident, Span};
use syn::{Attribute, Expr, Lit, LitStr, Path, spanned::Spanned};

use super::{Entry, EntryValue, IndexAttr, entries};
use crate::{errors::Errors, names::Case, slot::Slot};

/// Says where a row stores which entity type it is of.
#[derive(Debug, Clone)]
pub(crate) enum Discriminator {
    /// In a property of this name.
    Property(LitStr),
    /// Nowhere: the form of the row's keys tells the type.
    RowKey,
}

/// Settings in `#[table(..)]` on a struct with `#[derive(TableEntity)]`.
#[derive(Debug, Default)]
pub(crate) struct EntityAttr {
    pub(crate) name: Slot<LitStr>,
    pub(crate) partition_key: Slot<LitStr>,
    pub(crate) row_key: Slot<LitStr>,
    pub(crate) entity_type: Slot<LitStr>,
    pub(crate) discriminator: Slot<Discriminator>,
    pub(crate) rename_all: Slot<Case>,
    pub(crate) validate: Slot<Path>,
    pub(crate) hot_partition: Slot<()>,
    pub(crate) version: Slot<(u32, Span)>,
    pub(crate) upgrade_from: Slot<Path>,
    pub(crate) seal: Slot<()>,
    pub(crate) wide: Slot<()>,
    pub(crate) drop_unknown: Slot<()>,
    /// The field with the time after which the entity is over.
    pub(crate) expires: Slot<Ident>,
    /// Declarations `index(..)` and `list(..)`, in source order.
    pub(crate) indexes: Vec<IndexAttr>,
    pub(crate) runtime: Slot<Path>,
}

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
        for entry in entries(attrs, errors) {
            let taken = read.entry(&entry, errors);
            errors.take_ok(taken);
        }
        read
    }

    fn entry(&mut self, entry: &Entry, errors: &mut Errors) -> syn::Result<()> {
        let key = &entry.key;
        match entry.name().as_str() {
            "name" => self.name.set_once(key, entry.string()),
            "partition_key" => self.partition_key.set_once(key, entry.string()),
            "row_key" => self.row_key.set_once(key, entry.string()),
            "entity_type" => self.entity_type.set_once(key, entry.string()),
            "discriminator" => self.discriminator.set_once(key, discriminator(entry)),
            "rename_all" => self.rename_all.set_once(key, entry.case()),
            "validate" => self.validate.set_once(key, entry.path()),
            "crate" => self.runtime.set_once(key, entry.quoted_path()),
            "allow" => {
                // A mistake in the list is reported here. Whether a permission is missing is not known then.
                let list = entry
                    .readable_list(errors)
                    .inspect_err(|_| self.mark_misspelt_setting("allow"));
                for entry in list? {
                    let taken = self.allow(&entry);
                    errors.take_ok(taken);
                }
                Ok(())
            }
            name @ ("index" | "list") => {
                self.indexes.extend(IndexAttr::read(entry, name == "list", errors));
                Ok(())
            }
            "version" => self.version.set_once(key, version(entry)),
            "upgrade_from" => self.upgrade_from.set_once(key, entry.path_in_parentheses()),
            "seal" => self.seal.set_once(key, entry.flag()),
            "drop_unknown" => self.drop_unknown.set_once(key, entry.flag()),
            "wide" => self.wide.set_once(key, entry.flag()),
            "expires" => self.expires.set_once(key, field(entry)),
            _ => {
                match entry.meant(&ENTITY_KEYS) {
                    // Its path and its mistakes are those of the declaration that it means.
                    Some(name @ ("index" | "list"))
                        if matches!(entry.value, EntryValue::List(..)) =>
                    {
                        self.indexes.extend(IndexAttr::read(entry, name == "list", errors));
                    }
                    Some(name) => self.mark_misspelt_setting(name),
                    None => {}
                }
                entry.unknown("container", &ENTITY_KEYS)
            }
        }
    }

    /// Notes that a misspelt name means the setting `name`.
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

    fn allow(&mut self, entry: &Entry) -> syn::Result<()> {
        match entry.name().as_str() {
            "hot_partition" => self.hot_partition.set_once(&entry.key, entry.flag()),
            _ => {
                self.hot_partition.mark_misspelt();
                entry.unknown("`allow`", &["hot_partition"])
            }
        }
    }
}

/// Reads `expires = field`, which names the field with an entity's time of expiry.
fn field(entry: &Entry) -> syn::Result<Ident> {
    if let EntryValue::Value(value) = &entry.value
        && let Expr::Path(path) = &**value
        && let Some(name) = path.path.get_ident()
    {
        return Ok(name.clone());
    }
    entry.error(format!("`{0}` expects a field, write `{0} = field` without quotes", entry.key))
}

/// Reads `version = n`. Refuses 0.
fn version(entry: &Entry) -> syn::Result<(u32, Span)> {
    if let EntryValue::Value(value) = &entry.value
        && let Expr::Lit(lit) = &**value
        && let Lit::Int(number) = &lit.lit
        && let Ok(number @ 1..) = number.base10_parse()
    {
        return Ok((number, lit.span()));
    }
    entry.error("`version` expects a number from 1, write `version = 2`".to_owned())
}

/// Reads `discriminator = "Property"` or `discriminator = row_key`.
fn discriminator(entry: &Entry) -> syn::Result<Discriminator> {
    match &entry.value {
        EntryValue::Value(value) if is_ident(value, "row_key") => Ok(Discriminator::RowKey),
        EntryValue::Value(value) if !matches!(&**value, Expr::Path(_)) => {
            let name = entry.string()?;
            match name.value().as_str() {
                "row_key" | "RowKey" => Err(syn::Error::new(
                    name.span(),
                    "rows say their type by their key with `discriminator = row_key`, without quotes",
                )),
                _ => Ok(Discriminator::Property(name)),
            }
        }
        _ => entry.error(
            "`discriminator` expects a property's name or the key, write `discriminator = \"EntityType\"` or `discriminator = row_key`"
                .to_owned(),
        ),
    }
}

fn is_ident(value: &Expr, name: &str) -> bool {
    matches!(value, Expr::Path(path) if path.path.is_ident(name))
}

/// Settings in `#[table(..)]` on a struct with `#[derive(Properties)]`.
#[derive(Debug, Default)]
pub(crate) struct PropertiesAttr {
    pub(crate) rename_all: Slot<Case>,
    pub(crate) runtime: Slot<Path>,
}

/// Settings in `#[table(..)]` on an enum with `#[derive(EdmEnum)]`.
pub(crate) type EnumAttr = PropertiesAttr;

impl PropertiesAttr {
    /// Reads all `#[table(..)]` attributes of the struct or enum.
    pub(crate) fn read(attrs: &[Attribute], errors: &mut Errors) -> Self {
        let mut read = Self::default();
        for entry in entries(attrs, errors) {
            let key = &entry.key;
            let taken = match entry.name().as_str() {
                "rename_all" => read.rename_all.set_once(key, entry.case()),
                "crate" => read.runtime.set_once(key, entry.quoted_path()),
                _ => {
                    match entry.meant(&["rename_all", "crate"]) {
                        Some("rename_all") => read.rename_all.mark_misspelt(),
                        Some("crate") => read.runtime.mark_misspelt(),
                        _ => {}
                    }
                    entry.unknown("container", &["rename_all", "crate"])
                }
            };
            errors.take_ok(taken);
        }
        read
    }
}

/// Settings in `#[table(..)]` on a struct with `#[derive(Message)]`.
#[derive(Debug, Default)]
pub(crate) struct MessageAttr {
    pub(crate) name: Slot<LitStr>,
    pub(crate) version: Slot<(u32, Span)>,
    pub(crate) authenticated: Slot<()>,
    pub(crate) unauthenticated: Slot<()>,
    /// The time after which a message is not handled any more, in seconds.
    pub(crate) expires: Slot<u64>,
    pub(crate) runtime: Slot<Path>,
}

impl MessageAttr {
    /// Reads all `#[table(..)]` attributes of the message's struct.
    pub(crate) fn read(attrs: &[Attribute], errors: &mut Errors) -> Self {
        let mut read = Self::default();
        for entry in entries(attrs, errors) {
            let key = &entry.key;
            let taken = match entry.name().as_str() {
                "name" => read.name.set_once(key, entry.string()),
                "version" => read.version.set_once(key, version(&entry)),
                "authenticated" => read.authenticated.set_once(key, entry.flag()),
                "unauthenticated" => read.unauthenticated.set_once(key, entry.flag()),
                "expires" => read.expires.set_once(key, duration(&entry)),
                "crate" => read.runtime.set_once(key, entry.quoted_path()),
                _ => {
                    if entry.meant(&MESSAGE_KEYS) == Some("crate") {
                        read.runtime.mark_misspelt();
                    }
                    entry.unknown("container", &MESSAGE_KEYS)
                }
            };
            errors.take_ok(taken);
        }
        read
    }
}

const MESSAGE_KEYS: [&str; 6] =
    ["name", "version", "authenticated", "unauthenticated", "expires", "crate"];

/// Reads a duration such as `"7d"`. Returns its seconds.
fn duration(entry: &Entry) -> syn::Result<u64> {
    let text = entry.string()?;
    let value = text.value();
    let units = [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400)];
    let seconds = units.into_iter().find_map(|(unit, seconds)| {
        let number: u64 = value.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(seconds).filter(|seconds| (1..=MOST_SECONDS).contains(seconds))
    });
    seconds.ok_or_else(|| {
        let message = "`expires` expects a number and a unit, `s`, `m`, `h` or `d`, of at most 100 years, write `expires = \"7d\"`";
        syn::Error::new(text.span(), message)
    })
}

/// The longest time after which a message expires: 100 years.
const MOST_SECONDS: u64 = 100 * 366 * 86_400;

/// Settings in `#[table(..)]` on a type with `#[derive(EntitySet)]`.
#[derive(Debug, Default)]
pub(crate) struct SetAttr {
    pub(crate) runtime: Slot<Path>,
}

impl SetAttr {
    /// Reads all `#[table(..)]` attributes of the set's enum or struct.
    pub(crate) fn read(attrs: &[Attribute], errors: &mut Errors) -> Self {
        let mut read = Self::default();
        for entry in entries(attrs, errors) {
            let taken = match entry.name().as_str() {
                "crate" => read.runtime.set_once(&entry.key, entry.quoted_path()),
                _ => {
                    if entry.meant(&["crate"]).is_some() {
                        read.runtime.mark_misspelt();
                    }
                    entry.unknown("container", &["crate"])
                }
            };
            errors.take_ok(taken);
        }
        read
    }
}

/// Settings in `#[table(..)]` on a struct with `#[derive(Projection)]`.
#[derive(Debug, Default)]
pub(crate) struct ProjectionAttr {
    pub(crate) of: Slot<Path>,
    pub(crate) runtime: Slot<Path>,
}

impl ProjectionAttr {
    /// Reads all `#[table(..)]` attributes of the projection. Reports a missing `of = Entity`.
    pub(crate) fn read(attrs: &[Attribute], ident: &Ident, errors: &mut Errors) -> Self {
        let mut read = Self::default();
        for entry in entries(attrs, errors) {
            let key = &entry.key;
            let taken = match entry.name().as_str() {
                "of" => read.of.set_once(key, entry.path()),
                "crate" => read.runtime.set_once(key, entry.quoted_path()),
                _ => {
                    match entry.meant(&["of", "crate"]) {
                        Some("of") => read.of.mark_misspelt(),
                        Some("crate") => read.runtime.mark_misspelt(),
                        _ => {}
                    }
                    entry.unknown("container", &["of", "crate"])
                }
            };
            errors.take_ok(taken);
        }
        if !read.of.is_set() {
            errors.add_unless_incomplete(
                ident.span(),
                "a projection names its entity, write `#[table(of = Entity)]`",
            );
        }
        read
    }
}
