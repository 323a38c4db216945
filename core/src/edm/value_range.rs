//! Defines which arguments are a range of a property's values.

use std::ops::{Bound, Range, RangeFrom, RangeInclusive, RangeTo, RangeToInclusive};

use super::Input;

/// An argument that can be a range of values of type `T`: one of Rust's ranges with at least one bound,
/// whose bounds convert to `T`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a range of `{T}`",
    label = "not a range of `{T}`",
    note = "write `a..b`, `a..=b`, `a..`, `..b` or `..=b`"
)]
pub trait ValueRange<T> {
    /// Returns the lower and the upper bound of the range.
    fn value_bounds(self) -> (Bound<T>, Bound<T>);
}

/// Hands each of Rust's ranges with a bound to a macro, with the expression for its bounds: `V` is the type of a
/// bound. [`ValueRange`] and [`RangeInput`](crate::key::RangeInput) take the same ranges.
macro_rules! each_bounded_range {
    ($each:ident) => {
        $each! {
            Range<V>, self => (Bound::Included(self.start.input()), Bound::Excluded(self.end.input()));
            RangeInclusive<V>, self => {
                let (start, end) = self.into_inner();
                (Bound::Included(start.input()), Bound::Included(end.input()))
            };
            RangeFrom<V>, self => (Bound::Included(self.start.input()), Bound::Unbounded);
            RangeTo<V>, self => (Bound::Unbounded, Bound::Excluded(self.end.input()));
            RangeToInclusive<V>, self => (Bound::Unbounded, Bound::Included(self.end.input()));
            (Bound<V>, Bound<V>), self => (self.0.map(Input::input), self.1.map(Input::input));
        }
    };
}
pub(crate) use each_bounded_range;

macro_rules! value_ranges {
    ($($range:ty, $self:ident => $bounds:expr;)*) => {
        $(impl<T, V: Input<T>> ValueRange<T> for $range {
            fn value_bounds($self) -> (Bound<T>, Bound<T>) { $bounds }
        })*
    };
}

each_bounded_range!(value_ranges);
