//! The verbs of typed tables as data, and the operations that each amounts to.

use super::effect::{Effect, Loaded, Planner, PropertyChanges, row_of_bag};
use crate::{
    batch::{Condition, Operation},
    edm::Bag,
    entity::{Access, EntityRows},
    error::Result,
    row::Row,
};

/// A write that a caller asks for, of an entity of a declared type.
#[derive(Debug, Clone)]
pub(crate) enum Verb {
    Insert(EntityRows),
    InsertOrReplace(EntityRows),
    /// Sets the entity's properties on the stored entity, or inserts it.
    InsertOrMerge(EntityRows),
    /// Replaces the stored entity whatever its ETag. The entity must exist.
    ReplaceAny(EntityRows),
    /// Replaces the entity that was read.
    Replace {
        loaded: Loaded,
        rows: EntityRows,
    },
    /// Writes what differs between the entity that was read and `rows`.
    Update {
        loaded: Loaded,
        rows: EntityRows,
    },
    /// Sets and removes properties of the entity that was read.
    Patch {
        loaded: Loaded,
        patch: PropertyChanges,
    },
    /// Sets and removes properties of a stored entity whatever its ETag. `keys` is a row without
    /// properties.
    PatchAt {
        keys: Row,
        patch: PropertyChanges,
    },
    /// Deletes the entity that was read.
    Delete(Loaded),
    /// Deletes a stored entity whatever its ETag. `keys` is a row without properties.
    DeleteAt {
        keys: Row,
        must_exist: bool,
    },
}

/// The reaction to a change of the entity between its read and the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnRace {
    /// Read the entity again and plan anew.
    ReadAgain,
    /// Report the lost race to the caller, whose entity is outdated.
    ReportToCaller,
}

impl Verb {
    /// Returns whether the verb has to read the stored primary entity first: `None` if not, else
    /// how to react if another writer changes the entity after that read.
    pub(super) fn needs_current(&self, planner: &Planner) -> Result<Option<OnRace>> {
        let is_blind = match self {
            Self::Insert(_) => true,
            Self::InsertOrReplace(_) | Self::ReplaceAny(_) | Self::DeleteAt { .. } => {
                planner.is_laid_out_alike()
            }
            Self::InsertOrMerge(rows) => planner.can_merge_blindly(&rows.primary)?,
            Self::PatchAt { patch, .. } => planner.is_blind_merge(patch),
            Self::Replace { loaded, .. }
            | Self::Update { loaded, .. }
            | Self::Patch { loaded, .. }
            | Self::Delete(loaded) => {
                // A copy does not hold the ETag of its primary.
                return Ok(loaded.copy.map(|_| OnRace::ReportToCaller));
            }
        };
        Ok((!is_blind).then_some(OnRace::ReadAgain))
    }

    /// Returns a row with the keys of the primary that the verb needs to read.
    pub(super) fn keys(&self, planner: &Planner) -> Result<Row> {
        match self {
            Self::Insert(rows)
            | Self::InsertOrReplace(rows)
            | Self::InsertOrMerge(rows)
            | Self::ReplaceAny(rows) => Ok(rows.primary.clone()),
            Self::Replace { loaded, .. }
            | Self::Update { loaded, .. }
            | Self::Patch { loaded, .. }
            | Self::Delete(loaded) => planner.primary_keys(loaded),
            Self::PatchAt { keys, .. } | Self::DeleteAt { keys, .. } => Ok(keys.clone()),
        }
    }

