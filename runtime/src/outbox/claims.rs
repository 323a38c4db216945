//! Reserves the keys of unique remote indexes before the transaction that takes them, and releases them if the
//! transaction fails. One claim row, in the primary's partition, names all keys that a transaction reserves.

use futures_util::future::join_all;

use super::{
    blocking_claim::{BlockingClaim, OutlastingClaims, SharedBlockingClaim},
    claim_row::{check_wanted_keys, insert_claim_row},
    deadline::WriteDeadline,
    expired::{EntityInTheWay, ExpiredHolder, ExpiredRowsInTheWay, read_entity_in_the_way},
    fast_path::FastPath,
    keys::{ReleasedUniqueKey, WantedUniqueKey},
    left_claims::{ClaimLeftOnDrop, ClaimRow},
    occupied_key::{OccupiedKey, OccupiedKeyAction},
    reservation::settle_reservation,
    state::Outbox,
};
use crate::{
    address::{RowAddress, RowAt},
    batch::{Batch, Condition, Operation},
    entity::Schema,
    error::{Error, ErrorKind, Result},
    guard::Guard,
    plan::outbox::{
        ClaimedKeyAndPrimary, copy_with_owner, id_of_reserving_claim, reservation_row,
        reserve_existing, row_with_written_etag,
    },
    row::{ETag, Row},
    server_clock::later_time,
    store::backoff::{self, Attempt},
};

/// The number of keys that are reserved or released concurrently.
pub(crate) const KEYS_AT_ONCE: usize = 16;

/// The claim row of one transaction, and the keys reserved under it.
#[derive(Debug)]
pub(crate) struct ClaimAndReservedKeys {
    claim: ClaimLeftOnDrop,
    reserved: Vec<ReservedKey>,
    /// Keys in the claim row that were not reserved.
    refused: Vec<RefusedKey>,
    released_unique_keys: Vec<ReleasedUniqueKey>,
    deadline: WriteDeadline,
    /// Whether a reservation whose answer was lost may still be carried out.
    may_reserve_later: bool,
}

/// A key that is or may be reserved.
#[derive(Debug)]
struct ReservedKey {
    wanted: WantedUniqueKey,
    /// The reservation, or `None` after a lost answer.
    row: Option<Row>,
}

/// A key that was not reserved, and why.
#[derive(Debug)]
struct RefusedKey {
    wanted: WantedUniqueKey,
    error: Error,
    /// Whether another attempt under this claim row would also be refused.
    is_final: bool,
}

/// How a commit treats rows that occupy the keys to reserve.
#[derive(Clone, Copy)]
pub(crate) struct OccupiedKeyPolicy<'w> {
    /// The source of an entity that arrives by a move and brings its keys.
    pub(crate) moving_from: Option<&'w RowAddress>,
    /// Receives the expired holders of keys, which are deleted before the next attempt.
    pub(crate) expired: &'w ExpiredRowsInTheWay,
    /// Receives the claim that the next attempt has to wait for.
    pub(crate) claim: &'w SharedBlockingClaim,
    /// Claims that no attempt waits for.
    pub(crate) outlasting: Option<&'w OutlastingClaims>,
}

/// Why a key was not reserved.
enum ReserveError {
    /// The store refused. Nothing was reserved.
    NotReserved(Error),
    /// This claim of the same entity has the key. Nothing was reserved.
    Busy(Error, Box<BlockingClaim>),
    /// This entity has the key and has expired. Nothing was reserved.
    Expired(Error, Box<ExpiredHolder>),
    /// The answer was lost. The reservation may exist, or may still be carried out.
    Unknown(Error),
}

impl From<Error> for ReserveError {
    fn from(error: Error) -> Self {
        Self::NotReserved(error)
    }
}

