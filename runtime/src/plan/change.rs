//! Changes: verbs on their way to a commit. A change records what its commit needs, such as blind tokens for its keys,
//! or the stored entity.

use std::{collections::HashMap, sync::Arc};

use super::{
    TokenMaker,
    effect::{Effect, Planner},
    size,
    verb::{EntityVerb, OnRace},
    wide,
};
use crate::{
    batch,
    entity::{EntityRows, Needs, Schema, UntypedPath},
    error::Result,
    key::{RowFamily, encode_sort_key},
    row::Row,
};

/// A string with the length of a generation, the id that marks parts of wide entities. Only used for sizes.
const ANY_GENERATION: &str = "000000000000000000000000";

/// A verb on one entity, from the user's call to its commit.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    /// What the commit must do for the change: what the entity's type needs, except what the verb cannot need.
    needs: Needs,
    effect_or_verb: EffectOrVerb,
}

/// The effect of a change, or its verb while the effect is not known.
#[derive(Debug, Clone)]
pub(crate) enum EffectOrVerb {
    /// The effect of a verb that reads nothing. It is planned when the change is made: the caller gets a refusal
    /// immediately, and a retry does not plan again.
    Effect(Arc<Effect>),
    /// A verb whose effect is not known yet.
    Verb(Box<PendingVerb>),
}

/// A verb whose keys lack blind tokens, or whose effect depends on the stored primary.
#[derive(Debug, Clone)]
pub(crate) struct PendingVerb {
    planner: Planner,
    verb: EntityVerb,
    /// The access path from the caller, or `None` if the caller passed an entity.
    at: Option<UntypedPath>,
    /// A row with the keys of the primary to read, or `None` while keys lack blind tokens.
    keys: Option<Row>,
    on_race: Option<OnRace>,
}

impl PendingVerb {
    /// Returns the entity type of the stored primary that the verb's effect depends on.
    pub(crate) fn schema(&self) -> &'static Schema {
        self.planner.schema
    }

    /// Returns the PartitionKey and RowKey of the primary to read. Empty while keys lack blind tokens.
    pub(crate) fn keys(&self) -> (&str, &str) {
        self.keys.as_ref().map(Row::keys).unwrap_or_default()
    }

    /// Returns whether the verb replaces or deletes the remains of a torn entity, which is a wide entity with
    /// missing or mismatched parts.
    pub(crate) fn may_end_torn_entity(&self) -> bool {
        match self.verb {
            EntityVerb::DeleteAt { .. } => true,
            EntityVerb::InsertOrReplace(_) | EntityVerb::ReplaceAny(_) => {
                self.schema().can_replace_torn()
            }
            _ => false,
        }
    }

    /// Returns the maker of blind tokens for the effect's rows.
    pub(crate) fn token_maker(&self) -> &TokenMaker {
        &self.planner.tokens
    }

    /// Returns the effect on the stored primary, or on `None` if the entity is not stored.
    ///
    /// # Errors
    ///
    /// `is_unrecognized_entity` if a row of another type has the keys, which `allow(same_keys)` admits.
    pub(crate) fn effect_on_primary(&self, current: Option<&Row>) -> Result<Effect> {
        if let Some(row) = current.filter(|_| self.planner.schema.shares_keys) {
            self.planner.refuse_row_of_other_type(row)?;
        }
        self.verb.effect_on(&self.planner, current)
    }
}

impl Change {
    /// Creates a change with a known effect, which needs no read: a verb that needs no read, a step of a
    /// move, the deletion of an expired entity, or the replacement of a row that was read.
    pub(crate) fn from_effect(effect: Effect) -> Self {
        let needs = effect.schema.map_or(Needs::NONE, Schema::needs);
        Self::from_effect_of_type(effect, needs)
    }

    /// Creates a change with a known effect on an entity of a type that needs `needs`.
    pub(super) fn from_effect_of_type(effect: Effect, needs: Needs) -> Self {
        let needs = needs.without(Needs::CURRENT.and(Needs::TOKENS));
        let needs = match (&effect.primary[..], &effect.old, &effect.new) {
            ([_], None, None) => needs.without(Needs::OTHER_ROWS),
            ([_], ..) => needs,
            // An entity that moves to another RowKey deletes its row there, as it would an old copy.
            _ => needs.and(Needs::COPIES),
        };
        Self { needs, effect_or_verb: EffectOrVerb::Effect(Arc::new(effect)) }
    }

