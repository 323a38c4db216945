//! The guards of a queue in a table, each of which a history can leave out to show that it is needed.

/// A rule that keeps a queue right. All of them hold, always.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub enum QueueGuard {
    /// A message is taken by moving its row: one transaction deletes the old one and inserts the new.
    Moved,
    /// A row is hidden by the store's own clock, whatever its RowKey says.
    HiddenByStore,
    /// What became of a change whose answer was lost is read.
    LookedInto,
}
