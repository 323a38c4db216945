//! Commits changes: writes all of them in one entity group transaction, or none of them.
//!
//! A change of one row that needs nothing else is planned and sent. Any other change passes the stages that it
//! needs, in the order of [`try_commit_once`]. Each stage has its own file in this folder.

use std::{future::Future, sync::Arc};

use futures_util::future::BoxFuture;

use super::{
    blob_writes::BlobUploads,
    blocking_claim::SharedBlockingClaim,
    claims::{ClaimAndReservedKeys, OccupiedKeyPolicy},
    current::effects_of_changes,
    expired::{ExpiredHolder, ExpiredRowsInTheWay},
    expiry::write_markers_of_effects,
    kept_claims::KeptClaims,
    local_lists::read_changed_lists,
    missing_table::make_dated_table,
    outbox_plan::{ExtraRows, OutboxPlan},
    send::{TransactionToSend, write_transaction},
    state::Outbox,
};
use crate::{
    batch::{Deadline, Written},
    entity::{BackgroundWork, Needs},
    error::{Error, Result},
    plan::{Change, Effect, RowsRead, TransactionPlan},
    row::Row,
    store::backoff::{self, Attempt},
};

/// The result of one committed change.
#[derive(Debug, Clone)]
pub(crate) struct CommittedChange {
    /// The store's answer for the primary, or `None` if there was nothing to write.
    pub(crate) written: Option<Written>,
    /// The whole primary after the change, or only the written properties after an insert-or-merge without a read.
    /// `None` after a deletion or a step of a move, and if the verb does not know all properties of the primary, such
    /// as a patch that is sent as one merge.
    pub(crate) row: Option<Row>,
}

/// The results of changes that were committed together.
#[derive(Debug)]
pub(crate) struct CommittedChanges {
    pub(crate) outcomes: Vec<CommittedChange>,
    /// The writes of remote copies and lists that are still running.
    pub(crate) pending: BackgroundWork,
}

/// What a commit does in stages: anything beyond writing one row per change that is known without a read.
const STAGED: Needs =
    Needs::CURRENT.and(Needs::OTHER_ROWS).and(Needs::EXPIRY).and(Needs::PARTS).and(Needs::TOKENS);

/// Writes all changes, or none of them. All changes must be in one partition. An error's `failed_index` is the
/// position of the change that failed.
pub(crate) async fn commit_changes(
    outbox: &Arc<Outbox>,
    table: &str,
    changes: &[Change],
) -> Result<CommittedChanges> {
    commit_with_rows(outbox, table, changes, &ExtraRows::default(), None).await
}

/// Writes all changes, or none of them, as [`commit_changes`] does. For a caller that removes a refused change and then
/// commits the others: after a failure, `kept` holds the unique keys that are reserved already, which saves the next
/// attempt from reserving them again.
pub(crate) async fn commit_keeping_claims(
    outbox: &Arc<Outbox>,
    table: &str,
    changes: &[Change],
    kept: &KeptClaims,
) -> Result<CommittedChanges> {
    let needs = needs_of(changes);
    if !needs.contain_any(STAGED) {
        return commit_plain(outbox, table, changes, None).await;
    }
    let extra_rows = ExtraRows::default();
    let state = CommitState { kept: Some(kept), ..CommitState::new(needs, &extra_rows) };
    let committed = commit_staged(outbox, table, changes, &state).await;
    if let Err(error) = &committed {
        kept.note_failure(error, &state.claim_in_the_way);
    }
    committed
}

/// Writes all changes and the extra rows in one transaction, or none of them. After the deadline, fails with
/// `is_contended` and writes nothing.
pub(crate) async fn commit_with_rows(
    outbox: &Arc<Outbox>,
    table: &str,
    changes: &[Change],
    extra_rows: &ExtraRows,
    deadline: Option<&Deadline>,
) -> Result<CommittedChanges> {
    let needs = needs_of(changes);
    if !needs.contain_any(STAGED) && extra_rows.is_empty() {
        return commit_plain(outbox, table, changes, deadline).await;
    }
    let state = CommitState { deadline, ..CommitState::new(needs, extra_rows) };
    commit_staged(outbox, table, changes, &state).await
}

