//! Moves an entity to another partition or table.

use super::typed::Table;
use crate::{
    authentic::MoveIdentity,
    backend::BoxFuture,
    batch::Batch,
    entity::{BackgroundWork, IntoPoint, Stored, TableEntity, UntypedPath, WritableView, own_row},
    error::{Error, ErrorKind, Result, SealFault},
    guard::Guard,
    outbox::{
        commit::Commit,
        moves::{MoveJob, MoveOutcome, sign_move},
        outbox_plan::ExtraRows,
    },
    plan::{
        Change, Effect, StoredAs,
        move_mark::{move_id, moving_error},
        moves::{MoveMessage, MoveOrigin, mark_moving, plan_move_mark_removal, remove_move_mark},
        outbox::{
            StoredMessage, WorkAndConsentCodes, insert_message, message_row, reserved_keys::MESSAGE,
        },
    },
    row::Row,
    store::{
        dated::create_dated_table,
        derive::{decrypt_primary, read_sealed_primary},
        sealing::plan::OperationToSeal,
    },
};

/// A move that has begun and will be finished by this program or a worker.
#[derive(Debug)]
pub struct Moving {
    pending: BackgroundWork,
}

impl Moving {
    /// Waits until the entity has arrived, with its copies in its new partition.
    ///
    /// # Errors
    ///
    /// Fails with `is_conflict` if its new keys are taken, in which case the entity stays where it was. Fails with
    /// `is_contended` if the move was left to a worker.
    pub async fn wait(&self) -> Result<()> {
        self.pending.wait().await
    }
}

impl<E: TableEntity> Table<E> {
    /// Moves an entity to another partition, another table, or both. `stored` is the entity that was read, with its key
    /// fields changed. `target` is the table to move it to, which may be this table.
    /// Fields whose blind tokens are in the keys may change, too.
    ///
    /// A transaction cannot span two partitions. The entity is marked as moving, appears in its new place, and
    /// disappears from its old one. In between, readers may see both, but never neither. Typed writers get a
    /// conflict in the meantime. On memory and the embedded store, the entity has arrived when the verb returns. On
    /// Azure, everything except the mark is done in the background, or by a worker that knows the type.
    ///
    /// ```
    /// use entable::prelude::*;
    ///
    /// #[derive(TableEntity)]
    /// #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
    /// pub struct Employee { pub department: String, pub id: u32 }
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let client = Client::memory();
    /// let staff = client.table::<Employee>();
    /// staff.create().await?;
    /// let mut don = staff.insert(&Employee { department: "Sales".into(), id: 223 }).await?;
    /// don.department = "Marketing".into();
    /// staff.move_to(&don, &staff).await?.wait().await?;
    /// assert!(staff.get(Employee::primary().department("Sales").id(223)).await?.is_none());
    /// assert!(staff.get(Employee::primary().department("Marketing").id(223)).await?.is_some());
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with `is_precondition_failed` if the entity changed since it was read, with `is_not_found` if it is
    /// gone, and with `is_conflict` if the entity is already moving or the source row of its last move is still
    /// marked. Fails with `is_invalid` if a changed field is neither in a key nor the time of a dated table, or if
    /// the entity would not move. Fails with `is_too_large` for a row of 252 properties or nearly 1 MiB, because a
    /// move adds a property to mark the row, and one for each field whose new value cannot be read from its key, such as
    /// `{email:hmac}`. Fails with `is_key_unavailable` if the keys contain blind tokens and the client has no blind token key.
    pub async fn move_to(&self, stored: &Stored<E>, target: &Self) -> Result<Moving> {
        // Handles of dated tables represent the entity's current table and its new one.
        let target_table = target.table_of_entity(stored)?;
        let source = self.table_of_stored(stored)?;
        if let (Some(dated), Some(period_of_table)) =
            (&E::SCHEMA.dated, target_table.period_of_table())
        {
            let reads_floor = self.client.outbox().guards.is_guard_enabled(Guard::FloorRead);
            let target = (target_table.name.as_str(), reads_floor);
            // Before the entity is marked: a table below the floor refuses the move while nothing has changed.
            create_dated_table(self.client.store(), E::SCHEMA, dated, period_of_table, target)
                .await?;
        }
        source.move_from(stored, &target_table).await
    }

