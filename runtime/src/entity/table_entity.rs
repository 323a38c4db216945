//! Defines [`FromRow`] and [`TableEntity`], the traits that `#[derive(TableEntity)]` implements.

use std::{borrow::Cow, convert::identity};

use time::OffsetDateTime;

use super::{
    Column, EntityRows, Patch, Point, Scan, Schema,
    encode_rows::{self, EncodeRows},
};
use crate::{
    error::{BoxError, Result},
    key::RowFamily,
    row::Row,
};

/// A type that a query can return: an entity, a projection, a set, a dynamic entity.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read from a row",
    note = "derive `TableEntity`, `EntitySet` or `Projection`, or use `DynamicEntity`"
)]
pub trait FromRow: Sized + Send + 'static {
    /// Returns the properties that the type reads from rows of `family`, or `None` for all.
    fn columns(family: Option<&'static RowFamily>) -> Option<Vec<String>> {
        let _ = family;
        None
    }

    /// Reads the value from a row that is known to be of this type.
    ///
    /// # Errors
    ///
    /// Fails with `is_decode` and the property's name if the row does not fit the type, and with `is_corrupt` for a
    /// damaged row.
    fn from_row(row: &Row) -> Result<Self>;

    /// Reads the value from a row that is known to be of this type and row family.
    ///
    /// # Errors
    ///
    /// Fails as [`from_row`](Self::from_row) does.
    fn from_copy(row: &Row, family: &'static RowFamily) -> Result<Self> {
        Self::read_with(row, family, 0, identity)
    }

    /// Reads the value and returns `wrap(value)`. This lets an enum around the value be constructed in place
    /// without a copy. Starts at the byte offset `from`, because the properties before it were already read to find
    /// the row's type. A type without row families reads the row as [`from_row`](Self::from_row) does.
    #[doc(hidden)]
    #[inline]
    fn read_with<R>(
        row: &Row,
        family: &'static RowFamily,
        from: u32,
        wrap: impl FnOnce(Self) -> R,
    ) -> Result<R> {
        let _ = (family, from);
        Self::from_row(row).map(wrap)
    }
}

/// A struct that is stored as an entity. Only `#[derive(TableEntity)]` implements it.
///
/// Its functions and constants are trait items, which lets items of the struct with the same name shadow them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an entity",
    note = "write `#[derive(TableEntity)]` on the struct"
)]
pub trait TableEntity: FromRow + EncodeRows + Sync {
    /// The path builder that [`primary`](Self::primary) returns.
    type Primary;
    /// The patch builder that [`patch`](Self::patch) returns.
    type Patch: Into<Patch<Self>>;

    /// The description of the entity's rows: names, keys, columns.
    const SCHEMA: &'static Schema;

    /// The column of the PartitionKey.
    const PARTITION_KEY: Column<Self, String> = Column::system("PartitionKey");
    /// The column of the RowKey.
    const ROW_KEY: Column<Self, String> = Column::system("RowKey");
    /// The column of the Timestamp.
    const TIMESTAMP: Column<Self, OffsetDateTime> = Column::system("Timestamp");

    /// Starts a path by the entity's own keys.
    fn primary() -> Self::Primary;

    /// Starts a patch, a set of changes to some of the properties.
    fn patch() -> Self::Patch;

    /// Returns the path to every entity of this type in the table. `scan()` is the only way to scan a table.
    fn scan() -> Scan<Self> {
        Scan::new()
    }

    /// Returns the path to the entity's primary row, from the current values of its key fields. If a value does not
    /// fit its key part, the verb that receives the path fails.
    ///
    /// ```
    /// use entable::prelude::*;
    ///
    /// #[derive(TableEntity)]
    /// #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
    /// pub struct Employee { pub department: String, pub id: u32 }
    ///
    /// let don = Employee { department: "Sales".into(), id: 223 };
    /// assert_eq!(don.point().row_key(), "empid_000223");
    /// ```
    fn point(&self) -> Point<Self>;

    /// Converts the entity to its primary row.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` or `is_too_large` and the field's name for values that cannot be stored.
    fn to_row(&self) -> Result<Row> {
        encode_rows::row_in_family(self, Self::SCHEMA.primary()?)
    }

    /// Returns every row of the entity: the primary, its copies, and its list entries.
    ///
    /// # Errors
    ///
    /// Fails as [`to_row`](Self::to_row) does.
    fn rows(&self) -> Result<EntityRows> {
        self.rows_with(self.to_row()?)
    }

    /// Returns every row of the entity, given its primary row.
    ///
    /// # Errors
    ///
    /// Fails as [`to_row`](Self::to_row) does.
    fn rows_with(&self, primary: Row) -> Result<EntityRows> {
        encode_rows::all_rows_of_entity(self, primary, Self::SCHEMA.families)
    }

    /// Reads the entity from a row of another version. Returns `None` if no `upgrade_from` converts that version.
    /// `family` is the name of the row's row family.
    ///
    /// # Errors
    ///
    /// Fails with `is_decode` if the row does not fit its version or cannot be upgraded.
    fn from_version(row: &Row, family: &str, version: u32) -> Result<Option<Self>> {
        let _ = (row, family, version);
        Ok(None)
    }

    /// Reads an entity from a row of another version and returns all its rows as this version stores them: the
    /// primary, copies and list entries. Returns `None` if no `upgrade_from` converts that version.
    ///
    /// # Errors
    ///
    /// Fails as [`from_version`](Self::from_version) does.
    fn rows_of_version(row: &Row, family: &str, version: u32) -> Result<Option<EntityRows>> {
        let _ = (row, family, version);
        Ok(None)
    }

    /// Returns the PartitionKey and RowKey of the primary that a copy of `family` belongs to, or `None` if copies
    /// do not contain them.
    ///
    /// # Errors
    ///
    /// Fails with `is_decode` if the copy does not fit its row family.
    fn owner_of(row: &Row, family: &'static RowFamily) -> Result<Option<(String, String)>> {
        let _ = (row, family);
        Ok(None)
    }

    /// Returns the PartitionKey and RowKey of the primary that a copy from an older version of the type belongs to.
    /// Returns `None` if copies of that version's row family `family` do not contain them, or if the type has no such
    /// older version or row family.
    ///
    /// # Errors
    ///
    /// Fails as [`owner_of`](Self::owner_of) does.
    fn owner_of_version(row: &Row, family: &str, version: u32) -> Result<Option<(String, String)>> {
        let _ = (row, family, version);
        Ok(None)
    }

    /// Returns the name of the table that the entity belongs to. For dated tables, the entity's time determines it.
    #[doc(hidden)]
    #[inline]
    fn home_table(&self) -> Cow<'static, str> {
        Cow::Borrowed(Self::SCHEMA.table)
    }

    /// Calls the function from `#[table(validate = ..)]`, if any.
    ///
    /// # Errors
    ///
    /// Fails with that function's error.
    fn check(&self) -> Result<(), BoxError> {
        Ok(())
    }
}
