//! The caller's verbs as changes.
//!
//! An entity without copies and lists costs one request, whatever the verb. One that has them is
//! guarded by what is known of its old rows: by the value that was loaded, else by a read.

use std::{borrow::Cow, sync::Arc};

use super::{Change, Effect, Holders, moving::stays};
use crate::{
    batch::{Condition, Operation},
    edm::Bag,
    entity::{
        DynamicEntity, EntityRows, Patch, Recognition, Stored, TableEntity, entity_of, stored_rows,
    },
    error::{Error, ErrorKind, Result, ServiceCode},
    row::Row,
};

/// Whether the entity is stored as its primary alone.
fn is_alone<E: TableEntity>() -> bool {
    E::SCHEMA.is_alone()
}

/// The entity's rows, after the user's own `validate`.
fn prepared<E: TableEntity>(entity: &E) -> Result<EntityRows> {
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

/// The rows of the entity that a primary row holds, by the version that wrote it.
fn rows_of<E: TableEntity>(primary: &Row) -> Result<EntityRows> {
    let rows = E::SCHEMA.primary().and_then(|family| stored_rows::<E>(primary, family));
    rows.map_err(|error| at(primary, error))
}

/// The primary row as this version writes it; the row itself, where this version wrote it.
fn brought_up<E: TableEntity>(primary: &Row) -> Result<Cow<'_, Row>> {
    if E::SCHEMA.older.is_none() {
        return Ok(Cow::Borrowed(primary));
    }
    let family = E::SCHEMA.primary()?;
    if E::SCHEMA.recognize(primary, family)? == Recognition::Ours {
        return Ok(Cow::Borrowed(primary));
    }
    let entity = entity_of::<E>(primary, family).and_then(|entity| entity.to_row());
    entity.map(Cow::Owned).map_err(|error| at(primary, error))
}

fn at(row: &Row, error: Error) -> Error {
    error.at_keys(row.partition_key(), row.row_key())
}

/// Create; the keys are taken: conflict.
pub(crate) fn insert<E: TableEntity>(entity: &E) -> Result<Change> {
    let new = prepared(entity)?;
    Ok(Change::ready(inserted::<E>(new)))
}

fn inserted<E: TableEntity>(new: EntityRows) -> Effect {
    let row = new.primary.clone();
    Effect {
        primary: vec![Operation::insert(row.clone())],
        old: None,
        new: Some(new),
        row: Some(row),
        holders: Some(Holders::of::<E>()),
        schema: Some(E::SCHEMA),
    }
}

/// Create, or put in place of what is there.
pub(crate) fn upsert<E: TableEntity>(entity: &E) -> Result<Change> {
    let new = prepared(entity)?;
    if is_alone::<E>() {
        let row = new.primary;
        return Ok(Change::ready(Effect::alone(
            Operation::insert_or_replace(row.clone()),
            Some(row),
        )));
    }
    let wanted = new.primary.clone();
    Ok(read::<E>(&wanted, true, move |current| match current {
        None => Ok(inserted::<E>(new.clone())),
        Some(current) => guarded::<E>(current, new.clone()),
    }))
}

/// Create, or set the entity's properties on what is there.
pub(crate) fn upsert_merge<E: TableEntity>(entity: &E) -> Result<Change> {
    let new = prepared(entity)?;
    if is_alone::<E>() {
        let row = new.primary;
        return Ok(Change::ready(Effect::alone(
            Operation::insert_or_merge(row.clone()),
            Some(row),
        )));
    }
    let wanted = new.primary.clone();
    Ok(read::<E>(&wanted, true, move |current| match current {
        None => Ok(inserted::<E>(new.clone())),
        Some(current) => {
            let current_form = brought_up::<E>(current)?;
            let merged = patched(&current_form, &new.primary.to_bag()?, &[])?;
            let rows = rows_of::<E>(&merged)?;
            guarded::<E>(current, EntityRows { primary: merged, ..rows })
        }
    }))
}

/// Put in place of the version that was read.
pub(crate) fn replace<E: TableEntity>(stored: &Stored<E>) -> Result<Change> {
    replace_by(stored, &**stored)
}

/// Put an entity in place of the version that was read, whatever it was read as.
pub(crate) fn replace_by<S, E: TableEntity>(stored: &Stored<S>, entity: &E) -> Result<Change> {
    let new = prepared(entity).map_err(|error| at(stored.row(), error))?;
    if stored.is_primary() {
        return guarded::<E>(stored.row(), new).map(Change::ready);
    }
    through_copy::<S, E>(stored, move |current| guarded::<E>(current, new.clone()))
}

