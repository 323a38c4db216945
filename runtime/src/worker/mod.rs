//! Workers: they finish the work in other partitions that writers left.
//!
//! A worker finds partitions with open work in the directory and makes every remote row what its
//! primary says. Any number of workers may run at once; each may be killed at any time.

mod dead_claims;
mod close;
mod primary_state;
mod directory;
mod failure;
mod handler;
mod list_pass;
mod messages;
mod partition;
mod pass;
mod poison;
mod queues;
mod dirty_removal;
mod round;
mod state;
mod stats;

pub use handler::Context;
pub use poison::Poisoned;
pub use state::Worker;
pub use stats::WorkerStats;
