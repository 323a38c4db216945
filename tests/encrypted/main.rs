//! Encrypted properties through every verb: what is stored, what comes back, what is refused.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fixture;
mod properties;
mod resolver;
mod refusal;
mod rotation;
mod tokens;
mod whole;
