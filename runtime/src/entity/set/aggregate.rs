//! Structs that fold the rows of a partition: one of this, many of that.

use super::{Claim, Set, SetMember};
use crate::{
    entity::{DynamicEntity, FromRow, Stored},
    error::{Error, ErrorKind, Result, ServiceCode},
    row::Row,
};

/// A struct that one query of a partition fills: `#[derive(EntitySet)]` implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a struct that folds a partition",
    note = "write `#[derive(EntitySet)]` on a struct with `#[table(one)]`, `#[table(many)]` and `#[table(other)]` fields"
)]
pub trait Aggregate: Set {
    /// Whether it has a field for rows that belong to no member.
    const OTHER: bool;

    /// The struct from the rows.
    ///
    /// # Errors
    ///
    /// `is_not_found` where a `one` is missing; `is_decode` for a second one or a row that does
    /// not fit; `is_unrecognized_entity` for a row of no member.
    fn fold(rows: &mut Folding) -> Result<Self>;
}

/// What a field of an aggregate holds of each row: the value, or the value as it is stored.
pub trait Item: Sized {
    /// What is read from the row.
    type Value: FromRow;

    /// The item from what was read.
    fn of(stored: Stored<Self::Value>) -> Self;
}

impl<M: SetMember> Item for M {
    type Value = M;

    fn of(stored: Stored<M>) -> M {
        stored.into_inner()
    }
}

impl Item for DynamicEntity {
    type Value = Self;

    fn of(stored: Stored<Self>) -> Self {
        stored.into_inner()
    }
}

impl<M: FromRow> Item for Stored<M> {
    type Value = M;

    fn of(stored: Self) -> Self {
        stored
    }
}

/// The type of a `#[table(one)]` field: an entity, or an `Option` of one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a `#[table(one)]` field",
    note = "write an entity or a projection, `Stored` of one, or an `Option` of these"
)]
pub trait One: Sized {
    /// What is read from the row.
    type Value: FromRow;

    /// The field from what was found.
    ///
    /// # Errors
    ///
    /// `missing`, where there has to be one.
    fn one(found: Option<Stored<Self::Value>>, missing: impl FnOnce() -> Error) -> Result<Self>;
}

impl<T: Item> One for T {
    type Value = T::Value;

    fn one(found: Option<Stored<T::Value>>, missing: impl FnOnce() -> Error) -> Result<Self> {
        found.map(T::of).ok_or_else(missing)
    }
}

impl<T: Item> One for Option<T> {
    type Value = T::Value;

    fn one(found: Option<Stored<T::Value>>, _: impl FnOnce() -> Error) -> Result<Self> {
        Ok(found.map(T::of))
    }
}

/// The type of a `#[table(many)]` or `#[table(other)]` field.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a `#[table(many)]` field",
    note = "write a `Vec` of an entity or a projection, or of `Stored` of one"
)]
pub trait Many: Sized {
    /// What is read from each row.
    type Value: FromRow;

    /// The field from what was found, in the order of the keys.
    fn many(found: Vec<Stored<Self::Value>>) -> Self;
}

impl<T: Item> Many for Vec<T> {
    type Value = T::Value;

    fn many(found: Vec<Stored<T::Value>>) -> Self {
        found.into_iter().map(T::of).collect()
    }
}

/// The rows that are folded, one after the other.
#[derive(Debug)]
pub struct Folding {
    rows: std::vec::IntoIter<(Row, Claim)>,
    others: Vec<Stored<DynamicEntity>>,
    partition_key: String,
    keeps_others: bool,
}

impl Folding {
    /// The rows of a query; what belongs to no member is put aside, or refused.
    pub(crate) fn new<A: Aggregate>(partition_key: &str, rows: Vec<Row>) -> Result<Self> {
        let mut folding = Self {
            rows: Vec::new().into_iter(),
            others: Vec::new(),
            partition_key: partition_key.to_owned(),
            keeps_others: A::OTHER,
        };
        let mut claimed = Vec::new();
        for row in rows {
            match A::MEMBERS.claim(&row)? {
                Some(claim) if claim.is_primary() => claimed.push((row, claim)),
                Some(_) => {}
                None if A::MEMBERS.hides(&row, false)? => {}
                None if A::OTHER => folding.set_aside(row)?,
                None => return Err(A::MEMBERS.unrecognized(&row)),
            }
        }
        folding.rows = claimed.into_iter();
        Ok(folding)
    }

    /// The next row that belongs to a member.
    pub fn next_row(&mut self) -> Option<(Row, Claim)> {
        self.rows.next()
    }

    fn set_aside(&mut self, row: Row) -> Result<()> {
        self.others.push(Stored::new(DynamicEntity::from_row(&row)?, row, 200));
        Ok(())
    }

    /// The value of a row; `None`: the row does not fit, and was put aside.
    fn value<M: SetMember>(&mut self, row: Row, claim: &Claim) -> Result<Option<Stored<M>>> {
        match M::read_claimed(&row, claim) {
            Ok(value) => Ok(Some(Stored::new(value, row, 200))),
            Err(error) if error.is_decode() && self.keeps_others => {
                self.set_aside(row).map(|()| None)
            }
            Err(error) => {
                Err(error.of_type(claim.marker()).at_keys(row.partition_key(), row.row_key()))
            }
        }
    }

    /// Takes a row for a `one` field.
    ///
    /// # Errors
    ///
    /// `is_decode` for a second one, or a row that does not fit.
    pub fn put_one<M: SetMember>(
        &mut self,
        slot: &mut Option<Stored<M>>,
        (row, claim): (Row, Claim),
    ) -> Result<()> {
        let Some(value) = self.value::<M>(row, &claim)? else { return Ok(()) };
        let Some(first) = slot else {
            *slot = Some(value);
            return Ok(());
        };
        let message = format!(
            "expected one `{}`, found a second beside `{}`",
            M::MEMBER.entity,
            first.row_key().escape_debug()
        );
        Err(Error::new(ErrorKind::Decode, message)
            .of_type(claim.marker())
            .at_keys(value.partition_key(), value.row_key()))
    }

    /// Takes a row for a `many` field.
    ///
    /// # Errors
    ///
    /// `is_decode` for a row that does not fit.
    pub fn put_many<M: SetMember>(
        &mut self,
        slot: &mut Vec<Stored<M>>,
        (row, claim): (Row, Claim),
    ) -> Result<()> {
        slot.extend(self.value::<M>(row, &claim)?);
        Ok(())
    }

    /// The rows of no member.
    pub fn take_others(&mut self) -> Vec<Stored<DynamicEntity>> {
        std::mem::take(&mut self.others)
    }

    /// The error for a `one` field without a row.
    pub fn missing(&self, member: &str) -> Error {
        let message = format!("there is no `{member}` among the rows");
        Error::service(ServiceCode::ResourceNotFound, message).at_keys(&self.partition_key, "")
    }
}
