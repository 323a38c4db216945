//! Defines the kinds of rows that a path leads to (primary rows, full copies, partial copies, lists), which of
//! them hold the whole entity, and which projections can be read from each.

use std::marker::PhantomData;

/// The kind of rows that a path leads to: primary rows, full copies, partial copies or lists.
pub trait View: 'static {}

/// A kind of rows that hold the whole entity, which can therefore be read from them.
///
/// Use it as a bound in functions that take any path to whole entities: `impl Path<Entity = E, View: FullView>`.
#[diagnostic::on_unimplemented(
    message = "this path may return partial copies, which cannot be read as whole entities",
    note = "to accept any path to whole entities in a function, write `impl Path<Entity = E, View: FullView>`",
    note = "a partial copy lacks some fields: read it with `get_as::<P>` or `select::<P>` and a projection of the fields it has"
)]
pub trait FullView: View {}

/// Primary rows: the entity's own rows.
#[derive(Debug, Clone, Copy)]
pub struct PrimaryRow;

impl View for PrimaryRow {}
impl FullView for PrimaryRow {}

/// A kind of row that verbs write: the entity's own. Copies and lists follow their entity.
#[diagnostic::on_unimplemented(
    message = "expected a path to the entity's own row, found a path to `{Self}`",
    label = "not a path to the primary row",
    note = "begin the path with `E::primary()`; the library updates copies and lists together with the entity"
)]
pub trait WritableView: FullView {}

impl WritableView for PrimaryRow {}

/// Secondary-index copies that hold the whole entity.
#[derive(Debug, Clone, Copy)]
pub struct FullCopy;

impl View for FullCopy {}
impl FullView for FullCopy {}

/// Rows that hold the whole entity, either primary rows or full copies. Ranges and partitions have this kind,
/// because reads need not distinguish the two. Writes do, and only take points.
#[derive(Debug, Clone, Copy)]
pub struct FullRow;

impl View for FullRow {}
impl FullView for FullRow {}

/// Secondary-index copies with some of the entity's fields. `M` is a generated type that represents the index and
/// implements [`HoldsField`] for each field.
#[derive(Debug, Clone, Copy)]
pub struct PartialCopy<M>(PhantomData<fn() -> M>);

impl<M: 'static> View for PartialCopy<M> {}

/// Lists (index entities). Each row holds the ids of many entities.
#[derive(Debug, Clone, Copy)]
pub struct ListRows;

impl View for ListRows {}

/// Lists, whose keys [`keys`](crate::Table::keys) reads.
#[diagnostic::on_unimplemented(
    message = "expected a path to a list, found a path to `{Self}`",
    label = "not a path to a list",
    note = "declare a list with `list(ByName, ..)` on the entity, and begin its path with `E::by_name()`"
)]
pub trait ListView: View {}

impl ListView for ListRows {}

/// A partial copy that contains field `F`, which is a [`FieldNamed`].
#[diagnostic::on_unimplemented(
    message = "the copies of `{Self}` do not include the field `{F}`",
    label = "these copies do not include `{F}`",
    note = "add the field to `only(..)` of the index, or read the entity through another path"
)]
pub trait HoldsField<F> {}

/// The name of a field as a type, for compiler messages: `FieldNamed<'a', 'g', 'e'>`. Contains the first 24
/// characters of the name. For a longer name, `REST` is a hash that distinguishes it.
#[derive(Debug, Clone, Copy)]
pub struct FieldNamed<
    const C00: char = '\0',
    const C01: char = '\0',
    const C02: char = '\0',
    const C03: char = '\0',
    const C04: char = '\0',
    const C05: char = '\0',
    const C06: char = '\0',
    const C07: char = '\0',
    const C08: char = '\0',
    const C09: char = '\0',
    const C10: char = '\0',
    const C11: char = '\0',
    const C12: char = '\0',
    const C13: char = '\0',
    const C14: char = '\0',
    const C15: char = '\0',
    const C16: char = '\0',
    const C17: char = '\0',
    const C18: char = '\0',
    const C19: char = '\0',
    const C20: char = '\0',
    const C21: char = '\0',
    const C22: char = '\0',
    const C23: char = '\0',
    const REST: u64 = 0,
>;

/// A projection whose fields are all in the partial copy `M`.
#[diagnostic::on_unimplemented(
    message = "the copies of this index do not include every field of `{Self}`",
    note = "add the missing field to `only(..)` of the index, or read the entity through another path"
)]
pub trait ProjectionHeldBy<M> {}

/// A kind of rows that hold every field of projection `P`, which can therefore be read from them.
#[diagnostic::on_unimplemented(
    message = "`{P}` cannot be read through this path",
    note = "a partial copy lacks some fields, and a list stores only the keys of entities"
)]
pub trait HoldsProjection<P>: View {}

impl<P> HoldsProjection<P> for PrimaryRow {}
impl<P> HoldsProjection<P> for FullCopy {}
impl<P: ProjectionHeldBy<M>, M: 'static> HoldsProjection<P> for PartialCopy<M> {}
