//! Tests that use several modules of `maintain` together.

#![allow(clippy::duplicated_attributes, reason = "a key belongs to the index or list around it")]

mod row_kinds;
