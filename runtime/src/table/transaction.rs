//! Entity group transactions: several writes, of which all or none are applied.

use std::{borrow::Cow, collections::HashMap, ops::Deref, pin::pin};

use super::{
    client::Client,
    writable::{BulkVerb, Rewritable, Writable},
};
use crate::outbox::{
    blind_tokens::fill_tokens_of_changes,
    commit::{Commit, CommittedChange},
    outbox_plan::ExtraRows,
};
use crate::{
    authentic::MessageAuthenticity,
    backend::BoxFuture,
    batch::{Deadline, Operation, Written},
    entity::{
        BackgroundWork, IntoPoint, Message, Patch, Stored, TableEntity, WritableView,
        dated::check_home_table, home::table_of_path, own_row,
    },
    error::{Error, ErrorKind, Result, ServiceCode},
    guard::Guard,
    limits::{BATCH_OPERATIONS, REQUEST_BYTES},
    plan::{
        self, Change,
        outbox::{
            CODE_BYTES, MessageIdentity, StoredMessage, WorkAndConsentCodes, insert_message,
            insert_receipt, message_row,
        },
        row_written_twice_error,
    },
    row::Row,
};

/// An entity group transaction: one table, one partition, at most 100 operations, less than 4 MiB.
///
/// A write that is certain to fail is refused when you add it. [`commit`](Self::commit) reads what copies and
/// lists need, checks again, and sends one request. The entities may be of several types.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let client = staff().await?.client().clone();
/// let mut transaction = client.transaction();
/// transaction.insert(&employee(1, "Hall"))?.delete_at(at(7))?;
/// transaction.commit().await?;
/// assert!(client.table::<Employee>().get(at(7)).await?.is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Transaction {
    client: Client,
    table: Option<String>,
    /// Whether the caller named the table. If so, every entity is written to it.
    named: bool,
    verbs: Vec<Change>,
    known: AdmittedChanges,
    /// The partition that the caller named, and the operations and bytes of the messages. The changes are added to
    /// these once blind tokens have completed their keys.
    before: AdmittedChanges,
    /// Messages to store in the partition of the transaction.
    messages: Vec<EmittedMessage>,
    /// The message that this transaction is the effect of, if any.
    effect_of: Option<MessageIdentity>,
    /// The end of the lease of that message. Nothing is sent after it.
    deadline: Option<Deadline>,
}

/// A message to store. Its partition is not yet known.
#[derive(Debug)]
struct EmittedMessage {
    row: Row,
    authenticity: MessageAuthenticity,
}

/// Checks that the changes fit into one transaction. Returns their size and their rows. `before` has the
/// partition that the caller named, if any, and the size of the messages.
fn admitted_changes(
    table: &str,
    before: AdmittedChanges,
    changes: &[Change],
) -> Result<AdmittedChanges> {
    let mut known = before;
    for (verb, change) in changes.iter().enumerate() {
        let place = |error: Error| error.in_table(table).at_operation(verb);
        known.admit_change(verb, change).map_err(place)?;
    }
    Ok(known)
}

/// The state of a transaction before anything is read: partition, size and rows.
#[derive(Debug, Default)]
struct AdmittedChanges {
    partition_key: Option<String>,
    /// The index of the verb that writes each primary, by RowKey.
    rows: HashMap<String, usize>,
    operations: usize,
    bytes: usize,
}

impl Client {
    /// Begins an entity group transaction in the table of the first entity that you add.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let client = staff().await?.client().clone();
    /// let mut transaction = client.transaction();
    /// transaction.insert(&employee(1, "Hall"))?.delete_at(at(7))?;
    /// assert_eq!(transaction.len(), 2);
    /// transaction.commit().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn transaction(&self) -> Transaction {
        Transaction::new(self.clone(), None)
    }
}

impl Transaction {
    pub(super) fn new(client: Client, table: Option<String>) -> Self {
        Self {
            client,
            named: table.is_some(),
            table,
            verbs: Vec::new(),
            known: AdmittedChanges::default(),
            before: AdmittedChanges::default(),
            messages: Vec::new(),
            effect_of: None,
            deadline: None,
        }
    }

