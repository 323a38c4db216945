//! Changes: verbs with complete keys. A change records whether the entity has to be read before the
//! effect of the verb is known.

use std::{collections::HashMap, sync::Arc};

use super::{
    TokenMaker,
    effect::{Effect, Planner},
    size,
    verb::{OnRace, Verb},
    wide,
};
use crate::{
    batch::{self, Operation},
    entity::{Access, EntityRows, Schema},
    error::Result,
    key::{Family, encode_sort_key},
    row::Row,
};

/// A text of the length of a generation, the id that marks parts of wide entities. For sizes only.
const ANY_GENERATION: &str = "000000000000000000000000";

/// A verb with complete keys, ready to be committed.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// A verb whose effect needs no read. It is planned when the change is created, so that a
    /// refusal reaches the caller at once and a retry plans nothing again.
    Blind(Arc<Effect>),
    /// A verb whose effect depends on the stored primary.
    OnCurrent(Box<VerbOnCurrent>),
}

/// A verb whose effect depends on the stored primary.
#[derive(Debug, Clone)]
pub(crate) struct VerbOnCurrent {
    planner: Planner,
    verb: Verb,
    /// A row with the keys of the primary to read.
    keys: Row,
    on_race: OnRace,
}

impl VerbOnCurrent {
    /// Returns the entity type of the stored primary on which the verb's effect depends.
    pub(crate) fn schema(&self) -> &'static Schema {
        self.planner.schema
    }

    /// Returns PartitionKey and RowKey of the primary to read.
    pub(crate) fn keys(&self) -> (&str, &str) {
        self.keys.keys()
    }

    /// Returns whether the verb replaces or deletes whatever is left of a torn entity: a wide
    /// entity whose parts are missing or do not belong together.
    pub(crate) fn may_end_torn_entity(&self) -> bool {
        match self.verb {
            Verb::DeleteAt { .. } => true,
            Verb::InsertOrReplace(_) | Verb::ReplaceAny(_) => self.schema().can_replace_torn(),
            _ => false,
        }
    }

    /// Returns the maker of blind tokens for the effect's rows.
    pub(crate) fn token_maker(&self) -> &TokenMaker {
        &self.planner.tokens
    }

    /// Returns the effect on the stored primary; `None` stands for an entity that is not stored.
    pub(crate) fn effect_on_primary(&self, current: Option<&Row>) -> Result<Effect> {
        self.verb.effect_on(&self.planner, current)
    }
}

impl Change {
    /// Creates a change whose effect is known already, so that nothing is read for it: of a verb that
    /// needs no read, a step of a move, the deletion of an expired entity, or the replacement of a row
    /// that was read.
    pub(crate) fn from_effect(effect: Effect) -> Self {
        Self::Blind(Arc::new(effect))
    }

    fn new(planner: Planner, verb: Verb) -> Result<Self> {
        Ok(match verb.reaction_to_race(&planner)? {
            None => Self::from_effect(verb.blind_effect(&planner)?),
            Some(on_race) => {
                let keys = verb.keys_to_read(&planner)?;
                Self::OnCurrent(Box::new(VerbOnCurrent { planner, verb, keys, on_race }))
            }
        })
    }

