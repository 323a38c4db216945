//! The caller's verbs as changes.
//!
//! An entity without copies and lists costs one request, whatever the verb. One that has them is
//! guarded by what is known of its old rows: by the value that was loaded, else by a read.

use std::{borrow::Cow, sync::Arc};

use super::{
    change::{Change, Effect},
    holder::Holders,
    moves::stays,
    size::hidden,
    tokens::Tokens,
};
use crate::{
    batch::{Condition, Operation, Verb},
    edm::Bag,
    entity::{
        Access, EntityRows, Patch, Recognition, Stored, TableEntity, read_any_version,
        rows_of_any_version,
    },
    error::{Error, ErrorKind, Result, ServiceCode},
    key::Family,
    row::Row,
};

/// Whether the entity is stored as its primary alone.
fn is_alone<E: TableEntity>() -> bool {
    E::SCHEMA.is_single_row()
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

/// What a verb comes to once the tokens of the entity's keys can be made: at once, where it has
/// none.
fn keyed<E: TableEntity>(
    make: impl Fn(&Tokens) -> Result<Change> + Send + Sync + 'static,
) -> Result<Change> {
    if E::SCHEMA.has_tokens() { Ok(Change::Keyed(Arc::new(make))) } else { make(&Tokens::none()) }
}

/// Whether each write has to be one of the whole row: a part of it cannot be vouched for alone.
fn is_whole<E: TableEntity>() -> bool {
    E::SCHEMA.sealed
}

/// The rows of the entity that a primary row holds, by the version that wrote it.
fn rows_of<E: TableEntity>(primary: &Row, tokens: &Tokens) -> Result<EntityRows> {
    let rows = E::SCHEMA.primary().and_then(|family| rows_of_any_version::<E>(primary, family));
    rows.and_then(|rows| tokens.fill(E::SCHEMA, rows)).map_err(|error| at(primary, error))
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
    let entity = read_any_version::<E>(primary, family).and_then(|entity| entity.to_row());
    // A primary keeps its keys, whose tokens are made.
    let row = entity.and_then(|row| row.with_keys(primary.partition_key(), primary.row_key()));
    row.map(Cow::Owned).map_err(|error| at(primary, error))
}

fn at(row: &Row, error: Error) -> Error {
    error.at_keys(row.partition_key(), row.row_key())
}

/// Create; the keys are taken: conflict.
pub(crate) fn insert<E: TableEntity>(entity: &E) -> Result<Change> {
    let new = prepared(entity)?;
    keyed::<E>(move |tokens| Ok(Change::ready(inserted::<E>(tokens.fill(E::SCHEMA, new.clone())?))))
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

/// One operation on the primary of an entity without copies and lists.
fn alone<E: TableEntity>(operation: Operation, row: Option<Row>) -> Effect {
    Effect::alone(Some(E::SCHEMA), operation, row)
}

/// Create, or put in place of what is there.
pub(crate) fn insert_or_replace<E: TableEntity>(entity: &E) -> Result<Change> {
    let new = prepared(entity)?;
    keyed::<E>(move |tokens| {
        let new = tokens.fill(E::SCHEMA, new.clone())?;
        if is_alone::<E>() {
            let row = new.primary;
            let put = Operation::insert_or_replace(row.clone());
            return Ok(Change::ready(alone::<E>(put, Some(row))));
        }
        let (wanted, tokens) = (new.primary.clone(), tokens.clone());
        Ok(read::<E>(&wanted, true, move |current| match current {
            None => Ok(inserted::<E>(new.clone())),
            Some(current) => guarded::<E>(current, new.clone(), &tokens),
        }))
    })
}

/// Whether the row can be merged with whatever is there: not onto an older version, whose properties
/// are others, and not where an absence is hidden, which is another write for a new row.
fn merges_blindly<E: TableEntity>(row: &Row) -> Result<bool> {
    if !is_alone::<E>() || is_whole::<E>() || E::SCHEMA.older.is_some() {
        return Ok(false);
    }
    let columns = E::SCHEMA.sealed_columns();
    Ok(hidden(&columns, row, Verb::Insert, E::SCHEMA.primary()?)?.is_empty())
}

/// Create, or set the entity's properties on what is there.
pub(crate) fn insert_or_merge<E: TableEntity>(entity: &E) -> Result<Change> {
    let new = prepared(entity)?;
    keyed::<E>(move |tokens| {
        let new = tokens.fill(E::SCHEMA, new.clone())?;
        if merges_blindly::<E>(&new.primary)? {
            let row = new.primary;
            let merge = Operation::insert_or_merge(row.clone());
            return Ok(Change::ready(alone::<E>(merge, Some(row))));
        }
        let (wanted, tokens) = (new.primary.clone(), tokens.clone());
        Ok(read::<E>(&wanted, true, move |current| match current {
            None => Ok(inserted::<E>(new.clone())),
            Some(current) => {
                let current_form = brought_up::<E>(current)?;
                let merged = patched(&current_form, &new.primary.to_bag()?, &[])?;
                let rows = rows_of::<E>(&merged, &tokens)?;
                guarded::<E>(current, EntityRows { primary: merged, ..rows }, &tokens)
            }
        }))
    })
}

/// Put in place of the version that was read.
pub(crate) fn replace<E: TableEntity>(stored: &Stored<E>) -> Result<Change> {
    replace_by(stored, &**stored)
}

/// Put an entity in place of the version that was read, whatever it was read as.
pub(crate) fn replace_by<S, E: TableEntity>(stored: &Stored<S>, entity: &E) -> Result<Change> {
    let new = prepared(entity).map_err(|error| at(stored.row(), error))?;
    let (loaded, copy) = (stored.row().clone(), stored.copy_family());
    keyed::<E>(move |tokens| {
        let new = tokens.fill(E::SCHEMA, new.clone())?;
        let Some(family) = copy else {
            return guarded::<E>(&loaded, new, tokens).map(Change::ready);
        };
        let kept = tokens.clone();
        through_copy::<E>(&loaded, family, tokens, move |current| {
            guarded::<E>(current, new.clone(), &kept)
        })
    })
}

/// Put in place of the existing one, in whatever version.
pub(crate) fn replace_any<E: TableEntity>(entity: &E) -> Result<Change> {
    let new = prepared(entity)?;
    keyed::<E>(move |tokens| {
        let new = tokens.fill(E::SCHEMA, new.clone())?;
        if is_alone::<E>() {
            let row = new.primary;
            let replace = Operation::replace(row.clone(), Condition::Any);
            return Ok(Change::ready(alone::<E>(replace, Some(row))));
        }
        let (wanted, tokens) = (new.primary.clone(), tokens.clone());
        Ok(read::<E>(&wanted, true, move |current| match current {
            None => Err(missing::<E>(&new.primary)),
            Some(current) => guarded::<E>(current, new.clone(), &tokens),
        }))
    })
}

/// Sets and removes some properties of the version that was read.
pub(crate) fn patch<E: TableEntity>(stored: &Stored<E>, patch: Patch<E>) -> Result<Change> {
    let (loaded, copy) = (stored.row().clone(), stored.copy_family());
    let (set, removed) = patch.into_changes().map_err(|error| at(&loaded, error))?;
    keyed::<E>(move |tokens| {
        let Some(family) = copy else {
            return patched_version::<E>(&loaded, &set, &removed, tokens).map(Change::ready);
        };
        let (set, removed, kept) = (set.clone(), removed.clone(), tokens.clone());
        through_copy::<E>(&loaded, family, tokens, move |current| {
            patched_version::<E>(current, &set, &removed, &kept)
        })
    })
}

/// Sets and removes some properties of the entity with these keys, in whatever version it is.
pub(crate) fn patch_at<E: TableEntity>(access: &Access, patch: Patch<E>) -> Result<Change> {
    let (partition_key, row_key) = access.point()?;
    let (set, removed) =
        patch.into_changes().map_err(|error| error.at_keys(partition_key, row_key))?;
    let access = access.clone();
    keyed::<E>(move |tokens| {
        let access = tokens.path(E::SCHEMA, &access)?;
        let (partition_key, row_key) = access.point()?;
        if is_one_merge::<E>(&set, &removed) {
            let row = bag_row(partition_key, row_key, &set)?;
            return Ok(Change::ready(alone::<E>(Operation::merge(row, Condition::Any), None)));
        }
        let wanted = bag_row(partition_key, row_key, &Bag::new())?;
        let (keys, set, removed) = (wanted.clone(), set.clone(), removed.clone());
        let tokens = tokens.clone();
        Ok(read::<E>(&keys, true, move |current| {
            let Some(current) = current else { return Err(missing::<E>(&wanted)) };
            rewritten::<E>(current, &set, &removed, &tokens)
        }))
    })
}

/// Returns whether a patch is one merge of what it sets, without a look at the row.
fn is_one_merge<E: TableEntity>(set: &Bag, removed: &[&str]) -> bool {
    // A merge cannot remove a property, would put properties of this version onto a row of an older
    // one, and breaks the seal of a whole row.
    let can_merge = removed.is_empty() && E::SCHEMA.older.is_none() && !is_whole::<E>();
    can_merge && !touches_copies::<E>(set)
}

/// Returns the effect of a patch on the version `current`: a merge where one is enough.
fn patched_version<E: TableEntity>(
    current: &Row,
    set: &Bag,
    removed: &[&str],
    tokens: &Tokens,
) -> Result<Effect> {
    if !is_one_merge::<E>(set, removed) {
        return rewritten::<E>(current, set, removed, tokens);
    }
    stays(current)?;
    let row =
        bag_row(current.partition_key(), current.row_key(), set)?.with_encrypted_names_of(current);
    Ok(alone::<E>(Operation::merge(row, Condition::for_etag(current.etag())), None))
}

/// Returns the effect that replaces `current` by itself with a patch applied.
fn rewritten<E: TableEntity>(
    current: &Row,
    set: &Bag,
    removed: &[&str],
    tokens: &Tokens,
) -> Result<Effect> {
    let current_form = brought_up::<E>(current)?;
    let row = patched(&current_form, set, removed)?.with_encrypted_names_of(current);
    if is_alone::<E>() && row.row_key() == current.row_key() {
        let guard = Condition::for_etag(current.etag());
        return Ok(alone::<E>(Operation::replace(row.clone(), guard), Some(row)));
    }
    let rows = rows_of::<E>(&row, tokens)?;
    guarded::<E>(current, EntityRows { primary: row, ..rows }, tokens)
}

/// Whether a set property is one that a copy, a list or a condition may depend on.
fn touches_copies<E: TableEntity>(set: &Bag) -> bool {
    !is_alone::<E>() && set.iter().any(|(name, _)| E::SCHEMA.may_change_copies(name))
}

/// Delete the version that was read, whatever it was read as.
pub(crate) fn delete<S, E: TableEntity>(stored: &Stored<S>) -> Result<Change> {
    let (loaded, copy) = (stored.row().clone(), stored.copy_family());
    keyed::<E>(move |tokens| {
        let Some(family) = copy else {
            return deleted::<E>(&loaded, tokens).map(Change::ready);
        };
        let kept = tokens.clone();
        through_copy::<E>(&loaded, family, tokens, move |current| deleted::<E>(current, &kept))
    })
}

/// Delete, in whatever version; `must_exist`: a missing entity is an error.
pub(crate) fn delete_at<E: TableEntity>(access: &Access, must_exist: bool) -> Result<Change> {
    access.point()?;
    let access = access.clone();
    keyed::<E>(move |tokens| {
        let access = tokens.path(E::SCHEMA, &access)?;
        let (partition_key, row_key) = access.point()?;
        if is_alone::<E>() {
            let delete = Operation::delete(partition_key, row_key, Condition::Any)?;
            return Ok(Change::ready(alone::<E>(delete, None)));
        }
        let wanted = bag_row(partition_key, row_key, &Bag::new())?;
        let (keys, tokens) = (wanted.clone(), tokens.clone());
        Ok(read::<E>(&keys, true, move |current| match current {
            Some(current) => deleted::<E>(current, &tokens),
            None if must_exist => Err(missing::<E>(&wanted)),
            None => Ok(Effect::nothing()),
        }))
    })
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
        schema: Some(E::SCHEMA),
        plan: Arc::new(plan),
        repeats,
        rows: E::SCHEMA.families.len(),
    }
}

/// A change of an entity that was read through a copy, which carries no token for writing: the
/// primary is read, and has to be what the copy says.
fn through_copy<E: TableEntity>(
    loaded: &Row,
    family: &'static Family,
    tokens: &Tokens,
    plan: impl Fn(&Row) -> Result<Effect> + Send + Sync + 'static,
) -> Result<Change> {
    let place = |error: Error| error.at_keys(loaded.partition_key(), loaded.row_key());
    let loaded_rows = rows_of_any_version::<E>(loaded, family)
        .and_then(|rows| tokens.fill(E::SCHEMA, rows))
        .map_err(place)?;
    let (keys, entity) =
        (loaded_rows.primary, read_any_version::<E>(loaded, family).map_err(place)?);
    let expected = entity.to_row().map_err(place)?;
    Ok(read::<E>(&keys.clone(), false, move |current| {
        let current = current.ok_or_else(|| missing::<E>(&keys))?;
        let found =
            read_any_version::<E>(current, E::SCHEMA.primary()?).and_then(|found| found.to_row());
        if !found.map_err(|error| at(current, error))?.has_same_content(&expected) {
            let message = "the entity changed since it was read: the copy that it was read through is behind the primary";
            let error = Error::service(ServiceCode::UpdateConditionNotSatisfied, message);
            return Err(at(current, error));
        }
        plan(current)
    }))
}

/// The new rows in place of the ones that `current` holds, in the version of `current`.
fn guarded<E: TableEntity>(current: &Row, new: EntityRows, tokens: &Tokens) -> Result<Effect> {
    stays(current)?;
    let guard = Condition::for_etag(current.etag());
    let old = if is_alone::<E>() { None } else { Some(rows_of::<E>(current, tokens)?) };
    let new = new.with_encrypted_names_of(current);
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
fn deleted<E: TableEntity>(current: &Row, tokens: &Tokens) -> Result<Effect> {
    stays(current)?;
    let guard = Condition::for_etag(current.etag());
    let delete = Operation::delete(current.partition_key(), current.row_key(), guard)?;
    let old = if is_alone::<E>() { None } else { Some(rows_of::<E>(current, tokens)?) };
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
