//! Entity group transactions: several writes, all or nothing.

use std::{borrow::Cow, collections::HashMap, ops::Deref};

use super::{
    BulkVerb, Client, Rewritable, Writable,
    commit::{Outcome, commit, keyed},
};
use crate::{
    batch::Written,
    entity::{Patch, Pending, Point, Stored, TableEntity},
    error::{Error, ErrorKind, Result, ServiceCode},
    limits::{BATCH_OPERATIONS, REQUEST_BYTES},
    plan::{self, Change},
};

/// An entity group transaction: one table, one partition, at most 100 operations, below 4 MiB.
///
/// What is known to be refused is refused when it is added. [`commit`](Self::commit) reads what
/// copies and lists need, checks again, and sends one request. Entities of several types may be in
/// it.
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
    /// Whether the caller named the table; then every entity goes there.
    named: bool,
    changes: Vec<Change>,
    known: Known,
}

/// What is known of the transaction before anything is read.
#[derive(Debug, Default)]
struct Known {
    partition_key: Option<String>,
    /// Which verb writes a primary.
    rows: HashMap<String, usize>,
    operations: usize,
    bytes: usize,
}

impl Atomic {
    pub(super) fn new(client: Client, table: Option<String>) -> Self {
        Self { client, named: table.is_some(), table, changes: Vec::new(), known: Known::default() }
    }

    /// Creates an entity.
    ///
    /// # Errors
    ///
    /// `is_invalid` for another table or partition or a row that is in the transaction already;
    /// `is_too_large` for the 101st operation or 4 MiB; `is_rejected` by the entity's `validate`.
    pub fn insert<W: Writable>(&mut self, entity: &W) -> Result<&mut Self> {
        self.add(entity.table(), entity.change(BulkVerb::Insert).map(|change| change.0))
    }