impl ClaimAndReservedKeys {
    /// Inserts a claim row and reserves every unique key that a transaction takes. Returns `None` if it takes none. If
    /// a key cannot be reserved, releases the others and fails. Fails with a unique violation if another entity holds
    /// the key.
    ///
    /// The caller passes `kept` if it will send the transaction again without the change that was refused. The
    /// function then continues with the claims in `kept`, and puts claims into it if a key cannot be reserved.
    pub(crate) async fn reserve_unique_keys(
        outbox: &Outbox,
        table: &str,
        fast_path: &mut FastPath,
        policy: OccupiedKeyPolicy<'_>,
        mut kept: Option<&mut Option<Self>>,
    ) -> Result<Option<Self>> {
        let wanted_keys = fast_path.unique_keys_to_claim();
        let partition_key =
            fast_path.dirty_rows_to_write().next().map(|dirty| dirty.partition_key.clone());
        let Some(partition_key) = partition_key else { return Ok(None) };
        if wanted_keys.is_empty() {
            return Ok(None);
        }
        check_wanted_keys(outbox, table, &partition_key, &wanted_keys)?;
        let mut released_unique_keys =
            fast_path.released_unique_keys(outbox.store.names().name(table), &partition_key);
        let moving_from = policy.moving_from.cloned();
        released_unique_keys
            .extend(moving_from.map(|primary| ReleasedUniqueKey { primary, address: None }));
        let earlier = match kept.as_deref_mut().and_then(Option::take) {
            Some(earlier) => earlier.narrow_to_keys(outbox, &wanted_keys).await,
            None => None,
        };
        let mut claims = match earlier {
            Some(earlier) => earlier,
            None => Self::insert_claim(outbox, table, partition_key, &wanted_keys).await?,
        };
        claims.released_unique_keys = released_unique_keys;
        match claims.reserve_all_keys(outbox, fast_path, wanted_keys, policy).await {
            Ok(()) => Ok(Some(claims)),
            Err(error) => {
                match kept {
                    Some(kept) if claims.may_send_again() && claims.is_final_for_claim(&error) => {
                        *kept = Some(claims);
                    }
                    // The transaction was not sent and can no longer arrive.
                    _ => claims.release_unique_keys(outbox, true).await,
                }
                Err(error)
            }
        }
    }

    /// Inserts the row of a claim without reservations.
    async fn insert_claim(
        outbox: &Outbox,
        table: &str,
        partition_key: String,
        wanted_keys: &[WantedUniqueKey],
    ) -> Result<Self> {
        // Start the deadline before the claim row exists. A worker that has seen the claim dead for one write
        // deadline then knows that no more reservations arrive.
        let deadline = outbox.start_deadline();
        // Write the claim before its reservations. If the process dies in between, the claim row contains what must
        // be released.
        let (id, etag) = insert_claim_row(outbox, table, &partition_key, wanted_keys).await?;
        let row = ClaimRow { table: table.to_owned(), partition_key, id, etag };
        Ok(Self {
            claim: ClaimLeftOnDrop::new(row, outbox.left_claims.clone()),
            reserved: Vec::new(),
            refused: Vec::new(),
            released_unique_keys: Vec::new(),
            deadline,
            may_reserve_later: false,
        })
    }

    /// Releases the keys that are no longer wanted. If the claim row does not contain all wanted keys, or if a key
    /// could not be released, releases all of them and returns `None`.
    async fn narrow_to_keys(
        mut self,
        outbox: &Outbox,
        wanted_keys: &[WantedUniqueKey],
    ) -> Option<Self> {
        let is_wanted =
            |known: &WantedUniqueKey| wanted_keys.iter().any(|wanted| wanted.is_same_key(known));
        let is_named = |wanted: &WantedUniqueKey| {
            let mut known = self.reserved.iter().map(|key| &key.wanted);
            known.any(|known| known.is_same_key(wanted))
                || self.refused.iter().any(|key| key.wanted.is_same_key(wanted))
        };
        if !self.may_send_again() || !wanted_keys.iter().all(is_named) {
            self.release_unique_keys(outbox, true).await;
            return None;
        }
        let (wanted, unwanted): (Vec<_>, Vec<_>) =
            self.reserved.into_iter().partition(|key| is_wanted(&key.wanted));
        self.reserved = unwanted;
        let is_given_back = self.release_reserved_keys(outbox).await;
        if !is_given_back {
            self.reserved.extend(wanted);
            self.release_unique_keys(outbox, true).await;
            return None;
        }
        self.reserved = wanted;
        Some(self)
    }

