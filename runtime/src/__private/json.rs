//! Writes and reads fields that are stored as JSON text.

use std::fmt::{self, Debug};

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    edm::{InvalidValue, ValueRef},
    entity::{PropertyWriter, decode_json_field, read_json_field},
    error::Result,
    row::Row,
};

/// Function pointers that write a `#[table(json)]` field as a property, decode it from a property's value,
/// and read it from a row. Only the constructors have serde bounds, so the compiler reports a missing
/// implementation only once.
pub struct JsonCodec<T> {
    /// Writes the field as a property.
    pub put: fn(&mut PropertyWriter<'_>, &str, &T) -> Result<()>,
    /// Decodes the field from its property's value, `None` if the row has no such property.
    pub finish: fn(Option<ValueRef<'_>>, &str, &str) -> Result<T>,
    /// Reads the field from a row, by the name of its property.
    pub read: fn(&Row, &str) -> Result<T>,
}

impl<T> Debug for JsonCodec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JsonCodec")
    }
}

/// A type that serde can write and read.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored as JSON",
    label = "does not implement serde's traits",
    note = "`#[table(json)]` needs `#[derive(serde::Serialize, serde::Deserialize)]` on the type"
)]
pub trait JsonField: Serialize + DeserializeOwned {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned> JsonField for T {}

impl<T> JsonCodec<T> {
    /// Creates the codec of a type.
    #[allow(clippy::new_without_default, reason = "generated code calls it in constants")]
    pub const fn new() -> Self
    where
        T: JsonField,
    {
        Self {
            put: |out, name, value| out.put_json(name, value),
            finish: decode_json_field,
            read: read_json_field,
        }
    }

    /// Creates the codec of a type whose values no error message may show.
    pub const fn with_redacted_errors() -> Self
    where
        T: JsonField,
    {
        Self {
            put: |out, name, value| {
                out.put_json(name, value).map_err(|error| {
                    if error.is_invalid() { out.redacted_error(name) } else { error }
                })
            },
            finish: |found, prefix, name| {
                decode_json_field(found, prefix, name).map_err(|_| {
                    InvalidValue::new("").redacted().into_read_error(&[prefix, name].concat())
                })
            },
            read: |row, name| {
                read_json_field(row, name).map_err(|error| {
                    if error.is_decode() {
                        InvalidValue::new("").redacted().into_read_error(name)
                    } else {
                        error
                    }
                })
            },
        }
    }
}
