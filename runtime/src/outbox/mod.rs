//! The writer's side of the outbox: the rows that a writer adds to the entity's own transaction to record work in
//! other partitions, and the remote writes immediately after the commit.
//!
//! The rules and the reasons for them are in `docs/outbox.md`. A file uses only files whose `mod` lines come before
//! its own.

pub(crate) mod options;
pub(crate) mod background;
pub(crate) mod keys;
pub(crate) mod keyed_locks;
pub(crate) mod deadline;
pub(crate) mod claim_state;
pub(crate) mod known_types;
pub(crate) mod registrations;
pub(crate) mod expiry_markers;
pub(crate) mod left_claims;
pub(crate) mod state;
pub(crate) mod unreadable;
pub(crate) mod blind_tokens;
pub(crate) mod expiry;
pub(crate) mod expired;
pub(crate) mod blob_writes;
pub(crate) mod registration;
pub(crate) mod remote_list;
pub(crate) mod list_retry;
pub(crate) mod blocking_claim;
pub(crate) mod occupied_key;
pub(crate) mod reservation;
pub(crate) mod fast_path;
mod claim_row;
pub(crate) mod claims;
pub(crate) mod kept_claims;
pub(crate) mod outbox_plan;
pub(crate) mod unique_violation;
pub(crate) mod failure_cause;
mod parts;
mod send;
mod current;
mod local_lists;
pub(crate) mod missing_table;
pub(crate) mod commit;
pub(crate) mod moves;
