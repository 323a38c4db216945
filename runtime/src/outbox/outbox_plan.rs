//! Plans the outbox rows of a transaction: its dirty rows, the deletion of its claim, and its fence.

use std::{collections::HashSet, sync::Arc};

use super::{
    claims::{ClaimAndReservedKeys, OccupiedKeyPolicy},
    fast_path::FastPath,
    kept_claims::KeptClaims,
    registration::ensure_registered_fence,
    state::Outbox,
};
use crate::{
    address::{RowAddress, RowAt},
    batch::{Operation, Written},
    entity::BackgroundWork,
    error::{Error, Result},
    guard::Guard,
    plan::{
        Effect, OperationRole, TransactionPlan,
        outbox::{Fence, dirty_rows_of},
    },
    store::backoff::Attempt,
};

/// How many times a worker may close the partition's registration during one commit before the commit fails.
const MAX_CLOSED_REGISTRATIONS: u32 = 8;

/// What the caller of a commit adds to its transaction: messages and receipts, and the address that a moving entity
/// comes from. The commit itself adds dirty rows, claims and the fence.
#[derive(Debug, Default)]
pub(crate) struct ExtraRows {
    /// The PartitionKey of the transaction, used if no change has one.
    pub(crate) partition_key: String,
    pub(crate) operations: Vec<Operation>,
    /// Whether the rows include messages. Workers find these only if there is a fence.
    pub(crate) has_messages: bool,
    /// The address that a moving entity comes from. Its unique keys come with it.
    pub(crate) from: Option<RowAddress>,
}

/// The rows of a caller that adds nothing.
pub(crate) static NO_ROWS: ExtraRows = ExtraRows {
    partition_key: String::new(),
    operations: Vec::new(),
    has_messages: false,
    from: None,
};

impl ExtraRows {
    /// Returns whether the caller adds nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.operations.is_empty() && !self.has_messages && self.from.is_none()
    }
}

/// The outbox rows of one transaction, and the remote work after its commit.
pub(crate) struct OutboxPlan<'n> {
    table: String,
    extra_rows: &'n ExtraRows,
    fast_path: FastPath,
    /// The positions of dirty rows that existed before. The transaction merges its addresses into them.
    existing_dirty_rows: HashSet<usize>,
    fence: Option<Fence>,
    /// The number of registrations that workers closed during this commit.
    closed_registrations: u32,
}

impl<'n> OutboxPlan<'n> {
    /// Plans the dirty rows for some effects, and reads the remote copies and lists that they change. The claim and the
    /// fence are planned later.
    pub(crate) async fn plan_outbox_rows(
        outbox: &Outbox,
        table: &str,
        effects: &[Arc<Effect>],
        extra_rows: &'n ExtraRows,
    ) -> Self {
        let dirty = dirty_rows_of(effects, outbox.store.names().name(table));
        if !dirty.is_empty() {
            let schemas = effects.iter().filter_map(|effect| effect.schema);
            // A worker of this client must be able to do the work recorded here.
            schemas.for_each(|schema| outbox.add_type(schema));
        }
        Self {
            table: table.to_owned(),
            extra_rows,
            fast_path: FastPath::read_before_commit(outbox, table, dirty).await,
            existing_dirty_rows: HashSet::new(),
            fence: None,
            closed_registrations: 0,
        }
    }

    /// Claims and reserves the unique keys that the transaction takes. Returns `None` if it takes none. Returns `Busy`
    /// if another write of the entity has reserved a key. Continues with the claims that the caller keeps, if any.
    pub(crate) async fn claim_unique_keys(
        &mut self,
        outbox: &Outbox,
        (effects, transaction): (&[Arc<Effect>], &TransactionPlan),
        policy: OccupiedKeyPolicy<'_>,
        kept: Option<&KeptClaims>,
    ) -> Result<Attempt<Option<ClaimAndReservedKeys>>> {
        if self.fast_path.unique_keys_to_claim().is_empty() {
            return Ok(Attempt::Done(None));
        }
        // Checked first, to reserve nothing for a transaction that is too large.
        transaction.check_operation_count(&self.table, self.maximum_operation_count())?;
        let mut claims = kept.map(KeptClaims::take_claims);
        let (table, fast_path) = (&self.table, &mut self.fast_path);
        let reserving = ClaimAndReservedKeys::reserve_unique_keys(
            outbox,
            table,
            fast_path,
            policy,
            claims.as_mut(),
        );
        let reserved = reserving.await;
        let claims = claims.flatten();
        let is_final =
            |error| claims.as_ref().is_some_and(|claims| claims.is_final_for_claim(error));
        let reserved = match reserved {
            Ok(claims) => Ok(Attempt::Done(claims)),
            Err(error) => {
                let is_final = is_final(&error);
                let error = match self.verb_at_fault(effects, &error) {
                    Some(verb) if error.is_unique_violation() || error.is_contended() => {
                        error.at_operation(verb)
                    }
                    _ => error,
                };
                if error.is_contended() && !is_final {
                    // It may have ended by the next attempt.
                    Ok(Attempt::Busy(error))
                } else {
                    Err(error)
                }
            }
        };
        if let (Some(kept), Some(claims)) = (kept, claims) {
            kept.keep_for_next_commit(claims);
        }
        reserved
    }

    /// Returns the maximum number of operations that the outbox adds to the transaction, including claim and fence.
    fn maximum_operation_count(&self) -> usize {
        // 2: the claim's deletion and the fence.
        self.fast_path.dirty_rows_to_write().count() + self.extra_rows.operations.len() + 2
    }

