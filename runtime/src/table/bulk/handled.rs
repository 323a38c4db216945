//! Remembers the entities that a bulk rewrite has handled and that its query may find again. Each entity is
//! changed once.

use std::collections::{HashMap, HashSet, hash_map::Entry};

use crate::{
    error::{Error, ErrorKind, Result},
    key::RowFamily,
    plan::{Change, outbox::hash128},
    query::request::Request,
};

/// The most entities that are remembered at a time for each of two reasons. Each takes about 150 bytes.
const MAX_REMEMBERED: usize = 1_000_000;

/// The entities of a run that its query may find again.
#[derive(Debug)]
pub(super) struct HandledEntities {
    /// The index or list that the query reads, or `None` if it reads primaries.
    family: Option<&'static RowFamily>,
    /// Whether the store returns rows in key order.
    is_ordered: bool,
    /// Whether the query finds entities through copies or lists. Several rows may then lead to one entity, some of
    /// them only temporarily.
    finds_copies: bool,
    /// Whether the query finds entities that the run has changed.
    finds_changed: bool,
    /// Hashes of the table, PartitionKey and RowKey of the first primaries whose changes were planned in a query of
    /// copies. A stale copy whose change was refused proves nothing about its primary.
    first: HashSet<String>,
    /// Hashes of later primaries that have a copy or list entry which moves ahead of the query. Each hash is
    /// removed when its entity is found again.
    moved_copies: HashSet<String>,
    /// Maps the hash of a primary's new keys to the input positions of the entities whose changes move their
    /// primaries there. All but one of several such changes may fail.
    moved_primaries: HashMap<String, Vec<usize>>,
    /// The earlier keys of moved primaries for which the answer to the write was lost, by input position.
    in_doubt: HashMap<usize, (String, String)>,
    most: usize,
}

impl HandledEntities {
    /// Creates a value that remembers nothing, for writes without a query.
    pub(super) fn without_query() -> Self {
        Self {
            family: None,
            is_ordered: true,
            finds_copies: false,
            finds_changed: false,
            first: HashSet::new(),
            moved_copies: HashSet::new(),
            moved_primaries: HashMap::new(),
            in_doubt: HashMap::new(),
            most: MAX_REMEMBERED,
        }
    }

    /// Creates an empty value for the entities of a query.
    pub(super) fn of_query(query: &Request) -> Self {
        let family = query.family();
        Self {
            family,
            is_ordered: query.store.capabilities().ordered,
            finds_copies: query.copies || family.is_some_and(|family| !family.is_primary()),
            finds_changed: !query.only_older,
            ..Self::without_query()
        }
    }

    /// Returns whether the query can no longer find an entity that the run has handled.
    pub(super) fn finds_all_once(&self) -> bool {
        !self.finds_copies && self.moved_primaries.is_empty()
    }

    /// Returns whether an earlier row of the query led to the primary with these keys, and its change was planned.
    pub(super) fn was_found(&mut self, table: &str, keys: (&str, &str)) -> bool {
        if !self.finds_copies {
            return false;
        }
        let hash = hash_of(table, keys);
        self.first.contains(&hash) || self.moved_copies.remove(&hash)
    }

    /// Remembers the entity at input position `index` if the query may find it again, because it reads copies or
    /// because the change moves the entity ahead.
    ///
    /// # Errors
    ///
    /// Fails with `is_too_large` if too many entities are ahead. The change must then not be written.
    pub(super) fn note_change(&mut self, table: &str, change: &Change, index: usize) -> Result<()> {
        if self.finds_copies && self.first.len() < self.most {
            self.first.insert(hash_of(table, change.keys()));
        }
        let Some(keys) = self.keys_if_moved_ahead(change) else { return Ok(()) };
        let hash = hash_of(table, keys);
        let keeps_primary = change.keys() == keys;
        let is_remembered = if keeps_primary {
            self.first.contains(&hash) || self.moved_copies.contains(&hash)
        } else {
            self.moved_primaries.contains_key(&hash)
        };
        if !is_remembered && self.moved_copies.len() + self.moved_primaries.len() >= self.most {
            let message = format!(
                "the change moves more than {} entities to keys that the query still reads; query them by keys that the change keeps",
                self.most
            );
            return Err(Error::new(ErrorKind::TooLarge, message).at_keys(keys.0, keys.1));
        }
        if !keeps_primary {
            self.moved_primaries.entry(hash).or_default().push(index);
        } else if !is_remembered {
            self.moved_copies.insert(hash);
        }
        Ok(())
    }

    /// Forgets the move of the primary of the entity at input position `index`, because its change failed with
    /// `error`. If the answer was lost, notes that the primary may have moved.
    pub(super) fn note_failure(
        &mut self,
        table: &str,
        change: &Change,
        index: usize,
        error: &Error,
    ) {
        let Some(keys) = self.keys_if_moved_ahead(change) else { return };
        let earlier = change.keys();
        if earlier == keys {
            // The query finds the entity again through its primary, whether or not the change was written.
        } else if error.is_answer_lost() {
            self.in_doubt.insert(index, (earlier.0.to_owned(), earlier.1.to_owned()));
        } else {
            self.forget_moved_primary(table, keys, index);
        }
    }

