//! Defines columns, the typed constants for an entity's properties. Filters compare them, and projections
//! read them from rows.

use std::{borrow::Cow, fmt, marker::PhantomData};

use super::{Comparable, EqComparable, Plain, predicate::Predicate};
use crate::{
    edm::{Input, InvalidValue, Ticks, ValueRef},
    error::{Error, ErrorKind, Result},
    filter::{Comparison, Filter},
    key::{Form, RowFamily, TemplatePart, decode_period, unescape},
    row::Row,
};

/// Reads a field from its property in a row.
enum ReadProperty<F> {
    /// Reads the field from the value of the property.
    Stored(fn(Option<ValueRef<'_>>) -> Result<F, InvalidValue>),
    /// Reads the field from the value of the property. Errors must not show the value.
    Secret(fn(Option<ValueRef<'_>>) -> Result<F, InvalidValue>),
    /// Reads the field from the row, given the property's name.
    Row(fn(&Row, &str) -> Result<F>),
}

/// How a column reads its field back from a key that contains it: with a function that receives the text of the key part
/// or, for a date form such as `%Y%m`, the first time of that month.
pub enum ReadPart<F> {
    /// The type's own form. Escapes are removed if the part has a variable width.
    Plain(fn(&str) -> Result<F, InvalidValue>),
    /// A form with a fixed width and without escapes.
    Fixed(fn(&str) -> Result<F, InvalidValue>),
    /// A date form. The function receives the start of a period.
    Date(fn(Ticks) -> Result<F, InvalidValue>),
}

impl<F> Clone for ReadProperty<F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for ReadProperty<F> {}

impl<F> Clone for ReadPart<F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for ReadPart<F> {}

impl<F> fmt::Debug for ReadPart<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadPart")
    }
}

impl<F> ReadProperty<F> {
    /// Reads the field from the row's property with this name.
    fn read(self, row: &Row, name: &str) -> Result<F> {
        match self {
            Self::Stored(read) => {
                read(row.get(name)?).map_err(|invalid| invalid.into_read_error(name))
            }
            Self::Secret(read) => {
                read(row.get(name)?).map_err(|invalid| invalid.redacted().into_read_error(name))
            }
            Self::Row(read) => read(row, name),
        }
    }
}

impl<F> ReadPart<F> {
    /// Reads the field from the text of `part`.
    fn read(self, part: &TemplatePart, text: &str) -> Result<F, InvalidValue> {
        match (self, part.form, part.width) {
            (Self::Plain(decode), _, None) => unescape(text).and_then(|text| decode(&text)),
            (Self::Plain(decode) | Self::Fixed(decode), ..) => decode(text),
            (Self::Date(from_ticks), Form::Date(form), _) => {
                decode_period(text, form).and_then(from_ticks)
            }
            (Self::Date(_), ..) => Err(InvalidValue::new("expected a part with a date form")),
        }
    }
}

/// A column of entity `E`: a property whose field has type `F`. Comparing it with a value creates a
/// [`Predicate`].
///
/// The value may be one that no row can hold, such as a number out of range or a time before 1601. It is then
/// below or above all values of the property, or of the part of the key that holds the field, and the
/// comparison is true for all of them or for none.
///
/// ```
/// use entable::prelude::*;
///
/// #[derive(TableEntity)]
/// #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
/// pub struct Employee { pub department: String, pub id: u32, pub last_name: String, pub age: i32 }
///
/// let predicate = Employee::AGE.ge(30) & !Employee::LAST_NAME.eq("Jones");
/// let filter = predicate.into_filter()?;
/// assert_eq!(filter.to_string(), "(Age ge 30) and (not (LastName eq 'Jones'))");
/// # Ok::<(), Error>(())
/// ```
pub struct Column<E, F: 'static, K = Plain> {
    name: Cow<'static, str>,
    read: ReadProperty<F>,
    /// How the field is read from keys, for each form of a key part. Empty if no key holds the field.
    parts: &'static [(Form, ReadPart<F>)],
    /// The number of a slot that the series lacks, and the series' length.
    out_of_range: Option<(usize, usize)>,
    of: PhantomData<fn() -> (E, K)>,
}

impl<E, F, K> fmt::Debug for Column<E, F, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Column").field(&self.name).finish()
    }
}

