//! Joins a value to the ETag of the version that it replaces, such as one that an HTTP client sent.

use super::{Stored, TableEntity};
use crate::row::{ETag, Row};

impl<T: TableEntity> Stored<T> {
    /// Returns the value as the version of the entity that has this ETag, such as one that an HTTP client sent
    /// in `If-Match`. Its keys are those of the value. Nothing is read.
    ///
    /// [`replace`](crate::Table::replace) and [`delete`](crate::Table::delete) of it are one request where nothing else
    /// hangs on the entity: no copies, lists, blobs or parts, no `{..:hmac}` in its keys, and, for a replacement,
    /// `drop_unknown`, since any other replacement keeps the properties that the struct does not declare. Otherwise the
    /// entity is read first. Either way a store that holds another version fails the write with
    /// `is_precondition_failed`, and nothing is written. [`patch`](crate::Table::patch) always reads first.
    ///
    /// An ETag is sent as it is: one that a proxy has made strong (`"x"` for `W/"x"`) matches no version. `*` is not an ETag: use
    /// [`replace_any`](crate::Table::replace_any) or [`delete_at`](crate::Table::delete_at). A value whose keys are invalid
    /// fails the write.
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
        // A verb encodes the value again and reports why it cannot be.
        let row = value.to_row().unwrap_or_else(|_| Row::without_keys());
        Self::from_caller(value, row.with_etag(etag.into()))
    }
}
