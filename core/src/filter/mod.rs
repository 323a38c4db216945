//! Defines filters: trees of comparisons that print as OData, parse back, and can be evaluated on
//! rows by the service's rules.
//!
//! A tree can be nested as deep as memory allows. Functions that cannot fail (print, clone,
//! compare, drop) walk it without recursion. Functions that can fail refuse trees that are nested
//! deeper than [`Filter::NESTING`].

mod condition;
mod tree;
mod check;
pub(crate) mod eval;
mod lex;
mod parse;
mod print;
mod bounds;

pub use bounds::KeyBounds;
pub use condition::{BlindValue, Comparison, Filter, FilterList};
pub use eval::compare_utf16;
