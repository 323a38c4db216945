//! Maintenance of whole tables: check and repair copies, rebuild indexes, encrypt with new keys, upgrade to
//! new versions, report the sizes of partitions, create and drop dated tables, write missing expiry markers,
//! free the unique keys of a deleted table.
//!
//! A file uses only files whose `mod` lines come before its own.

pub(crate) mod rows;
pub(crate) mod outbox_writer;
pub(crate) mod check;
pub(crate) mod rebuild;
pub(crate) mod reencrypt;
pub(crate) mod upgrade;
pub(crate) mod partitions;
pub(crate) mod dated;
pub(crate) mod expiry;
#[cfg(test)]
mod tests;

pub use check::{Check, CheckProgress, CheckReport, Finding, FindingKind};
pub use dated::{CreateTables, Dropped};
pub use partitions::{PartitionProgress, PartitionReport, PartitionScan, PartitionSize};
pub use rebuild::{Rebuild, RebuildProgress, RebuildReport};
pub use reencrypt::{Reencrypt, ReencryptFailure, ReencryptProgress, ReencryptReport};
pub use upgrade::Upgrade;
