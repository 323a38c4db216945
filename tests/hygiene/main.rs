//! Tests derives in hostile surroundings.
#![deny(missing_docs, warnings)]
#![allow(clippy::bool_assert_comparison, reason = "one macro to name without the prelude")]
#![allow(
    clippy::duplicated_attributes,
    reason = "two indexes may be unique alike; a derive cannot say so"
)]

pub mod docs;
mod forbidding;
mod indexes;
mod keywords;
mod locals;
mod no_prelude;
mod primitives;
mod private;
mod renamed;
mod sets;
mod shadowed;