    /// Returns whether another transaction may be sent under the claim: every request so far was answered, and no
    /// worker can consider the writer dead yet.
    pub(crate) fn may_send_again(&self) -> bool {
        let deadline = self.deadline.batch_deadline();
        !self.may_reserve_later && deadline.is_none_or(|deadline| deadline.check().is_ok())
    }

    /// Returns whether the error refuses a key for good: no later attempt under this claim row would get the key.
    pub(crate) fn is_final_for_claim(&self, error: &Error) -> bool {
        self.refused.iter().any(|key| key.is_final && key.error.keys() == error.keys())
    }

    /// Reserves all keys concurrently. Keeps the keys that are or may be reserved. Fails with the first failure, after
    /// all requests have ended.
    async fn reserve_all_keys(
        &mut self,
        outbox: &Outbox,
        fast_path: &mut FastPath,
        wanted_keys: Vec<WantedUniqueKey>,
        policy: OccupiedKeyPolicy<'_>,
    ) -> Result<()> {
        fast_path.set_claim(&self.row().id);
        let missing = self.note_reserved_keys(fast_path, wanted_keys);
        if let Some(error) = self.refusal_of(&missing) {
            return Err(error);
        }
        let results = self.reserve_each_key(outbox, &missing).await;
        let mut failure = None;
        let mut expired_holders = Vec::new();
        self.refused.clear();
        for (wanted, result) in missing.into_iter().zip(results) {
            match result {
                Ok(row) => {
                    fast_path.note_inserted_reservation(
                        wanted.position,
                        &wanted.address,
                        row.clone(),
                    );
                    self.reserved.push(ReservedKey { wanted, row: Some(row) });
                }
                // Not kept, because there is nothing to release.
                Err(ReserveError::NotReserved(error)) => {
                    let is_final = error.is_unique_violation();
                    failure.get_or_insert_with(|| error.clone());
                    self.refused.push(RefusedKey { wanted, error, is_final });
                }
                Err(ReserveError::Busy(error, claim)) => {
                    let is_final =
                        policy.outlasting.is_some_and(|claims| claims.has_claim(&claim.id));
                    if !is_final {
                        policy.claim.set_claim(*claim, error.clone());
                    }
                    failure.get_or_insert_with(|| error.clone());
                    self.refused.push(RefusedKey { wanted, error, is_final });
                }
                Err(ReserveError::Expired(error, holder)) => {
                    expired_holders.push((error, *holder));
                }
                // Kept with the reserved keys: releasing a key that was never reserved does nothing.
                Err(ReserveError::Unknown(error)) => {
                    self.may_reserve_later = true;
                    failure.get_or_insert(error);
                    self.reserved.push(ReservedKey { wanted, row: None });
                }
            }
        }
        // Report failures that deleting a holder cannot fix first: no holder is deleted then.
        if let Some(failure) = failure {
            return Err(failure);
        }
        let (errors, holders): (Vec<_>, Vec<_>) = expired_holders.into_iter().unzip();
        policy.expired.add_holders(holders);
        errors.into_iter().next().map_or(Ok(()), Err)
    }

    /// Returns the error of a key that was permanently refused before.
    fn refusal_of(&self, missing: &[WantedUniqueKey]) -> Option<Error> {
        let is_missing = |key: &RefusedKey| missing.iter().any(|it| it.is_same_key(&key.wanted));
        let refused = self.refused.iter().find(|key| key.is_final && is_missing(key));
        refused.map(|key| key.error.clone())
    }

    /// Reserves keys, continuing after a failure: all reserved keys must be known to be released.
    async fn reserve_each_key(
        &self,
        outbox: &Outbox,
        keys: &[WantedUniqueKey],
    ) -> Vec<Result<Row, ReserveError>> {
        let mut results = Vec::with_capacity(keys.len());
        for keys in keys.chunks(KEYS_AT_ONCE) {
            let each = keys.iter().map(|wanted| self.reserve_key(outbox, wanted));
            results.extend(join_all(each).await);
        }
        results
    }

