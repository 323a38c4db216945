//! Stores a field as JSON text in one String property, for every type that serde supports.

use serde::{Serialize, de::DeserializeOwned};

use super::{EdmType, InvalidValue, ValueRef};

/// Converts the value of a `#[table(json)]` field to its JSON text.
///
/// # Errors
///
/// Fails with serde's message if the value cannot be written as JSON.
pub fn json_text<T: Serialize>(value: &T) -> Result<String, InvalidValue> {
    serde_json::to_string(value)
        .map_err(|error| InvalidValue::new(format!("the value has no JSON form: {error}")))
}

/// Converts the value of a `#[table(json)]` field to its JSON text, and reads the text back.
///
/// # Errors
///
/// Fails with serde's message if the value cannot be written as JSON, and if the type cannot be read
/// from the text: a row with it would be unreadable.
// serde writes a NaN as `null`, which no number reads, and nests deeper than it reads.
pub fn readable_json_text<T: Serialize + DeserializeOwned>(
    value: &T,
) -> Result<String, InvalidValue> {
    let text = json_text(value)?;
    match serde_json::from_str::<T>(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(InvalidValue::new(format!(
            "expected JSON that reads back as its type, found JSON that does not: {error}. NaN and infinities become `null`, and a member that `skip_serializing` leaves out needs a `default`"
        ))),
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
            .map_err(|error| InvalidValue::new(format!("expected the field as JSON: {error}"))),
        Some(other) => Err(InvalidValue::wrong_type(EdmType::String, other.edm_type())),
        None => Err(InvalidValue::new("expected Edm.String, found no such property")),
    }
}