    /// Returns the type of the entity; `None` for an untyped row.
    pub(crate) fn schema(&self) -> Option<&'static Schema> {
        match self {
            Self::Blind(effect) => effect.schema,
            Self::OnCurrent(verb) => Some(verb.schema()),
        }
    }

    /// Returns the rows that the change inserts as it is, if it is an insertion of an entity.
    pub(crate) fn inserted_rows(&self) -> Option<&EntityRows> {
        let Self::Blind(effect) = self else { return None };
        let [only] = effect.primary.as_slice() else { return None };
        // Other verbs replace a row by its ETag, or whatever it holds.
        (only.verb() == batch::Verb::Insert).then_some(effect.new.as_ref()).flatten()
    }

    /// Returns whether the change may insert an entity.
    pub(crate) fn may_insert_entity(&self) -> bool {
        match self {
            Self::Blind(effect) => match effect.primary.as_slice() {
                // Two operations move an entity to another RowKey.
                [only] => only.verb().may_insert_row(),
                _ => false,
            },
            // Only these insert an entity that was not there.
            Self::OnCurrent(verb) => matches!(
                verb.verb,
                Verb::Insert(_) | Verb::InsertOrReplace(_) | Verb::InsertOrMerge(_)
            ),
        }
    }

    /// Returns the primary that the change writes, as far as it is known before the stored entity is read:
    /// the commit may add to it what only that entity holds. `None` for a deletion, and if the change does
    /// not know all of the primary.
    pub(crate) fn known_primary(&self) -> Option<&Row> {
        match self {
            Self::Blind(effect) => effect.row.as_ref(),
            Self::OnCurrent(verb) => verb.verb.given_primary(),
        }
    }

    /// Returns PartitionKey and RowKey of the primary that is written; empty for an effect without
    /// operations.
    pub(crate) fn keys(&self) -> (&str, &str) {
        match self {
            Self::Blind(effect) => {
                effect.primary.first().map(|operation| operation.row().keys()).unwrap_or_default()
            }
            Self::OnCurrent(verb) => verb.keys(),
        }
    }

    /// Returns the RowKeys of the primaries that are written: two for a change that moves an entity to
    /// another RowKey.
    pub(crate) fn primary_row_keys(&self) -> Vec<&str> {
        match self {
            Self::Blind(effect) => {
                effect.primary.iter().map(|operation| operation.row().row_key()).collect()
            }
            Self::OnCurrent(verb) => {
                let mut row_keys = vec![verb.keys().1];
                if let Verb::Replace { rows, .. } = &verb.verb {
                    row_keys.push(rows.primary.row_key());
                }
                row_keys
            }
        }
    }

    /// Returns the keys of the primary after the change if the change moves the entity's row ahead in a query:
    /// to a key that comes later than the old one, or, in a store without an order, to any other key.
    /// `family` is the index or list that the query reads. Without one it reads primaries.
    pub(crate) fn keys_if_moved_ahead(
        &self,
        family: Option<&Family>,
        is_ordered: bool,
    ) -> Option<(&str, &str)> {
        let (before, after, primary) = match self {
            // An entity that was read through a copy is replaced after its primary is read.
            Self::OnCurrent(verb) => {
                let Verb::Replace { loaded, rows } = &verb.verb else { return None };
                // The commit refuses a change to another partition.
                if rows.primary.partition_key() != verb.keys().0 {
                    return None;
                }
                let after = rows.keys_in_family(loaded.copy?);
                (vec![loaded.row.keys()], after, rows.primary.keys())
            }
            Self::Blind(effect) => match family.filter(|family| !family.is_primary()) {
                Some(family) => {
                    let (old, new) = (effect.old.as_ref()?, effect.new.as_ref()?);
                    let (before, after) = (old.keys_in_family(family), new.keys_in_family(family));
                    (before, after, new.primary.keys())
                }
                None => {
                    let [delete, insert] = effect.primary.as_slice() else { return None };
                    let keys = insert.row().keys();
                    (vec![delete.row().keys()], vec![keys], keys)
                }
            },
        };
        let sort_key = |keys: &(&str, &str)| encode_sort_key(keys.0, keys.1);
        let last = before.iter().map(sort_key).max();
        let is_ahead = |keys: &(&str, &str)| match is_ordered {
            true => Some(sort_key(keys)) > last,
            false => !before.contains(keys),
        };
        after.iter().any(is_ahead).then_some(primary)
    }

    /// Returns the least number of operations that the change adds to a transaction, and the least
    /// number of bytes of those on its primary. A change whose effect depends on the stored primary
    /// counts as one operation without bytes.
    pub(crate) fn minimum_operations_and_bytes(&self) -> Result<(usize, usize)> {
        let Self::Blind(effect) = self else { return Ok((1, 0)) };
        let (mut operations, mut bytes) = (0, 0);
        for joined in &effect.primary {
            for operation in
                wide::split_operation(effect.schema, joined, ANY_GENERATION, &HashMap::new())?
            {
                operations += 1;
                bytes +=
                    size::operation_as_stored(&operation, effect.schema, None)?.request_bytes()?;
            }
        }
        // The old copies are not known: each new one takes an operation.
        if effect.old.is_none()
            && let Some(new) = &effect.new
        {
            operations += new.local_copies.len();
        }
        Ok((operations, bytes))
    }

    /// Estimates the operations and bytes of the change in a transaction. A change that has to read
    /// first counts as if all rows of its entity changed.
    // An estimate that is too low costs a second request: a group that proves too large is halved.
    pub(crate) fn estimate_size(&self) -> Result<(usize, usize)> {
        let effect = match self {
            Self::Blind(effect) => effect,
            Self::OnCurrent(verb) => {
                let schema = verb.schema();
                let later_parts = wide::maximum_parts_of_versions(schema).saturating_sub(1);
                return Ok((schema.families.len() + later_parts, 0));
            }
        };
        let (mut operations, mut bytes) = self.minimum_operations_and_bytes()?;
        if effect.has_remote_work() {
            // One dirty row for each primary.
            operations += effect.primary.len();
        }
        for rows in effect.old.iter().chain(&effect.new) {
            if effect.old.is_some() {
                operations += rows.local_copies.len();
            }
            operations += rows.local_list_entries.len();
            for copy in &rows.local_copies {
                let insert = Operation::insert(copy.row.clone());
                let stored = size::operation_as_stored(&insert, effect.schema, Some(copy.family))?;
                bytes += stored.request_bytes()?;
            }
        }
        Ok((operations, bytes))
    }

    /// Returns the number of framework rows that all changes of a transaction share: the
    /// partition's fence, and a claim if unique remote keys are taken.
    pub(crate) fn shared_framework_row_count(&self) -> usize {
        let Self::Blind(effect) = self else { return 0 };
        let mut copies = effect.old.iter().chain(&effect.new).flat_map(|rows| &rows.remote_copies);
        match copies.any(|copy| copy.family.unique) {
            true => 2,
            false => usize::from(effect.has_remote_work()),
        }
    }

    /// Returns whether the change may write a local list, which other entities share.
    pub(crate) fn may_write_local_lists(&self) -> bool {
        match self {
            Self::Blind(effect) => {
                let mut rows = effect.old.iter().chain(&effect.new);
                rows.any(|rows| !rows.local_list_entries.is_empty())
            }
            Self::OnCurrent(_) => true,
        }
    }

    /// Returns how to react if the entity changes between its read and the commit; `None` for a change
    /// that reads nothing.
    pub(super) fn reaction_to_race(&self) -> Option<OnRace> {
        match self {
            Self::Blind(_) => None,
            Self::OnCurrent(verb) => Some(verb.on_race),
        }
    }

    /// Returns whether the entity is read again after a lost race.
    pub(crate) fn reads_again(&self) -> bool {
        self.reaction_to_race() == Some(OnRace::ReadAgain)
    }
}

