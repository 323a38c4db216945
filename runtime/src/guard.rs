//! Switches for tests of the outbox and of queues in tables. A *guard* is a safety rule of their protocols, such as "write
//! a copy only under the ETag that was read". A test disables one guard and shows that something then goes wrong. Programs
//! keep all guards.

use std::future::Future;

use crate::{
    batch::{Condition, Operation, Verb},
    error::Result,
    row::{ETag, Row},
};

/// A rule that the protocols for remote work and for queues in tables rely on. Programs keep every rule. A
/// test build can disable one to show the damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "conformance"), allow(unreachable_pub, reason = "tests name it"))]
pub enum Guard {
    /// A transaction that records open work also changes its partition's fence row.
    FenceInTransaction,
    /// A fence row is deleted only under the ETag that was read when its partition had no open work.
    FenceVersion,
    /// A fence row is inserted before its directory marker.
    FenceFirst,
    /// Each registration of a process has its own fence row.
    FenceOfItsOwn,
    /// A writer deletes a dirty row only if its own transaction inserted that row.
    DirtyInserted,
    /// Remote copies and lists are written under the ETag that was read.
    DestinationVersion,
    /// Remote copies and lists are read before their primary is read or committed.
    DestinationFirst,
    /// A copy is left unwritten only if it names the primary's ETag; equal contents do not count.
    CurrentByVersion,
    /// A dirty row is deleted under the ETag that was read or written before the pass.
    DirtyVersion,
    /// A dirty row whose copies were not all written by this actor stays until a pass that begins
    /// one write deadline later.
    SecondLook,
    /// An entry that is already in its remote list is written once more.
    EntryWritten,
    /// A dirty row whose entry was removed from a list, or was not in it, stays until a pass that
    /// begins one write deadline later.
    EntrySecondLook,
    /// A transaction that takes unique keys deletes its claim row.
    ClaimInTransaction,
    /// A claim row is marked dead before its reservations are taken back.
    ClaimKilled,
    /// A pass reads the claim row after the reserved copy and before the primary.
    ClaimBetween,
    /// A reservation that is given up becomes the copy of the entity that holds the key by then.
    ReleaseRestores,
    /// A dead claim row is deleted only by a round that begins one write deadline after the claim
    /// was marked dead.
    ClaimSecondLook,
    /// A reserved copy is not written while its claim is alive.
    ClaimLeft,
    /// A name in a dirty row or a claim counts only if its table is the index's or list's own.
    OwnTable,
    /// A claim resolves only reservations whose owner is the claim's primary.
    OwnReservation,
    /// A worker deletes a directory marker only if the marker's keys match its partition and
    /// registration.
    OwnMarker,
    /// A worker deletes a receipt only if it belongs to the message.
    OwnReceipt,
    /// The code of a message is verified before the message is taken.
    VerifiedFirst,
    /// The source of a move is verified at each read, not only before the message is taken.
    HeldAtEachRead,
    /// A receipt counts as the arrival of a moved entity only with its code.
    ArrivalVerified,
    /// A move is given up through a tombstone at the target.
    Tombstone,
    /// The source of a move is deleted under the ETag of the version that was carried over.
    LeaveVersion,
    /// A remote write is sent within the write deadline after the read or commit that it follows
    /// from, by both clocks.
    WriteDeadline,
    /// A receipt row records that a message had its effect, or that a moved entity arrived.
    Receipt,
    /// A check reads the dirty row before it reports a remote copy as wrong.
    CheckOpenWork,
    /// A check reports a remote finding only if a second reading, one write deadline later, shows
    /// it again.
    CheckTwice,
    /// A writer reads the floor before it makes a dated table.
    FloorRead,
    /// A dated table with open work is kept when old tables are dropped.
    OpenWorkKept,
    /// A receiver of a queue in a table takes a message by one transaction that deletes its row and
    /// inserts another one.
    MoveInOneTransaction,
    /// A row of a queue in a table stays hidden by the store's clock, even if its RowKey says that it
    /// is due.
    HiddenByStore,
    /// After a change of a queue in a table whose answer was lost, the row is read to learn the
    /// outcome.
    ReadAfterLostAnswer,
    /// A message that another worker has leased is not handed to a handler. This only saves work:
    /// correctness does not depend on it.
    Lease,
    /// A dirty row that another actor deleted during a pass is recorded again. This only saves work:
    /// correctness does not depend on it.
    PutBack,
}

/// Says which safety rules ([`Guard`]) the code follows. It follows all of them, unless a test has disabled one to show
/// the damage.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ActiveGuards {
    #[cfg(feature = "conformance")]
    disabled: Option<Guard>,
}

impl ActiveGuards {
    /// Returns guards with only `guard` disabled.
    #[cfg(feature = "conformance")]
    pub(crate) const fn with_guard_disabled(guard: Guard) -> Self {
        Self { disabled: Some(guard) }
    }

    /// Returns whether the code follows the rule `guard`. Always `true` in a program's build.
    #[cfg(not(feature = "conformance"))]
    #[allow(clippy::unused_self, reason = "a simulation disables guards of one client")]
    pub(crate) const fn is_guard_enabled(self, _: Guard) -> bool {
        true
    }

    /// Returns whether the code follows the rule `guard`: `false` if the test has disabled it.
    #[cfg(feature = "conformance")]
    pub(crate) fn is_guard_enabled(self, guard: Guard) -> bool {
        self.disabled != Some(guard)
    }

    /// Returns `value`, such as an operation of a transaction. Returns `None` if the simulation disables the
    /// guard; the caller then leaves the value out.
    pub(crate) fn value_if_guarded<T>(self, guard: Guard, value: T) -> Option<T> {
        self.is_guard_enabled(guard).then_some(value)
    }

    /// Returns the condition that a row still has `etag`, or no condition where the simulation disables
    /// the guard.
    pub(crate) fn condition_if_guarded(self, guard: Guard, etag: Option<ETag>) -> Condition {
        if self.is_guard_enabled(guard) { Condition::for_etag(etag) } else { Condition::Any }
    }

    /// Returns the write of a remote row as it is, or without its condition where the simulation
    /// disables [`Guard::DestinationVersion`].
    ///
    /// # Errors
    ///
    /// Fails if the operation has keys that no row can have.
    pub(crate) fn keep_remote_condition_if_guarded(
        self,
        operation: Operation,
    ) -> Result<Operation> {
        if self.is_guard_enabled(Guard::DestinationVersion) {
            return Ok(operation);
        }
        let row = operation.row();
        match operation.verb() {
            Verb::Delete => Operation::delete(row.partition_key(), row.row_key(), Condition::Any),
            // An insert or a replacement without its condition writes the row whatever is there.
            _ => Ok(Operation::insert_or_replace(row.clone())),
        }
    }

    /// Returns a row as it is, or without its ETag where the simulation disables the guard.
    pub(crate) fn keep_etag_if_guarded(self, guard: Guard, row: Row) -> Row {
        if self.is_guard_enabled(guard) { row } else { row.without_timestamp_and_etag() }
    }

    /// Awaits `first`, then `then`; in the other order where the simulation disables the guard.
    ///
    /// # Errors
    ///
    /// Returns the error of the future that failed. The later future is then not awaited.
    pub(crate) async fn await_in_guarded_order<A, B>(
        self,
        guard: Guard,
        first: impl Future<Output = Result<A>>,
        then: impl Future<Output = Result<B>>,
    ) -> Result<(A, B)> {
        if self.is_guard_enabled(guard) {
            let first = first.await?;
            return Ok((first, then.await?));
        }
        let then = then.await?;
        Ok((first.await?, then))
    }
}
