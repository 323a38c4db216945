//! Moving data: exports and imports of tables as text, copies between stores, backups of a file.
//!
//! Rows move as they are stored. A sealed row stays sealed, and the same keys open it, because its table
//! and keys do not change. Rows of the outbox never move: they belong to the store whose work they record.
//! A file uses only the modules declared above its own.

pub(crate) mod digest;
pub(crate) mod framework;
pub(crate) mod lines;
pub(crate) mod csv;
pub(crate) mod row_reader;
pub(crate) mod pages;
pub(crate) mod row_writer;
pub(crate) mod file_error;
pub(crate) mod new_file;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod copy;
#[cfg(feature = "blob")]
pub(crate) mod copy_blobs;
pub(crate) mod backup;

pub use copy::{Copy, CopyProgress, CopyReport, PartitionDifference, TableCopy};
#[cfg(feature = "blob")]
pub use copy_blobs::{CopyBlobs, CopyBlobsReport};
pub use digest::RowsDigest;
pub use export::{Export, ExportProgress, ExportReport, to_csv};
pub use framework::is_framework_table;
pub use import::{Import, ImportMode, ImportProgress, ImportReport};
pub use lines::Format;
pub use lines::to_json_line;
pub use new_file::NewFile;
