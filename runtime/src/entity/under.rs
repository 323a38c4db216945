//! Combines a value with the ETag of the version that it replaces, such as one that an HTTP client sent.

use super::{Stored, TableEntity};
use crate::row::{ETag, Row};

impl<T: TableEntity> Stored<T> {
    /// Combines a value with the ETag of the stored version that you want to replace, such as an `If-Match` header
    /// from an HTTP client. The keys are taken from the value. Nothing is read.
    ///
    /// [`replace`](crate::Table::replace) and [`delete`](crate::Table::delete) of the result cost one request if
    /// the entity consists of a single row: no copies, lists, blobs or parts, and no `{..:hmac}` in its keys. A
    /// replacement also needs `drop_unknown`, because it otherwise keeps the properties that the struct does not
    /// declare. In all other cases the entity is read first. If the store has another version, the write fails with
    /// `is_precondition_failed` and nothing is written. [`patch`](crate::Table::patch) always reads first.
    ///
    /// The ETag is sent unchanged. An ETag that a proxy has made strong (`"x"` for `W/"x"`) matches no version. `*`
    /// is not an ETag: use [`replace_any`](crate::Table::replace_any) or [`delete_at`](crate::Table::delete_at)
    /// instead. If the value's keys are invalid, the write fails.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let Some(cao) = staff.get(at(7)).await? else { return Ok(()) };
    /// let if_match = cao.etag().to_string(); // was sent to a client, which sends it back with its change
    ///
    /// let changed = Employee { age: 31, ..cao.into_inner() };
    /// let written = staff.replace(&Stored::under(changed.clone(), if_match.as_str())).await?;
    /// assert_eq!(written.age, 31);
    /// let late = staff.replace(&Stored::under(changed, if_match.as_str())).await;
    /// assert!(late.is_err_and(|error| error.is_precondition_failed()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn under(value: T, etag: impl Into<ETag>) -> Self {
        // The verb encodes the value again and reports its error.
        let row = value.to_row().unwrap_or_else(|_| Row::without_keys());
        Self::from_caller(value, row.with_etag(etag.into()))
    }
}
