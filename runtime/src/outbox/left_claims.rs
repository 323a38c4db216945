//! Remembers the claims (rows that reserve unique keys for one transaction) that dropped or failed writes of this client have left alive. If such a claim blocks a
//! later write of this client, that write marks the claim dead immediately instead of waiting for it.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{
    batch::{Batch, Condition, Operation},
    error::Result,
    plan::outbox::{claim_row_key, mark_claim_dead},
    row::ETag,
    store::rows::Store,
};

/// The number of claims that a client remembers. A writer that is blocked by an older one waits for it, as for
/// another client's claim.
const MOST: usize = 1_000;

/// A claim row and its place.
#[derive(Debug, Clone)]
pub(crate) struct ClaimRow {
    pub(crate) table: String,
    pub(crate) partition_key: String,
    pub(crate) id: String,
    /// The ETag of the live claim. Never absent, because the transaction's deletion and the mark would then be
    /// unconditional.
    pub(crate) etag: ETag,
}

impl ClaimRow {
    /// Marks the claim dead under its known ETag. If the claim's transaction arrives later, it fails because the claim
    /// has changed.
    pub(crate) async fn mark_dead(&self, store: &Store) -> Result<()> {
        let seen = Condition::Match(self.etag.clone());
        let mark = mark_claim_dead(&self.partition_key, &self.id, seen)?;
        store.apply(&Batch::single(&self.table, mark)?).await.map(drop)
    }

    /// Returns the operation that deletes the claim under its known ETag.
    pub(crate) fn delete_operation(&self) -> Result<Operation> {
        let seen = Condition::Match(self.etag.clone());
        Operation::delete(&self.partition_key, &claim_row_key(&self.id), seen)
    }
}

/// The claims that writers of this client have left alive, newest last. Their write was dropped, or could not mark
/// its claim dead after a failure. No writer needs them.
#[derive(Debug, Default)]
pub(crate) struct LeftClaims(Mutex<VecDeque<ClaimRow>>);

impl LeftClaims {
    fn lock_claims(&self) -> MutexGuard<'_, VecDeque<ClaimRow>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add_claim(&self, claim: ClaimRow) {
        let claims = &mut *self.lock_claims();
        if claims.len() >= MOST {
            claims.pop_front();
        }
        claims.push_back(claim);
    }

    /// Returns the claim with this id, if a writer of this client has left it.
    pub(crate) fn find_claim(&self, id: &str) -> Option<ClaimRow> {
        self.lock_claims().iter().find(|claim| claim.id == id).cloned()
    }

    /// Forgets a claim that is no longer alive.
    pub(crate) fn forget_claim(&self, id: &str) {
        self.lock_claims().retain(|claim| claim.id != id);
    }
}

/// The claim row of a write in progress. If it is dropped while the claim is alive, the claim is added to the left
/// claims.
#[derive(Debug)]
pub(crate) struct ClaimLeftOnDrop {
    pub(crate) row: ClaimRow,
    left: Arc<LeftClaims>,
    is_over: AtomicBool,
}

impl ClaimLeftOnDrop {
    /// Creates the guard of a claim row. Dropping it while the claim is alive adds the claim to `left`.
    pub(crate) fn new(row: ClaimRow, left: Arc<LeftClaims>) -> Self {
        Self { row, left, is_over: AtomicBool::new(false) }
    }

    /// Records that the row is deleted or marked dead and no longer blocks any write.
    pub(crate) fn note_claim_over(&self) {
        self.is_over.store(true, Ordering::Release);
    }
}

impl Drop for ClaimLeftOnDrop {
    fn drop(&mut self) {
        if !self.is_over.load(Ordering::Acquire) {
            self.left.add_claim(self.row.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(id: usize) -> ClaimRow {
        let (table, partition_key) = ("Staff".into(), "Sales".into());
        ClaimRow { table, partition_key, id: id.to_string(), etag: ETag::from("W/\"1\"") }
    }

    #[test]
    fn the_oldest_claim_is_forgotten_first() {
        let left = Arc::new(LeftClaims::default());
        let over = ClaimLeftOnDrop::new(claim(5_000), left.clone());
        over.note_claim_over();
        drop(over);
        assert!(left.find_claim("5000").is_none());
        (0..=MOST).for_each(|id| drop(ClaimLeftOnDrop::new(claim(id), left.clone())));
        assert!(left.find_claim("0").is_none());
        assert!(left.find_claim("1").is_some());
        left.forget_claim("1");
        assert!(left.find_claim("1").is_none());
        assert_eq!(left.lock_claims().len(), MOST - 1);
    }
}
