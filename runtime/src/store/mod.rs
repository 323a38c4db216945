//! Reads and decrypts rows, encrypts and writes them. Public are the counts of a client's requests ([`Usage`]) and
//! the rule for encrypted properties that arrive in the clear ([`PlaintextPolicy`]).
//!
//! This module knows neither the outbox nor the user's entity types. A file uses only files whose `mod` lines come
//! before its own.

pub(crate) mod backoff;
pub(crate) mod task_or_future;
pub(crate) mod sealing;
pub(crate) mod usage;
pub(crate) mod rows;
pub(crate) mod concurrency;
pub(crate) mod pages;
mod path_tokens;
mod wide_rows;
pub(crate) mod dated;
pub(crate) mod derive;
pub(crate) mod key_owner;
pub(crate) mod lists;

pub(crate) use concurrency::{InFlight, Load};
pub(crate) use rows::{Store, StoreParts, replace_by_table_name_error};
pub use sealing::PlaintextPolicy;
pub use usage::{Prices, Usage};
