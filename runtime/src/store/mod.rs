//! The store as the library sees it: reads and decrypts rows, encrypts and writes them.
//!
//! It knows no outbox and no entity type of the user. A file uses only the files whose `mod` lines
//! stand above its own.

pub(crate) mod backoff;
pub(crate) mod sealing;
pub(crate) mod usage;
pub(crate) mod rows;
pub(crate) mod pages;
mod path_tokens;
mod wide_rows;
pub(crate) mod dated;
pub(crate) mod derive;
pub(crate) mod lists;

pub(crate) use rows::{Store, replace_by_table_name_error};
pub use sealing::PlaintextPolicy;