/// A verb whose keys may still lack the blind tokens of secret values.
#[derive(Debug, Clone)]
pub(crate) enum Unresolved {
    /// The keys contain no placeholders.
    Ready(Change),
    /// The keys contain placeholders for blind tokens.
    NeedsTokens(Box<VerbWithoutTokens>),
}

/// A verb whose keys contain placeholders for blind tokens.
#[derive(Debug, Clone)]
pub(crate) struct VerbWithoutTokens {
    schema: &'static Schema,
    verb: Verb,
    /// The access path that the caller gave; `None` if the caller gave an entity.
    at: Option<Access>,
}

impl Unresolved {
    /// Creates a verb on an entity of type `schema`. `at` is the access path that the caller gave;
    /// `None` if the caller gave an entity.
    pub(super) fn new(schema: &'static Schema, verb: Verb, at: Option<&Access>) -> Result<Self> {
        if schema.has_key_tokens() {
            let verb = VerbWithoutTokens { schema, verb, at: at.cloned() };
            return Ok(Self::NeedsTokens(Box::new(verb)));
        }
        Change::new(Planner { schema, tokens: TokenMaker::without_keys() }, verb).map(Self::Ready)
    }

    /// Returns whether the keys contain placeholders for blind tokens.
    pub(crate) const fn needs_tokens(&self) -> bool {
        matches!(self, Self::NeedsTokens(_))
    }
}

impl VerbWithoutTokens {
    /// Returns the change after putting the blind tokens into its keys.
    pub(crate) fn fill_tokens(self, tokens: &TokenMaker) -> Result<Change> {
        let planner = Planner { schema: self.schema, tokens: tokens.clone() };
        let verb = self.verb.with_tokens(&planner, self.at.as_ref())?;
        Change::new(planner, verb)
    }
}
