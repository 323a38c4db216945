//! Access patterns: the questions that a program asks its tables, with what each is allowed to cost. A test
//! checks them without a store, and a plan counts requests, partitions, storage and money from them.
//!
//! A file uses only the files whose `mod` lines stand above its own.

mod stages;
pub(crate) mod write_cost;
mod joined_cost;
pub(crate) mod markdown;
mod row_size;
mod bulk_cost;
pub(crate) mod question;
mod ask;
mod together;
mod steps;
mod pattern;
mod plan;
mod hot;
mod figures;
mod growth;
mod simulate;
mod simulated_figures;
mod compare;
mod access_patterns;
mod notes;

pub use access_patterns::{AccessPatterns, is_named_once};
pub use ask::{
    count, delete, delete_at, get, get_as, insert, insert_all, insert_or_merge, insert_or_replace,
    patch_at, query, read_by, replace, replace_keys, update,
};
pub use hot::HotPartition;
pub use notes::Note;
pub use pattern::{Pattern, Per, Rate};
pub use plan::Plan;
pub use question::Question;
pub use simulate::{SimulatedCall, SimulatedLoad, Simulation};
pub use together::{Together, transaction};
