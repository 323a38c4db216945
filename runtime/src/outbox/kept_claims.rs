//! Keeps the claims of a group while refused changes are removed from it. The remaining changes are then sent again
//! with the values that they have reserved.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{
    blocking_claim::{OutlastingClaims, SharedBlockingClaim},
    claims::ClaimAndReservedKeys,
    state::Outbox,
};
use crate::error::{Error, Result};

/// The claims of a group's last commit, which was refused because of one change.
///
/// Without them, a group of `n` changes that are all refused would reserve and release `n * n / 2` values.
#[derive(Debug, Default)]
pub(crate) struct KeptClaims {
    claims: Mutex<Option<Box<ClaimAndReservedKeys>>>,
    /// Claims of other writers that an earlier commit of the group has waited for in vain.
    pub(crate) outlasting: OutlastingClaims,
}

impl KeptClaims {
    fn lock_claims(&self) -> MutexGuard<'_, Option<Box<ClaimAndReservedKeys>>> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the claims that the group's previous commit left, if there are any.
    pub(crate) fn take_claims(&self) -> Option<ClaimAndReservedKeys> {
        self.lock_claims().take().map(|claims| *claims)
    }

    /// Stores claims in memory for the group's next commit, which uses the values that they have reserved.
    pub(crate) fn keep_for_next_commit(&self, claims: ClaimAndReservedKeys) {
        *self.lock_claims() = Some(Box::new(claims));
    }

    /// Returns whether the claims of a failed transaction can be used for the next one: the store refused one change
    /// and has certainly written nothing.
    pub(crate) fn can_keep<T>(claims: &ClaimAndReservedKeys, sent: &Result<T>) -> bool {
        let Err(error) = sent else { return false };
        error.is_certainly_not_executed()
            && error.failed_index().is_some()
            && !error.is_too_large()
            && claims.may_send_again()
    }

    /// Records the failure of a commit. The next commit does not wait for the claim that blocked it until the end.
    pub(crate) fn note_failure(&self, error: &Error, in_the_way: &SharedBlockingClaim) {
        if error.is_contended()
            && let Some(id) = in_the_way.blocking_claim_id()
        {
            self.outlasting.add_claim(id);
        }
    }

    /// Releases the reservations and deletes the claim.
    pub(crate) async fn release_all(&self, outbox: &Outbox) {
        if let Some(claims) = self.take_claims() {
            // The last transaction under the claim has certainly failed.
            claims.release_unique_keys(outbox, true).await;
        }
    }
}
