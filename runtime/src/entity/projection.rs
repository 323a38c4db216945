//! Defines projections, which read only some of an entity's fields.

use super::{FromRow, ReadColumn, TableEntity};
use crate::{error::Result, key::RowFamily, row::Row};

/// A struct with some of an entity's fields, which are the only ones that a query then reads. Implemented by
/// `#[derive(Projection)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a projection",
    note = "write `#[derive(Projection)] #[table(of = Entity)]` on the struct"
)]
pub trait Projection: FromRow {
    /// The entity whose fields the projection has.
    type Entity: TableEntity;
}

/// The column from which a projection reads a field.
#[doc(hidden)]
#[derive(Debug)]
pub struct ProjectedColumn<'c, C>(pub &'c C);

impl<C: ReadColumn> ProjectedColumn<'_, C> {
    /// Reads a field of the projection. Its type must be the type of the entity's field.
    ///
    /// # Errors
    ///
    /// Fails with `is_decode` and the property's name.
    pub fn read_as<F: SameType<C::Field>>(
        &self,
        row: &Row,
        family: &'static RowFamily,
    ) -> Result<F> {
        self.0.read(row, family).map(F::same)
    }
}

/// The type of a projection's field. It must be `T`, the type of the entity's field.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "expected the type of the entity's field, `{T}`, found `{Self}`",
    label = "expected `{T}`",
    note = "a field of a projection must have the same type as the field of the entity"
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
