//! Commits changes: writes them all in one entity group transaction, or none of them.
//!
//! A change of one row that needs nothing else is planned and sent. Any other change passes the stages that
//! it needs, in the order of [`try_commit_once`]; each stage is a file beside this one.

use std::{future::Future, sync::Arc};

use futures_util::future::BoxFuture;

use super::{
    blob_writes::BlobUploads,
    blocking_claim::SharedBlockingClaim,
    claims::{ClaimWithReservations, OccupiedKeyPolicy},
    current::effects_of_changes,
    expired::{ExpiredHolder, ExpiredRowsInTheWay},
    expiry::write_markers_of_effects,
    kept_claims::KeptClaims,
    local_lists::read_changed_lists,
    missing_table::make_dated_table,
    outbox_plan::{ExtraRows, OutboxPlan},
    send::{Sending, write_transaction},
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

/// What a commit does in stages: anything beyond the write of one row per change that is known without a
/// read.
const STAGED: Needs =
    Needs::CURRENT.and(Needs::OTHER_ROWS).and(Needs::EXPIRY).and(Needs::PARTS).and(Needs::TOKENS);

/// Writes all changes, which are in one partition, or none. An error's `failed_index` is the
/// position of the change that failed.
pub(crate) async fn commit_changes(
    outbox: &Arc<Outbox>,
    table: &str,
    changes: &[Change],
) -> Result<Committed> {
    commit_with_rows(outbox, table, changes, &ExtraRows::default(), None).await
}

/// Writes all changes, or none of them, as [`commit_changes`] does, for a caller that takes a refused change
/// out and commits the others. The values that they have reserved are in `kept` until then.
pub(crate) async fn commit_keeping_claims(
    outbox: &Arc<Outbox>,
    table: &str,
    changes: &[Change],
    kept: &KeptClaims,
) -> Result<Committed> {
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

/// Writes all changes and the extra rows in one transaction, or none of them. Fails with `is_contended`, with
/// nothing written, after the deadline.
pub(crate) async fn commit_with_rows(
    outbox: &Arc<Outbox>,
    table: &str,
    changes: &[Change],
    extra_rows: &ExtraRows,
    deadline: Option<&Deadline>,
) -> Result<Committed> {
    let needs = needs_of(changes);
    if !needs.contain_any(STAGED) && extra_rows.is_empty() {
        return commit_plain(outbox, table, changes, deadline).await;
    }
    let state = CommitState { deadline, ..CommitState::new(needs, extra_rows) };
    commit_staged(outbox, table, changes, &state).await
}

/// Returns what the changes need together.
fn needs_of(changes: &[Change]) -> Needs {
    changes.iter().fold(Needs::NONE, |needs, change| needs.and(change.needs()))
}

/// Writes all changes in stages. Boxed: the future of a plain write would have room for all stages.
fn commit_staged<'c>(
    outbox: &'c Arc<Outbox>,
    table: &'c str,
    changes: &'c [Change],
    state: &'c CommitState<'_>,
) -> BoxFuture<'c, Result<Committed>> {
    let commit = Box::pin(commit_in_stages(outbox, table, changes, state));
    if !state.needs.contain(Needs::CURRENT) {
        return commit;
    }
    // Writers of this client that read before they write wait for each other.
    let read = changes.iter().filter(|change| change.reads_again()).map(Change::keys);
    let locks = read.map(|keys| outbox.locks.key_of_row(table, keys)).collect();
    Box::pin(outbox.locks.run_with_locks(locks, commit))
}

