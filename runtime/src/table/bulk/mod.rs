//! Bulk writes: many entities, grouped by partition into as few transactions as they fit in.

pub(crate) mod report;
pub(crate) mod group_writer;
pub(crate) mod group;
pub(crate) mod rewrite;
pub(crate) mod pipeline;
pub(crate) mod delete_all;
pub(crate) mod run;

pub use delete_all::DeleteAll;
pub use report::{BulkReport, Failure, Progress};
pub use run::Bulk;
