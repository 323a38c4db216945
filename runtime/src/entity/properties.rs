//! Structs as properties: what `#[derive(Properties)]` implements, and how generated code reads and
//! writes rows without a map in between.

use serde::{Serialize, de::DeserializeOwned};

use super::{ColumnSchema, Schema};
use crate::{
    edm::{
        EdmCow, EdmValue, InvalidValue, Property, PropertyBag, Value, ValueRef, json_from_edm,
        json_to_edm,
    },
    error::Result,
    row::{Row, RowBuilder, corrupt},
};

/// A struct whose fields are properties of the entity that it is flattened into.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be flattened",
    note = "write `#[derive(Properties)]` on the struct"
)]
pub trait Properties: Sized + 'static {
    /// The values that were found so far.
    type Slots<'r>: Default;

    /// The columns, their names without the prefix.
    const COLUMNS: &'static [ColumnSchema];

    /// Nothing found yet.
    fn slots<'r>() -> Self::Slots<'r> {
        Self::Slots::default()
    }

    /// Writes the fields.
    ///
    /// # Errors
    ///
    /// `is_invalid`, naming the property, for a value that cannot be stored.
    fn write(&self, out: &mut PropertyWriter<'_>) -> Result<()>;

    /// Takes a property whose name, after the prefix, is one of the struct's. `false`: it is not.
    fn offer<'r>(slots: &mut Self::Slots<'r>, name: &'r [u8], value: ValueRef<'r>) -> bool;

    /// The struct from what was found.
    ///
    /// # Errors
    ///
    /// `is_decode`, naming the property, for one that is missing or does not fit.
    fn finish(slots: Self::Slots<'_>, prefix: &str) -> Result<Self>;
}

/// Absent altogether where none of its properties is there.
impl<T: Properties> Properties for Option<T> {
    type Slots<'r> = (bool, T::Slots<'r>);

    const COLUMNS: &'static [ColumnSchema] = T::COLUMNS;

    fn write(&self, out: &mut PropertyWriter<'_>) -> Result<()> {
        self.as_ref().map_or(Ok(()), |value| value.write(out))
    }

    fn offer<'r>(slots: &mut Self::Slots<'r>, name: &'r [u8], value: ValueRef<'r>) -> bool {
        let taken = T::offer(&mut slots.1, name, value);
        slots.0 |= taken;
        taken
    }

    fn finish((found, slots): Self::Slots<'_>, prefix: &str) -> Result<Self> {
        if found { T::finish(slots, prefix).map(Some) } else { Ok(None) }
    }
}

/// Writes properties under the prefix of the struct that they belong to.
#[derive(Debug)]
pub struct PropertyWriter<'b> {
    row: &'b mut RowBuilder,
    prefix: String,
}

impl<'b> PropertyWriter<'b> {
    /// A writer without a prefix.
    pub fn new(row: &'b mut RowBuilder) -> Self {
        Self { row, prefix: String::new() }
    }

    /// Writes a value as it is.
    pub fn put_value(&mut self, name: &str, value: ValueRef<'_>) {
        self.row.put_joined(&self.prefix, name, value);
    }

    /// Writes a field; an absent one writes nothing.
    ///
    /// # Errors
    ///
    /// `is_invalid` for a value that cannot be stored.
    pub fn put<F: Property>(&mut self, name: &str, field: &F) -> Result<()> {
        let Some(scalar) = field.scalar() else { return Ok(()) };
        let value = scalar.to_edm().map_err(|invalid| self.on_write(invalid, name))?;
        self.put_value(name, value.as_ref());
        Ok(())
    }

    /// Writes what [`Property::to_stored`] made of a field.
    ///
    /// # Errors
    ///
    /// `is_invalid` for a value that cannot be stored.
    #[doc(hidden)]
    pub fn put_stored(
        &mut self,
        name: &str,
        stored: Result<Option<EdmCow<'_>>, InvalidValue>,
    ) -> Result<()> {
        if let Some(value) = stored.map_err(|invalid| self.on_write(invalid, name))? {
            self.put_value(name, value.as_ref());
        }
        Ok(())
    }

