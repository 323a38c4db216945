//! Verbs that change an entity in place: patch and update.

use super::{Table, backoff};
use crate::{
    backend::Read,
    batch::{Condition, Operation, Written},
    edm::Bag,
    entity::{Patch, Point, Stored, TableEntity},
    error::{BoxError, Error, ErrorKind, Result},
    plan,
};

impl<E: TableEntity> Table<E> {
    /// Sets some properties and removes others.
    ///
    /// A patch that only sets is one merge, in whatever version the entity is; one that removes
    /// reads the row, and replaces the version that it read, again where another writer was first.
    /// The entity's own `validate` sees whole entities only and is not asked.
    ///
    /// # Errors
    ///
    /// `is_not_found` where there is no such entity; `is_contended` where other writers kept
    /// winning.
    pub async fn patch(&self, point: Point<E>, patch: E::Patch) -> Result<Written> {
        let (partition_key, row_key) = self.keys_of(&point)?;
        let patch: Patch<E> = patch.into();
        let (set, removed) = patch
            .into_changes()
            .map_err(|error| error.in_table(&self.name).at_keys(partition_key, row_key))?;
        if removed.is_empty() {
            let row = plan::bag_row(partition_key, row_key, &set)?;
            let merge = Operation::merge(row, Condition::Any);
            return self.client.apply_one(&self.name, merge).await;
        }
        self.patch_guarded(partition_key, row_key, &set, &removed).await
    }

    async fn patch_guarded(
        &self,
        partition_key: &str,
        row_key: &str,
        set: &Bag,
        removed: &[&str],
    ) -> Result<Written> {
        for attempt in 0..backoff::ATTEMPTS {
            let read = Read { table: &self.name, partition_key, row_key, select: None };
            let Some(row) = self.client.read(read).await? else {
                return Err(self.missing(partition_key, row_key));
            };
            let guard = row.etag().map_or(Condition::Any, Condition::Match);
            let replace = Operation::replace(plan::patched(&row, set, removed)?, guard);
            match self.client.apply_one(&self.name, replace).await {
                Err(error) if error.is_precondition_failed() => backoff::wait(attempt).await,
                other => return other,
            }
        }
        Err(self.contended(partition_key, row_key, backoff::ATTEMPTS))
    }

    /// Reads the entity, changes it and writes the version that was read; again, from a fresh read,
    /// where another writer was first.
    ///
    /// # Errors
    ///
    /// `is_not_found` where there is no such entity; `is_rejected` where `change` says no;
    /// `is_contended` where other writers kept winning.
    pub async fn update(
        &self,
        point: Point<E>,
        mut change: impl FnMut(&mut E) -> Result<(), BoxError>,
    ) -> Result<Stored<E>> {
        let (partition_key, row_key) = self.keys_of(&point)?;
        self.update_keys(partition_key, row_key, &mut change).await
    }

    pub(super) async fn update_keys(
        &self,
        partition_key: &str,
        row_key: &str,
        change: &mut impl FnMut(&mut E) -> Result<(), BoxError>,
    ) -> Result<Stored<E>> {
        for attempt in 0..backoff::ATTEMPTS {
            let Some(mut stored) = self.read_keys::<E>(partition_key, row_key).await? else {
                return Err(self.missing(partition_key, row_key));
            };
            change(&mut stored).map_err(|reason| self.rejected(&stored, reason))?;
            match self.replace(&stored).await {
                Err(error) if error.is_precondition_failed() => backoff::wait(attempt).await,
                other => return other,
            }
        }
        Err(self.contended(partition_key, row_key, backoff::ATTEMPTS))
    }

    fn missing(&self, partition_key: &str, row_key: &str) -> Error {
        let message = format!("there is no such `{}`", E::SCHEMA.entity);
        Error::service(crate::error::ServiceCode::ResourceNotFound, message)
            .in_table(&self.name)
            .at_keys(partition_key, row_key)
    }

    pub(super) fn rejected(&self, stored: &Stored<E>, reason: BoxError) -> Error {
        let message = format!("the change of `{}` was not accepted: {reason}", E::SCHEMA.entity);
        Error::new(ErrorKind::Rejected, message)
            .with_source(reason)
            .in_table(&self.name)
            .at_keys(stored.partition_key(), stored.row_key())
    }
}
