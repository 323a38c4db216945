//! Values outside the range of a property or key part. Each is below or above every value that fits, so
//! conditions and ranges still have a result.

use super::Ticks;

/// Says whether a value that a property or a part of a key cannot hold lies below or above all values
/// that it can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutOfRangeSide {
    /// Below all of them.
    Below,
    /// Above all of them.
    Above,
}

/// A value that a key can hold, but no property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOnlyValue {
    /// A number above the largest Int64.
    AboveInt64(u64),
    /// A time before the year 1601.
    Before1601(Ticks),
}

impl KeyOnlyValue {
    /// Returns whether this value lies below or above all values that a property can hold.
    pub(crate) const fn out_of_range_side(self) -> OutOfRangeSide {
        match self {
            Self::AboveInt64(_) => OutOfRangeSide::Above,
            Self::Before1601(_) => OutOfRangeSide::Below,
        }
    }
}
