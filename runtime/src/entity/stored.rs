//! Defines [`Stored`], a value with the row that it was read from or written as.

use std::{
    fmt,
    ops::{Deref, DerefMut},
};

use serde::{Serialize, Serializer};
use time::OffsetDateTime;

use super::BackgroundWork;
use crate::{
    error::Result,
    key::RowFamily,
    row::{ETag, Location, Row},
};

/// A value together with its stored row: keys, ETag and Timestamp.
///
/// Dereferences to the value, whose fields you can read and change in place. The row is kept unchanged, because a
/// write needs the old keys and the ETag.
#[derive(Clone)]
pub struct Stored<T> {
    value: T,
    row: Row,
    status: u16,
    /// The family of the row, if the row is a copy.
    copy: Option<&'static RowFamily>,
    /// Whether the row was made from the value instead of being read or written.
    is_from_caller: bool,
    /// The background work of the write that returned this value.
    pending: BackgroundWork,
}

/// The origin of a value's row.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RowSource {
    /// The entity's own row as it was read or written.
    Primary,
    /// A copy of this family. It does not contain its primary's ETag.
    Copy(&'static RowFamily),
    /// Made from the value, with an ETag from the caller. The store may hold different properties.
    Caller,
}

impl<T> Stored<T> {
    pub(crate) fn new(value: T, row: Row, status: u16) -> Self {
        let pending = BackgroundWork::default();
        Self { value, row, status, copy: None, is_from_caller: false, pending }
    }

    /// Creates a value whose row is made from it, with an ETag from the caller.
    pub(super) fn from_caller(value: T, row: Row) -> Self {
        Self { is_from_caller: true, ..Self::new(value, row, 200) }
    }

    /// Creates a value that was read from a row of `family`.
    pub(crate) fn from_read_row(value: T, row: Row, family: &'static RowFamily) -> Self {
        let copy = (!family.is_primary()).then_some(family);
        Self { copy, ..Self::new(value, row, 200) }
    }

    /// Attaches the background work of the write that returned the value.
    pub(crate) fn with_background_work(self, pending: BackgroundWork) -> Self {
        Self { pending, ..self }
    }

    pub(crate) fn pending_work(&self) -> &BackgroundWork {
        &self.pending
    }

