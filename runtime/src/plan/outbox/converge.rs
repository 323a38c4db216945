//! What makes one row elsewhere what its primary says.

use super::remote_copy::{Owner, is_owned, owned_copy};
use crate::{
    batch::{Condition, Operation},
    entity::CopyFamily,
    error::Result,
    row::{ETag, Row},
};

/// What has to be done with a row elsewhere.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Under its condition; afterwards the row is there.
    Write(Operation),
    /// It holds what this version of the primary says: nothing is written, and that proves nothing
    /// about what is still on its way.
    Same,
    /// Under its condition; afterwards the row is not there.
    Delete(Operation),
    /// It is not there, or is another primary's, and shall be so.
    Nothing,
    /// It is claimed: nothing is to be done before the claim is settled.
    Left,
    /// Another primary's copy has the place.
    Taken,
}

/// The step for a row as it was found before the primary was read. `wanted`: what the primary
/// derives for the place, and the primary's version.
pub(crate) fn step(
    kinds: CopyFamily,
    owner: Owner<'_>,
    found: Option<&Row>,
    wanted: Option<(&Row, &ETag)>,
    may_skip: impl Fn(&Row, &Row, &ETag) -> Result<bool>,
) -> Result<Step> {
    Ok(match (wanted, found) {
        (Some((copy, version)), None) => {
            Step::Write(Operation::insert(owned_copy(copy, kinds, owner, Some(version))?))
        }
        (Some((copy, version)), Some(found)) if is_owned(found, kinds, owner)? => {
            let copy = owned_copy(copy, kinds, owner, Some(version))?;
            if may_skip(found, &copy, version)? {
                return Ok(Step::Same);
            }
            Step::Write(Operation::replace(copy, seen(found)))
        }
        (Some(_), Some(_)) => Step::Taken,
        (None, Some(found)) if is_owned(found, kinds, owner)? => {
            Step::Delete(Operation::delete(found.partition_key(), found.row_key(), seen(found))?)
        }
        (None, _) => Step::Nothing,
    })
}

fn seen(found: &Row) -> Condition {
    Condition::for_etag(found.etag())
}
