//! Rebuilds an index or a list for existing entities.

pub(crate) mod report;
pub(crate) mod local;
pub(crate) mod remote;
pub(crate) mod run;

pub use report::{RebuildProgress, RebuildReport};
pub use run::Rebuild;
