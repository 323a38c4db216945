//! The writer's claims: keys of unique indexes in other partitions are reserved before the
//! transaction that takes them, and given back where it does not come about.

use futures_util::future::join_all;

use super::{
    deadline::Flight,
    fast_path::{Commit, read_row},
    guard::Guard,
    occupied_key::{Contender, Left, Meeting},
    reservation::settle,
};
use crate::{
    batch::{Condition, Operation},
    entity::CopyFamily,
    error::{Error, ErrorKind, Result},
    plan::outbox::{
        Claimed, CopyAddress, MOST_CLAIMED, Owner, Place, claim_key, claim_of, claimed, killed,
        owned_copy, renamed, reserved, written,
    },
    row::{ETag, Row},
    store::backoff,
    table::Client,
};

/// Reservations in flight.
const AT_ONCE: usize = 16;
/// Claims whose answer may be lost.
const ATTEMPTS: u32 = 4;

/// A key that the transaction takes.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    /// The primary, by its place in the commit, and the row elsewhere by its place there.
    pub(crate) at: (usize, usize),
    pub(crate) name: CopyAddress,
    pub(crate) kinds: CopyFamily,
    pub(crate) primary: String,
    pub(crate) copy: Row,
}

/// The claim of one transaction.
#[derive(Debug)]
pub(crate) struct Claims {
    table: String,
    partition_key: String,
    id: String,
    /// The version of its row.
    version: Option<ETag>,
    wishes: Vec<Wish>,
    heirs_of: Vec<Left>,
    flight: Flight,
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
        client: &Client,
        table: &str,
        commit: &mut Commit,
        from: Option<Place>,
    ) -> Result<Option<Self>> {
        let wishes = commit.wishes();
        let Some(partition_key) = commit.dirty().next().map(|dirty| dirty.partition_key.clone())
        else {
            return Ok(None);
        };
        if wishes.is_empty() {
            return Ok(None);
        }
        if wishes.len() > MOST_CLAIMED {
            let message = format!(
                "a transaction takes at most {MOST_CLAIMED} unique values in other partitions, and this takes {}",
                wishes.len()
            );
            return Err(Error::new(ErrorKind::TooLarge, message).in_table(table));
        }
        for (at, wish) in wishes.iter().enumerate() {
            if let Some(earlier) = wishes.iter().take(at).find(|earlier| earlier.name == wish.name)
            {
                return Err(taken_within(wish, earlier, &partition_key));
            }
        }
        let mut heirs_of = commit.left(table, &partition_key);
        heirs_of.extend(from.map(|place| Left { place, name: None }));
        let flight = Flight::begin(client);
        let (id, version) = put_up(client, table, &partition_key, &wishes).await?;
        let (table, is_unsure) = (table.to_owned(), false);
        let mut claims =
            Self { table, partition_key, id, version, wishes, heirs_of, flight, is_unsure };
        match claims.reserve_all(client, commit).await {
            Ok(()) => Ok(Some(claims)),
            Err(error) => {
                claims.release(client, true).await;
                Err(error)
            }
        }
    }

    async fn reserve_all(&mut self, client: &Client, commit: &mut Commit) -> Result<()> {
        let mut reserved = Vec::new();
        for wishes in self.wishes.chunks(AT_ONCE) {
            let each = wishes.iter().map(|wish| self.reserve(client, wish));
            reserved.extend(join_all(each).await);
        }
        let (mut refused, mut is_unsure) = (None, false);
        let mut settled = Vec::new();
        for (wish, reserved) in std::mem::take(&mut self.wishes).into_iter().zip(reserved) {
            match reserved {
                Ok(row) => commit.reserved(wish.at, &wish.name, row),
                Err(Refused::For(error)) => {
                    refused.get_or_insert(error);
                    continue;
                }
                Err(Refused::Unknown(error)) => {
                    is_unsure = true;
                    refused.get_or_insert(error);
                }
            }
            settled.push(wish);
        }
        // Where nothing was reserved there is nothing to give back.
        (self.wishes, self.is_unsure) = (settled, is_unsure);
        commit.claimed_by(&self.id);
        refused.map_or(Ok(()), Err)
    }

    fn place(&self, wish: &Wish) -> Place {
        Place::new(&self.table, &self.partition_key, &wish.primary)
    }

    /// The reservation of one key, in the version that the store gave it.
    async fn reserve(&self, client: &Client, wish: &Wish) -> Result<Row, Refused> {
        let place = self.place(wish);
        let Place { table, partition_key, row_key } = &place;
        let owner = Owner { table, partition_key, row_key };
        let copy = owned_copy(&wish.copy, wish.kinds, owner, None)?;
        let contender = Contender {
            client,
            table,
            place: &place,
            heirs_of: &self.heirs_of,
            name: &wish.name,
            kinds: wish.kinds,
        };
        for attempt in 0..backoff::ATTEMPTS {
            let row = reserved(&copy, &self.id, None)?;
            let inserted = self.send(client, wish, Operation::insert(row.clone())).await;
            match inserted {
                Ok(version) => return Ok(written(&row, version)),
                Err(error) if error.is_conflict() && error.lost_race() => {}
                Err(error) => return self.after_loss(client, wish, error).await,
            }
            let Some(found) = read_row(client, &wish.name).await? else { continue };
            if claim_of(&found)? == Some(&self.id) {
                return Ok(found);
            }
            let taken = match contender.meet(&found).await? {
                Meeting::Violation(error) | Meeting::Pending(error) => {
                    return Err(Refused::For(error));
                }
                Meeting::Busy => return Err(Refused::For(busy(wish))),
                Meeting::Remove(operation) => {
                    match self.send(client, wish, operation).await {
                        Err(error) if !error.lost_race() => return Err(Refused::For(error)),
                        _ => {}
                    }
                    None
                }
                Meeting::Adopt(from) => {
                    Some(self.adopt(client, wish, &copy, &found, from.as_ref()).await)
                }
            };
            match taken {
                Some(Ok(row)) => return Ok(row),
                Some(Err(error)) if !error.lost_race() => {
                    return self.after_loss(client, wish, error).await;
                }
                _ => backoff::wait(client, attempt).await,
            }
        }
        let CopyAddress { table, partition_key, row_key, .. } = &wish.name;
        Err(Refused::For(backoff::contended().in_table(table).at_keys(partition_key, row_key)))
    }

    async fn send(
        &self,
        client: &Client,
        wish: &Wish,
        operation: Operation,
    ) -> Result<Option<ETag>> {
        let written = self.flight.write(client, &wish.name.table, wish.kinds, operation).await?;
        Ok(written.etag)
    }

    /// Takes over a row that is there: what it holds stays as long as it is the primary's own.
    async fn adopt(
        &self,
        client: &Client,
        wish: &Wish,
        copy: &Row,
        found: &Row,
        from: Option<&Place>,
    ) -> Result<Row> {
        let is_own = from.is_none_or(|from| from.is(&self.place(wish)));
        if is_own && !wish.kinds.schema.sealed {
            let operation = renamed(found, &self.id)?;
            let request = client.apply_one(&wish.name.table, operation);
            let version = self.flight.run(client, request).await?.etag;
            return Ok(written(&reserved(found, &self.id, from)?, version));
        }
        let row = reserved(copy, &self.id, from)?;
        let replace = Operation::replace(row.clone(), Condition::for_etag(found.etag()));
        let version = self.send(client, wish, replace).await?;
        Ok(written(&row, version))
    }

    /// A request failed: the row tells whether it was carried out. One that was not may come yet.
    async fn after_loss(&self, client: &Client, wish: &Wish, error: Error) -> Result<Row, Refused> {
        if error.is_outcome_known() {
            return Err(Refused::For(error));
        }
        match read_row(client, &wish.name).await {
            Ok(Some(found)) if matches!(claim_of(&found), Ok(Some(id)) if id == self.id) => {
                Ok(found)
            }
            _ => Err(Refused::Unknown(error)),
        }
    }

    /// What makes the claim true, in the transaction.
    pub(crate) fn redeemed(&self, client: &Client) -> Result<Option<Operation>> {
        if !client.outbox().guards.hold(Guard::ClaimInTransaction) {
            return Ok(None);
        }
        let seen = Condition::for_etag(self.version.clone());
        Operation::delete(&self.partition_key, &claim_key(&self.id), seen).map(Some)
    }

    async fn give_back(&self, client: &Client, wish: &Wish) -> Result<()> {
        let key = Claimed { name: wish.name.clone(), primary: wish.primary.clone() };
        settle(client, &self.table, &self.partition_key, &self.id, &key).await
    }

    /// Gives back what was reserved for a transaction that did not come about. Where it may come
    /// yet, its claim is called dead first. What fails here is left to a worker.
    pub(crate) async fn release(&self, client: &Client, is_definite: bool) {
        let is_sure = is_definite && !self.is_unsure;
        let mut version = self.version.clone();
        if !is_sure {
            let seen = Condition::for_etag(version);
            let Ok(operation) = killed(&self.partition_key, &self.id, seen) else { return };
            match client.apply_one(&self.table, operation).await {
                Ok(written) => version = written.etag,
                Err(_) => return,
            }
        }
        let mut is_settled = true;
        for wishes in self.wishes.chunks(AT_ONCE) {
            let each = wishes.iter().map(|wish| self.give_back(client, wish));
            is_settled &= join_all(each).await.iter().all(Result::is_ok);
        }
        if !is_settled || !is_sure {
            return;
        }
        let seen = Condition::for_etag(version);
        if let Ok(delete) = Operation::delete(&self.partition_key, &claim_key(&self.id), seen) {
            let _ = client.apply_one(&self.table, delete).await;
        }
    }
}