    /// Records the wanted keys that an earlier transaction of this claim has reserved, and returns the others.
    fn note_reserved_keys(
        &mut self,
        fast_path: &mut FastPath,
        wanted_keys: Vec<WantedUniqueKey>,
    ) -> Vec<WantedUniqueKey> {
        let mut missing = Vec::new();
        for wanted in wanted_keys {
            let mut reserved = self.reserved.iter_mut();
            match reserved.find(|key| key.wanted.is_same_key(&wanted)) {
                Some(ReservedKey { wanted: earlier, row: Some(row) }) => {
                    let address = &wanted.address;
                    fast_path.note_inserted_reservation(wanted.position, address, row.clone());
                    *earlier = wanted;
                }
                _ => missing.push(wanted),
            }
        }
        missing
    }

    fn row(&self) -> &ClaimRow {
        &self.claim.row
    }

    /// Records that the transaction was committed, which deleted the claim row.
    pub(crate) fn note_claim_row_deleted(&self) {
        self.claim.note_claim_over();
    }

    /// Returns the address of the entity that wants the key.
    fn primary_of<'c>(&'c self, outbox: &Outbox, wanted: &'c WantedUniqueKey) -> RowAt<'c> {
        let ClaimRow { table, partition_key, .. } = self.row();
        outbox.store.names().row_at(table, partition_key, &wanted.primary)
    }

    /// Reserves one key. Returns the reserved copy with the store's ETag.
    async fn reserve_key(
        &self,
        outbox: &Outbox,
        wanted: &WantedUniqueKey,
    ) -> Result<Row, ReserveError> {
        let primary = self.primary_of(outbox, wanted);
        let copy = &copy_with_owner(&wanted.copy, wanted.kinds, primary, None)?;
        let key = &OccupiedKey {
            outbox,
            primary,
            released: &self.released_unique_keys,
            address: &wanted.address,
            kinds: wanted.kinds,
        };
        let reserved =
            backoff::retry_lost_races(&outbox.store.random, backoff::ATTEMPTS, || async move {
                // Return a failure as a value, to end the loop and show whether the outcome is known.
                match self.reserve_key_once(key, wanted, copy).await {
                    Ok(Some(row)) => Ok(Attempt::Done(Ok(row))),
                    Ok(None) => Ok(Attempt::Raced),
                    Err(error) => Ok(Attempt::Done(Err(error))),
                }
            });
        let contended =
            || Err(backoff::contended_error().at_row(wanted.address.as_row_at()).into());
        reserved.await?.unwrap_or_else(contended)
    }

    /// Makes one attempt to reserve a key. Returns `None` if the row under the key changed in the meantime, which
    /// makes another attempt worthwhile.
    async fn reserve_key_once(
        &self,
        key: &OccupiedKey<'_>,
        wanted: &WantedUniqueKey,
        copy: &Row,
    ) -> Result<Option<Row>, ReserveError> {
        let outbox = key.outbox;
        let row = reservation_row(copy, &self.row().id, None)?;
        // Insert without reading first, because most keys are free.
        match self.write_copy(outbox, wanted, Operation::insert(row.clone())).await {
            Ok(etag) => return Ok(Some(row_with_written_etag(&row, etag))),
            Err(error) if error.is_conflict() && error.is_lost_race() => {}
            Err(error) => return self.find_reservation(key, wanted, error).await,
        }
        // The key is occupied, unless the row is gone by now.
        let Some(found) = outbox.store.read_row(wanted.address.as_row_at()).await? else {
            return Ok(None);
        };
        // The answer to an earlier attempt was lost, and the row is this claim's reservation.
        if id_of_reserving_claim(&found)? == Some(&self.row().id) {
            return Ok(Some(found));
        }
        let mut action = key.decide_action(&found).await?;
        if let OccupiedKeyAction::Busy(claim) = &action
            && claim.mark_dead_if_left(outbox).await?
        {
            action = key.decide_action(&found).await?;
        }
        match action {
            OccupiedKeyAction::Violation(error, Some(holder)) => {
                find_expired_holder(outbox, key.kinds.schema, holder, error).await
            }
            OccupiedKeyAction::Violation(error, None) => Err(ReserveError::NotReserved(error)),
            OccupiedKeyAction::Pending(error) => Err(ReserveError::NotReserved(error)),
            OccupiedKeyAction::Busy(claim) => {
                Err(ReserveError::Busy(busy_error(outbox, wanted, &claim), Box::new(claim)))
            }
            OccupiedKeyAction::Remove(operation) => {
                match self.write_copy(outbox, wanted, operation).await {
                    Err(error) if !error.is_lost_race() => Err(ReserveError::NotReserved(error)),
                    // This writer removed it or another one changed it. The next attempt reads it again.
                    _ => Ok(None),
                }
            }
            OccupiedKeyAction::TakeOver(from) => {
                match self.take_over_row(outbox, wanted, copy, &found, from.as_ref()).await {
                    Ok(row) => Ok(Some(row)),
                    Err(error) if error.is_lost_race() => Ok(None),
                    Err(error) => self.find_reservation(key, wanted, error).await,
                }
            }
        }
    }

