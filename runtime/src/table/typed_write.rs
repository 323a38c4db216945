//! The verbs of `Table<E>` that write one entity.
//!
//! An entity without copies and lists costs one request. Otherwise, every verb sends one entity group
//! transaction, and reads the primary entity first if its old rows are not known.

use std::sync::{Mutex, PoisonError};

use super::{
    row_verbs::{ChangeRow, ReadBack, TypedRows, WrittenRow, no_answer_error},
    typed::Table,
};
use crate::{
    backend::BoxFuture,
    batch::Written,
    entity::{IntoPoint, Patch, Stored, TableEntity, UntypedPath, WritableView, own_row},
    error::{BoxError, Error, ErrorKind, Result},
    plan::{self, Change},
    query::decode::decode_required,
    row::Row,
    store::backoff::{self, Attempt},
};

/// The change that an update makes to an entity, as its caller gave it.
type ChangeOf<'c, E> = &'c mut (dyn FnMut(&mut E) -> Result<(), BoxError> + Send + 'c);

impl<E: TableEntity> Table<E> {
    /// Creates the entity, with its copies and list entries.
    ///
    /// On memory and the embedded store, remote copies and list entries exist when the verb returns. On Azure they
    /// are written shortly afterwards. See [`wait_for_copies`](Stored::wait_for_copies).
    ///
    /// # Errors
    ///
    /// Fails with `is_conflict` if its keys are taken, and with `is_unique_violation` if a unique key of an index
    /// is taken. Fails before anything is sent with `is_invalid`, `is_too_large`, or, if the entity's `validate`
    /// refuses it, `is_rejected`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let kwok = staff.insert(&employee(8, "Kwok")).await?;
    /// assert_eq!((kwok.row_key(), kwok.status()), ("empid_000008", 201));
    /// assert!(staff.insert(&employee(8, "Kwok")).await.is_err_and(|error| error.is_conflict()));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn insert(&self, entity: &E) -> Result<Stored<E>> {
        self.table_of_entity(entity)?.put_entity("insert", plan::insert(entity)).await
    }

    /// Inserts the entity or replaces the existing one, which need not decode. The result does not say which of
    /// the two happened.
    ///
    /// # Errors
    ///
    /// Fails as [`insert`](Self::insert) does, but not because an entity with the same keys exists. May fail with
    /// `is_conflict` while that entity is being moved.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// staff.insert_or_replace(&Employee { age: 31, ..employee(7, "Cao") }).await?;
    /// assert_eq!(staff.get(at(7)).await?.map(|cao| cao.age), Some(31));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn insert_or_replace(&self, entity: &E) -> Result<Stored<E>> {
        self.table_of_entity(entity)?
            .put_entity("insert_or_replace", plan::insert_or_replace(entity))
            .await
    }

    /// Inserts the entity or merges it into the existing one. Properties that are absent in `entity` keep their
    /// stored values.
    ///
    /// A field that is `None` in `entity` may have a value in the store, and the service's answer does not contain
    /// it. If the type has copies, lists, older versions, `seal` or a hidden absence, the entity is read before it
    /// is written, and the returned value equals the stored one. For all other types the verb costs one request, and
    /// the returned value has `None` in such fields. Call [`get`](Self::get) before you
    /// [`replace`](Self::replace) with that value, which would remove the stored fields.
    ///
    /// # Errors
    ///
    /// Fails as [`insert_or_replace`](Self::insert_or_replace) does.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// staff.insert_or_merge(&Employee { age: 31, ..employee(7, "Cao") }).await?;
    /// assert_eq!(staff.get(at(7)).await?.map(|cao| cao.age), Some(31));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn insert_or_merge(&self, entity: &E) -> Result<Stored<E>> {
        self.table_of_entity(entity)?
            .put_entity("insert_or_merge", plan::insert_or_merge(entity))
            .await
    }

    /// Replaces the entity under the ETag that was read. Removes properties that the new value does not have.
    ///
    /// If the RowKey changed, deletes the old row and inserts the new one in one transaction.
    ///
    /// # Errors
    ///
    /// Fails with `is_precondition_failed` if the row changed since it was read, with `is_not_found` if it is
    /// gone, with `is_conflict` if the new RowKey is taken, and with `is_invalid` if the PartitionKey changed.
    /// While the entity is being moved, fails with `is_conflict` or `is_precondition_failed`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let Some(mut cao) = staff.get(at(7)).await? else { return Ok(()) };
    /// cao.age += 1;
    /// let written = staff.replace(&cao).await?;
    /// assert_ne!(written.etag(), cao.etag());
    /// // The value that was read first has an old ETag now.
    /// assert!(staff.replace(&cao).await.is_err_and(|error| error.is_precondition_failed()));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn replace(&self, stored: &Stored<E>) -> Result<Stored<E>> {
        self.table_of_replaced(stored)?.put_entity("replace", plan::replace(stored)).await
    }

    /// Replaces the existing entity, whatever its ETag.
    ///
    /// # Errors
    ///
    /// Fails with `is_not_found` if the entity does not exist. While the entity is being moved, may fail with
    /// `is_conflict`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// staff.replace_any(&Employee { age: 31, ..employee(7, "Cao") }).await?;
    /// let nobody = staff.replace_any(&employee(999, "Cao")).await;
    /// assert!(nobody.is_err_and(|error| error.is_not_found()));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn replace_any(&self, entity: &E) -> Result<Stored<E>> {
        self.table_of_entity(entity)?
            .put_entity("replace_any", plan::replace_any_version(entity))
            .await
    }

    /// Sets and removes properties of the version that was read.
    ///
    /// A patch is one merge under the ETag of `stored` if it only sets properties, no copy or list depends
    /// on them, and the type has neither `seal` nor older versions. Any other patch replaces the row under
    /// that ETag, together with its copies. Changes to the value inside `stored` are not written. Does not call the
    /// entity's `validate`, which only checks whole entities.
    ///
    /// # Errors
    ///
    /// Fails with `is_precondition_failed` if the row changed since it was read, and with
    /// `is_not_found` if it is gone. While the entity is being moved, fails with `is_conflict` or
    /// `is_precondition_failed`.
    ///
    /// ```
    /// use entable::prelude::*;
    ///
    /// #[derive(TableEntity)]
    /// #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
    /// pub struct Employee { pub department: String, pub id: u32, pub age: i32 }
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let staff = Client::memory().table::<Employee>();
    /// staff.create().await?;
    /// let don = staff.insert(&Employee { department: "Sales".into(), id: 223, age: 34 }).await?;
    ///
    /// staff.patch(&don, Employee::patch().age(35)).await?;
    /// // `don` still has the ETag from before the first patch.
    /// let late = staff.patch(&don, Employee::patch().age(36)).await.unwrap_err();
    /// assert!(late.is_precondition_failed());
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn patch(&self, stored: &Stored<E>, patch: E::Patch) -> Result<Written> {
        let patch: Patch<E> = patch.into();
        let table = self.table_of_stored(stored)?;
        let (outcome, _) = table.rows().write_change("patch", plan::patch(stored, patch)).await?;
        outcome.written.ok_or_else(no_answer_error)
    }

    /// Sets and removes properties of the entity at `point`, whatever its ETag.
    ///
    /// A patch is one unconditional merge if it only sets plain properties in one row, no copy or list depends on
    /// them, and the type has neither `seal` nor older versions. Any other patch reads the entity, writes it under
    /// the ETag that was read, and starts again if another writer changed it in between. Does not call the entity's
    /// `validate`, which only checks whole entities.
    ///
    /// # Errors
    ///
    /// Fails with `is_not_found` if the entity does not exist, and with `is_contended` if other writers won every
    /// race. While the entity is being moved, may fail with `is_conflict`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// staff.patch_at(at(7), Employee::patch().age(31)).await?;
    /// assert_eq!(staff.get(at(7)).await?.map(|cao| cao.age), Some(31));
    /// # Ok(())
    /// # }
    /// ```
    pub fn patch_at(
        &self,
        point: impl IntoPoint<Entity = E, View = impl WritableView>,
        patch: E::Patch,
    ) -> BoxFuture<'_, Result<Written>> {
        Box::pin(self.patch_entity_at(own_row(point), patch.into()))
    }

    async fn patch_entity_at(&self, access: UntypedPath, patch: Patch<E>) -> Result<Written> {
        let table = self.table_of_point(&access)?;
        let change = plan::patch_at(&access, patch);
        let (outcome, _) = table.rows().write_change("patch_at", change).await?;
        outcome.written.ok_or_else(no_answer_error)
    }

    /// Reads the entity, changes it, and writes what changed under the ETag that was read. If another writer
    /// changed the entity in between, reads it again and calls `change` again.
    ///
    /// The verb sends a merge of the changed properties. It sends a replacement if an `Option` became `None` or the
    /// entity has `seal`, and nothing if nothing changed.
    ///
    /// Updates of one row through one client wait for each other. If a program starts an update and stops polling
    /// it, as `buffer_unordered` does while the loop's body runs, the other updates wait for one second at most. The
    /// update that was not polled then loses its turn and is tried again. An update also tries again when a writer
    /// of another client is faster, up to [`OutboxOptions::attempts`](crate::OutboxOptions::attempts) times.
    ///
    /// # Errors
    ///
    /// Fails with `is_not_found` if the entity does not exist, with `is_rejected` if `change` returns an error, with
    /// `is_contended` if other writers won every race, and with `is_conflict` if the entity is being moved.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let cao = staff.update(at(7), |cao| { cao.age += 1; Ok(()) }).await?;
    /// assert_eq!(cao.age, 31);
    /// # Ok(())
    /// # }
    /// ```
    pub fn update<'t>(
        &'t self,
        point: impl IntoPoint<Entity = E, View = impl WritableView>,
        mut change: impl FnMut(&mut E) -> Result<(), BoxError> + Send + 't,
    ) -> BoxFuture<'t, Result<Stored<E>>> {
        let access = own_row(point);
        Box::pin(async move { self.update_entity_at(&access, &mut change).await })
    }

    async fn update_entity_at(
        &self,
        access: &UntypedPath,
        change: ChangeOf<'_, E>,
    ) -> Result<Stored<E>> {
        let mut update = EntityUpdate { change, value: None, unchanged: None };
        let written = self.rows().update(access, &mut update).await?;
        update.into_stored(written)
    }

    /// Updates the entity at `point` as [`update`](Self::update) does. If the entity does not exist, inserts `default`
    /// without calling `change`. If another writer inserts or deletes the entity in the meantime, tries again.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` before anything is sent if the keys of `default` differ from `point`, and with
    /// `is_unique_violation` if a unique value of `default` is taken. Otherwise fails as `update` and
    /// [`insert`](Self::insert) do.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// for age in [30, 31] {
    ///     let kwok = employee(8, "Kwok"); // of age 30
    ///     let kwok = staff.update_or_insert(at(8), kwok, |kwok| { kwok.age += 1; Ok(()) }).await?;
    ///     assert_eq!(kwok.age, age);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn update_or_insert<'t>(
        &'t self,
        point: impl IntoPoint<Entity = E, View = impl WritableView>,
        default: E,
        mut change: impl FnMut(&mut E) -> Result<(), BoxError> + Send + 't,
    ) -> BoxFuture<'t, Result<Stored<E>>> {
        let access = own_row(point);
        Box::pin(async move { self.update_or_insert_at(&access, default, &mut change).await })
    }

    async fn update_or_insert_at(
        &self,
        access: &UntypedPath,
        default: E,
        change: ChangeOf<'_, E>,
    ) -> Result<Stored<E>> {
        let (table, access) = self.resolve_point(access).await?;
        let place = |error: Error| error.in_table(&table.name);
        let (partition_key, row_key) = access.point().map_err(place)?;
        table.require_keys(&default, (partition_key, row_key)).await?;
        let outbox = self.client.outbox();
        let attempts = outbox.options.attempts;
        let change = Mutex::new(change);
        let written = backoff::retry_lost_races(&outbox.store.random, attempts, || async {
            // Only one attempt runs at a time, so the lock never waits.
            let mut change = |e: &mut E| change.lock().unwrap_or_else(PoisonError::into_inner)(e);
            match table.update_entity_at_keys(partition_key, row_key, &mut change).await {
                Err(error) if error.is_row_missing() => match table.insert(&default).await {
                    Err(error) if error.is_conflict() && !error.is_unique_violation() => {
                        Ok(Attempt::Raced)
                    }
                    inserted => inserted.map(Attempt::Done),
                },
                updated => updated.map(Attempt::Done),
            }
        });
        let contended = || place(backoff::contended_attempts_error(attempts));
        written.await?.ok_or_else(|| contended().at_keys(partition_key, row_key))
    }

    /// Refuses an entity that has other keys or belongs to another table.
    async fn require_keys(&self, entity: &E, keys: (&str, &str)) -> Result<()> {
        let point = entity.point();
        let (home, access) = self.resolve_point(point.as_access()).await?;
        let found = access.point().map_err(|error| error.in_table(&self.name))?;
        if home.name == self.name && found == keys {
            return Ok(());
        }
        let message = format!(
            "the entity to insert has the keys ({}, {}) in table {}, which are not the keys of the point; change one \
             of them",
            found.0, found.1, home.name
        );
        Err(Error::new(ErrorKind::Invalid, message).in_table(&self.name).at_keys(keys.0, keys.1))
    }

    async fn update_entity_at_keys(
        &self,
        partition_key: &str,
        row_key: &str,
        change: ChangeOf<'_, E>,
    ) -> Result<Stored<E>> {
        let mut update = EntityUpdate { change, value: None, unchanged: None };
        let written = self.rows().update_at_keys((partition_key, row_key), &mut update).await?;
        update.into_stored(written)
    }

    /// Deletes the entity under the ETag that was read, with its copies and list entries.
    ///
    /// # Errors
    ///
    /// Fails with `is_precondition_failed` if the row changed since it was read, and with
    /// `is_not_found` if it is gone. While the entity is being moved, fails with `is_conflict` or
    /// `is_precondition_failed`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let Some(cao) = staff.get(at(7)).await? else { return Ok(()) };
    /// staff.delete(&cao).await?;
    /// assert!(staff.delete(&cao).await.is_err_and(|error| error.is_not_found()));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete(&self, stored: &Stored<E>) -> Result<()> {
        self.table_of_stored(stored)?
            .rows()
            .write_change("delete", plan::delete::<E, E>(stored))
            .await
            .map(drop)
    }

    /// Deletes the entity if it exists, whatever its ETag. Returns `true` if it existed. The row need not decode.
    ///
    /// # Errors
    ///
    /// Fails with `is_not_found` if the table does not exist. While the entity is being moved, may fail with
    /// `is_conflict`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// assert!(staff.delete_at(at(7)).await?);
    /// assert!(!staff.delete_at(at(7)).await?, "it was not there any more");
    /// # Ok(())
    /// # }
    /// ```
    pub fn delete_at(
        &self,
        point: impl IntoPoint<Entity = E, View = impl WritableView>,
    ) -> BoxFuture<'_, Result<bool>> {
        Box::pin(self.delete_entity_at(own_row(point)))
    }

    async fn delete_entity_at(&self, access: UntypedPath) -> Result<bool> {
        let table = self.table_of_point(&access)?;
        let change = plan::delete_at::<E>(&access, false);
        match table.rows().write_change("delete_at", change).await {
            // A dated table is dropped together with its entities.
            Err(error) if error.is_table_missing() && table.period_of_table().is_some() => {
                Ok(false)
            }
            Ok((outcome, _)) => Ok(outcome.written.is_some()),
            Err(error) if error.is_row_missing() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Writes an entity and returns the stored value.
    async fn put_entity(&self, verb: &'static str, change: Result<Change>) -> Result<Stored<E>> {
        let mut value = None::<E>;
        let written = self.rows().put(verb, change, &mut value).await?;
        written.with_value(value)
    }
}

fn rejected_error<E: TableEntity>(stored: &Stored<E>, reason: BoxError) -> Error {
    Error::rejected_by_user_code(&format!("the change of `{}`", E::SCHEMA.entity), reason)
        .at_keys(stored.partition_key(), stored.row_key())
}

impl<E: TableEntity> ReadBack for Option<E> {
    fn read_back(&mut self, row: &Row) -> Result<()> {
        *self = Some(E::from_row(row)?);
        Ok(())
    }
}

impl WrittenRow {
    /// Returns the stored entity, whose value was read back.
    fn with_value<E>(self, value: Option<E>) -> Result<Stored<E>> {
        let Self { row, status, pending } = self;
        let stored = Stored::new(value.ok_or_else(no_answer_error)?, row, status);
        Ok(stored.with_background_work(pending))
    }
}

/// An update that is running.
struct EntityUpdate<'c, E> {
    change: ChangeOf<'c, E>,
    /// The written value.
    value: Option<E>,
    /// The stored entity, if nothing changed.
    unchanged: Option<Stored<E>>,
}

