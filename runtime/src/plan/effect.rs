//! Effects: what a verb does to the rows of one entity, given its stored primary.

use std::borrow::Cow;

use super::{move_mark::refuse_moving, size::hidden_nulls, tokens::TokenMaker, wide};
use crate::{
    batch::{self, Condition, Operation},
    edm::{Bag, Value},
    entity::{
        BlobFieldValue, CopyRow, EntityRows, Recognition, RowSource, Schema, UnknownProperties,
        lossy_write_error,
    },
    error::{Error, ErrorKind, Result, ServiceCode},
    key::RowFamily,
    row::{ETag, Row, error_with_row_keys, is_operation_id},
};

/// The effect of a verb on the rows of one entity.
#[derive(Debug, Clone)]
pub(crate) struct Effect {
    /// The operations on the primary. There is one, or two (a deletion and an insertion) if the entity moves to another
    /// RowKey, or none if there is nothing to do.
    pub(crate) primary: Vec<Operation>,
    /// The copies and list entries before the verb. `None` if there are none or they are unknown.
    pub(crate) old: Option<EntityRows>,
    /// Whether `old` was derived key by key because the stored primary does not decode. Before the effect is written,
    /// copies that belong to another entity must be removed from `old`.
    pub(crate) is_old_unconfirmed: bool,
    /// The primary, copies and list entries of the entity after the verb. `None` if the entity is deleted. Also `None`
    /// if the effect was planned for the primary alone, because no copy or list entry changes.
    pub(crate) new: Option<EntityRows>,
    /// The whole primary after the verb. `None` if the verb does not know all of it.
    pub(crate) row: Option<Row>,
    /// The entity's type. `None` for an untyped row.
    pub(crate) schema: Option<&'static Schema>,
}

impl Effect {
    /// Creates the effect of one operation on a primary, without copies and lists.
    pub(crate) fn on_primary(
        schema: Option<&'static Schema>,
        operation: Operation,
        row: Option<Row>,
    ) -> Self {
        let primary = vec![operation];
        Self { primary, old: None, is_old_unconfirmed: false, new: None, row, schema }
    }

    /// Creates the effect that inserts an entity with all its rows.
    pub(super) fn of_insertion(schema: &'static Schema, new: EntityRows) -> Self {
        let row = new.primary.clone();
        let primary = vec![Operation::insert(row.clone())];
        let (row, schema) = (Some(row), Some(schema));
        Self { primary, old: None, is_old_unconfirmed: false, new: Some(new), row, schema }
    }

    /// Creates the effect of deleting an entity that does not exist: no operations.
    const fn of_missing_entity() -> Self {
        let primary = Vec::new();
        Self { primary, old: None, is_old_unconfirmed: false, new: None, row: None, schema: None }
    }

    /// Returns whether the effect changes remote copies, lists or blobs, for which the partition needs a fence.
    pub(crate) fn has_remote_work(&self) -> bool {
        if self.old.as_ref().is_some_and(|rows| !rows.blobs.is_empty()) {
            return true;
        }
        let mut rows = self.old.iter().chain(&self.new);
        rows.any(|rows| !rows.remote_copies.is_empty() || !rows.remote_lists.is_empty())
    }
}

/// The properties that a patch sets and removes.
#[derive(Debug, Clone)]
pub(crate) struct PropertyChanges {
    pub(crate) set: Bag,
    pub(crate) remove: Vec<Cow<'static, str>>,
    /// The values of the fields in `set` that are stored in blobs.
    pub(crate) blobs: Vec<BlobFieldValue>,
}

/// An entity that a caller has read and is changing under its ETag.
#[derive(Debug, Clone)]
pub(crate) struct EntityReadByCaller {
    pub(crate) row: Row,
    pub(crate) source: RowSource,
}

impl EntityReadByCaller {
    /// Returns the index whose copy the row is, or `None` for a row with the primary's keys.
    pub(super) fn copy(&self) -> Option<&'static RowFamily> {
        match self.source {
            RowSource::Copy(family) => Some(family),
            RowSource::Primary | RowSource::Caller => None,
        }
    }
}

