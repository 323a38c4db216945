//! Bulk writes: entities are gathered by partition into transactions that are as full as the service and the
//! waiting time allow.

pub(crate) mod report;
pub(crate) mod group_writer;
pub(crate) mod group;
pub(crate) mod handled;
pub(crate) mod rewrite;
pub(crate) mod pipeline;
pub(crate) mod delete_all;
pub(crate) mod run;

pub use delete_all::DeleteAll;
pub use report::{BulkReport, Failure, Progress};
pub use run::Bulk;
