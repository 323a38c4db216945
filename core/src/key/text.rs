//! Makes text and UUIDs key parts.

use uuid::Uuid;

use super::{KeyPart, Ordered, TextPart};
use crate::edm::InvalidValue;

impl KeyPart for String {
    const WIDTH: Option<usize> = None;

    fn encode(&self, out: &mut String) -> Result<(), InvalidValue> {
        out.push_str(self);
        Ok(())
    }

    fn decode(text: &str) -> Result<Self, InvalidValue> {
        Ok(text.to_owned())
    }
}

impl TextPart for String {
    fn as_text(&self) -> &str {
        self
    }
}

impl Ordered<true> for String {}

/// Appends `text` to `out` in lower case. Converts each character on its own, unlike `str::to_lowercase`. A prefix of a
/// text is therefore still its prefix once both are in lower case.
///
/// ```
/// # use entable_core::key::lower;
/// let mut out = String::new();
/// lower("JonesJ@Contoso.com", &mut out);
/// assert_eq!(out, "jonesj@contoso.com");
/// ```
pub fn lower(text: &str, out: &mut String) {
    out.extend(text.chars().flat_map(char::to_lowercase));
}

impl KeyPart for Uuid {
    const WIDTH: Option<usize> = Some(36);

    /// Writes the hyphenated form in lower case.
    fn encode(&self, out: &mut String) -> Result<(), InvalidValue> {
        out.push_str(self.hyphenated().encode_lower(&mut Self::encode_buffer()));
        Ok(())
    }

    fn decode(text: &str) -> Result<Self, InvalidValue> {
        Self::try_parse(text)
            .ok()
            .filter(|id| text == id.hyphenated().encode_lower(&mut Self::encode_buffer()))
            .ok_or_else(|| {
                InvalidValue::new(format!(
                    "expected a lower-case UUID, found `{}`",
                    text.escape_debug()
                ))
            })
    }
}

impl<const LAST: bool> Ordered<LAST> for Uuid {}
