//! Writes the layout of entities' rows as a text to check in, and says what a change of the layout
//! needs: nothing, a version, a rebuild or a migration. The text may also hold access patterns with their plans.

mod shape;
mod shape_of_schema;
mod shape_lines;
mod pattern_shape;
mod words;
mod pattern_lines;
mod parse;
mod needs;
mod types;
mod keys;
mod blobs;
mod tables;
mod properties;
mod series;
mod rows;
mod compare;
mod causes;
mod pattern_changes;
mod lock;
mod describe;

pub use lock::Layout;
pub use needs::{LayoutChange, RequiredWork};
pub use pattern_changes::PatternChange;
