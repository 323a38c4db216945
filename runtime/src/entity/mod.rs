//! Entities: what the derives implement, and the types that they generate code against.

mod column;
mod draft;
mod kind;
mod dynamic;
mod names;
mod patch;
mod path;
mod projection;
mod properties;
mod reference;
mod related;
mod rows;
mod schema;
mod sealed;
pub mod set;
mod stored;
mod version;
mod view;

use time::OffsetDateTime;

pub use column::{
    Column, Flattened, FlattenedAs, Predicate, ReadColumn, ReadPart, SystemValue,
};
pub use draft::Draft;
pub use dynamic::DynamicEntity;
pub use kind::{Blind, Comparable, Encrypted, Equated, Json, Plain};
pub use names::assert_flattened;
pub use patch::Patch;
pub use path::{Access, Partition, Path, PathBuilder, Point, Range, Scan};
pub use projection::Projection;
pub use properties::{
    Properties, PropertyReader, PropertyWriter, finish_json, finish_property, keep_extra,
    read_json, read_properties, read_property,
};
pub use reference::KeyRef;
pub use rows::{CopyRow, EntityRows, ListEntry};
pub use schema::{ColumnSchema, Companion, Discriminator, Recognition, Schema, Sealed};
pub(crate) use sealed::SealedColumn;
pub use sealed::SEAL;
pub use set::{Aggregate, EntitySet, Set, SetMember, Variant};
pub use stored::Stored;
pub use version::{UpgradeFrom, older_rows, older_version};
pub(crate) use version::{entity_of, read_version, stored_rows};
pub use view::{
    FullCopy, FullView, Holds, ListRows, PartialCopy, PrimaryRow, ReadableAs, View, Within,
};

use crate::{
    error::{BoxError, Result},
    key::Family,
    row::Row,
};

/// What a query can hand out: an entity, a projection, a set, a dynamic entity.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read from a row",
    note = "derive `TableEntity`, `EntitySet` or `Projection` for it, or use `DynamicEntity`"
)]
pub trait FromRow: Sized + Send + 'static {
    /// The properties that it reads from rows of that family; `None`: all.
    fn columns(family: Option<&'static Family>) -> Option<Vec<String>>;

    /// The value from a row that is known to be of its type.
    ///
    /// # Errors
    ///
    /// `is_decode`, naming the property, for a row that does not fit; `is_corrupt` for a damaged
    /// one.
    fn from_row(row: &Row) -> Result<Self>;

    /// The value from a row that is known to be of that family of its type.
    ///
    /// # Errors
    ///
    /// As [`from_row`](Self::from_row).
    fn from_copy(row: &Row, family: &'static Family) -> Result<Self> {
        let _ = family;
        Self::from_row(row)
    }
}

/// A struct that is stored as an entity: `#[derive(TableEntity)]` implements it.
///
/// Its items are the trait's, so that an item of the same name on the struct shadows instead of
/// clashing.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an entity",
    note = "write `#[derive(TableEntity)]` on the struct"
)]
pub trait TableEntity: FromRow + Sync {
    /// What [`primary`](Self::primary) returns.
    type Primary;
    /// What [`patch`](Self::patch) returns.
    type Patch: Into<Patch<Self>>;

    /// What is known of the entity's rows.
    const SCHEMA: &'static Schema;

    /// The column of the PartitionKey.
    const PARTITION_KEY: Column<Self, String> = Column::system("PartitionKey");
    /// The column of the RowKey.
    const ROW_KEY: Column<Self, String> = Column::system("RowKey");
    /// The column of the Timestamp.
    const TIMESTAMP: Column<Self, OffsetDateTime> = Column::system("Timestamp");

    /// The path by the entity's own keys.
    fn primary() -> Self::Primary;

    /// Changes to some of the properties.
    fn patch() -> Self::Patch;

    /// Every entity of this type in the table: the only way to a table scan.
    fn scan() -> Scan<Self> {
        Scan::new()
    }

    /// The row of the primary, with its keys.
    ///
    /// # Errors
    ///
    /// `is_invalid` and `is_too_large`, naming the field, for values that cannot be stored.
    fn to_row(&self) -> Result<Row>;

    /// Every row that the entity is stored as: the primary, its copies, its entries in lists.
    ///
    /// # Errors
    ///
    /// As [`to_row`](Self::to_row).
    fn rows(&self) -> Result<EntityRows> {
        self.to_row().map(EntityRows::only)
    }

    /// The entity from a row of an older version; `None`: no `upgrade_from` leads from that
    /// version. `family` is the name of the kind of row.
    ///
    /// # Errors
    ///
    /// `is_decode` for a row that does not fit its version or cannot be upgraded.
    fn from_version(row: &Row, family: &str, version: u32) -> Result<Option<Self>> {
        let _ = (row, family, version);
        Ok(None)
    }

    /// Every row that the entity in a row of an older version is stored as.
    ///
    /// # Errors
    ///
    /// As [`from_version`](Self::from_version).
    fn rows_of_version(row: &Row, family: &str, version: u32) -> Result<Option<EntityRows>> {
        let _ = (row, family, version);
        Ok(None)
    }

    /// What the user's own `validate` says.
    ///
    /// # Errors
    ///
    /// What it returns.
    fn check(&self) -> Result<(), BoxError> {
        Ok(())
    }
}
