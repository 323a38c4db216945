//! The error codes of the Table service, each with its HTTP status and the kind of failure.
//!
//! Source: "Table Service Error Codes" and "Status and Error Codes" of the Azure Storage REST
//! reference, as confirmed by recorded traffic.

use std::{borrow::Cow, fmt};

use super::kind::ErrorKind;

macro_rules! codes {
    ($($name:ident $status:literal $kind:ident;)*) => {
        /// An error code of the Table service.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ServiceCode {
            $(#[doc = concat!("`", stringify!($name), "`, HTTP ", stringify!($status), ".")] $name,)*
            /// A code that this crate does not know, with its HTTP status.
            Other(Cow<'static, str>, u16),
        }

        impl ServiceCode {
            /// All codes that this crate knows.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Returns the code as the service spells it.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$name => stringify!($name),)*
                    Self::Other(name, _) => name,
                }
            }

            /// Returns the HTTP status that the service sends with this code.
            pub fn status(&self) -> u16 {
                match self {
                    $(Self::$name => $status,)*
                    Self::Other(_, status) => *status,
                }
            }

            /// Returns the kind of failure that the code means.
            pub fn kind(&self) -> ErrorKind {
                match self {
                    $(Self::$name => ErrorKind::$kind,)*
                    Self::Other(_, status) => kind_of_status(*status),
                }
            }

            /// Returns the code called `name`, or `Other` with `status` if this crate does not know it.
            pub fn parse(name: &str, status: u16) -> Self {
                match name {
                    $(stringify!($name) => Self::$name,)*
                    _ => Self::Other(Cow::Owned(name.to_owned()), status),
                }
            }
        }
    };
}

codes! {
    InvalidInput 400 Invalid;
    OutOfRangeInput 400 Invalid;
    InvalidResourceName 400 Invalid;
    PropertiesNeedValue 400 Invalid;
    PropertyNameInvalid 400 Invalid;
    PropertyNameTooLong 400 TooLarge;
    PropertyValueTooLarge 400 TooLarge;
    KeyValueTooLarge 400 TooLarge;
    EntityTooLarge 400 TooLarge;
    TooManyProperties 400 TooLarge;
    DuplicatePropertiesSpecified 400 Invalid;
    InvalidValueType 400 Invalid;
    InvalidDuplicateRow 400 Invalid;
    CommandsInBatchActOnDifferentPartitions 400 Invalid;
    OutOfRangeQueryParameterValue 400 Invalid;
    InvalidXmlDocument 400 Invalid;
    InvalidHeaderValue 400 Invalid;
    NoAuthenticationInformation 401 Denied;
    AuthenticationFailed 403 Denied;
    AuthorizationFailure 403 Denied;
    AuthorizationPermissionMismatch 403 Denied;
    AuthorizationResourceTypeMismatch 403 Denied;
    ResourceNotFound 404 NotFound;
    TableNotFound 404 NotFound;
    EntityNotFound 404 NotFound;
    MethodNotAllowed 405 Unsupported;
    EntityAlreadyExists 409 Conflict;
    TableAlreadyExists 409 Conflict;
    TableBeingDeleted 409 Conflict;
    UpdateConditionNotSatisfied 412 PreconditionFailed;
    RequestBodyTooLarge 413 TooLarge;
    ContentLengthExceeded 413 TooLarge;
    TooManyRequests 429 Throttled;
    OperationTimedOut 500 Backend;
    InternalError 500 Backend;
    NotImplemented 501 Unsupported;
    ServerBusy 503 Throttled;
}

/// Returns the kind of failure of an unknown code, by its HTTP status.
fn kind_of_status(status: u16) -> ErrorKind {
    match status {
        401 | 403 => ErrorKind::Denied,
        404 => ErrorKind::NotFound,
        409 => ErrorKind::Conflict,
        412 => ErrorKind::PreconditionFailed,
        413 => ErrorKind::TooLarge,
        429 | 503 => ErrorKind::Throttled,
        // Request Timeout: the service says nothing about the request itself, so it is not `Invalid`.
        408 => ErrorKind::Backend,
        400..=499 => ErrorKind::Invalid,
        501 => ErrorKind::Unsupported,
        _ => ErrorKind::Backend,
    }
}

impl fmt::Display for ServiceCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
