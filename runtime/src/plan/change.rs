//! Changes: verbs of which it is decided whether the entity has to be read before their effect is
//! known.

use std::{collections::HashMap, sync::Arc};

use super::{
    Tokens,
    effect::{Effect, Planner},
    size,
    verb::{OnRace, Verb},
    wide,
};
use crate::{
    batch::Operation,
    entity::{Access, Schema},
    error::Result,
    row::Row,
};

/// A text as long as the id that marks parts of wide entities, for sizes.
const ANY_GENERATION: &str = "000000000000000000000000";

/// A verb whose keys are complete: ready to be committed.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// A verb whose effect needs no read. It is planned when the change is made, so that a refusal
    /// reaches the caller at once and a retry plans nothing again.
    Blind(Arc<Effect>),
    /// A verb whose effect depends on the stored primary.
    OnCurrent(Box<VerbOnCurrent>),
}

/// A verb whose effect depends on the stored primary.
#[derive(Debug, Clone)]
pub(crate) struct VerbOnCurrent {
    planner: Planner,
    verb: Verb,
    /// A row with the keys of the primary to be read.
    keys: Row,
    on_race: OnRace,
}

impl VerbOnCurrent {
    /// Returns the type of the primary to be read.
    pub(crate) fn schema(&self) -> &'static Schema {
        self.planner.schema
    }

    /// Returns PartitionKey and RowKey of the primary to be read.
    pub(crate) fn keys(&self) -> (&str, &str) {
        self.keys.keys()
    }

    /// Returns whether the verb puts an end to a torn entity: it deletes the parts that are left, or
    /// writes all parts, whatever they held.
    // Not a write of an entity with copies: those that the torn entity has left are in its way.
    pub(crate) fn ends_torn(&self) -> bool {
        match self.verb {
            Verb::DeleteAt { .. } => true,
            Verb::InsertOrReplace(_) | Verb::ReplaceAny(_) => self.planner.is_single_row(),
            _ => false,
        }
    }

    /// Returns what makes the blind tokens of the effect's rows.
    pub(crate) fn tokens(&self) -> &Tokens {
        &self.planner.tokens
    }

    /// Returns the effect on the stored primary, or on its absence.
    pub(crate) fn effect(&self, current: Option<&Row>) -> Result<Effect> {
        self.verb.effect_on(&self.planner, current)
    }
}

impl Change {
    /// Creates a change from operations that are already known: those on an untyped row, or those
    /// of one step of a move.
    pub(crate) fn with_effect(effect: Effect) -> Self {
        Self::Blind(Arc::new(effect))
    }

