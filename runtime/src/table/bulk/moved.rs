//! Remembers the entities that a bulk rewrite moved to keys which its query has not read yet, so that
//! the query does not have them changed again there.

use std::collections::{HashMap, HashSet, hash_map::Entry};

use crate::{
    error::{Error, ErrorKind, Result},
    key::Family,
    plan::{Change, outbox::hash128},
};

/// Entities that may be ahead of the query at a time. Each takes some 150 bytes of memory.
const MAX_AHEAD: usize = 1_000_000;

/// The entities of one run that were moved ahead and that the query has not found again.
pub(super) struct MovedEntities {
    /// The index or list that the query reads; `None` if it reads primaries.
    family: Option<&'static Family>,
    /// Whether the store returns rows in the order of their keys.
    is_ordered: bool,
    /// Hashes of table, PartitionKey and RowKey of the primaries that keep their keys, while a copy or list
    /// entry moves. The keys tell each entity again, whatever becomes of its change.
    same_primary: HashSet<String>,
    /// By the hash of the primary's new keys, the positions in the input of the entities whose changes move
    /// them there. Of several changes, all but one will fail.
    new_primary: HashMap<String, Vec<u64>>,
    most: usize,
}

impl MovedEntities {
    pub(super) fn new(family: Option<&'static Family>, is_ordered: bool) -> Self {
        Self {
            family,
            is_ordered,
            same_primary: HashSet::new(),
            new_primary: HashMap::new(),
            most: MAX_AHEAD,
        }
    }

    /// Returns whether no entity is ahead of the query.
    pub(super) fn is_empty(&self) -> bool {
        self.same_primary.is_empty() && self.new_primary.is_empty()
    }

    /// Remembers the entity at position `index` of the input if the change moves it ahead.
    ///
    /// # Errors
    ///
    /// `is_too_large` if too many entities are ahead: the change must not be written then.
    pub(super) fn note_change(&mut self, table: &str, change: &Change, index: u64) -> Result<()> {
        let Some(keys) = change.keys_if_moved_ahead(self.family, self.is_ordered) else {
            return Ok(());
        };
        let hash = hash_of(table, keys);
        let is_remembered =
            self.same_primary.contains(&hash) || self.new_primary.contains_key(&hash);
        if self.same_primary.len() + self.new_primary.len() >= self.most && !is_remembered {
            let message = format!(
                "the change moves more than {} entities to keys that the query still reads; query them by keys that the change keeps",
                self.most
            );
            return Err(Error::new(ErrorKind::TooLarge, message).at_keys(keys.0, keys.1));
        }
        match change.keys() == keys {
            true => drop(self.same_primary.insert(hash)),
            false => self.new_primary.entry(hash).or_default().push(index),
        }
        Ok(())
    }

    /// Forgets that the change moves the entity at position `index` of the input to other keys of its primary,
    /// since it failed with `error`. Remembers it if the answer was lost: the entity may have moved.
    pub(super) fn note_failure(&mut self, table: &str, change: &Change, index: u64, error: &Error) {
        if !error.is_answer_lost()
            && let Some(keys) = change.keys_if_moved_ahead(self.family, self.is_ordered)
        {
            self.forget_new_primary(table, keys, index);
        }
    }

    /// Forgets the entity that has kept these keys of its primary. Returns whether it was remembered.
    pub(super) fn forget_same_primary(&mut self, table: &str, keys: (&str, &str)) -> bool {
        self.same_primary.remove(&hash_of(table, keys))
    }

    /// Returns the positions in the input of entities whose changes move their primaries to these keys.
    pub(super) fn indexes_at(&self, table: &str, keys: (&str, &str)) -> Vec<u64> {
        self.new_primary.get(&hash_of(table, keys)).cloned().unwrap_or_default()
    }

    /// Forgets the entity at position `index` of the input, whose primary has moved to these keys. Returns
    /// whether it was remembered.
    pub(super) fn forget_new_primary(
        &mut self,
        table: &str,
        keys: (&str, &str),
        index: u64,
    ) -> bool {
        let Entry::Occupied(mut there) = self.new_primary.entry(hash_of(table, keys)) else {
            return false;
        };
        let indexes = there.get_mut();
        let Some(position) = indexes.iter().position(|other| *other == index) else { return false };
        indexes.swap_remove(position);
        if indexes.is_empty() {
            there.remove();
        }
        true
    }
}

fn hash_of(table: &str, (partition_key, row_key): (&str, &str)) -> String {
    hash128(&[table, partition_key, row_key])
}

#[cfg(test)]
mod tests {
    use super::MovedEntities;
    use crate::{
        edm::Ticks,
        entity::Stored,
        error::{Error, ErrorKind, ServiceCode},
        plan::{self, Change, Unresolved},
        prelude::*,
        row::ETag,
    };

    #[derive(Debug, Clone, TableEntity)]
    #[table(name = "Staff", partition_key = "{team}", row_key = "a_{id:02}")]
    struct Single {
        team: String,
        id: u32,
    }

    fn renamed(from: u32, to: u32) -> Change {
        let single = |id| Single { team: "Sales".into(), id };
        let row = single(from).to_row().unwrap();
        let row = row.with_etag(ETag::from_timestamp(Ticks::UNIX_EPOCH));
        let schema: &'static crate::entity::Schema = Single::SCHEMA;
        let stored = Stored::from_read_row(single(to), row, &schema.families[0]);
        match plan::replace(&stored).unwrap() {
            Unresolved::Ready(change) => change,
            Unresolved::NeedsTokens(_) => panic!("no key has a token"),
        }
    }

    #[test]
    fn entities_ahead_are_remembered_up_to_a_limit() {
        let mut moved = MovedEntities { most: 2, ..MovedEntities::new(None, true) };
        for (from, to) in [(5, 4), (5, 5)] {
            moved.note_change("Staff", &renamed(from, to), 0).unwrap();
            assert!(moved.is_empty(), "{to} is not ahead of {from}");
        }
        moved.note_change("Staff", &renamed(5, 6), 1).unwrap();
        moved.note_change("Staff", &renamed(6, 7), 2).unwrap();
        moved.note_change("Staff", &renamed(5, 7), 3).unwrap();
        let error = moved.note_change("Staff", &renamed(7, 8), 4).unwrap_err();
        assert!(error.is_too_large(), "{error}");
        assert!(!moved.forget_new_primary("Other", ("Sales", "a_06"), 1));
        assert!(moved.forget_new_primary("Staff", ("Sales", "a_06"), 1));
        assert!(!moved.forget_new_primary("Staff", ("Sales", "a_06"), 1), "found once");
        moved.note_change("Staff", &renamed(7, 8), 5).unwrap();

        // Two were on their way to 7: one may fail, and an answer may be lost.
        assert_eq!(moved.indexes_at("Staff", ("Sales", "a_07")), [2, 3]);
        let conflict = Error::service(ServiceCode::EntityAlreadyExists, "taken");
        moved.note_failure("Staff", &renamed(5, 7), 3, &conflict);
        moved.note_failure("Staff", &renamed(6, 7), 2, &Error::new(ErrorKind::Backend, "lost"));
        assert_eq!(moved.indexes_at("Staff", ("Sales", "a_07")), [2]);

        // Without an order, a smaller key may come later, too.
        let mut moved = MovedEntities::new(None, false);
        moved.note_change("Staff", &renamed(5, 4), 6).unwrap();
        moved.note_change("Staff", &renamed(5, 5), 7).unwrap();
        assert!(moved.forget_new_primary("Staff", ("Sales", "a_04"), 6) && moved.is_empty());
    }
}
