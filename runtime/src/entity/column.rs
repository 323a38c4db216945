//! Columns: an entity's properties as typed constants, and the conditions that they form.

use std::{
    borrow::Cow,
    fmt,
    marker::PhantomData,
    ops::{BitAnd, BitOr, Not},
};

use super::{ColumnSchema, Comparable, Equated, Plain, Properties, read_properties};
use crate::{
    edm::{Input, InvalidValue},
    error::{Error, ErrorKind, Result},
    filter::{Comparison, Filter},
    key::{Family, Part},
    row::Row,
};

/// How a field is read back from a part of a key.
pub type ReadPart<F> = fn(&Part, &str) -> Result<F>;

/// A column of entity `E` whose field has type `F`.
///
/// ```ignore
/// Employee::AGE.ge(30) & !Employee::LAST_NAME.eq("Jones")
/// ```
pub struct Column<E, F, K = Plain> {
    name: Cow<'static, str>,
    read: fn(&Row, &str) -> Result<F>,
    key: Option<ReadPart<F>>,
    of: PhantomData<fn() -> (E, K)>,
}

impl<E, F, K> fmt::Debug for Column<E, F, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Column").field(&self.name).finish()
    }
}

impl<E, F, K> Column<E, F, K> {
    /// A column that is a property of that name.
    pub const fn property(name: &'static str, read: fn(&Row, &str) -> Result<F>) -> Self {
        Self { name: Cow::Borrowed(name), read, key: None, of: PhantomData }
    }

    /// A column whose field the keys of some of the entity's rows give back.
    pub const fn key(
        name: &'static str,
        read: fn(&Row, &str) -> Result<F>,
        part: ReadPart<F>,
    ) -> Self {
        Self { name: Cow::Borrowed(name), read, key: Some(part), of: PhantomData }
    }

    /// A column of the system: a key or the Timestamp.
    pub(super) const fn system(name: &'static str) -> Self
    where
        F: SystemValue,
    {
        Self { name: Cow::Borrowed(name), read: F::READ, key: None, of: PhantomData }
    }

    /// The property's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn compare<V>(self, comparison: Comparison, value: V) -> Predicate<E>
    where
        K: Comparable<F>,
        V: Input<K::Operand>,
    {
        match K::operand(value.input()) {
            Ok(value) => Predicate::new(Filter::compare(self.name, comparison, value)),
            Err(invalid) => Predicate::refused(self.name, invalid),
        }
    }

    /// The property equals the value.
    pub fn eq<V>(self, value: V) -> Predicate<E>
    where
        K: Equated<F>,
        V: Input<K::Operand>,
    {
        match K::equal(&self.name, value.input()) {
            Ok(filter) => Predicate::new(filter),
            Err(invalid) => Predicate::refused(self.name, invalid),
        }
    }
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
                self.compare(Comparison::$comparison, value)
            })*
        }
    };
}

comparisons! {
    /// The property is there and differs from the value.
    ne => Ne;
    /// The property is greater.
    gt => Gt;
    /// The property is greater or equal.
    ge => Ge;
    /// The property is less.
    lt => Lt;
    /// The property is less or equal.
    le => Le;
}

/// A system property's own reader, so that columns of keys need no name.
pub trait SystemValue: Sized {
    /// Reads it by name.
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
        written.ok_or_else(|| Error::new(ErrorKind::Decode, "the row was not written yet"))
    };
}

/// The columns of a struct that is flattened into entity `E`.
pub struct Flattened<E, F> {
    prefix: Cow<'static, str>,
    of: PhantomData<fn() -> (E, F)>,
}

impl<E, F> fmt::Debug for Flattened<E, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Flattened").field(&self.prefix).finish()
    }
}

/// The struct whose columns are meant, with or without `Option`.
pub trait FlattenedAs<A> {}
impl<A: Properties> FlattenedAs<A> for A {}
impl<A: Properties> FlattenedAs<A> for Option<A> {}

impl<E, F> Flattened<E, F> {
    /// The columns under that prefix.
    pub const fn new(prefix: &'static str) -> Self {
        Self { prefix: Cow::Borrowed(prefix), of: PhantomData }
    }

