//! Keeps the claims of a group of changes while refused changes are taken out of it, so that the changes that
//! are left are sent again with the values that they have reserved.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{
    blocking_claim::{OutlastingClaims, SharedBlockingClaim},
    claims::ClaimWithReservations,
    state::Outbox,
};
use crate::error::{Error, Result};

/// The claims of the last commit of a group, which was refused because of one change.
///
/// Without them, a group of `n` changes that are all refused would reserve and give back `n * n / 2` values.
#[derive(Debug, Default)]
pub(crate) struct KeptClaims {
    claims: Mutex<Option<Box<ClaimWithReservations>>>,
    /// Claims of other writers for which an earlier commit of the group has waited in vain.
    pub(crate) outlasting: OutlastingClaims,
}

impl KeptClaims {
    fn lock_claims(&self) -> MutexGuard<'_, Option<Box<ClaimWithReservations>>> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the claims of the commit before.
    pub(crate) fn take_claims(&self) -> Option<ClaimWithReservations> {
        self.lock_claims().take().map(|claims| *claims)
    }

    /// Keeps claims for the next commit.
    pub(crate) fn keep_claims(&self, claims: ClaimWithReservations) {
        *self.lock_claims() = Some(Box::new(claims));
    }

    /// Returns whether the claims of a transaction that failed can serve the next one: the store refused one
    /// change, and has certainly written nothing.
    pub(crate) fn can_keep<T>(claims: &ClaimWithReservations, sent: &Result<T>) -> bool {
        let Err(error) = sent else { return false };
        error.is_certainly_not_executed()
            && error.failed_index().is_some()
            && !error.is_too_large()
            && claims.may_go_on()
    }

    /// Notes the failure of a commit: the next one does not wait for the claim that was in the way until the end.
    pub(crate) fn note_failure(&self, error: &Error, in_the_way: &SharedBlockingClaim) {
        if error.is_contended()
            && let Some(id) = in_the_way.claim_id()
        {
            self.outlasting.add_claim(id);
        }
    }

    /// Gives back what is reserved, and deletes the claim.
    pub(crate) async fn release_all(&self, outbox: &Outbox) {
        if let Some(claims) = self.take_claims() {
            // The last transaction under the claim failed for certain.
            claims.release_keys(outbox, true).await;
        }
    }
}
