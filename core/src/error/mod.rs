//! The one error type of the crate, with predicates for the failures that callers act on.

mod kind;
mod service;
mod seal;
pub(crate) mod printable;
mod entable_error;
mod predicates;
pub(crate) mod facts;
mod verdict;

pub use entable_error::{BoxError, Error, Result};
pub use kind::{ErrorKind, Seen};
pub use seal::SealFault;
pub use service::ServiceCode;
