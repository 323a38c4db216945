//! Decides what makes one remote row equal to what its primary says.

use super::remote_copy::{CopyOwner, copy_with_owner};
use crate::{
    address::RowAt,
    batch::{Condition, Operation},
    entity::CopyFamily,
    error::Result,
    row::{ETag, Row},
};

/// The step that makes a remote row hold what its primary says.
#[derive(Debug, Clone)]
pub(crate) enum CopyStep {
    /// Send this write under its condition. Afterwards the copy is there.
    Write(Operation),
    /// Write nothing, because the row holds what this version of the primary says.
    // That proves nothing about writes that are still under way.
    Keep,
    /// Send this deletion under its condition. Afterwards the copy is gone.
    Delete(Operation),
    /// Do nothing: no copy is wanted, and the row is missing or is another primary's copy.
    NotOurs,
    /// Wait: the row is claimed, and only who settles the claim writes it.
    Claimed,
    /// Leave the row to whoever can tell whose it is, since it names its owner in the old form.
    Unclear,
    /// Report that another primary's copy has the key.
    Occupied,
}

/// Returns the step for a remote row. `found` is the row as it was read before the primary, with
/// whose copy it is; `wanted` is the copy that the primary should have and the primary's ETag.
pub(crate) fn plan_step(
    kinds: CopyFamily,
    owner: RowAt<'_>,
    found: Option<(&Row, CopyOwner)>,
    wanted: Option<(&Row, &ETag)>,
    may_keep: impl Fn(&Row, &Row, &ETag) -> Result<bool>,
) -> Result<CopyStep> {
    Ok(match (wanted, found) {
        (_, Some((_, CopyOwner::OursInOldForm))) => CopyStep::Unclear,
        (Some((copy, version)), None) => {
            let copy = copy_with_owner(copy, kinds, owner, Some(version))?;
            CopyStep::Write(Operation::insert(copy))
        }
        (Some((copy, version)), Some((found, CopyOwner::Ours))) => {
            let copy = copy_with_owner(copy, kinds, owner, Some(version))?;
            if may_keep(found, &copy, version)? {
                return Ok(CopyStep::Keep);
            }
            CopyStep::Write(Operation::replace(copy, Condition::for_etag(found.etag())))
        }
        (Some(_), Some(_)) => CopyStep::Occupied,
        (None, Some((found, CopyOwner::Ours))) => {
            let guard = Condition::for_etag(found.etag());
            let delete = Operation::delete(found.partition_key(), found.row_key(), guard)?;
            CopyStep::Delete(delete)
        }
        (None, _) => CopyStep::NotOurs,
    })
}
