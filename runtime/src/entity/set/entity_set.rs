//! Defines the traits of sets of entities, and reads rows as items of a set.

use super::{Members, RowMatch};
use crate::{
    entity::{DynamicEntity, FromRow, Schema, Stored, TableEntity, read_other_version},
    error::{Error, ErrorKind, Result},
    key::RowFamily,
    row::Row,
};

/// Several types of rows of one table: an enum of entities, or a struct that folds a partition.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a set of entities",
    note = "write `#[derive(EntitySet)]` on an enum with one variant per entity, or on a struct with `#[table(one)]` and `#[table(many)]` fields"
)]
pub trait SetMembers: Sized + Send + 'static {
    /// The members of the set, with the tables for finding a row's member.
    const MEMBERS: &'static Members;
}

/// An enum with one variant per type of row. Implemented by `#[derive(EntitySet)]` on enums.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an enum of entities",
    note = "write `#[derive(EntitySet)]` on an enum with one variant per entity"
)]
pub trait EntitySet: SetMembers + FromRow {
    /// Reads the value from a row that belongs to a member.
    ///
    /// # Errors
    ///
    /// Fails with `is_decode` and the property's name if the row does not fit.
    fn read(row: &Row, matched: &RowMatch) -> Result<Self>;

    /// Reads the value of the `other` variant from a row that does not belong to a member. Returns `None` if the
    /// set has no such variant.
    ///
    /// # Errors
    ///
    /// Fails with `is_corrupt` for a damaged row.
    fn other(row: &Row) -> Result<Option<Self>>;

    /// Returns the name of the type that the value holds.
    fn member_name(&self) -> &'static str;

    /// Returns the properties that values are read from, or `None` if any property may be needed. If `copies` is
    /// set, includes the properties in copies of the members.
    fn set_columns(copies: bool) -> Option<Vec<String>>;
}

/// A type that a variant of a set can hold: an entity or a projection.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a member of a set",
    label = "neither an entity nor a projection",
    note = "a member must be a struct with `#[derive(TableEntity)]` or `#[derive(Projection)]`"
)]
pub trait SetMember: FromRow {
    /// The schema of the entity whose rows it is read from.
    const MEMBER: &'static Schema;

    /// Reads the member from a row that belongs to it, whatever the row's version.
    ///
    /// # Errors
    ///
    /// Fails with `is_decode` and the property's name if the row does not fit.
    fn read_matched(row: &Row, matched: &RowMatch) -> Result<Self>;

    /// Reads the member and returns `wrap(member)`. Entities pass the member to `wrap` where they build it, which
    /// lets the compiler build it in place without a copy.
    #[doc(hidden)]
    #[inline]
    fn read_into<R>(row: &Row, matched: &RowMatch, wrap: impl FnOnce(Self) -> R) -> Result<R> {
        Self::read_matched(row, matched).map(wrap)
    }

    /// Returns the properties that the member is read from, or `None` if any property may be needed, for example
    /// because rows of older versions have other properties. If `copies` is set, includes the properties in copies.
    fn member_columns(copies: bool) -> Option<Vec<String>> {
        if Self::MEMBER.older.is_some() {
            return None;
        }
        let mut names = Self::columns(None)?;
        let families: &'static [RowFamily] = Self::MEMBER.families;
        for family in families.iter().filter(|family| copies && family.is_copy()) {
            names.append(&mut Self::columns(Some(family))?);
        }
        Some(names)
    }
}

#[diagnostic::do_not_recommend]
impl<E: TableEntity> SetMember for E {
    const MEMBER: &'static Schema = E::SCHEMA;

    #[inline]
    fn read_matched(row: &Row, matched: &RowMatch) -> Result<Self> {
        read_matched::<E, E>(row, matched)
    }

    #[inline]
    fn read_into<R>(row: &Row, matched: &RowMatch, wrap: impl FnOnce(E) -> R) -> Result<R> {
        if matched.version() == E::SCHEMA.version {
            return E::read_with(row, matched.family(), matched.from, wrap);
        }
        read_older_version::<E, E>(row, matched).map(wrap)
    }
}

