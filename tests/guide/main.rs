//! The design guide, row by row.
fn main() {}
