//! Any serde type as one String property.

use serde::{Serialize, de::DeserializeOwned};

use super::{EdmCow, EdmType, InvalidValue, Value, ValueRef};

/// The stored form of a `#[table(json)]` field.
///
/// # Errors
///
/// What serde says when the value has no JSON form.
pub fn json_to_edm<T: Serialize>(value: &T) -> Result<EdmCow<'static>, InvalidValue> {
    match serde_json::to_string(value) {
        Ok(text) => Ok(EdmCow::Owned(Value::String(text))),
        Err(error) => Err(InvalidValue::new(format!("the field has no JSON form: {error}"))),
    }
}

/// The field back from its stored JSON.
///
/// # Errors
///
/// A missing property, another type, or JSON that does not fit.
pub fn json_from_edm<T: DeserializeOwned>(value: Option<ValueRef<'_>>) -> Result<T, InvalidValue> {
    match value {
        Some(ValueRef::String(text)) => serde_json::from_str(text)
            .map_err(|error| InvalidValue::new(format!("expected JSON of the field: {error}"))),
        Some(other) => Err(InvalidValue::wrong_type(EdmType::String, other.edm_type())),
        None => Err(InvalidValue::new("expected Edm.String, found no such property")),
    }
}