    async fn move_from(&self, stored: &Stored<E>, target: &Self) -> Result<Moving> {
        let place = |error: Error| error.in_table(&self.name);
        let id = self.client.outbox().store.random.random_id();
        let (effect, move_message) =
            self.mark_source(stored, &target.name, &id).await.map_err(place)?;
        if self.table_name() == target.table_name()
            && move_message.to_partition == stored.partition_key()
        {
            if move_message.to_row == stored.row_key() {
                let message = "the entity is already at its target";
                let error = Error::new(ErrorKind::Invalid, message);
                return Err(place(error).at_keys(stored.partition_key(), stored.row_key()));
            }
            // Within one partition, a move is a single transaction.
            let replaced = self.replace(stored).await?;
            return Ok(Moving { pending: replaced.pending_work().clone() });
        }
        // A move depends on what it reads in both places, which must be current.
        let what = "moves to another partition or table";
        self.client.store().require_strong_reads(what).map_err(place)?;
        self.refuse_unfinished_move(stored).await.map_err(place)?;
        let outbox = self.client.outbox();
        let codes = self.sign_move(stored.partition_key(), &id, &move_message, &effect).await;
        let codes = codes.map_err(place)?;
        let row = message_row(&id, &move_message, outbox.clock.now())?;
        let message = insert_message(&row, stored.partition_key(), &codes)?;
        let extra_rows = ExtraRows {
            partition_key: stored.partition_key().to_owned(),
            operations: vec![message],
            has_messages: true,
            ..ExtraRows::default()
        };
        let changes = [Change::from_effect(effect)];
        let commit = Commit::new(outbox, &self.name, &changes).with_rows(&extra_rows);
        let marked = commit.run().await;
        marked.map_err(|error| no_room_for_mark_error(error.without_operation()))?;
        let (client, table) = (self.client.clone(), self.name.clone());
        let partition_key = stored.partition_key().to_owned();
        // The mark and the message are committed. If this task ends early, a worker continues the
        // move.
        let moving = async move {
            let job = MoveJob {
                outbox: client.outbox(),
                table: &table,
                partition_key: &partition_key,
                id: &id,
                schema: E::SCHEMA,
                message: &move_message,
                codes: &codes,
            };
            match job.finish_move(None).await? {
                MoveOutcome::Moved => Ok(()),
                MoveOutcome::Refused(error) => {
                    // If the mark were kept, typed writers would get a conflict until a worker comes.
                    job.give_up_move().await?;
                    Err(error)
                }
                MoveOutcome::Counted(error) => Err(error),
                MoveOutcome::NotAuthentic => {
                    let message = "someone changed the entity's encrypted values after it was marked as moving; \
                                   nothing was moved";
                    Err(Error::seal(SealFault::Authentication, message).in_table(&table))
                }
            }
        };
        Ok(Moving { pending: outbox.run_after_commit(Box::pin(moving)).await })
    }

    /// Plans the mark of the source, with the blind tokens in the keys of the target.
    async fn mark_source(
        &self,
        stored: &Stored<E>,
        to_table: &str,
        id: &str,
    ) -> Result<(Effect, MoveMessage)> {
        let (store, family) = (self.client.store(), E::SCHEMA.primary()?);
        let is_secret = |row: &Row, name: &str| {
            store.sealing.is_chosen_for_encryption(E::SCHEMA, family, row, name)
        };
        let tokens = self.key_token_maker().await?;
        let mark = || mark_moving(stored, to_table, id, &tokens, is_secret);
        self.run_with_blind_token_keys(&tokens, mark).await
    }