/// Plans the effects of verbs on entities of one type. Reads nothing.
#[derive(Debug, Clone)]
pub(crate) struct Planner {
    pub(crate) schema: &'static Schema,
    /// Makes the blind tokens in keys of derived rows.
    pub(crate) tokens: TokenMaker,
}

impl Planner {
    /// Returns whether a verb can be sent without reading the stored row: the entity has no copies and lists, no
    /// older version stores its properties in other parts of a wide entity, and no row of another type has its keys.
    pub(super) fn can_write_unread(&self) -> bool {
        self.schema.is_single_row()
            && !wide::may_have_older_layout(self.schema)
            && !self.schema.shares_keys
    }

    /// Refuses a row of another type, which may have the keys of this type's rows.
    ///
    /// # Errors
    ///
    /// `is_unrecognized_entity` for a row of another type.
    pub(super) fn refuse_row_of_other_type(&self, row: &Row) -> Result<()> {
        match self.schema.recognize_as(row, self.schema.primary()?)? {
            other @ (Recognition::Foreign(_) | Recognition::Unmarked) => {
                Err(error_with_row_keys(row, self.schema.unrecognized_error(&other)))
            }
            Recognition::Ours | Recognition::Version(_) => Ok(()),
        }
    }

    /// Returns whether an entity can be deleted without a read, under an ETag from the caller.
    pub(super) fn can_delete_under_etag(&self) -> bool {
        // The ETag of a wide entity consists of the ETags of its parts.
        self.can_write_unread() && !self.schema.is_wide() && !self.schema.has_key_tokens()
    }

    /// Returns whether an entity can be replaced without a read, under an ETag from the caller, because nothing
    /// stored must be kept.
    pub(super) fn can_replace_under_etag(&self) -> bool {
        self.can_delete_under_etag() && self.schema.drops_unknown
    }

    /// Returns whether the stored entity is of an older version, whose properties may be in other parts.
    fn has_other_parts(&self, current: &Row) -> Result<bool> {
        if !wide::may_have_older_layout(self.schema) {
            return Ok(false);
        }
        Ok(!self.schema.is_current_primary(current)?)
    }

    /// Returns whether a row can be merged with whatever is stored. Returns `false` if
    /// - the stored row may be of an older version, whose properties have other names,
    /// - a seal covers the whole row,
    /// - an absence is hidden, which an insert writes differently than a merge,
    /// - a value is encrypted, because the code of a running move covers it, or
    /// - the entity is wide: a new generation would make an entity with a missing part look complete.
    pub(super) fn can_insert_or_merge_unread(&self, row: &Row) -> Result<bool> {
        let is_one_row = self.schema.is_single_row() && !self.schema.is_wide();
        let is_alone = self.schema.older.is_none() && !self.schema.shares_keys;
        if !is_one_row || self.schema.sealed || !is_alone {
            return Ok(false);
        }
        let columns = self.schema.sealed_columns();
        for column in &columns {
            if row.get(&column.name)?.is_some() {
                return Ok(false);
            }
        }
        Ok(hidden_nulls(&columns, row, batch::Verb::Insert, self.schema.primary()?)?.is_empty())
    }

    /// Returns whether the patch only needs a merge of the properties that it sets. It must not remove properties,
    /// or set properties that copies, lists or blobs may depend on. The type must have neither an older version nor
    /// a seal of whole rows. [`can_patch_unread`](Self::can_patch_unread) returns whether the merge can be sent
    /// without a read.
    pub(super) fn needs_only_merge(&self, patch: &PropertyChanges) -> bool {
        // A merge cannot remove a property, would add properties of this version to a row of an older one, and breaks
        // the seal of a whole row.
        let can_merge =
            patch.remove.is_empty() && self.schema.older.is_none() && !self.schema.sealed;
        let changes_copies = || {
            !self.schema.is_single_row()
                && patch.set.iter().any(|(name, _)| self.schema.may_change_copies(name))
        };
        can_merge && !changes_copies()
    }

