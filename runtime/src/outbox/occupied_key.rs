//! OccupiedKeyAction somebody else's row under a key that has to be claimed.

use super::{keys::ReleasedKey, state::Outbox};
use crate::{
    address::{RowAddress, RowAt},
    batch::{Condition, Operation},
    entity::CopyFamily,
    error::{Error, ErrorKind, Result},
    plan::outbox::{CopyAddress, owner_of_copy, previous_owner, reserving_claim},
    row::Row,
    store::derive::{held_by, is_open},
};

/// What to do about a row in the way.
pub(crate) enum OccupiedKeyAction {
    /// It is the primary's own, or one that is handed over: take it over; from whom.
    Adopt(Option<RowAddress>),
    /// Nobody's any more.
    Remove(Operation),
    /// Another write of the same primary, or of one that leaves the key, is under way.
    Busy,
    /// Another primary's write is, which may hold the key in the end.
    Pending(Error),
    Violation(Error),
}

/// Who wants a key, and in place of whom: primaries that leave it in the same transaction, or that
/// move there.
pub(crate) struct OccupiedKey<'c> {
    pub(crate) outbox: &'c Outbox,
    pub(crate) table: &'c str,
    pub(crate) place: RowAt<'c>,
    pub(crate) releasing: &'c [ReleasedKey],
    pub(crate) name: &'c CopyAddress,
    pub(crate) kinds: CopyFamily,
}

impl OccupiedKey<'_> {
    /// What to do about a row that was found. Whoever claims it is asked before its primary.
    pub(crate) async fn meet(&self, found: &Row) -> Result<OccupiedKeyAction> {
        let Some(owner) = owner_of_copy(found, self.kinds, self.table)? else {
            return Ok(OccupiedKeyAction::Violation(
                self.violation("a row that does not tell whose it is"),
            ));
        };
        let is_own = owner.at().is_same_row(self.place);
        if let Some(id) = reserving_claim(found)?
            && is_open(&self.outbox.store, owner.at(), id).await? == Some(true)
        {
            let pending = "the entity `{}`, whose write is pending";
            return Ok(match is_own || self.is_heir_of(owner.at()) {
                true => OccupiedKeyAction::Busy,
                false => OccupiedKeyAction::Pending(self.held(owner.at(), pending)),
            });
        }
        let from = previous_owner(found)?;
        if is_own && from.is_none() {
            return Ok(OccupiedKeyAction::Adopt(None));
        }
        // One that was taken over, and whose claim is dead, is still of whom it was taken from.
        for owner in [owner].into_iter().chain(from) {
            if !self.holds(owner.at()).await? {
                continue;
            }
            return Ok(match self.is_heir_of(owner.at()) || owner.at().is_same_row(self.place) {
                true => OccupiedKeyAction::Adopt(Some(owner)),
                false => OccupiedKeyAction::Violation(self.held(owner.at(), "the entity `{}`")),
            });
        }
        let seen = Condition::for_etag(found.etag());
        let delete = Operation::delete(found.partition_key(), found.row_key(), seen)?;
        Ok(OccupiedKeyAction::Remove(delete))
    }

    fn is_heir_of(&self, owner: RowAt<'_>) -> bool {
        let leaves = |left: &ReleasedKey| left.name.as_ref().is_none_or(|name| name == self.name);
        self.releasing.iter().any(|left| left.place.at().is_same_row(owner) && leaves(left))
    }

    async fn holds(&self, owner: RowAt<'_>) -> Result<bool> {
        let held = held_by(&self.outbox.store, owner, self.kinds.schema, self.name).await;
        match held {
            Ok(held) => Ok(held.is_some()),
            // One that cannot be read is in the way all the same.
            Err(error) if error.is_decode() || error.is_unrecognized_entity() => Ok(true),
            Err(error) => Err(error),
        }
    }

    fn held(&self, owner: RowAt<'_>, who: &str) -> Error {
        let who = who.replace("{}", &owner.row_key.escape_debug().to_string());
        self.violation(&who).held_by(owner.partition_key, owner.row_key)
    }

    fn violation(&self, who: &str) -> Error {
        let index = self.kinds.copy.name;
        let message = format!("the key of index `{index}` is held by {who}");
        Error::new(ErrorKind::UniqueViolation, message).with_index(index).at_row(self.name.at())
    }
}
