//! Folds the rows of a partition into one struct, whose fields hold one row or many.

use super::{RowMatch, SetMember, SetMembers};
use crate::{
    entity::{DynamicEntity, FromRow, Stored},
    error::{Error, ErrorKind, Result, ServiceCode},
    row::Row,
};

/// A struct that is filled by one query of a partition. Implemented by `#[derive(EntitySet)]` on structs.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be loaded from a partition",
    note = "write `#[derive(EntitySet)]` on a struct with `#[table(one)]`, `#[table(many)]` and `#[table(other)]` fields"
)]
pub trait Aggregate: SetMembers {
    /// Whether the struct has a `#[table(other)]` field for rows that do not belong to a member.
    const OTHER: bool;

    /// Builds the struct from the rows.
    ///
    /// # Errors
    ///
    /// Fails with `is_not_found` if a `one` field has no row, with `is_decode` if it has a second row or a row does
    /// not fit, and with `is_unrecognized_entity` if a row does not belong to a member.
    fn fold(rows: &mut PartitionFold) -> Result<Self>;
}

/// The element type of an aggregate's field: a value, or a value with its row (`Stored`).
pub trait FoldedItem: Sized {
    /// The type that is read from the row.
    type Value: FromRow;

    /// Converts a value that was read from a row to an element of the aggregate's field.
    fn from_stored(stored: Stored<Self::Value>) -> Self;
}

#[diagnostic::do_not_recommend]
impl<M: SetMember> FoldedItem for M {
    type Value = M;

    fn from_stored(stored: Stored<M>) -> M {
        stored.into_inner()
    }
}

impl FoldedItem for DynamicEntity {
    type Value = Self;

    fn from_stored(stored: Stored<Self>) -> Self {
        stored.into_inner()
    }
}

impl<M: FromRow> FoldedItem for Stored<M> {
    type Value = M;

    fn from_stored(stored: Self) -> Self {
        stored
    }
}

/// The type of a `#[table(one)]` field: an element, or an `Option` of one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a `#[table(one)]` field",
    label = "expected an entity or an `Option` of an entity",
    note = "use an entity or a projection, optionally in `Stored` or `Option`"
)]
pub trait OneField: Sized {
    /// The type that is read from the row.
    type Value: FromRow;

    /// Converts the row found for a `#[table(one)]` field, or `None`, to the field's value.
    ///
    /// # Errors
    ///
    /// Fails with the error `missing()` if no row was found and the field is not an `Option`.
    fn from_found(
        found: Option<Stored<Self::Value>>,
        missing: impl FnOnce() -> Error,
    ) -> Result<Self>;
}

#[diagnostic::do_not_recommend]
impl<T: FoldedItem> OneField for T {
    type Value = T::Value;

    fn from_found(
        found: Option<Stored<T::Value>>,
        missing: impl FnOnce() -> Error,
    ) -> Result<Self> {
        found.map(T::from_stored).ok_or_else(missing)
    }
}

#[diagnostic::do_not_recommend]
impl<T: FoldedItem> OneField for Option<T> {
    type Value = T::Value;

    fn from_found(found: Option<Stored<T::Value>>, _: impl FnOnce() -> Error) -> Result<Self> {
        Ok(found.map(T::from_stored))
    }
}

/// The type of a `#[table(many)]` field.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a `#[table(many)]` field",
    label = "expected a `Vec` of entities",
    note = "use a `Vec` of an entity or projection type, optionally in `Stored`"
)]
pub trait ManyField: Sized {
    /// The type that is read from each row.
    type Value: FromRow;

    /// Converts the rows found for a `#[table(many)]` field, in key order, to the field's value.
    fn from_found(found: Vec<Stored<Self::Value>>) -> Self;
}

/// The type of a `#[table(other)]` field.
#[diagnostic::on_unimplemented(
    message = "a `#[table(other)]` field takes rows of any type: expected `Vec<DynamicEntity>`, found `{Self}`",
    label = "expected `Vec<DynamicEntity>`",
    note = "write `Vec<DynamicEntity>`, or `Vec<Stored<DynamicEntity>>` to also get the ETags"
)]
pub trait OtherField {
    /// Converts the rows that do not belong to a member, in key order, to the field's value.
    fn from_others(found: Vec<Stored<DynamicEntity>>) -> Self;
}

#[diagnostic::do_not_recommend]
impl<T: FoldedItem<Value = DynamicEntity>> OtherField for Vec<T> {
    fn from_others(found: Vec<Stored<DynamicEntity>>) -> Self {
        found.into_iter().map(T::from_stored).collect()
    }
}

