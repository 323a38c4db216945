//! Commits changes: reads what they need, plans and sends one entity group transaction, and plans again
//! if another writer changed a row of the framework in between.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use futures_util::future::{BoxFuture, try_join_all};

use super::{
    blob_writes::BlobUploads,
    blocking_claim::SharedBlockingClaim,
    change_tokens::plan_effect,
    claims::ClaimWithReservations,
    expired::{ExpiredHolder, ExpiredRowsInTheWay},
    expiry::{may_write_expiring_row, write_markers_of_effects},
    failure_cause::{FailureCause, workers_behind_error},
    outbox_plan::{ExtraRows, OutboxPlan},
    state::Outbox,
    unique_violation::OccupiedLocalCopy,
};
use crate::{
    address::RowAt,
    batch::{Deadline, Written},
    entity::{BackgroundWork, Schema},
    error::{Error, ErrorKind, Result, ServiceCode},
    guard::Guard,
    limits::BATCH_OPERATIONS,
    plan::{
        Change, Effect, Role, StoredList, TransactionPlan, list_deltas,
        wide::{maximum_parts_of_versions, row_key_of_part},
    },
    row::{ETag, Row},
    store::{
        backoff::{self, Attempt},
        dated::create_dated_table,
        lists::read_local_list,
        sealing::plan::OperationToSeal,
    },
};

/// The result of one committed change.
#[derive(Debug, Clone)]
pub(crate) struct CommittedChange {
    /// The store's answer for the primary; `None` if there was nothing to write.
    pub(crate) written: Option<Written>,
    /// The whole primary after the change, or only the written properties after an insert-or-merge that
    /// read nothing. `None` after a deletion or a step of a move, and if the verb does not know all
    /// properties of the primary, such as a patch that is sent as one merge.
    pub(crate) row: Option<Row>,
}

/// The results of changes that were committed together.
#[derive(Debug)]
pub(crate) struct Committed {
    pub(crate) outcomes: Vec<CommittedChange>,
    /// The writes of remote copies and lists that still go on.
    pub(crate) pending: BackgroundWork,
}

// Futures of rare paths are boxed in this file: the future of every write would have room for them.

/// Writes all changes, which are in one partition, or none. An error's `failed_index` is the
/// position of the change that failed.
pub(crate) async fn commit_changes(
    outbox: &Arc<Outbox>,
    table: &str,
    changes: &[Change],
) -> Result<Committed> {
    commit_with_rows(outbox, table, changes, &ExtraRows::default(), None).await
}

/// Writes all changes and the extra rows in one transaction, or none of them. Fails with `is_contended`, with
/// nothing written, after the deadline.
pub(crate) async fn commit_with_rows(
    outbox: &Arc<Outbox>,
    table: &str,
    changes: &[Change],
    extra_rows: &ExtraRows,
    deadline: Option<&Deadline>,
) -> Result<Committed> {
    // Writers of this client that read before they write wait for each other.
    let read = changes.iter().filter(|change| change.reads_again()).map(Change::keys);
    let locks = read.map(|keys| outbox.locks.key_of_row(table, keys)).collect();
    let commit = commit_in_turn(outbox, table, changes, extra_rows, deadline);
    outbox.locks.run_with_locks(locks, commit).await
}

async fn commit_in_turn(
    outbox: &Arc<Outbox>,
    table: &str,
    changes: &[Change],
    extra_rows: &ExtraRows,
    deadline: Option<&Deadline>,
) -> Result<Committed> {
    let state = CommitState { deadline, ..CommitState::new(extra_rows) };
    let mut deletions = 0..outbox.options.attempts;
    loop {
        let committed = commit_in_attempts(outbox, table, changes, &state).await;
        let holders = state.expired.take_holders();
        if committed.is_ok() || holders.is_empty() || deletions.next().is_none() {
            return committed;
        }
        Box::pin(delete_holders(outbox, &holders)).await?;
    }
}

/// Deletes expired holders of unique values with their copies, each by a commit of its own. A holder that
/// changed meanwhile is left: the next attempt reads it again.
async fn delete_holders(outbox: &Arc<Outbox>, holders: &[ExpiredHolder]) -> Result<()> {
    for holder in holders {
        let (changes, extra_rows) = ([holder.deletion(outbox).await?], ExtraRows::default());
        let state = CommitState::new(&extra_rows);
        match commit_in_attempts(outbox, &holder.table, &changes, &state).await {
            // The value is free once the copy is gone. What fails now is left to a worker, and the next
            // attempt removes the copy in the way by itself.
            Ok(committed) => drop(committed.pending.wait().await),
            Err(error) if error.lost_race() => {}
            // Without its position, which is none of the caller's changes.
            Err(error) => return Err(error.without_operation()),
        }
    }
    Ok(())
}