    /// Returns whether a patch can be sent as one merge without reading the stored row.
    ///
    /// A patch that sets an encrypted value cannot: a running move was signed for the old value and would never
    /// finish. A patch of several parts of a wide entity cannot: the new generation would make an entity with a
    /// missing part look complete. A merge of one part writes no generation.
    pub(super) fn can_patch_unread(&self, patch: &PropertyChanges) -> bool {
        let columns = self.schema.sealed_columns();
        let sets = |name: &str| patch.set.get(name).is_some();
        let names = || patch.set.iter().map(|(name, _)| name);
        self.needs_only_merge(patch)
            && !self.schema.shares_keys
            && !columns.iter().any(|column| sets(&column.name))
            && (!self.schema.is_wide()
                || wide::parts_with_properties(self.schema, names()).len() <= 1)
    }

    /// Returns the effect of one operation on the primary, for an entity without copies and lists.
    pub(super) fn primary_only(&self, operation: Operation, row: Option<Row>) -> Effect {
        Effect::on_primary(Some(self.schema), operation, row)
    }

    /// Returns the effect that replaces `current` by `new` under the ETag of `current`.
    pub(super) fn replace(&self, current: &Row, new: EntityRows) -> Result<Effect> {
        refuse_moving(current)?;
        let guard = Condition::unchanged(current)?;
        // Use the version that wrote the row: its copies may have other keys than the current version's.
        let OldRows { rows: old, is_unconfirmed } = self.copies_of_entity(current)?;
        // A property that was encrypted stays encrypted, whether or not the type declares it.
        let new = new.inherit_encrypted_names_of(current);
        let row = new.primary.clone();
        let (old_partition, old_row) = current.keys();
        // A transaction cannot change two partitions.
        if row.partition_key() != old_partition {
            let message = format!(
                "the PartitionKey changed from `{}` to `{}`, but a transaction cannot span two partitions; use \
                 `move_to`",
                old_partition.escape_debug(),
                row.partition_key().escape_debug()
            );
            return Err(error_with_row_keys(current, Error::new(ErrorKind::Invalid, message)));
        }
        let primary = if row.row_key() == old_row {
            vec![Operation::replace(row.clone(), guard)]
        } else {
            // Delete the old key under its ETag: a change in between then fails the transaction.
            let delete = Operation::delete(old_partition, old_row, guard)?;
            vec![delete, Operation::insert(row.clone())]
        };
        Ok(Effect {
            primary,
            old,
            is_old_unconfirmed: is_unconfirmed,
            new: Some(new),
            row: Some(row),
            schema: Some(self.schema),
        })
    }

    /// Returns the effect that replaces `current` by `new`, and keeps the properties of `current` that no version
    /// of the type declares.
    pub(super) fn replace_and_keep_undeclared(
        &self,
        current: &Row,
        new: EntityRows,
    ) -> Result<Effect> {
        let unknown = self
            .schema
            .unknown_properties_of(current)
            .map_err(|error| error_with_row_keys(current, error))?;
        if unknown.is_empty() {
            return self.replace(current, new);
        }
        let primary = unknown.add_to_primary(new.primary.clone())?;
        let new = unknown.add_to_copies(EntityRows { primary, ..new })?;
        let effect = self.replace(current, new)?;
        self.refuse_lossy(current, &effect, &unknown)?;
        Ok(effect)
    }

    /// Refuses an effect that would lose an encrypted value that this program cannot decrypt.
    fn refuse_lossy(
        &self,
        current: &Row,
        effect: &Effect,
        unknown: &UnknownProperties,
    ) -> Result<()> {
        let Some(property) = unknown.first_undecrypted_name() else { return Ok(()) };
        let copies = |rows: &EntityRows| {
            let copies = rows.local_copies.iter().chain(&rows.remote_copies);
            copies.filter(|copy| copy.family.left_out.is_empty()).cloned().collect::<Vec<_>>()
        };
        let old = effect.old.as_ref().map(copies).unwrap_or_default();
        let new = effect.new.as_ref().map(copies).unwrap_or_default();
        // An unchanged copy is not written and keeps its value.
        let is_kept = |copy: &CopyRow| old.iter().any(|old| old.row.has_same_content(&copy.row));
        let is_moved = effect.row.as_ref().is_some_and(|row| row.keys() != current.keys());
        if is_moved || !new.iter().all(is_kept) {
            return Err(error_with_row_keys(current, lossy_write_error(property)));
        }
        Ok(())
    }

