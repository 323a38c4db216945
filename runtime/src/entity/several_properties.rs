//! Reads fields that are stored as several properties (series and long texts). Refuses comparisons with such a
//! field as a whole.

use crate::{
    edm::{InvalidValue, ValueRef},
    error::Result,
    row::Row,
};

/// Never implemented: a filter compares a single property, and these columns have several.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a filter can compare only one property, and this column covers several",
    label = "covers several properties",
    note = "for a series, compare one slot, as in `Employee::SENT.at(13).ge(5)`; a split text cannot be compared"
)]
pub trait ComparedAsOne {}

/// Defines comparisons of a column that never compile and explain why. Without them, the compiler reports
/// the methods of `Iterator` with the same names.
macro_rules! refuse_comparisons {
    ($($name:ident)*) => {$(
        #[doc(hidden)]
        pub fn $name<V>(&self, _: V) -> Filter
        where
            Self: ComparedAsOne,
        {
            Filter::Constant(false)
        }
    )*};
}
pub(super) use refuse_comparisons;

/// Returns the value of each of these properties in a row, or `None` if the row lacks it.
pub(super) fn find_values<'r, const N: usize>(
    row: &'r Row,
    names: &[&str; N],
) -> Result<[Option<ValueRef<'r>>; N]> {
    let mut found = [None; N];
    let mut properties = row.properties();
    while let Some((name, value)) = properties.next()? {
        let at = names.iter().position(|known| known.as_bytes() == name);
        if let Some(slot) = at.and_then(|at| found.get_mut(at)) {
            *slot = Some(value);
        }
    }
    Ok(found)
}

/// Returns the error `invalid`, with the value removed from its text if `is_secret` is set.
pub(super) fn redact_error_if(is_secret: bool, invalid: InvalidValue) -> InvalidValue {
    if is_secret { invalid.redacted() } else { invalid }
}
