//! Derives in hostile surroundings.
#![deny(missing_docs, warnings)]
