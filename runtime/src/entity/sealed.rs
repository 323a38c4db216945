//! Which columns of an entity are sealed, flattened structs included.

use std::borrow::Cow;

use super::{ColumnSchema, Schema, Sealed};
#[cfg(feature = "encrypt")]
use crate::key::Family;

/// The property that vouches for all others of a row, where an entity asks for it.
pub const SEAL: &str = "EntitySeal";

/// A sealed column, by the name that rows have it under.
#[derive(Debug, Clone)]
pub(crate) struct SealedColumn {
    pub(crate) name: Cow<'static, str>,
    pub(crate) sealed: Sealed,
    /// The property with the token of the value, and how long that is.
    pub(crate) companion: Option<(Cow<'static, str>, u32)>,
}

impl Schema {
    /// Whether its rows are stored in another form than they have here.
    pub(crate) fn is_sealed(&self) -> bool {
        self.sealed || any_sealed(self.columns)
    }

    /// The table that the values of a kind of its rows are bound to: by name, wherever it is stored.
    #[cfg(feature = "encrypt")]
    pub(crate) fn table_of(&self, family: Option<&Family>) -> &'static str {
        family.and_then(|family| family.table).unwrap_or(self.table)
    }

    /// Whether keys of its rows, in whatever version, have tokens of fields.
    pub(crate) fn has_tokens(&'static self) -> bool {
        self.token_fields().next().is_some()
    }

    /// The fields that keys have tokens of, in whatever version; one that several keys have comes
    /// several times.
    pub(crate) fn token_fields(&'static self) -> impl Iterator<Item = &'static str> {
        self.versions()
            .flat_map(|schema| schema.families)
            .flat_map(|family| family.partition.token_fields().chain(family.row.token_fields()))
    }

    /// The columns that are sealed.
    pub(crate) fn sealed_columns(&self) -> Vec<SealedColumn> {
        let mut found = Vec::new();
        if any_sealed(self.columns) {
            collect("", self.columns, &mut found);
        }
        found
    }

    /// The properties of its rows, in whatever version, that hold tokens of others or vouch for the
    /// row: no program sees them.
    #[cfg(feature = "encrypt")]
    pub(crate) fn unseen(&'static self) -> Vec<Cow<'static, str>> {
        let mut unseen: Vec<Cow<'static, str>> = Vec::new();
        for version in self.versions() {
            let seal = version.sealed.then_some(Cow::Borrowed(SEAL));
            let columns = version.sealed_columns().into_iter();
            let tokens = columns.filter_map(|column| Some(column.companion?.0));
            // What was a token's name may be a field's by now.
            let is_seen =
                |name: &str| version.version < self.version && self.column(name).is_some();
            unseen.extend(tokens.chain(seal).filter(|name| !is_seen(name)));
        }
        unseen
    }

    /// The sealed column of that name.
    pub(crate) fn sealed_column(&self, name: &str) -> Option<SealedColumn> {
        self.sealed_columns().into_iter().find(|column| column.name == name)
    }
}

fn any_sealed(columns: &[ColumnSchema]) -> bool {
    columns.iter().any(|column| column.sealed.is_some() || any_sealed(column.nested))
}

fn collect(prefix: &str, columns: &'static [ColumnSchema], found: &mut Vec<SealedColumn>) {
    let join = |name: &'static str| match prefix {
        "" => Cow::Borrowed(name),
        prefix => Cow::Owned([prefix, name].concat()),
    };
    for column in columns {
        if let Some(sealed) = column.sealed {
            let companion = sealed.blind.map(|blind| (join(blind.name), blind.chars));
            found.push(SealedColumn { name: join(column.name), sealed, companion });
        } else if !column.nested.is_empty() {
            collect(&join(column.name), column.nested, found);
        }
    }
}
