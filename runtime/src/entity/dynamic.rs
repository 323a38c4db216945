//! Defines [`DynamicEntity`], an entity whose properties are known only at run time.

use std::{collections::BTreeSet, fmt};

use super::{
    FromRow,
    framework::{RESERVED, is_framework_property},
};
use crate::{
    edm::{Bag, Property, Value},
    error::{Error, ErrorKind, Result},
    key::RowFamily,
    row::Row,
};

/// An entity without a struct: its keys and an ordered bag of typed values.
///
/// ```
/// use entable::{DynamicEntity, Value};
///
/// let mut marketing = DynamicEntity::new("Marketing", "Department");
/// marketing.set("EmployeeCount", 153);
/// assert_eq!(marketing.get("EmployeeCount"), Some(&Value::Int32(153)));
/// ```
#[derive(Clone)]
pub struct DynamicEntity {
    partition_key: String,
    row_key: String,
    properties: Bag,
    /// Names of the properties that are stored encrypted.
    encrypted: BTreeSet<String>,
    /// The library's own properties that the row had when it was read. They may be written back.
    read: Bag,
    /// Whether the row was read with a RowKey of the library. A backup writes such rows elsewhere.
    was_framework_row: bool,
    /// Whether the program may write names that belong to the library.
    allows_framework_names: bool,
}

/// Compares keys and properties, regardless of which properties are stored encrypted.
impl PartialEq for DynamicEntity {
    fn eq(&self, other: &Self) -> bool {
        (&self.partition_key, &self.row_key) == (&other.partition_key, &other.row_key)
            && self.properties == other.properties
    }
}

impl fmt::Debug for DynamicEntity {
    /// Prints `(encrypted)` in place of values that are stored encrypted.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Shown<'a>(&'a DynamicEntity);
        impl fmt::Debug for Shown<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut map = f.debug_map();
                for (name, value) in self.0.properties.iter() {
                    if self.0.encrypted.contains(name) {
                        map.entry(&name, &"(encrypted)")
                    } else {
                        map.entry(&name, value)
                    };
                }
                map.finish()
            }
        }
        f.debug_struct("DynamicEntity")
            .field("partition_key", &self.partition_key)
            .field("row_key", &self.row_key)
            .field("properties", &Shown(self))
            .finish()
    }
}

