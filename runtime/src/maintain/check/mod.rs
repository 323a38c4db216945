//! Compares copies and lists with their primaries and repairs mismatches, while other programs write.
//!
//! A scan keeps the hash of a stored or derived copy or list entry until it reads its counterpart. Memory
//! therefore only holds unmatched ones. These are read again before they are reported.

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
