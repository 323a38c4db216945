//! Settling reservations: each goes to who holds its key by now, or away.

use super::{deadline::WriteDeadline, fast_path::guarded, guard::Guard, state::Outbox};
use crate::{
    address::{RowAddress, RowAt},
    batch::{Condition, Operation},
    error::{Error, ErrorKind, Result},
    plan::outbox::{ClaimedKey, previous_owner, reserving_claim},
    store::{backoff, derive::held_by},
};

/// Makes a row that is reserved by a claim the copy of who holds its key, or removes it. The claim
/// is dead, or was never going to be sent.
pub(crate) async fn settle(
    outbox: &Outbox,
    table: &str,
    partition_key: &str,
    id: &str,
    key: &ClaimedKey,
) -> Result<()> {
    let ClaimedKey { address: name, primary } = key;
    let Some((schema, kinds)) = outbox.known_types.of_copy(name) else {
        let message = "this program does not know the index of a claim";
        return Err(Error::new(ErrorKind::UnrecognizedEntity, message).in_table(table));
    };
    for attempt in 0..backoff::ATTEMPTS {
        let flight = WriteDeadline::begin(outbox);
        // Nothing is reserved in a table that does not exist.
        let Some(found) = outbox.store.row_or_no_table(name.at()).await? else { return Ok(()) };
        if reserving_claim(&found)? != Some(id) {
            return Ok(());
        }
        let seen = Condition::for_etag(found.etag());
        let mut holders = vec![RowAt::new(table, partition_key, primary).to_owned()];
        holders.extend(previous_owner(&found)?);
        let mut operation =
            Operation::delete(found.partition_key(), found.row_key(), seen.clone())?;
        let mut kinds = kinds;
        let restores = outbox.guards.holds(Guard::ReleaseRestores);
        for place in holders.iter().map(RowAddress::at).filter(|_| restores) {
            if let Some(held) = held_by(&outbox.store, place, schema, name).await? {
                operation = Operation::replace(held.stored(place)?, seen);
                kinds = held.kinds;
                break;
            }
        }
        let operation = guarded(outbox, operation)?;
        match flight.write(outbox, &name.table, kinds, operation).await {
            Err(error) if error.lost_race() => backoff::wait(&outbox.store.random, attempt).await,
            answer => return answer.map(drop),
        }
    }
    Err(backoff::contended().in_table(&name.table))
}
