//! Questions that this crate asks of an error before it goes on. The answers follow from the facts about the error's
//! kind, and for a few kinds from the service's code.

use super::{
    entable_error::Error,
    facts::{Certainty, Fault, RetryChance},
    service::ServiceCode,
};

impl Error {
    /// Returns whether the failed request was certainly not carried out and never will be.
    #[doc(hidden)]
    pub fn is_certainly_not_executed(&self) -> bool {
        self.kind().facts().certainty == Certainty::NotExecuted
    }

    /// Returns whether it is unknown if a write was carried out: its answer was lost, or the backend failed. To
    /// learn this, the caller has to send the write again or read its row. Throttling is an answer: the
    /// service throttles before it does any work.
    #[doc(hidden)]
    pub fn is_answer_lost(&self) -> bool {
        self.kind().facts().certainty == Certainty::AnswerLost
    }

    /// Returns the chance that the request succeeds when it is sent again unchanged. Workers use it to
    /// decide whether a failure counts towards the poison table, or the work is tried again later
    /// without a limit.
    #[doc(hidden)]
    pub fn retry_chance(&self) -> RetryChance {
        if self.is_refused_by_move() || self.is_table_being_deleted() {
            return RetryChance::PassesAlone;
        }
        self.kind().facts().retry
    }

    /// Returns whether another writer changed, created or deleted the row first. A missing table is
    /// no lost race.
    #[doc(hidden)]
    pub fn is_lost_race(&self) -> bool {
        self.lost_race_or_table() && !self.is_table_missing() && !self.is_table_being_deleted()
    }

    /// Returns whether another writer changed, created or deleted the row, or deleted the table,
    /// first. A repair asks this: its finding is outdated either way.
    #[doc(hidden)]
    pub fn lost_race_or_table(&self) -> bool {
        self.kind().facts().is_lost_race
    }

    /// Returns whether the error means that the target of a move refuses the entity permanently. The caller
    /// then checks whether an earlier attempt already inserted the entity, and ends the move if not.
    #[doc(hidden)]
    pub fn ends_move(&self) -> bool {
        self.kind().facts().fault.contains(Fault::TARGET)
    }

    /// Returns whether one entity cannot be read: a row of it cannot be decrypted or read as its type, is
    /// damaged, or lacks another part of the entity. A query returns the error at the entity's place, and
    /// goes on with the others.
    #[doc(hidden)]
    pub fn concerns_one_item(&self) -> bool {
        self.concerns_one_row() || self.is_corrupt()
    }

    /// Returns whether a stored row cannot be decrypted or read as its type. A job over many rows
    /// reports the row and goes on with the others.
    #[doc(hidden)]
    pub fn concerns_one_row(&self) -> bool {
        self.kind().facts().fault.contains(Fault::ROW)
    }

    /// Returns whether one entity cannot be rewritten because of its row, its blobs or another entity. A job
    /// over many entities reports such an entity and continues with the next.
    #[doc(hidden)]
    pub fn concerns_one_entity(&self) -> bool {
        self.kind().facts().fault.contains(Fault::ENTITY) && !self.is_table_being_deleted()
    }

    /// Returns whether the store refuses one row of a transaction, and would take the others. A store
    /// without the table would take none.
    #[doc(hidden)]
    pub fn refuses_one_row(&self) -> bool {
        let is_about_table = self.is_table_missing() || self.is_table_being_deleted();
        self.kind().facts().fault.contains(Fault::OPERATION) && !is_about_table
    }

    /// Returns whether an insert failed because a row with its keys already exists.
    #[doc(hidden)]
    pub fn row_exists(&self) -> bool {
        self.is_conflict() && !self.is_table_being_deleted()
    }

    /// Returns whether the request failed because its row does not exist, while its table does.
    #[doc(hidden)]
    pub fn is_row_missing(&self) -> bool {
        self.is_not_found() && self.service_code() == Some(&ServiceCode::ResourceNotFound)
    }

