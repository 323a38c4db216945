//! The writer's claims: keys of unique indexes in other partitions are reserved before the
//! transaction that takes them, and given back where it does not come about.

use futures_util::future::join_all;

use super::{
    deadline::WriteDeadline,
    fast_path::{FastPath, read_row},
    guard::Guard,
    keys::{ReleasedKey, WantedKey},
    occupied_key::{OccupiedKey, OccupiedKeyAction},
    registration::record,
    reservation::settle,
    state::Outbox,
};
use crate::{
    address::{RowAddress, RowAt},
    batch::{Condition, Operation},
    error::{Error, ErrorKind, Result},
    plan::outbox::{
        ClaimedKey, MAX_CLAIMED_KEYS, claim_row_key, copy_with_owner, insert_claim, kill_claim,
        reservation_row, reserve_existing, reserving_claim, with_new_etag,
    },
    row::{ETag, Row},
    store::backoff,
};

/// Reservations in flight.
const AT_ONCE: usize = 16;
/// Claims whose answer may be lost.
const ATTEMPTS: u32 = 4;

/// The claim of one transaction.
#[derive(Debug)]
pub(crate) struct Claims {
    table: String,
    partition_key: String,
    id: String,
    /// The version of its row.
    version: Option<ETag>,
    wanted_keys: Vec<WantedKey>,
    releasing: Vec<ReleasedKey>,
    flight: WriteDeadline,
    /// Whether what became of a reservation is unknown.
    is_unsure: bool,
}

/// Why a key was not reserved.
enum Refused {
    For(Error),
    /// It may come yet.
    Unknown(Error),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::For(error)
    }
}

impl Claims {
    /// Claims and reserves every key that a commit takes; `None`: it takes none. `from`: the primary
    /// that arrives here from another partition.
    pub(crate) async fn take(
        outbox: &Outbox,
        table: &str,
        commit: &mut FastPath,
        from: Option<RowAddress>,
    ) -> Result<Option<Self>> {
        let wanted_keys = commit.wanted_keys();
        let Some(partition_key) = commit.dirty().next().map(|dirty| dirty.partition_key.clone())
        else {
            return Ok(None);
        };
        if wanted_keys.is_empty() {
            return Ok(None);
        }
        if wanted_keys.len() > MAX_CLAIMED_KEYS {
            let message = format!(
                "a transaction takes at most {MAX_CLAIMED_KEYS} unique values in other partitions, and this takes {}",
                wanted_keys.len()
            );
            return Err(Error::new(ErrorKind::TooLarge, message).in_table(table));
        }
        for (at, wanted) in wanted_keys.iter().enumerate() {
            if let Some(earlier) =
                wanted_keys.iter().take(at).find(|earlier| earlier.name == wanted.name)
            {
                return Err(taken_within(wanted, earlier, &partition_key));
            }
        }
        let mut releasing = commit.left(table, &partition_key);
        releasing.extend(from.map(|place| ReleasedKey { place, name: None }));
        let flight = WriteDeadline::begin(outbox);
        let (id, version) = put_up(outbox, table, &partition_key, &wanted_keys).await?;
        let (table, is_unsure) = (table.to_owned(), false);
        let mut claims =
            Self { table, partition_key, id, version, wanted_keys, releasing, flight, is_unsure };
        match claims.reserve_all(outbox, commit).await {
            Ok(()) => Ok(Some(claims)),
            Err(error) => {
                claims.release(outbox, true).await;
                Err(error)
            }
        }
    }

    async fn reserve_all(&mut self, outbox: &Outbox, commit: &mut FastPath) -> Result<()> {
        let mut reserved = Vec::new();
        for wanted_keys in self.wanted_keys.chunks(AT_ONCE) {
            let each = wanted_keys.iter().map(|wanted| self.reserve(outbox, wanted));
            reserved.extend(join_all(each).await);
        }
        let (mut refused, mut is_unsure) = (None, false);
        let mut settled = Vec::new();
        for (wanted, reserved) in std::mem::take(&mut self.wanted_keys).into_iter().zip(reserved) {
            match reserved {
                Ok(row) => commit.reserved(wanted.at, &wanted.name, row),
                Err(Refused::For(error)) => {
                    refused.get_or_insert(error);
                    continue;
                }
                Err(Refused::Unknown(error)) => {
                    is_unsure = true;
                    refused.get_or_insert(error);
                }
            }
            settled.push(wanted);
        }
        // Where nothing was reserved there is nothing to give back.
        (self.wanted_keys, self.is_unsure) = (settled, is_unsure);
        commit.claimed_by(&self.id);
        refused.map_or(Ok(()), Err)
    }

