//! Tests encrypted properties through every verb: stored bytes, values that are read, writes that
//! are refused.
#![allow(
    missing_docs,
    clippy::unit_arg,
    clippy::unwrap_used,
    clippy::duplicated_attributes,
    clippy::indexing_slicing,
    reason = "tests stop where something is wrong"
)]

mod no_leaks;
mod remote_checks;
mod remote_copies;
mod authentic;
mod fixture;
mod forged_versions;
mod index_scopes;
#[cfg(feature = "legacy-encryption")]
mod legacy;
mod messages;
mod moved;
mod properties;
mod refusal;
mod resolver;
mod rotation;
mod series;
mod tokens;
mod unknown;
mod unique;
mod upgrade;
mod versions;
mod wide;
mod wide_hostile;
mod entity_seal;
