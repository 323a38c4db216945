//! The verbs that write one entity: each one request.

use super::Table;
use crate::{
    batch::{Batch, Condition, Operation, Written},
    entity::{Point, Stored, TableEntity},
    error::Result,
    plan::{self, Rekeyed},
    row::Row,
};

impl<E: TableEntity> Table<E> {
    /// Creates the entity.
    ///
    /// # Errors
    ///
    /// `is_conflict` where its keys are taken; `is_invalid` and `is_too_large` before anything is
    /// sent; `is_rejected` by the entity's own `validate`.
    pub async fn insert(&self, entity: &E) -> Result<Stored<E>> {
        let row = self.prepared(entity)?;
        self.put(row, Operation::insert).await
    }

    /// Creates the entity or puts it in place of what is there; does not tell which.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert), without the conflict.
    pub async fn upsert(&self, entity: &E) -> Result<Stored<E>> {
        let row = self.prepared(entity)?;
        self.put(row, Operation::insert_or_replace).await
    }

    /// Creates the entity or sets its properties on what is there; absent properties stay.
    ///
    /// # Errors
    ///
    /// As [`upsert`](Self::upsert).
    pub async fn upsert_merge(&self, entity: &E) -> Result<Stored<E>> {
        let row = self.prepared(entity)?;
        self.put(row, Operation::insert_or_merge).await
    }

    /// Puts the entity in place of the version that was read: properties that it does not have are
    /// removed.
    ///
    /// A changed RowKey deletes the old row and creates the new one in one transaction.
    ///
    /// # Errors
    ///
    /// `is_precondition_failed` where the row changed since; `is_not_found` where it is gone;
    /// `is_conflict` where a changed RowKey is taken; `is_invalid` for a changed PartitionKey.
    pub async fn replace(&self, stored: &Stored<E>) -> Result<Stored<E>> {
        let place = |error: crate::Error| {
            error.in_table(&self.name).at_keys(stored.partition_key(), stored.row_key())
        };
        match plan::rekeyed(stored).map_err(place)? {
            Rekeyed::Same(operation) => {
                let row = operation.row().clone();
                self.put(row, |_| operation).await
            }
            Rekeyed::Moved(operations) => {
                let mut batch = Batch::new(&self.name);
                let [_, insert] = &operations;
                let row = insert.row().clone();
                for operation in operations {
                    batch.push(operation)?;
                }
                let written = self.client.apply(&batch).await?;
                self.stored(row, written.into_iter().last())
            }
        }
    }

    /// Puts the entity in place of the existing one, in whatever version it is.
    ///
    /// # Errors
    ///
    /// `is_not_found` where there is none.
    pub async fn replace_any(&self, entity: &E) -> Result<Stored<E>> {
        let row = self.prepared(entity)?;
        self.put(row, |row| Operation::replace(row, Condition::Any)).await
    }

    /// Deletes the version that was read.
    ///
    /// # Errors
    ///
    /// `is_precondition_failed` where the row changed since; `is_not_found` where it is gone.
    pub async fn delete(&self, stored: &Stored<E>) -> Result<()> {
        let guard = Condition::Match(stored.etag());
        let delete = Operation::delete(stored.partition_key(), stored.row_key(), guard)?;
        self.client.apply_one(&self.name, delete).await.map(drop)
    }

    /// Deletes the entity if it is there, in whatever version; `true`: it was.
    ///
    /// # Errors
    ///
    /// `is_not_found` where the table is missing.
    pub async fn delete_at(&self, point: Point<E>) -> Result<bool> {
        let (partition_key, row_key) = self.keys_of(&point)?;
        let delete = Operation::delete(partition_key, row_key, Condition::Any)?;
        match self.client.apply_one(&self.name, delete).await {
            Ok(_) => Ok(true),
            Err(error) if error.code() == Some("ResourceNotFound") => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn prepared(&self, entity: &E) -> Result<Row> {
        plan::prepared(entity).map_err(|error| error.in_table(&self.name))
    }

    async fn put(&self, row: Row, operation: impl FnOnce(Row) -> Operation) -> Result<Stored<E>> {
        let written = self.client.apply_one(&self.name, operation(row.clone())).await?;
        self.stored(row, Some(written))
    }

    /// The entity as the store has it now: read back from the row, so that times are cut and skipped
    /// fields are empty as they will be on the next read.
    pub(super) fn stored(&self, row: Row, written: Option<Written>) -> Result<Stored<E>> {
        let (status, etag) = written.map_or((204, None), |written| (written.status, written.etag));
        let value = E::from_row(&row).map_err(|error| {
            error.in_table(&self.name).at_keys(row.partition_key(), row.row_key())
        })?;
        let row = match etag {
            Some(etag) => row.with_etag(etag),
            None => row,
        };
        Ok(Stored::new(value, row, status))
    }
}