impl<E> EntityUpdate<'_, E> {
    /// Returns the stored entity after the update.
    fn into_stored(self, written: Option<WrittenRow>) -> Result<Stored<E>> {
        match written {
            Some(written) => written.with_value(self.value),
            None => self.unchanged.ok_or_else(no_answer_error),
        }
    }
}

impl<E: TableEntity> ReadBack for EntityUpdate<'_, E> {
    fn read_back(&mut self, row: &Row) -> Result<()> {
        self.value.read_back(row)
    }
}

impl<E: TableEntity> ChangeRow for EntityUpdate<'_, E> {
    fn change_row(&mut self, rows: TypedRows<'_>, row: Row) -> Result<Option<Change>> {
        let change = self.plan_change(rows, row);
        change.map_err(|error| error.in_table(rows.table))
    }
}

impl<E: TableEntity> EntityUpdate<'_, E> {
    fn plan_change(&mut self, rows: TypedRows<'_>, row: Row) -> Result<Option<Change>> {
        let mut stored = decode_required::<E, E>(row, E::SCHEMA.primary()?)?;
        (self.change)(&mut stored).map_err(|reason| rejected_error(&stored, reason))?;
        // Checks that a changed time does not take the entity to another dated table.
        rows.home_table(&mut || Ok(stored.home_table()))?;
        let change = plan::update(&stored)?;
        if change.is_none() {
            // Return the stored values: changes of skipped fields are not stored.
            let value = E::from_row(stored.row())?;
            self.unchanged = Some(stored.with_value(value));
        }
        Ok(change)
    }
}
