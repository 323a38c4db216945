//! Dirty rows: which rows elsewhere may be wrong, one row for each primary.

use super::{
    fence::text,
    hash::hash128,
    list_membership::{ListMembership, memberships},
    remote_copy::Owner,
    reserved_keys::{DIRTY, FORMAT, FORMAT_NAME, TYPE_NAME},
};
use crate::{
    batch::{Operation, Verb},
    edm::ValueRef,
    entity::{CopyFamily, CopyRow, EntityRows, RemoteList, Schema},
    error::{Error, ErrorKind, Result},
    key::Family,
    limits,
    plan::Effect,
    row::Row,
};

/// What the properties that name changed copies and lists begin with.
const NAME: &str = "D_";
/// The property with the primary's RowKey, where the key of the dirty row has its hash.
const ROW: &str = "Row";
/// What a hash in the key begins with.
const HASHED: char = 'h';
/// Hex digits of a hash.
const DIGITS: usize = 32;

/// A row elsewhere: of which index, and where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CopyAddress {
    /// The type and the index: `Employee#ByEmail`.
    pub(crate) index: String,
    pub(crate) table: String,
    pub(crate) partition_key: String,
    pub(crate) row_key: String,
}

impl CopyAddress {
    /// The place of a row, which is a copy of a primary in that table or would be one.
    pub(crate) fn of_row(table: &str, family: &Family, row: &Row) -> Self {
        Self {
            index: [entity_type_of(family), "#", family.name].concat(),
            table: family.table.unwrap_or(table).to_owned(),
            partition_key: row.partition_key().to_owned(),
            row_key: row.row_key().to_owned(),
        }
    }

    fn of(table: &str, copy: &CopyRow) -> Self {
        Self::of_row(table, copy.family, &copy.row)
    }

    /// The type and the index.
    pub(crate) fn split(&self) -> Option<(&str, &str)> {
        self.index.split_once('#')
    }

    /// Whether a copy of a primary in that table belongs there.
    pub(crate) fn is_of(&self, table: &str, copy: &CopyRow) -> bool {
        let place = Self::of(table, copy);
        // A table has one name in any case.
        self.table.eq_ignore_ascii_case(&place.table)
            && *self == Self { table: self.table.clone(), ..place }
    }

    fn property(&self) -> String {
        let texts = [&self.index, &self.table, &self.partition_key, &self.row_key];
        [NAME, &hash128(&texts.map(String::as_str))].concat()
    }

    fn value(&self) -> String {
        let texts = [&self.index, &self.table, &self.partition_key, &self.row_key];
        serde_json::Value::from(texts.map(String::as_str).to_vec()).to_string()
    }

    fn parse(value: &str) -> Option<Self> {
        let [index, table, partition_key, row_key] = serde_json::from_str(value).ok()?;
        Some(Self { index, table, partition_key, row_key })
    }
}

/// A row elsewhere that a change concerns.
#[derive(Debug, Clone)]
pub(crate) struct CopyChange {
    pub(crate) name: CopyAddress,
    pub(crate) kinds: CopyFamily,
    /// What it shall hold; `None`: it shall not be there.
    pub(crate) wanted: Option<Row>,
    /// Whether it was there, by the primary as it was.
    pub(crate) was_there: bool,
}

impl CopyChange {
    /// Whether its key has to be claimed: it is new to the primary, and nobody else may have it.
    pub(crate) fn is_claimed(&self) -> bool {
        self.kinds.copy.unique && self.wanted.is_some() && !self.was_there
    }
}

/// What a change concerns elsewhere, for one primary.
#[derive(Debug, Clone)]
pub(crate) struct Dirty {
    pub(crate) partition_key: String,
    /// The primary's RowKey.
    pub(crate) primary: String,
    pub(crate) copy_changes: Vec<CopyChange>,
    pub(crate) memberships: Vec<ListMembership>,
}