impl DynamicEntity {
    /// Creates an entity with keys `partition_key` and `row_key` and no properties.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let note = DynamicEntity::new("Sales", "note");
    /// assert_eq!((note.partition_key(), note.row_key()), ("Sales", "note"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(partition_key: impl Into<String>, row_key: impl Into<String>) -> Self {
        Self {
            partition_key: partition_key.into(),
            row_key: row_key.into(),
            properties: Bag::new(),
            encrypted: BTreeSet::new(),
            read: Bag::new(),
            was_framework_row: false,
            allows_framework_names: false,
        }
    }

    /// Returns the PartitionKey.
    ///
    /// ```
    /// # use entable::DynamicEntity;
    /// assert_eq!(DynamicEntity::new("Sales", "note").partition_key(), "Sales");
    /// ```
    pub fn partition_key(&self) -> &str {
        &self.partition_key
    }

    /// Returns the RowKey.
    ///
    /// ```
    /// # use entable::DynamicEntity;
    /// assert_eq!(DynamicEntity::new("Sales", "note").row_key(), "note");
    /// ```
    pub fn row_key(&self) -> &str {
        &self.row_key
    }

    /// Returns the value of the property `name`, or `None` if it is missing.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let mut note = DynamicEntity::new("Sales", "note");
    /// note.set("Text", "hello");
    /// assert_eq!(note.get("Text"), Some(&Value::from("hello")));
    /// assert_eq!(note.get("Other"), None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.properties.get(name)
    }

    /// Reads a property as a field type. An `Option` reads a property that may be absent.
    ///
    /// ```
    /// use entable::DynamicEntity;
    ///
    /// let mut marketing = DynamicEntity::new("Marketing", "Department");
    /// marketing.set("EmployeeCount", 153);
    /// assert_eq!(marketing.read::<i32>("EmployeeCount")?, 153);
    /// assert_eq!(marketing.read::<Option<String>>("Manager")?, None);
    /// assert!(marketing.read::<String>("Manager").unwrap_err().is_decode());
    /// # Ok::<(), entable::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with `is_decode`, the keys and the property's name if the property is missing or does not fit the type.
    pub fn read<T: Property>(&self, name: &str) -> Result<T> {
        T::from_stored(self.get(name).map(Value::as_ref)).map_err(|invalid| {
            invalid.into_read_error(name).at_keys(&self.partition_key, &self.row_key)
        })
    }

    /// Sets a property.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let mut note = DynamicEntity::new("Sales", "note");
    /// note.set("Count", 3_i32);
    /// assert_eq!(note.get("Count"), Some(&Value::Int32(3)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Value>) -> &mut Self {
        self.properties.set(name, value);
        self
    }

    /// Sets a property and returns the entity.
    ///
    /// ```
    /// # use entable::DynamicEntity;
    /// let note = DynamicEntity::new("Sales", "note").with("Text", "call back").with("Urgent", true);
    /// assert_eq!(note.properties().len(), 2);
    /// ```
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.set(name, value);
        self
    }

    /// Stores a property encrypted whenever the entity is written. If the property is absent, a write of the
    /// whole entity stores an encrypted absence instead. A property that was encrypted when it was read stays
    /// encrypted without this call.
    ///
    /// ```
    /// use entable::DynamicEntity;
    ///
    /// let mut jones = DynamicEntity::new("Sales", "223").with("Ssn", "123-45-6789");
    /// jones.encrypt("Ssn");
    /// assert!(!format!("{jones:?}").contains("6789"));
    /// ```
    pub fn encrypt(&mut self, name: impl Into<String>) -> &mut Self {
        self.encrypted.insert(name.into());
        self
    }

    /// Allows this entity to be written with names that belong to the library: the properties `EntitySeal`,
    /// `EntableMovedBy`, all that begin with `EntableMoving`, `Src`, `SrcP`, `SrcR`, `SrcT`, `SrcC` and `SrcF`, and RowKeys that begin
    /// with `~e`. By default such names are refused, because names from a program's input must not pass for the
    /// library's own. You can write such properties back without this call if they were read and not changed, even
    /// to another table. The same is true of rows that were read with such a RowKey.
    ///
    /// ```
    /// use entable::prelude::*;
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let client = Client::memory();
    /// client.create_table("Staff").await?;
    /// let mut row = DynamicEntity::new("Sales", "x").with("EntableMoving", "1");
    /// let refused = client.dynamic("Staff").insert(&row).await;
    /// assert!(refused.is_err_and(|error| error.is_invalid()));
    /// row.allow_framework_names();
    /// client.dynamic("Staff").insert(&row).await?;
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn allow_framework_names(&mut self) -> &mut Self {
        self.allows_framework_names = true;
        self
    }

    /// Allows names that belong to the library, as
    /// [`allow_framework_names`](Self::allow_framework_names) does, and returns the entity.
    ///
    /// ```
    /// # use entable::DynamicEntity;
    /// let entity = DynamicEntity::new("Sales", "note").with_framework_names().with("Src", "an ETag");
    /// assert!(entity.properties().get("Src").is_some());
    /// ```
    #[must_use]
    pub fn with_framework_names(mut self) -> Self {
        self.allow_framework_names();
        self
    }

    /// Allows names that belong to the library if `other` does, and refuses them otherwise.
    pub(crate) fn allow_framework_names_like(&mut self, other: &Self) {
        self.allows_framework_names = other.allows_framework_names;
    }

    /// Returns whether a property is stored encrypted.
    ///
    /// ```
    /// # use entable::DynamicEntity;
    /// let note = DynamicEntity::new("Sales", "note").with("Text", "call back");
    /// assert!(!note.is_encrypted("Text"));
    /// ```
    pub fn is_encrypted(&self, name: &str) -> bool {
        self.encrypted.contains(name)
    }

    /// Removes the property `name` and returns its value. If you set it again, it is stored in plain text.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let mut note = DynamicEntity::new("Sales", "note");
    /// note.set("Text", "hello");
    /// note.remove("Text");
    /// assert_eq!(note.get("Text"), None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        self.encrypted.remove(name);
        self.properties.remove(name)
    }

    /// Returns the properties.
    ///
    /// ```
    /// # use entable::DynamicEntity;
    /// let note = DynamicEntity::new("Sales", "note").with("Text", "call back");
    /// assert_eq!(note.properties().get("Text"), Some(&entable::Value::from("call back")));
    /// ```
    pub fn properties(&self) -> &Bag {
        &self.properties
    }

    /// Returns the value of `EntityType` if it is a String.
    ///
    /// ```
    /// # use entable::DynamicEntity;
    /// let hall = DynamicEntity::new("Sales", "empid_000223").with("EntityType", "Employee");
    /// assert_eq!(hall.entity_type(), Some("Employee"));
    /// ```
    pub fn entity_type(&self) -> Option<&str> {
        self.get("EntityType").and_then(Value::as_str)
    }

    /// Converts the entity to a row.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` or `is_too_large` for names that the service refuses.
    ///
    /// ```
    /// # use entable::{DynamicEntity, Error};
    /// let row = DynamicEntity::new("Sales", "note").with("Text", "call back").to_row()?;
    /// assert_eq!((row.partition_key(), row.row_key()), ("Sales", "note"));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn to_row(&self) -> Result<Row> {
        let mut row = Row::build(&self.partition_key, &self.row_key);
        for (name, value) in self.properties.iter() {
            row = row.with(name, value.as_ref())?;
        }
        let encrypted = self.encrypted.iter().map(|name| name.as_str().into());
        Ok(row.finish()?.with_encrypted_names(encrypted))
    }

    /// Returns the row that replaces the stored row of the entity.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` for a property that belongs to the library, unless the entity was read with the same
    /// value or [allows such names](Self::allow_framework_names). Otherwise fails as [`to_row`](Self::to_row) does.
    pub(crate) fn row_to_replace(&self) -> Result<Row> {
        let is_refused = |name: &str, value: &Value| {
            is_framework_property(name) && self.read.get(name) != Some(value)
        };
        if !self.allows_framework_names
            && let Some((name, _)) =
                self.properties.iter().find(|(name, value)| is_refused(name, value))
        {
            return Err(self.framework_error("property").in_property(name));
        }
        self.to_row()
    }

    /// Returns the row to insert.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` for a RowKey that belongs to the library, unless the entity was read from such a row or
    /// [allows such names](Self::allow_framework_names). Otherwise fails as [`row_to_replace`](Self::row_to_replace)
    /// does.
    pub(crate) fn row_to_insert(&self) -> Result<Row> {
        // The RowKey is only checked here: replacements and merges concern rows that are already stored.
        let is_permitted = self.allows_framework_names || self.was_framework_row;
        if !is_permitted && self.row_key.starts_with(RESERVED) {
            return Err(self.framework_error("RowKey"));
        }
        self.row_to_replace()
    }

    fn framework_error(&self, what: &str) -> Error {
        let message = format!(
            "the {what} is reserved for entable's own rows; choose another name, or call `allow_framework_names()` to \
             allow it"
        );
        Error::new(ErrorKind::Invalid, message).at_keys(&self.partition_key, &self.row_key)
    }
}

