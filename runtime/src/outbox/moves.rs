//! Carries a moving entity to its target. The writer does this right after it began the move. Any worker may do it
//! too, even several at the same time.

use std::sync::Arc;

use super::{
    commit::Commit, deadline::WriteDeadline, missing_table::create_table_of_period,
    outbox_plan::ExtraRows, state::Outbox,
};
use crate::{
    address::RowAt,
    authentic::{MoveIdentity, SecretValues, Work, WorkCodes, WorkRefusal, is_key_gone},
    batch::Batch,
    entity::Schema,
    error::{Error, ErrorKind, Result, RetryChance, SealFault},
    guard::Guard,
    plan::{
        Change, Effect, TokenMaker,
        move_mark::move_id,
        moves::{
            MoveMessage, MoveOrigin, delete_source, insert_target, plan_move_mark_removal,
            remove_move_mark, update_inserted_target,
        },
        outbox::{
            CODE, MessageIdentity, WorkAndConsentCodes, code_in_property, insert_arrival,
            insert_tombstone, is_tombstone, receipt_row_key,
        },
    },
    row::Row,
    store::{
        backoff::{self, Attempt},
        derive::{SealedPrimary, decrypt_primary, read_sealed_primary},
        sealing::held::{has_encrypted_property, secret_values_after_read},
    },
};

/// The outcome of a move.
#[derive(Debug)]
pub(crate) enum MoveOutcome {
    /// The entity is at the target.
    Moved,
    /// The target permanently refuses the entity. The entity stays at the source, locked until the move is given up.
    Refused(Error),
    /// The entity at the source is not the one that the move was signed for, or the move was not signed with the keys.
    /// Nothing was written.
    NotAuthentic,
    /// The move failed with an error that counts towards the poison table.
    Counted(Error),
}

/// The result of reading a move's source.
#[derive(Debug)]
pub(crate) enum MoveSource {
    /// The entity does not exist, or is not marked with this move's id.
    Gone,
    /// The decrypted and verified entity, and the deadline of writes that follow from this read.
    Found(WriteDeadline, Box<Row>),
    /// The entity is verified, but the key of the target's scope is not available and may be permanently lost. The move
    /// cannot continue. It may be given up within the deadline.
    TargetKeyMissing(WriteDeadline, Error),
    /// The move must not continue, for this reason.
    Fault(WorkRefusal),
}

/// A move. The entity at the source is marked with the move's id.
#[derive(Debug)]
pub(crate) struct MoveJob<'a> {
    pub(crate) outbox: &'a Arc<Outbox>,
    pub(crate) table: &'a str,
    pub(crate) partition_key: &'a str,
    pub(crate) id: &'a str,
    pub(crate) schema: &'static Schema,
    pub(crate) message: &'a MoveMessage,
    pub(crate) codes: &'a WorkAndConsentCodes,
}

