//! The service's rules, for stores that keep rows themselves: what an operation does to a row, where a page begins and
//! ends, and what is refused.
//!
//! A store that follows them keeps most promises of the service without code of its own. The page [write a store] builds
//! one on a `BTreeMap`.
//!
//! | request | rules |
//! |---|---|
//! | read | [`check_read_keys`], [`select_properties`] |
//! | scan | [`ScanRange`], [`PageRoom`], [`select_properties`] |
//! | write | [`check_not_empty`], [`next_write_time`], [`resulting_row`], [`written_answer`], [`name_operation_in_error`] |
//! | each | [`table_missing_error`] |
//!
//! [write a store]: https://github.com/entable/entable/blob/main/docs/write-a-store.md

mod operations;
mod page_room;
mod scan_range;

pub use operations::{
    check_not_empty, check_read_keys, name_operation_in_error, next_write_time, resulting_row,
    select_properties, table_missing_error, written_answer,
};
pub use page_room::{PageRoom, checked_page_size};
pub use scan_range::ScanRange;
