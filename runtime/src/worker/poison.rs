//! The poison table holds work that failed too often. The work can be put back.

use super::{
    failure::ignore_newer_or_missing,
    partition::OutboxRow,
    poison_row::{POISON_PARTITION, PoisonNotes, StoredPoison, build_poison_rows, join_parts},
    state::{Worker, table_and_keys_of},
};
use crate::{
    authentic::WorkAuthenticity,
    batch::{Batch, Condition, Operation},
    edm::ValueRef,
    error::{Error, ErrorKind, Result, SealFault},
    filter::Filter,
    plan::outbox::{
        StoredDirtyRow, WorkAndConsentCodes, hash128, insert_message,
        reserved_keys::{CLAIM, DIRTY, MESSAGE},
    },
    row::{ETag, Row},
};

/// The table of work that failed too often.
pub(crate) const POISON_TABLE: &str = "EntablePoison";

/// The error of a message in the poison table whose code is wrong or missing. The text is the same for every
/// cause, to tell a forger nothing.
pub(super) const NOT_AUTHENTIC: &str = "the work is not authentic";
/// The reason for putting a message aside that was sent longer ago than its type allows.
pub(super) const EXPIRED: &str = "the message has expired";

/// A dirty row, a claim or a message that failed too often and was moved to the poison table.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Poisoned {
    /// The table of the primary.
    pub table: String,
    /// The PartitionKey of the primary, or of the message.
    pub partition_key: String,
    /// The text of the last error.
    pub error: String,
    /// Whether somebody with the keys requested the work.
    pub authenticity: WorkAuthenticity,
    /// The original outbox row, without its retry state.
    outbox_row: Row,
    /// The row in the poison table, or its two parts.
    poison_rows: Vec<Row>,
    /// Whether the work is complete. `false` if it was stored in two rows and one of them is missing.
    is_whole: bool,
}

impl Poisoned {
    /// Returns the RowKey of the outbox row. It begins with `~e2_` followed by the primary's RowKey for a dirty
    /// row, with `~e1_` for a claim on unique keys, and with `~e3_` for a message.
    pub fn row_key(&self) -> &str {
        self.outbox_row.row_key()
    }

    /// Returns the name of the message, or `None` if the work is not a message.
    pub fn message(&self) -> Option<&str> {
        match self.outbox_row.get("Type") {
            Ok(Some(ValueRef::String(name))) if self.row_key().starts_with(MESSAGE) => Some(name),
            _ => None,
        }
    }
}

impl Worker {
    /// Counts a permanent failure. After too many failures of one version of the row, moves it to the poison
    /// table and returns `true`.
    pub(super) async fn count_failure_or_poison(
        &self,
        table: &str,
        row: &OutboxRow,
        error: &Error,
    ) -> Result<bool> {
        let (place, etag) = (table_and_keys_of(table, &row.row), row.row.etag());
        // The block releases the lock before the requests that put the row aside.
        let count = {
            let memory = &mut *self.lock_memory();
            let (counted_etag, count) = memory.failure_counts.entry(place.clone()).or_default();
            if *counted_etag != etag {
                // Newer work of the row starts counting from zero.
                (*counted_etag, *count) = (etag.clone(), 0);
            }
            *count += 1;
            *count
        };
        if count < self.outbox().options.poison_after {
            return Ok(false);
        }
        self.move_row_to_poison(table, &row.row, etag, &error.to_string()).await?;
        let memory = &mut *self.lock_memory();
        memory.failure_counts.remove(&place);
        memory.stats.poisoned += 1;
        self.metering().count_poisoned();
        Ok(true)
    }

    /// Inserts an outbox row into the poison table, then deletes the row under `version`. Keeps a newer version of
    /// the row.
    pub(super) async fn move_row_to_poison(
        &self,
        table: &str,
        row: &Row,
        version: Option<ETag>,
        error: &str,
    ) -> Result<()> {
        let seen = Condition::for_etag(version.clone());
        let delete = Operation::delete(row.partition_key(), row.row_key(), seen)?;
        self.copy_row_to_poison(table, row, version.as_ref(), error).await?;
        // If this deletion fails, the row is put aside again, and the insertion then finds its copy.
        ignore_newer_or_missing(self.store().apply(&Batch::single(table, delete)?).await)
    }

