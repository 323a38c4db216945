//! The progress and the report of a bulk write.

use crate::{
    error::{Error, Result},
    limits::saturating_u64,
};

/// The counts of a bulk write so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Progress {
    /// Entities that were written.
    pub done: u64,
    /// Entities that have failed so far. Includes updates that lost a race, until they are tried again.
    pub failed: u64,
    /// Requests that wrote entities: transactions and single writes. Does not count reads or the library's own
    /// rows, which are included in `Client::usage`.
    pub requests: u64,
}

/// An entity that was not written.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Failure {
    /// The position of the entity in the input, counted from 0: an index into the slice that was given. For an update, the position among the items of the
    /// query, without the entities that the query found again.
    pub index: usize,
    /// The error that prevented the write.
    pub error: Error,
}

/// The result of a bulk write.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct BulkReport {
    /// Entities that were written.
    pub done: u64,
    /// Entities that were not written, in input order.
    pub failed: Vec<Failure>,
    /// Requests that wrote entities: transactions and single writes. Does not count reads or the library's own
    /// rows, which are included in `Client::usage`.
    pub requests: u64,
}

impl BulkReport {
    /// Returns whether every entity was written.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let report = staff().await?.bulk().insert_all([employee(7, "Cao")]).await?;
    /// assert!(!report.is_complete(), "number 7 exists");
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_complete(&self) -> bool {
        self.failed.is_empty()
    }

    /// Returns the report, or the first failure as an error.
    ///
    /// # Errors
    ///
    /// Returns the error of the first entity that was not written. [`failed_index`](Error::failed_index) returns
    /// the entity's position.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let report = staff().await?.bulk().insert_all([employee(7, "Cao")]).await?;
    /// assert!(report.into_result().is_err_and(|error| error.is_conflict()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_result(self) -> Result<Self> {
        match self.failed.first() {
            None => Ok(self),
            Some(first) => Err(first.error.clone().at_operation(first.index)),
        }
    }

    /// Returns the counts so far.
    pub(super) fn progress(&self) -> Progress {
        let failed = saturating_u64(self.failed.len());
        Progress { done: self.done, failed, requests: self.requests }
    }
}