    /// One of the struct's columns, as a column of the entity.
    pub fn at<A, G, K>(self, column: Column<A, G, K>) -> Column<E, G, K>
    where
        F: FlattenedAs<A>,
    {
        let name = [&*self.prefix, &*column.name].concat();
        Column { name: name.into(), read: column.read, key: None, of: PhantomData }
    }

    /// A struct that is flattened into the struct.
    pub fn within<A, G>(self, inner: Flattened<A, G>) -> Flattened<E, G>
    where
        F: FlattenedAs<A>,
    {
        let prefix = [&*self.prefix, &*inner.prefix].concat();
        Flattened { prefix: prefix.into(), of: PhantomData }
    }
}

/// What a projection's field is read from.
pub trait ReadColumn {
    /// The field's type.
    type Field;

    /// Adds the properties that have to be selected from rows of that family.
    fn select(&self, family: &Family, names: &mut Vec<String>);

    /// The field, from a row of that family.
    ///
    /// # Errors
    ///
    /// `is_decode`, naming the property.
    fn read(&self, row: &Row, family: &'static Family) -> Result<Self::Field>;
}

impl<E, F, K> ReadColumn for Column<E, F, K> {
    type Field = F;

    fn select(&self, family: &Family, names: &mut Vec<String>) {
        if !family.in_keys.contains(&&*self.name) {
            names.push(self.name.to_string());
        }
    }

    fn read(&self, row: &Row, family: &'static Family) -> Result<F> {
        let (Some(read_part), true) = (self.key, family.in_keys.contains(&&*self.name)) else {
            return (self.read)(row, &self.name);
        };
        let part = family.part_of(&self.name, row.partition_key(), row.row_key());
        match part.map_err(|invalid| invalid.on_read(&self.name))? {
            Some((part, text)) => read_part(part, text),
            None => (self.read)(row, &self.name),
        }
    }
}

impl<E, F: Properties> ReadColumn for Flattened<E, F> {
    type Field = F;

    fn select(&self, _: &Family, names: &mut Vec<String>) {
        fn visit(prefix: &str, columns: &[ColumnSchema], names: &mut Vec<String>) {
            for column in columns {
                let name = [prefix, column.name].concat();
                if column.nested.is_empty() {
                    names.push(name);
                } else {
                    visit(&name, column.nested, names);
                }
            }
        }
        visit(&self.prefix, F::COLUMNS, names);
    }

    fn read(&self, row: &Row, _: &'static Family) -> Result<F> {
        read_properties(row, &self.prefix)
    }
}

/// A condition on the rows of entity `E`: comparisons of its columns, joined with `&`, `|`, `!`.
pub struct Predicate<E> {
    filter: Filter,
    fault: Option<(String, InvalidValue)>,
    of: PhantomData<fn() -> E>,
}

impl<E> Predicate<E> {
    fn new(filter: Filter) -> Self {
        Self { filter, fault: None, of: PhantomData }
    }

    /// A condition on a value that cannot be stored.
    fn refused(property: Cow<'static, str>, invalid: InvalidValue) -> Self {
        let fault = Some((property.into_owned(), invalid));
        Self { filter: Filter::Constant(false), fault, of: PhantomData }
    }

    fn join(self, other: Self, with: impl FnOnce(Filter, Filter) -> Filter) -> Self {
        Self {
            filter: with(self.filter, other.filter),
            fault: self.fault.or(other.fault),
            of: PhantomData,
        }
    }

    /// The untyped filter.
    ///
    /// # Errors
    ///
    /// `is_invalid` where a value cannot be stored in its column.
    pub fn into_filter(self) -> Result<Filter> {
        match self.fault {
            None => Ok(self.filter),
            Some((property, invalid)) => Err(invalid.on_write(&property)),
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
        self.join(other, BitAnd::bitand)
    }
}

impl<E> BitOr for Predicate<E> {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.join(other, BitOr::bitor)
    }
}

impl<E> Not for Predicate<E> {
    type Output = Self;

    fn not(self) -> Self {
        Self { filter: !self.filter, ..self }
    }
}
