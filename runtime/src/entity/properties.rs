//! Reads and writes the properties of structs for generated code, directly in rows, without an intermediate
//! map.

use serde::{Serialize, de::DeserializeOwned};

use super::{ColumnSchema, Schema, framework::is_framework_property};
use crate::{
    edm::{
        EdmCow, EdmValue, InvalidValue, Property, Value, ValueRef, json_from_edm, json_text,
        readable_json_text,
    },
    error::Result,
    row::{Row, RowBuilder, is_operation_id},
};

/// A struct whose fields are properties of the entity that it is flattened into. Implemented by
/// `#[derive(Properties)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be flattened",
    note = "write `#[derive(Properties)]` on the struct"
)]
pub trait Properties: Sized + 'static {
    /// The stored values found so far, one slot per field.
    type Slots<'r>: Default;

    /// The struct's columns. Their names do not include the entity's prefix.
    const COLUMNS: &'static [ColumnSchema];

    /// Whether a row may have none of the properties, which is the case for an `Option`.
    #[doc(hidden)]
    const OPTIONAL: bool = false;

    /// Returns one empty slot for each property of the struct. Reading a row fills them.
    fn slots<'r>() -> Self::Slots<'r> {
        Self::Slots::default()
    }

    /// Writes the fields as properties.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` and the property's name for a value that cannot be stored.
    fn write(&self, out: &mut PropertyWriter<'_>) -> Result<()>;

    /// Puts a property into its slot and returns `true` if `name` is a field of the struct, otherwise returns
    /// `false`. The caller has removed the prefix from `name`.
    fn offer<'r>(slots: &mut Self::Slots<'r>, name: &'r [u8], value: ValueRef<'r>) -> bool;

    /// Builds the struct from the slots.
    ///
    /// # Errors
    ///
    /// Fails with `is_decode` and the property's name if a property is missing or does not fit.
    fn finish(slots: Self::Slots<'_>, prefix: &str) -> Result<Self>;
}

/// Reads `None` if the row has none of the struct's properties.
impl<T: Properties> Properties for Option<T> {
    type Slots<'r> = (bool, T::Slots<'r>);

    const COLUMNS: &'static [ColumnSchema] = T::COLUMNS;

    const OPTIONAL: bool = true;

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

/// Writes properties to a row. The prefix of the flattened struct precedes their names.
#[derive(Debug)]
pub struct PropertyWriter<'b> {
    row: &'b mut RowBuilder,
    prefix: String,
    /// Whether JSON need not be read back, because the primary with the same values has been written.
    is_copy: bool,
    /// The first field that could not be stored, for `return_first_error`.
    fault: Option<crate::Error>,
}

impl<'b> PropertyWriter<'b> {
    /// Creates a writer without a prefix.
    pub fn new(row: &'b mut RowBuilder) -> Self {
        Self { row, prefix: String::new(), is_copy: false, fault: None }
    }

    /// Creates a writer for an index copy. Its values are from a primary that has already been written.
    pub(crate) fn for_copy(row: &'b mut RowBuilder) -> Self {
        Self { is_copy: true, ..Self::new(row) }
    }

    /// Writes a value in its stored form to the property `name`, preceded by the writer's prefix.
    pub fn put_value(&mut self, name: &str, value: ValueRef<'_>) {
        self.row.put_prefixed(&self.prefix, name, value);
    }

    /// Writes a field. Writes nothing if it is absent.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` for a value that cannot be stored.
    pub fn put<F: Property>(&mut self, name: &str, field: &F) -> Result<()> {
        let Some(scalar) = field.scalar() else { return Ok(()) };
        let value = scalar.to_edm().map_err(|invalid| self.write_error(invalid, name))?;
        self.put_value(name, value.as_ref());
        Ok(())
    }

