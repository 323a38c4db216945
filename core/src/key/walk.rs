//! Splits keys into the texts of their parts: the inverse of `write`.

use std::borrow::Cow;

use super::{
    Form, Segment, Template, TemplatePart,
    date::read_date_units,
    escape::{ESCAPE, escape, escaped_prefix_length},
};
use crate::edm::InvalidValue;

impl Template {
    /// Splits a key into the texts of its parts, still escaped, in template order.
    ///
    /// # Errors
    ///
    /// Fails if the key does not fit the template; see [`matches`](Self::matches). Does not check that a part decodes
    /// as the type of its field.
    ///
    /// ```
    /// # use entable_core::key::{Form, TemplatePart, Segment, Template};
    /// const REVIEW: Template = Template {
    ///     text: "empid_{id:06}_{year}",
    ///     segments: &[
    ///         Segment::Literal("empid_"),
    ///         Segment::Part(TemplatePart::new("Id", Form::Width(6), Some(6))),
    ///         Segment::Literal("_"),
    ///         Segment::Part(TemplatePart::new("Year", Form::Plain, None)),
    ///     ],
    /// };
    ///
    /// assert_eq!(REVIEW.split("empid_000123_2012")?, ["000123", "2012"]);
    /// assert!(REVIEW.split::<2>("empid_00012_2012").is_err());
    /// # Ok::<(), entable_core::InvalidValue>(())
    /// ```
    #[inline]
    pub fn split<'k, const PARTS: usize>(
        &self,
        key: &'k str,
    ) -> Result<[&'k str; PARTS], InvalidValue> {
        let mut parts = [""; PARTS];
        let mut slots = parts.iter_mut();
        self.walk_parts(key, |text| {
            if let Some(slot) = slots.next() {
                *slot = text;
            }
        })
        .ok_or_else(|| self.mismatch_error(key))?;
        Ok(parts)
    }

    /// Returns the text of part number `part`, still escaped, or `None` if the template has fewer
    /// parts.
    ///
    /// # Errors
    ///
    /// Fails if the template cannot have written the key.
    #[doc(hidden)]
    pub fn part_text<'k>(
        &self,
        key: &'k str,
        part: usize,
    ) -> Result<Option<&'k str>, InvalidValue> {
        let (mut at, mut found) = (0, None);
        self.walk_parts(key, |text| {
            if at == part {
                found = Some(text);
            }
            at += 1;
        })
        .ok_or_else(|| self.mismatch_error(key))?;
        Ok(found)
    }

    /// Splits a key into the texts of all its parts, still escaped. Returns `None` if the template
    /// cannot have written the key.
    pub(super) fn part_texts<'k>(&self, key: &'k str) -> Option<Vec<&'k str>> {
        let mut texts = Vec::new();
        self.walk_parts(key, |text| texts.push(text))?;
        Some(texts)
    }

    /// Calls `each` with the text of every part, still escaped.
    ///
    /// # Errors
    ///
    /// Fails if the template cannot have written the key.
    #[inline]
    #[doc(hidden)]
    pub fn each_part_text<'k>(
        &self,
        key: &'k str,
        each: impl FnMut(&'k str),
    ) -> Result<(), InvalidValue> {
        self.walk_parts(key, each).ok_or_else(|| self.mismatch_error(key))
    }

    fn mismatch_error(&self, key: &str) -> InvalidValue {
        let (key, text) = (key.escape_debug(), self.text);
        InvalidValue::new(format!("key `{key}` does not fit the template \"{text}\""))
    }

    /// Returns whether the key fits the template: its literals, digits where parts write digits,
    /// and only escapes that entable writes.
    pub fn matches(&self, key: &str) -> bool {
        self.walk_parts(key, |_| ()).is_some()
    }

    /// Returns the template's spelling of a key that another program may have written without escapes:
    /// the key itself if it fits the template, or else the key with each `~` escaped. Returns `None` if
    /// neither fits.
    // `~` is the only character that other programs leave unescaped and we never do: the service refuses forbidden
    // characters, and a terminator ends the part.
    #[doc(hidden)]
    pub fn template_spelling_of_key<'k>(&self, key: &'k str) -> Option<Cow<'k, str>> {
        if self.matches(key) {
            return Some(Cow::Borrowed(key));
        }
        let spelled = key.replace(ESCAPE, &escape("~", None));
        self.matches(&spelled).then_some(Cow::Owned(spelled))
    }

    /// Calls `each` with the text of every part, in order. Returns `None` at the first segment that
    /// does not fit, or if text is left over.
    #[inline]
    fn walk_parts<'k>(&self, key: &'k str, mut each: impl FnMut(&'k str)) -> Option<()> {
        let mut rest = key;
        for (at, segment) in self.segments.iter().enumerate() {
            match segment {
                Segment::Literal(text) => rest = rest.strip_prefix(text)?,
                Segment::Part(part) => {
                    let terminator = self.terminator_char_of_segment(at);
                    let length = length_of_part_text(part, terminator, rest)?;
                    let (text, after) = rest.split_at_checked(length)?;
                    if !may_have_written(part, text) {
                        return None;
                    }
                    each(text);
                    rest = after;
                }
            }
        }
        rest.is_empty().then_some(())
    }
}

/// Returns the length in bytes of the text of a part, which a key continues with. Returns `None` if the
/// part cannot have written the text.
#[inline]
pub(super) fn length_of_part_text(
    part: &TemplatePart,
    terminator: Option<char>,
    rest: &str,
) -> Option<usize> {
    match part.width {
        Some(width) => length_of_chars(rest, width),
        None => escaped_prefix_length(rest, terminator),
    }
}

/// Returns the number of bytes of the first `width` characters.
#[inline]
fn length_of_chars(text: &str, width: usize) -> Option<usize> {
    // Parts of fixed width are usually ASCII, where a byte is a character.
    if text.as_bytes().get(..width)?.is_ascii() {
        return Some(width);
    }
    // A part that ends the key ends where no further character begins.
    let mut ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    ends.nth(width)
}

/// Returns whether a part of this form can have written `text`. Looks at nothing but the form.
#[inline]
fn may_have_written(part: &TemplatePart, text: &str) -> bool {
    let is_number = || text.bytes().all(|b| b.is_ascii_digit());
    match part.form {
        Form::Plain | Form::Lower => true,
        Form::Hmac => {
            text == super::token::TOKEN_PLACEHOLDER || text.bytes().all(super::token::is_token_byte)
        }
        Form::Width(_) | Form::Descending => is_number(),
        Form::Bucket(buckets) => {
            // The writer counts 0 buckets as one.
            is_number() && text.parse().is_ok_and(|bucket: u32| bucket < buckets.max(1))
        }
        Form::Date(form) => read_date_units(text, form).is_some(),
    }
}