macro_rules! typed {
    ($($(#[$doc:meta])* $name:ident: $as:ident => $type:ty, $expected:literal;)*) => {
        impl DynamicEntity {
            $($(#[$doc])*
            ///
            /// # Errors
            ///
            /// Fails with `is_decode`, the keys, the property, and the expected and found types.
            pub fn $name(&self, name: &str) -> Result<$type> {
                let value = self.get(name);
                value.and_then(Value::$as).ok_or_else(|| self.mismatch_error(name, $expected))
            })*
        }
    };
}

typed! {
    /// Returns the value of a Boolean property.
    bool: as_bool => bool, "Edm.Boolean";
    /// Returns the value of an Int32 property.
    i32: as_i32 => i32, "Edm.Int32";
    /// Returns the value of an Int64 property.
    i64: as_i64 => i64, "Edm.Int64";
    /// Returns the value of a Double property.
    f64: as_f64 => f64, "Edm.Double";
    /// Returns the text of a String property.
    str: as_str => &str, "Edm.String";
    /// Returns the time of a DateTime property.
    ticks: as_ticks => crate::edm::Ticks, "Edm.DateTime";
    /// Returns the UUID of a Guid property.
    uuid: as_uuid => uuid::Uuid, "Edm.Guid";
    /// Returns the bytes of a Binary property.
    bytes: as_bytes => &[u8], "Edm.Binary";
}

impl DynamicEntity {
    fn mismatch_error(&self, name: &str, expected: &str) -> Error {
        let found = self.get(name).map_or("no such property", |value| value.edm_type().name());
        Error::new(ErrorKind::Decode, format!("expected {expected}, found {found}"))
            .at_keys(&self.partition_key, &self.row_key)
            .in_property(name)
    }
}

impl FromRow for DynamicEntity {
    fn columns(_: Option<&'static RowFamily>) -> Option<Vec<String>> {
        None
    }

    fn from_row(row: &Row) -> Result<Self> {
        let properties = row.to_bag()?;
        let own = properties.iter().filter(|(name, _)| is_framework_property(name));
        Ok(Self {
            partition_key: row.partition_key().to_owned(),
            row_key: row.row_key().to_owned(),
            read: own.map(|(name, value)| (name.to_owned(), value.clone())).collect(),
            was_framework_row: row.row_key().starts_with(RESERVED),
            allows_framework_names: false,
            properties,
            encrypted: row.encrypted_names().iter().map(|name| name.to_string()).collect(),
        })
    }
}