    /// Creates an entity.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` for another table or partition, or for a row that is already in the
    /// transaction. Fails with `is_too_large` for the 101st operation or at 4 MiB, and with `is_rejected` if
    /// the entity's `validate` refuses it.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let mut transaction = staff.transaction();
    /// transaction.insert(&employee(1, "Hall"))?;
    /// let elsewhere = Employee { department: "Marketing".into(), ..employee(2, "Hall") };
    /// assert!(transaction.insert(&elsewhere).is_err_and(|error| error.is_invalid()), "two partitions");
    /// # Ok(())
    /// # }
    /// ```
    pub fn insert<W: Writable>(&mut self, entity: &W) -> Result<&mut Self> {
        self.add_change(Ok(entity.table()), entity.change(BulkVerb::Insert).map(|change| change.0))
    }

    /// Inserts an entity or replaces the existing one.
    ///
    /// # Errors
    ///
    /// Fails as [`insert`](Self::insert) does.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let mut transaction = staff.transaction();
    /// transaction.insert_or_replace(&Employee { age: 31, ..employee(7, "Cao") })?;
    /// transaction.commit().await?;
    /// assert_eq!(staff.get(at(7)).await?.map(|cao| cao.age), Some(31));
    /// # Ok(())
    /// # }
    /// ```
    pub fn insert_or_replace<W: Writable>(&mut self, entity: &W) -> Result<&mut Self> {
        self.add_change(
            Ok(entity.table()),
            entity.change(BulkVerb::InsertOrReplace).map(|change| change.0),
        )
    }

