//! Defines property values, the service's eight property types (the Entity Data Model, EDM), and
//! how Rust types map to them.

mod value;
mod ticks;
mod out_of_range;
mod map;
mod property;
mod value_range;
mod bag;
pub(crate) mod json;
mod std_types;
#[cfg(feature = "chrono")]
mod with_chrono;
#[cfg(feature = "jiff")]
mod with_jiff;
#[cfg(feature = "rust_decimal")]
mod with_decimal;

pub use bag::{Bag, PropertyBag};
pub use map::{EdmCow, EdmValue, InvalidValue};
pub use out_of_range::{KeyOnlyValue, OutOfRangeSide};
pub use property::{Input, Property};
pub use ticks::{ParseTicksError, Ticks};
pub use value::{EdmType, Value, ValueRef};
pub use value_range::ValueRange;
pub(crate) use value_range::each_bounded_range;
#[cfg(feature = "jiff")]
pub(crate) use with_jiff::midnight_of;