    /// Creates an entity or puts it in place of what is there.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn upsert<W: Writable>(&mut self, entity: &W) -> Result<&mut Self> {
        self.add(entity.table(), entity.change(BulkVerb::Upsert).map(|change| change.0))
    }

    /// Creates an entity or sets its properties on what is there.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn upsert_merge<E: TableEntity>(&mut self, entity: &E) -> Result<&mut Self> {
        self.add(E::SCHEMA.table, plan::upsert_merge(entity))
    }

    /// Puts an entity in place of the version that was read.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn replace<W: Rewritable>(&mut self, stored: &Stored<W>) -> Result<&mut Self> {
        self.add(stored.home(), W::replacement(stored).map(|change| change.0))
    }

    /// Puts an entity in place of the existing one, in whatever version.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn replace_any<E: TableEntity>(&mut self, entity: &E) -> Result<&mut Self> {
        self.add(E::SCHEMA.table, plan::replace_any(entity))
    }

    /// Sets and removes some properties of an entity.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn patch<E: TableEntity>(&mut self, point: Point<E>, patch: E::Patch) -> Result<&mut Self> {
        let patch: Patch<E> = patch.into();
        self.add(E::SCHEMA.table, plan::patch(point.as_access(), patch))
    }

    /// Deletes the version that was read.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn delete<W: Rewritable>(&mut self, stored: &Stored<W>) -> Result<&mut Self> {
        self.add(stored.home(), W::removal(stored).map(|change| change.0))
    }

    /// Deletes an entity in whatever version. In a transaction it has to be there.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn delete_at<E: TableEntity>(&mut self, point: Point<E>) -> Result<&mut Self> {
        self.add(E::SCHEMA.table, plan::delete_at::<E>(point.as_access(), true))
    }

    /// How many verbs are in it.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    fn add(&mut self, declared: &str, change: Result<Change>) -> Result<&mut Self> {
        let verb = self.changes.len();
        let named = self.table.clone().filter(|_| self.named);
        let table = named.as_deref().unwrap_or(declared);
        let place = |error: Error| error.in_table(table).at_operation(verb);
        let change = change.map_err(place)?;
        self.same_table(declared).map_err(place)?;
        // One whose keys have tokens is looked at when these are made.
        if !matches!(change, Change::Keyed(_)) {
            self.known.admit(verb, &change).map_err(place)?;
        }
        self.changes.push(change);
        Ok(self)
    }

    /// The first entity decides the table, unless the caller did. A dynamic entity declares none.
    fn same_table(&mut self, declared: &str) -> Result<()> {
        match &self.table {
            None if declared.is_empty() => {
                let message = "a dynamic entity does not say its table; name it with `client.dynamic(..).atomic()`";
                return Err(Error::new(ErrorKind::Invalid, message));
            }
            Some(_) if declared.is_empty() => {}
            None => self.table = Some(declared.to_owned()),
            Some(table) if !self.named && !table.eq_ignore_ascii_case(declared) => {
                let message = format!(
                    "an entity group transaction stays in one table, and it began in `{table}`; name the table with `Table::atomic()`"
                );
                return Err(Error::new(ErrorKind::Invalid, message));
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// Sends the transaction: one request, after the reads that copies and lists need; none for an
    /// empty one.
    ///
    /// # Errors
    ///
    /// What the failing verb would fail with alone; [`failed_index`](Error::failed_index) is the
    /// verb, counted from 0. Nothing was applied.
    pub async fn commit(self) -> Result<Committed> {
        let table = self.table.unwrap_or_default();
        let changes = keyed(&self.client, &table, &self.changes).await?;
        if let Cow::Owned(changes) = &changes {
            let mut known = Known::default();
            for (verb, change) in changes.iter().enumerate() {
                let place = |error: Error| error.in_table(&table).at_operation(verb);
                known.admit(verb, change).map_err(place)?;
            }
        }
        let landed = commit(&self.client, &table, &changes).await?;
        let written = landed.outcomes.into_iter().map(result).collect();
        Ok(Committed { written, pending: landed.pending })
    }
}

/// A verb that had nothing to do succeeded.
fn result(outcome: Outcome) -> Written {
    outcome.written.unwrap_or(Written { status: 204, etag: None })
}

impl Known {
    /// Refuses a change that cannot be in one transaction with those before it.
    fn admit(&mut self, verb: usize, change: &Change) -> Result<()> {
        let (partition_key, row_key) = change.keys();
        let place = |error: Error| error.at_keys(partition_key, row_key);
        if let Some(first) = self.partition_key.as_ref().filter(|first| *first != partition_key) {
            let message = format!(
                "an entity group transaction stays in one partition, and it began in `{}`",
                first.escape_debug()
            );
            let code = ServiceCode::CommandsInBatchActOnDifferentPartitions;
            return Err(place(Error::service(code, message)));
        }
        if let Some(earlier) = self.rows.get(row_key) {
            let message = format!(
                "an entity group transaction writes a row once, and operations {earlier} and {verb} write the same"
            );
            return Err(place(Error::service(ServiceCode::InvalidDuplicateRow, message)));
        }
        let (operations, bytes) = change.least_size()?;
        if self.operations + operations > BATCH_OPERATIONS {
            let message = format!(
                "an entity group transaction has at most {BATCH_OPERATIONS} operations, copies included, and this makes {}",
                self.operations + operations
            );
            return Err(place(
                Error::new(ErrorKind::TooLarge, message).with_code(ServiceCode::InvalidInput),
            ));
        }
        if self.bytes + bytes >= REQUEST_BYTES {
            let message = format!(
                "the operations take {} bytes, an entity group transaction stays below {REQUEST_BYTES}",
                self.bytes + bytes
            );
            return Err(place(Error::service(ServiceCode::RequestBodyTooLarge, message)));
        }
        self.partition_key.get_or_insert_with(|| partition_key.to_owned());
        self.rows.insert(row_key.to_owned(), verb);
        self.operations += operations;
        self.bytes += bytes;
        Ok(())
    }
}

/// The results of a transaction, one for each of the caller's verbs, in their order.
#[derive(Debug, Clone)]
pub struct Committed {
    written: Vec<Written>,
    pending: Pending,
}

impl Committed {
    /// Returns when the copies of this transaction in other partitions are written.
    ///
    /// # Errors
    ///
    /// `is_contended` where they were left to a worker; what stopped the writer otherwise. The
    /// transaction itself was committed.
    pub async fn wait_for_copies(&self) -> Result<()> {
        self.pending.wait().await
    }
}

impl Deref for Committed {
    type Target = [Written];

    fn deref(&self) -> &[Written] {
        &self.written
    }
}
