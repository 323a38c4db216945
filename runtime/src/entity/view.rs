//! Which rows of an entity a path leads to, and what can be read from them.

use std::marker::PhantomData;

use super::Projection;

/// The rows of an entity that a path leads to: the primary, a full copy, a partial copy.
pub trait View: 'static {}

/// Rows that hold the whole entity, so that it can be read from them.
#[diagnostic::on_unimplemented(
    message = "this path leads to partial copies",
    note = "a partial copy does not hold every field: use `get_as::<P>` or `select::<P>` with a projection of the fields that it has"
)]
pub trait FullView: View {}

/// The entity's own rows.
#[derive(Debug, Clone, Copy)]
pub struct PrimaryRow;

impl View for PrimaryRow {}
impl FullView for PrimaryRow {}

/// Copies that hold the whole entity.
#[derive(Debug, Clone, Copy)]
pub struct FullCopy;

impl View for FullCopy {}
impl FullView for FullCopy {}

/// Copies that hold some of the entity's fields; `M` says which.
#[derive(Debug, Clone, Copy)]
pub struct PartialCopy<M>(PhantomData<fn() -> M>);

impl<M: 'static> View for PartialCopy<M> {}

/// Index entities: one row, the ids of many entities.
#[derive(Debug, Clone, Copy)]
pub struct ListRows;

impl View for ListRows {}

/// A partial copy that holds a field; `FIELD` is a fingerprint of the field's name.
#[diagnostic::on_unimplemented(
    message = "the copies of this index do not hold a field of the projection",
    note = "add the field to `only(..)` of the index, or read the entity through another path"
)]
pub trait Holds<const FIELD: u64> {}

/// A projection whose fields a partial copy holds.
#[diagnostic::on_unimplemented(
    message = "the copies of this index do not hold every field of `{Self}`",
    note = "add the missing field to `only(..)` of the index, or read the entity through another path"
)]
pub trait Within<M> {}

/// Rows that a projection can be read from.
#[diagnostic::on_unimplemented(
    message = "`{P}` cannot be read through this path",
    note = "a partial copy does not hold every field; a list holds ids"
)]
pub trait ReadableAs<P>: View {}

impl<P: Projection> ReadableAs<P> for PrimaryRow {}
impl<P: Projection> ReadableAs<P> for FullCopy {}
impl<P: Projection + Within<M>, M: 'static> ReadableAs<P> for PartialCopy<M> {}