    /// Inserts a copy of an outbox row into the poison table.
    pub(super) async fn copy_row_to_poison(
        &self,
        table: &str,
        row: &Row,
        version: Option<&ETag>,
        error: &str,
    ) -> Result<()> {
        let (partition_key, row_key) = (row.partition_key(), row.row_key());
        let seen = version.map(ETag::to_string).unwrap_or_default();
        // The key contains the ETag: a repeated attempt finds the row in the poison table.
        let key = hash128(&[table, partition_key, row_key, &seen]);
        let rows = build_poison_rows(&key, row, [table, error])?;
        // Insert before deleting the original, which keeps the work in at least one of the tables.
        self.write_poison_rows(rows).await
    }

    /// Inserts the parts of a row into the poison table in one transaction. Creates the table if it is missing. Does
    /// not change existing rows.
    async fn write_poison_rows(&self, rows: Vec<Row>) -> Result<()> {
        let batch = batch_of_poison_rows(rows.into_iter().map(Operation::insert).map(Ok))?;
        match self.store().apply(&batch).await {
            // Created by the first work that is put aside, because most stores never need the table.
            Err(error) if error.is_table_missing() => {
                self.client.create_table_if_not_exists(POISON_TABLE).await?;
                self.store().apply(&batch).await.map(drop)
            }
            Err(error) if !error.row_exists() => Err(error),
            _ => Ok(()),
        }
    }

    /// Deletes work from the poison table under the ETags that were read.
    async fn delete_poison_rows(&self, poisoned: &Poisoned) -> Result<()> {
        let deletions = poisoned.poison_rows.iter().map(|row| {
            Operation::delete(row.partition_key(), row.row_key(), Condition::for_etag(row.etag()))
        });
        let batch = batch_of_poison_rows(deletions)?;
        self.store().apply(&batch).await.map(drop)
    }

