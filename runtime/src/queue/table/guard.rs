//! The guards of a queue in a table. A test disables one of them to show that it is needed.

/// A rule that keeps a queue in a table correct. Outside of tests, all of them hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub enum QueueGuard {
    /// A receiver takes a message by one transaction that deletes its row and inserts another one.
    MoveInOneTransaction,
    /// A row stays hidden by the store's clock, even if its RowKey says that it is due.
    HiddenByStore,
    /// After a change whose answer was lost, the row is read to learn the outcome.
    ReadAfterLostAnswer,
}
