//! Retries requests after transient failures without applying a write twice.
//!
//! The layer retries failed reads, and writes that were certainly not carried out. If the answer to a write was lost,
//! it reads the rows of the write and retries only if they still satisfy the write's conditions. Should the first
//! request arrive late, one of the two then fails. If the rows do not show what happened, the error is `is_ambiguous`
//! and says what the rows contain.

mod failure;
mod operation_id;
mod policy;

mod verdict;

mod retry_layer;

#[cfg(test)]
mod tests;

pub use policy::RetryPolicy;
pub use retry_layer::Retry;
pub use retry_layer::is_read_worth_repeating;