/// Writes all changes and the extra rows in one transaction, in as many attempts as the options allow. Fails
/// with a unique violation, and keeps the holders in the state, if expired entities hold values that the
/// changes take.
async fn commit_in_attempts(
    outbox: &Arc<Outbox>,
    table: &str,
    changes: &[Change],
    state: &CommitState<'_>,
) -> Result<Committed> {
    let attempts = outbox.options.attempts;
    let attempt = || {
        // Boxed: callers hold the future of a commit, and an attempt's is several kilobytes.
        backoff::retry(&outbox.store.random, attempts, || {
            Box::pin(try_commit_once(outbox, table, changes, state))
        })
    };
    let committed = match attempt().await {
        // A layer may call tables otherwise, so the name in the error decides nothing: the table is made
        // where it is missing, and a table that is missing elsewhere fails the second attempt too.
        Err(error) if error.is_table_missing() => {
            if !Box::pin(make_dated_table(outbox, table, changes)).await? {
                // Without the table, the entity to change or delete does not exist: the error tells
                // the caller.
                return Err(error);
            }
            attempt().await?
        }
        committed => committed?,
    };
    if let Some(committed) = committed {
        return Ok(committed);
    }
    let (partition_key, row_key) = changes.first().map(Change::keys).unwrap_or_default();
    Err(backoff::contended_attempts_error(attempts).in_table(table).at_keys(partition_key, row_key))
}

/// Creates the missing table of changes that insert into a dated table. Returns `false` without an
/// insert or a dated table: an entity to change or delete cannot be in a missing table.
async fn make_dated_table(outbox: &Outbox, table: &str, changes: &[Change]) -> Result<bool> {
    let schemas =
        changes.iter().filter(|change| change.may_insert_entity()).filter_map(Change::schema);
    match schemas.into_iter().find(|schema| schema.dated.is_some()) {
        Some(schema) => create_table_of_period(outbox, schema, table).await,
        None => Ok(false),
    }
}

/// Creates a table if its name is that of a dated table of the entity; returns `false` if it is not.
///
/// # Errors
///
/// `is_not_found`, naming the floor, for a table below it.
pub(crate) async fn create_table_of_period(
    outbox: &Outbox,
    schema: &'static Schema,
    table: &str,
) -> Result<bool> {
    let Some(dated) = schema.dated.as_ref() else { return Ok(false) };
    let Some(period) = dated.period_of(table, outbox.store.table_case()) else { return Ok(false) };
    let reads_floor = outbox.guards.guard_holds(Guard::FloorRead);
    create_dated_table(&outbox.store, schema, dated, period, (table, reads_floor)).await?;
    // A table that another writer made meanwhile serves too.
    Ok(true)
}

/// The state that all attempts of one commit share.
struct CommitState<'s> {
    extra_rows: &'s ExtraRows,
    /// The last moment at which the transaction may be sent; `None` if it is not bound.
    deadline: Option<&'s Deadline>,
    blobs: BlobUploads,
    expired: ExpiredRowsInTheWay,
    claim_in_the_way: SharedBlockingClaim,
}

impl<'s> CommitState<'s> {
    fn new(extra_rows: &'s ExtraRows) -> Self {
        Self {
            extra_rows,
            deadline: None,
            blobs: BlobUploads::default(),
            expired: ExpiredRowsInTheWay::default(),
            claim_in_the_way: SharedBlockingClaim::default(),
        }
    }
}

