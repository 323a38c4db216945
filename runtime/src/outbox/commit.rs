//! Commits changes: writes all of them in one entity group transaction, or none of them.
//!
//! Changes of one row each that need nothing else are sent in one request. Any other change passes the stages that it
//! needs, in the order of [`StagedCommit::try_commit_once`]. Each stage has its own file in this folder.

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
    outbox_plan::{ExtraRows, NO_ROWS, OutboxPlan},
    send::TransactionToSend,
    state::Outbox,
};
use crate::{
    batch::{Deadline, Written},
    entity::{BackgroundWork, Needs},
    error::{Error, Result},
    plan::{Change, Effect, RowsRead, StoredAs, TransactionPlan},
    row::Row,
    store::{
        backoff::{self, Attempt},
        sealing::plan::OperationToSeal,
    },
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

/// Changes to commit: writes all of them in one entity group transaction, or none of them. An error's `failed_index` is
/// the position of the change that failed.
pub(crate) struct Commit<'c> {
    outbox: &'c Arc<Outbox>,
    table: &'c str,
    /// The changes, which must be in one partition.
    changes: &'c [Change],
    /// The combined needs of the changes.
    needs: Needs,
    extra_rows: &'c ExtraRows,
    /// The latest time for sending the transaction, if there is a limit.
    deadline: Option<&'c Deadline>,
    /// Holds the claims of a commit that failed because of one change, for the commit of the other changes.
    kept: Option<&'c KeptClaims>,
}

impl<'c> Commit<'c> {
    /// Creates a commit of changes to one partition of a table.
    pub(crate) fn new(outbox: &'c Arc<Outbox>, table: &'c str, changes: &'c [Change]) -> Self {
        let needs = changes.iter().fold(Needs::NONE, |needs, change| needs.and(change.needs()));
        Self { outbox, table, changes, needs, extra_rows: &NO_ROWS, deadline: None, kept: None }
    }

    /// Adds rows to the transaction.
    pub(crate) fn with_rows(self, extra_rows: &'c ExtraRows) -> Self {
        Self { extra_rows, ..self }
    }

    /// Sets the latest time for sending the transaction, after which the commit fails with `is_contended` and writes
    /// nothing.
    pub(crate) fn with_deadline(self, deadline: Option<&'c Deadline>) -> Self {
        Self { deadline, ..self }
    }

    /// Keeps the claims of a failed commit. For a caller that removes a refused change and then commits the others:
    /// `kept` holds the unique keys that are reserved already, which saves the next commit from reserving them again.
    pub(crate) fn keeping_claims(self, kept: &'c KeptClaims) -> Self {
        Self { kept: Some(kept), ..self }
    }

    /// Writes all changes and the extra rows in one transaction, or none of them.
    pub(crate) async fn run(&self) -> Result<CommittedChanges> {
        if self.needs.contain_any(STAGED) || !self.extra_rows.is_empty() {
            return self.run_in_stages_boxed().await;
        }
        let effects = known_effects(self.changes);
        let written = self.create_table_if_missing(|| self.write_single_rows(&effects)).await?;
        let rows = effects.iter().map(|effect| effect.row.clone()).zip(written);
        let outcomes = rows.map(|(row, written)| CommittedChange { written: Some(written), row });
        let pending = BackgroundWork::default();
        Ok(CommittedChanges { outcomes: outcomes.collect(), pending })
    }

    /// Sends the effects of changes that write one row each, and returns the answer to each.
    async fn write_single_rows(&self, effects: &[Arc<Effect>]) -> Result<Vec<Written>> {
        let mut to_seal = Vec::with_capacity(effects.len());
        for effect in effects {
            let stored_as = StoredAs::storage_kind_of_primary(effect.schema)?;
            let operations = effect.primary.iter().cloned();
            to_seal.extend(operations.map(|one| OperationToSeal::new(one, stored_as)));
        }
        let written = self.outbox.store.seal_and_write(self.table, to_seal, self.deadline).await;
        // The position of an operation is the position of its change. A single request has no positions.
        written.map_err(|error| if effects.len() == 1 { error.at_operation(0) } else { error })
    }

    /// Runs `attempt`. If the dated table is missing, creates the table and runs `attempt` again.
    async fn create_table_if_missing<T, F: Future<Output = Result<T>>>(
        &self,
        attempt: impl Fn() -> F,
    ) -> Result<T> {
        match attempt().await {
            // A layer may rename tables, so the name in the error is not used. Create the table if it is missing. If
            // a different table is missing, the second attempt fails too.
            Err(error) if error.is_table_missing() => {
                if !self.make_dated_table_boxed().await? {
                    // Without the table, the entity to change or delete does not exist, which is what the
                    // error says.
                    return Err(error);
                }
                attempt().await
            }
            done => done,
        }
    }

    fn make_dated_table_boxed(&self) -> BoxFuture<'_, Result<bool>> {
        Box::pin(make_dated_table(self.outbox, self.table, self.changes))
    }

    // Boxed because the future of a plain write would reserve space for all stages, and in a function of its own
    // because every program would compile the stages: the code of a future is compiled where its type is used.
    fn run_in_stages_boxed(&self) -> BoxFuture<'_, Result<CommittedChanges>> {
        Box::pin(self.run_in_stages())
    }

    /// Writes all changes in stages.
    async fn run_in_stages(&self) -> Result<CommittedChanges> {
        let reads = self.needs.contain(Needs::CURRENT);
        // Writers of this client that read before they write wait for each other.
        let read = self.changes.iter().filter(|change| reads && change.reads_again_after_race());
        let locks = &self.outbox.locks;
        let keys = read.map(|change| locks.key_of_row(self.table, change.keys())).collect();
        let staged = StagedCommit::new(self);
        let committed = locks.run_with_locks(keys, staged.commit_without_holders()).await;
        if let (Some(kept), Err(error)) = (self.kept, &committed) {
            kept.note_failure(error, &staged.claim_in_the_way);
        }
        committed
    }
}

