//! Stores rust_decimal's `Decimal` as text in a String property (feature `rust_decimal`).

use rust_decimal::Decimal;

use super::{EdmCow, EdmType, EdmValue, InvalidValue, Value, ValueRef};

impl EdmValue for Decimal {
    const EDM: EdmType = EdmType::String;
    const VALUES: &'static str = "decimal";

    fn to_edm(&self) -> Result<EdmCow<'_>, InvalidValue> {
        Ok(Value::String(self.to_string()).into())
    }

    fn from_edm(value: ValueRef<'_>) -> Result<Self, InvalidValue> {
        let text = String::from_edm(value)?;
        // `from_str` would round digits that a `Decimal` has no room for.
        Self::from_str_exact(&text).map_err(|error| {
            InvalidValue::new(format!("expected a decimal, found `{text}`: {error}"))
        })
    }
}