    /// Inserts an entity or merges it into the existing one.
    ///
    /// # Errors
    ///
    /// Fails as [`insert`](Self::insert) does.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let mut transaction = staff.transaction();
    /// transaction.insert_or_merge(&employee(1, "Cao"))?;
    /// transaction.commit().await?;
    /// assert!(staff.get(at(1)).await?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn insert_or_merge<E: TableEntity>(&mut self, entity: &E) -> Result<&mut Self> {
        self.add_change(Ok(entity.home_table()), plan::insert_or_merge(entity))
    }

    /// Replaces an entity under the ETag that was read.
    ///
    /// # Errors
    ///
    /// Fails as [`insert`](Self::insert) does.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let Some(mut cao) = staff.get(at(7)).await? else { return Ok(()) };
    /// cao.age = 31;
    /// let mut transaction = staff.transaction();
    /// transaction.replace(&cao)?;
    /// transaction.commit().await?;
    /// assert_eq!(staff.get(at(7)).await?.map(|cao| cao.age), Some(31));
    /// # Ok(())
    /// # }
    /// ```
    pub fn replace<W: Rewritable>(&mut self, stored: &Stored<W>) -> Result<&mut Self> {
        self.add_change(W::home(stored), W::replacement(stored).map(|change| change.0))
    }

    /// Replaces an existing entity, whatever its ETag.
    ///
    /// # Errors
    ///
    /// Fails as [`insert`](Self::insert) does.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let mut transaction = staff.transaction();
    /// transaction.replace_any(&Employee { age: 31, ..employee(7, "Cao") })?;
    /// transaction.commit().await?;
    /// assert_eq!(staff.get(at(7)).await?.map(|cao| cao.age), Some(31));
    /// # Ok(())
    /// # }
    /// ```
    pub fn replace_any<E: TableEntity>(&mut self, entity: &E) -> Result<&mut Self> {
        self.add_change(Ok(entity.home_table()), plan::replace_any_version(entity))
    }

    /// Sets and removes properties of the version that was read.
    ///
    /// # Errors
    ///
    /// Fails as [`insert`](Self::insert) does. [`commit`](Self::commit) fails with `is_precondition_failed` if
    /// the row changed since it was read.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let Some(cao) = staff.get(at(7)).await? else { return Ok(()) };
    /// let mut transaction = staff.transaction();
    /// transaction.patch(&cao, Employee::patch().age(31))?;
    /// transaction.commit().await?;
    /// assert_eq!(staff.get(at(7)).await?.map(|cao| cao.age), Some(31));
    /// # Ok(())
    /// # }
    /// ```
    pub fn patch<E: TableEntity>(
        &mut self,
        stored: &Stored<E>,
        patch: E::Patch,
    ) -> Result<&mut Self> {
        let patch: Patch<E> = patch.into();
        self.add_change(E::home(stored), plan::patch(stored, patch))
    }

    /// Sets and removes properties of the entity at `point`, whatever its ETag.
    ///
    /// # Errors
    ///
    /// Fails as [`insert`](Self::insert) does. [`commit`](Self::commit) fails with `is_not_found` if the entity
    /// does not exist.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let mut transaction = staff.transaction();
    /// transaction.patch_at(at(7), Employee::patch().age(31))?;
    /// transaction.commit().await?;
    /// assert_eq!(staff.get(at(7)).await?.map(|cao| cao.age), Some(31));
    /// # Ok(())
    /// # }
    /// ```
    pub fn patch_at<E: TableEntity>(
        &mut self,
        point: impl IntoPoint<Entity = E, View = impl WritableView>,
        patch: E::Patch,
    ) -> Result<&mut Self> {
        let (access, patch): (_, Patch<E>) = (own_row(point), patch.into());
        let change = plan::patch_at(&access, patch);
        self.add_change(table_of_path(&access, E::SCHEMA), change)
    }

    /// Deletes an entity under the ETag that was read.
    ///
    /// # Errors
    ///
    /// Fails as [`insert`](Self::insert) does.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let Some(cao) = staff.get(at(7)).await? else { return Ok(()) };
    /// let mut transaction = staff.transaction();
    /// transaction.delete(&cao)?;
    /// transaction.commit().await?;
    /// assert!(staff.get(at(7)).await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn delete<W: Rewritable>(&mut self, stored: &Stored<W>) -> Result<&mut Self> {
        self.add_change(W::home(stored), W::removal(stored).map(|change| change.0))
    }

    /// Deletes an entity, whatever its ETag. The entity must exist, or the transaction fails.
    ///
    /// # Errors
    ///
    /// Fails as [`insert`](Self::insert) does.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let mut transaction = staff.transaction();
    /// transaction.delete_at(at(7))?;
    /// transaction.commit().await?;
    /// assert!(staff.get(at(7)).await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn delete_at<E: TableEntity>(
        &mut self,
        point: impl IntoPoint<Entity = E, View = impl WritableView>,
    ) -> Result<&mut Self> {
        let access = own_row(point);
        let change = plan::delete_at::<E>(&access, true);
        self.add_change(table_of_path(&access, E::SCHEMA), change)
    }

    /// Stores a message in the partition of the transaction. A worker passes it at least once to the handler
    /// given to [`Worker::on`](crate::Worker::on).
    ///
    /// To send messages without entities, begin with `Table::transaction()` and
    /// [`in_partition`](Self::in_partition).
    ///
    /// # Errors
    ///
    /// Fails with `is_too_large` for a message of more than 32,768 UTF-16 units as JSON, for the 101st operation,
    /// or if the transaction reaches 4 MiB. Fails with `is_invalid` if the message cannot be written as JSON, and
    /// with `is_key_unavailable` if the message is declared `authenticated` and the client has no keys.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # #[derive(serde::Serialize, serde::Deserialize, Message)]
    /// # struct Welcome { id: u32 }
    /// let staff = staff().await?;
    /// let mut transaction = staff.transaction();
    /// transaction.insert(&employee(8, "Kwok"))?.emit(&Welcome { id: 8 })?;
    /// transaction.commit().await?;
    /// assert!(staff.get(at(8)).await?.is_some(), "the employee and the message, or neither");
    /// # Ok(())
    /// # }
    /// ```
    pub fn emit<M: Message>(&mut self, message: &M) -> Result<&mut Self> {
        let outbox = self.client.outbox();
        outbox.codes.check_can_sign_message(M::NAME, M::AUTHENTICITY)?;
        let row = message_row(&outbox.store.random.random_id(), message, outbox.clock.now())?;
        // The commit, which knows the partition, makes the authenticity code. Its bytes are
        // counted here.
        let code_bytes = if outbox.codes.has_keys() { CODE_BYTES } else { 0 };
        let bytes = Operation::insert(row.clone()).request_bytes()? + code_bytes;
        self.known.grow_size(1, bytes)?;
        self.before.grow_size(1, bytes)?;
        self.messages.push(EmittedMessage { row, authenticity: M::AUTHENTICITY });
        Ok(self)
    }

    /// Sets the partition of a transaction that contains no entity.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let mut egt = staff.client().transaction();
    /// egt.in_partition("Sales")?.insert(&employee(8, "Kim"))?;
    /// assert!(egt.in_partition("Marketing").is_err());
    /// egt.commit().await?;
    /// assert!(staff.get(at(8)).await?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` if the transaction began in another partition.
    pub fn in_partition(&mut self, partition_key: impl Into<String>) -> Result<&mut Self> {
        let partition_key = partition_key.into();
        self.known.refuse_other_partition(&partition_key)?;
        self.known.partition_key = Some(partition_key.clone());
        self.before.partition_key = Some(partition_key);
        Ok(self)
    }

    /// Makes the transaction the effect of a message. The commit also inserts a receipt, which makes the effect
    /// happen once. After `deadline`, the commit fails with `is_contended` and writes nothing.
    pub(crate) fn effect_of_message(
        mut self,
        message: &MessageIdentity,
        deadline: Deadline,
    ) -> Self {
        self.effect_of = Some(message.clone());
        self.deadline = Some(deadline);
        self
    }

    /// Returns the transaction's table and partition. Adds the blind tokens to the keys. Returns `None` if the
    /// transaction is empty.
    pub(crate) async fn target_partition(&self) -> Result<Option<(String, String)>> {
        let Some(table) = self.table.clone() else { return Ok(None) };
        let partition_key = if self.needs_tokens() {
            let verbs = self.verbs.clone();
            let changes = fill_tokens_of_changes(self.client.outbox(), &table, verbs).await?;
            changes.first().map(|change| change.keys().0.to_owned())
        } else {
            self.known.partition_key.clone()
        };
        Ok(partition_key.map(|partition_key| (table, partition_key)))
    }

    /// Returns the outbox rows that are written with the transaction.
    async fn extra_rows(&self, known: &AdmittedChanges) -> Result<ExtraRows> {
        let mut extra_rows =
            ExtraRows { has_messages: !self.messages.is_empty(), ..ExtraRows::default() };
        if self.messages.is_empty() && self.effect_of.is_none() {
            return Ok(extra_rows);
        }
        let (Some(table), Some(partition_key)) = (&self.table, known.partition_key.clone()) else {
            let message = "a transaction of messages alone has no table and partition; begin it with \
                           `Table::transaction()` and `in_partition(..)`";
            return Err(Error::new(ErrorKind::Invalid, message));
        };
        for message in &self.messages {
            let signed = self.insert_signed(table, &partition_key, message).await;
            extra_rows.operations.push(signed.map_err(|error| error.in_table(table))?);
        }
        if let Some(message) = &self.effect_of {
            let receipt = insert_receipt(&partition_key, message)?;
            let receipt = self.client.outbox().guards.value_if_guarded(Guard::Receipt, receipt);
            extra_rows.operations.extend(receipt);
        }
        extra_rows.partition_key = partition_key;
        Ok(extra_rows)
    }

    /// Signs a message and returns the operation that inserts it with its authenticity code.
    async fn insert_signed(
        &self,
        table: &str,
        partition_key: &str,
        message: &EmittedMessage,
    ) -> Result<Operation> {
        let codes = &self.client.outbox().codes;
        let stored = StoredMessage::from_row(message.row.clone())?;
        let work = stored.work_covered_by_code_in_partition(
            self.client.store().names().name(table),
            partition_key,
        );
        let must = codes.requires_code_for_message(message.authenticity);
        let code = codes.sign_work(Some(partition_key), &work, must).await?;
        insert_message(&message.row, partition_key, &WorkAndConsentCodes { code, consent: None })
    }

    /// Returns the number of verbs.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let mut transaction = staff.transaction();
    /// assert_eq!(transaction.insert(&employee(1, "Hall"))?.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn len(&self) -> usize {
        self.verbs.len()
    }

    /// Returns whether the transaction has no verbs.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// assert!(staff().await?.transaction().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_empty(&self) -> bool {
        self.verbs.is_empty()
    }

    fn needs_tokens(&self) -> bool {
        self.verbs.iter().any(Change::needs_tokens)
    }

    fn add_change(
        &mut self,
        declared: Result<Cow<'static, str>>,
        added: Result<Change>,
    ) -> Result<&mut Self> {
        let verb = self.verbs.len();
        let named = self.table.clone().filter(|_| self.named);
        let declared = match (declared, &named) {
            // Keys are enough if the transaction names its table.
            (Err(_), Some(named)) => Cow::Owned(named.clone()),
            (declared, _) => declared.map_err(|error| error.at_operation(verb))?,
        };
        let table = named.as_deref().unwrap_or(&declared);
        let place = |error: Error| error.in_table(table).at_operation(verb);
        let added = added.map_err(place)?;
        check_home_table(table, &declared).map_err(place)?;
        let declared = &*declared;
        self.take_table_of_entity(declared).map_err(place)?;
        // A verb that needs blind tokens has no keys yet and is checked in `commit`.
        if !added.needs_tokens() {
            self.known.admit_change(verb, &added).map_err(place)?;
        }
        self.verbs.push(added);
        Ok(self)
    }

    /// Uses the table of the first entity, unless the caller named a table. A dynamic entity has no table.
    fn take_table_of_entity(&mut self, declared: &str) -> Result<()> {
        let names = self.client.store().names();
        match &self.table {
            None if declared.is_empty() => {
                let message = "a dynamic entity does not know its table; begin the transaction with \
                               `client.dynamic(..).transaction()`";
                return Err(Error::new(ErrorKind::Invalid, message));
            }
            Some(_) if declared.is_empty() => {}
            None => self.table = Some(declared.to_owned()),
            Some(table) if !self.named && !names.is_same_table(table, declared) => {
                let message = format!(
                    "all operations of an entity group transaction must be in one table, and the first is in \
                     `{table}`; name the table with `Table::transaction()`"
                );
                return Err(Error::new(ErrorKind::Invalid, message));
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// Sends the transaction in one request, after the reads that copies and lists need. Sends nothing if the
    /// transaction is empty.
    ///
    /// # Errors
    ///
    /// Returns the error that the failing verb alone would return. [`failed_index`](Error::failed_index) is the
    /// verb's position, counted from 0. Nothing was applied.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let mut transaction = staff.transaction();
    /// transaction.insert(&employee(1, "Hall"))?.insert(&employee(223, "Hall"))?;
    /// let failed = transaction.commit().await;
    /// assert!(failed.is_err_and(|error| error.is_conflict() && error.failed_index() == Some(1)));
    /// assert!(staff.get(at(1)).await?.is_none(), "nothing was written");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn commit(self) -> Result<Committed> {
        self.commit_boxed().await
    }

    // In a function of its own, so that programs do not compile the commit.
    fn commit_boxed(self) -> BoxFuture<'static, Result<Committed>> {
        Box::pin(self.commit_changes())
    }

    async fn commit_changes(mut self) -> Result<Committed> {
        // Only a transaction without entities has no table. Messages without a table are refused below,
        // and an empty transaction sends nothing.
        let table = self.table.clone().unwrap_or_default();
        let needs_tokens = self.needs_tokens();
        let verbs = std::mem::take(&mut self.verbs);
        let changes = fill_tokens_of_changes(self.client.outbox(), &table, verbs).await?;
        // Keys with blind tokens are complete only now. Their rows and partitions could not be
        // compared earlier.
        if needs_tokens {
            let before = std::mem::take(&mut self.before);
            self.known = admitted_changes(&table, before, &changes)?;
        }
        let extra_rows = self.extra_rows(&self.known).await?;
        let (outbox, deadline) = (self.client.outbox(), self.deadline.as_ref());
        let commit = Commit::new(outbox, &table, &changes).with_rows(&extra_rows);
        let commit = commit.with_deadline(deadline);
        let landed = self
            .client
            .store()
            .usage
            .begin_verb("transaction", &table)
            .run(pin!(commit.run()))
            .await?;
        let written = landed.outcomes.into_iter().map(written_result).collect();
        Ok(Committed { written, pending: landed.pending })
    }
}

