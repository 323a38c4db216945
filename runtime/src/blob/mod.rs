//! Blobs: a value under a name, written under the version that was read.
//!
//! Names and forms are written down in `docs/outbox.md`. Whatever is kept in blobs comes through one
//! store, which the client is given once.

pub(crate) mod name;
pub(crate) mod local;
pub(crate) mod list;
pub(crate) mod blobs;

pub(crate) use self::{
    list::{BlobList, changed as changed_list},
    name::list_name,
};