    fn place<'c>(&'c self, wanted: &'c WantedKey) -> RowAt<'c> {
        RowAt::new(&self.table, &self.partition_key, &wanted.primary)
    }

    /// The reservation of one key, in the version that the store gave it.
    async fn reserve(&self, outbox: &Outbox, wanted: &WantedKey) -> Result<Row, Refused> {
        let place = self.place(wanted);
        let copy = copy_with_owner(&wanted.copy, wanted.kinds, place, None)?;
        let contender = OccupiedKey {
            outbox,
            table: &self.table,
            place,
            releasing: &self.releasing,
            name: &wanted.name,
            kinds: wanted.kinds,
        };
        for attempt in 0..backoff::ATTEMPTS {
            let row = reservation_row(&copy, &self.id, None)?;
            let inserted = self.send(outbox, wanted, Operation::insert(row.clone())).await;
            match inserted {
                Ok(version) => return Ok(with_new_etag(&row, version)),
                Err(error) if error.is_conflict() && error.lost_race() => {}
                Err(error) => return self.after_loss(outbox, wanted, error).await,
            }
            let Some(found) = read_row(outbox, &wanted.name).await? else { continue };
            if reserving_claim(&found)? == Some(&self.id) {
                return Ok(found);
            }
            let taken = match contender.meet(&found).await? {
                OccupiedKeyAction::Violation(error) | OccupiedKeyAction::Pending(error) => {
                    return Err(Refused::For(error));
                }
                OccupiedKeyAction::Busy => return Err(Refused::For(busy(wanted))),
                OccupiedKeyAction::Remove(operation) => {
                    match self.send(outbox, wanted, operation).await {
                        Err(error) if !error.lost_race() => return Err(Refused::For(error)),
                        _ => {}
                    }
                    None
                }
                OccupiedKeyAction::Adopt(from) => {
                    Some(self.adopt(outbox, wanted, &copy, &found, from.as_ref()).await)
                }
            };
            match taken {
                Some(Ok(row)) => return Ok(row),
                Some(Err(error)) if !error.lost_race() => {
                    return self.after_loss(outbox, wanted, error).await;
                }
                _ => backoff::wait(&outbox.store.random, attempt).await,
            }
        }
        Err(Refused::For(backoff::contended().at_row(wanted.name.at())))
    }

    async fn send(
        &self,
        outbox: &Outbox,
        wanted: &WantedKey,
        operation: Operation,
    ) -> Result<Option<ETag>> {
        let written =
            self.flight.write(outbox, &wanted.name.table, wanted.kinds, operation).await?;
        Ok(written.etag)
    }

    /// Takes over a row that is there: what it holds stays as long as it is the primary's own.
    async fn adopt(
        &self,
        outbox: &Outbox,
        wanted: &WantedKey,
        copy: &Row,
        found: &Row,
        from: Option<&RowAddress>,
    ) -> Result<Row> {
        let is_own = from.is_none_or(|from| from.at().is_same_row(self.place(wanted)));
        if is_own && !wanted.kinds.schema.sealed {
            let operation = reserve_existing(found, &self.id)?;
            let request = outbox.store.apply_one(&wanted.name.table, operation);
            let version = self.flight.run(outbox, request).await?.etag;
            return Ok(with_new_etag(&reservation_row(found, &self.id, from)?, version));
        }
        let row = reservation_row(copy, &self.id, from)?;
        let replace = Operation::replace(row.clone(), Condition::for_etag(found.etag()));
        let version = self.send(outbox, wanted, replace).await?;
        Ok(with_new_etag(&row, version))
    }

