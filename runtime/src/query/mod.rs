//! Queries: from a path and its conditions to typed items, page by page.
//!
//! A file uses only files whose `mod` lines come before its own.

pub(crate) mod columns;
pub(crate) mod encrypted_filter;
pub(crate) mod tables;
pub(crate) mod plan;
mod confirm;
mod open;
pub(crate) mod point;
pub(crate) mod request;
pub(crate) mod conditions;
pub(crate) mod query_plan;
mod read_page;
pub(crate) mod decode;
pub(crate) mod list_query;
pub(crate) mod fetched_page;
pub(crate) mod explain;
pub(crate) mod build;
pub(crate) mod pages;
pub(crate) mod partial_query;
pub(crate) mod resolve;
pub(crate) mod row_view;
pub(crate) mod count;
pub(crate) mod fan_out;
pub(crate) mod key_order;
pub(crate) mod lookup;

pub use build::{Items, Queried, Query, QueryCondition};
pub use explain::Explain;
pub use fan_out::QueryMany;
pub use key_order::KeyOrder;
pub use lookup::Lookup;
pub use partial_query::PartialQuery;
pub use row_view::RowView;