    /// Returns the effect that writes the difference between `current` and `new` under the ETag of `current`. This is a
    /// merge of the changed properties, unless one is removed.
    pub(super) fn write_difference(&self, current: &Row, new: EntityRows) -> Result<Effect> {
        let mut effect = self.replace_and_keep_undeclared(current, new)?;
        // A seal covers the whole row, so a sealed row is written completely.
        if self.schema.sealed || effect.primary.len() != 1 || self.has_other_parts(current)? {
            return Ok(effect);
        }
        if let Some(row) = &effect.row
            && let Some(changed) = changed_properties(current, row)?
        {
            let merge = Operation::merge(changed, Condition::unchanged(current)?);
            effect.primary = vec![merge];
        }
        Ok(effect)
    }

    /// Returns the effect that deletes `current` with all its rows, under the ETag of `current`.
    pub(super) fn delete(&self, current: &Row) -> Result<Effect> {
        refuse_moving(current)?;
        let guard = Condition::unchanged(current)?;
        let delete = Operation::delete(current.partition_key(), current.row_key(), guard)?;
        let OldRows { rows: old, is_unconfirmed } = self.copies_of_entity(current)?;
        let effect = self.primary_only(delete, None);
        Ok(Effect { old, is_old_unconfirmed: is_unconfirmed, ..effect })
    }

    /// Returns the effect that merges the properties of `new` into `current`, which may be of an older version.
    pub(super) fn merge(&self, current: &Row, new: &EntityRows) -> Result<Effect> {
        // A merge keeps properties that `new` lacks, so the whole row is only known after it.
        let all = PropertyChanges {
            set: new.primary.to_bag()?,
            remove: Vec::new(),
            blobs: new.blobs.clone(),
        };
        let merged = apply_patch(&*self.primary_in_current_form(current)?, &all)?;
        let rows = self.rows_of_entity(&merged)?.with_newer_blob_values(&all.blobs);
        self.replace(current, EntityRows { primary: merged, ..rows })
    }

    /// Returns the effect of a patch on `current` under its ETag: a merge if possible, otherwise a replacement.
    pub(super) fn patch(&self, current: &Row, patch: &PropertyChanges) -> Result<Effect> {
        if !self.needs_only_merge(patch) {
            return self.patch_by_replacing(current, patch);
        }
        refuse_moving(current)?;
        let row = row_from_bag(current.keys(), &patch.set)?.inherit_encrypted_names_of(current);
        let guard = Condition::unchanged(current)?;
        Ok(self.primary_only(Operation::merge(row, guard), None))
    }

    /// Returns the effect that applies a patch to `current` and replaces `current` by the result.
    pub(super) fn patch_by_replacing(
        &self,
        current: &Row,
        patch: &PropertyChanges,
    ) -> Result<Effect> {
        refuse_moving(current)?;
        let row = apply_patch(&*self.primary_in_current_form(current)?, patch)?
            .inherit_encrypted_names_of(current);
        if self.schema.is_single_row() && row.row_key() == current.row_key() {
            let guard = Condition::unchanged(current)?;
            return Ok(self.primary_only(Operation::replace(row.clone(), guard), Some(row)));
        }
        let rows = self.rows_of_entity(&row)?.with_newer_blob_values(&patch.blobs);
        let effect = self.replace(current, EntityRows { primary: row, ..rows })?;
        let unknown = self
            .schema
            .unknown_properties_of(current)
            .map_err(|error| error_with_row_keys(current, error))?;
        self.refuse_lossy(current, &effect, &unknown)?;
        Ok(effect)
    }

