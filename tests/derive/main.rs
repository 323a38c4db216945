//! What the derives generate, through the public face and without a backend.
#![allow(missing_docs)]

mod edm_enum;
mod entity;
