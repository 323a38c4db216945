//! Removing what is done: a dirty row in the version that its pass began with.

use super::{pass::Open, state::Worker};
use crate::{
    batch::{Batch, Condition, Operation},
    error::Result,
    limits::BATCH_OPERATIONS,
    outbox::{guard::Guard, registration::record},
    plan::outbox::StoredDirtyRow,
};

/// What became of rows that were to be removed.
#[derive(Debug, Default)]
pub(super) struct Removed {
    pub(super) gone: u64,
    /// Rows with newer work.
    pub(super) raced: u64,
}

impl Worker {
    /// Removes the rows of one partition: together, and one by one where there is newer work among
    /// them.
    pub(super) async fn remove(&self, table: &str, done: Vec<Open>) -> Result<Removed> {
        let mut removed = Removed::default();
        for done in done.chunks(BATCH_OPERATIONS) {
            if done.len() > 1 && self.remove_together(table, done).await? {
                removed.gone += u64::try_from(done.len()).unwrap_or(u64::MAX);
                continue;
            }
            for done in done {
                match self.remove_one(table, done).await? {
                    true => removed.gone += 1,
                    false => removed.raced += 1,
                }
            }
        }
        Ok(removed)
    }

    async fn remove_together(&self, table: &str, done: &[Open]) -> Result<bool> {
        let mut batch = Batch::new(table);
        for done in done {
            batch.push(self.removal(&done.open)?)?;
        }
        match self.client.store().apply(&batch).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_superseded() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// `false`: there is newer work.
    async fn remove_one(&self, table: &str, done: &Open) -> Result<bool> {
        match self.client.store().apply_one(table, self.removal(&done.open)?).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_precondition_failed() => Ok(false),
            Err(error) if error.is_not_found() => {
                // Another actor found the work done before this one wrote once more.
                if done.wrote && self.client.outbox().guards.holds(Guard::PutBack) {
                    self.put_back(table, done.open.restore()?).await?;
                    return Ok(false);
                }
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    fn removal(&self, open: &StoredDirtyRow) -> Result<Operation> {
        let seen = match self.client.outbox().guards.holds(Guard::DirtyVersion) {
            true => Condition::for_etag(open.row.etag()),
            false => Condition::Any,
        };
        Operation::delete(open.row.partition_key(), open.row.row_key(), seen)
    }

    /// Records open work again, under a fence as everybody does.
    pub(super) async fn put_back(&self, table: &str, operation: Operation) -> Result<()> {
        match record(self.client.outbox(), table, vec![operation]).await {
            Err(error) if !error.row_exists() => Err(error),
            _ => Ok(()),
        }
    }
}