    /// Returns the effect of deleting an entity that is not stored: nothing, or an error if it must exist.
    pub(super) fn delete_nothing_or_fail(&self, keys: &Row, must_exist: bool) -> Result<Effect> {
        if must_exist {
            Err(self.missing_entity_error(keys))
        } else {
            Ok(Effect::of_missing_entity())
        }
    }

    /// Returns the stored primary of an entity that a caller has read.
    ///
    /// A copy does not contain its primary's ETag. If the caller read a copy, the primary must therefore have equal
    /// content.
    ///
    /// # Errors
    ///
    /// Fails with `is_precondition_failed` if the entity changed since its copy was read, and with `is_not_found`
    /// if it no longer exists.
    pub(super) fn require_unchanged_primary<'r>(
        &self,
        loaded: &'r EntityReadByCaller,
        current: Option<&'r Row>,
    ) -> Result<&'r Row> {
        // Read through its own keys, so the ETag decides.
        if let RowSource::Primary = loaded.source {
            return Ok(&loaded.row);
        }
        let Some(current) = current else {
            return Err(self.missing_entity_error(&self.row_with_primary_keys(loaded)?));
        };
        let Some(family) = loaded.copy() else {
            return require_etag(current, loaded.row.etag());
        };
        let expected = (self.schema.primary_in_current_form)(&loaded.row, family)
            .map_err(|e| error_with_row_keys(&loaded.row, e))?;
        let found = self
            .schema
            .primary()
            .and_then(|family| (self.schema.primary_in_current_form)(current, family));
        if !found.map_err(|error| error_with_row_keys(current, error))?.has_same_content(&expected)
        {
            let message = "the entity changed since it was read: the copy that it was read through is behind the primary";
            let error = Error::service(ServiceCode::UpdateConditionNotSatisfied, message);
            return Err(error_with_row_keys(current, error));
        }
        Ok(current)
    }

    /// Returns a row with the primary's keys of a loaded entity, which may have been read through a copy.
    pub(super) fn row_with_primary_keys(&self, loaded: &EntityReadByCaller) -> Result<Row> {
        let family = match loaded.source {
            RowSource::Primary => return Ok(loaded.row.clone()),
            RowSource::Caller => self.schema.primary()?,
            RowSource::Copy(family) => family,
        };
        let rows = (self.schema.rows_through)(&loaded.row, family)
            .and_then(|rows| self.tokens.fill_key_tokens_of_rows(self.schema, rows));
        Ok(rows.map_err(|error| error_with_row_keys(&loaded.row, error))?.primary)
    }

    /// Returns the error for an entity that is not stored.
    pub(super) fn missing_entity_error(&self, keys: &Row) -> Error {
        let message = format!("there is no such `{}`", self.schema.entity);
        error_with_row_keys(keys, Error::service(ServiceCode::ResourceNotFound, message))
    }

    /// Returns all rows that the entity in a primary row should have.
    fn rows_of_entity(&self, primary: &Row) -> Result<EntityRows> {
        let family = self.schema.primary()?;
        (self.schema.rows_through)(primary, family)
            .and_then(|rows| self.tokens.fill_key_tokens_of_rows(self.schema, rows))
            .map_err(|error| error_with_row_keys(primary, error))
    }

    /// Returns the current copies, list entries and blobs of the entity in a primary row.
    fn copies_of_entity(&self, primary: &Row) -> Result<OldRows> {
        if self.schema.is_single_row() {
            return Ok(OldRows { rows: None, is_unconfirmed: false });
        }
        let rows = match self.rows_of_entity(primary) {
            // The remaining parts of a torn entity may not show which copies it had. A check finds these.
            Err(error) if wide::is_torn(primary) && error.is_decode() => None,
            // The entity can still be replaced and deleted.
            Err(error) if error.is_decode() => {
                let rows = self.rows_of_unreadable(primary)?;
                return Ok(OldRows { rows, is_unconfirmed: true });
            }
            rows => Some(rows?),
        };
        Ok(OldRows { rows, is_unconfirmed: false })
    }

    /// Returns the rows of an entity whose primary cannot be decoded. Copies and list entries only have their keys.
    fn rows_of_unreadable(&self, primary: &Row) -> Result<Option<EntityRows>> {
        self.schema
            .rows_of_unreadable(primary)
            .and_then(|rows| {
                rows.map(|rows| self.tokens.fill_key_tokens_of_rows(self.schema, rows)).transpose()
            })
            .map_err(|error| error_with_row_keys(primary, error))
    }

    /// Returns the primary in the form of the current version, which is the row itself if this version wrote it.
    fn primary_in_current_form<'r>(&self, primary: &'r Row) -> Result<Cow<'r, Row>> {
        if self.schema.older.is_none() {
            return Ok(Cow::Borrowed(primary));
        }
        if self.schema.is_current_primary(primary)? {
            return Ok(Cow::Borrowed(primary));
        }
        // A primary keeps its keys, including their blind tokens.
        let unknown = self
            .schema
            .unknown_properties_of(primary)
            .map_err(|error| error_with_row_keys(primary, error))?;
        let row = (self.schema.primary_in_current_form)(primary, self.schema.primary()?)
            .and_then(|row| row.with_keys(primary.partition_key(), primary.row_key()))
            .and_then(|row| unknown.add_to_primary(row));
        row.map(Cow::Owned).map_err(|error| error_with_row_keys(primary, error))
    }
}

