//! Defines projections: some of an entity's fields, read without the others.

use super::{FromRow, ReadColumn, TableEntity};
use crate::{error::Result, key::Family, row::Row};

/// A struct with some of an entity's fields, so that a query reads only those.
/// `#[derive(Projection)]` implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a projection",
    note = "write `#[derive(Projection)] #[table(of = Entity)]` on the struct"
)]
pub trait Projection: FromRow {
    /// The entity whose fields the projection has.
    type Entity: TableEntity;
}

/// A column of the entity from which a projection reads a field.
#[doc(hidden)]
#[derive(Debug)]
pub struct ProjectedColumn<'c, C>(pub &'c C);

impl<C: ReadColumn> ProjectedColumn<'_, C> {
    /// Reads a field of the projection, whose type is that of the entity's field.
    ///
    /// # Errors
    ///
    /// `is_decode`, naming the property.
    pub fn read_as<F: SameType<C::Field>>(&self, row: &Row, family: &'static Family) -> Result<F> {
        self.0.read(row, family).map(F::same)
    }
}

/// The type of a projection's field, which is the type `T` of the entity's field.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the entity's field is of type `{T}`, found `{Self}`",
    label = "expected `{T}`",
    note = "a projection's field has the type that the entity's field has"
)]
pub trait SameType<T> {
    /// Returns the value unchanged. A call compiles only if the two types are equal.
    fn same(value: T) -> Self;
}

#[diagnostic::do_not_recommend]
impl<T> SameType<T> for T {
    fn same(value: T) -> Self {
        value
    }
}
