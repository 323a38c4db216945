//! Defines [`KeyRef`], a reference to another entity that is stored as its two keys.

use std::{
    fmt,
    hash::{Hash, Hasher},
    marker::PhantomData,
};

use super::{
    Column, ColumnSchema, Point, Properties, PropertyWriter, Stored, TableEntity, finish_property,
    read_property,
};
use crate::{
    edm::{EdmType, ValueRef},
    error::{Error, ErrorKind, Result},
    key::TOKEN_PLACEHOLDER,
};

/// A reference to an `E`, stored in another entity as the properties `{prefix}PartitionKey` and
/// `{prefix}RowKey`. Expresses a one-to-one or many-to-one relationship.
///
/// A struct contains it as a flattened field, or as an `Option` if it may be absent.
///
/// ```
/// use entable::prelude::*;
///
/// #[derive(TableEntity)]
/// #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
/// pub struct Employee { pub department: String, pub id: u32 }
///
/// #[derive(TableEntity)]
/// #[table(name = "Departments", partition_key = "{name}", row_key = "department")]
/// pub struct Department {
///     pub name: String,
///     #[table(flatten)]
///     pub manager: KeyRef<Employee>,
/// }
///
/// let don = Employee::primary().department("Sales").id(223);
/// let sales = Department { name: "Sales".into(), manager: KeyRef::from(don) };
/// let row = sales.to_row()?;
/// assert_eq!(row.get("ManagerRowKey")?, Some(entable::ValueRef::String("empid_000223")));
/// assert_eq!(Department::from_row(&row)?.manager.point().row_key(), "empid_000223");
/// # Ok::<(), Error>(())
/// ```
pub struct KeyRef<E> {
    partition_key: String,
    row_key: String,
    of: PhantomData<fn() -> E>,
}

const PARTITION_KEY: &str = "PartitionKey";
const ROW_KEY: &str = "RowKey";

impl<E> KeyRef<E> {
    /// The column of the PartitionKey in the reference, for
    /// [`Flattened::at`](super::Flattened::at).
    pub const PARTITION_KEY: Column<Self, String> = Column::property(PARTITION_KEY, read_property);
    /// The column of the RowKey in the reference, for [`Flattened::at`](super::Flattened::at).
    pub const ROW_KEY: Column<Self, String> = Column::property(ROW_KEY, read_property);

    /// Creates a reference to the row with keys `partition_key` and `row_key`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # fn main() -> Result<(), Error> {
    /// let manager = KeyRef::<Employee>::new("Sales", "empid_000223");
    /// assert_eq!(manager, KeyRef::from(at(223)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(partition_key: impl Into<String>, row_key: impl Into<String>) -> Self {
        Self { partition_key: partition_key.into(), row_key: row_key.into(), of: PhantomData }
    }

    /// Returns the PartitionKey of the referenced entity.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # fn main() -> Result<(), Error> {
    /// assert_eq!(KeyRef::from(at(223)).partition_key(), "Sales");
    /// # Ok(())
    /// # }
    /// ```
    pub fn partition_key(&self) -> &str {
        &self.partition_key
    }

    /// Returns the RowKey of the referenced entity.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # fn main() -> Result<(), Error> {
    /// assert_eq!(KeyRef::from(at(223)).row_key(), "empid_000223");
    /// # Ok(())
    /// # }
    /// ```
    pub fn row_key(&self) -> &str {
        &self.row_key
    }
}

impl<E> KeyRef<E> {
    /// Refuses keys that still contain the placeholder of a blind token, which no stored row has.
    fn check_tokens(&self) -> Result<()> {
        if [&self.partition_key, &self.row_key].iter().any(|key| key.contains(TOKEN_PLACEHOLDER)) {
            let message = "the reference's keys lack blind tokens, which only a verb can make; read the entity by its \
                           primary path and refer to it with `KeyRef::from(&stored)`";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        Ok(())
    }
}

impl<E: TableEntity> KeyRef<E> {
    /// Creates a reference to an entity from its keys. The entity need not be stored yet.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` or `is_too_large` if the entity's keys cannot be written. Fails with `is_invalid` if
    /// they contain blind tokens (`{email:hmac}`), which only verbs can make. Use `KeyRef::from(&stored)` for such
    /// an entity.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # fn main() -> Result<(), Error> {
    /// assert_eq!(KeyRef::to(&employee(223, "Hall"))?, KeyRef::from(at(223)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn to(entity: &E) -> Result<Self> {
        let row = entity.to_row()?;
        let reference = Self::new(row.partition_key(), row.row_key());
        reference.check_tokens()?;
        Ok(reference)
    }