    /// Creates a change from a verb on an entity of type `schema`. `at` is the access path from the caller, or `None` if the caller
    /// passed an entity.
    pub(super) fn from_verb(
        schema: &'static Schema,
        verb: EntityVerb,
        at: Option<&UntypedPath>,
    ) -> Result<Self> {
        let planner = Planner { schema, tokens: TokenMaker::for_types_without_tokens() };
        let needs = schema.needs();
        if !needs.contain(Needs::TOKENS) {
            return Self::with_complete_keys(planner, verb);
        }
        let pending = PendingVerb { planner, verb, at: at.cloned(), keys: None, on_race: None };
        Ok(Self { needs, effect_or_verb: EffectOrVerb::Verb(Box::new(pending)) })
    }

    fn with_complete_keys(planner: Planner, verb: EntityVerb) -> Result<Self> {
        let on_race = verb.reaction_to_race(&planner)?;
        if on_race.is_none() {
            return Ok(Self::from_effect(verb.effect_without_read(&planner)?));
        }
        let needs = planner.schema.needs().without(Needs::TOKENS);
        let keys = Some(verb.keys_to_read(&planner)?);
        let pending = PendingVerb { planner, verb, at: None, keys, on_race };
        Ok(Self { needs, effect_or_verb: EffectOrVerb::Verb(Box::new(pending)) })
    }

    /// Returns what the commit must do for the change.
    pub(crate) fn needs(&self) -> Needs {
        self.needs
    }

    /// Returns whether keys of the change contain placeholders for blind tokens.
    pub(crate) fn needs_tokens(&self) -> bool {
        self.needs.contain(Needs::TOKENS)
    }

    /// Returns the change with blind tokens added to its keys.
    pub(crate) fn with_tokens(&self, tokens: &TokenMaker) -> Result<Self> {
        let EffectOrVerb::Verb(pending) = &self.effect_or_verb else { return Ok(self.clone()) };
        let planner = Planner { tokens: tokens.clone(), ..pending.planner };
        let verb = pending.verb.clone().with_tokens(&planner, pending.at.as_ref())?;
        Self::with_complete_keys(planner, verb)
    }

    /// Returns the effect if it is known without a read.
    pub(crate) fn known_effect(&self) -> Option<&Arc<Effect>> {
        match &self.effect_or_verb {
            EffectOrVerb::Effect(effect) => Some(effect),
            EffectOrVerb::Verb(_) => None,
        }
    }

    /// Returns the effect of the change, or its verb if the effect is not known yet.
    pub(crate) fn effect_or_verb(&self) -> &EffectOrVerb {
        &self.effect_or_verb
    }

