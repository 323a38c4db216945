//! Settling reservations: each goes to who holds its key by now, or away.

use super::{
    deadline::Flight,
    fast_path::{guarded, read_row},
    guard::Guard,
};
use crate::{
    backend::Read,
    batch::{Condition, Operation},
    entity::{CopyFamily, EntityRows, Schema},
    error::{Error, ErrorKind, Result},
    plan::outbox::{
        Claimed, CopyAddress, Owner, Place, claim_key, claim_of, from_of, is_alive, owned_copy,
    },
    row::{ETag, Row},
    store::backoff,
    table::Client,
};

/// What a primary derives: from its plain form, with the tokens of its keys.
pub(crate) async fn derived(
    client: &Client,
    table: &str,
    schema: &'static Schema,
    primary: &Row,
) -> Result<Option<EntityRows>> {
    let plain = client.opened(table, primary.clone(), schema).await?;
    let Some(rows) = (schema.derived)(&plain)? else { return Ok(None) };
    let rows = client.tokens_of(schema).await?.fill(schema, rows)?;
    Ok(Some(rows.with_encrypted_names_of(&plain)))
}

/// A copy that a primary derives, and the version of the primary.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) kinds: CopyFamily,
    pub(crate) copy: Row,
    version: ETag,
}

impl Held {
    /// The copy as it is stored.
    fn stored(&self, place: &Place) -> Result<Row> {
        let Place { table, partition_key, row_key } = place;
        owned_copy(
            &self.copy,
            self.kinds,
            Owner { table, partition_key, row_key },
            Some(&self.version),
        )
    }
}

/// What a primary derives for a key, if it does.
pub(crate) async fn held_by(
    client: &Client,
    place: &Place,
    schema: &'static Schema,
    name: &CopyAddress,
) -> Result<Option<Held>> {
    let Some(primary) = read_place(client, place, &place.row_key).await? else { return Ok(None) };
    let Some(version) = primary.etag() else { return Ok(None) };
    let rows = derived(client, &place.table, schema, &primary).await?;
    let copies = rows.into_iter().flat_map(|rows| rows.remote_copies);
    let Some(copy) = copies.into_iter().find(|copy| name.is_of(&place.table, copy)) else {
        return Ok(None);
    };
    let Some(primary) = schema.primary_of_copy(copy.family) else { return Ok(None) };
    let kinds = CopyFamily { copy: copy.family, primary, schema };
    Ok(Some(Held { kinds, copy: copy.row, version }))
}

/// Whether the transaction of a claim in the partition of a primary may still come; `None`: the
/// claim is gone.
pub(crate) async fn is_open(client: &Client, place: &Place, id: &str) -> Result<Option<bool>> {
    let claim = read_place(client, place, &claim_key(id)).await?;
    claim.as_ref().map(is_alive).transpose()
}

/// A row of the partition of a primary; a table that is gone has none.
async fn read_place(client: &Client, place: &Place, row_key: &str) -> Result<Option<Row>> {
    let Place { table, partition_key, .. } = place;
    match client.read(Read { table, partition_key, row_key, select: None }).await {
        Err(error) if error.is_table_missing() => Ok(None),
        read => read,
    }
}

/// Makes a row that is reserved by a claim the copy of who holds its key, or removes it. The claim
/// is dead, or was never going to be sent.
pub(crate) async fn settle(
    client: &Client,
    table: &str,
    partition_key: &str,
    id: &str,
    key: &Claimed,
) -> Result<()> {
    let Claimed { name, primary } = key;
    let Some((schema, kinds)) = client.outbox().known(name) else {
        let message = "this program does not know the index of a claim";
        return Err(Error::new(ErrorKind::UnrecognizedEntity, message).in_table(table));
    };
    for attempt in 0..backoff::ATTEMPTS {
        let flight = Flight::begin(client);
        let found = match read_row(client, name).await {
            // Nothing is reserved in a table that is gone.
            Err(error) if error.is_table_missing() => return Ok(()),
            found => found?,
        };
        let Some(found) = found else { return Ok(()) };
        if claim_of(&found)? != Some(id) {
            return Ok(());
        }
        let seen = Condition::for_etag(found.etag());
        let mut holders = vec![Place::new(table, partition_key, primary)];
        holders.extend(from_of(&found)?);
        let mut operation =
            Operation::delete(found.partition_key(), found.row_key(), seen.clone())?;
        let mut kinds = kinds;
        let restores = client.outbox().guards.hold(Guard::ReleaseRestores);
        for place in holders.iter().filter(|_| restores) {
            if let Some(held) = held_by(client, place, schema, name).await? {
                operation = Operation::replace(held.stored(place)?, seen);
                kinds = held.kinds;
                break;
            }
        }
        let operation = guarded(client, operation)?;
        match flight.write(client, &name.table, kinds, operation).await {
            Err(error) if error.lost_race() => backoff::wait(client, attempt).await,
            answer => return answer.map(drop),
        }
    }
    Err(backoff::contended().in_table(&name.table))
}
