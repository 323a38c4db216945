//! Comparing copies and lists with their primaries, and repairing what does not match, beside live
//! writers.
//!
//! A scan removes copies from a set of hashes as it meets the primaries that should have them, so it
//! needs memory for the unmatched ones only. These are read again before they are reported.

pub(crate) mod finding;
pub(crate) mod fact;
pub(crate) mod scan;
pub(crate) mod confirm_local;
pub(crate) mod confirm_remote;
pub(crate) mod repair_local;
pub(crate) mod repair_remote;
pub(crate) mod run;

pub use finding::{Finding, FindingKind};
pub use run::{Check, CheckReport};
pub use scan::CheckProgress;
