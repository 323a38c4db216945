//! Derives in hostile surroundings.
#![deny(missing_docs, warnings)]

pub mod docs;
mod locals;
mod no_prelude;
mod private;
mod renamed;
mod sets;
mod shadowed;