/// The copies, list entries and blobs of an entity before it is replaced or deleted.
struct OldRows {
    /// The rows. `None` for a type without any, and if they are unknown.
    rows: Option<EntityRows>,
    /// Whether they were derived key by key because the primary does not decode.
    is_unconfirmed: bool,
}

/// Returns a row with the properties of `new` that differ from `old` or are missing there. Returns `None` if nothing
/// changed, or if `new` lacks a property of `old`, which a merge cannot remove.
fn changed_properties(old: &Row, new: &Row) -> Result<Option<Row>> {
    let (before, after) = (old.to_bag()?, new.to_bag()?);
    // The id of the previous write is replaced by the merge, or no longer read.
    let is_removed = |name: &str, value: &Value| {
        after.get(name).is_none() && !is_operation_id(name.as_bytes(), value.as_ref())
    };
    if before.iter().any(|(name, value)| is_removed(name, value)) {
        // A merge cannot remove a property.
        return Ok(None);
    }
    let mut changed = Bag::new();
    for (name, value) in after.iter() {
        if !before.get(name).is_some_and(|old| old.is_stored_like(value)) {
            changed.set(name, value.clone());
        }
    }
    if changed.is_empty() {
        return Ok(None);
    }
    Ok(Some(row_from_bag(new.keys(), &changed)?.inherit_encrypted_names_of(new)))
}

/// Returns a row after a patch: some properties set, others removed.
fn apply_patch(row: &Row, changes: &PropertyChanges) -> Result<Row> {
    let mut bag = row.to_bag()?;
    for (name, value) in changes.set.iter() {
        bag.set(name, value.clone());
    }
    for name in &changes.remove {
        bag.remove(name);
    }
    row_from_bag(row.keys(), &bag)
}

/// Returns the stored row if it has this ETag.
///
/// # Errors
///
/// Fails with `is_precondition_failed` if it has a different one.
fn require_etag(current: &Row, etag: Option<ETag>) -> Result<&Row> {
    if current.etag() == etag {
        return Ok(current);
    }
    let message =
        "the entity has changed: its ETag in the store differs from the given one; read it again";
    let error = Error::service(ServiceCode::UpdateConditionNotSatisfied, message);
    Err(error_with_row_keys(current, error))
}

/// Builds a row with the properties of a bag.
pub(super) fn row_from_bag((partition_key, row_key): (&str, &str), bag: &Bag) -> Result<Row> {
    let mut builder = Row::build(partition_key, row_key);
    for (name, value) in bag.iter() {
        builder.put(name, value.as_ref());
    }
    builder.finish()
}
