//! The verbs of typed tables as data, and the operations of each.

use super::effect::{Effect, EntityReadByCaller, Planner, PropertyChanges, row_from_bag};
use crate::{
    batch::{Condition, Operation},
    edm::Bag,
    entity::{EntityRows, RowSource, UntypedPath},
    error::Result,
    row::Row,
};

/// The caller's request to write one entity of a declared type.
#[derive(Debug, Clone)]
pub(crate) enum EntityVerb {
    Insert(EntityRows),
    InsertOrReplace(EntityRows),
    /// Merges the entity's properties into the stored entity, or inserts it.
    InsertOrMerge(EntityRows),
    /// Replaces the stored entity whatever its ETag. The entity must exist.
    ReplaceAny(EntityRows),
    /// Replaces the entity that was read.
    Replace {
        loaded: EntityReadByCaller,
        rows: EntityRows,
    },
    /// Writes the difference between the entity that was read and `rows`.
    Update {
        loaded: EntityReadByCaller,
        rows: EntityRows,
    },
    /// Sets and removes properties of the entity that was read.
    Patch {
        loaded: EntityReadByCaller,
        patch: PropertyChanges,
    },
    /// Sets and removes properties of a stored entity, whatever its ETag. `keys` is a row with only keys.
    PatchAt {
        keys: Row,
        patch: PropertyChanges,
    },
    /// Deletes the entity that was read.
    Delete(EntityReadByCaller),
    /// Deletes a stored entity, whatever its ETag. `keys` is a row with only keys.
    DeleteAt {
        keys: Row,
        must_exist: bool,
    },
}

/// How to react if the entity changes between its read and the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnRace {
    /// Read the entity again and plan the write again.
    ReadAgain,
    /// Report the lost race to the caller, whose entity is outdated.
    ReportToCaller,
}

impl EntityVerb {
    /// Returns how to react if another writer changes the stored primary after the verb has read it. Returns `None`
    /// if the verb needs no read.
    pub(super) fn reaction_to_race(&self, planner: &Planner) -> Result<Option<OnRace>> {
        let is_blind = match self {
            // An insertion fails if the entity exists, so it never overwrites anything unread.
            Self::Insert(_) => true,
            Self::InsertOrReplace(_) | Self::ReplaceAny(_) | Self::DeleteAt { .. } => {
                planner.can_write_unread()
            }
            Self::InsertOrMerge(rows) => planner.can_insert_or_merge_unread(&rows.primary)?,
            Self::PatchAt { patch, .. } => planner.can_patch_unread(patch),
            Self::Replace { loaded, .. }
            | Self::Update { loaded, .. }
            | Self::Patch { loaded, .. }
            | Self::Delete(loaded) => {
                let is_known = match loaded.source {
                    RowSource::Primary => true,
                    // A copy does not contain its primary's ETag.
                    RowSource::Copy(_) => false,
                    RowSource::Caller => {
                        // No version has a strong ETag. A read reveals this, but the store would refuse the ETag's
                        // form.
                        loaded.row.etag().is_some_and(|etag| etag.is_weak())
                            && self.can_trust_caller(planner)
                    }
                };
                return Ok((!is_known).then_some(OnRace::ReportToCaller));
            }
        };
        Ok((!is_blind).then_some(OnRace::ReadAgain))
    }

    /// Returns whether the verb needs nothing of the stored entity except the keys and the ETag from the caller.
    fn can_trust_caller(&self, planner: &Planner) -> bool {
        match self {
            Self::Replace { .. } => planner.can_replace_under_etag(),
            Self::Delete(_) => planner.can_delete_under_etag(),
            _ => false,
        }
    }

    /// Returns a row with the keys of the primary that the verb reads. Only called for a verb that reads before it
    /// writes. The row may belong to the new entity, because only its keys matter.
    pub(super) fn keys_to_read(&self, planner: &Planner) -> Result<Row> {
        match self {
            Self::Insert(rows)
            | Self::InsertOrReplace(rows)
            | Self::InsertOrMerge(rows)
            | Self::ReplaceAny(rows) => Ok(rows.primary.clone()),
            Self::Replace { loaded, .. }
            | Self::Update { loaded, .. }
            | Self::Patch { loaded, .. }
            | Self::Delete(loaded) => planner.row_with_primary_keys(loaded),
            Self::PatchAt { keys, .. } | Self::DeleteAt { keys, .. } => Ok(keys.clone()),
        }
    }