/// What effects in one table concern elsewhere. Copies that stay as they are are left out: what was
/// true of them stays true, and earlier work on them is recorded still.
pub(crate) fn dirty_rows(effects: &[impl AsRef<Effect>], table: &str) -> Vec<Dirty> {
    effects.iter().flat_map(|effect| of_effect(effect.as_ref(), table)).collect()
}

fn of_effect(effect: &Effect, table: &str) -> Vec<Dirty> {
    let Some(schema) = effect.schema else { return Vec::new() };
    let copies =
        |rows: Option<&EntityRows>| rows.map(|rows| rows.remote_copies.clone()).unwrap_or_default();
    let (old, new) = (copies(effect.old.as_ref()), copies(effect.new.as_ref()));
    let (old_rows, new_rows) = (effect.old.as_ref(), effect.new.as_ref());
    let is_one = effect.primary.len() == 1;
    let dirty = effect.primary.iter().filter_map(|operation| {
        let (partition_key, row_key) = operation.row().keys();
        let owner = Owner { table, partition_key, row_key };
        let (copy_changes, memberships) = match operation.verb() {
            Verb::Delete => {
                (copy_changes(schema, table, &old, &[]), memberships(schema, owner, old_rows, None))
            }
            _ if is_one => (
                copy_changes(schema, table, &old, &new),
                memberships(schema, owner, old_rows, new_rows),
            ),
            _ => {
                (copy_changes(schema, table, &[], &new), memberships(schema, owner, None, new_rows))
            }
        };
        (!copy_changes.is_empty() || !memberships.is_empty()).then(|| Dirty {
            partition_key: operation.row().partition_key().to_owned(),
            primary: operation.row().row_key().to_owned(),
            copy_changes,
            memberships,
        })
    });
    dirty.collect()
}

fn copy_changes(
    schema: &'static Schema,
    table: &str,
    old: &[CopyRow],
    new: &[CopyRow],
) -> Vec<CopyChange> {
    let copy_change = |copy: &CopyRow, wanted: Option<&Row>, was_there: bool| {
        let primary = schema.primary_of_copy(copy.family)?;
        let kinds = CopyFamily { copy: copy.family, primary, schema };
        Some(CopyChange {
            name: CopyAddress::of(table, copy),
            kinds,
            wanted: wanted.cloned(),
            was_there,
        })
    };
    let left = old.iter().filter(|old| !new.iter().any(|new| is_at_same_place(old, new)));
    let left = left.filter_map(|copy| copy_change(copy, None, true));
    let written = new.iter().filter_map(|copy| {
        let before = old.iter().find(|old| is_at_same_place(old, copy));
        if before.is_some_and(|before| before.row.has_same_content(&copy.row)) {
            return None;
        }
        copy_change(copy, Some(&copy.row), before.is_some())
    });
    left.chain(written).collect()
}

/// The type that the rows of a family are of, in whatever version.
fn entity_type_of(family: &Family) -> &str {
    let marker = family.marker.split_once('#').map_or(family.marker, |(marker, _)| marker);
    match marker.rsplit_once(".v") {
        Some((name, version)) if version.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => marker,
    }
}

fn is_at_same_place(a: &CopyRow, b: &CopyRow) -> bool {
    a.family.name == b.family.name
        && a.family.table == b.family.table
        && a.row.key_bytes() == b.row.key_bytes()
}

impl Dirty {
    /// The record of one copy of a primary.
    pub(crate) fn naming(
        schema: &'static Schema,
        table: &str,
        primary: &Row,
        copy: &CopyRow,
    ) -> Option<Self> {
        let kinds =
            CopyFamily { copy: copy.family, primary: schema.primary_of_copy(copy.family)?, schema };
        let copy_change = CopyChange {
            name: CopyAddress::of(table, copy),
            kinds,
            wanted: Some(copy.row.clone()),
            was_there: false,
        };
        Some(Self {
            partition_key: primary.partition_key().to_owned(),
            primary: primary.row_key().to_owned(),
            copy_changes: vec![copy_change],
            memberships: Vec::new(),
        })
    }