    /// Writes what stands under a prefix.
    ///
    /// # Errors
    ///
    /// Those of `write`.
    #[doc(hidden)]
    pub fn put_nested(
        &mut self,
        prefix: &str,
        write: impl FnOnce(&mut PropertyWriter<'_>) -> Result<()>,
    ) -> Result<()> {
        let prefix = [self.prefix.as_str(), prefix].concat();
        write(&mut PropertyWriter { row: &mut *self.row, prefix })
    }

    /// Writes a property that the struct does not know.
    ///
    /// # Errors
    ///
    /// `is_invalid` and `is_too_large` for a name that the service refuses, `is_invalid` for that of
    /// a field: the row could not be read back.
    #[doc(hidden)]
    pub fn put_extra(&mut self, schema: &Schema, name: &str, value: &Value) -> Result<()> {
        crate::limits::check_property_name(name).map_err(|error| self.at_row(error))?;
        if schema.column(name).is_some_and(|column| column.stored) {
            let message = "a field of the entity is stored under this name, so its bag of extra properties cannot hold it";
            return Err(self.on_write(InvalidValue::new(message), name));
        }
        self.put_value(name, value.as_ref());
        Ok(())
    }

    /// Writes a field as JSON.
    ///
    /// # Errors
    ///
    /// `is_invalid` for a value without a JSON form.
    pub fn put_json<T: Serialize>(&mut self, name: &str, field: &T) -> Result<()> {
        let value = json_to_edm(field).map_err(|invalid| self.on_write(invalid, name))?;
        self.put_value(name, value.as_ref());
        Ok(())
    }

    /// The error of a value that nobody may see.
    pub(crate) fn hushed(&self, name: &str) -> crate::Error {
        self.on_write(InvalidValue::new("").hushed(), name)
    }

    /// Writes a flattened struct.
    ///
    /// # Errors
    ///
    /// As the struct's fields.
    pub fn put_flattened<T: Properties>(&mut self, prefix: &str, field: &T) -> Result<()> {
        self.put_nested(prefix, |out| field.write(out))
    }

    fn on_write(&self, invalid: InvalidValue, name: &str) -> crate::Error {
        self.at_row(invalid.on_write(&[self.prefix.as_str(), name].concat()))
    }

    /// The error, naming the row that is being written; a patch has no keys of its own.
    fn at_row(&self, error: crate::Error) -> crate::Error {
        match self.row.clone().finish() {
            Ok(row) if (row.partition_key(), row.row_key()) != ("", "") => {
                error.at_keys(row.partition_key(), row.row_key())
            }
            _ => error,
        }
    }
}

/// The walk over a row's properties that generated code takes.
pub type PropertyReader<'r> = crate::row::Properties<'r>;

/// A field from what was found of it.
///
/// # Errors
///
/// `is_decode`, naming the property.
pub fn finish_property<F: Property>(
    found: Option<ValueRef<'_>>,
    prefix: &str,
    name: &str,
) -> Result<F> {
    F::from_stored(found).map_err(|invalid| invalid.on_read(&[prefix, name].concat()))
}

/// A JSON field from what was found of it.
///
/// # Errors
///
/// `is_decode`, naming the property.
pub fn finish_json<T: DeserializeOwned>(
    found: Option<ValueRef<'_>>,
    prefix: &str,
    name: &str,
) -> Result<T> {
    json_from_edm(found).map_err(|invalid| invalid.on_read(&[prefix, name].concat()))
}

/// One field straight from a row.
///
/// # Errors
///
/// `is_decode`, naming the property; `is_corrupt` for a damaged row.
pub fn read_property<F: Property>(row: &Row, name: &str) -> Result<F> {
    finish_property(row.get(name)?, "", name)
}

/// One JSON field straight from a row.
///
/// # Errors
///
/// `is_decode`, naming the property; `is_corrupt` for a damaged row.
pub fn read_json<T: DeserializeOwned>(row: &Row, name: &str) -> Result<T> {
    finish_json(row.get(name)?, "", name)
}

/// One flattened struct straight from a row.
///
/// # Errors
///
/// `is_decode`, naming the property; `is_corrupt` for a damaged row.
pub fn read_properties<T: Properties>(row: &Row, prefix: &str) -> Result<T> {
    let mut slots = T::Slots::default();
    let mut properties = row.properties();
    while let Some((name, value)) = properties.next()? {
        if let Some(name) = name.strip_prefix(prefix.as_bytes()) {
            T::offer(&mut slots, name, value);
        }
    }
    T::finish(slots, prefix)
}

/// Puts a property that the struct does not know into its bag.
///
/// # Errors
///
/// `is_corrupt` where the name is not UTF-8.
pub fn keep_extra<B: PropertyBag>(bag: &mut B, name: &[u8], value: ValueRef<'_>) -> Result<()> {
    let name = std::str::from_utf8(name).map_err(|_| corrupt("a property's name is not UTF-8"))?;
    bag.put(name, value.to_value());
    Ok(())
}