    /// Returns the work in the poison table, and verifies the codes of messages and moves. A client with keys also
    /// reads the entity of each move.
    ///
    /// # Errors
    ///
    /// Fails with the backend's error.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// assert!(staff().await?.client().worker().poisoned().await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn poisoned(&self) -> Result<Vec<Poisoned>> {
        let mut all = self.read_poison_table().await?;
        for poisoned in all.iter_mut().filter(|poisoned| poisoned.message().is_some()) {
            let (table, row) = (&poisoned.table, &poisoned.outbox_row);
            (poisoned.authenticity, _) = self.verify_poisoned_work(table, row).await;
        }
        Ok(all)
    }

    /// Returns the work in the poison table without verifying its codes.
    pub(super) async fn read_poison_table(&self) -> Result<Vec<Poisoned>> {
        let filter = Filter::eq("PartitionKey", POISON_PARTITION);
        let mut pages = self.store().pages(POISON_TABLE, filter).empty_without_table();
        let mut rows = Vec::new();
        while let Some(page) = pages.next_page().await? {
            for row in page.rows {
                rows.push(row.map_err(|error| error.in_table(POISON_TABLE))?);
            }
        }
        join_parts(rows)?.into_iter().map(Poisoned::from_stored).collect()
    }

    /// Puts work from the poison table back. Workers then make remote copies equal to what their primary derives
    /// at that time, and deliver a message to its handler again. A client with keys first verifies the code of a
    /// message or a move.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # use std::sync::{Arc, atomic::{AtomicBool, Ordering}};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize, Message)]
    /// # #[table(name = "Welcome", version = 1)]
    /// # struct Welcome { id: u32 }
    /// # let outbox = OutboxOptions::default().poison_after(1);
    /// # let client = Client::builder().backend(Memory::new()).outbox(outbox).build()?;
    /// # client.create_table("Staff").await?;
    /// # let is_up = Arc::new(AtomicBool::new(false));
    /// let mut egt = client.transaction();
    /// egt.insert(&employee(8, "Kim"))?.emit(&Welcome { id: 8 })?;
    /// egt.commit().await?;
    /// # let up = is_up.clone();
    /// let worker = client.worker().on(move |_, _: Welcome| {
    ///     let is_up = up.clone();
    ///     async move {
    ///         if is_up.load(Ordering::Relaxed) { Ok(()) } else { Err("no mail today".into()) }
    ///     }
    /// });
    /// worker.drain().await?;
    /// let poisoned = worker.poisoned().await?;
    /// assert_eq!(poisoned.len(), 1);
    ///
    /// is_up.store(true, Ordering::Relaxed);
    /// worker.requeue(&poisoned[0]).await?;
    /// worker.drain().await?;
    /// assert!(worker.poisoned().await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with the backend's error, with `is_decode` if the poisoned row is damaged, and with `is_decrypt` for
    /// a message or a move that is not authentic. Fails with the key store's error if its key is not available.
    pub async fn requeue(&self, poisoned: &Poisoned) -> Result<()> {
        if poisoned.message().is_some() {
            // Anybody who can write to the poison table may have changed the row there.
            let (table, row) = (&poisoned.table, &poisoned.outbox_row);
            match self.verify_poisoned_work(table, row).await {
                (WorkAuthenticity::NotAuthentic, _) => return Err(poisoned.not_authentic_error()),
                (_, Some(error)) => return Err(error),
                (_, None) => {}
            }
        }
        self.put_row_back(poisoned, &WorkAndConsentCodes::default()).await
    }

    /// Puts a message or a move back and signs it with this client's keys, whoever wrote it. You vouch for the
    /// message with this call, so read it first. Use it for work of a table that was restored under another name,
    /// and for work whose key was deleted. Other work is put back as [`requeue`](Self::requeue) does.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # use std::sync::{Arc, atomic::{AtomicBool, Ordering}};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize, Message)]
    /// # #[table(name = "Welcome", version = 1)]
    /// # struct Welcome { id: u32 }
    /// # let outbox = OutboxOptions::default().poison_after(1);
    /// # let client = Client::builder().backend(Memory::new()).outbox(outbox).build()?;
    /// # client.create_table("Staff").await?;
    /// # let is_up = Arc::new(AtomicBool::new(false));
    /// let mut egt = client.transaction();
    /// egt.insert(&employee(8, "Kim"))?.emit(&Welcome { id: 8 })?;
    /// egt.commit().await?;
    /// # let up = is_up.clone();
    /// let worker = client.worker().on(move |_, _: Welcome| {
    ///     let is_up = up.clone();
    ///     async move {
    ///         if is_up.load(Ordering::Relaxed) { Ok(()) } else { Err("no mail today".into()) }
    ///     }
    /// });
    /// worker.drain().await?;
    /// let poisoned = worker.poisoned().await?;
    /// assert_eq!(poisoned.len(), 1);
    ///
    /// let error = worker.requeue_vouched(&poisoned[0]).await.unwrap_err();
    /// assert!(error.is_key_unavailable(), "this client has no key to sign it with");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails as [`requeue`](Self::requeue) does, with `is_key_unavailable` if the client has no key, and with
    /// `is_unrecognized_entity` for a move of a type that this program does not know.
    pub async fn requeue_vouched(&self, poisoned: &Poisoned) -> Result<()> {
        let codes = match poisoned.message() {
            Some(_) => self.sign_for_operator(&poisoned.table, &poisoned.outbox_row).await?,
            None => WorkAndConsentCodes::default(),
        };
        self.put_row_back(poisoned, &codes).await
    }

    /// Deletes work from the poison table permanently. A message is never delivered, a move does not happen, and
    /// remote copies stay unchanged until a `check` with `repair` corrects them.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize, Message)]
    /// # #[table(name = "Welcome", version = 1)]
    /// # struct Welcome { id: u32 }
    /// # let outbox = OutboxOptions::default().poison_after(1);
    /// # let client = Client::builder().backend(Memory::new()).outbox(outbox).build()?;
    /// # client.create_table("Staff").await?;
    /// let mut egt = client.transaction();
    /// egt.insert(&employee(8, "Kim"))?.emit(&Welcome { id: 8 })?;
    /// egt.commit().await?;
    /// let worker = client.worker().on(|_, _: Welcome| async { Err("no mail today".into()) });
    /// worker.drain().await?;
    /// for poisoned in worker.poisoned().await? {
    ///     worker.discard(&poisoned).await?;
    /// }
    /// assert!(worker.poisoned().await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with `is_precondition_failed` if the row in the poison table has changed since it was read, and with
    /// the backend's errors. Succeeds if the row is already gone.
    pub async fn discard(&self, poisoned: &Poisoned) -> Result<()> {
        // Already put back or discarded by somebody else.
        match self.delete_poison_rows(poisoned).await {
            Err(error) if !error.is_row_missing() => Err(error),
            _ => Ok(()),
        }
    }

    async fn put_row_back(&self, poisoned: &Poisoned, codes: &WorkAndConsentCodes) -> Result<()> {
        let key = poisoned.row_key();
        let operation = match poisoned.message() {
            _ if poisoned.table.is_empty() || !poisoned.is_whole => {
                return Err(poisoned.damaged_error());
            }
            Some(_) => insert_message(&poisoned.outbox_row, &poisoned.partition_key, codes)?,
            None if key.starts_with(CLAIM) => Operation::insert(poisoned.outbox_row.clone()),
            None if key.starts_with(DIRTY) => {
                // Merged into an existing dirty row, with the addresses of both.
                StoredDirtyRow::from_row(self.client.store().names(), poisoned.outbox_row.clone())?
                    .restore_operation()?
            }
            None => return Err(poisoned.damaged_error()),
        };
        // Record it before deleting it here, which keeps the work in at least one of the places.
        self.record_outbox_row_again(&poisoned.table, operation).await?;
        ignore_newer_or_missing(self.delete_poison_rows(poisoned).await)
    }
}