    fn new(planner: Planner, verb: Verb) -> Result<Self> {
        Ok(match verb.needs_current(&planner)? {
            None => Self::with_effect(verb.blind_effect(&planner)?),
            Some(on_race) => {
                let keys = verb.keys(&planner)?;
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

    /// Returns whether the change makes an entity that was not there.
    pub(crate) fn inserts(&self) -> bool {
        match self {
            Self::Blind(effect) => match effect.primary.as_slice() {
                // Two operations move an entity to another RowKey.
                [only] => only.verb().inserts(),
                _ => false,
            },
            Self::OnCurrent(verb) => matches!(
                verb.verb,
                Verb::Insert(_) | Verb::InsertOrReplace(_) | Verb::InsertOrMerge(_)
            ),
        }
    }

    /// Returns PartitionKey and RowKey of the primary that is written. They are empty for an effect
    /// that does nothing.
    pub(crate) fn keys(&self) -> (&str, &str) {
        match self {
            Self::Blind(effect) => {
                effect.primary.first().map(|operation| operation.row().keys()).unwrap_or_default()
            }
            Self::OnCurrent(verb) => verb.keys(),
        }
    }

    /// Returns the minimum number of operations and bytes, by what is known before any read.
    pub(crate) fn min_size(&self) -> Result<(usize, usize)> {
        let Self::Blind(effect) = self else { return Ok((1, 0)) };
        let (mut operations, mut bytes) = (0, 0);
        for joined in &effect.primary {
            for operation in wide::split(effect.schema, joined, ANY_GENERATION, &HashMap::new())? {
                operations += 1;
                bytes += size::as_stored(&operation, effect.schema, None)?.request_bytes()?;
            }
        }
        if effect.old.is_none()
            && let Some(new) = &effect.new
        {
            operations += new.local_copies.len();
        }
        Ok((operations, bytes))
    }

    /// Estimates the operations and bytes that the change takes in a transaction. A change that
    /// reads first counts as if all rows of its entity changed.
    // An estimate that is too low costs a second request: a group that proves too large is halved.
    pub(crate) fn estimate_size(&self) -> Result<(usize, usize)> {
        let effect = match self {
            Self::Blind(effect) => effect,
            Self::OnCurrent(verb) => {
                let schema = verb.schema();
                let later_parts = wide::most_parts(schema).saturating_sub(1);
                return Ok((schema.families.len() + later_parts, 0));
            }
        };
        let (mut operations, mut bytes) = self.min_size()?;
        if effect.has_remote_rows() {
            operations += effect.primary.len();
        }
        for rows in effect.old.iter().chain(&effect.new) {
            if effect.old.is_some() {
                operations += rows.local_copies.len();
            }
            operations += rows.local_list_entries.len();
            for copy in &rows.local_copies {
                let insert = Operation::insert(copy.row.clone());
                let stored = size::as_stored(&insert, effect.schema, Some(copy.family))?;
                bytes += stored.request_bytes()?;
            }
        }
        Ok((operations, bytes))
    }

    /// Returns how many rows of the library's own it needs that all changes of one transaction have
    /// in common: the partition's fence, and a claim if it takes keys of unique remote indexes.
    pub(crate) fn shared_rows(&self) -> usize {
        let Self::Blind(effect) = self else { return 0 };
        let mut copies = effect.old.iter().chain(&effect.new).flat_map(|rows| &rows.remote_copies);
        match copies.any(|copy| copy.family.unique) {
            true => 2,
            false => usize::from(effect.has_remote_rows()),
        }
    }

    /// Returns whether the change may write a local list, which other entities share.
    pub(crate) fn may_write_lists(&self) -> bool {
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
    pub(super) fn on_race(&self) -> Option<OnRace> {
        match self {
            Self::Blind(_) => None,
            Self::OnCurrent(verb) => Some(verb.on_race),
        }
    }

    /// Returns whether the entity is read again after a lost race.
    pub(crate) fn reads_again(&self) -> bool {
        self.on_race() == Some(OnRace::ReadAgain)
    }
}

/// A verb whose keys may still lack the blind tokens of secret values.
#[derive(Debug, Clone)]
pub(crate) enum Unresolved {
    /// The keys are complete.
    Ready(Change),
    /// The keys hold placeholders for blind tokens.
    NeedsTokens(Box<VerbWithoutTokens>),
}

/// A verb whose keys hold placeholders for blind tokens.
#[derive(Debug, Clone)]
pub(crate) struct VerbWithoutTokens {
    schema: &'static Schema,
    verb: Verb,
    /// The path that the caller gave instead of an entity.
    at: Option<Access>,
}

impl Unresolved {
    /// Creates a verb on an entity of type `schema`. `at` is the path that the caller gave instead
    /// of an entity.
    pub(super) fn new(schema: &'static Schema, verb: Verb, at: Option<&Access>) -> Result<Self> {
        if schema.has_tokens() {
            let verb = VerbWithoutTokens { schema, verb, at: at.cloned() };
            return Ok(Self::NeedsTokens(Box::new(verb)));
        }
        Change::new(Planner { schema, tokens: Tokens::none() }, verb).map(Self::Ready)
    }

    /// Returns the change with its blind tokens.
    pub(crate) fn resolve(self, tokens: &Tokens) -> Result<Change> {
        match self {
            Self::Ready(change) => Ok(change),
            Self::NeedsTokens(unresolved) => {
                let VerbWithoutTokens { schema, verb, at } = *unresolved;
                let planner = Planner { schema, tokens: tokens.clone() };
                let verb = verb.with_tokens(&planner, at.as_ref())?;
                Change::new(planner, verb)
            }
        }
    }
}
