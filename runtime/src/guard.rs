//! Switches for tests of the outbox and of queues in tables. A *guard* is a safety rule of their protocols, such as "write
//! a copy only under the ETag that was read". A *mutation* is a mistake in the code. A test disables one guard or makes
//! one mistake, and shows that something then goes wrong. Programs keep all guards and make no mistake.

use std::future::Future;

use crate::{
    batch::{Condition, Operation, Verb},
    error::Result,
    row::{ETag, Row},
};

/// A rule that the protocols for remote work and for queues in tables rely on. Programs keep every rule. A
/// test build can disable one to show the damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
#[cfg_attr(not(feature = "conformance"), allow(unreachable_pub, reason = "re-exported for tests"))]
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

macro_rules! mutations {
    ($($(#[$docs:meta])* $name:ident,)*) => {
        /// A mistake that a test build can make in the code of plans, writers, workers, queues, checks and
        /// bulk writes, to show that a test notices it. `tests/mutations.md` lists each with the test.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[doc(hidden)]
        #[cfg_attr(not(feature = "conformance"), allow(unreachable_pub, reason = "re-exported for tests"))]
        pub enum Mutation {
            $($(#[$docs])* $name,)*
        }

        #[cfg(feature = "conformance")]
        impl Mutation {
            /// All mutations, in the order of their declaration.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];
        }
    };
}

mutations! {
    /// Rows of unknown kinds and formats do not keep a fence from being deleted.
    UnknownWorkIsNone,
    /// The outbox rows after a partition's first chunk are not read.
    FirstChunkAlone,
    /// The directory markers after the first page are not read.
    FirstPageAlone,
    /// Work is deleted at its place before it is inserted into the poison table.
    PoisonAfterDeletion,
    /// A writer that deleted a copy itself needs no second look at it.
    OwnDeletionIsSettled,
    /// A registration counts as complete although its directory marker was not written.
    MarkerNotNeeded,
    /// A rebuild, a repair, or a poisoned row that is put back replaces the names in an open dirty
    /// row.
    NamesReplaced,
    /// A claim is marked dead however young it is.
    YoungClaimKilled,
    /// An effect of a message is committed although the message's lease has expired.
    EffectAfterLease,
    /// A dirty row is deleted although it names a copy of an unknown type.
    UnknownCopyIsRight,
    /// A temporary failure counts towards the poison table.
    PassingFailureCounts,
    /// Work that was done is no longer due once it waits for its second look.
    SecondLookForgotten,
    /// Fences and open work of a store without order are read together.
    OrderAssumed,
    /// A partition leaves the directory although reads may not show its work.
    LaggingReadsTrusted,
    /// A damaged fence does not keep its directory marker.
    DamagedFenceForgotten,
    /// The lease of a message counts from the answer to its take.
    LeaseFromAnswer,
    /// The lease of a message is not renewed while its handler runs.
    RenewalForgotten,
    /// A message whose lease a stopping worker gives back stays leased.
    LeaseKept,
    /// A handled message with receipts is deleted at once.
    ReceiptsOrphaned,
    /// A copy that names the primary's ETag settles whatever its content.
    ContentNotCompared,
    /// A copy that names the primary's ETag settles although reads may be behind.
    LaggingCopySettles,
    /// A copy that is not wanted settles because it is absent.
    AbsentCopySettles,
    /// A list that is rewritten after a race keeps the content planned before it.
    LatePrimaryNotRead,
    /// A reservation that changes while it is settled counts as settled.
    SettlingGivesUp,
    /// A row under a unique key is taken over whatever its ETag.
    TakenOverBlindly,
    /// A transaction lists its copies before its primaries.
    CopiesFirst,
    /// A new local copy replaces the row that has its key.
    TakenKeyReplaced,
    /// A local copy whose key changes also stays under its old key.
    OldCopyStays,
    /// A local copy whose key stays keeps its old content.
    KeptCopyStays,
    /// A local copy is inserted although the transaction frees its key.
    FreedKeyInserted,
    /// An id that leaves a local list stays in it.
    ListedIdStays,
    /// A primary is written whatever its ETag.
    PrimaryUnconditional,
    /// A dirty row does not name the copies to delete.
    OldRemoteCopyUnnamed,
    /// A bulk group ends with its first failing change.
    RestOfGroupForgotten,
    /// The second half of an oversized bulk group is not written.
    SecondHalfForgotten,
    /// A rewritten entity that another writer changed first counts as rewritten.
    RacedRewriteIsDone,
    /// A repair records only the first transaction of open work.
    FirstRepairAlone,
    /// A check confirms a finding although its second read shows another version.
    ChangedSuspectConfirmed,
    /// A repair writes a local copy whatever its ETag.
    RepairUnconditional,
    /// A rebuild does not hold a primary to the ETag that was read.
    RebuildUnconditional,
    /// Only the first shard of a queue is received.
    FirstShardAlone,
    /// The lease of a queue's message counts from the answer to its receipt.
    ReceiptFromAnswer,
    /// A receipt of a queue's message is not counted.
    ReceiptNotCounted,
    /// A receiver that loses one message to another leaves all that it found.
    LostMessageEndsReceipt,
    /// After a lost answer, a row of another receiver counts as the receiver's own.
    HolderNotCompared,
    /// A queue's message is handled although its lease ended before the answer came.
    LateReceiptHandled,
    /// A message that a worker gives back to its queue counts as tried.
    GivenBackIsTried,
    /// A claim of another client is ended as if this client had left it.
    ForeignClaimEnded,
    /// A claim that a writer of this client has left counts as dead without the mark.
    LeftClaimUnmarked,
    /// The lists of up to 256 dirty rows are held together, however large they are.
    ListsUnbounded,
}

/// Says which safety rules ([`Guard`]) the code follows. It follows all of them, unless a test has disabled one to show
/// the damage. Also says which deliberate mistake ([`Mutation`]) the code makes: none, unless a test asks for one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ActiveGuards {
    #[cfg(feature = "conformance")]
    disabled: Option<Guard>,
    #[cfg(feature = "conformance")]
    mutation: Option<Mutation>,
}

impl ActiveGuards {
    /// Returns guards with only `guard` disabled.
    #[cfg(feature = "conformance")]
    pub(crate) const fn all_except(guard: Guard) -> Self {
        Self { disabled: Some(guard), mutation: None }
    }

    /// Returns all guards, and lets the code make one mistake.
    #[cfg(feature = "conformance")]
    pub(crate) const fn with_mutation(mutation: Mutation) -> Self {
        Self { disabled: None, mutation: Some(mutation) }
    }

    /// Returns whether the code makes this mistake: never, in a build without simulations.
    #[cfg(not(feature = "conformance"))]
    #[allow(clippy::unused_self, reason = "a simulation mutates the code of one client")]
    pub(crate) const fn has_mutation(self, _: Mutation) -> bool {
        false
    }

    /// Returns whether the code makes this mistake: `true` if the simulation makes it.
    #[cfg(feature = "conformance")]
    pub(crate) fn has_mutation(self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    /// Returns whether the code follows the rule `guard`. Always `true` in a program's build.
    #[cfg(not(feature = "conformance"))]
    #[allow(clippy::unused_self, reason = "a simulation disables guards of one client")]
    pub(crate) const fn guard_holds(self, _: Guard) -> bool {
        true
    }

    /// Returns whether the code follows the rule `guard`: `false` if the test has disabled it.
    #[cfg(feature = "conformance")]
    pub(crate) fn guard_holds(self, guard: Guard) -> bool {
        self.disabled != Some(guard)
    }

    /// Returns `value`, such as an operation of a transaction. Returns `None` if the simulation disables the
    /// guard; the caller then leaves the value out.
    pub(crate) fn value_if_guarded<T>(self, guard: Guard, value: T) -> Option<T> {
        self.guard_holds(guard).then_some(value)
    }

    /// Returns the condition that a row still has `etag`, or no condition where the simulation disables
    /// the guard.
    pub(crate) fn condition_if_guarded(self, guard: Guard, etag: Option<ETag>) -> Condition {
        match self.guard_holds(guard) {
            true => Condition::for_etag(etag),
            false => Condition::Any,
        }
    }

    /// Returns the write of a remote row as it is, or without its condition where the simulation
    /// disables [`Guard::DestinationVersion`].
    pub(crate) fn keep_remote_condition_if_guarded(
        self,
        operation: Operation,
    ) -> Result<Operation> {
        if self.guard_holds(Guard::DestinationVersion) {
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
        if self.guard_holds(guard) { row } else { row.without_timestamp_and_etag() }
    }

    /// Awaits `first`, then `then`; in the other order where the simulation disables the guard.
    pub(crate) async fn await_in_order<A, B>(
        self,
        guard: Guard,
        first: impl Future<Output = Result<A>>,
        then: impl Future<Output = Result<B>>,
    ) -> Result<(A, B)> {
        if self.guard_holds(guard) {
            let first = first.await?;
            return Ok((first, then.await?));
        }
        let then = then.await?;
        Ok((first.await?, then))
    }
}