/// Puts the claim's row up. One whose answer was lost is forgotten: workers remove it.
async fn put_up(
    client: &Client,
    table: &str,
    partition_key: &str,
    wishes: &[Wish],
) -> Result<(String, Option<ETag>)> {
    let keys = wishes
        .iter()
        .map(|wish| Claimed { name: wish.name.clone(), primary: wish.primary.clone() });
    let keys: Vec<Claimed> = keys.collect();
    let mut attempt = 1;
    loop {
        let id = client.outbox().chance.id();
        let claim = claimed(partition_key, &id, &keys)?;
        match client.outbox().record(client, table, vec![claim]).await {
            Ok(written) => {
                return Ok((id, written.into_iter().next().and_then(|written| written.etag)));
            }
            Err(error) if !error.is_outcome_known() && attempt < ATTEMPTS => attempt += 1,
            Err(error) => return Err(error.without_operation()),
        }
    }
}

fn busy(wish: &Wish) -> Error {
    let message = format!(
        "another write of the entity takes the same key of index `{}` and is under way; where its writer died a worker clears it away after the claim time",
        wish.kinds.copy.name
    );
    Error::new(ErrorKind::Contended, message)
        .in_table(&wish.name.table)
        .at_keys(&wish.name.partition_key, &wish.name.row_key)
}

/// Two entities of the transaction take one key.
fn taken_within(wish: &Wish, earlier: &Wish, partition_key: &str) -> Error {
    let index = wish.kinds.copy.name;
    let message = format!(
        "the key of index `{index}` is held by the entity `{}` of the same transaction",
        earlier.primary.escape_debug()
    );
    Error::new(ErrorKind::UniqueViolation, message)
        .with_index(index)
        .in_table(&wish.name.table)
        .at_keys(&wish.name.partition_key, &wish.name.row_key)
        .held_by(partition_key, &earlier.primary)
}