    /// Waits until the write that returned this value has written its copies and lists in other partitions.
    /// Returns immediately for a value that was read.
    ///
    /// # Errors
    ///
    /// Fails with `is_contended` if the copies were left to a worker, otherwise with the error that stopped the
    /// background work. The write itself was committed.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// staff.insert(&employee(8, "Kwok")).await?.wait_for_copies().await?;
    /// assert_eq!(staff.client().worker().drain().await?.open, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn wait_for_copies(&self) -> Result<()> {
        self.pending.wait().await
    }

    /// Returns the name of the index through whose copy the value was read, or `None` for the primary row.
    ///
    /// The ETag of a copy cannot protect a write of the entity. A write of such a value therefore reads the primary
    /// first.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let by_email = Employee::by_email().department("Sales").email("cao7@contoso.com");
    /// assert_eq!(staff.get(by_email).await?.and_then(|cao| cao.index()), Some("ByEmail"));
    /// assert_eq!(staff.get(at(7)).await?.and_then(|cao| cao.index()), None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn index(&self) -> Option<&'static str> {
        self.copy.map(|family| family.name)
    }

    /// Returns the family of the row, if the row is a copy.
    pub(crate) fn copy_family(&self) -> Option<&'static RowFamily> {
        self.copy
    }

    pub(crate) fn source(&self) -> RowSource {
        match self.copy {
            Some(family) => RowSource::Copy(family),
            None if self.is_from_caller => RowSource::Caller,
            None => RowSource::Primary,
        }
    }

    /// Returns the PartitionKey of the stored row.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let cao = staff().await?.get(at(7)).await?;
    /// assert_eq!(cao.as_ref().map(|cao| cao.partition_key()), Some("Sales"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn partition_key(&self) -> &str {
        self.row.partition_key()
    }

    /// Returns the RowKey of the stored row.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let cao = staff().await?.get(at(7)).await?;
    /// assert_eq!(cao.as_ref().map(|cao| cao.row_key()), Some("empid_000007"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn row_key(&self) -> &str {
        self.row.row_key()
    }

    /// Returns where the value was read. This is [`Location::Secondary`] only for a client that reads an account's
    /// secondary region (`Client::azure_reader`). Such a value may be a few minutes old. If it is outdated, writing
    /// it with the primary's client fails with `is_precondition_failed`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let cao = staff().await?.get(at(7)).await?;
    /// assert_eq!(cao.map(|cao| cao.location()), Some(entable::Location::Primary));
    /// # Ok(())
    /// # }
    /// ```
    pub fn location(&self) -> Location {
        self.row.location_read_from()
    }

    /// Returns the ETag that was read or that the write returned. The ETag is empty if the answer to the write was
    /// lost and another writer has changed the entity since. Writes of this value then fail with
    /// `is_precondition_failed`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let cao = staff().await?.get(at(7)).await?;
    /// assert!(cao.is_some_and(|cao| cao.etag().to_string().starts_with("W/")));
    /// # Ok(())
    /// # }
    /// ```
    pub fn etag(&self) -> ETag {
        self.row.etag().unwrap_or_else(|| ETag::from(""))
    }

    /// Returns when the row was last written. May return `None` right after a write, whose response need not contain
    /// the time. Read the entity to find it out.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// assert_eq!(staff.insert(&employee(8, "Kwok")).await?.timestamp(), None);
    /// assert!(staff.get(at(8)).await?.is_some_and(|kwok| kwok.timestamp().is_some()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn timestamp(&self) -> Option<OffsetDateTime> {
        self.row.timestamp().map(OffsetDateTime::from)
    }

    /// Returns the HTTP status of the request: 200 for a read, 201 or 204 for a write.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// assert_eq!(staff.insert(&employee(8, "Kwok")).await?.status(), 201);
    /// assert_eq!(staff.get(at(8)).await?.map(|kwok| kwok.status()), Some(200));
    /// # Ok(())
    /// # }
    /// ```
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Returns the row that was read or written.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let cao = staff().await?.get(at(7)).await?;
    /// assert!(cao.is_some_and(|cao| cao.row().get("Email").is_ok_and(|email| email.is_some())));
    /// # Ok(())
    /// # }
    /// ```
    pub fn row(&self) -> &Row {
        &self.row
    }

    /// Converts the value with `change` and keeps the row. Fails if `change` fails.
    pub(crate) fn try_map_value<U>(
        self,
        change: impl FnOnce(T, &Row) -> Result<U>,
    ) -> Result<Stored<U>> {
        let value = change(self.value, &self.row)?;
        Ok(Stored {
            value,
            row: self.row,
            status: self.status,
            copy: self.copy,
            is_from_caller: self.is_from_caller,
            pending: self.pending,
        })
    }

    /// Replaces the value and keeps the row, with its ETag and Timestamp.
    pub(crate) fn with_value(self, value: T) -> Self {
        Self { value, ..self }
    }

    /// Returns the value without its row.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let cao = staff().await?.get(at(7)).await?;
    /// assert_eq!(cao.map(Stored::into_inner), Some(employee(7, "Cao")));
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_inner(self) -> T {
        self.value
    }
}

impl<T> Deref for Stored<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Stored<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> AsRef<T> for Stored<T> {
    fn as_ref(&self) -> &T {
        &self.value
    }
}

/// Returns the ETag of a row after a write whose answer was lost. `found` was read afterwards. Returns its ETag
/// if its content equals the written row. Returns `None` if another writer has changed the row or it could not be
/// read, which makes later writes under the ETag fail.
pub(crate) fn etag_if_unchanged(found: Result<Option<Row>>, written: &Row) -> Option<ETag> {
    let row = found.ok().flatten()?;
    row.has_same_content(written).then(|| row.etag()).flatten()
}

/// Equal if the values are equal and the rows have equal keys and ETags, which makes them one version of one
/// row. It does not matter how and when the rows were obtained.
impl<T: PartialEq> PartialEq for Stored<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
            && self.row.keys() == other.row.keys()
            && self.row.etag() == other.row.etag()
    }
}

/// Serializes only the value, without its row.
impl<T: Serialize> Serialize for Stored<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl<T: fmt::Debug> fmt::Debug for Stored<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stored")
            .field("value", &self.value)
            .field("row", &self.row)
            .field("status", &self.status)
            .finish()
    }
}
