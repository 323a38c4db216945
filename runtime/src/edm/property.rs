//! A field of an entity: one stored value, or none.

use super::{EdmCow, EdmType, EdmValue, InvalidValue, ValueRef};

/// A field's type: a stored type, or an `Option` of one for a property that may be absent.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored as a property",
    label = "not a property type",
    note = "property types are bool, integers up to 64 bits, f32, f64, String, Vec<u8>, bytes::Bytes, time::OffsetDateTime, time::Date, uuid::Uuid, enums with #[derive(EdmEnum)] and Option of these",
    note = "write #[table(json)] to store any serde type as text, #[table(flatten)] for a struct with #[derive(Properties)], or implement `entable::EdmValue` for it"
)]
pub trait Property: Sized {
    /// The stored type without its `Option`: what filters compare and patches set.
    type Scalar: EdmValue;
    /// Whether the property may be absent.
    const OPTIONAL: bool;
    /// The type of the property.
    const EDM: EdmType = <Self::Scalar as EdmValue>::EDM;

    /// The value, if there is one.
    fn scalar(&self) -> Option<&Self::Scalar>;

    /// The value as it is stored, if there is one.
    ///
    /// # Errors
    ///
    /// A value that the service cannot hold.
    fn to_stored(&self) -> Result<Option<EdmCow<'_>>, InvalidValue> {
        self.scalar().map(EdmValue::to_edm).transpose()
    }

    /// The field from what the row holds.
    ///
    /// # Errors
    ///
    /// A missing value where one is needed, or one that does not fit.
    fn from_stored(value: Option<ValueRef<'_>>) -> Result<Self, InvalidValue>;
}

impl<T: EdmValue> Property for T {
    type Scalar = T;
    const OPTIONAL: bool = false;

    #[inline]
    fn scalar(&self) -> Option<&T> {
        Some(self)
    }

    #[inline]
    fn from_stored(value: Option<ValueRef<'_>>) -> Result<Self, InvalidValue> {
        match value {
            Some(value) => T::from_edm(value),
            None => Err(InvalidValue::new(format!(
                "expected {}, found no such property",
                <T as EdmValue>::EDM
            ))),
        }
    }
}

impl<T: EdmValue> Property for Option<T> {
    type Scalar = T;
    const OPTIONAL: bool = true;

    #[inline]
    fn scalar(&self) -> Option<&T> {
        self.as_ref()
    }

    #[inline]
    fn from_stored(value: Option<ValueRef<'_>>) -> Result<Self, InvalidValue> {
        value.map(T::from_edm).transpose()
    }
}

/// What may be given where a `T` is expected: a `T`, a reference to one, `&str` for a `String`.
#[diagnostic::on_unimplemented(
    message = "expected a `{T}`, found `{Self}`",
    label = "not a `{T}`",
    note = "the type of the field decides; convert the value first"
)]
pub trait Input<T> {
    /// The value.
    fn input(self) -> T;
}

impl<T> Input<T> for T {
    fn input(self) -> T {
        self
    }
}

impl<T: Clone> Input<T> for &T {
    fn input(self) -> T {
        self.clone()
    }
}

impl Input<String> for &str {
    fn input(self) -> String {
        self.to_owned()
    }
}
