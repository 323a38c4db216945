//! The progress and the report of a rebuild.

use crate::{maintain::check::Finding, page::Cursor};

/// The counts of a rebuild so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RebuildProgress {
    /// Primary entities that were read.
    pub primaries: u64,
    /// Copies or list entries that were written, or recorded for workers.
    pub written: u64,
    /// The cursor for [`Rebuild::from`](super::Rebuild::from). Everything before it is committed. `None` at the end.
    pub cursor: Option<Cursor>,
}

/// The result of a rebuild.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RebuildReport {
    /// Primary entities that were read.
    pub primaries: u64,
    /// Copies or list entries that were written, or recorded for workers.
    pub written: u64,
    /// Primaries of older versions without the index. [`upgrade_all`](crate::Table::upgrade_all) adds them to it.
    pub older: u64,
    /// Stored copies in the primary's partition that differ from what a primary derives. A rebuild does not change
    /// them. To find out whether such a copy is stale or contested, run a [check](crate::Table::check). Its `repair`
    /// corrects stale copies.
    pub findings: Vec<Finding>,
}

impl RebuildReport {
    /// Returns whether the rebuild found no copy that differs from its primary, and no primary of a version without the
    /// index. Every entity is then in the index, or will be when workers have finished the recorded work.
    pub fn is_complete(&self) -> bool {
        self.findings.is_empty() && self.older == 0
    }
}
