//! Determines why a transaction failed, from the role of the row that failed.

use crate::{
    address::RowAt,
    batch::Verb,
    error::{Error, ErrorKind, ServiceCode},
    key::RowFamily,
    plan::{Change, OperationRole, TransactionPlan},
    row::Row,
};

/// Why a transaction failed, according to the row that failed.
pub(super) enum FailureCause<'t> {
    /// The primary of the verb at this position failed under the caller's own condition.
    Caller(usize),
    /// A local copy that the verb at this position inserts: a row with its key exists.
    OccupiedKey(usize, &'static RowFamily, &'t Row),
    /// An old local copy to be deleted, with this RowKey, does not exist.
    MissingCopy(String),
    /// A part of a wide entity, which the verb at this position deletes whatever its ETag, is missing.
    MissingPart(usize),
    /// Another writer changed a row after the plan was made from it.
    Race,
    /// The dirty row already exists, or the fence is gone.
    OutboxRow(OperationRole),
    /// The dirty row at this position among the dirty rows is full: too much work of its primary is open.
    WorkersBehind(usize),
    /// The transaction as a whole, or a row for which a retry does not help.
    Other,
}

impl<'t> FailureCause<'t> {
    /// Finds the failed row from the error's position in the transaction, and returns why it failed.
    pub(super) fn find_cause(
        error: &Error,
        transaction: &'t TransactionPlan,
        changes: &[Change],
    ) -> Self {
        let Some(at) = transaction.failed_position(error) else { return Self::Other };
        let Some(failed) = transaction.planned_operations().get(at) else { return Self::Other };
        if error.is_too_large() {
            return match (failed.role, transaction.verb_at(at)) {
                (OperationRole::Dirty(dirty), _) if is_full(error, failed.operation.verb()) => {
                    Self::WorkersBehind(dirty)
                }
                (_, Some(verb)) => Self::Caller(verb),
                (_, None) => Self::Other,
            };
        }
        let raced = error.is_lost_race();
        match failed.role {
            OperationRole::Primary(verb) => {
                let reads_again_after_race =
                    changes.get(verb).is_some_and(Change::reads_again_after_race);
                // With the caller's own ETag, the verb must report that the ETag is outdated. Others are planned again.
                if raced && reads_again_after_race { Self::Race } else { Self::Caller(verb) }
            }
            OperationRole::NewCopy(verb, family) if error.is_conflict() => {
                Self::OccupiedKey(verb, family, failed.operation.row())
            }
            OperationRole::NewCopy(verb, _) => Self::Caller(verb),
            // An index that is being built, or a copy that a repair removed: there is nothing to delete.
            OperationRole::OldCopy if error.is_not_found() && raced => {
                Self::MissingCopy(failed.operation.row().row_key().to_owned())
            }
            OperationRole::DeletedPart(verb) if raced => Self::MissingPart(verb),
            OperationRole::DeletedPart(verb) => Self::Caller(verb),
            role @ (OperationRole::Dirty(_)
            | OperationRole::MessageOrReceipt
            | OperationRole::Fence)
                if raced =>
            {
                Self::OutboxRow(role)
            }
            _ if raced => Self::Race,
            _ => Self::Other,
        }
    }
}

/// Returns whether a dirty row is full, from the error and the verb of its write. The row grows with each merge
/// until the work of its primary is done. A transaction that is too large as a whole says nothing about open work,
/// whichever row reached the limit.
fn is_full(error: &Error, verb: Verb) -> bool {
    let is_of_request = matches!(
        error.service_code(),
        Some(ServiceCode::RequestBodyTooLarge | ServiceCode::ContentLengthExceeded)
    );
    verb == Verb::InsertOrMerge && !is_of_request
}

/// Returns the error for a primary whose dirty row is full because no worker finishes its work.
pub(super) fn workers_behind_error(primary: RowAt<'_>) -> Error {
    let message = "the work on the entity's copies in other partitions is too far behind; run a worker with \
                   `client.worker().run(..)`";
    Error::new(ErrorKind::Contended, message).at_row(primary)
}