/// Writes changes of one row each, whose effects are known: plans them and sends them.
async fn commit_plain(
    outbox: &Arc<Outbox>,
    table: &str,
    changes: &[Change],
    deadline: Option<&Deadline>,
) -> Result<Committed> {
    let effects = known_effects(changes);
    let transaction = TransactionPlan::of_primaries(&effects, outbox.guards)?;
    let attempt = || async {
        let written = write_transaction(outbox, table, &transaction, deadline).await;
        // Each operation is a caller's own.
        written.map_err(|error| match transaction.failed_verb(&error) {
            Some(verb) => error.at_operation(verb),
            None => error.without_operation(),
        })
    };
    let written = create_table_if_missing(outbox, table, changes, attempt).await?;
    let outcomes = outcomes(&effects, &transaction, &written);
    Ok(Committed { outcomes, pending: BackgroundWork::default() })
}

/// Returns the effects of changes that need no read.
fn known_effects(changes: &[Change]) -> Vec<Arc<Effect>> {
    changes.iter().filter_map(Change::known_effect).cloned().collect()
}

/// Runs `attempt`, and once more after making the dated table that it did not find.
async fn create_table_if_missing<T, F: Future<Output = Result<T>>>(
    outbox: &Outbox,
    table: &str,
    changes: &[Change],
    attempt: impl Fn() -> F,
) -> Result<T> {
    match attempt().await {
        // A layer may call tables otherwise, so the name in the error decides nothing: the table is made
        // where it is missing, and a table that is missing elsewhere fails the second attempt too.
        Err(error) if error.is_table_missing() => {
            if !Box::pin(make_dated_table(outbox, table, changes)).await? {
                // Without the table, the entity to change or delete does not exist: the error tells
                // the caller.
                return Err(error);
            }
            attempt().await
        }
        done => done,
    }
}

/// The state that all attempts of one commit share.
struct CommitState<'s> {
    /// What the changes need together.
    needs: Needs,
    extra_rows: &'s ExtraRows,
    /// The last moment at which the transaction may be sent; `None` if it is not bound.
    deadline: Option<&'s Deadline>,
    /// Keeps the claims of a commit that failed because of one change, for the next commit of the others.
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