/// Makes one attempt at a commit: reads what the changes need, plans the transaction, reserves
/// unique keys, and sends. Returns `Raced` or `Busy` if the commit has to begin again.
async fn try_commit_once(
    outbox: &Arc<Outbox>,
    table: &str,
    changes: &[Change],
    state: &CommitState<'_>,
) -> Result<Attempt<Committed>> {
    let CommitState { extra_rows, deadline, blobs, expired, claim_in_the_way } = state;
    // An attempt that meets the claim once more takes six requests, this look one.
    if claim_in_the_way.has_claim()
        && let Some(error) = Box::pin(claim_in_the_way.error_if_claim_alive(outbox)).await?
    {
        return Ok(Attempt::Busy(error));
    }
    let effects = try_join_all(changes.iter().enumerate().map(|(verb, change)| async move {
        match expired.replacement_effect_of_verb(verb) {
            Some(effect) => Ok(effect),
            None => effect_of_change(outbox, table, verb, change).await,
        }
    }))
    .await?;
    // The blobs are there before a row points to them.
    let effects = blobs.store_blobs(outbox, table, effects).await?;
    let blob_deadline = blobs.send_deadline();
    let deadline = Deadline::earlier(*deadline, blob_deadline.as_ref());
    // The markers are written before the rows. A marker that leads to no row costs one look of a
    // worker; a row without a marker would never be swept.
    let marked = match effects.iter().any(|effect| may_write_expiring_row(effect)) {
        true => write_markers_of_effects(outbox, table, &effects).await?,
        false => None,
    };
    // Sent by the earliest of these moments: a sweep may delete older uploads and markers.
    let deadline = Deadline::earlier(deadline.as_ref(), marked.as_ref());
    let lists = read_lists(outbox, table, &effects).await?;
    // The remote copies are read before the commit. What is written after it under these ETags cannot
    // overwrite a newer version of the primary.
    let mut outbox_plan = OutboxPlan::plan_outbox_rows(outbox, table, &effects, extra_rows).await;
    if outbox_plan.needs_claims() {
        // Checked before anything is reserved for a transaction that is too large.
        let planned = TransactionPlan::new(
            &effects,
            &lists,
            &HashSet::new(),
            &HashMap::new(),
            "",
            outbox.guards,
        )?
        .planned_operations()
        .len();
        check_operation_count(table, planned + outbox_plan.maximum_operation_count())?;
    }
    let claimed = match outbox_plan.needs_claims() {
        true => Box::pin(outbox_plan.claim_unique_keys(outbox, expired, claim_in_the_way)).await,
        false => Ok(None),
    };
    let claims = match claimed {
        Ok(claims) => claims,
        // Another write of this entity has reserved the key. It may be over at the next attempt.
        Err(error) if error.is_contended() => return Ok(Attempt::Busy(error)),
        Err(error) => {
            return Err(match outbox_plan.verb_at_fault(&effects, &error) {
                Some(verb) if error.is_unique_violation() => error.at_operation(verb),
                _ => error,
            });
        }
    };
    let deadline = deadline.as_ref();
    let plan = PlannedChanges { table, changes, effects: &effects, lists: &lists, state, deadline };
    // Claims are there and name this attempt alone: another attempt makes new ones.
    let committed = plan.send(outbox, outbox_plan, claims.as_ref()).await;
    // Keys that were reserved for a transaction that failed are released at once: until then, other
    // entities that want them get a unique violation.
    match (&claims, &committed) {
        (Some(claims), Ok(None) | Err(_)) => {
            let is_known = committed.as_ref().err().is_none_or(Error::is_certainly_not_executed);
            Box::pin(claims.release_keys(outbox, is_known)).await;
        }
        (Some(claims), Ok(Some(_))) => claims.note_claim_row_deleted(),
        (None, _) => {}
    }
    Ok(committed?.map_or(Attempt::Raced, Attempt::Done))
}

/// The changes of one attempt, with the effects and lists that were read for them.
struct PlannedChanges<'p> {
    table: &'p str,
    changes: &'p [Change],
    effects: &'p [Arc<Effect>],
    lists: &'p BTreeMap<String, Option<StoredList>>,
    state: &'p CommitState<'p>,
    /// The last moment at which the transaction may be sent; `None` if it is not bound.
    deadline: Option<&'p Deadline>,
}

