//! The crate's error type: opaque and cheap to move. Each caller adds the place of the failure that it knows,
//! such as the table, the keys or the property.

use std::{error::Error as StdError, fmt, sync::Arc, time::Duration};

use super::{
    kind::{ErrorKind, Seen},
    printable::{write_name, write_printable_message, write_source},
    seal::SealFault,
    service::ServiceCode,
};
use crate::address::RowAt;

/// The error that a user's own callback (`update`, `validate`, a handler) may return.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// The result type of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why an operation failed.
///
/// Predicates ([`is_not_found`](Error::is_not_found), [`is_conflict`](Error::is_conflict), ..) return
/// the kind of failure. [`code`](Error::code) returns the Table service's error code on every backend.
/// The message names the table, keys and property, and never contains a secret value.
///
/// ```
/// use entable_core::{Error, ErrorKind};
///
/// let error = Error::new(ErrorKind::NotFound, "no such entity").in_table("Staff");
/// assert!(error.is_not_found());
/// assert_eq!(error.to_string(), "no such entity (table `Staff`)");
/// ```
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    code: Option<ServiceCode>,
    table: Option<String>,
    keys: Option<(String, String)>,
    property: Option<String>,
    index: Option<String>,
    holder: Option<(String, String)>,
    entity_type: Option<String>,
    failed_index: Option<usize>,
    seen: Option<Seen>,
    seal: Option<SealFault>,
    is_moving: bool,
    is_key_withheld: bool,
    retry_after: Option<Duration>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Creates an error of `kind`. `message` begins in lower case, ends without a full stop, and
    /// says what was found, what was expected and what to do.
    ///
    /// ```
    /// # use entable_core::{Error, ErrorKind, ServiceCode};
    /// let error = Error::new(ErrorKind::Rejected, "the order has no lines; add one");
    /// assert!(error.is_rejected());
    /// assert_eq!(error.to_string(), "the order has no lines; add one");
    /// ```
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            code: None,
            table: None,
            keys: None,
            property: None,
            index: None,
            holder: None,
            entity_type: None,
            failed_index: None,
            seen: None,
            seal: None,
            is_moving: false,
            is_key_withheld: false,
            retry_after: None,
            source: None,
        }))
    }

    /// Creates an error with a code of the service; the code determines the kind.
    ///
    /// ```
    /// # use entable_core::{Error, ErrorKind, ServiceCode};
    /// let error = Error::service(ServiceCode::EntityNotFound, "there is no such row");
    /// assert!(error.is_not_found());
    /// ```
    pub fn service(code: ServiceCode, message: impl Into<String>) -> Self {
        Self::new(code.kind(), message).with_code(code)
    }

    /// Creates the error of an encrypted value or of its key; the fault determines the kind.
    ///
    /// ```
    /// # use entable_core::{Error, SealFault};
    /// let error = Error::seal(SealFault::KeyUnavailable { retryable: true }, "the vault does not answer");
    /// assert_eq!(error.seal_fault(), Some(SealFault::KeyUnavailable { retryable: true }));
    /// ```
    pub fn seal(fault: SealFault, message: impl Into<String>) -> Self {
        let mut error = Self::new(fault.kind(), message);
        error.0.seal = Some(fault);
        error
    }

    /// Adds that the key store withheld the key, as for a missing permission: the key may still exist.
    #[doc(hidden)]
    pub fn with_key_withheld(mut self) -> Self {
        self.0.is_key_withheld = true;
        self
    }

    /// Creates the `Rejected` of the user's own code, which did not accept `what` for that reason.
    #[doc(hidden)]
    pub fn rejected_by_user_code(what: &str, reason: BoxError) -> Self {
        let message = format!("{what} was not accepted: {reason}");
        Self::new(ErrorKind::Rejected, message).with_source(reason)
    }

    /// Creates the `Conflict` that refuses a change of an entity while a move transfers it to other keys.
    #[doc(hidden)]
    pub fn moving_entity(partition_key: &str, row_key: &str) -> Self {
        let message =
            "the entity is moving between partitions or tables; wait until the move completes";
        let mut error = Self::new(ErrorKind::Conflict, message).at_keys(partition_key, row_key);
        error.0.is_moving = true;
        error
    }

    /// Creates the error for a key of a unique index that another entity holds. Its service code is
    /// `EntityAlreadyExists`, wherever the index is and whichever request found the conflict.
    #[doc(hidden)]
    pub fn unique_violation(index: &str, message: impl Into<String>) -> Self {
        let error = Self::new(ErrorKind::UniqueViolation, message).with_index(index);
        error.with_code(ServiceCode::EntityAlreadyExists)
    }

    /// Adds the service's error code; the kind stays.
    ///
    /// ```
    /// # use entable_core::{Error, ErrorKind, ServiceCode};
    /// let error = Error::new(ErrorKind::NotFound, "gone").with_code(ServiceCode::TableNotFound);
    /// assert_eq!(error.service_code(), Some(&ServiceCode::TableNotFound));
    /// ```
    #[must_use]
    pub fn with_code(mut self, code: ServiceCode) -> Self {
        self.0.code = Some(code);
        self
    }

    /// Names the table, unless the error already names one.
    ///
    /// ```
    /// # use entable_core::{Error, ErrorKind, ServiceCode};
    /// let error = Error::new(ErrorKind::NotFound, "gone").in_table("Staff").in_table("Other");
    /// assert_eq!(error.to_string(), "gone (table `Staff`)");
    /// ```
    #[must_use]
    pub fn in_table(mut self, table: &str) -> Self {
        // The code nearest to the failure names its table first, so an earlier name is kept.
        self.0.table.get_or_insert_with(|| table.to_owned());
        self
    }

    /// Names the row's keys, unless the error already names keys.
    ///
    /// ```
    /// # use entable_core::{Error, ErrorKind, ServiceCode};
    /// let error = Error::new(ErrorKind::NotFound, "gone").at_keys("Sales", "empid_000223");
    /// assert_eq!(error.keys(), Some(("Sales", "empid_000223")));
    /// ```
    #[must_use]
    pub fn at_keys(mut self, partition_key: &str, row_key: &str) -> Self {
        // The code nearest to the failure names its row first, so earlier keys are kept.
        self.0.keys.get_or_insert_with(|| (partition_key.to_owned(), row_key.to_owned()));
        self
    }

    /// Names table and keys of the row, unless the error already names them.
    #[doc(hidden)]
    pub fn at_row(self, at: RowAt<'_>) -> Self {
        self.in_table(at.table.as_str()).at_keys(at.partition_key, at.row_key)
    }

    /// Names the property, unless the error already names one.
    ///
    /// ```
    /// # use entable_core::{Error, ErrorKind, ServiceCode};
    /// let error = Error::new(ErrorKind::Decode, "expected Int32").in_property("Age");
    /// assert_eq!(error.property(), Some("Age"));
    /// ```
    #[must_use]
    pub fn in_property(mut self, property: &str) -> Self {
        self.0.property.get_or_insert_with(|| property.to_owned());
        self
    }

    /// Names the unique index whose key is taken.
    ///
    /// ```
    /// # use entable_core::{Error, ErrorKind, ServiceCode};
    /// let error = Error::new(ErrorKind::UniqueViolation, "the key is taken").with_index("ByEmail");
    /// assert!(error.to_string().contains("index `ByEmail`"));
    /// ```
    #[must_use]
    pub fn with_index(mut self, index: &str) -> Self {
        self.0.index = Some(index.to_owned());
        self
    }

    /// Names the entity that holds the key of the unique index.
    ///
    /// ```
    /// # use entable_core::{Error, ErrorKind, ServiceCode};
    /// let error = Error::new(ErrorKind::UniqueViolation, "the key is taken").held_by("Sales", "empid_000223");
    /// assert_eq!(error.holder(), Some(("Sales", "empid_000223")));
    /// ```
    #[must_use]
    pub fn held_by(mut self, partition_key: &str, row_key: &str) -> Self {
        self.0.holder = Some((partition_key.to_owned(), row_key.to_owned()));
        self
    }

    /// Adds the type of the row, such as its discriminator's value, unless the error already names a
    /// type.
    ///
    /// ```
    /// # use entable_core::{Error, ErrorKind, ServiceCode};
    /// let error = Error::new(ErrorKind::UnrecognizedEntity, "unknown type").of_type("Robot");
    /// assert_eq!(error.entity_type(), Some("Robot"));
    /// ```
    #[must_use]
    pub fn of_type(mut self, entity_type: &str) -> Self {
        self.0.entity_type.get_or_insert_with(|| entity_type.to_owned());
        self
    }

    /// Adds the position of the failed operation, counted from 0 in the caller's order.
    ///
    /// ```
    /// # use entable_core::{Error, ErrorKind, ServiceCode};
    /// let error = Error::new(ErrorKind::Conflict, "the row exists").at_operation(3);
    /// assert_eq!(error.failed_index(), Some(3));
    /// ```
    #[must_use]
    pub fn at_operation(mut self, index: usize) -> Self {
        self.0.failed_index = Some(index);
        self
    }

    /// Adds the state in which a later read found the row, after the answer to its write was lost.
    ///
    /// ```
    /// # use entable_core::{Error, ErrorKind, Seen};
    /// let error = Error::new(ErrorKind::Ambiguous, "the answer was lost").with_seen(Seen::Absent);
    /// assert_eq!(error.seen(), Some(Seen::Absent));
    /// ```
    #[must_use]
    pub fn with_seen(mut self, seen: Seen) -> Self {
        self.0.seen = Some(seen);
        self
    }

    /// Adds how long the service asks to wait before the next request.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use entable_core::{Error, ErrorKind};
    /// let wait = Duration::from_secs(2);
    /// let error = Error::new(ErrorKind::Throttled, "too many requests").with_retry_after(wait);
    /// assert_eq!(error.retry_after(), Some(wait));
    /// ```
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.0.retry_after = Some(wait);
        self
    }

    /// Removes the position of the failed operation, for a verb that has only one operation.
    ///
    /// ```
    /// # use entable_core::{Error, ErrorKind};
    /// let error = Error::new(ErrorKind::Conflict, "the entity already exists").at_operation(2);
    /// assert_eq!(error.without_operation().failed_index(), None);
    /// ```
    pub fn without_operation(mut self) -> Self {
        self.0.failed_index = None;
        self
    }

    /// Puts text before the message.
    ///
    /// ```
    /// # use entable_core::{Error, ErrorKind};
    /// let error = Error::new(ErrorKind::Decode, "expected Int32").with_message_prefix("line 7: ");
    /// assert_eq!(error.message(), "line 7: expected Int32");
    /// ```
    pub fn with_message_prefix(mut self, prefix: &str) -> Self {
        self.0.message.insert_str(0, prefix);
        self
    }

    /// Puts text behind the message.
    ///
    /// ```
    /// # use entable_core::{Error, ErrorKind};
    /// let error = Error::new(ErrorKind::Decode, "expected Int32").with_message_suffix(" in line 7");
    /// assert_eq!(error.message(), "expected Int32 in line 7");
    /// ```
    pub fn with_message_suffix(mut self, suffix: &str) -> Self {
        self.0.message.push_str(suffix);
        self
    }

    /// Adds the cause, which [`source`](StdError::source) returns.
    ///
    /// ```
    /// # use std::error::Error as _;
    /// # use entable_core::{Error, ErrorKind};
    /// let cause = std::io::Error::other("the disk is full");
    /// let error = Error::new(ErrorKind::Rejected, "the photo was not read").with_source(cause);
    /// assert_eq!(error.source().map(ToString::to_string), Some("the disk is full".into()));
    /// ```
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.0.source = Some(source.into().into());
        self
    }

    /// Returns the kind of failure.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let taken = insert(&staff().await?, &["empid_000007"]).await.unwrap_err();
    /// assert_eq!(taken.kind(), ErrorKind::Conflict);
    /// # Ok(())
    /// # }
    /// ```
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the service's error code, such as `EntityAlreadyExists`; every backend uses these codes.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let taken = insert(&staff().await?, &["empid_000007"]).await.unwrap_err();
    /// assert_eq!(taken.code(), Some("EntityAlreadyExists"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn code(&self) -> Option<&str> {
        self.0.code.as_ref().map(ServiceCode::as_str)
    }

    /// Returns the service's error code as an enum.
    ///
    /// ```
    /// # use entable_core::{Error, ErrorKind, ServiceCode};
    /// let error = Error::service(ServiceCode::TableNotFound, "there is no such table");
    /// assert_eq!(error.service_code(), Some(&ServiceCode::TableNotFound));
    /// ```
    pub fn service_code(&self) -> Option<&ServiceCode> {
        self.0.code.as_ref()
    }

    /// Returns the HTTP status of the service's error code.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let taken = insert(&staff().await?, &["empid_000007"]).await.unwrap_err();
    /// assert_eq!(taken.status(), Some(409));
    /// # Ok(())
    /// # }
    /// ```
    pub fn status(&self) -> Option<u16> {
        self.0.code.as_ref().map(ServiceCode::status)
    }

    /// Returns the position of the failed operation in an entity group transaction or bulk write,
    /// counted from 0 in the caller's order.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let refused = insert(&staff().await?, &["empid_000300", "empid_000007"]).await.unwrap_err();
    /// assert_eq!(refused.failed_index(), Some(1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn failed_index(&self) -> Option<usize> {
        self.0.failed_index
    }

    /// Returns what a read showed after the answer to a write was lost, for a write with unknown
    /// outcome.
    ///
    /// ```
    /// # use entable_core::{Error, ErrorKind, Seen};
    /// let lost = Error::new(ErrorKind::Ambiguous, "the answer was lost").with_seen(Seen::Unchanged);
    /// assert_eq!(lost.seen(), Some(Seen::Unchanged));
    /// assert_eq!(Error::new(ErrorKind::NotFound, "gone").seen(), None);
    /// ```
    pub fn seen(&self) -> Option<Seen> {
        self.0.seen
    }

    /// Returns how long the service asks to wait before the next request.
    ///
    /// ```
    /// # use entable_core::{Error, ErrorKind, ServiceCode};
    /// assert_eq!(Error::new(ErrorKind::NotFound, "gone").retry_after(), None);
    /// ```
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Returns the fault of the encrypted value or of its key, if that failed.
    ///
    /// ```
    /// # use entable_core::{Error, SealFault};
    /// let error = Error::seal(SealFault::NotEncrypted, "the value is plain");
    /// assert_eq!(error.seal_fault(), Some(SealFault::NotEncrypted));
    /// ```
    pub fn seal_fault(&self) -> Option<SealFault> {
        self.0.seal
    }

    /// Returns whether the error was made with [`with_key_withheld`](Self::with_key_withheld).
    #[doc(hidden)]
    pub fn is_key_withheld(&self) -> bool {
        self.0.is_key_withheld
    }

    /// Returns whether [`moving_entity`](Self::moving_entity) created this error.
    pub(super) fn has_moving_mark(&self) -> bool {
        self.0.is_moving
    }

    /// Returns the table's name, if the error names one.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let taken = insert(&staff().await?, &["empid_000007"]).await.unwrap_err();
    /// assert_eq!(taken.table(), Some("Staff"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn table(&self) -> Option<&str> {
        self.0.table.as_deref()
    }

    /// Returns PartitionKey and RowKey, if the error names them.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let taken = insert(&staff().await?, &["empid_000007"]).await.unwrap_err();
    /// assert_eq!(taken.keys(), Some(("Sales", "empid_000007")));
    /// # Ok(())
    /// # }
    /// ```
    pub fn keys(&self) -> Option<(&str, &str)> {
        self.0.keys.as_ref().map(|(partition_key, row_key)| (&**partition_key, &**row_key))
    }

    /// Returns the property's name, if the error names one.
    ///
    /// ```
    /// # use entable_core::{Error, ErrorKind, ServiceCode};
    /// assert_eq!(Error::new(ErrorKind::NotFound, "gone").property(), None);
    /// ```
    pub fn property(&self) -> Option<&str> {
        self.0.property.as_deref()
    }

    /// Returns the entity type that the row claims, if the type is what the reader refused.
    ///
    /// ```
    /// # use entable_core::{Error, ErrorKind, ServiceCode};
    /// assert_eq!(Error::new(ErrorKind::NotFound, "gone").entity_type(), None);
    /// ```
    pub fn entity_type(&self) -> Option<&str> {
        self.0.entity_type.as_deref()
    }

    /// Returns the name of the unique index whose key is taken, for a unique violation.
    ///
    /// ```
    /// # use entable_core::{Error, ErrorKind};
    /// let error = Error::new(ErrorKind::UniqueViolation, "taken").with_index("ByEmail");
    /// assert!(error.is_unique_violation());
    /// assert_eq!(error.index(), Some("ByEmail"));
    /// ```
    pub fn index(&self) -> Option<&str> {
        self.0.index.as_deref()
    }

    /// Returns PartitionKey and RowKey of the entity that holds the key, for a unique violation.
    /// Returns `None` if the row that occupies the key is an orphan or does not name its entity.
    /// [`keys`](Self::keys) returns the keys of that row.
    ///
    /// ```
    /// use entable_core::{Error, ErrorKind};
    ///
    /// let error = Error::new(ErrorKind::UniqueViolation, "the key of index `ByEmail` is taken")
    ///     .with_index("ByEmail")
    ///     .at_keys("Sales", "email_don@contoso.com")
    ///     .held_by("Sales", "empid_000223");
    /// assert_eq!(error.index(), Some("ByEmail"));
    /// assert_eq!(error.holder(), Some(("Sales", "empid_000223")));
    /// ```
    pub fn holder(&self) -> Option<(&str, &str)> {
        self.0.holder.as_ref().map(|(partition_key, row_key)| (&**partition_key, &**row_key))
    }

    /// Returns the message alone, without table, keys and property.
    ///
    /// ```
    /// # use entable_core::{Error, ErrorKind, ServiceCode};
    /// let error = Error::new(ErrorKind::NotFound, "gone").in_table("Staff");
    /// assert_eq!(error.message(), "gone");
    /// ```
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        write_printable_message(f, &inner.message)?;
        let mut separator = " (";
        let mut name_part = |f: &mut fmt::Formatter<'_>, name: &str, value: &str| {
            write!(f, "{separator}{name} ")?;
            write_name(f, value)?;
            separator = ", ";
            Ok(())
        };
        if let Some(index) = inner.failed_index {
            name_part(f, "operation", &index.to_string())?;
        }
        if let Some(table) = &inner.table {
            name_part(f, "table", table)?;
        }
        if let Some((partition_key, row_key)) = &inner.keys {
            name_part(f, "PartitionKey", partition_key)?;
            name_part(f, "RowKey", row_key)?;
        }
        if let Some(entity_type) = &inner.entity_type {
            name_part(f, "EntityType", entity_type)?;
        }
        if let Some(property) = &inner.property {
            name_part(f, "property", property)?;
        }
        if let Some(index) = &inner.index {
            name_part(f, "index", index)?;
        }
        if let Some(code) = &inner.code {
            name_part(f, "code", code.as_str())?;
        }
        if separator == ", " { f.write_str(")") } else { Ok(()) }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({:?}: {self}", self.0.kind)?;
        if let Some(source) = &self.0.source {
            f.write_str(": ")?;
            write_source(f, source)?;
        }
        f.write_str(")")
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}