/// Returns the combined needs of the changes.
fn needs_of(changes: &[Change]) -> Needs {
    changes.iter().fold(Needs::NONE, |needs, change| needs.and(change.needs()))
}

/// Writes all changes in stages. Boxed because the future of a plain write would reserve space for all stages.
fn commit_staged<'c>(
    outbox: &'c Arc<Outbox>,
    table: &'c str,
    changes: &'c [Change],
    state: &'c CommitState<'_>,
) -> BoxFuture<'c, Result<CommittedChanges>> {
    let commit = Box::pin(commit_in_stages(outbox, table, changes, state));
    if !state.needs.contain(Needs::CURRENT) {
        return commit;
    }
    // Writers of this client that read before they write wait for each other.
    let read = changes.iter().filter(|change| change.reads_again_after_race()).map(Change::keys);
    let locks = read.map(|keys| outbox.locks.key_of_row(table, keys)).collect();
    Box::pin(outbox.locks.run_with_locks(locks, commit))
}

/// Plans and sends changes of one row each, whose effects are known.
async fn commit_plain(
    outbox: &Arc<Outbox>,
    table: &str,
    changes: &[Change],
    deadline: Option<&Deadline>,
) -> Result<CommittedChanges> {
    let effects = known_effects(changes);
    let transaction = TransactionPlan::of_primaries_only(&effects)?;
    let attempt = || async {
        let written = write_transaction(outbox, table, &transaction, deadline).await;
        // Each operation belongs to a verb of the caller.
        written.map_err(|error| match transaction.failed_verb(&error) {
            Some(verb) => error.at_operation(verb),
            None => error.without_operation(),
        })
    };
    let written = create_table_if_missing(outbox, table, changes, attempt).await?;
    let outcomes = outcomes(&effects, &transaction, &written);
    Ok(CommittedChanges { outcomes, pending: BackgroundWork::default() })
}

/// Returns the effects of changes that need no read.
fn known_effects(changes: &[Change]) -> Vec<Arc<Effect>> {
    changes.iter().filter_map(Change::known_effect).cloned().collect()
}

/// Runs `attempt`. If the dated table is missing, creates the table and runs `attempt` again.
async fn create_table_if_missing<T, F: Future<Output = Result<T>>>(
    outbox: &Outbox,
    table: &str,
    changes: &[Change],
    attempt: impl Fn() -> F,
) -> Result<T> {
    match attempt().await {
        // A layer may rename tables, so the name in the error is not used. Create the table if it is missing. If
        // a different table is missing, the second attempt fails too.
        Err(error) if error.is_table_missing() => {
            if !Box::pin(make_dated_table(outbox, table, changes)).await? {
                // Without the table, the entity to change or delete does not exist, which is what the
                // error says.
                return Err(error);
            }
            attempt().await
        }
        done => done,
    }
}

/// The state shared by all attempts of one commit.
struct CommitState<'s> {
    /// The combined needs of the changes.
    needs: Needs,
    extra_rows: &'s ExtraRows,
    /// The latest time for sending the transaction, if there is a limit.
    deadline: Option<&'s Deadline>,
    /// Holds the claims of a commit that failed because of one change, for the commit of the other changes.
    kept: Option<&'s KeptClaims>,
    blobs: BlobUploads,
    expired: ExpiredRowsInTheWay,
    claim_in_the_way: SharedBlockingClaim,
}

impl<'s> CommitState<'s> {
    fn new(needs: Needs, extra_rows: &'s ExtraRows) -> Self {
        Self {
            needs,
            extra_rows,
            deadline: None,
            kept: None,
            blobs: BlobUploads::default(),
            expired: ExpiredRowsInTheWay::default(),
            claim_in_the_way: SharedBlockingClaim::default(),
        }
    }
}

