//! Series: fields that store each slot as a separate property.

use std::{fmt, marker::PhantomData};

use super::{
    Column, PropertyWriter, ReadColumn,
    several_properties::{ComparedAsOne, find_values, redact_error_if, refuse_comparisons},
};
use crate::{
    edm::{EdmCow, InvalidValue, Property, ValueRef},
    error::Result,
    filter::Filter,
    key::RowFamily,
    row::Row,
};

/// Represents the types of a series without holding their values.
type Of<E, T, K> = fn() -> (E, T, K);

/// The columns of a series: `N` slots of type `T` of entity `E`. [`at`](Self::at) selects a slot. Filters compare
/// slots, not the whole series.
pub struct Series<E, T, K, const N: usize> {
    names: &'static [&'static str; N],
    is_secret: bool,
    of: PhantomData<Of<E, T, K>>,
}

impl<E, T, K, const N: usize> fmt::Debug for Series<E, T, K, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Series").field(&self.names.first()).field(&self.names.last()).finish()
    }
}

impl<E, T, K, const N: usize> Series<E, T, K, N> {
    /// Creates the columns of a series whose slots have these names. Has no bound on `T`, because the compiler would
    /// report a type that is not a property a second time.
    #[doc(hidden)]
    pub const fn new(names: &'static [&'static str; N], is_secret: bool) -> Self {
        Self { names, is_secret, of: PhantomData }
    }
}

impl<E, T: Property, K, const N: usize> Series<E, T, K, N> {
    /// Returns the column of a slot, counted from 0. If the slot is out of range, the verb that runs the query fails
    /// with `is_invalid`.
    ///
    /// ```
    /// use entable::prelude::*;
    ///
    /// #[derive(TableEntity)]
    /// #[table(name = "Messages", partition_key = "{employee:06}", row_key = "{day:%Y%m%d}")]
    /// pub struct Day {
    ///     pub employee: u32,
    ///     pub day: time::Date,
    ///     #[table(series)]
    ///     pub sent: [i32; 24],
    /// }
    ///
    /// let busy = Day::SENT.at(13).ge(5).into_filter()?;
    /// assert_eq!(busy.to_string(), "Sent13 ge 5");
    /// let error = Day::SENT.at(24).ge(5).into_filter().unwrap_err();
    /// assert!(error.is_invalid() && error.property() == Some("Sent00 .. Sent23"));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn at(&self, slot: usize) -> Column<E, T, K> {
        match self.names.get(slot) {
            Some(name) if self.is_secret => Column::secret(name, T::from_stored),
            Some(name) => Column::for_stored_property(name, T::from_stored),
            None => Column::for_slot_out_of_range(slot, self.names),
        }
    }
}

impl<E, T, K, const N: usize> Series<E, T, K, N> {
    refuse_comparisons! { eq ne lt le gt ge }
}

impl<E, T: Property + Default, K, const N: usize> ReadColumn for Series<E, T, K, N> {
    type Field = [T; N];

    fn select(&self, _: &RowFamily, names: &mut Vec<String>) {
        names.extend(self.names.map(str::to_owned));
    }

    fn read(&self, row: &Row, _: &'static RowFamily) -> Result<[T; N]> {
        finish_series(find_values(row, self.names)?, self.names, self.is_secret, T::from_stored)
    }
}

/// Writes each slot of a series as a property. Writes nothing for an absent slot. `to_stored` is the [`Property`]
/// method of the slot's type.
#[doc(hidden)]
pub fn store_series<T, const N: usize>(
    out: &mut PropertyWriter<'_>,
    names: &[&str; N],
    slots: &[T; N],
    is_secret: bool,
    to_stored: impl Fn(&T) -> Result<Option<EdmCow<'_>>, InvalidValue>,
) {
    for (name, slot) in names.iter().zip(slots) {
        if is_secret {
            out.store_secret(name, to_stored(slot));
        } else {
            out.store(name, to_stored(slot));
        }
    }
}

/// Reads a series from the values that a row has for its slots. A missing slot gets the default of its type.
/// `from_stored` is the [`Property`] function of the slot's type.
///
/// # Errors
///
/// Fails with `is_decode` and the property's name for a slot that does not fit.
#[doc(hidden)]
pub fn finish_series<T: Default, const N: usize>(
    found: [Option<ValueRef<'_>>; N],
    names: &[&str; N],
    is_secret: bool,
    from_stored: impl Fn(Option<ValueRef<'_>>) -> Result<T, InvalidValue>,
) -> Result<[T; N]> {
    let mut slots = [const { None::<T> }; N];
    for ((slot, found), name) in slots.iter_mut().zip(found).zip(names) {
        // Do not pass an absent slot to `from_stored`, which refuses it unless the type is an
        // `Option`.
        if found.is_some() {
            let read = from_stored(found);
            *slot =
                Some(read.map_err(|invalid| {
                    redact_error_if(is_secret, invalid).into_read_error(name)
                })?);
        }
    }
    Ok(slots.map(Option::unwrap_or_default))
}