/// Returns the transaction with these operations on the poison table.
fn batch_of_poison_rows(operations: impl Iterator<Item = Result<Operation>>) -> Result<Batch> {
    let mut batch = Batch::new(POISON_TABLE);
    for operation in operations {
        batch.push(operation?)?;
    }
    Ok(batch)
}

impl Poisoned {
    /// Returns the original outbox row without its retry state. It contains the content of a message, which stays
    /// encrypted if it was.
    pub fn outbox_row(&self) -> &Row {
        &self.outbox_row
    }

    /// Returns the error for work that was not signed with the keys.
    fn not_authentic_error(&self) -> Error {
        let message = "the work is not authentic: no holder of the keys requested this content at this place; inspect \
                       it, then `discard` it, or vouch for it with `requeue_vouched`";
        let error = Error::seal(SealFault::Authentication, message).in_table(&self.table);
        error.at_keys(&self.partition_key, self.row_key())
    }

    /// Returns the error for poisoned work that cannot be put back: its original table is unknown, one of its two rows
    /// is missing, or its outbox row is of an unknown kind.
    fn damaged_error(&self) -> Error {
        let message = "the poisoned row lacks its place, its type or a part; mend it, or delete it";
        let error = Error::new(ErrorKind::Decode, message).in_table(POISON_TABLE);
        match self.poison_rows.first().map(Row::keys) {
            Some((partition_key, row_key)) => error.at_keys(partition_key, row_key),
            None => error,
        }
    }

    /// Returns the work in a row of the poison table.
    fn from_stored(stored: StoredPoison) -> Result<Self> {
        let (PoisonNotes { table, error }, outbox_row) = stored.notes_and_outbox_row()?;
        let partition_key = outbox_row.partition_key().to_owned();
        let StoredPoison { rows: poison_rows, is_whole } = stored;
        // Verified later, if the work has a code at all.
        let authenticity = WorkAuthenticity::Unsigned;
        Ok(Self { table, partition_key, error, authenticity, outbox_row, poison_rows, is_whole })
    }
}
