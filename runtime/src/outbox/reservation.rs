//! Resolves a reservation whose transaction was not committed: replaces it with the copy of the entity that derives
//! its key, or deletes it if no entity does.

use super::{known_types::Named, state::Outbox};
use crate::{
    address::{RowAddress, RowAt},
    batch::{Condition, Operation},
    entity::CopyAndPrimaryFamily,
    error::{Error, ErrorKind, Result},
    guard::Guard,
    plan::outbox::{
        ClaimedKeyAndPrimary, CopyOwnership, compare_owner_in_copy, id_of_reserving_claim,
        previous_owner,
    },
    row::Row,
    store::{
        backoff::{self, Attempt},
        key_owner::{OwnerDerivesKey, find_owner_holding_key},
    },
};

/// Ends the reservation of a unique key that claim `id` made. If the claiming entity still derives the key, its copy
/// replaces the reservation. Otherwise the reservation is deleted. `table` and `partition_key` are the place of the
/// claim row and the primary.
///
/// The claim must be dead, or its transaction must never have been sent. Otherwise the transaction could still be
/// committed and find its key given away.
pub(crate) async fn settle_reservation(
    outbox: &Outbox,
    table: &str,
    partition_key: &str,
    id: &str,
    key: &ClaimedKeyAndPrimary,
) -> Result<()> {
    let owner = outbox.store.names().row_at(table, partition_key, &key.primary);
    let Named::Copy(kinds) = outbox.named(owner, &key.address) else {
        let message = "this program does not know the index of a claim";
        return Err(Error::new(ErrorKind::UnrecognizedEntity, message).in_table(table));
    };
    let resolved = backoff::retry_lost_races(&outbox.store.random, backoff::ATTEMPTS, || {
        resolve_reservation_once(outbox, kinds, owner, id, key)
    });
    let table = &key.address.row.table;
    resolved.await?.ok_or_else(|| backoff::contended_error().in_table(table))
}

async fn resolve_reservation_once(
    outbox: &Outbox,
    kinds: CopyAndPrimaryFamily,
    owner: RowAt<'_>,
    id: &str,
    key: &ClaimedKeyAndPrimary,
) -> Result<Attempt<()>> {
    // As for every remote write, the deadline starts before the owner is read.
    let deadline = outbox.start_deadline();
    // A table that does not exist contains no reservation.
    let found = outbox.store.row_if_table_exists(key.address.as_row_at()).await?;
    let Some(found) = found else { return Ok(Attempt::Done(())) };
    // The claim was settled in the meantime, or another claim has the row.
    if id_of_reserving_claim(&found)? != Some(id) {
        return Ok(Attempt::Done(()));
    }
    // A claim row may be forged. It must not resolve the reservation of another primary, even if that contains
    // this claim's id. The other primary's claim resolves it.
    if outbox.guards.is_guard_enabled(Guard::OwnReservation)
        && compare_owner_in_copy(&found, kinds, owner)? == CopyOwnership::Another
    {
        return Ok(Attempt::Done(()));
    }
    let (kinds, operation) = restored_copy(outbox, kinds, owner, key, &found).await?;
    let operation = outbox.guards.keep_remote_condition_if_guarded(operation)?;
    match deadline.write_copy(&outbox.store, &key.address.row.table, kinds, operation).await {
        Err(error) if error.is_lost_race() => Ok(Attempt::Raced),
        answer => answer.map(|_| Attempt::Done(())),
    }
}

/// Returns the operation that writes the copy of the key's holder, or deletes the row if no entity holds the key.
async fn restored_copy(
    outbox: &Outbox,
    kinds: CopyAndPrimaryFamily,
    owner: RowAt<'_>,
    key: &ClaimedKeyAndPrimary,
    found: &Row,
) -> Result<(CopyAndPrimaryFamily, Operation)> {
    // Use the ETag of the row that was read before its owners. If another writer comes in between, the write
    // fails, and the next attempt reads everything again.
    let seen = Condition::for_etag(found.etag());
    // The owner comes first: while an entity moves, both its rows may derive the key.
    let holders: Vec<RowAddress> =
        [owner.to_owned()].into_iter().chain(previous_owner(owner.table.names(), found)?).collect();
    let holders = outbox.guards.value_if_guarded(Guard::ReleaseRestores, holders);
    for holder in holders.iter().flatten().map(RowAddress::as_row_at) {
        match find_owner_holding_key(&outbox.store, holder, kinds.schema, &key.address).await? {
            OwnerDerivesKey::Holds(copy) => {
                return Ok((copy.kinds, Operation::replace(copy.to_row()?, seen)));
            }
            OwnerDerivesKey::Nobody => {}
        }
    }
    Ok((kinds, Operation::delete(found.partition_key(), found.row_key(), seen)?))
}
