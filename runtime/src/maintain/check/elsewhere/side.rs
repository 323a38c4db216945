//! The two sides of a match: what a primary derives elsewhere, a copy or an entry of a list, and what
//! is there.

use super::listed;
use crate::{
    address::{RowAt, is_same_table},
    entity::{CopyFamily, CopyRow, RowKind, RowVersion, Schema, TableEntity},
    error::Result,
    key::{Family, FamilyKind},
    maintain::check::mark::Hashing,
    plan::{
        Tokens,
        outbox::{CopyAddress, copy_with_owner, may_be_from_table, owner_of_copy},
    },
    row::Row,
    table::Table,
};

/// Whether an entity, in any version, has copies or lists in other partitions or tables.
pub(crate) fn has_copies_elsewhere(schema: &'static Schema) -> bool {
    schema.versions().any(|schema| copies(schema).chain(listed::lists(schema)).next().is_some())
}

fn copies(schema: &'static Schema) -> impl Iterator<Item = &'static Family> {
    let families: &'static [Family] = schema.families;
    families.iter().filter(|family| family.is_remote && family.kind == FamilyKind::Copy)
}

/// The tables with the entity's rows, its own first.
pub(crate) fn tables<E: TableEntity>(table: &Table<E>) -> Vec<String> {
    let mut all = vec![table.name.to_string()];
    for schema in E::SCHEMA.versions() {
        for name in copies(schema).chain(listed::lists(schema)).filter_map(|family| family.table) {
            if !all.iter().any(|known| is_same_table(known, name)) {
                all.push(name.to_owned());
            }
        }
    }
    all
}

/// What may match.
pub(crate) enum What<'r> {
    /// A copy as it is whatever version it is of.
    Copy { kinds: CopyFamily, row: &'r Row },
    /// An entry of a list, and how often its row holds it before.
    Entry { family: &'static Family, name: &'r CopyAddress, entry: &'r str, times: u64 },
}

/// One side of a match.
pub(crate) struct Side<'r> {
    pub(crate) what: What<'r>,
    /// PartitionKey and RowKey of its primary; of a copy that is there, by what it says.
    pub(crate) primary: Option<(&'r str, &'r str)>,
    /// Whether it is there, rather than derived.
    pub(crate) found: bool,
}

/// What a suspect is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Copy(CopyFamily),
    Entry(&'static Family),
}

/// A copy, or an entry, that has no counterpart.
#[derive(Debug, Clone)]
pub(crate) struct Suspect {
    pub(crate) kind: Kind,
    pub(crate) name: CopyAddress,
    /// PartitionKey and RowKey of the primary, where one is known.
    pub(crate) primary: Option<(String, String)>,
    /// Whether it is there, rather than derived.
    pub(crate) found: bool,
}

/// Gives all that a row of that table is or derives elsewhere to `each`.
pub(crate) fn sides<E: TableEntity>(
    table: &Table<E>,
    at_table: &str,
    row: &Row,
    tokens: &Tokens,
    mut each: impl FnMut(Side<'_>) -> Result<()>,
) -> Result<()> {
    let is_own = is_same_table(at_table, &table.name);
    let is_here =
        |family: &Family| family.table.map_or(is_own, |name| is_same_table(name, at_table));
    let kind = E::SCHEMA.kind_among(row, |family| match family.kind {
        FamilyKind::Primary => is_own,
        FamilyKind::Copy => family.is_remote && is_here(family),
        FamilyKind::List => family.is_remote && !family.in_blob && is_here(family),
    })?;
    match kind {
        RowKind::Primary(RowVersion::Known(_)) => derived::<E>(table, row, tokens, &mut each),
        RowKind::Copy(copy, RowVersion::Known(_)) => found::<E>(table, row, copy, &mut each),
        RowKind::List(list) => listed::found(table, row, list, &mut each).map(drop),
        RowKind::Primary(RowVersion::Unknown(_))
        | RowKind::Copy(_, RowVersion::Unknown(_))
        | RowKind::UnknownCopy
        | RowKind::Framework
        | RowKind::Foreign(_)
        | RowKind::Unmarked => Ok(()),
    }
}

/// A copy of a primary of this table that is there.
fn found<E: TableEntity>(
    table: &Table<E>,
    row: &Row,
    copy: &'static Family,
    each: &mut impl FnMut(Side<'_>) -> Result<()>,
) -> Result<()> {
    let Some(kinds) = kinds::<E>(copy) else { return Ok(()) };
    if !may_be_from_table(row, copy, &table.name)? {
        return Ok(());
    }
    let place = owner_of_copy(row, kinds, &table.name)?;
    let primary = place.as_ref().map(|place| (&*place.partition_key, &*place.row_key));
    each(Side { what: What::Copy { kinds, row }, primary, found: true })
}

fn kinds<E: TableEntity>(copy: &'static Family) -> Option<CopyFamily> {
    Some(CopyFamily { copy, primary: E::SCHEMA.primary_of_copy(copy)?, schema: E::SCHEMA })
}

/// Every copy and every entry that a primary derives elsewhere.
fn derived<E: TableEntity>(
    table: &Table<E>,
    primary: &Row,
    tokens: &Tokens,
    each: &mut impl FnMut(Side<'_>) -> Result<()>,
) -> Result<()> {
    let derived = E::SCHEMA.derive(primary, tokens)?;
    let Some(rows) = derived.into_known_rows(E::SCHEMA)? else { return Ok(()) };
    let (partition_key, row_key) = primary.keys();
    let owner = RowAt { table: &table.name, partition_key, row_key };
    for CopyRow { family, row } in &rows.remote_copies {
        let Some(kinds) = kinds::<E>(family) else { continue };
        let row = &copy_with_owner(row, kinds, owner, None)?;
        let what = What::Copy { kinds, row };
        each(Side { what, primary: Some(primary.keys()), found: false })?;
    }
    listed::derived(table, primary, &rows, each)
}

impl Side<'_> {
    pub(crate) fn hash(&self, hashing: Hashing, at_table: &str) -> Result<u64> {
        match self.what {
            What::Copy { kinds, row } => {
                hashing.elsewhere(kinds.copy.table.unwrap_or(at_table), row)
            }
            What::Entry { name, entry, times, .. } => {
                let table = name.table.to_ascii_lowercase();
                let place = (&*table, &*name.partition_key, &*name.row_key);
                Ok(hashing.entry_elsewhere(place, entry, times))
            }
        }
    }

    /// What is looked at again, of an entity in that table.
    pub(crate) fn suspect(&self, table: &str) -> Suspect {
        let (kind, name) = match self.what {
            What::Copy { kinds, row } => {
                (Kind::Copy(kinds), CopyAddress::for_row(table, kinds.copy, row))
            }
            What::Entry { family, name, .. } => (Kind::Entry(family), name.clone()),
        };
        let primary = self.primary.map(|(partition, row)| (partition.to_owned(), row.to_owned()));
        Suspect { kind, name, primary, found: self.found }
    }
}