    fn keys_if_moved_ahead<'c>(&self, change: &'c Change) -> Option<(&'c str, &'c str)> {
        change.keys_if_moved_ahead(self.family, self.is_ordered).filter(|_| self.finds_changed)
    }

    /// Returns the input positions of the entities whose changes move their primaries to these keys.
    pub(super) fn indexes_at(&self, table: &str, keys: (&str, &str)) -> Vec<usize> {
        self.moved_primaries.get(&hash_of(table, keys)).cloned().unwrap_or_default()
    }

    /// Returns the earlier primary keys of the entity at input position `index` if the answer to its change was
    /// lost.
    pub(super) fn earlier_keys_in_doubt(&self, index: usize) -> Option<&(String, String)> {
        self.in_doubt.get(&index)
    }

    /// Forgets the entity at input position `index`, whose primary was to move to these keys. Returns whether it
    /// was remembered.
    pub(super) fn forget_moved_primary(
        &mut self,
        table: &str,
        keys: (&str, &str),
        index: usize,
    ) -> bool {
        self.in_doubt.remove(&index);
        let Entry::Occupied(mut there) = self.moved_primaries.entry(hash_of(table, keys)) else {
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
    use super::HandledEntities;
    use crate::{
        edm::Ticks,
        entity::Stored,
        error::{Error, ErrorKind, ServiceCode},
        plan::{self, Change},
        prelude::*,
        query::request::Request,
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
        plan::replace(&stored).unwrap()
    }

    fn of_primaries(is_ordered: bool) -> HandledEntities {
        HandledEntities { is_ordered, finds_changed: true, ..HandledEntities::without_query() }
    }

    #[test]
    fn entities_ahead_are_remembered_up_to_a_limit() {
        let mut moved = HandledEntities { most: 2, ..of_primaries(true) };
        for (from, to) in [(5, 4), (5, 5)] {
            moved.note_change("Staff", &renamed(from, to), 0).unwrap();
            assert!(moved.finds_all_once(), "{to} is not ahead of {from}");
        }
        moved.note_change("Staff", &renamed(5, 6), 1).unwrap();
        moved.note_change("Staff", &renamed(6, 7), 2).unwrap();
        moved.note_change("Staff", &renamed(5, 7), 3).unwrap();
        let error = moved.note_change("Staff", &renamed(7, 8), 4).unwrap_err();
        assert!(error.is_too_large(), "{error}");
        assert!(!moved.forget_moved_primary("Other", ("Sales", "a_06"), 1));
        assert!(moved.forget_moved_primary("Staff", ("Sales", "a_06"), 1));
        assert!(!moved.forget_moved_primary("Staff", ("Sales", "a_06"), 1), "found once");
        moved.note_change("Staff", &renamed(7, 8), 5).unwrap();

        // Two changes were moving entities to 7. One may fail, or its answer may be lost.
        assert_eq!(moved.indexes_at("Staff", ("Sales", "a_07")), [2, 3]);
        let conflict = Error::service(ServiceCode::EntityAlreadyExists, "taken");
        moved.note_failure("Staff", &renamed(5, 7), 3, &conflict);
        moved.note_failure("Staff", &renamed(6, 7), 2, &Error::new(ErrorKind::Backend, "lost"));
        assert_eq!(moved.indexes_at("Staff", ("Sales", "a_07")), [2]);

        // In an unordered store, a smaller key may also come later.
        let mut moved = of_primaries(false);
        moved.note_change("Staff", &renamed(5, 4), 6).unwrap();
        moved.note_change("Staff", &renamed(5, 5), 7).unwrap();
        assert!(
            moved.forget_moved_primary("Staff", ("Sales", "a_04"), 6) && moved.finds_all_once()
        );
    }
    #[test]
    fn a_query_of_older_versions_finds_no_changed_entity_again() {
        let table = Client::memory().table::<Single>();
        let mut query = table.query(Single::primary().team("Sales")).request;
        for is_found_again in [true, false] {
            let mut handled = HandledEntities::of_query(&query);
            handled.note_change("Staff", &renamed(5, 6), 0).unwrap();
            assert_eq!(handled.finds_all_once(), !is_found_again);
            Request::unshared(&mut query).restrict_to_older_versions();
        }
    }

    #[test]
    fn the_first_entities_of_a_query_of_copies_are_remembered() {
        let copies = HandledEntities { finds_copies: true, ..of_primaries(true) };
        let mut handled = HandledEntities { most: 2, ..copies };
        for id in 1..=3 {
            assert!(!handled.was_found("Staff", ("Sales", &format!("a_0{id}"))));
            handled.note_change("Staff", &renamed(id, id), 0).unwrap();
        }
        let mut was_found = |row_key| handled.was_found("Staff", ("Sales", row_key));
        assert_eq!(["a_01", "a_02", "a_03", "a_01"].map(&mut was_found), [true, true, false, true]);
        let mut handled = of_primaries(true);
        handled.note_change("Staff", &renamed(1, 1), 0).unwrap();
        assert!(!handled.was_found("Staff", ("Sales", "a_01")));
    }
}
