//! Tests across the rooms of maintenance.

#![allow(clippy::duplicated_attributes, reason = "a key belongs to the index or list around it")]

mod row_kinds;
