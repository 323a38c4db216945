//! Defines the kinds of columns, which decide how filters can compare them.

use crate::{
    edm::{EdmValue, InvalidValue, Property, Value},
    filter::{BlindValue, Filter},
};

/// The kind of a column that the service can compare.
#[derive(Debug, Clone, Copy)]
pub struct Plain;

/// The kind of a column stored as JSON text. Filters cannot compare it, because the service sees only text.
#[derive(Debug, Clone, Copy)]
pub struct Json;

/// The kind of a column whose value is stored in a blob. Filters cannot compare it, because the service sees only
/// the blob's name.
#[derive(Debug, Clone, Copy)]
pub struct InBlob;

/// The kind of a column stored encrypted. Filters cannot compare it.
#[derive(Debug, Clone, Copy)]
pub struct Encrypted;

/// The kind of a column stored encrypted together with a blind token, through which filters find equal values.
#[derive(Debug, Clone, Copy)]
pub struct Blind;

/// A kind of column that filters can compare with every operator. `F` is the field's type.
#[diagnostic::on_unimplemented(
    message = "a filter cannot compare this column",
    label = "a `{Self}` column",
    note = "the service sees only the stored form: JSON text, encrypted bytes or the address of a blob",
    note = "compare the field after reading it; to find equal values of an encrypted field with `eq`, declare it with `#[table(encrypt, blind)]`"
)]
pub trait Comparable<F> {
    /// The type that the field is compared with.
    type Operand;

    /// Converts the value to its stored form, for a filter.
    ///
    /// # Errors
    ///
    /// Fails if the value cannot be stored.
    fn operand(value: Self::Operand) -> Result<Value, InvalidValue>;
}

impl<F: Property> Comparable<F> for Plain {
    type Operand = F::Scalar;

    fn operand(value: F::Scalar) -> Result<Value, InvalidValue> {
        value.to_edm().map(crate::edm::EdmCow::into_value)
    }
}

/// A kind of column that filters can compare with `eq`. `F` is the field's type.
#[diagnostic::on_unimplemented(
    message = "a filter cannot compare this column",
    label = "a `{Self}` column",
    note = "the service sees only the stored form: JSON text, encrypted bytes or the address of a blob",
    note = "compare the field after reading it; to find equal values of an encrypted field with `eq`, declare it with `#[table(encrypt, blind)]`"
)]
pub trait EqComparable<F> {
    /// The type that the field is compared with.
    type Operand;

    /// Returns the condition that the property equals the value.
    ///
    /// # Errors
    ///
    /// Fails if the value cannot be stored.
    fn equal(property: &str, value: Self::Operand) -> Result<Filter, InvalidValue>;
}

impl<F: Property> EqComparable<F> for Plain {
    type Operand = F::Scalar;

    fn equal(property: &str, value: F::Scalar) -> Result<Filter, InvalidValue> {
        let value = value.to_edm().map(crate::edm::EdmCow::into_value)?;
        Ok(Filter::eq(property, value))
    }
}

impl<F: Property> EqComparable<F> for Blind {
    type Operand = F::Scalar;

    fn equal(property: &str, value: F::Scalar) -> Result<Filter, InvalidValue> {
        // The field is encrypted, and the error message could contain its value.
        let value = value.to_edm().map_err(InvalidValue::redacted)?.into_value();
        Ok(Filter::Blind { property: property.to_owned(), value: BlindValue::new(value) })
    }
}