impl<E, F, K> Column<E, F, K> {
    /// Creates a column that rows store in the property `name`.
    ///
    /// ```
    /// use entable::{Column, Row, edm::ValueRef, prelude::*};
    ///
    /// #[derive(TableEntity)]
    /// #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
    /// pub struct Employee { pub department: String, pub id: u32, pub age: i32 }
    ///
    /// /// A property that another program writes beside those of the struct.
    /// const BADGE: Column<Employee, i32> = Column::property("Badge", badge);
    ///
    /// fn badge(row: &Row, name: &str) -> Result<i32, Error> {
    ///     Ok(if let Some(ValueRef::Int32(badge)) = row.get(name)? { badge } else { 0 })
    /// }
    ///
    /// let filter = BADGE.gt(1000).into_filter()?;
    /// assert_eq!((BADGE.name(), filter.to_string().as_str()), ("Badge", "Badge gt 1000"));
    /// # Ok::<(), Error>(())
    /// ```
    pub const fn property(name: &'static str, read: fn(&Row, &str) -> Result<F>) -> Self {
        Self::new(name, ReadProperty::Row(read))
    }

    /// Creates a column that `read` decodes from the stored value.
    #[doc(hidden)]
    pub const fn for_stored_property(
        name: &'static str,
        read: fn(Option<ValueRef<'_>>) -> Result<F, InvalidValue>,
    ) -> Self {
        Self::new(name, ReadProperty::Stored(read))
    }

    /// Creates a column that `read` decodes from the stored value. Errors do not show the value, because the field is
    /// encrypted, or is in a key as a blind token.
    #[doc(hidden)]
    pub const fn secret(
        name: &'static str,
        read: fn(Option<ValueRef<'_>>) -> Result<F, InvalidValue>,
    ) -> Self {
        Self::new(name, ReadProperty::Secret(read))
    }

    /// Returns the column with functions that read its field from keys: one for each form of a key part that
    /// holds the field.
    #[doc(hidden)]
    #[must_use]
    pub const fn in_keys(mut self, parts: &'static [(Form, ReadPart<F>)]) -> Self {
        self.parts = parts;
        self
    }

    const fn new(name: &'static str, read: ReadProperty<F>) -> Self {
        Self { name: Cow::Borrowed(name), read, parts: &[], out_of_range: None, of: PhantomData }
    }

    /// Creates the column for a slot that a series lacks, such as slot 12 of a field with 12 slots. Every use of
    /// the column fails.
    pub(super) fn for_slot_out_of_range(slot: usize, names: &[&str]) -> Self {
        let read = ReadProperty::Row(|_, name: &str| {
            Err(InvalidValue::new("a slot out of range").into_read_error(name))
        });
        Self {
            name: properties_of_series(names).into(),
            out_of_range: Some((slot, names.len())),
            ..Self::new("", read)
        }
    }

    /// Returns the column of the entity into which its struct is flattened under `prefix`. Keys never contain
    /// fields of a flattened struct, so the column loses `parts`.
    pub(super) fn flattened_under<O>(self, prefix: &str) -> Column<O, F, K> {
        let Self { name, read, out_of_range, .. } = self;
        let name = [prefix, &*name].concat();
        Column { name: name.into(), read, parts: &[], out_of_range, of: PhantomData }
    }

    /// Fails if the column is a slot that the series lacks.
    pub(super) fn check_slot_exists(&self) -> Result<(), InvalidValue> {
        self.out_of_range
            .map_or(Ok(()), |(slot, length)| Err(slot_out_of_range_error(slot, length)))
    }

    /// Creates the column of a system property: PartitionKey, RowKey or Timestamp.
    pub(super) const fn system(name: &'static str) -> Self
    where
        F: SystemValue,
    {
        Self::new(name, ReadProperty::Row(F::READ))
    }

    /// Returns the name of the property.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # fn main() -> Result<(), Error> {
    /// assert_eq!(Employee::LAST_NAME.name(), "LastName");
    /// # Ok(())
    /// # }
    /// ```
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the comparison of the property with a value.
    pub(super) fn compare(&self, comparison: Comparison, value: K::Operand) -> Predicate<E>
    where
        K: Comparable<F>,
    {
        match self.check_slot_exists().and_then(|()| K::operand(value)) {
            Ok(value) => Predicate::new(Filter::compare(self.name(), comparison, value)),
            Err(invalid) => self.impossible_condition(comparison, invalid),
        }
    }

    /// Returns the condition that the property equals a value.
    pub(super) fn equal(&self, value: K::Operand) -> Predicate<E>
    where
        K: EqComparable<F>,
    {
        match self.check_slot_exists().and_then(|()| K::equal(&self.name, value)) {
            Ok(filter) => Predicate::new(filter),
            Err(invalid) => self.impossible_condition(Comparison::Eq, invalid),
        }
    }

    /// Returns the condition for a comparison that is impossible for every property, for the reason `invalid`.
    pub(super) fn impossible_condition(
        &self,
        comparison: Comparison,
        invalid: InvalidValue,
    ) -> Predicate<E> {
        Predicate::of_unstorable_value(self.name.clone(), comparison, invalid)
    }

    /// Requires that the property equals the value.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # fn main() -> Result<(), Error> {
    /// let jones = Employee::LAST_NAME.eq("Jones").into_filter()?;
    /// assert_eq!(jones.to_string(), "LastName eq 'Jones'");
    /// # Ok(())
    /// # }
    /// ```
    pub fn eq<V>(self, value: V) -> Predicate<E>
    where
        K: EqComparable<F>,
        V: Input<K::Operand>,
    {
        self.equal(value.input())
    }
}

/// Returns the property names of a series in the form that errors use: `Sent00 .. Sent23`.
pub(super) fn properties_of_series(names: &[&str]) -> String {
    match names {
        [first, .., last] => format!("{first} .. {last}"),
        names => names.concat(),
    }
}

/// Returns the error for a slot number beyond the length of the series.
pub(super) fn slot_out_of_range_error(slot: usize, length: usize) -> InvalidValue {
    InvalidValue::new(format!(
        "slot {slot} of a series of {length}, expected a number from 0 to {}",
        length.saturating_sub(1)
    ))
}

macro_rules! comparisons {
    ($($(#[$doc:meta])* $name:ident => $comparison:ident;)*) => {
        impl<E, F, K> Column<E, F, K> {
            $($(#[$doc])*
            pub fn $name<V>(self, value: V) -> Predicate<E>
            where
                K: Comparable<F>,
                V: Input<K::Operand>,
            {
                self.compare(Comparison::$comparison, value.input())
            })*
        }
    };
}

comparisons! {
    /// Requires that the row has the property and that its value differs.
    ne => Ne;
    /// Requires that the property is greater than the value.
    gt => Gt;
    /// Requires that the property is greater than or equal to the value.
    ge => Ge;
    /// Requires that the property is less than the value.
    lt => Lt;
    /// Requires that the property is less than or equal to the value.
    le => Le;
}

/// The type of a system property (`String` for keys, `OffsetDateTime` for the Timestamp), and the function
/// that reads it from a row.
pub trait SystemValue: Sized {
    /// Reads the system property of the given name from a row.
    const READ: fn(&Row, &str) -> Result<Self>;
}

impl SystemValue for String {
    const READ: fn(&Row, &str) -> Result<Self> = |row, name| {
        Ok(if name == "PartitionKey" { row.partition_key() } else { row.row_key() }.to_owned())
    };
}

impl SystemValue for time::OffsetDateTime {
    const READ: fn(&Row, &str) -> Result<Self> = |row, _| {
        let written = row.timestamp().map(Self::from);
        written.ok_or_else(|| {
            Error::new(
                ErrorKind::Decode,
                "expected a Timestamp, found a row that has not been written yet",
            )
        })
    };
}

/// A column that fills a field of a projection: a property, or a flattened struct.
pub trait ReadColumn {
    /// The type of the projection's field.
    type Field;

    /// Appends to `names` the properties that a query must select to read this column from rows of `family`.
    fn select(&self, family: &RowFamily, names: &mut Vec<String>);

    /// Reads the field from a row of `family`.
    ///
    /// # Errors
    ///
    /// Fails with `is_decode` and the property's name if it is missing or does not fit the field's type.
    fn read(&self, row: &Row, family: &'static RowFamily) -> Result<Self::Field>;
}

impl<E, F, K> ReadColumn for Column<E, F, K> {
    type Field = F;

    fn select(&self, family: &RowFamily, names: &mut Vec<String>) {
        if !family.in_keys.contains(&&*self.name) {
            names.push(self.name.to_string());
        }
    }

    #[inline]
    fn read(&self, row: &Row, family: &'static RowFamily) -> Result<F> {
        read_field(&self.name, self.read, self.parts, row, family)
    }
}

/// Reads a field from a row's keys or property. Takes the data of a column instead of the column itself, and
/// is therefore compiled once per field type, not once per entity.
fn read_field<F>(
    name: &str,
    read: ReadProperty<F>,
    parts: &[(Form, ReadPart<F>)],
    row: &Row,
    family: &'static RowFamily,
) -> Result<F> {
    if parts.is_empty() || !family.in_keys.contains(&name) {
        return read.read(row, name);
    }
    let part = family.part_restoring(name, row.partition_key(), row.row_key());
    let Some((part, text)) = part.map_err(|invalid| invalid.into_read_error(name))? else {
        return read.read(row, name);
    };
    let field = match parts.iter().find(|(form, _)| *form == part.form) {
        Some((_, read)) => read.read(part, text),
        None => Err(InvalidValue::new("the row's keys do not hold the field")),
    };
    field.map_err(|invalid| invalid.into_read_error(name))
}
