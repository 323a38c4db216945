//! Defines conditions on an entity's rows, which are made from comparisons of its columns.

use std::{
    borrow::Cow,
    fmt,
    marker::PhantomData,
    ops::{BitAnd, BitOr, Not},
};

use crate::{
    edm::InvalidValue,
    error::Result,
    filter::{Comparison, Filter},
};

/// A condition on the rows of entity `E`: comparisons of its columns combined with `&`, `|` and `!`.
pub struct Predicate<E> {
    filter: Filter,
    fault: Option<(String, InvalidValue)>,
    of: PhantomData<fn() -> E>,
}

impl<E> Predicate<E> {
    pub(super) fn new(filter: Filter) -> Self {
        Self { filter, fault: None, of: PhantomData }
    }

    /// Creates the condition for a comparison with a value that the property cannot hold, or with a slot that the
    /// series lacks, for the reason `invalid`. If a key can hold the value (a number above Int64, a time before
    /// 1601), the condition keeps the comparison for keys that hold the field. Otherwise it holds the error.
    pub(super) fn of_unstorable_value(
        property: Cow<'static, str>,
        comparison: Comparison,
        invalid: InvalidValue,
    ) -> Self {
        if let Some(value) = invalid.contained_key_only_value() {
            let property = property.into_owned();
            return Self::new(Filter::OutOfRange { property, comparison, value });
        }
        // `into_filter` returns the fault, so the constant is never evaluated.
        let fault = Some((property.into_owned(), invalid));
        Self { filter: Filter::Constant(false), fault, of: PhantomData }
    }

    /// Combines conditions with `and`. Without conditions, every row meets the result.
    pub(super) fn all_of(conditions: impl Iterator<Item = Self>) -> Self {
        Self::join_all(conditions, Filter::all)
    }

    /// Combines conditions with `or`. Without conditions, no row meets the result.
    pub(super) fn any_of(conditions: impl Iterator<Item = Self>) -> Self {
        Self::join_all(conditions, Filter::any)
    }

    fn join_all(
        conditions: impl Iterator<Item = Self>,
        join: impl FnOnce(Vec<Filter>) -> Filter,
    ) -> Self {
        let (mut filters, mut first_fault) = (Vec::new(), None);
        for Self { filter, fault, .. } in conditions {
            filters.push(filter);
            first_fault = first_fault.or(fault);
        }
        Self { filter: join(filters), fault: first_fault, of: PhantomData }
    }

    fn join_filters(self, other: Self, with: impl FnOnce(Filter, Filter) -> Filter) -> Self {
        Self {
            filter: with(self.filter, other.filter),
            fault: self.fault.or(other.fault),
            of: PhantomData,
        }
    }

    /// Converts the condition to an untyped filter.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` if it contains a value that cannot be stored in its column.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # fn main() -> Result<(), Error> {
    /// let filter = (Employee::AGE.ge(30) & Employee::AGE.lt(40)).into_filter()?;
    /// assert_eq!(filter.to_string(), "(Age ge 30) and (Age lt 40)");
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_filter(self) -> Result<Filter> {
        match self.fault {
            None => Ok(self.filter),
            Some((property, invalid)) => Err(invalid.into_write_error(&property)),
        }
    }
}

impl<E> Clone for Predicate<E> {
    fn clone(&self) -> Self {
        Self { filter: self.filter.clone(), fault: self.fault.clone(), of: PhantomData }
    }
}

impl<E> fmt::Debug for Predicate<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Predicate").field(&self.filter).finish()
    }
}

impl<E> BitAnd for Predicate<E> {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        self.join_filters(other, BitAnd::bitand)
    }
}

impl<E> BitOr for Predicate<E> {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.join_filters(other, BitOr::bitor)
    }
}

impl<E> Not for Predicate<E> {
    type Output = Self;

    fn not(self) -> Self {
        Self { filter: !self.filter, ..self }
    }
}