    /// Returns whether the row is no longer in the version that was read: another writer changed or
    /// deleted it.
    #[doc(hidden)]
    pub fn is_row_changed_or_gone(&self) -> bool {
        self.is_precondition_failed() || self.is_row_missing()
    }

    /// Returns whether the request failed because its table does not exist.
    #[doc(hidden)]
    pub fn is_table_missing(&self) -> bool {
        self.is_not_found() && self.service_code() == Some(&ServiceCode::TableNotFound)
    }

    /// Returns whether a table was not created because it already exists.
    #[doc(hidden)]
    pub fn table_exists(&self) -> bool {
        self.is_conflict() && self.service_code() == Some(&ServiceCode::TableAlreadyExists)
    }

    /// Returns whether the service is still deleting the table, which takes it some 40 seconds.
    #[doc(hidden)]
    pub fn is_table_being_deleted(&self) -> bool {
        self.is_conflict() && self.service_code() == Some(&ServiceCode::TableBeingDeleted)
    }

    /// Returns whether the write was refused because the entity takes part in a move.
    #[doc(hidden)]
    pub fn is_refused_by_move(&self) -> bool {
        self.is_conflict() && self.has_moving_mark()
    }
}

#[cfg(test)]
mod tests {
    use crate::error::ErrorKind;

    use super::{
        Error, RetryChance,
        RetryChance::{Never, PassesAlone, Unclear},
        ServiceCode,
    };

    /// Returns the answers of the methods that [`ANSWERS`] lists, in the order of its columns.
    fn answers(error: &Error) -> (RetryChance, [bool; 8]) {
        let rest = [
            error.is_certainly_not_executed(),
            error.is_answer_lost(),
            error.is_lost_race(),
            error.lost_race_or_table(),
            error.ends_move(),
            error.concerns_one_row(),
            error.concerns_one_entity(),
            error.refuses_one_row(),
        ];
        (error.retry_chance(), rest)
    }

    const ANSWERS: [(ErrorKind, RetryChance, [u8; 8]); 25] = [
        // kind, retry, [is_certainly_not_executed, is_answer_lost, lost_race, lost_race_or_table, ends_move,
        // concerns_one_row, concerns_one_entity, refuses_one_row]
        (ErrorKind::NotFound, Never, [1, 0, 1, 1, 1, 0, 0, 1]),
        (ErrorKind::Conflict, Unclear, [1, 0, 1, 1, 1, 0, 1, 1]),
        (ErrorKind::PreconditionFailed, PassesAlone, [1, 0, 1, 1, 0, 0, 0, 1]),
        (ErrorKind::UniqueViolation, Never, [1, 0, 0, 0, 1, 0, 0, 0]),
        (ErrorKind::TooLarge, Never, [1, 0, 0, 0, 1, 0, 1, 1]),
        (ErrorKind::Throttled, PassesAlone, [0, 0, 0, 0, 0, 0, 0, 0]),
        (ErrorKind::UnrecognizedEntity, Unclear, [1, 0, 0, 0, 0, 1, 1, 0]),
        (ErrorKind::Decode, Never, [1, 0, 0, 0, 1, 1, 1, 0]),
        (ErrorKind::Decrypt, Never, [1, 0, 0, 0, 0, 1, 1, 0]),
        (ErrorKind::KeyUnavailable, PassesAlone, [1, 0, 0, 0, 0, 1, 1, 0]),
        (ErrorKind::Ambiguous, PassesAlone, [0, 1, 0, 0, 0, 0, 0, 0]),
        (ErrorKind::Contended, PassesAlone, [1, 0, 0, 0, 0, 0, 0, 0]),
        (ErrorKind::LeaseLost, Unclear, [1, 0, 0, 0, 0, 0, 0, 0]),
        (ErrorKind::Invalid, Never, [1, 0, 0, 0, 1, 0, 0, 1]),
        (ErrorKind::ScanRefused, Unclear, [1, 0, 0, 0, 0, 0, 0, 0]),
        (ErrorKind::InvalidCursor, Unclear, [1, 0, 0, 0, 0, 0, 0, 0]),
        (ErrorKind::Rejected, Never, [1, 0, 0, 0, 0, 0, 0, 0]),
        (ErrorKind::Unsupported, Never, [1, 0, 0, 0, 0, 0, 0, 0]),
        (ErrorKind::Lossy, Never, [1, 0, 0, 0, 0, 0, 0, 0]),
        (ErrorKind::Stale, Never, [1, 0, 0, 0, 0, 0, 1, 0]),
        (ErrorKind::Denied, PassesAlone, [1, 0, 0, 0, 0, 0, 0, 0]),
        (ErrorKind::Locked, PassesAlone, [1, 0, 0, 0, 0, 0, 0, 0]),
        (ErrorKind::RolledBack, Never, [1, 0, 0, 0, 0, 0, 0, 0]),
        (ErrorKind::Corrupt, Never, [1, 0, 0, 0, 0, 0, 1, 1]),
        (ErrorKind::Backend, PassesAlone, [0, 1, 0, 0, 0, 0, 0, 0]),
    ];