    /// Returns the path to the referenced entity.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let manager = KeyRef::from(at(223));
    /// let found = staff().await?.get(manager.point()).await?;
    /// assert_eq!(found.map(|hall| hall.id), Some(223));
    /// # Ok(())
    /// # }
    /// ```
    pub fn point(&self) -> Point<E> {
        Point::at(self.partition_key.as_str(), self.row_key.as_str())
    }
}

impl<E> From<Point<E>> for KeyRef<E> {
    fn from(point: Point<E>) -> Self {
        Self::new(point.partition_key(), point.row_key())
    }
}

/// Refers to the entity's primary row, even if the entity was read through an index.
///
/// A copy does not contain the blind tokens in its primary's keys (`{email:hmac}`). If you read such an entity
/// through an index, writing a reference to it fails. Read the entity by its primary path first.
impl<E: TableEntity> From<&Stored<E>> for KeyRef<E> {
    fn from(stored: &Stored<E>) -> Self {
        stored.point().into()
    }
}

impl<E: TableEntity> From<KeyRef<E>> for Point<E> {
    fn from(reference: KeyRef<E>) -> Self {
        reference.point()
    }
}

impl<E> Clone for KeyRef<E> {
    fn clone(&self) -> Self {
        Self::new(self.partition_key.as_str(), self.row_key.as_str())
    }
}

impl<E> PartialEq for KeyRef<E> {
    fn eq(&self, other: &Self) -> bool {
        (&self.partition_key, &self.row_key) == (&other.partition_key, &other.row_key)
    }
}

impl<E> Eq for KeyRef<E> {}

impl<E> Hash for KeyRef<E> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.partition_key, &self.row_key).hash(state);
    }
}

impl<E> fmt::Debug for KeyRef<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyRef").field(&self.partition_key).field(&self.row_key).finish()
    }
}

const fn column(name: &'static str) -> ColumnSchema {
    ColumnSchema {
        name,
        edm: Some(EdmType::String),
        optional: false,
        stored: true,
        nested: &[],
        sealed: None,
        has_default: false,
        part: 1,
        values: "",
    }
}

#[diagnostic::do_not_recommend]
impl<E: 'static> Properties for KeyRef<E> {
    type Slots<'r> = [Option<ValueRef<'r>>; 2];

    const COLUMNS: &'static [ColumnSchema] = &[column(PARTITION_KEY), column(ROW_KEY)];

    fn write(&self, out: &mut PropertyWriter<'_>) -> Result<()> {
        // `From<Point>` cannot fail, so references made from paths are checked here.
        self.check_tokens().map_err(|error| out.write_error_with_row_keys(error))?;
        out.put(PARTITION_KEY, &self.partition_key)?;
        out.put(ROW_KEY, &self.row_key)
    }

    fn offer<'r>(slots: &mut Self::Slots<'r>, name: &'r [u8], value: ValueRef<'r>) -> bool {
        let [partition_key, row_key] = slots;
        match name {
            b"PartitionKey" => *partition_key = Some(value),
            b"RowKey" => *row_key = Some(value),
            _ => return false,
        }
        true
    }

    fn finish([partition_key, row_key]: Self::Slots<'_>, prefix: &str) -> Result<Self> {
        let partition_key: String = finish_property(partition_key, prefix, PARTITION_KEY)?;
        Ok(Self::new(partition_key, finish_property::<String>(row_key, prefix, ROW_KEY)?))
    }
}
