//! The guards of the protocols, each of which a simulation can leave out to show that it is needed.

/// A rule that keeps work in other partitions right. All of them hold, always; tests that were
/// built to leave one out show what goes wrong then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
#[cfg_attr(not(feature = "conformance"), allow(unreachable_pub, reason = "re-exported for tests"))]
pub enum Guard {
    /// Open work is written together with the fence.
    FenceInTransaction,
    /// A fence is taken down only in the version that was seen beside no open work.
    FenceVersion,
    /// The fence stands before its marker.
    FenceFirst,
    /// Every registration has a fence of its own.
    FenceOfItsOwn,
    /// A dirty row that the writer removes itself was not there before.
    DirtyInserted,
    /// Rows elsewhere are written under the version that was read.
    DestinationVersion,
    /// Rows elsewhere are read before the primary.
    DestinationFirst,
    /// A copy is current when it says so, not when it holds the same.
    CurrentByVersion,
    /// A dirty row is removed in the version that was read.
    DirtyVersion,
    /// What was not written by oneself is looked at again when nobody can write it any more.
    SecondLook,
    /// An entry that is in its list already is written once more.
    EntryWritten,
    /// An entry that was taken out of its list, or was not in it, is looked at again when nobody can
    /// write it any more.
    EntrySecondLook,
    /// The transaction deletes its claim.
    ClaimInTransaction,
    /// A claim is called dead before its reservations are taken back.
    ClaimKilled,
    /// A claim is read after the reservation and before the primary.
    ClaimBetween,
    /// A reservation that is given up goes back to who holds its key.
    ReleaseRestores,
    /// A dead claim is removed when nobody can reserve by it any more.
    ClaimSecondLook,
    /// A claimed row is left alone while its claim is open.
    ClaimLeft,
    /// An entity that was moved is deleted in the version that was carried over.
    LeaveVersion,
    /// What says that a message had its effect, or that a moved entity arrived.
    Receipt,
    /// A check looks at open work before it takes a copy for wrong.
    CheckOpenWork,
    /// A check reports only what was so a flight before.
    CheckTwice,
    /// Leases of messages: an economy, nothing depends on it.
    Lease,
    /// A dirty row that was removed under a pass is put back: an economy.
    PutBack,
}

/// Which guards hold.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Guards(Option<Guard>);

impl Guards {
    /// All but one.
    #[cfg(feature = "conformance")]
    pub(crate) const fn without(guard: Guard) -> Self {
        Self(Some(guard))
    }

    /// Whether the guard holds.
    pub(crate) fn holds(self, guard: Guard) -> bool {
        self.0 != Some(guard)
    }
}