/// Writes changes in stages. If expired entities hold values that the changes take, deletes them and starts again.
async fn commit_in_stages(
    outbox: &Arc<Outbox>,
    table: &str,
    changes: &[Change],
    state: &CommitState<'_>,
) -> Result<CommittedChanges> {
    let mut deletions = 0..outbox.options.attempts;
    loop {
        let committed = commit_in_attempts(outbox, table, changes, state).await;
        let holders = state.expired.take_holders();
        if committed.is_ok() || holders.is_empty() || deletions.next().is_none() {
            return committed;
        }
        Box::pin(delete_holders(outbox, &holders)).await?;
    }
}

/// Deletes expired holders of unique values with their copies, each in its own commit. Skips a holder that has
/// changed in the meantime, which the next attempt reads again.
async fn delete_holders(outbox: &Arc<Outbox>, holders: &[ExpiredHolder]) -> Result<()> {
    for holder in holders {
        let (deletion, extra_rows) = (holder.deletion(outbox).await?, ExtraRows::default());
        let state = CommitState::new(deletion.needs(), &extra_rows);
        let changes = [deletion];
        match commit_in_attempts(outbox, &holder.table, &changes, &state).await {
            // The value is free once the copy is gone. On failure, a worker does the rest, and the next
            // attempt removes a copy that is still in the way.
            Ok(committed) => drop(committed.pending.wait().await),
            Err(error) if error.is_lost_race() => {}
            // Remove the position, which does not belong to any of the caller's changes.
            Err(error) => return Err(error.without_operation()),
        }
    }
    Ok(())
}

/// Writes all changes and the extra rows in one transaction, in as many attempts as the options allow. If expired
/// entities hold values that the changes take, fails with a unique violation and stores the holders in the state.
async fn commit_in_attempts(
    outbox: &Arc<Outbox>,
    table: &str,
    changes: &[Change],
    state: &CommitState<'_>,
) -> Result<CommittedChanges> {
    let attempts = outbox.options.attempts;
    let attempt = || {
        backoff::retry_lost_races(&outbox.store.random, attempts, || {
            try_commit_once(outbox, table, changes, state)
        })
    };
    let committed = create_table_if_missing(outbox, table, changes, attempt).await?;
    committed.ok_or_else(|| {
        let (partition_key, row_key) = changes.first().map(Change::keys).unwrap_or_default();
        backoff::contended_attempts_error(attempts).in_table(table).at_keys(partition_key, row_key)
    })
}

/// Makes one attempt at a commit by running the stages that the changes need. Returns `Raced` or `Busy` if the
/// commit must start again.
async fn try_commit_once(
    outbox: &Arc<Outbox>,
    table: &str,
    changes: &[Change],
    state: &CommitState<'_>,
) -> Result<Attempt<CommittedChanges>> {
    let CommitState { needs, extra_rows, kept, expired, claim_in_the_way, .. } = state;
    // An attempt that is blocked by the claim again costs six requests, this check one.
    if needs.contain(Needs::UNIQUE)
        && let Some(error) = Box::pin(claim_in_the_way.error_if_claim_alive(outbox)).await?
    {
        return Ok(Attempt::Busy(error));
    }
    let effects = if needs.contain_any(Needs::CURRENT.and(Needs::EXPIRY)) {
        effects_of_changes(outbox, table, changes, expired).await?
    } else {
        known_effects(changes)
    };
    let (effects, deadline) = write_before_rows(outbox, table, effects, state).await?;
    let (read, mut outbox_rows) = read_other_rows(outbox, table, &effects, state).await?;
    let transaction = TransactionPlan::new(&effects, &read)?;
    let mut claims = None;
    if let (Some(rows), true) = (&mut outbox_rows, needs.contain(Needs::UNIQUE)) {
        let planned = (&*effects, &transaction);
        let moving_from = extra_rows.from.as_ref();
        let outlasting = kept.map(|kept| &kept.outlasting);
        let policy =
            OccupiedKeyPolicy { moving_from, expired, claim: claim_in_the_way, outlasting };
        let claimed = rows.claim_unique_keys(outbox, planned, policy, *kept);
        claims = match Box::pin(claimed).await? {
            Attempt::Done(claims) => claims,
            Attempt::Busy(error) => return Ok(Attempt::Busy(error)),
            Attempt::Raced => return Ok(Attempt::Raced),
        };
    }
    let sending = TransactionToSend {
        outbox,
        table,
        changes,
        effects: &effects,
        read,
        expired,
        may_replace_expired: extra_rows.from.is_none(),
        deadline: deadline.as_ref(),
    };
    // The claims belong to this attempt only. Another attempt makes new ones.
    let sent = sending.send(transaction, &mut outbox_rows, claims.as_ref()).await;
    settle_claims(outbox, claims, *kept, &sent).await;
    let Some((transaction, written)) = sent? else { return Ok(Attempt::Raced) };
    let outcomes = outcomes(&effects, &transaction, &written);
    // The changes are committed. Later failures are left to a worker and do not fail the write.
    let pending = match outbox_rows {
        Some(rows) => rows.run_fast_path(outbox, &transaction, &written).await,
        None => BackgroundWork::default(),
    };
    Ok(Attempt::Done(CommittedChanges { outcomes, pending }))
}