    /// Returns the type of the entity, or `None` for an untyped row.
    pub(crate) fn schema(&self) -> Option<&'static Schema> {
        match &self.effect_or_verb {
            EffectOrVerb::Effect(effect) => effect.schema,
            EffectOrVerb::Verb(pending) => Some(pending.schema()),
        }
    }

    /// Returns the rows that the change inserts, if it inserts an entity.
    pub(crate) fn inserted_rows(&self) -> Option<&EntityRows> {
        let EffectOrVerb::Effect(effect) = &self.effect_or_verb else { return None };
        let [only] = effect.primary.as_slice() else { return None };
        // Other verbs replace a row under its ETag, or whatever its content.
        (only.verb() == batch::Verb::Insert).then_some(effect.new.as_ref()).flatten()
    }

    /// Returns whether the change may insert an entity.
    pub(crate) fn may_insert_entity(&self) -> bool {
        match &self.effect_or_verb {
            EffectOrVerb::Effect(effect) => match effect.primary.as_slice() {
                // Two operations move an entity to another RowKey.
                [only] => only.verb().may_insert_row(),
                _ => false,
            },
            // Only these can insert an entity that did not exist.
            EffectOrVerb::Verb(pending) => matches!(
                pending.verb,
                EntityVerb::Insert(_)
                    | EntityVerb::InsertOrReplace(_)
                    | EntityVerb::InsertOrMerge(_)
            ),
        }
    }

    /// Returns the primary that the change writes, as far as it is known before the stored entity is read. The
    /// commit may add what only that entity has. Returns `None` for a deletion, and if the change does not know the
    /// whole primary.
    pub(crate) fn known_primary(&self) -> Option<&Row> {
        match &self.effect_or_verb {
            EffectOrVerb::Effect(effect) => effect.row.as_ref(),
            EffectOrVerb::Verb(pending) => pending.verb.given_primary(),
        }
    }

    /// Returns the PartitionKey and RowKey of the primary that is written. Empty for an effect without operations.
    pub(crate) fn keys(&self) -> (&str, &str) {
        match &self.effect_or_verb {
            EffectOrVerb::Effect(effect) => {
                effect.primary.first().map(|operation| operation.row().keys()).unwrap_or_default()
            }
            EffectOrVerb::Verb(pending) => pending.keys(),
        }
    }

    /// Returns the RowKeys of the primaries that are written. There are two if an entity moves to another RowKey.
    pub(crate) fn primary_row_keys(&self) -> Vec<&str> {
        match &self.effect_or_verb {
            EffectOrVerb::Effect(effect) => {
                effect.primary.iter().map(|operation| operation.row().row_key()).collect()
            }
            EffectOrVerb::Verb(pending) => {
                let mut row_keys: Vec<&str> = pending.keys.iter().map(Row::row_key).collect();
                if let EntityVerb::Replace { rows, .. } = &pending.verb {
                    row_keys.push(rows.primary.row_key());
                }
                row_keys
            }
        }
    }

    /// Returns the new keys of the primary if the change moves the entity's row ahead in a query: to a later key,
    /// or, in a store without an order, to any other key. `family` is the index or list that the query reads.
    /// Without it, the query reads primaries.
    pub(crate) fn keys_if_moved_ahead(
        &self,
        family: Option<&RowFamily>,
        is_ordered: bool,
    ) -> Option<(&str, &str)> {
        let (before, after, primary) = match &self.effect_or_verb {
            // An entity that was read through a copy is replaced after its primary was read.
            EffectOrVerb::Verb(pending) => {
                let EntityVerb::Replace { loaded, rows } = &pending.verb else { return None };
                // The commit refuses a change to another partition.
                if rows.primary.partition_key() != self.keys().0 {
                    return None;
                }
                let after = rows.keys_in_family(loaded.copy()?);
                (vec![loaded.row.keys()], after, rows.primary.keys())
            }
            EffectOrVerb::Effect(effect) => match family.filter(|family| !family.is_primary()) {
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
        let is_ahead = |keys: &(&str, &str)| {
            if is_ordered { Some(sort_key(keys)) > last } else { !before.contains(keys) }
        };
        after.iter().any(is_ahead).then_some(primary)
    }

    /// Returns the minimum number of operations that the change adds to a transaction, and the minimum number of
    /// bytes of the operations on its primary. A change whose effect depends on the stored primary counts as one
    /// operation without bytes.
    pub(crate) fn minimum_operations_and_bytes(&self) -> Result<(usize, usize)> {
        let EffectOrVerb::Effect(effect) = &self.effect_or_verb else { return Ok((1, 0)) };
        let (mut operations, mut bytes) = (0, 0);
        for joined in &effect.primary {
            let parts =
                wide::split_operation(effect.schema, joined, ANY_GENERATION, &HashMap::new())?;
            operations += parts.len();
            for operation in &*parts {
                bytes += size::operation_with_stored_size(operation, effect.schema, None)?
                    .request_bytes()?;
            }
        }
        // The old copies are unknown, and each new one takes an operation.
        if effect.old.is_none()
            && let Some(new) = &effect.new
        {
            operations += new.local_copies.len();
        }
        Ok((operations, bytes))
    }

    /// Estimates the operations and bytes of the change in a transaction. A change that must read first counts as
    /// if all rows of its entity changed. If the estimate is too low, the group proves too large and is halved,
    /// which costs a second request.
    pub(crate) fn estimate_size(&self) -> Result<(usize, usize)> {
        let effect = match &self.effect_or_verb {
            EffectOrVerb::Effect(effect) => effect,
            EffectOrVerb::Verb(pending) => {
                let schema = pending.schema();
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
                bytes += size::stored_bytes_of_copy(&copy.row, effect.schema, copy.family)?;
            }
        }
        Ok((operations, bytes))
    }

    /// Returns the number of the library's rows that all changes of a transaction share: the partition's fence, and
    /// a claim if unique remote keys are taken.
    pub(crate) fn shared_framework_row_count(&self) -> usize {
        let EffectOrVerb::Effect(effect) = &self.effect_or_verb else { return 0 };
        let mut copies = effect.old.iter().chain(&effect.new).flat_map(|rows| &rows.remote_copies);
        if copies.any(|copy| copy.family.unique) {
            2
        } else {
            usize::from(effect.has_remote_work())
        }
    }

    /// Returns whether the change may write a local list, which other entities share.
    pub(crate) fn may_write_local_lists(&self) -> bool {
        match &self.effect_or_verb {
            EffectOrVerb::Effect(effect) => {
                let mut rows = effect.old.iter().chain(&effect.new);
                rows.any(|rows| !rows.local_list_entries.is_empty())
            }
            EffectOrVerb::Verb(_) => true,
        }
    }

    /// Returns how to react if the entity changes between its read and the commit, or `None` if the change reads
    /// nothing.
    pub(super) fn reaction_to_race(&self) -> Option<OnRace> {
        match &self.effect_or_verb {
            EffectOrVerb::Effect(_) => None,
            EffectOrVerb::Verb(pending) => pending.on_race,
        }
    }

    /// Returns whether the entity is read again after a lost race.
    pub(crate) fn reads_again_after_race(&self) -> bool {
        self.reaction_to_race() == Some(OnRace::ReadAgain)
    }
}