    /// The record of a primary in one list elsewhere.
    pub(crate) fn naming_list(
        schema: &'static Schema,
        table: &str,
        primary: &Row,
        listed: &RemoteList,
    ) -> Self {
        let (partition_key, row_key) = primary.keys();
        let owner = Owner { table, partition_key, row_key };
        Self {
            partition_key: partition_key.to_owned(),
            primary: row_key.to_owned(),
            copy_changes: Vec::new(),
            memberships: vec![ListMembership::of(schema, owner, listed, true)],
        }
    }

    /// The RowKey of its row.
    pub(crate) fn row_key(&self) -> String {
        dirty_key(&self.primary)
    }

    /// What records it: as an insert, which fails where earlier work is still open, or joined with
    /// that.
    pub(crate) fn recorded(&self, joined: bool) -> Result<Operation> {
        let copies = self.copy_changes.iter().map(|copy_change| &copy_change.name);
        let lists = self.memberships.iter().map(|membership| &membership.name);
        let row = row_of(&self.partition_key, &self.primary, copies.chain(lists))?;
        Ok(if joined { Operation::insert_or_merge(row) } else { Operation::insert(row) })
    }
}

/// The RowKey of the dirty row of a primary: a hash of the primary's where that would be too long,
/// or would look like a hash.
pub(crate) fn dirty_key(primary: &str) -> String {
    let is_like_hash = primary.strip_prefix(HASHED).is_some_and(|rest| {
        rest.len() == DIGITS && rest.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    if is_like_hash || limits::utf16_units(primary) + DIRTY.len() > limits::KEY_UNITS {
        format!("{DIRTY}{HASHED}{}", hash128(&[primary]))
    } else {
        [DIRTY, primary].concat()
    }
}

/// What records that some copies of a primary may be wrong.
pub(crate) fn suspected(
    partition_key: &str,
    primary: &str,
    names: &[CopyAddress],
) -> Result<Operation> {
    row_of(partition_key, primary, names.iter()).map(Operation::insert_or_merge)
}

fn row_of<'n>(
    partition_key: &str,
    primary: &str,
    names: impl Iterator<Item = &'n CopyAddress>,
) -> Result<Row> {
    let row_key = dirty_key(primary);
    let mut row = Row::build(partition_key, &row_key);
    row.put(TYPE_NAME, ValueRef::String("entable.dirty"));
    row.put(FORMAT_NAME, ValueRef::Int32(FORMAT));
    if row_key.strip_prefix(DIRTY) != Some(primary) {
        row.put(ROW, ValueRef::String(primary));
    }
    for name in names {
        row.put(&name.property(), ValueRef::String(&name.value()));
    }
    row.finish()
}

/// A dirty row as it was read.
#[derive(Debug, Clone)]
pub(crate) struct OpenRow {
    pub(crate) row: Row,
    /// The primary's RowKey.
    pub(crate) primary: String,
    pub(crate) names: Vec<CopyAddress>,
}

impl OpenRow {
    /// The dirty row of that row.
    pub(crate) fn of(row: Row) -> Result<Self> {
        let key = row.row_key().strip_prefix(DIRTY).unwrap_or_default();
        let primary = match row.get(ROW)? {
            Some(_) => text(&row, ROW)?.to_owned(),
            None => key.to_owned(),
        };
        let mut names = Vec::new();
        let mut properties = row.properties();
        while let Some((property, value)) = properties.next()? {
            if !property.starts_with(NAME.as_bytes()) {
                continue;
            }
            let name = match value {
                ValueRef::String(value) => CopyAddress::parse(value),
                _ => None,
            };
            names.push(name.ok_or_else(|| {
                let property = String::from_utf8_lossy(property);
                Error::new(ErrorKind::Decode, "expected the name of a row elsewhere")
                    .in_property(&property)
                    .at_keys(row.partition_key(), row.row_key())
            })?);
        }
        names.sort();
        Ok(Self { primary, names, row })
    }

    /// What puts it back.
    pub(crate) fn recorded(&self) -> Result<Operation> {
        row_of(self.row.partition_key(), &self.primary, self.names.iter())
            .map(Operation::insert_or_merge)
    }
}