    /// A request failed: the row tells whether it was carried out. One that was not may come yet.
    async fn after_loss(
        &self,
        outbox: &Outbox,
        wanted: &WantedKey,
        error: Error,
    ) -> Result<Row, Refused> {
        if error.is_outcome_known() {
            return Err(Refused::For(error));
        }
        match read_row(outbox, &wanted.name).await {
            Ok(Some(found)) if matches!(reserving_claim(&found), Ok(Some(id)) if id == self.id) => {
                Ok(found)
            }
            _ => Err(Refused::Unknown(error)),
        }
    }

    /// What makes the claim true, in the transaction.
    pub(crate) fn redeemed(&self, outbox: &Outbox) -> Result<Option<Operation>> {
        if !outbox.guards.holds(Guard::ClaimInTransaction) {
            return Ok(None);
        }
        let seen = Condition::for_etag(self.version.clone());
        Operation::delete(&self.partition_key, &claim_row_key(&self.id), seen).map(Some)
    }

    async fn give_back(&self, outbox: &Outbox, wanted: &WantedKey) -> Result<()> {
        let key = ClaimedKey { address: wanted.name.clone(), primary: wanted.primary.clone() };
        settle(outbox, &self.table, &self.partition_key, &self.id, &key).await
    }

    /// Gives back what was reserved for a transaction that did not come about. Where it may come
    /// yet, its claim is called dead first. What fails here is left to a worker.
    pub(crate) async fn release(&self, outbox: &Outbox, is_outcome_known: bool) {
        let is_sure = is_outcome_known && !self.is_unsure;
        let mut version = self.version.clone();
        if !is_sure {
            let seen = Condition::for_etag(version);
            let Ok(operation) = kill_claim(&self.partition_key, &self.id, seen) else { return };
            match outbox.store.apply_one(&self.table, operation).await {
                Ok(written) => version = written.etag,
                Err(_) => return,
            }
        }
        let mut is_settled = true;
        for wanted_keys in self.wanted_keys.chunks(AT_ONCE) {
            let each = wanted_keys.iter().map(|wanted| self.give_back(outbox, wanted));
            is_settled &= join_all(each).await.iter().all(Result::is_ok);
        }
        if !is_settled || !is_sure {
            return;
        }
        let seen = Condition::for_etag(version);
        if let Ok(delete) = Operation::delete(&self.partition_key, &claim_row_key(&self.id), seen) {
            let _ = outbox.store.apply_one(&self.table, delete).await;
        }
    }
}

/// Puts the claim's row up. One whose answer was lost is forgotten: workers remove it.
async fn put_up(
    outbox: &Outbox,
    table: &str,
    partition_key: &str,
    wanted_keys: &[WantedKey],
) -> Result<(String, Option<ETag>)> {
    let keys = wanted_keys
        .iter()
        .map(|wanted| ClaimedKey { address: wanted.name.clone(), primary: wanted.primary.clone() });
    let keys: Vec<ClaimedKey> = keys.collect();
    let mut attempt = 1;
    loop {
        let id = outbox.store.random.id();
        let claim = insert_claim(partition_key, &id, &keys)?;
        match record(outbox, table, vec![claim]).await {
            Ok(written) => {
                return Ok((id, written.into_iter().next().and_then(|written| written.etag)));
            }
            Err(error) if !error.is_outcome_known() && attempt < ATTEMPTS => attempt += 1,
            Err(error) => return Err(error.without_operation()),
        }
    }
}

fn busy(wanted: &WantedKey) -> Error {
    let message = format!(
        "another write of the entity takes the same key of index `{}` and is under way; where its writer died a worker clears it away after the claim time",
        wanted.kinds.copy.name
    );
    Error::new(ErrorKind::Contended, message).at_row(wanted.name.at())
}

/// Two entities of the transaction take one key.
fn taken_within(wanted: &WantedKey, earlier: &WantedKey, partition_key: &str) -> Error {
    let index = wanted.kinds.copy.name;
    let message = format!(
        "the key of index `{index}` is held by the entity `{}` of the same transaction",
        earlier.primary.escape_debug()
    );
    Error::new(ErrorKind::UniqueViolation, message)
        .with_index(index)
        .at_row(wanted.name.at())
        .held_by(partition_key, &earlier.primary)
}
