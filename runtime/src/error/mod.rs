//! The one error of the crate: opaque, with predicates for what callers act on.

mod kind;
mod seal;
mod service;

use std::{error::Error as StdError, fmt, sync::Arc, time::Duration};

pub use kind::{ErrorKind, Seen};
pub use seal::SealFault;
pub use service::ServiceCode;

/// What a user's own callbacks (`update`, `validate`, handlers) may fail with.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// The result of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation did not do what was asked.
///
/// The kinds are asked for with predicates ([`is_not_found`](Error::is_not_found),
/// [`is_conflict`](Error::is_conflict), ..); [`code`](Error::code) is the service's own code on
/// every backend. The text names table, keys and property, and never a secret value.
///
/// ```
/// use entable::{Error, ErrorKind};
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
    retry_after: Option<Duration>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error of `kind` that says `message`: lower case, no full stop, what was found, what was
    /// expected and what to do instead.
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
            retry_after: None,
            source: None,
        }))
    }

    /// An error as the service reports it; the kind follows from the code.
    pub fn service(code: ServiceCode, message: impl Into<String>) -> Self {
        Self::new(code.kind(), message).with_code(code)
    }

    /// The same error with the service's code.
    #[must_use]
    pub fn with_code(mut self, code: ServiceCode) -> Self {
        self.0.code = Some(code);
        self
    }

    /// The same error, naming its table where none was named yet.
    #[must_use]
    pub fn in_table(mut self, table: &str) -> Self {
        self.0.table.get_or_insert_with(|| table.to_owned());
        self
    }

    /// The same error, naming the row's keys where none were named yet.
    #[must_use]
    pub fn at_keys(mut self, partition_key: &str, row_key: &str) -> Self {
        self.0.keys.get_or_insert_with(|| (partition_key.to_owned(), row_key.to_owned()));
        self
    }

    /// The same error, naming the property where none was named yet.
    #[must_use]
    pub fn in_property(mut self, property: &str) -> Self {
        self.0.property.get_or_insert_with(|| property.to_owned());
        self
    }

    /// The same error, naming the index whose row was in the way.
    #[must_use]
    pub fn with_index(mut self, index: &str) -> Self {
        self.0.index = Some(index.to_owned());
        self
    }

    /// The same error, naming the entity that holds the key of the index.
    #[must_use]
    pub fn held_by(mut self, partition_key: &str, row_key: &str) -> Self {
        self.0.holder = Some((partition_key.to_owned(), row_key.to_owned()));
        self
    }

    /// The same error, naming the type that the row says it is of.
    #[must_use]
    pub fn of_type(mut self, entity_type: &str) -> Self {
        self.0.entity_type.get_or_insert_with(|| entity_type.to_owned());
        self
    }

    /// The same error with the position of the operation that failed: the caller's order, from 0.
    #[must_use]
    pub fn at_operation(mut self, index: usize) -> Self {
        self.0.failed_index = Some(index);
        self
    }

    /// The same error, with what reading again showed.
    #[must_use]
    pub fn with_seen(mut self, seen: Seen) -> Self {
        self.0.seen = Some(seen);
        self
    }

    /// The same error with how long the service asks to wait.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.0.retry_after = Some(wait);
        self
    }

    /// The same error without a position, for a verb that has only one.
    pub(crate) fn without_operation(mut self) -> Self {
        self.0.failed_index = None;
        self
    }

    /// The same error with its cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.0.source = Some(source.into().into());
        self
    }

    /// What kind of failure this is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The service's own code, such as `EntityAlreadyExists`; the same on every backend.
    pub fn code(&self) -> Option<&str> {
        self.0.code.as_ref().map(ServiceCode::as_str)
    }

    /// The code as a value.
    pub fn service_code(&self) -> Option<&ServiceCode> {
        self.0.code.as_ref()
    }

    /// The HTTP status that goes with the code.
    pub fn status(&self) -> Option<u16> {
        self.0.code.as_ref().map(ServiceCode::status)
    }

    /// Which operation of an entity group transaction or bulk write failed, in the caller's order,
    /// counted from 0.
    pub fn failed_index(&self) -> Option<usize> {
        self.0.failed_index
    }

    /// What reading again showed, for a write whose outcome cannot be told.
    pub fn seen(&self) -> Option<Seen> {
        self.0.seen
    }

    /// How long the service asks to wait before the next request.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// The table, where one is known.
    pub fn table(&self) -> Option<&str> {
        self.0.table.as_deref()
    }

    /// PartitionKey and RowKey, where they are known.
    pub fn keys(&self) -> Option<(&str, &str)> {
        self.0.keys.as_ref().map(|(partition_key, row_key)| (&**partition_key, &**row_key))
    }

    /// The property, where one is known.
    pub fn property(&self) -> Option<&str> {
        self.0.property.as_deref()
    }

    /// The type that the row says it is of, where that is what went wrong.
    pub fn entity_type(&self) -> Option<&str> {
        self.0.entity_type.as_deref()
    }

    /// The index whose key was taken, for a unique violation.
    pub fn index(&self) -> Option<&str> {
        self.0.index.as_deref()
    }

    /// PartitionKey and RowKey of the entity that holds the key, for a unique violation; `None`: the
    /// row in the way, whose keys [`keys`](Self::keys) gives, is an orphan or does not say whose it
    /// is.
    ///
    /// ```
    /// use entable::{Error, ErrorKind};
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

    /// The message alone, without table, keys and property.
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        f.write_str(&inner.message)?;
        let mut separator = " (";
        let mut place = |f: &mut fmt::Formatter<'_>, name: &str, value: &str| {
            write!(f, "{separator}{name} `{}`", value.escape_debug())?;
            separator = ", ";
            Ok(())
        };
        if let Some(index) = inner.failed_index {
            place(f, "operation", &index.to_string())?;
        }
        if let Some(table) = &inner.table {
            place(f, "table", table)?;
        }
        if let Some((partition_key, row_key)) = &inner.keys {
            place(f, "PartitionKey", partition_key)?;
            place(f, "RowKey", row_key)?;
        }
        if let Some(entity_type) = &inner.entity_type {
            place(f, "EntityType", entity_type)?;
        }
        if let Some(property) = &inner.property {
            place(f, "property", property)?;
        }
        if let Some(index) = &inner.index {
            place(f, "index", index)?;
        }
        if let Some(code) = &inner.code {
            place(f, "code", code.as_str())?;
        }
        if separator == ", " { f.write_str(")") } else { Ok(()) }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({:?}: {self}", self.0.kind)?;
        if let Some(source) = &self.0.source {
            write!(f, ": {source}")?;
        }
        f.write_str(")")
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}
