//! Adds up writes that are committed in one transaction.

use super::{stages::Stages, write_cost::CostModel};

impl CostModel {
    /// Returns the cost of one transaction with these writes and `messages` messages. Adds up the costs of the writes.
    /// The partition's fence and the claim that reserves unique keys count once, because the writes share them.
    pub(super) fn of_transaction(writes: &[Self], messages: usize) -> Self {
        let sum = |of: fn(&Self) -> usize| writes.iter().map(of).sum::<usize>();
        let fences = sum(|write| usize::from(write.has_fence()));
        let claims = sum(|write| usize::from(write.has_claim()));
        // Workers find messages through the fence.
        let fence_of_messages = usize::from(messages > 0 && fences == 0);
        let operations = sum(|write| write.operations) + messages + fence_of_messages;
        Self {
            verb: "transaction",
            reads: sum(|write| write.reads),
            reservations: sum(|write| write.reservations) - claims.saturating_sub(1),
            uploads: sum(|write| write.uploads),
            operations: operations - fences.saturating_sub(1) - claims.saturating_sub(1),
            stages: writes.iter().map(|write| write.stages).fold(Stages::default(), Stages::join),
            after: sum(|write| write.after),
            removals: sum(|write| write.removals),
            is_confirmed: writes.iter().any(|write| write.is_confirmed),
        }
    }

    /// Returns whether the transaction writes rows of the outbox: a dirty row for each entity, and the fence.
    pub(super) const fn has_fence(&self) -> bool {
        self.after > 0
    }

    /// Returns whether unique values are reserved, so that the transaction deletes a claim.
    pub(super) const fn has_claim(&self) -> bool {
        self.reservations > 0
    }
}