/// Returns the result of one change. A verb that had nothing to do has succeeded.
fn written_result(outcome: CommittedChange) -> Written {
    outcome.written.unwrap_or_else(|| Written::new(204, None))
}

impl AdmittedChanges {
    /// Refuses a change that cannot share a transaction with the changes before it.
    fn admit_change(&mut self, verb: usize, change: &Change) -> Result<()> {
        let (partition_key, row_key) = change.keys();
        let place = |error: Error| error.at_keys(partition_key, row_key);
        if let Some(first) = self.partition_key.as_ref().filter(|first| *first != partition_key) {
            let message = format!(
                "all operations of an entity group transaction must be in one partition, and the first is in `{}`",
                first.escape_debug()
            );
            let code = ServiceCode::CommandsInBatchActOnDifferentPartitions;
            return Err(place(Error::service(code, message)));
        }
        if let Some(earlier) = self.rows.get(row_key) {
            return Err(place(row_written_twice_error(*earlier, verb)));
        }
        let (operations, bytes) = change.minimum_operations_and_bytes()?;
        self.grow_size(operations, bytes).map_err(place)?;
        self.partition_key.get_or_insert_with(|| partition_key.to_owned());
        self.rows.insert(row_key.to_owned(), verb);
        Ok(())
    }

    /// Refuses a partition other than the first one.
    fn refuse_other_partition(&self, partition_key: &str) -> Result<()> {
        match &self.partition_key {
            Some(first) if first != partition_key => {
                let message = format!(
                    "all operations of an entity group transaction must be in one partition, and the first is in \
                     `{}`; move an entity to another partition with `move_to`",
                    first.escape_debug()
                );
                let code = ServiceCode::CommandsInBatchActOnDifferentPartitions;
                Err(Error::service(code, message))
            }
            _ => Ok(()),
        }
    }

