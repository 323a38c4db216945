//! Defines where a value lies that a property or a part of a key cannot hold: conditions and ranges
//! are answered for it too.

use super::Ticks;

/// On which side of all values that a place can hold a value lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Below all of them.
    Below,
    /// Above all of them.
    Above,
}

/// A value that no property can hold and a key can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeyondProperty {
    /// A number above the largest Int64.
    AboveInt64(u64),
    /// A time before the year 1601.
    Before1601(Ticks),
}

impl BeyondProperty {
    /// Returns on which side of a property's values this one lies.
    pub(crate) const fn side(self) -> Side {
        match self {
            Self::AboveInt64(_) => Side::Above,
            Self::Before1601(_) => Side::Below,
        }
    }
}
