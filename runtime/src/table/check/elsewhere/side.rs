//! The two sides of a match: a copy that a primary derives elsewhere, and one that is there.

use super::super::mark::Hashing;
use crate::{
    entity::{CopyRow, Kinds, Recognition, Schema, TableEntity, derived_rows},
    error::Result,
    key::{Family, FamilyKind},
    plan::{
        Tokens,
        outbox::{Name, Owner, is_from_table, owned_copy, place_of},
    },
    row::Row,
    table::Table,
};

/// Whether an entity, in any version, has copies in other partitions or tables.
pub(super) fn has_copies_elsewhere(schema: &'static Schema) -> bool {
    schema.versions().any(|schema| families(schema).next().is_some())
}

fn families(schema: &'static Schema) -> impl Iterator<Item = &'static Family> {
    let families: &'static [Family] = schema.families;
    families.iter().filter(|family| family.elsewhere && family.kind == FamilyKind::Copy)
}

/// The tables with the entity's rows, its own first.
pub(super) fn tables<E: TableEntity>(table: &Table<E>) -> Vec<String> {
    let mut all = vec![table.name.to_string()];
    for family in E::SCHEMA.versions().flat_map(families) {
        if let Some(name) = family.table
            && !all.iter().any(|known| known.eq_ignore_ascii_case(name))
        {
            all.push(name.to_owned());
        }
    }
    all
}

/// One side of a match.
pub(super) struct Side<'r> {
    kinds: Kinds,
    /// The copy that is there, or that is derived, as it is whatever version it is of.
    copy: &'r Row,
    /// The primary that derives it; `None`: the copy is there.
    primary: Option<&'r Row>,
}

/// A copy that has no counterpart.
#[derive(Debug, Clone)]
pub(super) struct Suspect {
    pub(super) kinds: Kinds,
    pub(super) name: Name,
    /// PartitionKey and RowKey of the primary, where one is known.
    pub(super) primary: Option<(String, String)>,
    /// Whether it is there, rather than derived.
    pub(super) found: bool,
}

/// Gives every copy elsewhere that a row of that table is or derives to `each`.
pub(super) fn sides<E: TableEntity>(
    table: &Table<E>,
    at_table: &str,
    row: &Row,
    tokens: &Tokens,
    mut each: impl FnMut(Side<'_>) -> Result<()>,
) -> Result<()> {
    let is_own = at_table.eq_ignore_ascii_case(&table.name);
    for schema in E::SCHEMA.versions() {
        if is_own && schema.recognize(row, schema.primary()?)? == Recognition::Ours {
            return derived::<E>(table, row, tokens, &mut each);
        }
        for copy in families(schema) {
            let is_here = copy.table.map_or(is_own, |name| name.eq_ignore_ascii_case(at_table));
            if is_here && schema.recognize(row, copy)? == Recognition::Ours {
                let side = kinds::<E>(copy).map(|kinds| Side { kinds, copy: row, primary: None });
                return match side {
                    Some(side) if is_from_table(row, copy, &table.name)? => each(side),
                    _ => Ok(()),
                };
            }
        }
    }
    Ok(())
}

fn kinds<E: TableEntity>(copy: &'static Family) -> Option<Kinds> {
    Some(Kinds { copy, primary: E::SCHEMA.primary_of(copy)?, schema: E::SCHEMA })
}

/// Every copy that a primary derives elsewhere.
fn derived<E: TableEntity>(
    table: &Table<E>,
    primary: &Row,
    tokens: &Tokens,
    each: &mut impl FnMut(Side<'_>) -> Result<()>,
) -> Result<()> {
    let Some(rows) = derived_rows::<E>(primary)? else { return Ok(()) };
    let (partition_key, row_key) = (primary.partition_key(), primary.row_key());
    let owner = Owner { table: &table.name, partition_key, row_key };
    for CopyRow { family, row } in &tokens.fill(E::SCHEMA, rows)?.elsewhere {
        let Some(kinds) = kinds::<E>(family) else { continue };
        let copy = owned_copy(row, kinds, owner, None)?;
        each(Side { kinds, copy: &copy, primary: Some(primary) })?;
    }
    Ok(())
}

impl Side<'_> {
    pub(super) fn hash(&self, hashing: Hashing, at_table: &str) -> Result<u64> {
        hashing.elsewhere(self.kinds.copy.table.unwrap_or(at_table), self.copy)
    }

    /// What is looked at again, of an entity in that table.
    pub(super) fn suspect(&self, table: &str) -> Result<Suspect> {
        let primary = match self.primary {
            Some(row) => Some((row.partition_key().to_owned(), row.row_key().to_owned())),
            None => place_of(self.copy, self.kinds, table)?
                .map(|place| (place.partition_key, place.row_key)),
        };
        Ok(Suspect {
            kinds: self.kinds,
            name: Name::of_row(table, self.kinds.copy, self.copy),
            primary,
            found: self.primary.is_none(),
        })
    }
}
