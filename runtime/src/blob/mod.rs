//! Blobs: lists that are kept outside of the table, one text each, in a store of the crate
//! `object_store`.
//!
//! A writer replaces a blob only in the version that it read. `docs/outbox.md` specifies names and
//! formats.

pub(crate) mod name;
pub(crate) mod list;
pub(crate) mod object;
pub(crate) mod in_process;
pub(crate) mod blobs;
pub(crate) mod archive;
pub(crate) mod log;

pub(crate) use self::{
    blobs::{BlobStore, Blobs},
    list::{BlobList, list_text_after},
    name::list_blob_path,
};
