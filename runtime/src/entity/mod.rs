//! Entities: what the derives implement, and the types that they generate code against.

mod column;
mod draft;
mod kind;
mod dynamic;
mod message;
mod names;
mod patch;
mod path;
mod pending;
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

pub use column::{Column, Flattened, FlattenedAs, Predicate, ReadColumn, ReadPart, SystemValue};
pub use draft::Draft;
pub use dynamic::DynamicEntity;
pub use kind::{Blind, Comparable, Encrypted, Equated, Json, Plain};
pub use message::{Message, MessageBody};
pub use names::assert_flattened;
pub use patch::Patch;
pub use path::{Access, Partition, Path, PathBuilder, Point, Range, Scan};
pub(crate) use pending::Pending;
pub use projection::Projection;
pub use properties::{
    Properties, PropertyReader, PropertyWriter, finish_json, finish_property, keep_extra,
    read_json, read_properties, read_property,
};
pub use reference::KeyRef;
pub(crate) use related::{derive as derive_keys, gives_keys_of};
pub use rows::{CopyRow, EntityRows, ListEntry, Listed};
pub(crate) use schema::Kinds;
pub use schema::{ColumnSchema, Companion, Discriminator, Recognition, Schema, Sealed};
pub use sealed::SEAL;
pub(crate) use sealed::SealedColumn;
pub use set::{Aggregate, EntitySet, Set, SetMember, Variant};
pub use stored::Stored;
pub use version::{UpgradeFrom, derived_rows, older_owner, older_rows, older_version};
pub(crate) use version::{entity_of, owner_of, read_version, stored_rows};
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

    /// What `wrap` makes of the value: an enum around it is filled in place, not copied into. The
    /// properties before the place `from` are known and of no interest.
    #[doc(hidden)]
    #[inline]
    fn read_with<R>(
        row: &Row,
        family: &'static Family,
        from: u32,
        wrap: impl FnOnce(Self) -> R,
    ) -> Result<R> {
        let _ = from;
        Self::from_copy(row, family).map(wrap)
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
        self.rows_with(self.to_row()?)
    }

    /// Every row that the entity is stored as, where the primary is known.
    ///
    /// # Errors
    ///
    /// As [`to_row`](Self::to_row).
    fn rows_with(&self, primary: Row) -> Result<EntityRows> {
        Ok(EntityRows::only(primary))
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

    /// PartitionKey and RowKey of the entity that a copy of that family is one of; `None`: its
    /// copies do not hold them.
    ///
    /// # Errors
    ///
    /// `is_decode` for a copy that does not fit.
    fn owner_of(row: &Row, family: &'static Family) -> Result<Option<(String, String)>> {
        let _ = (row, family);
        Ok(None)
    }

    /// The same for a copy of an older version.
    ///
    /// # Errors
    ///
    /// As [`owner_of`](Self::owner_of).
    fn owner_of_version(row: &Row, family: &str, version: u32) -> Result<Option<(String, String)>> {
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
