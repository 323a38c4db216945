//! Remembers the entities that a bulk rewrite moved to keys which its query has not read yet, so that
//! the query does not have them changed again there.

use std::collections::HashSet;

use crate::{
    error::{Error, ErrorKind, Result},
    key::Family,
    plan::{Change, outbox::hash128},
};

/// Entities that may be ahead of the query at a time. Each takes some 100 bytes of memory.
const MAX_AHEAD: usize = 1_000_000;

/// The entities of one run that were moved ahead and that the query has not found again.
pub(super) struct MovedEntities {
    /// The index or list that the query reads; `None` if it reads primaries.
    family: Option<&'static Family>,
    /// Whether the store returns rows in the order of their keys.
    is_ordered: bool,
    /// Hashes of table, PartitionKey and RowKey of the primaries.
    ahead: HashSet<String>,
    most: usize,
}

impl MovedEntities {
    pub(super) fn new(family: Option<&'static Family>, is_ordered: bool) -> Self {
        Self { family, is_ordered, ahead: HashSet::new(), most: MAX_AHEAD }
    }

    /// Returns whether no entity is ahead of the query.
    pub(super) fn is_empty(&self) -> bool {
        self.ahead.is_empty()
    }

    /// Remembers the entity if the change moves it ahead.
    ///
    /// # Errors
    ///
    /// `is_too_large` if too many entities are ahead: the change must not be written then.
    pub(super) fn note_change(&mut self, table: &str, change: &Change) -> Result<()> {
        let Some(keys) = change.keys_if_moved_ahead(self.family, self.is_ordered) else {
            return Ok(());
        };
        let hash = hash_of(table, keys);
        if self.ahead.len() >= self.most && !self.ahead.contains(&hash) {
            let message = format!(
                "the change moves more than {} entities to keys that the query still reads; query them by keys that the change keeps",
                self.most
            );
            return Err(Error::new(ErrorKind::TooLarge, message).at_keys(keys.0, keys.1));
        }
        self.ahead.insert(hash);
        Ok(())
    }

    /// Forgets the entity whose primary has these keys. Returns whether this run moved it there.
    pub(super) fn forget(&mut self, table: &str, keys: (&str, &str)) -> bool {
        self.ahead.remove(&hash_of(table, keys))
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
            moved.note_change("Staff", &renamed(from, to)).unwrap();
            assert!(moved.is_empty(), "{to} is not ahead of {from}");
        }
        moved.note_change("Staff", &renamed(5, 6)).unwrap();
        moved.note_change("Staff", &renamed(6, 7)).unwrap();
        moved.note_change("Staff", &renamed(5, 7)).unwrap();
        let error = moved.note_change("Staff", &renamed(7, 8)).unwrap_err();
        assert!(error.is_too_large(), "{error}");
        assert!(!moved.forget("Other", ("Sales", "a_06")));
        assert!(moved.forget("Staff", ("Sales", "a_06")));
        assert!(!moved.forget("Staff", ("Sales", "a_06")), "found once");
        moved.note_change("Staff", &renamed(7, 8)).unwrap();

        // Without an order, a smaller key may come later, too.
        let mut moved = MovedEntities::new(None, false);
        moved.note_change("Staff", &renamed(5, 4)).unwrap();
        moved.note_change("Staff", &renamed(5, 5)).unwrap();
        assert!(moved.forget("Staff", ("Sales", "a_04")) && moved.is_empty());
    }
}