/// Writes what must exist before the rows of the transaction: blobs and expiry markers. Returns the effects with
/// the names of the blobs, and the latest time for sending the transaction.
async fn write_before_rows(
    outbox: &Outbox,
    table: &str,
    mut effects: Vec<Arc<Effect>>,
    state: &CommitState<'_>,
) -> Result<(Vec<Arc<Effect>>, Option<Deadline>)> {
    // Send by the earliest of these times: a sweep may delete older uploads and markers.
    let mut deadline = state.deadline.cloned();
    // Write blobs before the rows that point to them.
    if state.needs.contain(Needs::BLOBS) {
        effects = Box::pin(state.blobs.store_blobs(outbox, table, effects)).await?;
        deadline = Deadline::earlier_of(deadline.as_ref(), state.blobs.send_deadline().as_ref());
    }
    // Write markers before the rows. A marker without a row costs a worker one look, but a row without a marker
    // would never be swept.
    if state.needs.contain(Needs::EXPIRY) {
        let marked = write_markers_of_effects(outbox, table, &effects).await?;
        deadline = Deadline::earlier_of(deadline.as_ref(), marked.as_ref());
    }
    Ok((effects, deadline))
}

/// Reads the rows that the transaction changes besides the primaries: local lists, and remote copies and lists.
/// Plans the outbox rows.
async fn read_other_rows<'s>(
    outbox: &Outbox,
    table: &str,
    effects: &[Arc<Effect>],
    state: &CommitState<'s>,
) -> Result<(RowsRead, Option<OutboxPlan<'s>>)> {
    let (needs, extra_rows) = (state.needs, state.extra_rows);
    let mut read = RowsRead::default();
    if needs.contain(Needs::LISTS) {
        read.lists = read_changed_lists(outbox, table, effects).await?;
    }
    // Read the remote copies before the commit. Writes after the commit under these ETags cannot overwrite a
    // newer version of the primary.
    let outbox_rows = if needs.contain(Needs::REMOTE) || !extra_rows.is_empty() {
        Some(OutboxPlan::plan_outbox_rows(outbox, table, effects, extra_rows).await)
    } else {
        None
    };
    if needs.contain(Needs::PARTS) {
        read.generation = outbox.store.random.random_id();
    }
    Ok((read, outbox_rows))
}

/// Ends the claims of an attempt. Releases the keys of a failed transaction immediately, because other entities
/// that want them get a unique violation until then. A caller that sends the transaction again without the refused
/// change keeps them.
async fn settle_claims<T>(
    outbox: &Outbox,
    claims: Option<ClaimAndReservedKeys>,
    kept: Option<&KeptClaims>,
    sent: &Result<Option<T>>,
) {
    let Some(claims) = claims else { return };
    if let Ok(Some(_)) = sent {
        return claims.note_claim_row_deleted();
    }
    match kept.filter(|_| KeptClaims::can_keep(&claims, sent)) {
        Some(kept) => kept.keep_for_next_commit(claims),
        None => {
            let is_known = sent.as_ref().err().is_none_or(Error::is_certainly_not_executed);
            Box::pin(claims.release_unique_keys(outbox, is_known)).await;
        }
    }
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
