//! Decides what to do about a row that occupies a unique key that an entity wants.

use super::{
    blocking_claim::BlockingClaim,
    claim_state::{ClaimState, read_claim_with_state},
    keys::ReleasedUniqueKey,
    state::Outbox,
};
use crate::{
    address::{RowAddress, RowAt},
    batch::{Condition, Operation},
    entity::CopyAndPrimaryFamily,
    error::{Error, Result},
    plan::outbox::{CopyAddress, id_of_reserving_claim, owner_of_copy, previous_owner},
    row::Row,
    store::key_owner::{OwnerDerivesKey, find_owner_holding_key},
};

/// The action for a row that occupies a wanted key.
pub(crate) enum OccupiedKeyAction {
    /// Put the claim on this row. It belongs to the entity itself (`None`), or to an entity that releases the key in
    /// the same transaction or move.
    TakeOver(Option<RowAddress>),
    /// Send this deletion, because no entity derives the key any longer, and try again.
    Remove(Operation),
    /// Try again once this claim has ended. Another write of the same entity, or of one that releases the key, is in
    /// progress.
    Busy(BlockingClaim),
    /// Report this violation. Another entity's write is pending and may still fail, which would free the key.
    Pending(Error),
    /// Report this violation. Another entity, at this address, holds the key. `None` if the row does not contain its
    /// owner.
    Violation(Error, Option<RowAddress>),
}

/// An occupied key, and the entity that wants it.
pub(crate) struct OccupiedKey<'c> {
    pub(crate) outbox: &'c Outbox,
    /// The entity that wants the key.
    pub(crate) primary: RowAt<'c>,
    /// The unique keys that entities release in this transaction. If the transaction moves an entity, also all keys of
    /// the entity at its old address.
    pub(crate) released: &'c [ReleasedUniqueKey],
    pub(crate) address: &'c CopyAddress,
    pub(crate) kinds: CopyAndPrimaryFamily,
}

impl OccupiedKey<'_> {
    /// Decides about the row that was found under the key.
    pub(crate) async fn decide_action(&self, found: &Row) -> Result<OccupiedKeyAction> {
        let Some(owner) = owner_of_copy(found, self.kinds, self.primary.table)? else {
            let holder = "a row that does not say which entity it belongs to";
            return Ok(OccupiedKeyAction::Violation(self.violation_error(holder), None));
        };
        let is_own = owner.as_row_at() == self.primary;
        // Read the claim before its owner: a claim that no longer exists was resolved earlier, and the owner shows
        // the result.
        if let Some(id) = id_of_reserving_claim(found)? {
            let (state, claim) =
                read_claim_with_state(&self.outbox.store, owner.as_row_at(), id).await?;
            if state == ClaimState::Alive {
                let pending = "the entity {}, whose write is pending";
                return Ok(if is_own || self.is_released_by(owner.as_row_at()) {
                    OccupiedKeyAction::Busy(BlockingClaim::new(id, owner, claim)?)
                } else {
                    OccupiedKeyAction::Pending(
                        self.violation_naming_holder(owner.as_row_at(), pending),
                    )
                });
            }
        }
        let previous = previous_owner(self.primary.table.names(), found)?;
        if is_own && previous.is_none() {
            return Ok(OccupiedKeyAction::TakeOver(None));
        }
        // A row that was taken over under a dead claim may still belong to its previous owner.
        for named in [owner].into_iter().chain(previous) {
            let Some(holder) = self.find_holder(named.as_row_at()).await? else { continue };
            let may_take_over =
                self.is_released_by(holder.as_row_at()) || holder.as_row_at() == self.primary;
            return Ok(if may_take_over {
                OccupiedKeyAction::TakeOver(Some(holder))
            } else {
                let error = self.violation_naming_holder(holder.as_row_at(), "the entity {}");
                OccupiedKeyAction::Violation(error, Some(holder))
            });
        }
        // The owners were read after this row, so its ETag proves that it still has no owner.
        let seen = Condition::for_etag(found.etag());
        let delete = Operation::delete(found.partition_key(), found.row_key(), seen)?;
        Ok(OccupiedKeyAction::Remove(delete))
    }

    fn is_released_by(&self, holder: RowAt<'_>) -> bool {
        let is_this_key = |released: &ReleasedUniqueKey| {
            // An address of `None` releases all keys of an entity that moves away.
            released.address.as_ref().is_none_or(|address| address == self.address)
        };
        let mut released = self.released.iter();
        released.any(|released| released.primary.as_row_at() == holder && is_this_key(released))
    }

    /// Returns the entity that holds the key, if it is `named`. An entity that cannot be read counts as holding it.
    async fn find_holder(&self, named: RowAt<'_>) -> Result<Option<RowAddress>> {
        match find_owner_holding_key(&self.outbox.store, named, self.kinds.schema, self.address)
            .await
        {
            Ok(OwnerDerivesKey::Holds(held)) => Ok(Some(held.primary)),
            Ok(OwnerDerivesKey::Nobody) => Ok(None),
            // Deleting its copy could give the key to two entities.
            Err(error) if error.is_decode() || error.is_unrecognized_entity() => {
                Ok(Some(named.to_owned()))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the violation with `entity` as holder. `holder` is the message's text about the holder, with `{}`
    /// for the keys of `entity`.
    fn violation_naming_holder(&self, entity: RowAt<'_>, holder: &str) -> Error {
        let (partition_key, row_key) =
            (entity.partition_key.escape_debug(), entity.row_key.escape_debug());
        let holder =
            holder.replace("{}", &format!("`{row_key}` of the partition `{partition_key}`"));
        self.violation_error(&holder).held_by(entity.partition_key, entity.row_key)
    }

    fn violation_error(&self, holder: &str) -> Error {
        let index = self.kinds.copy.name;
        let message = format!("the key of index `{index}` is held by {holder}");
        Error::unique_violation(index, message).at_row(self.address.as_row_at())
    }
}