    /// Returns the position of the verb that derives the copy with the error's keys, if there is one. If there are
    /// several, returns the last, because the first can take the key and the later one is refused.
    fn verb_at_fault(&self, effects: &[Arc<Effect>], error: &Error) -> Option<usize> {
        let keys = error.keys()?;
        let derives_copy = |effect: &Arc<Effect>| {
            let mut copies = effect.new.iter().flat_map(|rows| &rows.remote_copies);
            copies.any(|copy| copy.row.keys() == keys)
        };
        effects.iter().rposition(derives_copy)
    }

    /// Adds the outbox rows to a transaction, and first registers the partition if it is not registered. Adds no fence
    /// if no open work is left.
    pub(crate) async fn add_rows(
        &mut self,
        outbox: &Outbox,
        transaction: &mut TransactionPlan,
        claims: Option<&ClaimAndReservedKeys>,
    ) -> Result<()> {
        // Checked before the commit: a list that this client cannot write would wait forever.
        self.fast_path.check_blob_store_if_needed(outbox).await?;
        self.fast_path
            .refuse_untrusted_copy_scopes(outbox)
            .map_err(|error| error.in_table(&self.table))?;
        if let Some(deletion) =
            claims.map(|claims| claims.delete_operation(outbox)).transpose()?.flatten()
        {
            // A claim that was marked dead in the meantime has a new ETag, which fails the transaction.
            transaction.push_framework_row(OperationRole::Claim, deletion);
        }
        let mut partition_key = None;
        for (position, dirty) in self.fast_path.dirty_rows_to_write().enumerate() {
            let may_exist = self.existing_dirty_rows.contains(&position)
                || !outbox.guards.is_guard_enabled(Guard::DirtyInserted);
            // Insert if possible: a new dirty row only contains this transaction's work, so the fast path may
            // delete it.
            transaction.push_framework_row(
                OperationRole::Dirty(position),
                dirty.insert_operation(may_exist)?,
            );
            partition_key = Some(dirty.partition_key.clone());
        }
        for operation in &self.extra_rows.operations {
            transaction.push_framework_row(OperationRole::MessageOrReceipt, operation.clone());
            partition_key.get_or_insert_with(|| self.extra_rows.partition_key.clone());
        }
        let Some(partition_key) = partition_key else { return Ok(()) };
        // Nothing is left for a worker, so no worker has to find the partition.
        if self.fast_path.is_empty() && !self.extra_rows.has_messages {
            return Ok(());
        }
        // The transaction fails if the fence is gone, so no open work is left where no worker looks.
        let fence = ensure_registered_fence(outbox, &self.table, &partition_key).await?;
        let touch = fence.touch_operation(outbox.random_fence_beat())?;
        if let Some(touch) = outbox.guards.value_if_guarded(Guard::FenceInTransaction, touch) {
            transaction.push_framework_row(OperationRole::Fence, touch);
        }
        self.fence = Some(fence);
        Ok(())
    }

    /// Returns the address of the primary whose dirty row is at this position.
    pub(crate) fn primary_of_dirty_row(
        &self,
        outbox: &Outbox,
        position: usize,
    ) -> Option<RowAt<'_>> {
        let dirty = self.fast_path.dirty_rows_to_write().nth(position)?;
        Some(outbox.store.names().row_at(&self.table, &dirty.partition_key, &dirty.primary))
    }

    /// Prepares the plan for another attempt after the write of a row with this role failed: a dirty row that already
    /// exists, or a fence that a worker deleted. Returns `false` if another attempt is not worthwhile.
    pub(crate) fn adapt_to_failed_row(&mut self, outbox: &Outbox, role: OperationRole) -> bool {
        match role {
            // Earlier work of this primary is open: add to its dirty row, which a worker deletes.
            OperationRole::Dirty(position) => self.existing_dirty_rows.insert(position),
            // A worker closed the partition: register again.
            OperationRole::Fence => {
                if let Some(closed) = self.fence.take() {
                    outbox.registrations.forget_registration(&self.table, &closed);
                }
                self.closed_registrations += 1;
                // Limited, because a worker that always closes first could otherwise hold a writer forever.
                self.closed_registrations < MAX_CLOSED_REGISTRATIONS
            }
            _ => false,
        }
    }

    /// Writes the remote copies and lists after the commit, before it returns or in the background, as
    /// [`Outbox::run_after_commit`] decides. A failure leaves the work to a worker and does not fail the write.
    pub(crate) async fn run_fast_path(
        mut self,
        outbox: &Arc<Outbox>,
        transaction: &TransactionPlan,
        written: &[Written],
    ) -> BackgroundWork {
        if self.fast_path.is_empty() {
            return BackgroundWork::default();
        }
        let etag = |row_key: &str| {
            let position = transaction.position_of_row_key(row_key)?;
            transaction.etag_at(position, written)
        };
        let dirty = self.fast_path.dirty_rows_to_write();
        let etags: Vec<_> =
            dirty.map(|dirty| (etag(&dirty.primary), etag(&dirty.row_key()))).collect();
        for (position, (primary_etag, dirty_etag)) in etags.into_iter().enumerate() {
            // An existing dirty row contains work that this writer does not do.
            let dirty_etag = dirty_etag.filter(|_| !self.existing_dirty_rows.contains(&position));
            self.fast_path.set_committed_etags(position, primary_etag, dirty_etag);
        }
        outbox.run_after_commit(Box::pin(self.fast_path.write_after_commit(outbox.clone()))).await
    }
}
