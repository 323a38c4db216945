//! Defines [`Property`], the trait of field types: a stored type, or an `Option` of one.

use std::{borrow::Cow, sync::Arc};

use super::{EdmCow, EdmType, EdmValue, InvalidValue, ValueRef};

/// A type that a field can have: a type with [`EdmValue`], or an `Option` of one for a property
/// that may be absent.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored as a property",
    label = "not a property type",
    note = "a property can be bool, an integer of up to 64 bits, f32, f64, String, Vec<u8>, bytes::Bytes, time::OffsetDateTime, time::Date, uuid::Uuid, an enum with #[derive(EdmEnum)] or an Option of one of these",
    note = "to store any serde type as text, write #[table(json)]; for a struct with #[derive(Properties)], write #[table(flatten)]; otherwise implement `entable::EdmValue`",
    note = "write #[table(blob)] on a `Blob`, and #[table(extra)] on a `Bag`"
)]
pub trait Property: Sized {
    /// The stored type without `Option`. Filters compare with it, and patches set it.
    type Scalar: EdmValue;
    /// Whether the property may be absent from the row.
    const OPTIONAL: bool;
    /// The service's type of the property.
    const EDM: EdmType = <Self::Scalar as EdmValue>::EDM;
    /// The type of the property, whether it may be absent, and [`EdmValue::VALUES`]: Generated schemas use this one
    /// constant for all three.
    #[doc(hidden)]
    const COLUMN: (EdmType, bool, &'static str) =
        (Self::EDM, Self::OPTIONAL, <Self::Scalar as EdmValue>::VALUES);
    /// [`COLUMN`](Self::COLUMN) of a slot of a series, which may be absent whatever its type is.
    #[doc(hidden)]
    const SLOT_COLUMN: (EdmType, bool, &'static str) = (Self::EDM, true, Self::COLUMN.2);

    /// Returns the value, or `None` for an absent property.
    fn scalar(&self) -> Option<&Self::Scalar>;

    /// Converts the field to its stored form. `None` means that the row has no such property.
    ///
    /// # Errors
    ///
    /// Fails if the service cannot hold the value.
    fn to_stored(&self) -> Result<Option<EdmCow<'_>>, InvalidValue> {
        self.scalar().map(EdmValue::to_edm).transpose()
    }

    /// Reads the field from the row's property, or from `None` if the row has no such property.
    ///
    /// # Errors
    ///
    /// Fails if the property is missing and the field is not an `Option`, or if the stored value
    /// does not fit the field's type.
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

/// An argument that converts to a `T` without failing: a `T`, a reference to one, or for a `String`
/// any other text: `&str`, `&&str`, `Cow<str>`, `Box<str>`, `Arc<str>`.
#[diagnostic::on_unimplemented(
    message = "expected a `{T}`, found `{Self}`",
    label = "not a `{T}`",
    note = "the value must have the type of the field: convert it first"
)]
pub trait Input<T> {
    /// Converts the argument to a `T`.
    fn input(self) -> T;

    /// Appends the text of this argument to a key that is being built. `encode` writes a `T` as text. Gives the same
    /// text as `encode(&self.input(), out)`; a type can override this to avoid the conversion to a `T`.
    ///
    /// # Errors
    ///
    /// Returns the error of `encode`.
    #[doc(hidden)]
    fn encode_input(self, encode: EncodeKeyPart<T>, out: &mut String) -> Result<(), InvalidValue>
    where
        Self: Sized,
    {
        encode(&self.input(), out)
    }
}

/// Appends a value to a key, in the form of one of its parts.
pub(crate) type EncodeKeyPart<T> = fn(&T, &mut String) -> Result<(), InvalidValue>;

impl<T> Input<T> for T {
    fn input(self) -> T {
        self
    }
}

impl<T: Clone> Input<T> for &T {
    fn input(self) -> T {
        self.clone()
    }

    fn encode_input(self, encode: EncodeKeyPart<T>, out: &mut String) -> Result<(), InvalidValue> {
        encode(self, out)
    }
}

impl Input<String> for &str {
    fn input(self) -> String {
        self.to_owned()
    }

    // Parts of a key write a text in one form only, as it is. A `String` of it would be dropped at once.
    fn encode_input(self, _: EncodeKeyPart<String>, out: &mut String) -> Result<(), InvalidValue> {
        out.push_str(self);
        Ok(())
    }
}

impl Input<String> for Box<str> {
    fn input(self) -> String {
        self.into_string()
    }
}

impl Input<String> for Arc<str> {
    fn input(self) -> String {
        (*self).to_owned()
    }
}

impl Input<String> for &&str {
    fn input(self) -> String {
        (**self).to_owned()
    }
}

impl Input<String> for Cow<'_, str> {
    fn input(self) -> String {
        self.into_owned()
    }
}
