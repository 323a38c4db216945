//! Derives in hostile surroundings.
#![deny(missing_docs, warnings)]
// Not of generated code: these types are only there to be derived for.
#![allow(missing_debug_implementations)]

pub mod docs;
mod locals;
mod no_prelude;
mod private;
mod renamed;
mod shadowed;