impl MoveJob<'_> {
    /// Takes the remaining steps of the move: writes the target, then deletes the source. `first` is the caller's
    /// read of the source, if it has made one.
    pub(crate) async fn finish_move(&self, first: Option<MoveSource>) -> Result<MoveOutcome> {
        // The first attempt uses the caller's read. Later ones read the source again.
        let mut first = first;
        let moved = backoff::retry_lost_races(&self.outbox.store.random, backoff::ATTEMPTS, || {
            let found = first.take();
            async move {
                match found {
                    Some(found) => self.run_steps_once(found).await,
                    None => {
                        self.run_steps_once(self.read_source(Guard::HeldAtEachRead).await?).await
                    }
                }
            }
        });
        match moved.await {
            // Otherwise, a scope with destroyed keys would keep the entity locked forever.
            Err(error) if is_key_gone(&error) => Ok(MoveOutcome::Counted(error)),
            moved => moved?.ok_or_else(|| {
                let message = "the entity kept changing while it was moved";
                Error::new(ErrorKind::Contended, message).in_table(self.table)
            }),
        }
    }

    async fn run_steps_once(&self, found: MoveSource) -> Result<Attempt<MoveOutcome>> {
        let done = |outcome| Ok(Attempt::Done(outcome));
        // One deadline for both writes, started before the source was read.
        let (deadline, source) = match found {
            MoveSource::Gone => return done(MoveOutcome::Moved),
            MoveSource::Found(deadline, source) => (deadline, source),
            MoveSource::Fault(WorkRefusal::NotAuthentic) => {
                return done(MoveOutcome::NotAuthentic);
            }
            MoveSource::TargetKeyMissing(_, error)
            | MoveSource::Fault(WorkRefusal::Counts(error)) => {
                return done(MoveOutcome::Counted(error));
            }
            MoveSource::Fault(WorkRefusal::Passes(error)) => return Err(error),
        };
        // Write the target before deleting the source. If the process dies in between, the entity is in both
        // places instead of neither.
        match self.write_target(&deadline, &source).await {
            Ok(()) => {}
            Err(TargetError::Refused(error)) => return done(MoveOutcome::Refused(error)),
            Err(TargetError::Failed(error)) => return Err(error),
        }
        // Only delete the version that was carried over. If the source has changed since, the next attempt
        // carries the change over too.
        match self.delete_source(&deadline, &source).await {
            Ok(()) => done(MoveOutcome::Moved),
            Err(error) if error.is_precondition_failed() => Ok(Attempt::Raced),
            // Another worker took this step.
            Err(error) if error.is_not_found() => done(MoveOutcome::Moved),
            Err(error) => Err(error),
        }
    }

    /// Gives the move up: inserts a tombstone at the target, which keeps the entity from arriving, and unlocks the
    /// source. If the entity has already arrived, finishes the move instead. Does nothing for a move that is not
    /// authentic.
    pub(crate) async fn give_up_move(&self) -> Result<()> {
        // Verify here too: the mark that leads here may be forged together with the message.
        let deadline = match self.read_source(Guard::VerifiedFirst).await? {
            // Without the target's keys, the entity would stay locked forever.
            MoveSource::Found(deadline, _) | MoveSource::TargetKeyMissing(deadline, _) => deadline,
            MoveSource::Fault(WorkRefusal::Passes(error)) => return Err(error),
            // The source is already unlocked or deleted, or must not be touched.
            MoveSource::Gone
            | MoveSource::Fault(WorkRefusal::NotAuthentic | WorkRefusal::Counts(_)) => {
                return Ok(());
            }
        };
        // If it were unlocked without a tombstone, a slow carrier could still make the entity arrive, and it would
        // be in both places.
        if self.insert_tombstone_at_target(deadline).await? {
            return self.unlock_source().await;
        }
        // Boxed: the compiler cannot size a future that may run the whole move.
        match Box::pin(self.finish_move(None)).await? {
            MoveOutcome::Moved | MoveOutcome::NotAuthentic => Ok(()),
            MoveOutcome::Refused(error) | MoveOutcome::Counted(error) => Err(error),
        }
    }

    /// Inserts a tombstone at the target. Returns `false` if there is a receipt, which means that the entity may
    /// have arrived.
    async fn insert_tombstone_at_target(&self, deadline: WriteDeadline) -> Result<bool> {
        let MoveMessage { to_table, to_partition, .. } = self.message;
        let receipt_row_key = receipt_row_key(self.id);
        let receipt = self.outbox.store.names().row_at(to_table, to_partition, &receipt_row_key);
        if !self.outbox.guards.is_guard_enabled(Guard::Tombstone) {
            // Without the tombstone, a slow carrier could insert the entity after this read.
            return Ok(self.outbox.store.row_if_table_exists(receipt).await?.is_none());
        }
        let tombstone = insert_tombstone(to_partition, &self.message_identity())?;
        let insert = || deadline.write_unencrypted(&self.outbox.store, to_table, tombstone.clone());
        let inserted = match insert().await {
            // A slow carrier could create the dated table later and insert the entity.
            Err(error) if error.is_table_missing() && self.create_target_table().await? => {
                insert().await
            }
            inserted => inserted,
        };
        match inserted {
            Ok(_) => Ok(true),
            Err(error) if error.row_exists() => {
                let found = self.outbox.store.row_if_table_exists(receipt).await?;
                // This move's own tombstone from an earlier attempt is enough.
                Ok(found.as_ref().is_none_or(|found| self.is_own_tombstone(found)))
            }
            // The target accepts nothing, so no entity can arrive there either.
            Err(error) if error.retry_chance() == RetryChance::Never => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Creates the target's table if it is a dated table. Returns `false` if it is not one, or is below the floor.
    /// No carrier of the move can create it in these cases either.
    async fn create_target_table(&self) -> Result<bool> {
        match create_table_of_period(self.outbox, self.schema, &self.message.to_table).await {
            Err(error) if error.is_table_missing() => Ok(false),
            created => created,
        }
    }

    fn is_own_tombstone(&self, receipt: &Row) -> bool {
        let is_own = self.message_identity().owns_receipt(receipt);
        is_own.unwrap_or(false) && is_tombstone(receipt).unwrap_or(false)
    }

    /// Removes the move's mark from the entity at the source. Does nothing if the mark belongs to another move.
    async fn unlock_source(&self) -> Result<()> {
        let Some(source) = self.read_sealed_source().await? else { return Ok(()) };
        // Already unlocked, or marked by another move since.
        if !matches!(move_id(&source.row), Ok(Some(id)) if id == self.id) {
            return Ok(());
        }
        let unlocked = if self.schema.sealed || self.schema.is_wide() {
            // The seal covers the mark, and the parts of a wide entity are written together. A row that cannot be
            // decrypted keeps its mark.
            let source = self.decrypt_source(&source).await?;
            let effect = plan_move_mark_removal(self.schema, &source)?;
            let deadline = self.outbox.start_deadline();
            self.commit(&deadline, self.table, effect, &ExtraRows::default()).await
        } else {
            // Without a seal over the row, a merge of one property is enough.
            self.outbox
                .store
                .apply(&Batch::single(self.table, remove_move_mark(&source.row)?)?)
                .await
                .map(drop)
        };
        match unlocked {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns the identity of the move's message: its table, partition and id.
    fn message_identity(&self) -> MessageIdentity {
        let table = self.outbox.store.names().name(self.table);
        MessageIdentity::in_partition(table, self.partition_key, self.id)
    }

    /// Returns the source and target of the move, which its codes cover.
    fn move_place(&self) -> MoveIdentity<'_> {
        let MoveMessage { entity_type, to_table, to_partition, to_row, .. } = self.message;
        let to = self.outbox.store.names().row_at(to_table, to_partition, to_row);
        MoveIdentity { id: self.id, entity_type, from: self.source_address(), to }
    }

    /// Returns the address of the entity at the source.
    fn source_address(&self) -> RowAt<'_> {
        self.outbox.store.names().row_at(self.table, self.partition_key, &self.message.row_key)
    }

    /// Reads the entity at the source, decrypts it, and verifies that a program with the keys requested the move.
    /// Returns the fault if the verification fails. A simulation without `guard` skips the verification.
    pub(crate) async fn read_source(&self, guard: Guard) -> Result<MoveSource> {
        // The deadline starts before the read on which all later writes depend.
        let deadline = self.outbox.start_deadline();
        let Some(stored) = self.read_sealed_source().await? else { return Ok(MoveSource::Gone) };
        if !matches!(move_id(&stored.row), Ok(Some(id)) if id == self.id) {
            return Ok(MoveSource::Gone);
        }
        if !self.outbox.codes.has_keys() && has_encrypted_property(&stored.row)? {
            let message = "the entity has encrypted values, but this client has no keys; set them with \
                           `Client::builder().keys(..)`";
            return Err(Error::new(ErrorKind::UnrecognizedEntity, message).in_table(self.table));
        }
        let source = match self.decrypt_source(&stored).await {
            Err(error) if is_key_gone(&error) => {
                return Ok(MoveSource::Fault(WorkRefusal::Counts(error)));
            }
            opened => opened?,
        };
        if self.outbox.guards.is_guard_enabled(guard) {
            let held = secret_values_after_read(self.schema, &stored.row, &source)?;
            if let Err(fault) = self.verify_source(&held).await {
                return Ok(MoveSource::Fault(fault));
            }
            // The second scope has its own key: whoever only has the source's key must not send entities
            // there.
            match self.verify_consent().await {
                Ok(()) => {}
                Err(WorkRefusal::Counts(error)) => {
                    return Ok(MoveSource::TargetKeyMissing(deadline, error));
                }
                Err(fault) => return Ok(MoveSource::Fault(fault)),
            }
        }
        Ok(MoveSource::Found(deadline, Box::new(source)))
    }

    /// Signs the move for the current values of the entity. Returns empty codes if the entity is gone.
    pub(crate) async fn sign_move(&self) -> Result<WorkAndConsentCodes> {
        let Some(stored) = self.read_sealed_source().await? else {
            return Ok(WorkAndConsentCodes::default());
        };
        let source = self.decrypt_source(&stored).await?;
        let held = secret_values_after_read(self.schema, &stored.row, &source)?;
        sign_move(&self.outbox.codes, self.move_place(), &held, true).await
    }

    /// Verifies the move's code against the entity's values.
    async fn verify_source(&self, held: &SecretValues) -> Result<(), WorkRefusal> {
        let (codes, code) = (&self.outbox.codes, self.codes.code.as_deref());
        let work = Work::Move { place: self.move_place(), held };
        codes
            .verify_work(Some(self.partition_key), &work, code, codes.requires_code_by_default())
            .await
    }

    /// Verifies that the target's scope, if it differs from the source's, consents to the move.
    async fn verify_consent(&self) -> Result<(), WorkRefusal> {
        let (codes, place, code) =
            (&self.outbox.codes, self.move_place(), self.codes.code.as_deref());
        let to_partition = &*self.message.to_partition;
        let Some(code) = code.filter(|_| !codes.is_same_scope(self.partition_key, to_partition))
        else {
            return Ok(());
        };
        let consent = self.codes.consent.as_deref();
        let work = Work::Consent { place, code };
        codes
            .verify_work(Some(to_partition), &work, consent, codes.requires_code_by_default())
            .await
    }

    /// Verifies that a receipt proves the arrival of this entity at the target.
    ///
    /// # Errors
    ///
    /// Fails with `is_decrypt` for a tombstone, for another message's receipt, and for a receipt that was not
    /// signed with the keys.
    async fn verify_arrival(&self, receipt: &Row) -> Result<()> {
        let codes = &self.outbox.codes;
        if !self.outbox.guards.is_guard_enabled(Guard::ArrivalVerified) {
            return Ok(());
        }
        if is_tombstone(receipt)? || !self.message_identity().owns_receipt(receipt)? {
            let message = "the receipt at the target of the move belongs to another message";
            return Err(Error::new(ErrorKind::Decode, message));
        }
        let (work, code) =
            (Work::Arrival { place: self.move_place() }, code_in_property(receipt, CODE)?);
        let to_partition = Some(&*self.message.to_partition);
        match codes
            .verify_work(to_partition, &work, code.as_deref(), codes.requires_code_by_default())
            .await
        {
            Ok(()) => Ok(()),
            Err(WorkRefusal::NotAuthentic) => {
                let message = "the receipt at the target of the move is not authentic";
                Err(Error::seal(SealFault::Authentication, message))
            }
            Err(WorkRefusal::Counts(error) | WorkRefusal::Passes(error)) => Err(error),
        }
    }

    /// Reads and decrypts a row. Returns `None` if it does not exist.
    async fn read_decrypted(&self, at: RowAt<'_>) -> Result<Option<Row>> {
        let store = &self.outbox.store;
        match read_sealed_primary(store, at, self.schema).await? {
            Some(row) => {
                decrypt_primary(store, at.table.as_str(), &row, self.schema).await.map(Some)
            }
            None => Ok(None),
        }
    }

    /// Reads the entity at the source without decrypting it. Returns `None` if it does not exist.
    async fn read_sealed_source(&self) -> Result<Option<SealedPrimary>> {
        read_sealed_primary(&self.outbox.store, self.source_address(), self.schema).await
    }

    /// Decrypts the entity at the source.
    async fn decrypt_source(&self, source: &SealedPrimary) -> Result<Row> {
        decrypt_primary(&self.outbox.store, self.table, source, self.schema).await
    }

    /// Calls `plan` with the maker of the blind tokens in the keys of the entity's rows, and again after it
    /// has fetched blind token keys that the maker lacked.
    async fn plan_with_tokens<T>(&self, plan: impl Fn(&TokenMaker) -> Result<T>) -> Result<T> {
        let store = &self.outbox.store;
        let tokens = store.token_maker_of_type(self.schema).await?;
        store.run_with_blind_token_keys(&tokens, || plan(&tokens)).await
    }

    async fn commit(
        &self,
        deadline: &WriteDeadline,
        table: &str,
        effect: Effect,
        extra_rows: &ExtraRows,
    ) -> Result<()> {
        let changes = [Change::from_effect(effect)];
        let commit = Commit::new(self.outbox, table, &changes).with_rows(extra_rows);
        let commit = commit.with_deadline(deadline.batch_deadline());
        deadline.send_if_before_deadline(commit.run()).await.map(drop)
    }

    /// Inserts the entity at the target in one transaction with a receipt. If the entity has already arrived,
    /// updates it to the current source.
    async fn write_target(
        &self,
        deadline: &WriteDeadline,
        source: &Row,
    ) -> Result<(), TargetError> {
        let MoveMessage { to_table, to_partition, to_row, .. } = self.message;
        let from = self.source_address().to_owned();
        let arrival = MoveOrigin { id: self.id.to_owned(), from };
        let plan = |tokens: &_| insert_target(self.schema, source, self.message, &arrival, tokens);
        let effect = self.plan_with_tokens(plan).await.map_err(TargetError::of_plan)?;
        let mut extra_rows =
            ExtraRows { partition_key: to_partition.clone(), ..ExtraRows::default() };
        extra_rows.from = Some(arrival.from.clone());
        let codes = &self.outbox.codes;
        let work = Work::Arrival { place: self.move_place() };
        // Signed for the target's scope: nobody else can make the source believe in the arrival.
        let code =
            codes.sign_work(Some(to_partition), &work, codes.requires_code_by_default()).await?;
        let receipt = insert_arrival(to_partition, &self.message_identity(), code.as_deref())?;
        // In the target's transaction, so only one carrier can insert the receipt.
        extra_rows.operations.extend(self.outbox.guards.value_if_guarded(Guard::Receipt, receipt));
        let Err(error) = self.commit(deadline, to_table, effect, &extra_rows).await else {
            return Ok(());
        };
        // Throttling, lost answers and similar errors say nothing about the target, so the move is tried again.
        if !error.ends_move() {
            return Err(TargetError::Failed(error));
        }
        let receipt_row_key = receipt_row_key(self.id);
        let receipt = self.outbox.store.names().row_at(to_table, to_partition, &receipt_row_key);
        // The receipt shows whether this entity or another one occupies the target.
        match self.outbox.store.row_if_table_exists(receipt).await? {
            Some(receipt) if self.is_own_tombstone(&receipt) => {
                let message = "the move was given up";
                return Err(TargetError::Refused(Error::new(ErrorKind::Conflict, message)));
            }
            Some(receipt) => self.verify_arrival(&receipt).await?,
            None => return Err(TargetError::Refused(error)),
        }
        // The entity arrived earlier. A program that does not know moves may have changed the source
        // since.
        let Some(target) = self
            .read_decrypted(self.outbox.store.names().row_at(to_table, to_partition, to_row))
            .await?
        else {
            // It was deleted at the target after its arrival, and must not come back.
            return Ok(());
        };
        let (schema, message) = (self.schema, self.message);
        let plan =
            |tokens: &_| update_inserted_target(schema, source, &target, message, &arrival, tokens);
        match self.plan_with_tokens(plan).await? {
            None => Ok(()),
            Some(effect) => self
                .commit(deadline, to_table, effect, &ExtraRows::default())
                .await
                .map_err(TargetError::Failed),
        }
    }

    /// Deletes the entity at the source under the ETag of `source`, the version that was written to the target.
    async fn delete_source(&self, deadline: &WriteDeadline, source: &Row) -> Result<()> {
        let source = self.outbox.guards.keep_etag_if_guarded(Guard::LeaveVersion, source.clone());
        let plan = |tokens: &_| delete_source(self.schema, &source, tokens);
        let effect = self.plan_with_tokens(plan).await?;
        self.commit(deadline, self.table, effect, &ExtraRows::default()).await
    }
}

/// Signs a move with the key of the source's scope and, if the target has a different scope, also with the key of
/// that scope. Without a key, fails if `must` is set, and otherwise omits that code. The target's code is omitted
/// together with the source's. Fails if the key store does not answer.
pub(crate) async fn sign_move(
    codes: &WorkCodes,
    place: MoveIdentity<'_>,
    held: &SecretValues,
    must: bool,
) -> Result<WorkAndConsentCodes> {
    let (from, to) = (place.from.partition_key, place.to.partition_key);
    // Without a code, there is nothing to consent to.
    let code = codes.sign_work(Some(from), &Work::Move { place, held }, must).await?;
    let consent = match &code {
        Some(code) if !codes.is_same_scope(from, to) => {
            codes.sign_work(Some(to), &Work::Consent { place, code }, must).await?
        }
        _ => None,
    };
    Ok(WorkAndConsentCodes { code, consent })
}

/// Why the entity was not written to the target.
enum TargetError {
    /// The target permanently refuses the entity, for example because its key is taken.
    Refused(Error),
    /// The write failed, but another attempt may succeed.
    Failed(Error),
}

impl TargetError {
    /// A key for the tokens in the target's keys may come back; what cannot be planned never can.
    fn of_plan(error: Error) -> Self {
        if error.is_key_unavailable() { Self::Failed(error) } else { Self::Refused(error) }
    }
}

impl From<Error> for TargetError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}
