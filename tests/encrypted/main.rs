//! Encrypted properties through every verb: what is stored, what comes back, what is refused.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::duplicated_attributes,
    clippy::indexing_slicing,
    reason = "tests stop where something is wrong"
)]

mod canary;
mod check_elsewhere;
mod elsewhere;
mod fixture;
#[cfg(feature = "legacy-encryption")]
mod legacy;
mod messages;
mod moved;
mod properties;
mod refusal;
mod resolver;
mod rotation;
mod tokens;
mod unique;
mod upgrade;
mod versions;
mod whole;
