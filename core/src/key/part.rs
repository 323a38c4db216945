//! Defines the traits for types that can be part of a key.

use std::{
    borrow::Cow,
    ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive},
    sync::Arc,
};

use crate::edm::{Input, InvalidValue, each_bounded_range};

/// A type that can be a part of a key, written `{field}`.
///
/// `#[derive(KeyPart)]` of entable implements it for a struct around one value, such as an id with a type
/// of its own, and for an enum without fields.
///
/// ```
/// use entable_core::{InvalidValue, key::KeyPart};
///
/// let mut key = String::new();
/// 7_u32.encode(&mut key)?;
/// assert_eq!(key, "0000000007");
/// # Ok::<(), InvalidValue>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be used in a key",
    label = "cannot be part of a key",
    note = "a key can contain String, integers, bool, uuid::Uuid, time::OffsetDateTime, time::Date and enums with #[derive(EdmEnum)]; to use a struct that wraps one of these, write `#[derive(KeyPart)]` on it"
)]
pub trait KeyPart: Sized {
    /// Number of characters of the plain form if every value takes equally many, else `None`. A
    /// part with a width is never escaped, so it must not write characters that the service forbids
    /// in keys, and its texts must sort as its values do.
    const WIDTH: Option<usize>;

    /// Appends the plain form, the text that `{field}` writes, to `out`.
    ///
    /// # Errors
    ///
    /// Fails if the value has no plain form.
    fn encode(&self, out: &mut String) -> Result<(), InvalidValue>;

    /// Reads the value from its plain form.
    ///
    /// # Errors
    ///
    /// Fails on every text that [`encode`](Self::encode) does not write.
    fn decode(text: &str) -> Result<Self, InvalidValue>;
}

/// An integer that a key part can zero-pad, written `{field:06}`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be zero padded",
    label = "not an integer",
    note = "a width such as `{{id:06}}` needs an integer field; for other types write `{{field}}`"
)]
pub trait FixedWidth: KeyPart {
    /// Appends the decimal digits to `out`, zero padded to `width`.
    ///
    /// # Errors
    ///
    /// Fails for a negative value and for one of more than `width` digits.
    fn encode_zero_padded(&self, width: usize, out: &mut String) -> Result<(), InvalidValue>;

    /// Reads the value from its zero-padded digits.
    ///
    /// # Errors
    ///
    /// Fails if the text is not all digits, or if the type cannot hold the number.
    fn decode_width(text: &str) -> Result<Self, InvalidValue>;
}

/// A type that a key part can write in descending order, written `{field:desc}`: the largest or
/// newest value sorts first.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored in descending order",
    label = "not an integer, a time or a date",
    note = "`{{field:desc}}` needs an integer, a time or a date"
)]
pub trait Descending: KeyPart {
    /// Number of characters of the descending form.
    const WIDTH_DESCENDING: usize;

    /// Appends the descending form to `out`.
    ///
    /// # Errors
    ///
    /// Fails if the value has no descending form.
    fn encode_descending(&self, out: &mut String) -> Result<(), InvalidValue>;

    /// Reads the value from its descending form.
    ///
    /// # Errors
    ///
    /// Fails on every text that [`encode_descending`](Self::encode_descending) does not write.
    fn decode_descending(text: &str) -> Result<Self, InvalidValue>;
}

/// A text type. A key part can write it in lower case, and queries can select it by prefix.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not text",
    label = "not text",
    note = "`{{field:lower}}` needs a String field"
)]
pub trait TextPart: KeyPart {
    /// Returns the value as text.
    fn as_text(&self) -> &str;
}

/// A type whose key parts sort in the order of its values, as range queries require. Text does so only as the last part
/// of a key (`LAST`).
#[diagnostic::on_unimplemented(
    message = "a range over `{Self}` is not possible here: its keys do not sort like its values",
    label = "this part of the key does not support ranges",
    note = "text keeps its order only as the last part of a key; use an exact value or a prefix"
)]
pub trait Ordered<const LAST: bool>: KeyPart {}

/// An argument that can be the prefix of a text part of type `T`.
#[diagnostic::on_unimplemented(
    message = "`{T}` does not support prefixes",
    label = "only text can be matched by prefix",
    note = "use an exact value or a range"
)]
pub trait PrefixInput<T> {
    /// Returns the prefix. The selected rows are those whose key part starts with it.
    fn prefix(&self) -> &str;
}

macro_rules! prefixes {
    ($($type:ty),*) => {
        $(#[diagnostic::do_not_recommend]
        impl<T: TextPart> PrefixInput<T> for $type {
            fn prefix(&self) -> &str {
                self
            }
        })*
    };
}

prefixes!(&str, &&str, String, &String, Cow<'_, str>, &Cow<'_, str>, Box<str>, Arc<str>);

/// An argument that can be the range of a part of type `T`: any of Rust's ranges, with bounds that
/// convert to `T`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a range of `{T}`",
    label = "not a range of `{T}`",
    note = "write `a..b`, `a..=b`, `a..`, `..b` or `..`"
)]
pub trait RangeInput<T, const LAST: bool> {
    /// Returns the lower and the upper bound of the range.
    fn bounds(self) -> (Bound<T>, Bound<T>);
}

macro_rules! key_ranges {
    ($($range:ty, $self:ident => $bounds:expr;)*) => {
        $(impl<T: Ordered<LAST>, V: Input<T>, const LAST: bool> RangeInput<T, LAST> for $range {
            fn bounds($self) -> (Bound<T>, Bound<T>) { $bounds }
        })*
    };
}

each_bounded_range!(key_ranges);

impl<T: Ordered<LAST>, const LAST: bool> RangeInput<T, LAST> for RangeFull {
    fn bounds(self) -> (Bound<T>, Bound<T>) {
        (Bound::Unbounded, Bound::Unbounded)
    }
}
