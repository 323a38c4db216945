//! Projections: some of an entity's fields.

use super::{FromRow, TableEntity};

/// Some of an entity's fields, read alone: `#[derive(Projection)]` implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a projection",
    note = "write `#[derive(Projection)] #[table(of = Entity)]` on the struct"
)]
pub trait Projection: FromRow {
    /// The entity that it is a part of.
    type Entity: TableEntity;
}