/// Returns the effects of changes that need no read.
fn known_effects(changes: &[Change]) -> Vec<Arc<Effect>> {
    changes.iter().filter_map(Change::known_effect).cloned().collect()
}

/// A commit in stages, with the state that its attempts share.
struct StagedCommit<'c> {
    commit: &'c Commit<'c>,
    blobs: BlobUploads,
    expired: ExpiredRowsInTheWay,
    claim_in_the_way: SharedBlockingClaim,
}

impl<'c> StagedCommit<'c> {
    fn new(commit: &'c Commit<'c>) -> Self {
        Self {
            commit,
            blobs: BlobUploads::default(),
            expired: ExpiredRowsInTheWay::default(),
            claim_in_the_way: SharedBlockingClaim::default(),
        }
    }

    /// Writes the changes. If expired entities hold values that the changes take, deletes them and starts again.
    async fn commit_without_holders(&self) -> Result<CommittedChanges> {
        let outbox = self.commit.outbox;
        let mut deletions = 0..outbox.options.attempts;
        loop {
            let committed = self.commit_in_attempts().await;
            let holders = self.expired.take_holders();
            if committed.is_ok() || holders.is_empty() || deletions.next().is_none() {
                return committed;
            }
            Box::pin(delete_holders(outbox, &holders)).await?;
        }
    }

    /// Writes the changes in as many attempts as the options allow. If expired entities hold values that the changes
    /// take, fails with a unique violation and stores the holders.
    async fn commit_in_attempts(&self) -> Result<CommittedChanges> {
        let Commit { outbox, table, changes, .. } = self.commit;
        let attempts = outbox.options.attempts;
        let attempt =
            || backoff::retry_lost_races(&outbox.store.random, attempts, || self.try_commit_once());
        let committed = self.commit.create_table_if_missing(attempt).await?;
        committed.ok_or_else(|| {
            let (partition_key, row_key) = changes.first().map(Change::keys).unwrap_or_default();
            let contended = backoff::contended_attempts_error(attempts);
            contended.in_table(table).at_keys(partition_key, row_key)
        })
    }

    /// Makes one attempt at a commit by running the stages that the changes need. Returns `Raced` or `Busy` if the
    /// commit must start again.
    async fn try_commit_once(&self) -> Result<Attempt<CommittedChanges>> {
        let Self { expired, claim_in_the_way, .. } = self;
        let Commit { outbox, table, changes, needs, extra_rows, kept, .. } = *self.commit;
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
        let (effects, deadline) = self.write_before_rows(effects).await?;
        let (read, mut outbox_rows) = self.read_other_rows(&effects).await?;
        let transaction = TransactionPlan::new(&effects, &read)?;
        let mut claims = None;
        if let (Some(rows), true) = (&mut outbox_rows, needs.contain(Needs::UNIQUE)) {
            let planned = (&*effects, &transaction);
            let moving_from = extra_rows.from.as_ref();
            let outlasting = kept.map(|kept| &kept.outlasting);
            let policy =
                OccupiedKeyPolicy { moving_from, expired, claim: claim_in_the_way, outlasting };
            let claimed = rows.claim_unique_keys(outbox, planned, policy, kept);
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
        settle_claims(outbox, claims, kept, &sent).await;
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
        &self,
        mut effects: Vec<Arc<Effect>>,
    ) -> Result<(Vec<Arc<Effect>>, Option<Deadline>)> {
        let Commit { outbox, table, needs, deadline, .. } = *self.commit;
        // Send by the earliest of these times: a sweep may delete older uploads and markers.
        let mut deadline = deadline.cloned();
        // Write blobs before the rows that point to them.
        if needs.contain(Needs::BLOBS) {
            effects = Box::pin(self.blobs.store_blobs(outbox, table, effects)).await?;
            let of_blobs = self.blobs.send_deadline();
            deadline = Deadline::earlier_of(deadline.as_ref(), of_blobs.as_ref());
        }
        // Write markers before the rows. A marker without a row costs a worker one look, but a row without a marker
        // would never be swept.
        if needs.contain(Needs::EXPIRY) {
            let marked = write_markers_of_effects(outbox, table, &effects).await?;
            deadline = Deadline::earlier_of(deadline.as_ref(), marked.as_ref());
        }
        Ok((effects, deadline))
    }

    /// Reads the rows that the transaction changes besides the primaries: local lists, and remote copies and lists.
    /// Plans the outbox rows.
    async fn read_other_rows(
        &self,
        effects: &[Arc<Effect>],
    ) -> Result<(RowsRead, Option<OutboxPlan<'c>>)> {
        let Commit { outbox, table, needs, extra_rows, .. } = *self.commit;
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
}

/// Deletes expired holders of unique values with their copies, each in its own commit. Skips a holder that has
/// changed in the meantime, which the next attempt reads again.
async fn delete_holders(outbox: &Arc<Outbox>, holders: &[ExpiredHolder]) -> Result<()> {
    for holder in holders {
        let changes = [holder.deletion(outbox).await?];
        let commit = Commit::new(outbox, &holder.table, &changes);
        match StagedCommit::new(&commit).commit_in_attempts().await {
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
