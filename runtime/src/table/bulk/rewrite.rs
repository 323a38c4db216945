//! Entities that are changed where they were read, and again where another writer was first.

use super::Rewritable;
use crate::{
    backend::Read,
    entity::Stored,
    error::{BoxError, Error, ErrorKind, Result, ServiceCode},
    outbox::commit::{commit, resolve_change},
    plan::Unresolved,
    store::{backoff, sealing::open::Reading},
    table::Client,
};

/// What is done to each entity.
pub(super) struct Rewrite<T, F> {
    pub(super) client: Client,
    pub(super) table: String,
    /// What its rows are read as.
    pub(super) reading: Reading,
    pub(super) change: F,
    /// Whether another writer left nothing to do; it is given the entity as it is now.
    pub(super) is_done: fn(Option<&Stored<T>>) -> bool,
}

impl<T: Rewritable, F: FnMut(&mut T) -> Result<(), BoxError>> Rewrite<T, F> {
    /// What puts the changed entity in place of the version that was read.
    pub(super) fn replacement(&mut self, mut stored: Stored<T>) -> Result<Unresolved> {
        match (self.change)(&mut stored) {
            Ok(()) => T::replacement(&stored).map(|change| change.0),
            Err(reason) => {
                let name = stored.type_name();
                let message = format!("the change of `{name}` was not accepted: {reason}");
                Err(Error::new(ErrorKind::Rejected, message)
                    .with_source(reason)
                    .at_keys(stored.partition_key(), stored.row_key()))
            }
        }
    }

    /// Reads the entity, changes it and writes it, until no other writer comes between.
    pub(super) async fn again(
        &mut self,
        partition_key: &str,
        row_key: &str,
        requests: &mut u64,
    ) -> Result<()> {
        let table = self.table.clone();
        let place = |error: Error| error.in_table(&table).at_keys(partition_key, row_key);
        for attempt in 0..backoff::ATTEMPTS {
            *requests += 1;
            let read = Read { table: &table, partition_key, row_key, select: None };
            let row = self.client.store().read_as(read, self.reading).await?;
            let stored = row.map(T::reread).transpose().map_err(place)?.flatten();
            if (self.is_done)(stored.as_ref()) {
                return Ok(());
            }
            let Some(stored) = stored else {
                let message = "the entity was deleted meanwhile";
                return Err(place(Error::service(ServiceCode::ResourceNotFound, message)));
            };
            let verb = self.replacement(stored).map_err(place)?;
            let change = resolve_change(self.client.outbox(), &table, verb).await?;
            *requests += 1;
            match commit(self.client.outbox(), &table, &[change]).await {
                Ok(_) => return Ok(()),
                // Changed or gone since it was read: the next read tells.
                Err(error) if is_overtaken(&error) => {
                    backoff::wait(&self.client.store().random, attempt).await
                }
                Err(error) => return Err(error.without_operation()),
            }
        }
        Err(place(backoff::contended()))
    }
}

/// Whether the row is not any more as it was read.
pub(super) fn is_overtaken(error: &Error) -> bool {
    let is_gone = error.is_row_missing();
    error.is_precondition_failed() || is_gone
}
