//! Repeats requests that failed for a passing reason, without ever doubling a write.
//!
//! A failed read is repeated. A write that was certainly not carried out is repeated. If the answer to a
//! write was lost, the layer reads the rows of the write. It repeats the write only if the rows still
//! satisfy its guards: if the first request arrives late, one of the two then fails. If the rows do not
//! tell what happened, the error is `is_ambiguous` and says what the rows contain.

mod failure;
mod operation_id;
mod policy;

mod verdict;

mod retry_layer;

#[cfg(test)]
mod tests;

pub use policy::RetryPolicy;
pub use retry_layer::Retry;
#[cfg(feature = "azure-wire")]
pub(in crate::backend) use retry_layer::is_read_worth_repeating;
