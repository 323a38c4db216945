//! Traits of values that can be written in bulk or in a transaction: entities, values of sets, stored
//! entities, points.

use std::borrow::Cow;

use crate::{
    entity::{
        KeyRef, Point, Stored, TableEntity, WritableView,
        home::{table_of_path, table_of_stored, table_to_replace_in},
        into_point::{NotOneRow, PathInCompilerMessage},
    },
    error::{Error, ErrorKind, Result},
    plan::{self, Change},
    query::decode::decode_required,
    row::Row,
};

/// How a bulk write writes an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkVerb {
    /// Inserts the entity. Fails with `is_conflict` if it exists.
    Insert,
    /// Inserts the entity or replaces the existing one.
    InsertOrReplace,
}

/// A planned change of one entity, made by [`Writable`], [`Rewritable`] or [`Deletable`].
#[derive(Debug, Clone)]
pub struct BulkChange(pub(in crate::table) Change);

/// A value that can be inserted in bulk: an entity, a value of a set, or a reference to one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an entity",
    note = "write `#[derive(TableEntity)]` on the struct, or `#[derive(EntitySet)]` on an enum of entities",
    note = "to write a `Stored` entity, pass `&*stored` or use `replace`"
)]
pub trait Writable {
    /// Returns the table to write to if the caller names none.
    fn table(&self) -> Cow<'static, str>;

    /// Plans the write of this entity.
    ///
    /// # Errors
    ///
    /// Fails as a single write of the entity fails before it is sent.
    fn change(&self, verb: BulkVerb) -> Result<BulkChange>;
}

impl<W: Writable + ?Sized> Writable for &W {
    fn table(&self) -> Cow<'static, str> {
        (**self).table()
    }

    fn change(&self, verb: BulkVerb) -> Result<BulkChange> {
        (**self).change(verb)
    }
}

/// Plans the write of an entity. Called by the derives.
///
/// # Errors
///
/// Fails as a single write of the entity fails before it is sent.
pub fn bulk_change<E: TableEntity>(entity: &E, verb: BulkVerb) -> Result<BulkChange> {
    match verb {
        BulkVerb::Insert => plan::insert(entity),
        BulkVerb::InsertOrReplace => plan::insert_or_replace(entity),
    }
    .map(BulkChange)
}

/// A value that can be deleted in bulk. A stored entity is deleted only if its ETag is still the one that was read.
/// The entity at a point is deleted whatever its ETag.
pub trait Deletable {
    /// Returns the table to write to if the caller names none.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` for a point that does not determine one of its type's dated tables.
    fn table(&self) -> Result<Cow<'static, str>>;

    /// Plans the deletion.
    ///
    /// # Errors
    ///
    /// Fails if the keys are invalid.
    fn removal(&self) -> Result<BulkChange>;

    /// Returns whether a missing row counts as deleted.
    fn is_done_when_missing(&self) -> bool;
}

/// An entity or a value of a set that can be written back to the row that it was read from.
#[diagnostic::on_unimplemented(
    message = "a stored `{Self}` cannot be written",
    note = "only entities and sets of entities can be written; a projection lacks parts of the row"
)]
pub trait Rewritable: Sized {
    /// Returns the table to write to if the caller names none.
    ///
    /// # Errors
    ///
    /// Fails with `is_decode` if the row does not show which of its type's dated tables it is in.
    fn home(stored: &Stored<Self>) -> Result<Cow<'static, str>>;

    /// Plans the replacement of the entity under the ETag that was read.
    ///
    /// # Errors
    ///
    /// Fails as a single replacement fails before it is sent.
    fn replacement(stored: &Stored<Self>) -> Result<BulkChange>;

    /// Plans the deletion of the entity under the ETag that was read.
    ///
    /// # Errors
    ///
    /// Fails if the keys are invalid.
    fn removal(stored: &Stored<Self>) -> Result<BulkChange>;

    /// Decodes a row that was read again. Returns `None` if `Self` is a set and the row is a copy or
    /// a framework row.
    ///
    /// # Errors
    ///
    /// Fails if the row is of a type that `Self` does not include, or does not fit its type.
    fn reread(row: Row) -> Result<Option<Stored<Self>>>;

    /// Returns the name of the type for error messages.
    fn type_name(&self) -> &'static str;
}

impl<E: TableEntity> Rewritable for E {
    fn home(stored: &Stored<E>) -> Result<Cow<'static, str>> {
        table_of_stored(stored)
    }

    fn replacement(stored: &Stored<E>) -> Result<BulkChange> {
        // A changed time must not take the entity to another dated table.
        if E::SCHEMA.dated.is_some() {
            table_to_replace_in(stored)?;
        }
        plan::replace(stored).map(BulkChange)
    }

    fn removal(stored: &Stored<E>) -> Result<BulkChange> {
        plan::delete::<E, E>(stored).map(BulkChange)
    }

    fn reread(row: Row) -> Result<Option<Stored<E>>> {
        decode_required::<E, E>(row, E::SCHEMA.primary()?).map(Some)
    }

    fn type_name(&self) -> &'static str {
        E::SCHEMA.entity
    }
}

impl<W: Rewritable> Deletable for Stored<W> {
    fn table(&self) -> Result<Cow<'static, str>> {
        W::home(self)
    }

    fn removal(&self) -> Result<BulkChange> {
        W::removal(self)
    }

    fn is_done_when_missing(&self) -> bool {
        false
    }
}

impl<E: TableEntity, V: WritableView> Deletable for Point<E, V> {
    fn table(&self) -> Result<Cow<'static, str>> {
        table_of_path(self.as_access(), E::SCHEMA)
    }

    fn removal(&self) -> Result<BulkChange> {
        plan::delete_at::<E>(self.as_access(), false).map(BulkChange)
    }

    fn is_done_when_missing(&self) -> bool {
        true
    }
}

impl<E: TableEntity> Deletable for KeyRef<E> {
    fn table(&self) -> Result<Cow<'static, str>> {
        self.point().table()
    }

    fn removal(&self) -> Result<BulkChange> {
        self.point().removal()
    }

    fn is_done_when_missing(&self) -> bool {
        true
    }
}

// Only for the compiler's message: no path meets the bound.
impl<B: NotOneRow<PathInCompilerMessage>> Deletable for B {
    fn table(&self) -> Result<Cow<'static, str>> {
        Ok(Cow::Borrowed(B::Entity::SCHEMA.table))
    }

    fn removal(&self) -> Result<BulkChange> {
        Err(Error::new(ErrorKind::Invalid, "the path does not lead to one row"))
    }

    fn is_done_when_missing(&self) -> bool {
        false
    }
}