    /// Removes the mark of a move from an entity whose move will not continue, because its message was refused as not
    /// authentic or is gone. Returns `false` if the entity does not exist or is not marked.
    ///
    /// A message of the move in the poison table does no harm: if it is put back, it finds no mark and ends. If the
    /// entity has already arrived at its target, it is in both places afterwards.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// assert!(!staff.unlock(at(223)).await?, "no move has marked it");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with `is_conflict` while the move's message is open, and with `is_precondition_failed` if the entity
    /// changed in the meantime.
    pub fn unlock(
        &self,
        point: impl IntoPoint<Entity = E, View = impl WritableView>,
    ) -> BoxFuture<'_, Result<bool>> {
        let access = own_row(point);
        Box::pin(async move { self.table_of_point(&access)?.unlock_move_source(&access).await })
    }

    async fn unlock_move_source(&self, access: &UntypedPath) -> Result<bool> {
        let store = self.client.store();
        let access = store.path_with_key_tokens(Some(E::SCHEMA), access).await?;
        let (partition_key, row_key) = access.point()?;
        let at = self.row_at(partition_key, row_key);
        let Some(stored) = read_sealed_primary(store, at, E::SCHEMA).await? else {
            return Ok(false);
        };
        let Some(id) = move_id(&stored.row)?.map(str::to_owned) else { return Ok(false) };
        let message = [MESSAGE, &*id].concat();
        // While the message is open, a worker may continue the move at any time.
        if let Some(message) = store.read_row(at.with_row_key(&message)).await?
            && !StoredMessage::from_row(message)?.is_done
        {
            return Err(moving_error(&stored.row).in_table(&self.name));
        }
        if E::SCHEMA.sealed || E::SCHEMA.is_wide() {
            // The seal covers the mark, and the parts of a wide entity are written together.
            let opened = decrypt_primary(store, &self.name, &stored, E::SCHEMA).await?;
            let changes = [Change::from_effect(plan_move_mark_removal(E::SCHEMA, &opened)?)];
            Commit::new(self.client.outbox(), &self.name, &changes).run().await?;
        } else {
            store.apply(&Batch::single(&self.name, remove_move_mark(&stored.row)?)?).await?;
        }
        Ok(true)
    }

    /// Signs a move for the entity's values at the time when it is marked, with the keys of its scope and of the
    /// target's.
    async fn sign_move(
        &self,
        partition_key: &str,
        id: &str,
        move_message: &MoveMessage,
        effect: &Effect,
    ) -> Result<WorkAndConsentCodes> {
        let (outbox, schema) = (self.client.outbox(), E::SCHEMA);
        let [marked] = &effect.primary[..] else { return Ok(WorkAndConsentCodes::default()) };
        let stored_as =
            schema.primary().map_or(StoredAs::Untyped, |family| StoredAs::Entity(schema, family));
        let to_seal = OperationToSeal::new(marked.clone(), stored_as);
        let held = &outbox.store.sealing.secret_values_before_write(schema, &to_seal)?;
        let MoveMessage { entity_type, to_table, to_partition, to_row, .. } = move_message;
        let place = MoveIdentity {
            id,
            entity_type,
            from: self.row_at(partition_key, &move_message.row_key),
            to: outbox.store.names().row_at(to_table, to_partition, to_row),
        };
        let must =
            outbox.codes.requires_code_by_default() || !held.is_empty() || schema.is_sealed();
        sign_move(&outbox.codes, place, held, must).await
    }

    /// Refuses an entity whose last move has not finished, which would no longer see changes to its source row.
    async fn refuse_unfinished_move(&self, stored: &Stored<E>) -> Result<()> {
        let Some(MoveOrigin { id, from }) =
            MoveOrigin::from_target_row(self.client.store().names(), stored.row())?
        else {
            return Ok(());
        };
        let left = self.client.store().row_if_table_exists(from.as_row_at()).await?;
        match left.as_ref().map(move_id).transpose()?.flatten() {
            Some(other) if other == id => Err(moving_error(stored.row())),
            _ => Ok(()),
        }
    }
}

/// Adds to an `is_too_large` error that the move needs more properties for its mark, and how the caller can move the
/// entity without them. Returns any other error unchanged.
fn no_room_for_mark_error(error: Error) -> Error {
    if !error.is_too_large() {
        return error;
    }
    error.with_message_suffix(
        "; a move adds one property to the row, and one for each field whose new value is not in the keys; write the \
         entity with fewer or shorter values, move it, and write the values back at its target",
    )
}
