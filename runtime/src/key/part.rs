//! The traits of types that can stand in a key.

use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use crate::edm::{Input, InvalidValue};

/// A type that can be a part of a key: `{field}`.
///
/// Implement it for a newtype of your own; an id that is text gives [`TextPart`] too.
///
/// ```
/// use entable::{InvalidValue, key::KeyPart};
///
/// struct OrderId(u32);
///
/// impl KeyPart for OrderId {
///     const WIDTH: Option<usize> = <u32 as KeyPart>::WIDTH;
///     fn encode(&self, out: &mut String) -> Result<(), InvalidValue> { self.0.encode(out) }
///     fn decode(text: &str) -> Result<Self, InvalidValue> { u32::decode(text).map(OrderId) }
/// }
///
/// let mut key = String::new();
/// OrderId(7).encode(&mut key)?;
/// assert_eq!(key, "0000000007");
/// # Ok::<(), InvalidValue>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a part of a key",
    label = "not a key type",
    note = "key types are String, integers, bool, uuid::Uuid, time::OffsetDateTime, time::Date and enums with #[derive(EdmEnum)]; implement `entable::key::KeyPart` for a type of your own"
)]
pub trait KeyPart: Sized {
    /// Characters that the plain form takes, if always as many; such parts are never escaped, must
    /// not write characters that the service forbids in keys, and have to sort as the values do.
    const WIDTH: Option<usize>;

    /// Appends the plain form.
    ///
    /// # Errors
    ///
    /// A value that has none.
    fn encode(&self, out: &mut String) -> Result<(), InvalidValue>;

    /// The value back from its plain form; refuses every text that `encode` does not write.
    ///
    /// # Errors
    ///
    /// Another text.
    fn decode(text: &str) -> Result<Self, InvalidValue>;
}

/// An integer that can be zero padded: `{field:06}`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be zero padded",
    label = "not an integer",
    note = "a width such as `{{id:06}}` needs an integer field; write `{{field}}` for the type's own form"
)]
pub trait FixedWidth: KeyPart {
    /// Appends the decimal form, padded; refuses negatives and what is too wide.
    ///
    /// # Errors
    ///
    /// A negative value or one with more digits.
    fn encode_width(&self, width: usize, out: &mut String) -> Result<(), InvalidValue>;

    /// The value back from its padded form.
    ///
    /// # Errors
    ///
    /// A text that is not digits, or a number that the type cannot hold.
    fn decode_width(text: &str) -> Result<Self, InvalidValue>;
}

/// A type whose order can be turned round: `{field:desc}`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no descending form",
    label = "neither an integer nor a time",
    note = "`{{field:desc}}` needs an integer, a time or a date"
)]
pub trait Descending: KeyPart {
    /// Characters that the form takes.
    const WIDTH_DESCENDING: usize;

    /// Appends the descending form.
    ///
    /// # Errors
    ///
    /// A value that has none.
    fn encode_descending(&self, out: &mut String) -> Result<(), InvalidValue>;

    /// The value back.
    ///
    /// # Errors
    ///
    /// Another text.
    fn decode_descending(text: &str) -> Result<Self, InvalidValue>;
}

/// A text: it can be put in lower case, and asked for by prefix.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not text",
    label = "not text",
    note = "`{{field:lower}}` needs a String field"
)]
pub trait TextPart: KeyPart {
    /// The text.
    fn as_text(&self) -> &str;
}

/// A type whose parts sort as its values do; text does so only at the end of a key (`LAST`).
#[diagnostic::on_unimplemented(
    message = "the keys of `{Self}` at this place do not sort as its values do",
    label = "no range over this part",
    note = "text sorts only as the last part of a key; use an exact value or a prefix"
)]
pub trait Ordered<const LAST: bool>: KeyPart {}

/// What may be given as a prefix of a `T`: text of a text part.
#[diagnostic::on_unimplemented(
    message = "a `{T}` has no prefixes",
    label = "only text parts are asked for by prefix",
    note = "use an exact value or a range"
)]
pub trait PrefixInput<T> {
    /// The prefix.
    fn prefix(&self) -> &str;
}

#[diagnostic::do_not_recommend]
impl<T: TextPart> PrefixInput<T> for &str {
    fn prefix(&self) -> &str {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<T: TextPart> PrefixInput<T> for String {
    fn prefix(&self) -> &str {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<T: TextPart> PrefixInput<T> for &String {
    fn prefix(&self) -> &str {
        self
    }
}

/// What may be given as a range of a `T` whose keys sort: any of Rust's ranges of inputs.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a range of `{T}`",
    label = "not a range of `{T}`",
    note = "write `a..b`, `a..=b`, `a..`, `..b` or `..`"
)]
pub trait RangeInput<T, const LAST: bool> {
    /// Lower and upper bound.
    fn bounds(self) -> (Bound<T>, Bound<T>);
}

macro_rules! ranges {
    ($($range:ty, $self:ident => $bounds:expr;)*) => {
        $(impl<T: Ordered<LAST>, V: Input<T>, const LAST: bool> RangeInput<T, LAST> for $range {
            fn bounds($self) -> (Bound<T>, Bound<T>) { $bounds }
        })*
    };
}

ranges! {
    Range<V>, self => (Bound::Included(self.start.input()), Bound::Excluded(self.end.input()));
    RangeInclusive<V>, self => {
        let (start, end) = self.into_inner();
        (Bound::Included(start.input()), Bound::Included(end.input()))
    };
    RangeFrom<V>, self => (Bound::Included(self.start.input()), Bound::Unbounded);
    RangeTo<V>, self => (Bound::Unbounded, Bound::Excluded(self.end.input()));
    RangeToInclusive<V>, self => (Bound::Unbounded, Bound::Included(self.end.input()));
    (Bound<V>, Bound<V>), self => (self.0.map(Input::input), self.1.map(Input::input));
}

impl<T: Ordered<LAST>, const LAST: bool> RangeInput<T, LAST> for RangeFull {
    fn bounds(self) -> (Bound<T>, Bound<T>) {
        (Bound::Unbounded, Bound::Unbounded)
    }
}