impl PlannedChanges<'_> {
    /// Sends the transaction. Plans and sends it again if a row of the framework was not as
    /// planned. Returns `None` if another writer was first, so that everything has to be read
    /// again.
    async fn send(
        &self,
        outbox: &Arc<Outbox>,
        mut outbox_plan: OutboxPlan<'_>,
        claims: Option<&ClaimWithReservations>,
    ) -> Result<Option<Committed>> {
        let Self { table, changes, effects, lists, state, deadline } = *self;
        // A copy that was not there to be deleted is left out of this plan only. A writer that creates it
        // changes the primary's ETag as well, and a new plan from that version deletes it.
        let mut missing = HashSet::new();
        let (mut found, mut looked_up) = (HashMap::new(), HashSet::new());
        let generation = new_generation(outbox, effects);
        loop {
            // The plan is made anew each time, since a row that is missing changes its positions.
            let mut transaction =
                TransactionPlan::new(effects, lists, &missing, &found, &generation, outbox.guards)?;
            outbox_plan.add_rows(outbox, &mut transaction, claims).await?;
            let failure = match send(outbox, table, &transaction, deadline).await {
                Ok(written) => {
                    let outcomes = outcomes(effects, &transaction, &written);
                    // The commit stands. What fails from here on is left to a worker and fails
                    // nothing.
                    let pending = outbox_plan.run_fast_path(outbox, &transaction, &written).await;
                    return Ok(Some(Committed { outcomes, pending }));
                }
                Err(error) => error,
            };
            match FailureCause::find_cause(&failure, &transaction, changes) {
                FailureCause::Caller(verb) => {
                    if self.is_expired_in_the_way(outbox, verb, &failure).await? {
                        return Ok(None);
                    }
                    // A lost race of the caller's own condition is not retried: only the caller can judge
                    // it.
                    return Err(failure.at_operation(verb));
                }
                FailureCause::OccupiedKey(verb, family, copy) => {
                    let Some(effect) = effects.get(verb) else { return Err(failure) };
                    let occupied = OccupiedLocalCopy { table, copy, family, effect };
                    // The store's error tells only that a row exists. Reading the row tells to whom
                    // it belongs.
                    let violation = Box::pin(occupied.find_violation(outbox)).await?;
                    let Some(violation) = violation else { return Ok(None) };
                    if let (Some(row), Some(schema)) = (violation.expired, effect.schema)
                        && !writes_entity(&transaction, schema, &row)?
                    {
                        let table = table.to_owned();
                        state.expired.add_holders([ExpiredHolder { table, schema, row }]);
                    }
                    return Err(violation.error.at_operation(verb));
                }
                // The retries below end: each copy is left out once, and each dirty row is merged once.
                FailureCause::MissingCopy(row_key) if missing.insert(row_key.clone()) => {}
                FailureCause::MissingPart(verb) if looked_up.insert(verb) => {
                    let parts = Box::pin(parts_of(outbox, table, &transaction, verb)).await?;
                    if parts.values().all(Option::is_none) {
                        return Err(failure.at_operation(verb));
                    }
                    found.extend(parts);
                }
                // A part that was found has changed since.
                FailureCause::MissingPart(_) => return Ok(None),
                FailureCause::OutboxRow(role) if outbox_plan.prepare_retry(outbox, role) => {}
                FailureCause::MissingCopy(_) | FailureCause::OutboxRow(_) | FailureCause::Other => {
                    return Err(failure.without_operation());
                }
                FailureCause::Race => return Ok(None),
                FailureCause::WorkersBehind(dirty) => {
                    let primary = outbox_plan.primary_of_dirty_row(dirty);
                    return Err(primary.map_or(failure, workers_behind_error));
                }
            }
        }
    }
}

impl PlannedChanges<'_> {
    /// Returns whether a verb failed because of an expired row: an insert found one in its way, or
    /// the one that it was to replace has been renewed or swept meanwhile.
    // Boxed, as it is rare: the future of every commit would have room for it.
    fn is_expired_in_the_way<'s>(
        &'s self,
        outbox: &'s Outbox,
        verb: usize,
        failure: &'s Error,
    ) -> BoxFuture<'s, Result<bool>> {
        Box::pin(async move {
            let Self { table, changes, state, .. } = self;
            // This insert was to replace an expired row. A lost race means that it was renewed or
            // swept.
            if state.expired.forget_replaced(verb) {
                return Ok(failure.lost_race());
            }
            // A move has its own judgement of what is in its way.
            if !failure.row_exists() || state.extra_rows.from.is_some() {
                return Ok(false);
            }
            let Some(change) = changes.get(verb) else { return Ok(false) };
            state.expired.can_retry_occupied_insert(outbox, table, (verb, change)).await
        })
    }
}

/// Returns whether a transaction writes a row of the entity whose primary is `holder`.
fn writes_entity(
    transaction: &TransactionPlan,
    schema: &'static Schema,
    holder: &Row,
) -> Result<bool> {
    let parts = if schema.is_wide() { maximum_parts_of_versions(schema) } else { 1 };
    let mut is_written = transaction.position_of_row_key(holder.row_key()).is_some();
    for part in 2..=parts {
        let key = row_key_of_part(holder.row_key(), part)?;
        is_written |= transaction.position_of_row_key(&key).is_some();
    }
    Ok(is_written)
}