    async fn write_copy(
        &self,
        outbox: &Outbox,
        wanted: &WantedUniqueKey,
        operation: Operation,
    ) -> Result<Option<ETag>> {
        let table = &wanted.address.row.table;
        let written =
            self.deadline.write_copy(&outbox.store, table, wanted.kinds, operation).await?;
        Ok(written.etag)
    }

    /// Puts the claim on an existing row under its ETag. The entity's own copy keeps its content, which readers need
    /// if the transaction fails.
    async fn take_over_row(
        &self,
        outbox: &Outbox,
        wanted: &WantedUniqueKey,
        copy: &Row,
        found: &Row,
        from: Option<&RowAddress>,
    ) -> Result<Row> {
        // `None` means the entity's own copy. See `OccupiedKey::decide_action`.
        let primary = self.primary_of(outbox, wanted);
        let is_own = from.is_none_or(|from| from.as_row_at() == primary);
        // Replace an encrypted copy completely, because a merge cannot change its encrypted content.
        if is_own && !wanted.kinds.schema.sealed {
            let operation = reserve_existing(found, &self.row().id)?;
            let table = &wanted.address.row.table;
            let written = self.deadline.write_unencrypted(&outbox.store, table, operation).await?;
            let etag = written.etag;
            return Ok(row_with_written_etag(&reservation_row(found, &self.row().id, from)?, etag));
        }
        let row = reservation_row(copy, &self.row().id, from)?;
        let replace = Operation::replace(row.clone(), Condition::for_etag(found.etag()));
        let etag = self.write_copy(outbox, wanted, replace).await?;
        Ok(row_with_written_etag(&row, etag))
    }

    /// Reads the row after a failed request to find out whether the reservation was made. Fails with `Unknown` if
    /// there is no reservation and the request may still be carried out; with a unique violation in it if the row is
    /// another entity's. The transaction is not sent then, so the caller's write has certainly failed.
    async fn find_reservation(
        &self,
        key: &OccupiedKey<'_>,
        wanted: &WantedUniqueKey,
        error: Error,
    ) -> Result<Option<Row>, ReserveError> {
        if error.is_certainly_not_executed() {
            return Err(ReserveError::NotReserved(error));
        }
        let found = key.outbox.store.read_row(wanted.address.as_row_at()).await;
        let Ok(Some(found)) = found else { return Err(ReserveError::Unknown(error)) };
        if matches!(id_of_reserving_claim(&found), Ok(Some(id)) if id == self.row().id) {
            return Ok(Some(found));
        }
        // An unanswered request may be carried out after this read, once the holder is gone.
        match key.decide_action(&found).await {
            Ok(OccupiedKeyAction::Violation(violation, holder))
                if holder.is_none() || !key.kinds.schema.can_expire() =>
            {
                Err(ReserveError::Unknown(violation))
            }
            _ => Err(ReserveError::Unknown(error)),
        }
    }