    /// Runs `write` with `prefix` added to the names of properties.
    ///
    /// # Errors
    ///
    /// Fails with the error of `write`.
    #[doc(hidden)]
    pub fn put_nested(
        &mut self,
        prefix: &str,
        write: impl FnOnce(&mut PropertyWriter<'_>) -> Result<()>,
    ) -> Result<()> {
        let prefix = [self.prefix.as_str(), prefix].concat();
        let row = &mut *self.row;
        let mut inner = PropertyWriter { row, prefix, is_copy: self.is_copy, fault: None };
        write(&mut inner)?;
        // Return an error that the inner writer kept, before the writer is dropped.
        inner.return_first_error()
    }

    /// Writes the result of [`Property::to_stored`] for a field. Keeps an error for
    /// [`return_first_error`](Self::return_first_error), which lets generated code check for errors once instead
    /// of after each field.
    #[doc(hidden)]
    #[inline]
    pub fn store(&mut self, name: &str, stored: Result<Option<EdmCow<'_>>, InvalidValue>) {
        match stored {
            Ok(Some(value)) => self.put_value(name, value.as_ref()),
            Ok(None) => {}
            Err(invalid) => self.refuse_value(name, invalid),
        }
    }

    /// Writes the result of [`Property::to_stored`] for a secret field. Errors do not show the value.
    #[doc(hidden)]
    #[inline]
    pub fn store_secret(&mut self, name: &str, stored: Result<Option<EdmCow<'_>>, InvalidValue>) {
        self.store(name, stored.map_err(InvalidValue::redacted));
    }

    #[cold]
    fn refuse_value(&mut self, name: &str, invalid: InvalidValue) {
        if self.fault.is_none() {
            self.fault = Some(self.write_error(invalid, name));
        }
    }

    /// Keeps the error of a field that [`store`](Self::store) does not write, unless there is an earlier error.
    #[doc(hidden)]
    pub fn keep_error(&mut self, written: Result<()>) {
        if let (Err(error), None) = (written, &self.fault) {
            self.fault = Some(error);
        }
    }

    /// Returns the error of the first field that could not be stored.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` for a value that cannot be stored.
    #[doc(hidden)]
    pub fn return_first_error(&mut self) -> Result<()> {
        self.fault.take().map_or(Ok(()), Err)
    }

    /// Writes a property from the entity's bag of extra properties.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` or `is_too_large` for a name that the service refuses. Fails with `is_invalid` for a
    /// property that stores a field or is written by the library, because each name occurs once in a row, and for a
    /// value that could be taken for the id of a write.
    #[doc(hidden)]
    pub fn put_extra(&mut self, schema: &Schema, name: &str, value: &Value) -> Result<()> {
        crate::limits::check_property_name(name)
            .map_err(|error| self.write_error_with_row_keys(error))?;
        if schema.column(name).is_some_and(|column| column.stored) {
            let message = "a field of the entity is stored under this name, so its bag of extra properties cannot hold it";
            return Err(self.write_error(InvalidValue::new(message), name));
        }
        if is_framework_property(name) || is_operation_id(name.as_bytes(), value.as_ref()) {
            let message = "entable itself writes the property of this name, so a bag of extra properties cannot hold \
                           it; choose another name";
            return Err(self.write_error(InvalidValue::new(message), name));
        }
        self.put_value(name, value.as_ref());
        Ok(())
    }

    /// Writes a field as JSON text.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` for a value without a JSON form, and for JSON that does not read back as its type.
    pub fn put_json<T>(&mut self, name: &str, field: &T) -> Result<()>
    where
        T: Serialize + DeserializeOwned,
    {
        let text = self.json_text(field).map_err(|invalid| self.write_error(invalid, name))?;
        self.put_value(name, ValueRef::String(&text));
        Ok(())
    }

    /// Converts a field to JSON text. Reads the text back, except for a copy.
    pub(super) fn json_text<T>(&self, field: &T) -> Result<String, InvalidValue>
    where
        T: Serialize + DeserializeOwned,
    {
        if self.is_copy { json_text(field) } else { readable_json_text(field) }
    }

    /// Returns the error for a value that cannot be stored, without the value.
    pub(crate) fn redacted_error(&self, name: &str) -> crate::Error {
        self.write_error(InvalidValue::new("").redacted(), name)
    }

    /// Writes the fields of a flattened struct.
    ///
    /// # Errors
    ///
    /// Fails with the error of the first field that cannot be stored.
    pub fn put_flattened<T: Properties>(&mut self, prefix: &str, field: &T) -> Result<()> {
        self.put_nested(prefix, |out| field.write(out))
    }

    fn write_error(&self, invalid: InvalidValue, name: &str) -> crate::Error {
        self.write_error_with_row_keys(
            invalid.into_write_error(&[self.prefix.as_str(), name].concat()),
        )
    }

    /// Adds the keys of the row that is being written to the error. A patch has no keys.
    pub(super) fn write_error_with_row_keys(&self, error: crate::Error) -> crate::Error {
        // The builder holds the keys only as bytes of the row. Errors are rare enough to clone the row.
        match self.row.clone().finish() {
            Ok(row) if (row.partition_key(), row.row_key()) != ("", "") => {
                error.at_keys(row.partition_key(), row.row_key())
            }
            _ => error,
        }
    }
}

/// Converts the stored value of a field to the field's type. `found` is `None` if the row lacks the field.
///
/// # Errors
///
/// Fails with `is_decode` and the property's name if the property is missing or does not fit.
pub(crate) fn finish_property<F: Property>(
    found: Option<ValueRef<'_>>,
    prefix: &str,
    name: &str,
) -> Result<F> {
    F::from_stored(found).map_err(|invalid| invalid.into_read_error(&[prefix, name].concat()))
}

/// Converts the stored JSON of a field to the field's type. `found` is `None` if the row lacks the field.
///
/// # Errors
///
/// Fails with `is_decode` and the property's name if the property is missing or does not fit.
pub(crate) fn decode_json_field<T: DeserializeOwned>(
    found: Option<ValueRef<'_>>,
    prefix: &str,
    name: &str,
) -> Result<T> {
    json_from_edm(found).map_err(|invalid| invalid.into_read_error(&[prefix, name].concat()))
}

/// Reads one field directly from a row.
///
/// # Errors
///
/// Fails with `is_decode` and the property's name if it is missing or does not fit, and with `is_corrupt` for a
/// damaged row.
pub(crate) fn read_property<F: Property>(row: &Row, name: &str) -> Result<F> {
    finish_property(row.get(name)?, "", name)
}

/// Reads one JSON field directly from a row.
///
/// # Errors
///
/// Fails with `is_decode` and the property's name if it is missing or does not fit, and with `is_corrupt` for a
/// damaged row.
pub(crate) fn read_json_field<T: DeserializeOwned>(row: &Row, name: &str) -> Result<T> {
    decode_json_field(row.get(name)?, "", name)
}

/// Reads one flattened struct directly from a row.
///
/// # Errors
///
/// Fails with `is_decode` and the property's name if one is missing or does not fit, and with `is_corrupt` for
/// a damaged row.
pub(crate) fn read_properties<T: Properties>(row: &Row, prefix: &str) -> Result<T> {
    let mut slots = T::Slots::default();
    let mut properties = row.properties();
    while let Some((name, value)) = properties.next()? {
        if let Some(name) = name.strip_prefix(prefix.as_bytes()) {
            // Names of other fields may also begin with the prefix, so a refused name is not an error.
            T::offer(&mut slots, name, value);
        }
    }
    T::finish(slots, prefix)
}
