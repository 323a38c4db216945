//! Stores a field as JSON text in one String property, for every type that serde supports.

use serde::{Serialize, de::DeserializeOwned};

use super::{EdmCow, EdmType, InvalidValue, Value, ValueRef};

/// Converts the value of a `#[table(json)]` field to its stored JSON text.
///
/// # Errors
///
/// Fails with serde's message if the value cannot be written as JSON.
pub fn json_to_edm<T: Serialize>(value: &T) -> Result<EdmCow<'static>, InvalidValue> {
    match serde_json::to_string(value) {
        Ok(text) => Ok(EdmCow::Owned(Value::String(text))),
        Err(error) => Err(InvalidValue::new(format!("the field has no JSON form: {error}"))),
    }
}

/// Reads the value of a `#[table(json)]` field from its stored JSON text.
///
/// # Errors
///
/// Fails if the property is missing or not a String, or if its JSON does not fit the field's type.
pub fn json_from_edm<T: DeserializeOwned>(value: Option<ValueRef<'_>>) -> Result<T, InvalidValue> {
    match value {
        Some(ValueRef::String(text)) => serde_json::from_str(text)
            .map_err(|error| InvalidValue::new(format!("expected JSON of the field: {error}"))),
        Some(other) => Err(InvalidValue::wrong_type(EdmType::String, other.edm_type())),
        None => Err(InvalidValue::new("expected Edm.String, found no such property")),
    }
}
