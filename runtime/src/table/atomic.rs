//! Entity group transactions: several writes, all or nothing.

use std::ops::Deref;

use super::Client;
use crate::{
    batch::{Batch, Condition, Operation, Written},
    entity::{Patch, Point, Stored, TableEntity},
    error::{Error, ErrorKind, Result},
    plan::{self, Rekeyed},
};

/// An entity group transaction: one table, one partition, at most 100 operations, below 4 MiB.
///
/// What is known to be refused is refused when it is added; [`commit`](Self::commit) sends the rest
/// in one request. Entities of several types may be in it.
///
/// ```ignore
/// let mut egt = client.atomic();
/// egt.insert(&employee)?.replace(&department)?;
/// let done = egt.commit().await?;
/// ```
#[derive(Debug)]
pub struct Atomic {
    client: Client,
    table: Option<String>,
    batch: Option<Batch>,
    /// For each of the caller's verbs, the operation that carries its result.
    verbs: Vec<usize>,
}

impl Atomic {
    pub(super) fn new(client: Client, table: Option<String>) -> Self {
        Self { client, table, batch: None, verbs: Vec::new() }
    }

    /// Creates an entity.
    ///
    /// # Errors
    ///
    /// `is_invalid` for another table or partition or a row that is in the transaction already;
    /// `is_too_large` for the 101st operation or 4 MiB; `is_rejected` by the entity's `validate`.
    pub fn insert<E: TableEntity>(&mut self, entity: &E) -> Result<&mut Self> {
        let row = plan::prepared(entity);
        self.add::<E>(row.map(|row| vec![Operation::insert(row)]))
    }

    /// Creates an entity or puts it in place of what is there.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn upsert<E: TableEntity>(&mut self, entity: &E) -> Result<&mut Self> {
        let row = plan::prepared(entity);
        self.add::<E>(row.map(|row| vec![Operation::insert_or_replace(row)]))
    }

    /// Creates an entity or sets its properties on what is there.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn upsert_merge<E: TableEntity>(&mut self, entity: &E) -> Result<&mut Self> {
        let row = plan::prepared(entity);
        self.add::<E>(row.map(|row| vec![Operation::insert_or_merge(row)]))
    }

    /// Puts an entity in place of the version that was read.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn replace<E: TableEntity>(&mut self, stored: &Stored<E>) -> Result<&mut Self> {
        self.add::<E>(plan::rekeyed(stored).map(|rekeyed| match rekeyed {
            Rekeyed::Same(operation) => vec![operation],
            Rekeyed::Moved(operations) => operations.into(),
        }))
    }

    /// Puts an entity in place of the existing one, in whatever version.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn replace_any<E: TableEntity>(&mut self, entity: &E) -> Result<&mut Self> {
        let row = plan::prepared(entity);
        self.add::<E>(row.map(|row| vec![Operation::replace(row, Condition::Any)]))
    }

    /// Sets some properties of an entity. A transaction cannot read: a patch that removes is
    /// refused.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert), and `is_invalid` for a patch that removes.
    pub fn patch<E: TableEntity>(&mut self, point: Point<E>, patch: E::Patch) -> Result<&mut Self> {
        self.add::<E>(merge(&point, patch.into()).map(|merge| vec![merge]))
    }

    /// Deletes the version that was read.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn delete<E: TableEntity>(&mut self, stored: &Stored<E>) -> Result<&mut Self> {
        let guard = Condition::Match(stored.etag());
        let delete = Operation::delete(stored.partition_key(), stored.row_key(), guard);
        self.add::<E>(delete.map(|delete| vec![delete]))
    }

    /// Deletes an entity in whatever version. In a transaction it has to be there.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn delete_at<E: TableEntity>(&mut self, point: Point<E>) -> Result<&mut Self> {
        let delete = point.as_access().point().and_then(|(partition_key, row_key)| {
            Operation::delete(partition_key, row_key, Condition::Any)
        });
        self.add::<E>(delete.map(|delete| vec![delete]))
    }

    /// How many of the caller's verbs are in it.
    pub fn len(&self) -> usize {
        self.verbs.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.verbs.is_empty()
    }

    fn add<E: TableEntity>(&mut self, operations: Result<Vec<Operation>>) -> Result<&mut Self> {
        let verb = self.verbs.len();
        let declared = self.table.clone().unwrap_or_else(|| E::SCHEMA.table.to_owned());
        let place = |error: Error| error.in_table(&declared).at_operation(verb);
        let operations = operations.map_err(place)?;
        let mut batch = self.batch.clone().unwrap_or_else(|| Batch::new(&declared));
        if !batch.table().eq_ignore_ascii_case(&declared) {
            let message = format!(
                "an entity group transaction stays in one table, and it began in `{}`; name the table with `Table::atomic()`",
                batch.table()
            );
            return Err(place(Error::new(ErrorKind::Invalid, message)));
        }
        for operation in operations {
            batch.push(operation).map_err(place)?;
        }
        self.verbs.push(batch.len().saturating_sub(1));
        self.batch = Some(batch);
        Ok(self)
    }

    /// Sends the transaction: one request, none for an empty one.
    ///
    /// # Errors
    ///
    /// What the failing operation would fail with alone; [`failed_index`](Error::failed_index) is
    /// the caller's verb, counted from 0. Nothing was applied.
    pub async fn commit(self) -> Result<Committed> {
        let Some(batch) = self.batch else { return Ok(Committed(Vec::new())) };
        let written = self.client.apply(&batch).await.map_err(|error| {
            let failed = error.failed_index();
            let verb = failed.and_then(|at| self.verbs.iter().position(|last| at <= *last));
            match verb {
                Some(verb) => error.at_operation(verb),
                None => error,
            }
        })?;
        let results = self.verbs.iter().filter_map(|at| written.get(*at).cloned()).collect();
        Ok(Committed(results))
    }
}

fn merge<E: TableEntity>(point: &Point<E>, patch: Patch<E>) -> Result<Operation> {
    let (partition_key, row_key) = point.as_access().point()?;
    let (set, removed) = patch.into_changes()?;
    if let Some(removed) = removed.first() {
        let message = "a transaction cannot read, and removing a property needs the whole row; replace the entity instead";
        return Err(Error::new(ErrorKind::Invalid, message).in_property(removed));
    }
    Ok(Operation::merge(plan::bag_row(partition_key, row_key, &set)?, Condition::Any))
}

/// The results of a transaction, one for each of the caller's verbs, in their order.
#[derive(Debug, Clone)]
pub struct Committed(Vec<Written>);

impl Deref for Committed {
    type Target = [Written];

    fn deref(&self) -> &[Written] {
        &self.0
    }
}