/// Put an entity without a type in place of the version that was read.
pub(crate) fn replace_row<S>(stored: &Stored<S>, entity: &DynamicEntity) -> Result<Change> {
    same_keys(stored, entity)?;
    let row = entity.to_row()?;
    let replace = Operation::replace(row.clone(), Condition::Match(stored.etag()));
    Ok(Change::ready(Effect::alone(replace, Some(row))))
}

/// An entity without a type is written back where it was read: nothing says what else its keys
/// stand in.
pub(crate) fn same_keys<S>(stored: &Stored<S>, entity: &DynamicEntity) -> Result<()> {
    if (stored.partition_key(), stored.row_key()) == (entity.partition_key(), entity.row_key()) {
        return Ok(());
    }
    let message = format!(
        "the keys changed to (`{}`, `{}`); insert the entity there, and delete this one",
        entity.partition_key().escape_debug(),
        entity.row_key().escape_debug()
    );
    Err(at(stored.row(), Error::new(ErrorKind::Invalid, message)))
}

/// Create the row of an entity without a type.
pub(crate) fn insert_row(row: Row) -> Change {
    Change::ready(Effect::alone(Operation::insert(row.clone()), Some(row)))
}

/// Create the row of an entity without a type, or put it in place of what is there.
pub(crate) fn upsert_row(row: Row) -> Change {
    Change::ready(Effect::alone(Operation::insert_or_replace(row.clone()), Some(row)))
}

/// Delete the row of an entity without a type, in the version that was read.
pub(crate) fn delete_row<S>(stored: &Stored<S>) -> Result<Change> {
    let (partition_key, row_key) = (stored.partition_key(), stored.row_key());
    let guard = Condition::Match(stored.etag());
    let delete = Operation::delete(partition_key, row_key, guard)?;
    Ok(Change::ready(Effect::alone(delete, None)))
}

/// Put in place of the existing one, in whatever version.
pub(crate) fn replace_any<E: TableEntity>(entity: &E) -> Result<Change> {
    let new = prepared(entity)?;
    if is_alone::<E>() {
        let row = new.primary;
        let replace = Operation::replace(row.clone(), Condition::Any);
        return Ok(Change::ready(Effect::alone(replace, Some(row))));
    }
    let wanted = new.primary.clone();
    Ok(read::<E>(&wanted, true, move |current| match current {
        None => Err(missing::<E>(&new.primary)),
        Some(current) => guarded::<E>(current, new.clone()),
    }))
}

/// Set and remove some properties.
pub(crate) fn patch<E: TableEntity>(
    (partition_key, row_key): (&str, &str),
    patch: Patch<E>,
) -> Result<Change> {
    let (set, removed) =
        patch.into_changes().map_err(|error| error.at_keys(partition_key, row_key))?;
    // A blind merge would put properties of this version onto a row of an older one.
    let is_blind = removed.is_empty() && E::SCHEMA.older.is_none();
    if is_blind && !touches_copies::<E>(&set) {
        let row = bag_row(partition_key, row_key, &set)?;
        return Ok(Change::ready(Effect::alone(Operation::merge(row, Condition::Any), None)));
    }
    let wanted = bag_row(partition_key, row_key, &Bag::new())?;
    let keys = wanted.clone();
    Ok(read::<E>(&keys, true, move |current| {
        let Some(current) = current else { return Err(missing::<E>(&wanted)) };
        let current_form = brought_up::<E>(current)?;
        let row = patched(&current_form, &set, &removed)?;
        if is_alone::<E>() && row.row_key() == current.row_key() {
            let guard = current.etag().map_or(Condition::Any, Condition::Match);
            return Ok(Effect::alone(Operation::replace(row.clone(), guard), Some(row)));
        }
        let rows = rows_of::<E>(&row)?;
        guarded::<E>(current, EntityRows { primary: row, ..rows })
    }))
}

/// Whether a set property is one that a copy, a list or a condition may depend on.
fn touches_copies<E: TableEntity>(set: &Bag) -> bool {
    !is_alone::<E>() && set.iter().any(|(name, _)| E::SCHEMA.is_copied(name))
}

/// Delete the version that was read, whatever it was read as.
pub(crate) fn delete<S, E: TableEntity>(stored: &Stored<S>) -> Result<Change> {
    if stored.is_primary() {
        return deleted::<E>(stored.row()).map(Change::ready);
    }
    through_copy::<S, E>(stored, deleted::<E>)
}

/// Delete, in whatever version; `must_exist`: a missing entity is an error.
pub(crate) fn delete_at<E: TableEntity>(
    (partition_key, row_key): (&str, &str),
    must_exist: bool,
) -> Result<Change> {
    if is_alone::<E>() {
        let delete = Operation::delete(partition_key, row_key, Condition::Any)?;
        return Ok(Change::ready(Effect::alone(delete, None)));
    }
    let wanted = bag_row(partition_key, row_key, &Bag::new())?;
    let keys = wanted.clone();
    Ok(read::<E>(&keys, true, move |current| match current {
        Some(current) => deleted::<E>(current),
        None if must_exist => Err(missing::<E>(&wanted)),
        None => Ok(Effect::nothing()),
    }))
}

