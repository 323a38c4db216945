//! Changes entities that a query found, and tries again those that another writer changed first.

use std::sync::{Mutex, PoisonError};

use super::handled::HandledEntities;
use crate::{
    backend::ReadRequest,
    entity::Stored,
    error::{BoxError, Error, Result, ServiceCode},
    outbox::{blind_tokens::fill_tokens_of_change, commit::Commit},
    plan::Change,
    store::{
        backoff::{self, Attempt},
        sealing::open::ReadAs,
    },
    table::{Client, writable::Rewritable},
};

/// A change that is applied to every entity of a query.
pub(super) struct Rewrite<T, F> {
    pub(super) client: Client,
    pub(super) table: String,
    /// How the rows of the query are decrypted.
    pub(super) read_as: ReadAs,
    pub(super) change: F,
    /// Returns whether another writer left nothing to do. Receives the current entity, or `None` if it was
    /// deleted.
    pub(super) is_done: fn(Option<&Stored<T>>) -> bool,
}

/// An entity that another writer changed first.
pub(super) struct LostRace {
    /// The position of the entity in the input.
    pub(super) index: usize,
    pub(super) partition_key: String,
    pub(super) row_key: String,
    /// The positions of entities whose changes were sent later and move the entities to these keys.
    pub(super) followers: Vec<usize>,
}

impl<T: Rewritable, F: FnMut(&mut T) -> Result<(), BoxError>> Rewrite<T, F> {
    /// Returns the primary keys of an entity that the query found, or `None` if its copy does not contain them.
    pub(super) async fn primary_keys(&self, stored: &Stored<T>) -> Option<(String, String)> {
        let owned =
            |(partition_key, row_key): (&str, &str)| (partition_key.to_owned(), row_key.to_owned());
        if stored.copy_family().is_none() {
            return Some(owned((stored.partition_key(), stored.row_key())));
        }
        // The planned deletion contains the keys of the primary. For a copy without them, the change fails and is
        // reported.
        let removal = T::removal(stored).ok()?;
        let removal = fill_tokens_of_change(self.client.outbox(), &self.table, removal.0).await;
        removal.ok().map(|removal| owned(removal.keys()))
    }

    /// Changes an entity and plans its replacement under the ETag that was read. Fills in the blind tokens of the
    /// planned keys.
    pub(super) async fn plan_change(&mut self, stored: Stored<T>) -> Result<Change> {
        let verb = self.apply_and_plan(stored)?;
        fill_tokens_of_change(self.client.outbox(), &self.table, verb).await
    }

    /// Changes an entity and plans its replacement under the ETag that was read.
    fn apply_and_plan(&mut self, mut stored: Stored<T>) -> Result<Change> {
        match (self.change)(&mut stored) {
            Ok(()) => T::replacement(&stored).map(|change| change.0),
            Err(reason) => {
                let what = format!("the change of `{}`", stored.type_name());
                Err(Error::rejected_by_user_code(&what, reason)
                    .at_keys(stored.partition_key(), stored.row_key()))
            }
        }
    }

    /// Handles an entity that was deleted before it was written.
    ///
    /// # Errors
    ///
    /// Fails with `is_not_found`, unless the deletion left nothing to do.
    pub(super) fn end_as_deleted(&self, lost: &LostRace) -> Result<()> {
        if (self.is_done)(None) { Ok(()) } else { Err(deleted_error(&self.table, lost)) }
    }

    /// Reads one entity, changes it and writes it. Starts again if another writer changed the entity in
    /// between. Increases `requests` by the number of writes.
    ///
    /// # Errors
    ///
    /// Fails with `is_contended` after 16 lost races, and with `is_not_found` if the entity was deleted.
    pub(super) async fn change_entity_again(
        &mut self,
        lost: &LostRace,
        handled: &mut HandledEntities,
        requests: &mut u64,
    ) -> Result<()> {
        let LostRace { index, partition_key, row_key, .. } = lost;
        let (client, table, read_as) = (self.client.clone(), self.table.clone(), self.read_as);
        let locate = |error: Error| error.in_table(&table).at_keys(partition_key, row_key);
        // Attempts run one after another, so nothing ever waits for the lock.
        let shared = Mutex::new((self, handled, requests));
        let lock = || shared.lock().unwrap_or_else(PoisonError::into_inner);
        let (client, table, lock, locate) = (&client, &table, &lock, &locate);
        let changed =
            backoff::retry_lost_races(&client.store().random, backoff::ATTEMPTS, || async move {
                let read = ReadRequest { table, partition_key, row_key, select: None };
                let row = client.store().read_decrypted(read, read_as).await?;
                let stored = row.map(T::reread).transpose().map_err(locate)?.flatten();
                if (lock().0.is_done)(stored.as_ref()) {
                    return Ok(Attempt::Done(()));
                }
                let Some(stored) = stored else { return Err(deleted_error(table, lost)) };
                let verb = lock().0.apply_and_plan(stored).map_err(locate)?;
                let change = fill_tokens_of_change(client.outbox(), table, verb).await?;
                lock().1.note_change(table, &change, *index).map_err(locate)?;
                *lock().2 += 1;
                let changes = [change];
                let Err(error) = Commit::new(client.outbox(), table, &changes).run().await else {
                    return Ok(Attempt::Done(()));
                };
                lock().1.note_failure(table, &changes[0], *index, &error);
                if error.is_row_changed_or_gone() {
                    // Another writer changed or deleted the entity, and the next read finds out which.
                    Ok(Attempt::Raced)
                } else {
                    Err(error.without_operation())
                }
            });
        changed.await?.ok_or_else(|| locate(backoff::contended_error()))
    }
}

fn deleted_error(table: &str, lost: &LostRace) -> Error {
    let message = "the entity was deleted meanwhile";
    let error = Error::service(ServiceCode::ResourceNotFound, message);
    error.in_table(table).at_keys(&lost.partition_key, &lost.row_key)
}
