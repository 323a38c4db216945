//! What a bulk write takes, and how it is gathered into transactions.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    entity::{Point, Stored, TableEntity},
    error::Result,
    limits::{BATCH_OPERATIONS, REQUEST_BYTES},
    plan::{self, Change, Unresolved},
    query::decode::decode_required,
    row::Row,
};

/// What a bulk write does to an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkVerb {
    /// Create.
    Insert,
    /// Create, or put in place of what is there.
    InsertOrReplace,
}

/// A change of one entity, for a bulk write: made by what implements [`Writable`] and
/// [`Deletable`].
#[derive(Debug, Clone)]
pub struct BulkChange(pub(in crate::table) Unresolved);

/// What can be written in bulk: an entity, a value of a set, or a reference to one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an entity",
    note = "write `#[derive(TableEntity)]` on the struct, or `#[derive(EntitySet)]` on an enum of entities"
)]
pub trait Writable {
    /// The table that it belongs to, unless the caller names another.
    fn table(&self) -> &'static str;

    /// What is written.
    ///
    /// # Errors
    ///
    /// As for a single write.
    fn change(&self, verb: BulkVerb) -> Result<BulkChange>;
}

impl<W: Writable + ?Sized> Writable for &W {
    fn table(&self) -> &'static str {
        (**self).table()
    }

    fn change(&self, verb: BulkVerb) -> Result<BulkChange> {
        (**self).change(verb)
    }
}

/// How an entity is written in bulk; the derives call it.
///
/// # Errors
///
/// As for a single write.
pub fn bulk_change<E: TableEntity>(entity: &E, verb: BulkVerb) -> Result<BulkChange> {
    match verb {
        BulkVerb::Insert => plan::insert(entity),
        BulkVerb::InsertOrReplace => plan::insert_or_replace(entity),
    }
    .map(BulkChange)
}

/// What can be deleted in bulk: a stored entity, in the version that was read, or a point.
pub trait Deletable {
    /// The table that it belongs to, unless the caller names another.
    fn table(&self) -> &'static str;

    /// Its removal.
    ///
    /// # Errors
    ///
    /// Keys that cannot be.
    fn removal(&self) -> Result<BulkChange>;

    /// Whether a missing row is what was wanted.
    fn is_done_when_missing(&self) -> bool;
}

/// What can be written back where it was read: an entity, or a value of a set.
#[diagnostic::on_unimplemented(
    message = "a stored `{Self}` cannot be written",
    note = "entities and sets of entities can; a projection does not hold the whole row"
)]
pub trait Rewritable: Sized {
    /// The table that it belongs to, unless the caller names another.
    fn home(&self) -> &'static str;

    /// What puts it in place of the version that was read.
    ///
    /// # Errors
    ///
    /// As for a single write.
    fn replacement(stored: &Stored<Self>) -> Result<BulkChange>;

    /// What deletes the version that was read.
    ///
    /// # Errors
    ///
    /// Keys that cannot be.
    fn removal(stored: &Stored<Self>) -> Result<BulkChange>;

    /// The value of its row when that is read again; `None`: there is none of its kind.
    ///
    /// # Errors
    ///
    /// As for a point read.
    fn reread(row: Row) -> Result<Option<Stored<Self>>>;

    /// What messages call it.
    fn type_name(&self) -> &'static str;
}

impl<E: TableEntity> Rewritable for E {
    fn home(&self) -> &'static str {
        E::SCHEMA.table
    }

    fn replacement(stored: &Stored<E>) -> Result<BulkChange> {
        plan::replace(stored).map(BulkChange)
    }

    fn removal(stored: &Stored<E>) -> Result<BulkChange> {
        plan::delete::<E, E>(stored).map(BulkChange)
    }

    fn reread(row: Row) -> Result<Option<Stored<E>>> {
        decode_required::<E, E>(row, E::SCHEMA.primary()?).map(Some)
    }

    fn type_name(&self) -> &'static str {
        E::SCHEMA.entity
    }
}

impl<W: Rewritable> Deletable for Stored<W> {
    fn table(&self) -> &'static str {
        (**self).home()
    }

    fn removal(&self) -> Result<BulkChange> {
        W::removal(self)
    }

    fn is_done_when_missing(&self) -> bool {
        false
    }
}

impl<E: TableEntity> Deletable for Point<E> {
    fn table(&self) -> &'static str {
        E::SCHEMA.table
    }

    fn removal(&self) -> Result<BulkChange> {
        plan::delete_at::<E>(self.as_access(), false).map(BulkChange)
    }

    fn is_done_when_missing(&self) -> bool {
        true
    }
}

/// One entity's place in the input.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    pub(super) index: u64,
    pub(super) done_when_missing: bool,
}

/// A transaction in the making: the changes of one partition, and whose they are.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) table: String,
    pub(super) partition_key: String,
    pub(super) changes: Vec<Change>,
    pub(super) items: Vec<Item>,
    rows: HashSet<String>,
    operations: usize,
    bytes: usize,
    /// When its first change came.
    since: Instant,
    /// Rows that go with it once: a fence, a claim.
    shared: usize,
}

