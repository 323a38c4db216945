//! Kinds of columns: what a filter can do with each.

use crate::{
    edm::{EdmValue, InvalidValue, Property, Value},
    filter::{BlindValue, Filter},
};

/// A property that the service can compare.
#[derive(Debug, Clone, Copy)]
pub struct Plain;

/// A field that is stored as JSON text, which the service cannot look into.
#[derive(Debug, Clone, Copy)]
pub struct Json;

/// A field that is stored encrypted, which the service cannot look into.
#[derive(Debug, Clone, Copy)]
pub struct Encrypted;

/// A field that is stored encrypted, with a token beside it that finds equal values.
#[derive(Debug, Clone, Copy)]
pub struct Blind;

/// A kind of column that a filter can compare; `F` is the field's type.
#[diagnostic::on_unimplemented(
    message = "a filter cannot compare this column",
    label = "a `{Self}` column",
    note = "the service sees only the stored form: JSON text, sealed bytes or a blob's address",
    note = "compare the field after it was read; `#[table(encrypt, blind)]` lets a filter find equal values of an encrypted field, and `eq` is all that it can do"
)]
pub trait Comparable<F> {
    /// What the field is compared with.
    type Operand;

    /// The value as the filter holds it.
    ///
    /// # Errors
    ///
    /// A value that cannot be stored.
    fn operand(value: Self::Operand) -> Result<Value, InvalidValue>;
}

impl<F: Property> Comparable<F> for Plain {
    type Operand = F::Scalar;

    fn operand(value: F::Scalar) -> Result<Value, InvalidValue> {
        value.to_edm().map(crate::edm::EdmCow::into_value)
    }
}

/// A kind of column that a filter can ask for equal values; `F` is the field's type.
#[diagnostic::on_unimplemented(
    message = "a filter cannot compare this column",
    label = "a `{Self}` column",
    note = "the service sees only the stored form: JSON text, sealed bytes or a blob's address",
    note = "compare the field after it was read; `#[table(encrypt, blind)]` lets a filter find equal values of an encrypted field, and `eq` is all that it can do"
)]
pub trait Equated<F> {
    /// What the field is compared with.
    type Operand;

    /// The condition that the property of that name equals the value.
    ///
    /// # Errors
    ///
    /// A value that cannot be stored.
    fn equal(property: &str, value: Self::Operand) -> Result<Filter, InvalidValue>;
}

impl<F: Property> Equated<F> for Plain {
    type Operand = F::Scalar;

    fn equal(property: &str, value: F::Scalar) -> Result<Filter, InvalidValue> {
        let value = value.to_edm().map(crate::edm::EdmCow::into_value)?;
        Ok(Filter::eq(property, value))
    }
}

impl<F: Property> Equated<F> for Blind {
    type Operand = F::Scalar;

    fn equal(property: &str, value: F::Scalar) -> Result<Filter, InvalidValue> {
        let value = value.to_edm().map_err(InvalidValue::hushed)?.into_value();
        Ok(Filter::Blind { property: property.to_owned(), value: BlindValue::new(value) })
    }
}