    #[test]
    fn each_kind_has_its_answers() {
        for (kind, retry, rest) in ANSWERS {
            let error = Error::new(kind, "failed");
            assert_eq!(answers(&error), (retry, rest.map(|answer| answer == 1)), "{kind:?}");
            let by_code = [error.is_row_missing(), error.is_table_missing(), error.table_exists()];
            assert_eq!((by_code, error.is_refused_by_move()), ([false; 3], false), "{kind:?}");
            assert_eq!(error.row_exists(), kind == ErrorKind::Conflict, "{kind:?}");
            assert_eq!(
                error.is_row_changed_or_gone(),
                kind == ErrorKind::PreconditionFailed,
                "{kind:?}"
            );
        }
    }

    #[test]
    fn a_missing_table_is_no_lost_race_and_no_refused_row_but_ends_a_repair() {
        for code in [ServiceCode::TableNotFound, ServiceCode::TableBeingDeleted] {
            let error = Error::service(code, "no table");
            assert!(!error.is_lost_race() && !error.row_exists() && error.lost_race_or_table());
            assert!(
                !error.concerns_one_entity()
                    && !error.refuses_one_row()
                    && !error.is_row_changed_or_gone()
            );
        }
        assert!(Error::service(ServiceCode::TableNotFound, "no table").is_table_missing());
        let missing = Error::service(ServiceCode::ResourceNotFound, "no row");
        assert!(missing.is_row_missing() && !missing.is_table_missing() && missing.is_lost_race());
        assert!(missing.is_row_changed_or_gone());
        assert!(!Error::service(ServiceCode::TableNotFound, "no table").is_row_changed_or_gone());
        assert!(Error::service(ServiceCode::TableAlreadyExists, "there").table_exists());
    }

    #[test]
    fn a_code_does_not_settle_a_write_whose_answer_was_lost() {
        let lost = Error::new(ErrorKind::Ambiguous, "lost").with_code(ServiceCode::TableNotFound);
        assert!(!lost.is_table_missing() && !lost.is_certainly_not_executed());
    }

    #[test]
    fn a_move_and_the_deletion_of_a_table_pass_alone() {
        let moving = Error::moving_entity("Sales", "empid_000223");
        assert!(moving.is_refused_by_move() && moving.is_lost_race() && moving.ends_move());
        assert_eq!(moving.keys(), Some(("Sales", "empid_000223")));
        let deleting = Error::service(ServiceCode::TableBeingDeleted, "wait");
        assert_eq!((moving.retry_chance(), deleting.retry_chance()), (PassesAlone, PassesAlone));
        assert!(!deleting.is_refused_by_move());
    }
}
