//! Gathers the changes of a bulk write into groups, each for one partition and one transaction.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    time::Duration,
};

use tokio::time::Instant;

use super::group_writer::Splittable;
use crate::{
    limits::{BATCH_OPERATIONS, REQUEST_BYTES},
    plan::Change,
};

/// The origin of a change: the position of its entity in the input.
#[derive(Debug, Clone, Copy)]
pub(super) struct InputPosition {
    pub(super) index: usize,
    /// Whether a missing row counts as written.
    pub(super) done_when_missing: bool,
}

/// The changes of one partition for one transaction, and the input items that they come from.
#[derive(Debug)]
pub(super) struct ChangeGroup {
    pub(super) table: String,
    pub(super) partition_key: String,
    pub(super) changes: Vec<Change>,
    pub(super) items: Vec<InputPosition>,
    /// The RowKeys of the primary entities that the changes write.
    primary_row_keys: HashSet<String>,
    operations: usize,
    bytes: usize,
    /// When the group was opened.
    opened: Instant,
    /// Rows that the transaction needs once for all changes, such as the fence or a claim.
    shared_rows: usize,
}

/// Returns the number of operations left for changes in a transaction that also writes `shared_rows` shared rows.
pub(crate) const fn room_for_changes(shared_rows: usize) -> usize {
    BATCH_OPERATIONS.saturating_sub(shared_rows)
}

impl ChangeGroup {
    fn new(table: &str, partition_key: &str) -> Self {
        Self {
            table: table.to_owned(),
            partition_key: partition_key.to_owned(),
            changes: Vec::new(),
            items: Vec::new(),
            primary_row_keys: HashSet::new(),
            operations: 0,
            bytes: 0,
            shared_rows: 0,
            opened: Instant::now(),
        }
    }

    /// Returns whether one more change fits: the operations, the bytes, and no row that another change of
    /// the group already writes.
    fn has_room_for_change(&self, change: &Change, (operations, bytes): (usize, usize)) -> bool {
        let shared_rows = change.shared_framework_row_count();
        // The size is an estimate, hence the margin below the limit of bytes. A group that is still too
        // large is halved, which costs more requests.
        self.operations + operations <= room_for_changes(self.shared_rows.max(shared_rows))
            && self.bytes + bytes < REQUEST_BYTES - REQUEST_BYTES / 64
            && !change
                .primary_row_keys()
                .iter()
                .any(|row_key| self.primary_row_keys.contains(*row_key))
    }

    fn push(&mut self, change: Change, item: InputPosition, (operations, bytes): (usize, usize)) {
        self.shared_rows = self.shared_rows.max(change.shared_framework_row_count());
        self.primary_row_keys.extend(change.primary_row_keys().into_iter().map(str::to_owned));
        self.changes.push(change);
        self.items.push(item);
        self.operations += operations;
        self.bytes += bytes;
    }

    /// Returns whether two groups may write the same entity or list. Such groups must not be in flight
    /// together.
    pub(super) fn may_write_same_rows(&self, other: &Self) -> bool {
        self.table == other.table
            && self.partition_key == other.partition_key
            // Only a read of the entity shows which list a change leaves. Any two changes of a
            // partition may therefore share a list.
            && (self.may_write_local_lists()
                || other.may_write_local_lists()
                || !self.primary_row_keys.is_disjoint(&other.primary_row_keys))
    }

    /// Returns whether the group contains the change of an input item.
    pub(super) fn has_item(&self, index: usize) -> bool {
        // Items are added in the order of the input.
        self.items.binary_search_by_key(&index, |item| item.index).is_ok()
    }

    /// Returns the input position of the entity whose primary the group moves to these keys.
    pub(super) fn index_of_move_to(&self, partition_key: &str, row_key: &str) -> Option<usize> {
        if self.partition_key != partition_key || !self.primary_row_keys.contains(row_key) {
            return None;
        }
        let moves_there = |change: &Change| {
            change.keys().1 != row_key && change.primary_row_keys().contains(&row_key)
        };
        let position = self.changes.iter().position(moves_there)?;
        self.items.get(position).map(|item| item.index)
    }

    /// Returns table and partition if the group's rows record open work. The partition must then be
    /// registered in the directory before the group is written.
    pub(super) fn partition_to_register(&self) -> Option<(String, String)> {
        (self.shared_rows > 0).then(|| (self.table.clone(), self.partition_key.clone()))
    }