impl Group {
    fn new(table: &str, partition_key: &str) -> Self {
        Self {
            table: table.to_owned(),
            partition_key: partition_key.to_owned(),
            changes: Vec::new(),
            items: Vec::new(),
            rows: HashSet::new(),
            operations: 0,
            bytes: 0,
            shared: 0,
            since: Instant::now(),
        }
    }

    /// Whether a change fits beside the others: by count, by bytes, and by its row.
    fn takes(&self, row_key: &str, shared: usize, (operations, bytes): (usize, usize)) -> bool {
        self.operations + operations + self.shared.max(shared) <= BATCH_OPERATIONS
            && self.bytes + bytes < REQUEST_BYTES - REQUEST_BYTES / 64
            && !self.rows.contains(row_key)
    }

    fn add(
        &mut self,
        row_key: String,
        change: Change,
        item: Item,
        (operations, bytes): (usize, usize),
    ) {
        self.shared = self.shared.max(change.shared_rows());
        self.rows.insert(row_key);
        self.changes.push(change);
        self.items.push(item);
        self.operations += operations;
        self.bytes += bytes;
    }

    /// Whether two groups write one entity, or could write one list.
    pub(super) fn meets(&self, other: &Self) -> bool {
        self.table == other.table
            && self.partition_key == other.partition_key
            && (self.has_lists() || other.has_lists() || !self.rows.is_disjoint(&other.rows))
    }

    /// Its place, where work in other partitions is open as soon as it is written.
    pub(super) fn fenced(&self) -> Option<(String, String)> {
        (self.shared > 0).then(|| (self.table.clone(), self.partition_key.clone()))
    }

    fn has_lists(&self) -> bool {
        self.changes.iter().any(Change::may_write_lists)
    }

    /// The same changes, to be taken out one by one.
    pub(super) fn again(&self) -> Self {
        let mut again = Self::new(&self.table, &self.partition_key);
        again.changes.clone_from(&self.changes);
        again.items.clone_from(&self.items);
        again
    }

    /// Takes one change out, so that the others can be tried again.
    pub(super) fn drop_change(&mut self, at: usize) -> Option<Item> {
        if at >= self.items.len() {
            return None;
        }
        self.changes.remove(at);
        Some(self.items.remove(at))
    }

    /// The two halves of a group that is too large for one transaction.
    pub(super) fn halves(mut self) -> [Self; 2] {
        let half = self.items.len() / 2;
        let mut rest = Self::new(&self.table, &self.partition_key);
        rest.changes = self.changes.split_off(half);
        rest.items = self.items.split_off(half);
        [self, rest]
    }
}

/// The groups that are being filled: one for each partition.
#[derive(Debug, Default)]
pub(super) struct Groups {
    open: HashMap<(String, String), Group>,
    rows: usize,
}

/// Rows that wait for their groups to fill; past it, groups are sent as they are.
const WAITING: usize = 20_000;

impl Groups {
    /// Puts a change into its partition's group, and gives back the groups that have to go first.
    pub(super) fn put(&mut self, table: String, change: Change, item: Item) -> Result<Vec<Group>> {
        let size = change.estimate_size()?;
        let (partition_key, row_key) = change.keys();
        let (key, row_key) = ((table, partition_key.to_owned()), row_key.to_owned());
        let mut ready = Vec::new();
        let group = match self.open.entry(key) {
            Entry::Vacant(free) => {
                let (table, partition_key) = free.key();
                let group = Group::new(table, partition_key);
                free.insert(group)
            }
            Entry::Occupied(open) => {
                let group = open.into_mut();
                if !group.takes(&row_key, change.shared_rows(), size) {
                    let next = Group::new(&group.table, &group.partition_key);
                    ready.push(std::mem::replace(group, next));
                }
                group
            }
        };
        group.add(row_key, change, item, size);
        self.rows += 1;
        self.rows -= ready.iter().map(|group| group.items.len()).sum::<usize>();
        if self.rows >= WAITING {
            ready.extend(self.drain());
        }
        Ok(ready)
    }

    /// When the first of them has waited so long; `None`: nothing waits, or not in this life.
    pub(super) fn due(&self, linger: Duration) -> Option<Instant> {
        self.open.values().map(|group| group.since).min()?.checked_add(linger)
    }

    /// The groups that have waited so long, as they are.
    pub(super) fn overdue(&mut self, linger: Duration) -> Vec<Group> {
        let overdue = self.open.extract_if(|_, group| group.since.elapsed() >= linger);
        let overdue: Vec<Group> = overdue.map(|(_, group)| group).collect();
        self.rows -= overdue.iter().map(|group| group.items.len()).sum::<usize>();
        overdue
    }

    /// The places of those with work in other partitions.
    pub(super) fn fenced(&self) -> impl Iterator<Item = (String, String)> {
        self.open.values().filter_map(Group::fenced)
    }

    /// All groups, as they are.
    pub(super) fn drain(&mut self) -> Vec<Group> {
        self.rows = 0;
        self.open.drain().map(|(_, group)| group).collect()
    }
}
