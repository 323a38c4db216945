//! Conditions on a column that consist of several comparisons: prefixes, ranges, lists of values, and the
//! presence of the property.

use std::ops::Bound;

use bytes::Bytes;
use uuid::Uuid;

use super::{Column, Comparable, EqComparable, predicate::Predicate};
use crate::{
    edm::{EdmType, EdmValue, Input, Ticks, Value, ValueRange},
    filter::{Comparison, Filter},
    key::PrefixInput,
};

impl<E, F, K> Column<E, F, K> {
    /// Requires that the property is a string that begins with `prefix`. Case-sensitive.
    ///
    /// The service has no such operator, so the condition is a range of strings. If only the keys contain the field,
    /// the range becomes key bounds. That needs the key's template to write the field unchanged, and the path to
    /// give every part before it; otherwise the query fails with `is_invalid`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # fn main() -> Result<(), Error> {
    /// let filter = Employee::LAST_NAME.starts_with("Ha").into_filter()?;
    /// assert_eq!(filter.to_string(), "(LastName ge 'Ha') and (LastName lt 'Hb')");
    /// # Ok(())
    /// # }
    /// ```
    pub fn starts_with<P>(self, prefix: P) -> Predicate<E>
    where
        K: Comparable<F>,
        P: PrefixInput<K::Operand>,
    {
        match self.check_slot_exists() {
            Ok(()) => Predicate::new(Filter::starts_with(self.name(), prefix.prefix())),
            Err(invalid) => self.impossible_condition(Comparison::Ge, invalid),
        }
    }

    /// Requires that the property is in a range, written `a..b`, `a..=b`, `a..`, `..b` or `..=b`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # fn main() -> Result<(), Error> {
    /// let filter = Employee::AGE.between(30..40).into_filter()?;
    /// assert_eq!(filter.to_string(), "(Age ge 30) and (Age lt 40)");
    /// # Ok(())
    /// # }
    /// ```
    pub fn between<R>(self, range: R) -> Predicate<E>
    where
        K: Comparable<F>,
        R: ValueRange<K::Operand>,
    {
        let (lower, upper) = range.value_bounds();
        let lower = match lower {
            Bound::Included(value) => Some(self.compare(Comparison::Ge, value)),
            Bound::Excluded(value) => Some(self.compare(Comparison::Gt, value)),
            Bound::Unbounded => None,
        };
        let upper = match upper {
            Bound::Included(value) => Some(self.compare(Comparison::Le, value)),
            Bound::Excluded(value) => Some(self.compare(Comparison::Lt, value)),
            Bound::Unbounded => None,
        };
        Predicate::all_of(lower.into_iter().chain(upper))
    }

    /// Requires that the property equals one of the values. Without values, no row meets the condition.
    ///
    /// The request contains every value, and its length is limited. To read many rows with known keys, use
    /// [`get_many`](crate::Table::get_many).
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # fn main() -> Result<(), Error> {
    /// let filter = Employee::LAST_NAME.is_in(["Hall", "Cao"]).into_filter()?;
    /// assert_eq!(filter.to_string(), "(LastName eq 'Hall') or (LastName eq 'Cao')");
    /// let none = Employee::AGE.is_in(Vec::<i32>::new()).into_filter()?;
    /// assert_eq!(none.to_string(), "false");
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_in<V>(self, values: impl IntoIterator<Item = V>) -> Predicate<E>
    where
        K: EqComparable<F>,
        V: Input<K::Operand>,
    {
        Predicate::any_of(values.into_iter().map(|value| self.equal(value.input())))
    }
}

impl<E, T: EdmValue, K: Comparable<Option<T>>> Column<E, Option<T>, K> {
    /// Requires that the row has the property: the field is `Some`.
    ///
    /// ```
    /// use entable::prelude::*;
    ///
    /// #[derive(TableEntity)]
    /// #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
    /// pub struct Employee { pub department: String, pub id: u32, pub badge: Option<i32> }
    ///
    /// let filter = Employee::BADGE.is_some().into_filter()?;
    /// assert_eq!(filter.to_string(), "(Badge eq 0) or (Badge ne 0)");
    /// # Ok::<(), Error>(())
    /// ```
    pub fn is_some(self) -> Predicate<E> {
        match self.check_slot_exists() {
            Ok(()) => Predicate::new(presence_filter(self.name(), T::EDM)),
            Err(invalid) => self.impossible_condition(Comparison::Eq, invalid),
        }
    }

    /// Requires that the row lacks the property: the field is `None`.
    ///
    /// The service has no null. A row without the property meets no comparison, so the condition negates two
    /// comparisons, one of which is true for every value.
    ///
    /// ```
    /// use entable::prelude::*;
    ///
    /// #[derive(TableEntity)]
    /// #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
    /// pub struct Employee { pub department: String, pub id: u32, pub badge: Option<i32> }
    ///
    /// let filter = Employee::BADGE.is_none().into_filter()?;
    /// assert_eq!(filter.to_string(), "not ((Badge eq 0) or (Badge ne 0))");
    /// # Ok::<(), Error>(())
    /// ```
    pub fn is_none(self) -> Predicate<E> {
        !self.is_some()
    }
}

/// Returns a filter for rows that have the property. Every value meets either `eq` or `ne` with one value: NaN and
/// values of another type are different from it. A missing property meets neither.
fn presence_filter(property: &str, edm: EdmType) -> Filter {
    // Use a value of the property's own type: emulators differ in comparisons across types.
    let value: Value = match edm {
        EdmType::Boolean => false.into(),
        EdmType::Int32 => 0_i32.into(),
        EdmType::Int64 => 0_i64.into(),
        EdmType::Double => 0_f64.into(),
        EdmType::String => "".into(),
        EdmType::DateTime => Value::DateTime(Ticks::MIN_PROPERTY),
        EdmType::Guid => Value::Guid(Uuid::nil()),
        EdmType::Binary => Value::Binary(Bytes::new()),
    };
    Filter::any([Filter::eq(property, value.clone()), Filter::ne(property, value)])
}
