//! Sets of entities: what `#[derive(EntitySet)]` implements, and how a row finds its type.

mod aggregate;
mod derived;
mod forms;
mod markers;
mod members;

pub use aggregate::{Aggregate, Folding, Many, One};
pub use derived::{
    assert_members_apart, assert_older, assert_same_type, assert_types_apart, read_projection,
    schema_of, table_of,
};
pub use forms::{KeyForm, count_forms, sorted_forms};
pub use markers::{Marker, marker_places, placed_markers};
pub(super) use members::same_text;
pub use members::{Claim, Members, members_meet, same_discriminator, types_meet};

use super::{DynamicEntity, FromRow, Schema, Stored, TableEntity, version::read_version};
use crate::{
    error::{Error, ErrorKind, Result},
    key::{Family, FamilyKind},
    row::Row,
};

/// Several types of rows of one table: an enum of entities, or a struct that folds a partition.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a set of entities",
    note = "write `#[derive(EntitySet)]` on an enum with one variant per entity, or on a struct with `#[table(one)]` and `#[table(many)]` fields"
)]
pub trait Set: Sized + Send + 'static {
    /// Its members, and how their rows are told apart.
    const MEMBERS: &'static Members;
}

/// An enum with one variant per type of row: `#[derive(EntitySet)]` implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an enum of entities",
    note = "write `#[derive(EntitySet)]` on an enum with one variant per entity"
)]
pub trait EntitySet: Set + FromRow {
    /// The value from a row that belongs to a member.
    ///
    /// # Errors
    ///
    /// `is_decode`, naming the property, for a row that does not fit.
    fn read(row: &Row, claim: &Claim) -> Result<Self>;

    /// The value of a row that belongs to no member; `None`: the set has no place for it.
    ///
    /// # Errors
    ///
    /// `is_corrupt` for a damaged row.
    fn other(row: &Row) -> Result<Option<Self>>;

    /// The name of the type that the value holds.
    fn member_name(&self) -> &'static str;

    /// The properties that its values are read from, or those that copies of its members are read
    /// from as well; `None`: all.
    fn set_columns(copies: bool) -> Option<Vec<String>>;
}

/// What a variant of a set may hold: an entity, or a projection of one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a member of a set",
    label = "neither an entity nor a projection",
    note = "a member is a struct with `#[derive(TableEntity)]` or `#[derive(Projection)]`"
)]
pub trait SetMember: FromRow {
    /// What is known of the rows that it is read from.
    const MEMBER: &'static Schema;

    /// The member from a row that it claims, in whatever version that is.
    ///
    /// # Errors
    ///
    /// `is_decode`, naming the property, for a row that does not fit.
    fn read_claimed(row: &Row, claim: &Claim) -> Result<Self>;

    /// What `wrap` makes of the member: the set's value, filled in place.
    #[doc(hidden)]
    #[inline]
    fn read_into<R>(row: &Row, claim: &Claim, wrap: impl FnOnce(Self) -> R) -> Result<R> {
        Self::read_claimed(row, claim).map(wrap)
    }

    /// The properties that it is read from; `None`: all. Rows of older versions have others.
    fn member_columns(copies: bool) -> Option<Vec<String>> {
        if Self::MEMBER.older.is_some() {
            return None;
        }
        let mut names = Self::columns(None)?;
        let families: &'static [Family] = Self::MEMBER.families;
        for family in families.iter().filter(|family| copies && family.kind == FamilyKind::Copy) {
            names.append(&mut Self::columns(Some(family))?);
        }
        Some(names)
    }
}

#[diagnostic::do_not_recommend]
impl<E: TableEntity> SetMember for E {
    const MEMBER: &'static Schema = E::SCHEMA;

    #[inline]
    fn read_claimed(row: &Row, claim: &Claim) -> Result<Self> {
        read_claimed::<E, E>(row, claim)
    }

    #[inline]
    fn read_into<R>(row: &Row, claim: &Claim, wrap: impl FnOnce(E) -> R) -> Result<R> {
        if claim.version() == E::SCHEMA.version {
            return E::read_with(row, claim.family(), claim.from, wrap);
        }
        read_older::<E, E>(row, claim).map(wrap)
    }
}

/// What a set's variant for other rows holds.
#[diagnostic::on_unimplemented(
    message = "`#[table(other)]` is for rows of every type, expected `DynamicEntity`, found `{Self}`",
    label = "not `DynamicEntity`"
)]
pub trait OtherRow: Sized {
    /// The row, whole.
    ///
    /// # Errors
    ///
    /// `is_corrupt` for a damaged row.
    fn whole(row: &Row) -> Result<Self>;

