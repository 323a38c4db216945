//! Resolves claims of dead writers: marks the claims dead, releases their reservations, and deletes the claims
//! once no more reservations under them can arrive.

use std::time::Duration;

use super::{
    failure::ignore_missing,
    partition::{OutboxChunk, OutboxRow},
    state::{RoundResult, Worker, table_and_keys_of},
    visit::LastPartitionVisit,
};
use crate::{
    batch::{Batch, Condition, Operation, Written},
    error::Result,
    guard::Guard,
    outbox::reservation::settle_reservation,
    plan::outbox::{StoredClaim, mark_claim_dead},
    row::ETag,
};

/// The result of an attempt to resolve a claim.
enum ClaimOutcome {
    /// The claim's writer may still be working, for this time.
    Young(Duration),
    /// The claim is dead and its reservations are released. It is resolved again after this time, under this
    /// ETag.
    AwaitsSecondLook(Duration, Option<ETag>),
    Deleted,
}

impl Worker {
    /// Resolves the claims of a chunk that are marked dead or have reached the claim time. Schedules another
    /// visit for younger claims.
    pub(super) async fn settle_claims(
        &self,
        chunk: &OutboxChunk,
        round: &mut RoundResult,
        visit: &mut LastPartitionVisit,
    ) {
        for row in &chunk.claims {
            visit.add_open_row(row.age);
            match self.resolve_claim(&chunk.table, row).await {
                Ok(ClaimOutcome::Young(left)) => visit.revisit_after(left),
                Ok(ClaimOutcome::AwaitsSecondLook(left, version)) => {
                    let place = table_and_keys_of(&chunk.table, &row.row);
                    let looks = &mut self.lock_memory().awaiting_second_look;
                    let before = looks.insert(place, version.clone());
                    // Counts as progress only the first time: `drain` must not wait for the second look.
                    round.progressed += u64::from(before != Some(version));
                    visit.revisit_after(left);
                }
                Ok(ClaimOutcome::Deleted) => {
                    visit.subtract_open_rows(1);
                    let memory = &mut *self.lock_memory();
                    memory.stats.applied += 1;
                    memory.forget_row(&table_and_keys_of(&chunk.table, &row.row));
                    round.progressed += 1;
                }
                Err(error) => {
                    self.handle_failure(&chunk.table, row, error, round, visit).await;
                }
            }
        }
    }

    async fn resolve_claim(&self, table: &str, row: &OutboxRow) -> Result<ClaimOutcome> {
        let outbox = self.outbox();
        let claim = StoredClaim::from_row(self.store().names(), &row.row)?;
        let partition_key = row.row.partition_key();
        let mut version = row.row.etag();
        let mut wait = row.time_until_age(outbox.options.write_deadline);
        if claim.is_alive {
            let young = row.time_until_age(outbox.options.claim_time);
            if !young.is_zero() {
                return Ok(ClaimOutcome::Young(young));
            }
            // The mark starts another wait: the writer may have sent reservations just before it.
            wait = outbox.options.write_deadline;
            if outbox.guards.is_guard_enabled(Guard::ClaimKilled) {
                // From here on the writer's transaction fails, because it deletes the claim under its
                // previous ETag.
                let seen = Condition::for_etag(version);
                let kill = mark_claim_dead(partition_key, &claim.id, seen)?;
                let killed = self.store().apply(&Batch::single(table, kill)?).await?;
                version = Written::of_single_operation(killed)?.etag;
            } else {
                wait = row.time_until_age(
                    outbox.options.claim_time.saturating_add(outbox.options.write_deadline),
                );
            }
        }
        // A slow writer may reserve a key until one write deadline after the claim was marked dead. Keep the
        // claim until then, which lets a worker find that reservation.
        let is_second_look =
            wait.is_zero() || !outbox.guards.is_guard_enabled(Guard::ClaimSecondLook);
        let place = table_and_keys_of(table, &row.row);
        let was_resolved = self.lock_memory().awaiting_second_look.get(&place) == Some(&version);
        // Resolving it again earlier would find nothing new.
        if was_resolved && !is_second_look {
            return Ok(ClaimOutcome::AwaitsSecondLook(wait, version));
        }
        // Resolve all keys before deleting the claim, the only row that contains them.
        for key in &claim.keys {
            settle_reservation(outbox, table, partition_key, &claim.id, key).await?;
        }
        if !is_second_look {
            return Ok(ClaimOutcome::AwaitsSecondLook(wait, version));
        }
        let seen = Condition::for_etag(version);
        let delete = Operation::delete(partition_key, row.row.row_key(), seen)?;
        ignore_missing(self.store().apply(&Batch::single(table, delete)?).await)?;
        Ok(ClaimOutcome::Deleted)
    }
}
