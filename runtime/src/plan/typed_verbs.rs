//! Builds the verbs of typed tables from the caller's entities, patches and points.

use super::{
    TokenMaker,
    change::Change,
    effect::{Effect, EntityReadByCaller, Planner, PropertyChanges, row_from_bag},
    verb::EntityVerb,
};
use crate::{
    edm::Bag,
    entity::{EntityRows, Needs, Patch, RowSource, Schema, Stored, TableEntity, UntypedPath},
    error::{Error, ErrorKind, Result},
    row::{ETag, Row, error_with_row_keys},
};

/// Returns the entity's rows. Fails with `is_rejected` if the user's `validate` refuses the entity.
fn validated_rows<E: TableEntity>(entity: &E) -> Result<EntityRows> {
    if let Err(reason) = entity.check() {
        let error = Error::rejected_by_user_code(&format!("`{}`", E::SCHEMA.entity), reason);
        return Err(match entity.to_row() {
            Ok(row) => error_with_row_keys(&row, error),
            Err(_) => error,
        });
    }
    entity.rows()
}

/// Returns the row that the caller read.
///
/// # Errors
///
/// Fails with `is_invalid` if the caller read none and passed a value without valid keys, or the ETag `*`, which is
/// not a version.
fn loaded_entity<S>(stored: &Stored<S>) -> Result<EntityReadByCaller> {
    let (row, source) = (stored.row(), stored.source());
    if let RowSource::Caller = source {
        let invalid =
            |message: &str| error_with_row_keys(row, Error::new(ErrorKind::Invalid, message));
        if row.has_same_content(&Row::without_keys()) {
            return Err(invalid(
                "the value given with an ETag cannot be stored; insert it to see why",
            ));
        }
        if row.etag() == Some(ETag::from("*")) {
            return Err(invalid(
                "`*` is not the ETag of a version; use `replace_any` or `delete_at` to write any version",
            ));
        }
    }
    Ok(EntityReadByCaller { row: row.clone(), source })
}

/// Plans the insertion of the entity.
pub(crate) fn insert<E: TableEntity>(entity: &E) -> Result<Change> {
    let rows = validated_rows(entity)?;
    let needs = const { E::SCHEMA.needs() };
    if needs.contain(Needs::TOKENS) {
        return Change::from_verb(E::SCHEMA, EntityVerb::Insert(rows), None);
    }
    Ok(Change::from_effect_of_type(Effect::of_insertion(E::SCHEMA, rows), needs))
}

/// Plans to insert the entity or replace the stored one.
pub(crate) fn insert_or_replace<E: TableEntity>(entity: &E) -> Result<Change> {
    Change::from_verb(E::SCHEMA, EntityVerb::InsertOrReplace(validated_rows(entity)?), None)
}

/// Plans to insert the entity or merge it into the stored one.
pub(crate) fn insert_or_merge<E: TableEntity>(entity: &E) -> Result<Change> {
    Change::from_verb(E::SCHEMA, EntityVerb::InsertOrMerge(validated_rows(entity)?), None)
}

/// Plans to replace the entity under the ETag that was read.
pub(crate) fn replace<E: TableEntity>(stored: &Stored<E>) -> Result<Change> {
    replace_row_by_entity(stored, &**stored)
}

/// Plans to replace a row by an entity, under the ETag that was read. The row may have been read as another type,
/// such as a set.
pub(crate) fn replace_row_by_entity<S, E: TableEntity>(
    stored: &Stored<S>,
    entity: &E,
) -> Result<Change> {
    let rows = validated_rows(entity).map_err(|error| error_with_row_keys(stored.row(), error))?;
    Change::from_verb(E::SCHEMA, EntityVerb::Replace { loaded: loaded_entity(stored)?, rows }, None)
}

