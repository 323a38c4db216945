//! rust_decimal's Decimal as text (feature `rust_decimal`).

use rust_decimal::Decimal;

use super::{EdmCow, EdmType, EdmValue, InvalidValue, ValueRef, std_types::text_to_edm};

impl EdmValue for Decimal {
    const EDM: EdmType = EdmType::String;

    fn to_edm(&self) -> Result<EdmCow<'_>, InvalidValue> {
        Ok(text_to_edm(self))
    }

    fn from_edm(value: ValueRef<'_>) -> Result<Self, InvalidValue> {
        let text = String::from_edm(value)?;
        Self::from_str_exact(&text).map_err(|error| {
            InvalidValue::new(format!("expected a decimal, found `{text}`: {error}"))
        })
    }
}
