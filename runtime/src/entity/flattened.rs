//! Defines the columns of a struct that is flattened into an entity under a prefix.

use std::{borrow::Cow, fmt, marker::PhantomData};

use super::{Column, ColumnSchema, Properties, column::ReadColumn, read_properties};
use crate::{error::Result, key::RowFamily, row::Row};

/// The columns of a struct of type `F` that is flattened into entity `E`. [`at`](Self::at) selects one.
pub struct Flattened<E, F> {
    prefix: Cow<'static, str>,
    of: PhantomData<fn() -> (E, F)>,
}

impl<E, F> fmt::Debug for Flattened<E, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Flattened").field(&self.prefix).finish()
    }
}

/// A field type that flattens struct `A`: `A` itself, or `Option<A>`.
#[diagnostic::on_unimplemented(
    message = "`{A}` is not flattened into this column, which holds `{Self}`",
    label = "not a column of `{Self}`",
    note = "use a column of the flattened struct, as in `Employee::HOME.at(Address::CITY)`"
)]
pub trait FlattenedField<A> {}
impl<A: Properties> FlattenedField<A> for A {}
impl<A: Properties> FlattenedField<A> for Option<A> {}

impl<E, F> Flattened<E, F> {
    /// Creates the group of columns whose property names begin with `prefix`.
    pub const fn new(prefix: &'static str) -> Self {
        Self { prefix: Cow::Borrowed(prefix), of: PhantomData }
    }

    /// Returns a column of the flattened struct as a column of the entity. For a struct that is flattened into
    /// the flattened one, chain the calls: `Employee::HOME.at(Address::CITY).at(City::ZIP)`.
    pub fn at<C: InnerColumn<E, F>>(self, column: C) -> C::Outer {
        column.within(self)
    }

    /// Returns the columns of a struct that is flattened in two levels: `inner` is flattened into `F`, and `F` into
    /// the entity.
    pub fn within<A, G>(self, inner: Flattened<A, G>) -> Flattened<E, G>
    where
        F: FlattenedField<A>,
    {
        let prefix = [&*self.prefix, &*inner.prefix].concat();
        Flattened { prefix: prefix.into(), of: PhantomData }
    }
}

/// A column or a group of columns of a struct that is flattened, as field type `F`, into `E`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a column of the flattened `{F}`",
    note = "use a column of the flattened struct, as in `Employee::HOME.at(Address::CITY)`"
)]
pub trait InnerColumn<E, F> {
    /// The corresponding column of `E`.
    type Outer;

    #[doc(hidden)]
    fn within(self, outer: Flattened<E, F>) -> Self::Outer;
}

impl<E, F: FlattenedField<A>, A, G, K> InnerColumn<E, F> for Column<A, G, K> {
    type Outer = Column<E, G, K>;

    fn within(self, outer: Flattened<E, F>) -> Self::Outer {
        self.flattened_under(&outer.prefix)
    }
}

impl<E, F: FlattenedField<A>, A, G> InnerColumn<E, F> for Flattened<A, G> {
    type Outer = Flattened<E, G>;

    fn within(self, outer: Flattened<E, F>) -> Self::Outer {
        outer.within(self)
    }
}

impl<E, F: Properties> ReadColumn for Flattened<E, F> {
    type Field = F;

    fn select(&self, _: &RowFamily, names: &mut Vec<String>) {
        push_property_names(&self.prefix, F::COLUMNS, names);
    }

    fn read(&self, row: &Row, _: &'static RowFamily) -> Result<F> {
        read_properties(row, &self.prefix)
    }
}

/// Appends the names of the properties that store the columns to `names`, each with `prefix`. Includes columns
/// of nested structs, but not the blind tokens of encrypted values.
pub(super) fn push_property_names(prefix: &str, columns: &[ColumnSchema], names: &mut Vec<String>) {
    for column in columns {
        let name = [prefix, column.name].concat();
        if column.nested.is_empty() {
            names.push(name);
        } else {
            push_property_names(&name, column.nested, names);
        }
    }
}