/// Plans to write what changed since the entity was read, under its ETag. Returns `None` if nothing changed.
pub(crate) fn update<E: TableEntity>(stored: &Stored<E>) -> Result<Option<Change>> {
    let rows =
        validated_rows(&**stored).map_err(|error| error_with_row_keys(stored.row(), error))?;
    // Keys with tokens can only be compared once the tokens are made, so such an entity is always written.
    if !E::SCHEMA.has_key_tokens() {
        let unknown = E::SCHEMA.unknown_properties_of(stored.row())?;
        if unknown.add_to_primary(rows.primary.clone())?.has_same_content(stored.row()) {
            return Ok(None);
        }
    }
    Change::from_verb(E::SCHEMA, EntityVerb::Update { loaded: loaded_entity(stored)?, rows }, None)
        .map(Some)
}

/// Plans to replace the stored entity whatever its ETag.
pub(crate) fn replace_any_version<E: TableEntity>(entity: &E) -> Result<Change> {
    Change::from_verb(E::SCHEMA, EntityVerb::ReplaceAny(validated_rows(entity)?), None)
}

/// Plans to set and remove properties under the ETag that was read.
pub(crate) fn patch<E: TableEntity>(stored: &Stored<E>, mut patch: Patch<E>) -> Result<Change> {
    let blobs = patch.take_blobs();
    let (set, remove) =
        patch.into_changes().map_err(|error| error_with_row_keys(stored.row(), error))?;
    let patch = PropertyChanges { set, remove, blobs };
    Change::from_verb(E::SCHEMA, EntityVerb::Patch { loaded: loaded_entity(stored)?, patch }, None)
}

/// Plans to set and remove properties of the entity at a point, whatever its ETag.
pub(crate) fn patch_at<E: TableEntity>(
    access: &UntypedPath,
    mut patch: Patch<E>,
) -> Result<Change> {
    let blobs = patch.take_blobs();
    let keys = access.point()?;
    let (set, remove) = patch.into_changes().map_err(|error| error.at_keys(keys.0, keys.1))?;
    let keys = row_from_bag(keys, &Bag::new())?;
    let verb = EntityVerb::PatchAt { keys, patch: PropertyChanges { set, remove, blobs } };
    Change::from_verb(E::SCHEMA, verb, Some(access))
}

/// Plans to delete the entity under the ETag that was read. The entity may have been read as another type, such as
/// a set.
pub(crate) fn delete<S, E: TableEntity>(stored: &Stored<S>) -> Result<Change> {
    Change::from_verb(E::SCHEMA, EntityVerb::Delete(loaded_entity(stored)?), None)
}

/// Plans to delete the entity at a point, whatever its ETag. With `must_exist`, fails if the entity does not exist.
pub(crate) fn delete_at<E: TableEntity>(access: &UntypedPath, must_exist: bool) -> Result<Change> {
    let keys = row_from_bag(access.point()?, &Bag::new())?;
    Change::from_verb(E::SCHEMA, EntityVerb::DeleteAt { keys, must_exist }, Some(access))
}

/// Returns the effect that replaces a stored entity of the type under its ETag and keeps none of its properties.
pub(crate) fn replacement_effect(
    schema: &'static Schema,
    tokens: TokenMaker,
    current: &Row,
    rows: EntityRows,
) -> Result<Effect> {
    Planner { schema, tokens }.replace(current, rows)
}

/// Returns the effect that deletes a stored entity with all its rows under its ETag.
pub(crate) fn deletion_effect(
    schema: &'static Schema,
    tokens: TokenMaker,
    current: &Row,
) -> Result<Effect> {
    Planner { schema, tokens }.delete(current)
}