    /// Returns the operations that a verb amounts to. The verb must be one that needs no row as it
    /// is stored.
    pub(super) fn blind_effect(&self, planner: &Planner) -> Result<Effect> {
        Ok(match self {
            Self::Insert(rows) => planner.insert(rows.clone()),
            Self::InsertOrReplace(rows) => {
                let row = rows.primary.clone();
                planner.primary_only(Operation::insert_or_replace(row.clone()), Some(row))
            }
            Self::InsertOrMerge(rows) => {
                let row = rows.primary.clone();
                planner.primary_only(Operation::insert_or_merge(row.clone()), Some(row))
            }
            Self::ReplaceAny(rows) => {
                let row = rows.primary.clone();
                planner.primary_only(Operation::replace(row.clone(), Condition::Any), Some(row))
            }
            Self::Replace { loaded, rows } => planner.replace_keeping(&loaded.row, rows.clone())?,
            Self::Update { loaded, rows } => planner.update(&loaded.row, rows.clone())?,
            Self::Patch { loaded, patch } => planner.patch(&loaded.row, patch)?,
            Self::Delete(loaded) => planner.delete(&loaded.row)?,
            Self::PatchAt { keys, patch } => {
                let row = row_of_bag(keys.keys(), &patch.set)?;
                planner.primary_only(Operation::merge(row, Condition::Any), None)
            }
            Self::DeleteAt { keys, .. } => {
                let delete =
                    Operation::delete(keys.partition_key(), keys.row_key(), Condition::Any)?;
                planner.primary_only(delete, None)
            }
        })
    }

    /// Returns the effect of a verb on the stored primary, or on its absence.
    pub(super) fn effect_on(&self, planner: &Planner, current: Option<&Row>) -> Result<Effect> {
        match (self, current) {
            (Self::Insert(rows), _)
            | (Self::InsertOrReplace(rows) | Self::InsertOrMerge(rows), None) => {
                Ok(planner.insert(rows.clone()))
            }
            (Self::InsertOrReplace(rows) | Self::ReplaceAny(rows), Some(current)) => {
                planner.replace(current, rows.clone())
            }
            (Self::InsertOrMerge(rows), Some(current)) => planner.merge(current, rows),
            (Self::ReplaceAny(rows), None) => Err(planner.missing(&rows.primary)),
            (Self::Replace { loaded, rows }, current) => {
                planner.replace_keeping(planner.verified(loaded, current)?, rows.clone())
            }
            (Self::Update { loaded, rows }, current) => {
                planner.update(planner.verified(loaded, current)?, rows.clone())
            }
            (Self::Patch { loaded, patch }, current) => {
                planner.patch(planner.verified(loaded, current)?, patch)
            }
            (Self::Delete(loaded), current) => planner.delete(planner.verified(loaded, current)?),
            (Self::PatchAt { patch, .. }, Some(current)) => planner.patch(current, patch),
            (Self::PatchAt { keys, .. }, None) => Err(planner.missing(keys)),
            (Self::DeleteAt { .. }, Some(current)) => planner.delete(current),
            (Self::DeleteAt { keys, must_exist }, None) => {
                planner.delete_missing(keys, *must_exist)
            }
        }
    }

    /// Returns the verb with the blind tokens in its rows and keys. `at` is the path that the
    /// caller gave instead of an entity.
    pub(super) fn with_tokens(self, planner: &Planner, at: Option<&Access>) -> Result<Self> {
        let apply = |rows| planner.tokens.apply_to(planner.schema, rows);
        let keys = |keys: Row| match at {
            None => Ok(keys),
            Some(at) => {
                let at = planner.tokens.resolve_tokens(planner.schema, at)?;
                row_of_bag(at.point()?, &Bag::new())
            }
        };
        Ok(match self {
            Self::Insert(rows) => Self::Insert(apply(rows)?),
            Self::InsertOrReplace(rows) => Self::InsertOrReplace(apply(rows)?),
            Self::InsertOrMerge(rows) => Self::InsertOrMerge(apply(rows)?),
            Self::ReplaceAny(rows) => Self::ReplaceAny(apply(rows)?),
            Self::Replace { loaded, rows } => Self::Replace { loaded, rows: apply(rows)? },
            Self::Update { loaded, rows } => Self::Update { loaded, rows: apply(rows)? },
            Self::PatchAt { keys: old, patch } => Self::PatchAt { keys: keys(old)?, patch },
            Self::DeleteAt { keys: old, must_exist } => {
                Self::DeleteAt { keys: keys(old)?, must_exist }
            }
            Self::Patch { .. } | Self::Delete(_) => self,
        })
    }
}
