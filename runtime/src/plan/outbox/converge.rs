//! Decides which write makes one remote row equal to what its primary derives.

use super::remote_copy::{CopyOwnership, copy_with_owner};
use crate::{
    address::RowAt,
    batch::{Condition, Operation},
    entity::CopyAndPrimaryFamily,
    error::Result,
    row::{ETag, Row},
};

/// The step that makes a remote row equal to what its primary derives.
#[derive(Debug, Clone)]
pub(crate) enum CopyStep {
    /// Send this write under its condition. The copy then exists.
    Write(Operation),
    /// Write nothing, because the row already contains what this version of the primary derives. This proves
    /// nothing about writes that are still in flight.
    Keep,
    /// Send this deletion under its condition. The copy then does not exist.
    Delete(Operation),
    /// Do nothing: no copy is wanted here, and the row is missing or belongs to another primary.
    NotOurs,
    /// Do not touch the row: a claim reserves it, and only the writer or worker that resolves the claim writes it.
    Claimed,
    /// Report that another primary's copy occupies the key.
    Occupied,
}

/// Returns the step for a remote row. `found` is the row as read before the primary, with its owner. `wanted` is
/// the copy that the primary derives, with the primary's ETag. `may_keep` receives the found copy, the wanted copy
/// and the ETag of the primary, and returns whether the found copy can be kept without a write.
pub(crate) fn plan_step_for_row(
    kinds: CopyAndPrimaryFamily,
    owner: RowAt<'_>,
    found: Option<(&Row, CopyOwnership)>,
    wanted: Option<(&Row, &ETag)>,
    may_keep: impl Fn(&Row, &Row, &ETag) -> Result<bool>,
) -> Result<CopyStep> {
    Ok(match (wanted, found) {
        (Some((copy, version)), None) => {
            let copy = copy_with_owner(copy, kinds, owner, Some(version))?;
            CopyStep::Write(Operation::insert(copy))
        }
        (Some((copy, version)), Some((found, CopyOwnership::Ours))) => {
            let copy = copy_with_owner(copy, kinds, owner, Some(version))?;
            if may_keep(found, &copy, version)? {
                return Ok(CopyStep::Keep);
            }
            CopyStep::Write(Operation::replace(copy, Condition::for_etag(found.etag())))
        }
        // A write here would take the key from another primary.
        (Some(_), Some(_)) => CopyStep::Occupied,
        (None, Some((found, CopyOwnership::Ours))) => {
            let guard = Condition::for_etag(found.etag());
            let delete = Operation::delete(found.partition_key(), found.row_key(), guard)?;
            CopyStep::Delete(delete)
        }
        (None, _) => CopyStep::NotOurs,
    })
}