#[cfg(test)]
mod tests {
    use super::{insert, insert_or_merge, insert_or_replace, replace_any_version};
    use crate::{
        edm::Ticks,
        entity::{Needs, Point, Schema, Stored},
        plan::{Change, verb::OnRace},
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

    #[derive(Debug, Clone, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{team}",
        row_key = "c_{id:02}",
        index(ByCity, partition_key = "city_{city}", row_key = "city_{city}", unique, only(end)),
        list(OfCity, row_key = "cl_{city}"),
        expires = end
    )]
    struct Marked {
        team: String,
        id: u32,
        age: i32,
        city: String,
        end: Option<Ticks>,
    }

    fn reaction_to_race(change: Change) -> Option<OnRace> {
        change.reaction_to_race()
    }

    fn stored<E: TableEntity>(entity: E, family: usize) -> Stored<E> {
        let schema: &'static Schema = E::SCHEMA;
        let row = match family {
            0 => entity.to_row().unwrap(),
            _ => entity.rows().unwrap().local_copies.remove(0).row,
        };
        let row = row.with_etag(ETag::from_timestamp(Ticks::UNIX_EPOCH));
        Stored::from_read_row(entity, row, &schema.families[family])
    }

    #[test]
    fn a_verb_reads_only_what_it_cannot_do_without() {
        let single = Single { team: "Sales".into(), id: 1, age: 34 };
        let copied = Copied { team: "Sales".into(), id: 1, age: 34 };
        let again = Some(OnRace::ReadAgain);

        assert_eq!(reaction_to_race(insert(&single).unwrap()), None);
        assert_eq!(reaction_to_race(insert(&copied).unwrap()), None);
        for verb in [insert_or_replace::<Single>, insert_or_merge, replace_any_version] {
            assert_eq!(reaction_to_race(verb(&single).unwrap()), None);
        }
        for verb in [insert_or_replace::<Copied>, insert_or_merge, replace_any_version] {
            assert_eq!(reaction_to_race(verb(&copied).unwrap()), again);
        }

        let through_copy = stored(copied.clone(), 1);
        let (single, copied) = (stored(single, 0), stored(copied, 0));
        assert_eq!(reaction_to_race(super::replace(&single).unwrap()), None);
        assert_eq!(reaction_to_race(super::replace(&copied).unwrap()), None);
        assert_eq!(reaction_to_race(super::delete::<_, Copied>(&copied).unwrap()), None);
        let report = Some(OnRace::ReportToCaller);
        assert_eq!(reaction_to_race(super::replace(&through_copy).unwrap()), report);
        assert_eq!(reaction_to_race(super::delete::<_, Copied>(&through_copy).unwrap()), report);

        let at = Point::<Single>::at("Sales", "a_01");
        let blind = super::patch_at::<Single>(at.as_access(), Single::patch().age(35).into());
        assert_eq!(reaction_to_race(blind.unwrap()), None);
        let at = Point::<Copied>::at("Sales", "b_01");
        let reads = super::patch_at::<Copied>(at.as_access(), Copied::patch().age(35).into());
        assert_eq!(reaction_to_race(reads.unwrap()), again, "a copy holds the age");
    }

    #[test]
    fn a_change_needs_what_its_type_needs_and_its_verb_leaves() {
        let single = Single { team: "Sales".into(), id: 1, age: 34 };
        let copied = Copied { team: "Sales".into(), id: 1, age: 34 };
        assert_eq!(insert(&single).unwrap().needs(), Needs::NONE);
        assert_eq!(insert(&copied).unwrap().needs(), Needs::COPIES);
        assert_eq!(insert_or_replace(&single).unwrap().needs(), Needs::NONE);
        let mut moved = stored(single.clone(), 0);
        moved.id = 2;
        assert_eq!(super::replace(&moved).unwrap().needs(), Needs::COPIES, "its old row goes");
        let reads = Needs::COPIES.and(Needs::CURRENT);
        assert_eq!(insert_or_replace(&copied).unwrap().needs(), reads);
        assert_eq!(super::replace(&stored(copied.clone(), 0)).unwrap().needs(), Needs::COPIES);
        assert_eq!(super::replace(&stored(copied, 1)).unwrap().needs(), reads);
        // A merge of a property that is in no copy, without a read.
        let at = Point::<Marked>::at("Sales", "c_01");
        let patch = super::patch_at::<Marked>(at.as_access(), Marked::patch().age(35).into());
        assert_eq!(patch.unwrap().needs(), Needs::EXPIRY);
        let marked =
            Marked { team: "Sales".into(), id: 1, age: 34, city: "Oslo".into(), end: None };
        let all = Needs::REMOTE.and(Needs::UNIQUE).and(Needs::LISTS).and(Needs::EXPIRY);
        assert_eq!(insert(&marked).unwrap().needs(), all);
    }
}