/// A change that begins with a read of the primary with these keys.
fn read<E: TableEntity>(
    keys: &Row,
    repeats: bool,
    plan: impl Fn(Option<&Row>) -> Result<Effect> + Send + Sync + 'static,
) -> Change {
    Change::Read {
        partition_key: keys.partition_key().to_owned(),
        row_key: keys.row_key().to_owned(),
        plan: Arc::new(plan),
        repeats,
        rows: E::SCHEMA.families.len(),
    }
}

/// A change of an entity that was read through a copy, which carries no token for writing: the
/// primary is read, and has to be what the copy says.
fn through_copy<S, E: TableEntity>(
    stored: &Stored<S>,
    plan: impl Fn(&Row) -> Result<Effect> + Send + Sync + 'static,
) -> Result<Change> {
    let loaded = stored.row().clone();
    let place = |error: Error| error.at_keys(loaded.partition_key(), loaded.row_key());
    let family = stored.copy().map_or(E::SCHEMA.primary(), Ok)?;
    let loaded_rows = stored_rows::<E>(&loaded, family).map_err(place)?;
    let (keys, entity) = (loaded_rows.primary, entity_of::<E>(&loaded, family).map_err(place)?);
    let expected = entity.to_row().map_err(place)?;
    Ok(read::<E>(&keys.clone(), false, move |current| {
        let current = current.ok_or_else(|| missing::<E>(&keys))?;
        let found = entity_of::<E>(current, E::SCHEMA.primary()?).and_then(|found| found.to_row());
        if !found.map_err(|error| at(current, error))?.holds_same(&expected) {
            let message = "the entity changed since it was read: the copy that it was read through is behind the primary";
            let error = Error::service(ServiceCode::UpdateConditionNotSatisfied, message);
            return Err(at(current, error));
        }
        plan(current)
    }))
}

/// The new rows in place of the ones that `current` holds, in the version of `current`.
fn guarded<E: TableEntity>(current: &Row, new: EntityRows) -> Result<Effect> {
    stays(current)?;
    let guard = current.etag().map_or(Condition::Any, Condition::Match);
    let old = if is_alone::<E>() { None } else { Some(rows_of::<E>(current)?) };
    let row = new.primary.clone();
    let (old_partition, old_row) = (current.partition_key(), current.row_key());
    if row.partition_key() != old_partition {
        let message = format!(
            "the PartitionKey changed from `{}` to `{}`, and no transaction spans two partitions; use `move_to`",
            old_partition.escape_debug(),
            row.partition_key().escape_debug()
        );
        return Err(at(current, Error::new(ErrorKind::Invalid, message)));
    }
    let primary = if row.row_key() == old_row {
        vec![Operation::replace(row.clone(), guard)]
    } else {
        let delete = Operation::delete(old_partition, old_row, guard)?;
        vec![delete, Operation::insert(row.clone())]
    };
    let (holders, schema) = (Some(Holders::of::<E>()), Some(E::SCHEMA));
    Ok(Effect { primary, old, new: Some(new), row: Some(row), holders, schema })
}

/// The removal of the rows that `current` holds, in the version of `current`.
fn deleted<E: TableEntity>(current: &Row) -> Result<Effect> {
    stays(current)?;
    let guard = current.etag().map_or(Condition::Any, Condition::Match);
    let delete = Operation::delete(current.partition_key(), current.row_key(), guard)?;
    let old = if is_alone::<E>() { None } else { Some(rows_of::<E>(current)?) };
    let schema = Some(E::SCHEMA);
    Ok(Effect { primary: vec![delete], old, new: None, row: None, holders: None, schema })
}

fn missing<E: TableEntity>(wanted: &Row) -> Error {
    let message = format!("there is no such `{}`", E::SCHEMA.entity);
    at(wanted, Error::service(ServiceCode::ResourceNotFound, message))
}

/// A row with some properties set and others removed.
fn patched(row: &Row, set: &Bag, removed: &[&str]) -> Result<Row> {
    let mut bag = row.to_bag()?;
    for (name, value) in set.iter() {
        bag.set(name, value.clone());
    }
    for name in removed {
        bag.remove(name);
    }
    bag_row(row.partition_key(), row.row_key(), &bag)
}

/// A row of a bag's properties.
fn bag_row(partition_key: &str, row_key: &str, bag: &Bag) -> Result<Row> {
    let mut builder = Row::build(partition_key, row_key);
    for (name, value) in bag.iter() {
        builder.put(name, value.as_ref());
    }
    builder.finish()
}