    /// Returns the effect of a verb that needs no read.
    pub(super) fn effect_without_read(&self, planner: &Planner) -> Result<Effect> {
        Ok(match self {
            Self::Insert(rows) => Effect::of_insertion(planner.schema, rows.clone()),
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
            Self::Replace { loaded, rows } => {
                planner.replace_and_keep_undeclared(&loaded.row, rows.clone())?
            }
            Self::Update { loaded, rows } => planner.write_difference(&loaded.row, rows.clone())?,
            Self::Patch { loaded, patch } => planner.patch(&loaded.row, patch)?,
            Self::Delete(loaded) => planner.delete(&loaded.row)?,
            Self::PatchAt { keys, patch } => {
                let row = row_from_bag(keys.keys(), &patch.set)?;
                // `Any` requires an existing entity. Without a condition, a merge would insert one.
                planner.primary_only(Operation::merge(row, Condition::Any), None)
            }
            Self::DeleteAt { keys, .. } => {
                let delete =
                    Operation::delete(keys.partition_key(), keys.row_key(), Condition::Any)?;
                planner.primary_only(delete, None)
            }
        })
    }

    /// Returns the effect of a verb on the stored primary, or on `None` if the entity is not stored.
    pub(super) fn effect_on(&self, planner: &Planner, current: Option<&Row>) -> Result<Effect> {
        match (self, current) {
            (Self::Insert(rows), _)
            | (Self::InsertOrReplace(rows) | Self::InsertOrMerge(rows), None) => {
                Ok(Effect::of_insertion(planner.schema, rows.clone()))
            }
            (Self::InsertOrReplace(rows) | Self::ReplaceAny(rows), Some(current)) => {
                planner.replace(current, rows.clone())
            }
            (Self::InsertOrMerge(rows), Some(current)) => planner.merge(current, rows),
            // A replacement must not create the entity.
            (Self::ReplaceAny(rows), None) => Err(planner.missing_entity_error(&rows.primary)),
            (Self::Replace { loaded, rows }, current) => planner.replace_and_keep_undeclared(
                planner.require_unchanged_primary(loaded, current)?,
                rows.clone(),
            ),
            (Self::Update { loaded, rows }, current) => planner.write_difference(
                planner.require_unchanged_primary(loaded, current)?,
                rows.clone(),
            ),
            (Self::Patch { loaded, patch }, current) => {
                planner.patch(planner.require_unchanged_primary(loaded, current)?, patch)
            }
            (Self::Delete(loaded), current) => {
                planner.delete(planner.require_unchanged_primary(loaded, current)?)
            }
            (Self::PatchAt { patch, .. }, Some(current)) => planner.patch(current, patch),
            (Self::PatchAt { keys, .. }, None) => Err(planner.missing_entity_error(keys)),
            (Self::DeleteAt { .. }, Some(current)) => planner.delete(current),
            (Self::DeleteAt { keys, must_exist }, None) => {
                planner.delete_nothing_or_fail(keys, *must_exist)
            }
        }
    }

    /// Returns the primary of the entity from the caller, or `None` for a patch and a deletion.
    pub(super) fn given_primary(&self) -> Option<&Row> {
        match self {
            Self::Insert(rows)
            | Self::InsertOrReplace(rows)
            | Self::InsertOrMerge(rows)
            | Self::ReplaceAny(rows)
            | Self::Replace { rows, .. }
            | Self::Update { rows, .. } => Some(&rows.primary),
            Self::Patch { .. } | Self::PatchAt { .. } | Self::Delete(_) | Self::DeleteAt { .. } => {
                None
            }
        }
    }

    /// Returns the verb with blind tokens added to its rows and keys. `at` is the access path from the caller, or
    /// `None` if the caller passed an entity.
    pub(super) fn with_tokens(self, planner: &Planner, at: Option<&UntypedPath>) -> Result<Self> {
        let apply = |rows| planner.tokens.fill_key_tokens_of_rows(planner.schema, rows);
        let keys = |keys: Row| match at {
            None => Ok(keys),
            Some(at) => {
                let at = planner.tokens.fill_tokens_of_path(planner.schema, at)?;
                row_from_bag(at.point()?, &Bag::new())
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
            // The keys of a loaded entity already have their tokens.
            Self::Patch { .. } | Self::Delete(_) => self,
        })
    }
}
