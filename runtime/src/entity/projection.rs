//! Defines projections: some of an entity's fields, read without the others.

use super::{FromRow, TableEntity};

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
