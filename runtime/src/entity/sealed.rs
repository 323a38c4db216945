//! Finds the columns of an entity, including its flattened structs, whose values are stored encrypted. The code
//! calls such columns sealed.

use std::borrow::Cow;

use super::{ColumnEncryption, ColumnSchema, Schema, framework::SEAL};
use crate::key::RowFamily;

/// An encrypted column, with its property name in rows.
#[derive(Debug, Clone)]
pub(crate) struct SealedColumn {
    pub(crate) name: Cow<'static, str>,
    pub(crate) sealed: ColumnEncryption,
    /// The property with the blind token of the value, and the token's number of characters.
    pub(crate) companion: Option<(Cow<'static, str>, u32)>,
}

impl Schema {
    /// Returns whether stored rows differ from what the program sees, because of encrypted properties or a seal.
    pub(crate) const fn is_sealed(&self) -> bool {
        self.sealed || has_sealed_column(self.columns)
    }

    /// Returns the table name that is authenticated together with the encrypted values of a row family's rows: the
    /// table that the family declares, or else the entity's table. It is independent of the table that stores the
    /// rows.
    pub(crate) fn table_for_encryption(&self, family: Option<&RowFamily>) -> &'static str {
        family.and_then(|family| family.table).unwrap_or(self.table)
    }

    /// Returns whether keys of the entity's rows, in any version, contain blind tokens.
    pub(crate) fn has_key_tokens(&'static self) -> bool {
        self.token_fields().next().is_some()
    }

    /// Iterates over the fields whose blind tokens are in keys in any version. A field may occur several times.
    pub(crate) fn token_fields(&'static self) -> impl Iterator<Item = &'static str> {
        self.versions()
            .flat_map(|schema| schema.families)
            .flat_map(|family| family.partition.token_fields().chain(family.row.token_fields()))
    }

    /// Returns the encrypted columns.
    pub(crate) fn sealed_columns(&self) -> Vec<SealedColumn> {
        let mut found = Vec::new();
        if has_sealed_column(self.columns) {
            collect_sealed("", self.columns, &mut found);
        }
        found
    }

    /// Returns the encrypted columns of a row that an older version wrote and that keeps that version: all columns that
    /// this version or the older one encrypts. A column of both has the larger padding, hides absence if either does,
    /// and has the blind token of this version if there is one.
    pub(crate) fn sealed_columns_with(&self, older: Option<&'static Schema>) -> Vec<SealedColumn> {
        let mut columns = self.sealed_columns();
        for column in older.map(Schema::sealed_columns).unwrap_or_default() {
            match columns.iter_mut().find(|known| known.name == column.name) {
                Some(known) => {
                    known.sealed.pad = known.sealed.pad.max(column.sealed.pad);
                    known.sealed.hide_none |= column.sealed.hide_none;
                    if known.companion.is_none() {
                        known.companion = column.companion;
                    }
                }
                None => columns.push(column),
            }
        }
        columns
    }

    /// Returns the stored properties, in any version, that programs never see: blind tokens and seals.
    pub(crate) fn token_and_seal_properties(&'static self) -> Vec<Cow<'static, str>> {
        let mut unseen: Vec<Cow<'static, str>> = Vec::new();
        for version in self.versions() {
            let seal = version.sealed.then_some(Cow::Borrowed(SEAL));
            let columns = version.sealed_columns().into_iter();
            let tokens = columns.filter_map(|column| Some(column.companion?.0));
            // A later version may use the name of an older version's blind token for a field.
            let is_seen =
                |name: &str| version.version < self.version && self.column(name).is_some();
            unseen.extend(tokens.chain(seal).filter(|name| !is_seen(name)));
        }
        unseen
    }

    /// Finds the encrypted column with this property name.
    pub(crate) fn sealed_column(&self, name: &str) -> Option<SealedColumn> {
        self.sealed_columns().into_iter().find(|column| column.name == name)
    }
}

const fn has_sealed_column(columns: &[ColumnSchema]) -> bool {
    let mut rest = columns;
    while let [column, after @ ..] = rest {
        if column.sealed.is_some() || has_sealed_column(column.nested) {
            return true;
        }
        rest = after;
    }
    false
}

fn collect_sealed(prefix: &str, columns: &'static [ColumnSchema], found: &mut Vec<SealedColumn>) {
    let join = |name: &'static str| match prefix {
        "" => Cow::Borrowed(name),
        prefix => Cow::Owned([prefix, name].concat()),
    };
    for column in columns {
        if let Some(sealed) = column.sealed {
            let companion = sealed.blind.map(|blind| (join(blind.name), blind.chars));
            found.push(SealedColumn { name: join(column.name), sealed, companion });
        } else if !column.nested.is_empty() {
            collect_sealed(&join(column.name), column.nested, found);
        }
    }
}