/// Writes changes in stages. Deletes expired holders of values that the changes take, and begins again.
async fn commit_in_stages(
    outbox: &Arc<Outbox>,
    table: &str,
    changes: &[Change],
    state: &CommitState<'_>,
) -> Result<Committed> {
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

/// Deletes expired holders of unique values with their copies, each by a commit of its own. A holder that
/// changed meanwhile is left: the next attempt reads it again.
async fn delete_holders(outbox: &Arc<Outbox>, holders: &[ExpiredHolder]) -> Result<()> {
    for holder in holders {
        let (deletion, extra_rows) = (holder.deletion(outbox).await?, ExtraRows::default());
        let state = CommitState::new(deletion.needs(), &extra_rows);
        let changes = [deletion];
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
        backoff::retry(&outbox.store.random, attempts, || {
            try_commit_once(outbox, table, changes, state)
        })
    };
    let committed = create_table_if_missing(outbox, table, changes, attempt).await?;
    committed.ok_or_else(|| {
        let (partition_key, row_key) = changes.first().map(Change::keys).unwrap_or_default();
        backoff::contended_attempts_error(attempts).in_table(table).at_keys(partition_key, row_key)
    })
}

/// Makes one attempt at a commit: the stages that the changes need, in their order. Returns `Raced` or `Busy`
/// if the commit has to begin again.
async fn try_commit_once(
    outbox: &Arc<Outbox>,
    table: &str,
    changes: &[Change],
    state: &CommitState<'_>,
) -> Result<Attempt<Committed>> {
    let CommitState { needs, extra_rows, kept, expired, claim_in_the_way, .. } = state;
    // An attempt that meets the claim once more takes six requests, this look one.
    if needs.contain(Needs::UNIQUE)
        && let Some(error) = Box::pin(claim_in_the_way.error_if_claim_alive(outbox)).await?
    {
        return Ok(Attempt::Busy(error));
    }
    let effects = match needs.contain_any(Needs::CURRENT.and(Needs::EXPIRY)) {
        true => effects_of_changes(outbox, table, changes, expired).await?,
        false => known_effects(changes),
    };
    let (effects, deadline) = write_before_rows(outbox, table, effects, state).await?;
    let (read, mut outbox_rows) = read_other_rows(outbox, table, &effects, state).await?;
    let transaction = TransactionPlan::new(&effects, &read, outbox.guards)?;
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
    let sending = Sending {
        outbox,
        table,
        changes,
        effects: &effects,
        read,
        expired,
        may_replace_expired: extra_rows.from.is_none(),
        deadline: deadline.as_ref(),
    };
    // Claims are there and name this attempt alone: another attempt makes new ones.
    let sent = sending.send(transaction, &mut outbox_rows, claims.as_ref()).await;
    settle_claims(outbox, claims, *kept, &sent).await;
    let Some((transaction, written)) = sent? else { return Ok(Attempt::Raced) };
    let outcomes = outcomes(&effects, &transaction, &written);
    // The commit stands. What fails from here on is left to a worker and fails nothing.
    let pending = match outbox_rows {
        Some(rows) => rows.run_fast_path(outbox, &transaction, &written).await,
        None => BackgroundWork::default(),
    };
    Ok(Attempt::Done(Committed { outcomes, pending }))
}

/// Writes what has to be there before the rows of the transaction: blobs and markers of expiry. Returns the
/// effects with the names of the blobs, and the last moment at which the transaction may be sent.
async fn write_before_rows(
    outbox: &Outbox,
    table: &str,
    mut effects: Vec<Arc<Effect>>,
    state: &CommitState<'_>,
) -> Result<(Vec<Arc<Effect>>, Option<Deadline>)> {
    // Sent by the earliest of these moments: a sweep may delete older uploads and markers.
    let mut deadline = state.deadline.cloned();
    // The blobs are there before a row points to them.
    if state.needs.contain(Needs::BLOBS) {
        effects = Box::pin(state.blobs.store_blobs(outbox, table, effects)).await?;
        deadline = Deadline::earlier(deadline.as_ref(), state.blobs.send_deadline().as_ref());
    }
    // The markers are written before the rows. A marker that leads to no row costs one look of a
    // worker; a row without a marker would never be swept.
    if state.needs.contain(Needs::EXPIRY) {
        let marked = write_markers_of_effects(outbox, table, &effects).await?;
        deadline = Deadline::earlier(deadline.as_ref(), marked.as_ref());
    }
    Ok((effects, deadline))
}

/// Reads the rows that the transaction changes, apart from the primaries: local lists, and remote copies and
/// lists. Plans the rows of the outbox.
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
    // The remote copies are read before the commit. What is written after it under these ETags cannot
    // overwrite a newer version of the primary.
    let outbox_rows = match needs.contain(Needs::REMOTE) || !extra_rows.is_empty() {
        true => Some(OutboxPlan::plan_outbox_rows(outbox, table, effects, extra_rows).await),
        false => None,
    };
    if needs.contain(Needs::PARTS) {
        read.generation = outbox.store.random.random_id();
    }
    Ok((read, outbox_rows))
}

/// Ends the claims of an attempt. Keys that were reserved for a transaction that failed are released at once:
/// until then, other entities that want them get a unique violation. A caller that sends the transaction again
/// without the refused change keeps them.
async fn settle_claims<T>(
    outbox: &Outbox,
    claims: Option<ClaimWithReservations>,
    kept: Option<&KeptClaims>,
    sent: &Result<Option<T>>,
) {
    let Some(claims) = claims else { return };
    if let Ok(Some(_)) = sent {
        return claims.note_claim_row_deleted();
    }
    match kept.filter(|_| KeptClaims::can_keep(&claims, sent)) {
        Some(kept) => kept.keep_claims(claims),
        None => {
            let is_known = sent.as_ref().err().is_none_or(Error::is_certainly_not_executed);
            Box::pin(claims.release_keys(outbox, is_known)).await;
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
