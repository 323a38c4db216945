//! An entity whose type is not known beforehand.

use std::{collections::BTreeSet, fmt};

use super::FromRow;
use crate::{
    edm::{Bag, Property, Value},
    error::{Error, ErrorKind, Result},
    key::Family,
    row::Row,
};

/// Keys and an ordered bag of typed values.
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
    /// Properties that are stored encrypted.
    encrypted: BTreeSet<String>,
}

/// How a property is stored makes no other entity of it.
impl PartialEq for DynamicEntity {
    fn eq(&self, other: &Self) -> bool {
        (&self.partition_key, &self.row_key) == (&other.partition_key, &other.row_key)
            && self.properties == other.properties
    }
}

impl fmt::Debug for DynamicEntity {
    /// Values that are stored encrypted are not shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Shown<'a>(&'a DynamicEntity);
        impl fmt::Debug for Shown<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut map = f.debug_map();
                for (name, value) in self.0.properties.iter() {
                    match self.0.encrypted.contains(name) {
                        true => map.entry(&name, &"(encrypted)"),
                        false => map.entry(&name, value),
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
    /// An entity with these keys and no properties.
    pub fn new(partition_key: impl Into<String>, row_key: impl Into<String>) -> Self {
        Self {
            partition_key: partition_key.into(),
            row_key: row_key.into(),
            properties: Bag::new(),
            encrypted: BTreeSet::new(),
        }
    }

    /// The PartitionKey.
    pub fn partition_key(&self) -> &str {
        &self.partition_key
    }

    /// The RowKey.
    pub fn row_key(&self) -> &str {
        &self.row_key
    }

    /// The value of a property.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.properties.get(name)
    }

    /// The value of a property as a field's type; an `Option` for one that may be absent.
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
    /// `is_decode`, naming keys and property.
    pub fn read<T: Property>(&self, name: &str) -> Result<T> {
        T::from_stored(self.get(name).map(Value::as_ref))
            .map_err(|invalid| invalid.on_read(name).at_keys(&self.partition_key, &self.row_key))
    }

    /// Sets a property.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Value>) -> &mut Self {
        self.properties.set(name, value);
        self
    }

    /// The same entity with one more property.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.set(name, value);
        self
    }

    /// Has a property stored encrypted whenever the entity is written, an absent one too. One that
    /// was encrypted when the entity was read stays so without this.
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

    /// Whether a property is stored encrypted.
    pub fn is_encrypted(&self, name: &str) -> bool {
        self.encrypted.contains(name)
    }

    /// Takes a property out.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        self.encrypted.remove(name);
        self.properties.remove(name)
    }

    /// The properties.
    pub fn properties(&self) -> &Bag {
        &self.properties
    }

    /// The value of `EntityType`, where it is text.
    pub fn entity_type(&self) -> Option<&str> {
        self.get("EntityType").and_then(Value::as_str)
    }

    /// The row.
    ///
    /// # Errors
    ///
    /// `is_invalid` and `is_too_large` for names that the service refuses.
    pub fn to_row(&self) -> Result<Row> {
        let mut row = Row::build(&self.partition_key, &self.row_key);
        for (name, value) in self.properties.iter() {
            row = row.with(name, value.as_ref())?;
        }
        let encrypted = self.encrypted.iter().map(|name| name.as_str().into());
        Ok(row.finish()?.encrypting(encrypted))
    }
}

macro_rules! typed {
    ($($(#[$doc:meta])* $name:ident: $as:ident => $type:ty, $expected:literal;)*) => {
        impl DynamicEntity {
            $($(#[$doc])*
            ///
            /// # Errors
            ///
            /// `is_decode`, naming keys, property, expected and found type.
            pub fn $name(&self, name: &str) -> Result<$type> {
                let value = self.get(name);
                value.and_then(Value::$as).ok_or_else(|| self.mismatch(name, $expected))
            })*
        }
    };
}

typed! {
    /// A Boolean property.
    bool: as_bool => bool, "Edm.Boolean";
    /// An Int32 property.
    i32: as_i32 => i32, "Edm.Int32";
    /// An Int64 property.
    i64: as_i64 => i64, "Edm.Int64";
    /// A Double property.
    f64: as_f64 => f64, "Edm.Double";
    /// A String property.
    str: as_str => &str, "Edm.String";
    /// A DateTime property.
    ticks: as_ticks => crate::edm::Ticks, "Edm.DateTime";
    /// A Guid property.
    uuid: as_uuid => uuid::Uuid, "Edm.Guid";
    /// A Binary property.
    bytes: as_bytes => &[u8], "Edm.Binary";
}

impl DynamicEntity {
    fn mismatch(&self, name: &str, expected: &str) -> Error {
        let found = self.get(name).map_or("no such property", |value| value.edm_type().name());
        Error::new(ErrorKind::Decode, format!("expected {expected}, found {found}"))
            .at_keys(&self.partition_key, &self.row_key)
            .in_property(name)
    }
}

impl FromRow for DynamicEntity {
    fn columns(_: Option<&'static Family>) -> Option<Vec<String>> {
        None
    }

    fn from_row(row: &Row) -> Result<Self> {
        Ok(Self {
            partition_key: row.partition_key().to_owned(),
            row_key: row.row_key().to_owned(),
            properties: row.to_bag()?,
            encrypted: row.encrypted().iter().map(|name| name.to_string()).collect(),
        })
    }
}