    /// Adds operations and bytes to the totals. If one transaction cannot hold them, fails and adds nothing.
    fn grow_size(&mut self, operations: usize, bytes: usize) -> Result<()> {
        let (operations, bytes) = (self.operations + operations, self.bytes + bytes);
        if operations > BATCH_OPERATIONS {
            let message = format!(
                "an entity group transaction has at most {BATCH_OPERATIONS} operations, copies included; this one has \
                 {operations}"
            );
            return Err(
                Error::new(ErrorKind::TooLarge, message).with_code(ServiceCode::InvalidInput)
            );
        }
        if bytes >= REQUEST_BYTES {
            let message = format!(
                "the operations take {bytes} bytes, but an entity group transaction must stay below {REQUEST_BYTES}"
            );
            return Err(Error::service(ServiceCode::RequestBodyTooLarge, message));
        }
        (self.operations, self.bytes) = (operations, bytes);
        Ok(())
    }
}

/// The results of a committed transaction, one for each of the caller's verbs in order.
#[derive(Debug, Clone)]
pub struct Committed {
    written: Vec<Written>,
    pending: BackgroundWork,
}

impl Committed {
    /// Waits until the remote copies of this transaction are written.
    ///
    /// # Errors
    ///
    /// Fails with `is_contended` if the copies were left to a worker, otherwise with the error that stopped
    /// the writer. The transaction itself was committed.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let mut transaction = staff.transaction();
    /// transaction.insert(&employee(8, "Kwok"))?;
    /// transaction.commit().await?.wait_for_copies().await?;
    /// assert_eq!(staff.client().worker().drain().await?.open, 0);
    /// # Ok(())
    /// # }
    /// ```
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