    /// The value as what it is.
    fn as_dynamic(&self) -> &DynamicEntity;
}

impl OtherRow for DynamicEntity {
    fn whole(row: &Row) -> Result<Self> {
        Self::from_row(row)
    }

    fn as_dynamic(&self) -> &DynamicEntity {
        self
    }
}

/// A set with a variant that holds an `M`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no variant that holds a `{M}`",
    note = "`narrow` gives one of the set's members"
)]
pub trait Variant<M>: EntitySet {
    /// What the variant holds; the value itself, where it is of another variant.
    ///
    /// # Errors
    ///
    /// The value, unchanged.
    fn into_member(self) -> Result<M, Self>;
}

impl<S: EntitySet> Stored<S> {
    /// The stored row as one of the set's members, so that it can be written.
    ///
    /// # Errors
    ///
    /// `is_unrecognized_entity`, naming both types, for a row of another member.
    pub fn narrow<M>(self) -> Result<Stored<M>>
    where
        S: Variant<M>,
        M: FromRow,
    {
        self.try_map(|value, row| {
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

    /// The name of the type that the row was read as: a member's, or `DynamicEntity`.
    pub fn member_name(&self) -> &'static str {
        (**self).member_name()
    }
}

/// The last segment of a type's path.
fn short_name<M>() -> &'static str {
    let name = std::any::type_name::<M>();
    name.rsplit("::").next().unwrap_or(name)
}

/// A value of entity `E`, or of a projection of it, from a row that it claims.
///
/// # Errors
///
/// `is_decode`, naming the property, for a row that does not fit.
#[inline]
pub fn read_claimed<E: TableEntity, T: FromRow>(row: &Row, claim: &Claim) -> Result<T> {
    if claim.version() == E::SCHEMA.version {
        return T::from_copy(row, claim.family());
    }
    read_older::<E, T>(row, claim)
}

#[cold]
fn read_older<E: TableEntity, T: FromRow>(row: &Row, claim: &Claim) -> Result<T> {
    match read_version::<E, T>(row, claim.family().name, claim.version())? {
        Some(value) => Ok(value),
        None => Err(E::SCHEMA.newer(claim.version())),
    }
}

/// What became of a row that a set was asked for.
pub(crate) enum Resolved<S> {
    /// An item, and the family that it was read from, if a member claims it.
    Item(S, Option<Claim>),
    /// A row that the set does not hand out: a copy, or the framework's own.
    Hidden,
}

/// The item of a row. Copies are handed out only where they are asked for.
///
/// # Errors
///
/// `is_unrecognized_entity` for a row of no member, where the set has no variant for it;
/// `is_decode` for one that says a member's type and does not fit.
pub(crate) fn resolve<S: EntitySet>(row: &Row, copies: bool) -> Result<Resolved<S>> {
    let Some(claim) = S::MEMBERS.claim(row)? else {
        let is_hidden = S::MEMBERS.hides(row, copies)?;
        return if is_hidden {
            Ok(Resolved::Hidden)
        } else {
            unclaimed(row).map(|item| Resolved::Item(item, None))
        };
    };
    if !claim.is_primary() && !copies {
        return Ok(Resolved::Hidden);
    }
    match S::read(row, &claim) {
        Ok(item) => Ok(Resolved::Item(item, Some(claim))),
        Err(error) => misfit(row, &claim, error).map(|item| Resolved::Item(item, None)),
    }
}

/// The item of a row that has to be one: what `FromRow` of a set does.
///
/// # Errors
///
/// As `resolve`.
#[inline]
pub fn resolve_row<S: EntitySet>(row: &Row) -> Result<S> {
    let Some(claim) = S::MEMBERS.claim(row)? else { return unclaimed(row) };
    // One local that is returned on every path is written where the caller wants it.
    let mut read = S::read(row, &claim);
    if let Err(error) = &read {
        read = misfit(row, &claim, error.clone());
    }
    read
}

/// The item of a row that no member claims.
#[cold]
fn unclaimed<S: EntitySet>(row: &Row) -> Result<S> {
    let other = if S::MEMBERS.hides(row, true)? { None } else { S::other(row)? };
    other.ok_or_else(|| S::MEMBERS.unrecognized(row))
}

/// The item of a row that lies about its type: a set with a place for such rows delivers it whole.
#[cold]
fn misfit<S: EntitySet>(row: &Row, claim: &Claim, error: Error) -> Result<S> {
    if !error.is_decode() {
        return Err(error);
    }
    S::other(row)?.ok_or_else(|| error.of_type(claim.marker()))
}
