//! Tests across the rooms of maintenance.

mod row_kinds;