    /// Returns the operation that deletes the claim row under its ETag, as part of the transaction. If the claim was
    /// marked dead in the meantime, this operation fails the transaction.
    pub(crate) fn delete_operation(&self, outbox: &Outbox) -> Result<Option<Operation>> {
        let delete = self.row().delete_operation()?;
        Ok(outbox.guards.value_if_guarded(Guard::ClaimInTransaction, delete))
    }

    async fn release_reserved_key(&self, outbox: &Outbox, wanted: &WantedUniqueKey) -> Result<()> {
        let key = ClaimedKeyAndPrimary {
            address: wanted.address.clone(),
            primary: wanted.primary.clone(),
        };
        settle_reservation(
            outbox,
            &self.row().table,
            &self.row().partition_key,
            &self.row().id,
            &key,
        )
        .await
    }

    /// Releases every reserved key. Returns whether all of them were released.
    async fn release_reserved_keys(&self, outbox: &Outbox) -> bool {
        let mut is_all_released = true;
        for keys in self.reserved.chunks(KEYS_AT_ONCE) {
            let each = keys.iter().map(|key| self.release_reserved_key(outbox, &key.wanted));
            is_all_released &= join_all(each).await.iter().all(Result::is_ok);
        }
        is_all_released
    }

    /// Releases the reserved keys after the transaction failed, then deletes the claim row. If the transaction or a
    /// reservation may still be carried out, first marks the claim dead and leaves it to a worker.
    ///
    /// Ignores failures, because a worker resolves what is left of the claim.
    pub(crate) async fn release_unique_keys(&self, outbox: &Outbox, is_outcome_known: bool) {
        let nothing_may_come = is_outcome_known && !self.may_reserve_later;
        if !nothing_may_come {
            match self.row().mark_dead(&outbox.store).await {
                Ok(()) => self.claim.note_claim_over(),
                // The mark failed, so the transaction may still commit. Do not touch its keys.
                Err(_) => return,
            }
        }
        let is_all_released = self.release_reserved_keys(outbox).await;
        // A delayed request may still reserve a key. Keep the claim row for a worker.
        if !is_all_released || !nothing_may_come {
            return;
        }
        let row = self.row();
        let delete = row.delete_operation().and_then(|delete| Batch::single(&row.table, delete));
        if let Ok(delete) = delete
            // A worker resolves and deletes a claim row that is left.
            && outbox.store.apply(&delete).await.is_ok()
        {
            self.claim.note_claim_over();
        }
    }
}

/// Handles a key that the entity `holder` has. Fails with `violation` if the entity is alive. Returns `None` if
/// the entity has disappeared in the meantime, which makes another attempt worthwhile.
async fn find_expired_holder(
    outbox: &Outbox,
    schema: &'static Schema,
    holder: RowAddress,
    violation: Error,
) -> Result<Option<Row>, ReserveError> {
    if !schema.can_expire() {
        return Err(ReserveError::NotReserved(violation));
    }
    let RowAddress { table, partition_key, row_key, .. } = holder;
    match read_entity_in_the_way(outbox, &table, schema, (&partition_key, &row_key)).await? {
        EntityInTheWay::Gone => Ok(None),
        EntityInTheWay::Expired(row) => {
            let holder = ExpiredHolder { table, schema, row };
            Err(ReserveError::Expired(violation, Box::new(holder)))
        }
        EntityInTheWay::Stays => Err(ReserveError::NotReserved(violation)),
    }
}

/// Returns the error for a key that another write of the same entity has reserved.
fn busy_error(outbox: &Outbox, wanted: &WantedUniqueKey, claim: &BlockingClaim) -> Error {
    let index = wanted.kinds.copy.name;
    let since = claim.since.map_or_else(String::new, |since| {
        let until = later_time(since, outbox.options.claim_time);
        format!(" since {since} (the claim time ends at {until})")
    });
    let message = format!(
        "another write of the entity has been claiming the same key of index `{index}`{since}; try again later. If \
         its writer died, a worker removes the claim after the claim time, or a client with that writer's `writer_id` \
         removes it at once"
    );
    Error::new(ErrorKind::Contended, message).at_row(wanted.address.as_row_at())
}
