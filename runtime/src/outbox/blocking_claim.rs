//! Handles a live claim that blocks another write of its entity. A claim is a row that reserves unique keys for one
//! transaction. A live claim is one that is not marked dead, so its writer may still send
//! that transaction.

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{
    claim_state::{ClaimState, read_claim_state},
    left_claims::ClaimRow,
    state::Outbox,
};
use crate::{
    address::RowAddress,
    edm::Ticks,
    error::{Error, Result},
    plan::outbox::WriterRun,
    row::{ETag, Row},
};

/// A claim that was alive when it was read.
#[derive(Debug, Clone)]
pub(crate) struct BlockingClaim {
    /// The address of the claim's entity, which is in the claim's partition.
    pub(crate) owner: RowAddress,
    pub(crate) id: String,
    /// When the claim was written, by the store's clock.
    pub(crate) since: Option<Ticks>,
    etag: Option<ETag>,
    /// The writer of the claim, if it has a name.
    writer: Option<WriterRun>,
}

impl BlockingClaim {
    /// Creates the claim `id` of the entity at `owner`. `row` is the claim's row; without it, the claim's time, ETag
    /// and writer are unknown.
    pub(crate) fn new(id: &str, owner: RowAddress, row: Option<Row>) -> Result<Self> {
        let writer = row.as_ref().map(WriterRun::of_claim).transpose()?.flatten();
        let (since, etag) = (row.as_ref().and_then(Row::timestamp), row.and_then(|row| row.etag()));
        Ok(Self { owner, id: id.to_owned(), since, etag, writer })
    }

    /// Marks the claim dead if it was left by a dropped or failed write of this client, or by an earlier run of this
    /// writer. Returns `true` if the claim is no longer alive. Returns `false` if its writer may still be working, or
    /// if the mark may not have been written.
    pub(crate) async fn mark_dead_if_left(&self, outbox: &Outbox) -> Result<bool> {
        let Some(row) = self.left_row(outbox) else { return Ok(false) };
        match row.mark_dead(&outbox.store).await {
            Ok(()) => {}
            // Either its transaction was committed and deleted the claim, or another task marked it.
            Err(error) if error.is_lost_race() => {}
            // Nothing of the caller's write was sent, and the next attempt examines the claim again.
            Err(error) if error.is_ambiguous() || error.is_throttled() => return Ok(false),
            Err(error) => return Err(error),
        }
        outbox.left_claims.forget_claim(&row.id);
        Ok(true)
    }

    /// Returns the claim if another run of this client's writer made it. Only one process at a time uses a writer's
    /// name, so that run has ended. If it has not, its transaction fails because the claim's ETag has changed.
    fn row_of_earlier_run(&self, outbox: &Outbox) -> Option<ClaimRow> {
        let (own, writer) = (outbox.writer.as_ref()?, self.writer.as_ref()?);
        let RowAddress { table, partition_key, .. } = self.owner.clone();
        let etag = self.etag.clone()?;
        own.is_other_run(writer).then(|| ClaimRow {
            table,
            partition_key,
            id: self.id.clone(),
            etag,
        })
    }

    /// Returns the claim if no writer can still be working under it.
    fn left_row(&self, outbox: &Outbox) -> Option<ClaimRow> {
        let left = outbox.left_claims.find_claim(&self.id);
        left.or_else(|| self.row_of_earlier_run(outbox))
    }
}

/// The ids of claims that were still alive after a commit had waited for them. Later commits of the same group do
/// not wait for them.
#[derive(Debug, Default)]
pub(crate) struct OutlastingClaims(Mutex<HashSet<String>>);

impl OutlastingClaims {
    fn lock_ids(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add_claim(&self, id: String) {
        self.lock_ids().insert(id);
    }

    pub(crate) fn has_claim(&self, id: &str) -> bool {
        self.lock_ids().contains(id)
    }
}

/// The claim that a commit waits for, with the error of the attempt that it blocked. Shared by the attempts of
/// one commit.
#[derive(Debug, Default)]
pub(crate) struct SharedBlockingClaim(Mutex<Option<Box<(BlockingClaim, Error)>>>);

impl SharedBlockingClaim {
    fn lock_claim(&self) -> MutexGuard<'_, Option<Box<(BlockingClaim, Error)>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes later attempts wait for a claim.
    pub(crate) fn set_claim(&self, claim: BlockingClaim, error: Error) {
        *self.lock_claim() = Some(Box::new((claim, error)));
    }

    /// Returns the id of the claim that blocked the last attempt.
    pub(crate) fn blocking_claim_id(&self) -> Option<String> {
        self.lock_claim().as_deref().map(|(claim, _)| claim.id.clone())
    }

    /// Returns the last attempt's error if the claim that blocked it is still alive, because another attempt would
    /// fail the same way. Otherwise forgets the claim and returns `None`. Sends at most one request, and none if no
    /// claim blocked the attempt.
    pub(crate) async fn error_if_claim_alive(&self, outbox: &Outbox) -> Result<Option<Error>> {
        let in_the_way = self.lock_claim().as_deref().cloned();
        let Some((claim, error)) = in_the_way else { return Ok(None) };
        // If the claim was left in the meantime, the next attempt ends it.
        if outbox.left_claims.find_claim(&claim.id).is_none() {
            let owner = claim.owner.as_row_at();
            if read_claim_state(&outbox.store, owner, &claim.id).await? == ClaimState::Alive {
                return Ok(Some(error));
            }
        }
        *self.lock_claim() = None;
        Ok(None)
    }
}