/// The type that a set's `#[table(other)]` variant can hold: [`DynamicEntity`].
#[diagnostic::on_unimplemented(
    message = "a `#[table(other)]` variant takes rows of any type: expected `DynamicEntity`, found `{Self}`",
    label = "not `DynamicEntity`"
)]
pub trait OtherRow: Sized {
    /// Reads a row into the value of the `#[table(other)]` variant, whatever the row's type, with all of its
    /// properties.
    ///
    /// # Errors
    ///
    /// Fails with `is_corrupt` for a damaged row.
    fn from_any_row(row: &Row) -> Result<Self>;

    /// Returns the value as a [`DynamicEntity`].
    fn as_dynamic(&self) -> &DynamicEntity;
}

impl OtherRow for DynamicEntity {
    fn from_any_row(row: &Row) -> Result<Self> {
        Self::from_row(row)
    }

    fn as_dynamic(&self) -> &DynamicEntity {
        self
    }
}

/// A set with a variant that holds an `M`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no variant for `{M}`",
    note = "`narrow` can only convert to a member of the set"
)]
pub trait Variant<M>: EntitySet {
    /// Returns the `M` in the value.
    ///
    /// # Errors
    ///
    /// Returns the value unchanged if it is of another variant.
    fn into_member(self) -> Result<M, Self>;
}

impl<S: EntitySet> Stored<S> {
    /// Converts the value of the set to the type `M` of one of its members. Verbs such as `replace` take a stored
    /// member instead of a stored set.
    ///
    /// ```
    /// # use entable::prelude::*;
    /// # #[derive(Debug, Clone, PartialEq, TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}",
    /// #         index(ByEmail, row_key = "email_{email:lower}"))]
    /// # pub struct Employee { pub department: String, pub id: u32, pub email: String }
    /// # #[derive(Debug, Clone, PartialEq, TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{name}", row_key = "department")]
    /// # pub struct Department { pub name: String, pub employee_count: i32 }
    /// # #[derive(Debug, Clone, PartialEq, EntitySet)]
    /// # pub enum StaffRow { Employee(Employee), Department(Department) }
    /// # fn jones() -> Employee {
    /// #     Employee { department: "Sales".into(), id: 223, email: "jones@contoso.com".into() }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # let client = Client::memory();
    /// # client.create_table("Staff").await?;
    /// # let staff = client.set::<StaffRow>("Staff");
    /// staff.insert(&jones().into()).await?;
    /// let row = staff.get(Keys::point("Sales", "empid_000223")).await?.expect("Jones is there");
    /// assert!(row.clone().narrow::<Department>().is_err());
    /// let mut jones: Stored<Employee> = row.narrow()?;
    /// jones.email = "kim@contoso.com".into();
    /// client.table::<Employee>().replace(&jones).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with `is_unrecognized_entity` and both types' names if the row belongs to another member.
    pub fn narrow<M>(self) -> Result<Stored<M>>
    where
        S: Variant<M>,
        M: FromRow,
    {
        self.try_map_value(|value, row| {
            value.into_member().map_err(|value| {
                let expected = short_name::<M>();
                let found = value.member_name();
                let message =
                    format!("unrecognized entity: expected a row of `{expected}`, found `{found}`");
                Error::new(ErrorKind::UnrecognizedEntity, message)
                    .at_keys(row.partition_key(), row.row_key())
                    .of_type(found)
            })
        })
    }

    /// Returns the name of the type that the row was read as: a member's, or `DynamicEntity`.
    ///
    /// ```
    /// # use entable::prelude::*;
    /// # #[derive(Debug, Clone, PartialEq, TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}",
    /// #         index(ByEmail, row_key = "email_{email:lower}"))]
    /// # pub struct Employee { pub department: String, pub id: u32, pub email: String }
    /// # #[derive(Debug, Clone, PartialEq, TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{name}", row_key = "department")]
    /// # pub struct Department { pub name: String, pub employee_count: i32 }
    /// # #[derive(Debug, Clone, PartialEq, EntitySet)]
    /// # pub enum StaffRow { Employee(Employee), Department(Department) }
    /// # fn jones() -> Employee {
    /// #     Employee { department: "Sales".into(), id: 223, email: "jones@contoso.com".into() }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # let client = Client::memory();
    /// # client.create_table("Staff").await?;
    /// # let staff = client.set::<StaffRow>("Staff");
    /// staff.insert(&jones().into()).await?;
    /// let row = staff.get(Keys::point("Sales", "empid_000223")).await?.expect("Jones is there");
    /// assert_eq!(row.member_name(), "Employee");
    /// # Ok(())
    /// # }
    /// ```
    pub fn member_name(&self) -> &'static str {
        (**self).member_name()
    }
}

