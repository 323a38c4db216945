//! Callers' writes of one entity as data: which verb, on what, and whether the entity has to be read
//! before the effect is known.

use std::{collections::HashMap, sync::Arc};

use super::{
    Tokens,
    effect::{Effect, Loaded, Planner, PropertyChanges, at, row_of_bag},
    size, wide,
};
use crate::{
    batch::{Condition, Operation},
    edm::Bag,
    entity::{Access, EntityRows, Patch, Schema, Stored, TableEntity},
    error::{Error, ErrorKind, Result},
    row::Row,
};

/// A text as long as the id that marks parts of wide entities, for sizes.
const ANY_GENERATION: &str = "000000000000000000000000";

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
    fn needs_current(&self, planner: &Planner) -> Result<Option<OnRace>> {
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
    fn keys(&self, planner: &Planner) -> Result<Row> {
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
    fn blind_effect(&self, planner: &Planner) -> Result<Effect> {
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
    fn effect_on(&self, planner: &Planner, current: Option<&Row>) -> Result<Effect> {
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
    fn with_tokens(self, planner: &Planner, at: Option<&Access>) -> Result<Self> {
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

    /// Returns whether the entity is read again after a lost race.
    pub(crate) fn reads_again(&self) -> bool {
        matches!(self, Self::OnCurrent(verb) if verb.on_race == OnRace::ReadAgain)
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
    fn new(schema: &'static Schema, verb: Verb, at: Option<&Access>) -> Result<Self> {
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

/// Returns the entity's rows, after the user's own `validate` accepted the entity.
fn validated_rows<E: TableEntity>(entity: &E) -> Result<EntityRows> {
    if let Err(reason) = entity.check() {
        let message = format!("`{}` was not accepted: {reason}", E::SCHEMA.entity);
        let error = Error::new(ErrorKind::Rejected, message).with_source(reason);
        return Err(match entity.to_row() {
            Ok(row) => at(&row, error),
            Err(_) => error,
        });
    }
    entity.rows()
}

fn loaded<S>(stored: &Stored<S>) -> Loaded {
    Loaded { row: stored.row().clone(), copy: stored.copy_family() }
}

/// Inserts the entity.
pub(crate) fn insert<E: TableEntity>(entity: &E) -> Result<Unresolved> {
    Unresolved::new(E::SCHEMA, Verb::Insert(validated_rows(entity)?), None)
}

/// Inserts the entity or replaces the stored one.
pub(crate) fn insert_or_replace<E: TableEntity>(entity: &E) -> Result<Unresolved> {
    Unresolved::new(E::SCHEMA, Verb::InsertOrReplace(validated_rows(entity)?), None)
}

/// Inserts the entity or sets its properties on the stored one.
pub(crate) fn insert_or_merge<E: TableEntity>(entity: &E) -> Result<Unresolved> {
    Unresolved::new(E::SCHEMA, Verb::InsertOrMerge(validated_rows(entity)?), None)
}

/// Replaces the entity under the ETag with which it was read.
pub(crate) fn replace<E: TableEntity>(stored: &Stored<E>) -> Result<Unresolved> {
    replace_with(stored, &**stored)
}

/// Replaces a row by an entity, under the ETag with which the row was read. The row may have been
/// read as another type, such as a set.
pub(crate) fn replace_with<S, E: TableEntity>(
    stored: &Stored<S>,
    entity: &E,
) -> Result<Unresolved> {
    let rows = validated_rows(entity).map_err(|error| at(stored.row(), error))?;
    Unresolved::new(E::SCHEMA, Verb::Replace { loaded: loaded(stored), rows }, None)
}

/// Writes what changed since the entity was read, under its ETag. Returns `None` if nothing did.
pub(crate) fn update<E: TableEntity>(stored: &Stored<E>) -> Result<Option<Unresolved>> {
    let rows = validated_rows(&**stored).map_err(|error| at(stored.row(), error))?;
    // Keys with tokens are compared once the tokens are made: such an entity is always written.
    if !E::SCHEMA.has_tokens() {
        let unknown = E::SCHEMA.unknown_of(stored.row())?;
        if unknown.added_to_primary(rows.primary.clone())?.has_same_content(stored.row()) {
            return Ok(None);
        }
    }
    Unresolved::new(E::SCHEMA, Verb::Update { loaded: loaded(stored), rows }, None).map(Some)
}

/// Replaces the stored entity whatever its ETag.
pub(crate) fn replace_any<E: TableEntity>(entity: &E) -> Result<Unresolved> {
    Unresolved::new(E::SCHEMA, Verb::ReplaceAny(validated_rows(entity)?), None)
}

/// Sets and removes properties under the ETag with which the entity was read.
pub(crate) fn patch<E: TableEntity>(stored: &Stored<E>, mut patch: Patch<E>) -> Result<Unresolved> {
    let blobs = patch.take_blobs();
    let (set, remove) = patch.into_changes().map_err(|error| at(stored.row(), error))?;
    let patch = PropertyChanges { set, remove, blobs };
    Unresolved::new(E::SCHEMA, Verb::Patch { loaded: loaded(stored), patch }, None)
}

/// Sets and removes properties of the entity at a point, whatever its ETag.
pub(crate) fn patch_at<E: TableEntity>(access: &Access, mut patch: Patch<E>) -> Result<Unresolved> {
    let blobs = patch.take_blobs();
    let keys = access.point()?;
    let (set, remove) = patch.into_changes().map_err(|error| error.at_keys(keys.0, keys.1))?;
    let keys = row_of_bag(keys, &Bag::new())?;
    let verb = Verb::PatchAt { keys, patch: PropertyChanges { set, remove, blobs } };
    Unresolved::new(E::SCHEMA, verb, Some(access))
}

/// Deletes the entity under the ETag with which it was read. It may have been read as another type,
/// such as a set.
pub(crate) fn delete<S, E: TableEntity>(stored: &Stored<S>) -> Result<Unresolved> {
    Unresolved::new(E::SCHEMA, Verb::Delete(loaded(stored)), None)
}

/// Deletes the entity at a point, whatever its ETag. With `must_exist` a missing entity is an error.
pub(crate) fn delete_at<E: TableEntity>(access: &Access, must_exist: bool) -> Result<Unresolved> {
    let keys = row_of_bag(access.point()?, &Bag::new())?;
    Unresolved::new(E::SCHEMA, Verb::DeleteAt { keys, must_exist }, Some(access))
}

/// Returns the effect that puts an entity in place of a stored one of its type, under the ETag of the
/// stored one. Nothing of the stored one is kept.
pub(crate) fn replace_entity(
    schema: &'static Schema,
    tokens: Tokens,
    current: &Row,
    rows: EntityRows,
) -> Result<Effect> {
    Planner { schema, tokens }.replace(current, rows)
}

/// Returns the effect that deletes a stored entity with all of its rows, under its ETag.
pub(crate) fn delete_entity(
    schema: &'static Schema,
    tokens: Tokens,
    current: &Row,
) -> Result<Effect> {
    Planner { schema, tokens }.delete(current)
}

#[cfg(test)]
mod tests {
    use super::{
        Change, OnRace, Unresolved, insert, insert_or_merge, insert_or_replace, replace_any,
    };
    use crate::{
        edm::Ticks,
        entity::{Point, Schema, Stored},
        prelude::*,
        row::ETag,
    };

    #[derive(Debug, Clone, TableEntity)]
    #[table(name = "Staff", partition_key = "{team}", row_key = "a_{id:02}")]
    struct Single {
        team: String,
        id: u32,
        age: i32,
    }

    #[derive(Debug, Clone, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{team}",
        row_key = "b_{id:02}",
        index(ByAge, row_key = "age_{age}_{id:02}")
    )]
    struct Copied {
        team: String,
        id: u32,
        age: i32,
    }

    fn on_race(change: Unresolved) -> Option<OnRace> {
        match change {
            Unresolved::Ready(Change::Blind(_)) => None,
            Unresolved::Ready(Change::OnCurrent(verb)) => Some(verb.on_race),
            Unresolved::NeedsTokens(_) => panic!("no key has a token"),
        }
    }

    fn stored<E: TableEntity>(entity: E, family: usize) -> Stored<E> {
        let schema: &'static Schema = E::SCHEMA;
        let row = match family {
            0 => entity.to_row().unwrap(),
            _ => entity.rows().unwrap().local_copies.remove(0).row,
        };
        let row = row.with_etag(ETag::from_timestamp(Ticks::UNIX_EPOCH));
        Stored::read_from(entity, row, &schema.families[family])
    }

    #[test]
    fn a_verb_reads_only_what_it_cannot_do_without() {
        let single = Single { team: "Sales".into(), id: 1, age: 34 };
        let copied = Copied { team: "Sales".into(), id: 1, age: 34 };
        let again = Some(OnRace::ReadAgain);

        assert_eq!(on_race(insert(&single).unwrap()), None);
        assert_eq!(on_race(insert(&copied).unwrap()), None);
        for verb in [insert_or_replace::<Single>, insert_or_merge, replace_any] {
            assert_eq!(on_race(verb(&single).unwrap()), None);
        }
        for verb in [insert_or_replace::<Copied>, insert_or_merge, replace_any] {
            assert_eq!(on_race(verb(&copied).unwrap()), again);
        }

        let through_copy = stored(copied.clone(), 1);
        let (single, copied) = (stored(single, 0), stored(copied, 0));
        assert_eq!(on_race(super::replace(&single).unwrap()), None);
        assert_eq!(on_race(super::replace(&copied).unwrap()), None);
        assert_eq!(on_race(super::delete::<_, Copied>(&copied).unwrap()), None);
        let report = Some(OnRace::ReportToCaller);
        assert_eq!(on_race(super::replace(&through_copy).unwrap()), report);
        assert_eq!(on_race(super::delete::<_, Copied>(&through_copy).unwrap()), report);

        let at = Point::<Single>::at("Sales", "a_01");
        let blind = super::patch_at::<Single>(at.as_access(), Single::patch().age(35).into());
        assert_eq!(on_race(blind.unwrap()), None);
        let at = Point::<Copied>::at("Sales", "b_01");
        let reads = super::patch_at::<Copied>(at.as_access(), Copied::patch().age(35).into());
        assert_eq!(on_race(reads.unwrap()), again, "a copy holds the age");
    }
}