/// Reads the ETags of the parts of a wide entity that a verb deletes, by RowKey; `None` for a
/// missing part.
async fn parts_of(
    outbox: &Outbox,
    table: &str,
    transaction: &TransactionPlan,
    verb: usize,
) -> Result<HashMap<String, Option<ETag>>> {
    let mut found = HashMap::new();
    for planned in transaction.planned_operations() {
        if matches!(planned.role, Role::DeletedPart(of) if of == verb) {
            let (partition_key, row_key) = planned.operation.row().keys();
            let row = outbox.store.read_row(RowAt::new(table, partition_key, row_key)).await?;
            found.insert(row_key.to_owned(), row.and_then(|row| row.etag()));
        }
    }
    Ok(found)
}

/// Returns the effect of a change. Reads the primary first if the change depends on it.
async fn effect_of_change(
    outbox: &Outbox,
    table: &str,
    index: usize,
    change: &Change,
) -> Result<Arc<Effect>> {
    let verb = match change {
        Change::Blind(effect) => return Ok(effect.clone()),
        Change::OnCurrent(verb) => verb,
    };
    // Read anew at each attempt: the effect depends on the primary that it was derived from.
    let (keys, may_end_torn) = (verb.keys(), verb.may_end_torn_entity());
    let row = outbox.store.read_to_overwrite(table, keys, verb.schema(), may_end_torn).await?;
    let plan = || verb.effect_on_primary(row.as_ref());
    let effect = plan_effect(outbox, table, verb.token_maker(), plan).await;
    effect.map(Arc::new).map_err(|error| error.in_table(table).at_operation(index))
}

/// Reads every local list that the effects change; `None` for a list that does not exist.
async fn read_lists(
    outbox: &Outbox,
    table: &str,
    effects: &[Arc<Effect>],
) -> Result<BTreeMap<String, Option<StoredList>>> {
    let deltas = list_deltas(effects);
    let partition_key = effects
        .iter()
        .find_map(|effect| effect.primary.first())
        .map(|operation| operation.row().partition_key())
        .unwrap_or_default();
    let lists = deltas.into_keys().map(|row_key| async move {
        let list = read_local_list(&outbox.store, table, partition_key, &row_key).await?;
        Ok::<_, Error>((row_key, list))
    });
    Ok(try_join_all(lists).await?.into_iter().collect())
}

/// Fails with `TooLarge` if a transaction of that many operations is over the service's limit.
fn check_operation_count(table: &str, operations: usize) -> Result<()> {
    if operations <= BATCH_OPERATIONS {
        return Ok(());
    }
    let message = format!(
        "an entity group transaction has at most {BATCH_OPERATIONS} operations, copies, lists and the outbox included, and this makes {operations}"
    );
    let error = Error::new(ErrorKind::TooLarge, message);
    Err(error.with_code(ServiceCode::InvalidInput).in_table(table))
}

async fn send(
    outbox: &Outbox,
    table: &str,
    transaction: &TransactionPlan,
    deadline: Option<&Deadline>,
) -> Result<Vec<Written>> {
    let planned = transaction.planned_operations();
    check_operation_count(table, planned.len())?;
    let to_seal =
        planned.iter().map(|one| OperationToSeal::new(one.operation.clone(), one.stored_as));
    outbox.store.seal_and_write(table, to_seal.collect(), deadline).await
}

/// Returns a random id by which parts of wide entities are known to be written together; empty
/// without a wide entity.
fn new_generation(outbox: &Outbox, effects: &[Arc<Effect>]) -> String {
    let is_wide = |effect: &Arc<Effect>| effect.schema.is_some_and(Schema::is_wide);
    if effects.iter().any(is_wide) { outbox.store.random.random_id() } else { String::new() }
}

fn outcomes(
    effects: &[Arc<Effect>],
    transaction: &TransactionPlan,
    written: &[Written],
) -> Vec<CommittedChange> {
    let answers = transaction.answers_of_verbs(effects.len(), written);
    let outcomes = effects.iter().zip(answers);
    outcomes.map(|(effect, written)| CommittedChange { written, row: effect.row.clone() }).collect()
}