/// Returns the last segment of a type's path.
fn short_name<M>() -> &'static str {
    let name = std::any::type_name::<M>();
    name.rsplit("::").next().unwrap_or(name)
}

/// Reads a value of entity `E`, or of a projection of `E`, from a row that belongs to `E`.
///
/// # Errors
///
/// Fails with `is_decode` and the property's name if the row does not fit.
#[inline]
pub(crate) fn read_matched<E: TableEntity, T: FromRow>(row: &Row, matched: &RowMatch) -> Result<T> {
    if matched.version() == E::SCHEMA.version {
        return T::from_copy(row, matched.family());
    }
    read_older_version::<E, T>(row, matched)
}

#[cold]
fn read_older_version<E: TableEntity, T: FromRow>(row: &Row, matched: &RowMatch) -> Result<T> {
    match read_other_version::<E, T>(row, matched.family().name, matched.version())? {
        Some(value) => Ok(value),
        None => Err(E::SCHEMA.unknown_version_error(matched.version())),
    }
}

/// The result of reading a row for a query of a set.
pub(crate) enum ResolvedRow<S> {
    /// An item of the set, and the member that the row belongs to, if any.
    Item(S, Option<RowMatch>),
    /// A row that the set does not return: a copy or a framework row.
    Hidden,
}

/// Reads a row as the variant of the set that it belongs to. Copies are only returned if `copies` is set.
///
/// # Errors
///
/// Fails with `is_unrecognized_entity` for a row of a type without a variant, if the set has no `other` variant.
/// Fails with `is_decode` for a row of a variant's type that does not fit it.
pub(crate) fn read_set_item<S: EntitySet>(row: &Row, copies: bool) -> Result<ResolvedRow<S>> {
    let Some(matched) = S::MEMBERS.match_row(row)? else {
        let is_hidden = S::MEMBERS.skips_unmatched_row(row, copies)?;
        return if is_hidden {
            Ok(ResolvedRow::Hidden)
        } else {
            read_unmatched(row).map(|item| ResolvedRow::Item(item, None))
        };
    };
    if !matched.is_primary() && !copies {
        return Ok(ResolvedRow::Hidden);
    }
    match S::read(row, &matched) {
        Ok(item) => Ok(ResolvedRow::Item(item, Some(matched))),
        Err(error) => {
            read_misfit_as_other(row, &matched, error).map(|item| ResolvedRow::Item(item, None))
        }
    }
}

/// Reads the item of a row that must belong to the set. Unlike `read_set_item`, it reads copies and hides no rows.
/// Called by `FromRow` of a derived set.
///
/// # Errors
///
/// Fails as `read_set_item` does, and with `is_unrecognized_entity` for a row of the library.
#[inline]
pub fn read_required_set_item<S: EntitySet>(row: &Row) -> Result<S> {
    let Some(matched) = S::MEMBERS.match_row(row)? else { return read_unmatched(row) };
    // A single local variable that is returned on every path is built directly in the caller's memory.
    let mut read = S::read(row, &matched);
    if let Err(error) = &read {
        read = read_misfit_as_other(row, &matched, error.clone());
    }
    read
}

/// Reads a row that does not belong to a member as the `other` variant.
#[cold]
fn read_unmatched<S: EntitySet>(row: &Row) -> Result<S> {
    let other = if S::MEMBERS.skips_unmatched_row(row, true)? { None } else { S::other(row)? };
    other.ok_or_else(|| S::MEMBERS.unrecognized_error(row))
}

/// Reads a row as the `other` variant, after reading it as its member failed with `error`. Returns `error` if the
/// set has no such variant, or if `error` is not `is_decode`.
#[cold]
fn read_misfit_as_other<S: EntitySet>(row: &Row, matched: &RowMatch, error: Error) -> Result<S> {
    if !error.is_decode() {
        return Err(error);
    }
    S::other(row)?.ok_or_else(|| error.of_type(matched.type_marker_of_row()))
}
