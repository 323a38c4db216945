//! Workers finish the work that writers left in other partitions.
//!
//! A worker finds partitions with open work through the directory and makes every remote row equal to what its
//! primary derives. Any number of workers may run at the same time, and each may be killed at any time.
//! A file uses only files whose `mod` lines come before its own.

mod failure;
mod stopping;
mod handler;
mod visit;
mod stats;
mod state;
mod lease;
mod partition;
mod directory;
mod open_work;
mod poison_row;
mod poison;
mod outcome;
mod dirty_row;
mod primary_state;
mod pass;
mod list_pass;
mod dirty_removal;
mod dead_claims;
mod verify;
mod delivery;
mod message_state;
mod moves;
mod messages;
mod queue_delivery;
mod queues;
mod close;
mod expiry;
mod round;
mod run;
mod status;

pub use crate::outbox::options::OutboxOptions;
pub use handler::Context;
pub(crate) use open_work::tables_with_open_work;
pub(crate) use poison::POISON_TABLE;
pub use poison::Poisoned;
pub use state::Worker;
pub use stats::{WorkerFailure, WorkerStats};
pub use status::{OutboxStatus, StuckRow};
