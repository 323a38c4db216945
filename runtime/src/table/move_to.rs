//! Moves to another partition or table.

use super::typed::Table;
use crate::{
    backend::Read,
    entity::{BackgroundWork, Stored, TableEntity},
    error::{Error, ErrorKind, Result},
    outbox::{
        commit::commit_with,
        moves::{MoveJob, MoveOutcome},
        outbox_plan::ExtraRows,
    },
    plan::{
        Change,
        moves::{Arrival, mark_moving, move_id, moving_error},
        outbox::{Place, insert_message, message_row},
    },
};

/// A move that has begun and will be finished, by this program or by a worker.
#[derive(Debug)]
pub struct Moving {
    pending: BackgroundWork,
}

impl Moving {
    /// Returns when the entity has arrived, with its copies in its new partition.
    ///
    /// # Errors
    ///
    /// `is_conflict` where its new keys are taken: then it stays where it was. `is_contended` where
    /// the move was left to a worker.
    pub async fn wait(&self) -> Result<()> {
        self.pending.wait().await
    }
}

impl<E: TableEntity> Table<E> {
    /// Moves an entity to another partition, table or both: `stored` is the entity as it was read,
    /// with the fields of its keys as they are to be; `target` is the table, this one or another.
    ///
    /// No transaction does this. The entity is marked as moving, appears in its new place, and
    /// disappears from its old one; in between, readers may see both, and never neither. Typed
    /// writers keep off meanwhile: they get a conflict. Everything else is done in the background,
    /// or by a worker that knows the type.
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
    /// `is_precondition_failed` where the entity changed since it was read, `is_not_found` where it
    /// is gone, `is_conflict` where it is on its way already, or its last move is not over; `is_invalid` where more than the
    /// fields of the keys is changed, or nothing is.
    pub async fn move_to(&self, stored: &Stored<E>, target: &Self) -> Result<Moving> {
        let place = |error: Error| error.in_table(&self.name);
        let id = self.client.outbox().store.random.id();
        let (effect, journey) = mark_moving(stored, &target.name, &id).map_err(place)?;
        let is_same_table = self.name.eq_ignore_ascii_case(&target.name);
        if is_same_table && journey.to_partition == stored.partition_key() {
            if journey.to_row == stored.row_key() {
                let message = "the entity is where it is to go already";
                let error = Error::new(ErrorKind::Invalid, message);
                return Err(place(error).at_keys(stored.partition_key(), stored.row_key()));
            }
            // Within one partition a move is one transaction.
            let replaced = self.replace(stored).await?;
            return Ok(Moving { pending: replaced.pending().clone() });
        }
        self.has_arrived(stored).await.map_err(place)?;
        let message = insert_message(&message_row(&id, &journey)?, stored.partition_key())?;
        let extra_rows = ExtraRows {
            partition_key: stored.partition_key().to_owned(),
            operations: vec![message],
            has_messages: true,
            ..ExtraRows::default()
        };
        let changes = [Change::with_effect(effect)];
        commit_with(self.client.outbox(), &self.name, &changes, &extra_rows)
            .await
            .map_err(Error::without_operation)?;
        let (client, table) = (self.client.clone(), self.name.clone());
        let partition_key = stored.partition_key().to_owned();
        let carried = async move {
            let carry = MoveJob {
                outbox: client.outbox(),
                table: &table,
                partition_key: &partition_key,
                id: &id,
                schema: E::SCHEMA,
                journey: &journey,
            };
            match carry.run().await? {
                MoveOutcome::Moved => Ok(()),
                MoveOutcome::Refused(error) => Err(error),
            }
        };
        let outbox = self.client.outbox();
        Ok(Moving { pending: outbox.background.begin(outbox.options.background, carried) })
    }
    /// Refuses an entity whose last move is not over: what is changed where it came from would not
    /// find it any more.
    async fn has_arrived(&self, stored: &Stored<E>) -> Result<()> {
        let Some(Arrival { id, from }) = Arrival::from_row(stored.row())? else { return Ok(()) };
        let Place { table, partition_key, row_key } = &from;
        let read = Read { table, partition_key, row_key, select: None };
        let left = match self.client.store().read(read).await {
            Err(error) if error.is_table_missing() => None,
            read => read?,
        };
        match left.as_ref().map(move_id).transpose()?.flatten() {
            Some(other) if other == id => Err(moving_error(stored.row())),
            _ => Ok(()),
        }
    }
}
