//! Inserts the row that claims unique keys for one transaction, before any of the keys is reserved.

use super::{keys::WantedUniqueKey, registration::record_outbox_rows, state::Outbox};
use crate::{
    error::{Error, ErrorKind, Result},
    plan::outbox::{
        ClaimedKeyAndPrimary, MAX_CLAIMED_KEYS, claim_row_key, insert_claim, is_claim_alive,
    },
    row::ETag,
};

/// The number of attempts to write a claim row whose answer was lost.
const ATTEMPTS: u32 = 4;

/// Refuses keys that no claim can reserve, before anything is written.
pub(super) fn check_wanted_keys(
    outbox: &Outbox,
    table: &str,
    partition_key: &str,
    wanted_keys: &[WantedUniqueKey],
) -> Result<()> {
    // If reads may lag, a taken key may look free.
    let checked = outbox.store.require_strong_reads("unique values in other partitions");
    checked.map_err(|error| error.in_table(table))?;
    // One row contains all keys, and its number of properties is limited.
    if wanted_keys.len() > MAX_CLAIMED_KEYS {
        let message = format!(
            "a transaction can claim at most {MAX_CLAIMED_KEYS} unique values in other partitions; this one claims {}",
            wanted_keys.len()
        );
        return Err(Error::new(ErrorKind::TooLarge, message).in_table(table));
    }
    // Two entities of one transaction cannot have the same key.
    for (position, wanted) in wanted_keys.iter().enumerate() {
        let mut earlier = wanted_keys.iter().take(position);
        if let Some(earlier) = earlier.find(|earlier| earlier.address == wanted.address) {
            return Err(wanted_twice_error(wanted, earlier, partition_key));
        }
    }
    Ok(())
}

/// Inserts a claim row together with the fence. Returns the claim's id and ETag. After a lost answer, inserts
/// another claim with a new id.
pub(super) async fn insert_claim_row(
    outbox: &Outbox,
    table: &str,
    partition_key: &str,
    wanted_keys: &[WantedUniqueKey],
) -> Result<(String, ETag)> {
    let keys: Vec<ClaimedKeyAndPrimary> = wanted_keys
        .iter()
        .map(|wanted| ClaimedKeyAndPrimary {
            address: wanted.address.clone(),
            primary: wanted.primary.clone(),
        })
        .collect();
    let mut attempt = 1;
    loop {
        let id = outbox.store.random.random_id();
        let claim = insert_claim(partition_key, &id, &keys, outbox.writer.as_ref())?;
        let failure = match record_outbox_rows(outbox, table, vec![claim]).await {
            Ok(written) => match written.into_iter().next().and_then(|written| written.etag) {
                Some(etag) => return Ok((id, etag)),
                None => {
                    match Box::pin(read_live_claim_etag(outbox, table, partition_key, &id)).await? {
                        Some(etag) => return Ok((id, etag)),
                        None => claim_ended_error(table),
                    }
                }
            },
            // A claim whose answer was lost is never used. A worker deletes it.
            Err(error) if !error.is_certainly_not_executed() => error,
            Err(error) => return Err(error.without_operation()),
        };
        if attempt == ATTEMPTS {
            return Err(failure.without_operation());
        }
        attempt += 1;
    }
}

/// Reads the ETag of a claim after its insertion was answered without one. Returns `None` if the claim is gone or
/// dead, because a transaction under the ETag of a dead claim would be committed.
///
/// # Errors
///
/// Fails with `is_unsupported` if the row has no ETag either.
async fn read_live_claim_etag(
    outbox: &Outbox,
    table: &str,
    partition_key: &str,
    id: &str,
) -> Result<Option<ETag>> {
    let row_key = claim_row_key(id);
    let at = outbox.store.names().row_at(table, partition_key, &row_key);
    let claim = outbox.store.read_row(at).await?;
    let Some(claim) = claim else { return Ok(None) };
    if !is_claim_alive(&claim)? {
        return Ok(None);
    }
    claim.etag().map(Some).ok_or_else(|| {
        let message = "the store returns no ETags, which unique values need";
        Error::new(ErrorKind::Unsupported, message).in_table(table)
    })
}

fn claim_ended_error(table: &str) -> Error {
    let message =
        "the claim of unique values was removed before the write could use it; write again";
    Error::new(ErrorKind::Contended, message).in_table(table)
}

/// Returns the error for a key that two entities of one transaction want.
fn wanted_twice_error(
    wanted: &WantedUniqueKey,
    earlier: &WantedUniqueKey,
    partition_key: &str,
) -> Error {
    let index = wanted.kinds.copy.name;
    let message = format!(
        "the key of index `{index}` is held by the entity `{}` of the same transaction",
        earlier.primary.escape_debug()
    );
    Error::unique_violation(index, message)
        .at_row(wanted.address.as_row_at())
        .held_by(partition_key, &earlier.primary)
}
