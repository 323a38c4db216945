//! A durable, transactional backend for [entable] in one file. It follows the service's rules.
//!
//! Programs use `entable`, which re-exports these types in its module `backend`. Tools that know rows and no entities
//! open an [`Embedded`] and use it through the trait [`Backend`](entable_core::backend::Backend).
//!
//! [entable]: https://docs.rs/entable

// One thread writes at a time: the writer thread, or a caller of a relaxed store that writes alone. Readers share a
// snapshot, which the writer replaces after each commit. Readers and the writer never wait for each other. Durable writes are
// in the journal before readers see them, and in the engine's file after the next checkpoint.

// The published documentation shows which feature an item needs.
#![cfg_attr(docsrs, feature(doc_cfg))]

// A module uses only modules listed above it.
mod file_format;
mod row_properties;
mod row_layout;
mod layouts_of_kind;
mod dictionary;
mod layout_row;
mod stored_row;
mod row_encoder;
mod engine_panic;
mod store_file;
mod neighbour_file;

mod journal_frame;
mod journal_file;
mod journal;
mod options;

mod engine_header;
mod file_copy;
mod watched_file;
mod overlay;
mod mark;

mod catalog;
mod timestamp_bound;
mod stored_facts;
mod journal_replay;
mod unfinished_file;
mod open_file;
mod row_changes;

mod group;
mod job;
mod snapshot;

mod scan;
mod backup;
mod frozen;
mod open_writes;
mod writer_store;
mod write_at_once;

mod maintenance;
mod shared_store;
mod writer;

mod at_once;
mod handle;
mod verify_copy;

// The functions that the fuzz target calls.
#[cfg(feature = "simulation")]
#[doc(hidden)]
pub mod __fuzz;

#[cfg(test)]
mod tests;

pub use crate::{
    handle::Embedded,
    options::{Durability, EmbeddedOptions},
    verify_copy::{VerifyCopy, VerifyProgress, VerifyReport},
};