#[diagnostic::do_not_recommend]
impl<T: FoldedItem> ManyField for Vec<T> {
    type Value = T::Value;

    fn from_found(found: Vec<Stored<T::Value>>) -> Self {
        found.into_iter().map(T::from_stored).collect()
    }
}

/// The rows of a partition while they are distributed to the fields of an aggregate.
#[derive(Debug)]
pub struct PartitionFold {
    rows: std::vec::IntoIter<(Row, RowMatch)>,
    others: Vec<Stored<DynamicEntity>>,
    partition_key: String,
    keeps_others: bool,
}

impl PartitionFold {
    /// Separates the rows of a partition into members' rows and others. Skips copies and framework rows. Keeps a row
    /// that does not belong to a member for the `other` field, or fails if there is no such field.
    pub(crate) fn new<A: Aggregate>(partition_key: &str, rows: Vec<Row>) -> Result<Self> {
        let mut folding = Self {
            rows: Vec::new().into_iter(),
            others: Vec::new(),
            partition_key: partition_key.to_owned(),
            keeps_others: A::OTHER,
        };
        let mut matched_rows = Vec::new();
        for row in rows {
            match A::MEMBERS.match_row(&row)? {
                Some(matched) if matched.is_primary() => matched_rows.push((row, matched)),
                // A copy repeats its primary's entity, which would count twice.
                Some(_) => {}
                None if A::MEMBERS.skips_unmatched_row(&row, false)? => {}
                None if A::OTHER => folding.set_row_aside(row)?,
                None => return Err(A::MEMBERS.unrecognized_error(&row)),
            }
        }
        folding.rows = matched_rows.into_iter();
        Ok(folding)
    }

    /// Returns the next row that belongs to a member, and the member.
    pub fn next_row(&mut self) -> Option<(Row, RowMatch)> {
        self.rows.next()
    }

    fn set_row_aside(&mut self, row: Row) -> Result<()> {
        self.others.push(Stored::new(DynamicEntity::from_row(&row)?, row, 200));
        Ok(())
    }

    /// Reads the value of a row. If the row does not fit its member, adds it to the aggregate's `other` field and
    /// returns `None`, or fails if there is no such field.
    fn read_value<M: SetMember>(
        &mut self,
        row: Row,
        matched: &RowMatch,
    ) -> Result<Option<Stored<M>>> {
        match M::read_matched(&row, matched) {
            Ok(value) => Ok(Some(Stored::new(value, row, 200))),
            Err(error) if error.is_decode() && self.keeps_others => {
                self.set_row_aside(row).map(|()| None)
            }
            Err(error) => Err(error
                .of_type(matched.type_marker_of_row())
                .at_keys(row.partition_key(), row.row_key())),
        }
    }

    /// Puts a row into a `one` field.
    ///
    /// # Errors
    ///
    /// Fails with `is_decode` if the field already has a row, or if the row does not fit.
    pub fn put_in_one<M: SetMember>(
        &mut self,
        slot: &mut Option<Stored<M>>,
        (row, matched): (Row, RowMatch),
    ) -> Result<()> {
        let Some(value) = self.read_value::<M>(row, &matched)? else { return Ok(()) };
        let Some(first) = slot else {
            *slot = Some(value);
            return Ok(());
        };
        let message = format!(
            "expected one `{}`, found a second in addition to `{}`",
            M::MEMBER.entity,
            first.row_key().escape_debug()
        );
        Err(Error::new(ErrorKind::Decode, message)
            .of_type(matched.type_marker_of_row())
            .at_keys(value.partition_key(), value.row_key()))
    }

    /// Adds the entity of a row to a field with `#[table(many)]`.
    ///
    /// # Errors
    ///
    /// Fails with `is_decode` if the row lacks a property of the entity, or has one of another type.
    pub fn put_in_many<M: SetMember>(
        &mut self,
        slot: &mut Vec<Stored<M>>,
        (row, matched): (Row, RowMatch),
    ) -> Result<()> {
        slot.extend(self.read_value::<M>(row, &matched)?);
        Ok(())
    }

    /// Takes the rows that do not belong to a member, for the `#[table(other)]` field.
    pub fn take_rows_without_member(&mut self) -> Vec<Stored<DynamicEntity>> {
        std::mem::take(&mut self.others)
    }

    /// Returns the error for a `one` field without a row.
    pub fn missing_error(&self, member: &str) -> Error {
        let message = format!("expected a `{member}` among the rows, found none");
        Error::service(ServiceCode::ResourceNotFound, message).at_keys(&self.partition_key, "")
    }
}
