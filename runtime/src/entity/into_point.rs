//! Defines what verbs take as a path to one row, and the words in which the compiler refuses other paths.
//!
//! A message of the compiler can name the missing step only if the step has a bound of its own. So a path
//! that does not lead to one row implements [`NotOneRow<T>`] for any `T` that meets such a bound, and no
//! type does. The compiler then reports the bound, whose message says what to write.

use super::{
    AnyPath, KeyRef, Partition, Point, PrimaryRow, Range, Scan, TableEntity, View, WritableView,
};
use crate::edm::InvalidValue;

/// A path to one row by both of its keys: a [`Point`], which a path builder returns once every part of the keys
/// is given, or a [`KeyRef`].
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let staff = staff().await?;
/// let manager = KeyRef::from(at(223));
/// let by_reference = staff.get(&manager).await?.map(|hall| hall.id);
/// assert_eq!(by_reference, staff.get(at(223)).await?.map(|hall| hall.id));
/// staff.update(&manager, |hall| { hall.age += 1; Ok(()) }).await?;
/// assert!(staff.delete_at(&manager).await?);
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a path to one row",
    label = "not a path to one row",
    note = "give a value for every part of the PartitionKey and then of the RowKey, such as `Employee::primary().department(\"Sales\").id(7)`",
    note = "for the row of an entity you already have, write `entity.point()`"
)]
pub trait IntoPoint {
    /// The entity that the path leads to.
    type Entity: TableEntity;
    /// The kind of row that the path leads to.
    type View: View;

    /// Converts the path to a [`Point`].
    fn into_point(self) -> Point<Self::Entity, Self::View>;
}

#[diagnostic::do_not_recommend]
impl<E: TableEntity, V: View> IntoPoint for Point<E, V> {
    type Entity = E;
    type View = V;

    fn into_point(self) -> Self {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<E: TableEntity, V: View> IntoPoint for &Point<E, V> {
    type Entity = E;
    type View = V;

    fn into_point(self) -> Point<E, V> {
        self.clone()
    }
}

#[diagnostic::do_not_recommend]
impl<E: TableEntity> IntoPoint for KeyRef<E> {
    type Entity = E;
    type View = PrimaryRow;

    fn into_point(self) -> Point<E> {
        self.point()
    }
}

#[diagnostic::do_not_recommend]
impl<E: TableEntity> IntoPoint for &KeyRef<E> {
    type Entity = E;
    type View = PrimaryRow;

    fn into_point(self) -> Point<E> {
        self.point()
    }
}

/// A path that does not lead to one row. Each impl has a bound on `T` that no type meets, and the compiler's message
/// about this bound says why the path is refused.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a path to one row",
    label = "not a path to one row",
    note = "give a value for every part of the PartitionKey and then of the RowKey, such as `Employee::primary().department(\"Sales\").id(7)`",
    note = "for the row of an entity you already have, write `entity.point()`"
)]
pub trait NotOneRow<T> {
    /// The entity that the path leads to.
    type Entity: TableEntity;
}

/// Stands for the path in the compiler's messages, such as "`LeadsToOneRow` is not implemented for `PathInCompilerMessage`".
// The compiler prefers the message of `IntoPoint` to that of a bound on the path's own type.
#[doc(hidden)]
#[derive(Debug)]
pub enum PathInCompilerMessage {}

/// A bound that no type meets. A path that still needs the value of its method `F` to lead to one row requires it, so
/// that the compiler names `F`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the path ends before `{F}`: add the method for it",
    label = "`{F}` is missing",
    note = "one row needs a value for each part of its keys; to read all rows of the path, use `query(..)`"
)]
pub trait HasPointStep<F> {}

/// A bound that no type meets. A path that still needs the value of its method `F` to address any rows requires it, so
/// that the compiler names `F`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the path ends before `{F}`: add the method for it",
    label = "`{F}` is missing",
    note = "a path needs every part of the PartitionKey, and for a dated table its time first; to read the whole table, use `scan()`"
)]
pub trait HasPathStep<F> {}

/// A bound that no type meets. A path to many rows requires it where a path to one row is needed, so that the compiler
/// says so.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "expected a path to one row, found a path to many",
    label = "many rows",
    note = "give an exact value for each key part, such as `.id(7)` instead of `.id_range(..)` or `.id_prefix(..)`; to read many rows, use `query(..)`"
)]
pub trait LeadsToOneRow {}

// Only for the compiler's message: no path meets the bound.
impl<B: NotOneRow<PathInCompilerMessage>> IntoPoint for B {
    type Entity = B::Entity;
    type View = PrimaryRow;

    fn into_point(self) -> Point<B::Entity> {
        Point::with_fault("the path", InvalidValue::new("it does not lead to one row"))
    }
}

impl<E: TableEntity, V: View, T: LeadsToOneRow> NotOneRow<T> for Range<E, V> {
    type Entity = E;
}

impl<E: TableEntity, V: View, T: LeadsToOneRow> NotOneRow<T> for Partition<E, V> {
    type Entity = E;
}

impl<E: TableEntity, T: LeadsToOneRow> NotOneRow<T> for AnyPath<E> {
    type Entity = E;
}

impl<E: TableEntity, T: LeadsToOneRow> NotOneRow<T> for Scan<E> {
    type Entity = E;
}

/// Returns the path to the row that a verb writes. This is the entity's primary row, never a copy.
pub(crate) fn own_row(point: impl IntoPoint<View = impl WritableView>) -> super::UntypedPath {
    super::Path::access(point.into_point())
}