    fn may_write_local_lists(&self) -> bool {
        self.changes.iter().any(Change::may_write_local_lists)
    }

    /// Clones the changes and their input items. Does not clone the state that decides whether another
    /// change fits, because nothing is added to the clone.
    pub(super) fn clone_changes(&self) -> Self {
        let mut clone = Self::new(&self.table, &self.partition_key);
        clone.changes.clone_from(&self.changes);
        clone.items.clone_from(&self.items);
        clone
    }

    /// Removes the change at `position`, so the remaining changes can be sent again. Returns the change and
    /// its input item, or `None` for a position beyond the end.
    pub(super) fn remove_change(&mut self, position: usize) -> Option<(InputPosition, Change)> {
        if position >= self.items.len() {
            return None;
        }
        Some((self.items.remove(position), self.changes.remove(position)))
    }
}

impl Splittable for ChangeGroup {
    fn rows(&self) -> usize {
        self.items.len()
    }

    fn split(mut self) -> [Self; 2] {
        let half = self.items.len() / 2;
        let mut rest = Self::new(&self.table, &self.partition_key);
        rest.changes = self.changes.split_off(half);
        rest.items = self.items.split_off(half);
        [self, rest]
    }
}

/// The groups that still accept changes, one for each partition.
#[derive(Debug, Default)]
pub(super) struct OpenGroups {
    by_partition: HashMap<(String, String), ChangeGroup>,
    changes: usize,
}

/// The maximum number of changes that wait in open groups. At this number all groups are sent, which limits the memory.
const MAX_WAITING: usize = 20_000;

impl OpenGroups {
    /// Returns whether the group of a partition contains the change of an input item.
    pub(super) fn has_item(&self, table: &str, partition_key: &str, index: usize) -> bool {
        let key = (table.to_owned(), partition_key.to_owned());
        self.by_partition.get(&key).is_some_and(|group| group.has_item(index))
    }

    /// Adds a change of this size to the group of its partition. Returns the groups that must be sent now: the
    /// partition's earlier group if the change does not fit into it, or all groups if too many changes wait.
    pub(super) fn add_change_and_take_ready(
        &mut self,
        table: String,
        change: Change,
        size: (usize, usize),
        item: InputPosition,
    ) -> Vec<ChangeGroup> {
        let key = (table, change.keys().0.to_owned());
        let mut ready = Vec::new();
        let group = match self.by_partition.entry(key) {
            Entry::Vacant(free) => {
                let (table, partition_key) = free.key();
                let group = ChangeGroup::new(table, partition_key);
                free.insert(group)
            }
            Entry::Occupied(open) => {
                let group = open.into_mut();
                if !group.has_room_for_change(&change, size) {
                    let next = ChangeGroup::new(&group.table, &group.partition_key);
                    ready.push(std::mem::replace(group, next));
                }
                group
            }
        };
        group.push(change, item, size);
        self.changes += 1;
        // The groups that are sent no longer wait.
        self.changes -= ready.iter().map(|group| group.items.len()).sum::<usize>();
        if self.changes >= MAX_WAITING {
            ready.extend(self.take_all_groups());
        }
        ready
    }

    /// Returns when the oldest group will have been open for `linger`. Returns `None` if no group is open or
    /// the clock cannot represent that time.
    pub(super) fn next_due_time(&self, linger: Duration) -> Option<Instant> {
        self.by_partition.values().map(|group| group.opened).min()?.checked_add(linger)
    }

    /// Removes and returns the groups that have been open for `linger`.
    pub(super) fn take_groups_due(&mut self, linger: Duration) -> Vec<ChangeGroup> {
        let due = self.by_partition.extract_if(|_, group| group.opened.elapsed() >= linger);
        let due: Vec<ChangeGroup> = due.map(|(_, group)| group).collect();
        self.changes -= due.iter().map(|group| group.items.len()).sum::<usize>();
        due
    }

    /// Returns the table and partition of every open group that records work in the outbox.
    pub(super) fn partitions_to_register(&self) -> impl Iterator<Item = (String, String)> {
        self.by_partition.values().filter_map(ChangeGroup::partition_to_register)
    }

    /// Removes and returns all groups.
    pub(super) fn take_all_groups(&mut self) -> Vec<ChangeGroup> {
        self.changes = 0;
        self.by_partition.drain().map(|(_, group)| group).collect()
    }
}
