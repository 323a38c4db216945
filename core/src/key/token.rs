//! Handles blind tokens, written `{field:hmac}` in a template: keyed hashes (HMAC) that replace secret values in keys.
//!
//! A blind token is computed with a blind token key, which is fetched when a verb runs. A row key built earlier holds a
//! placeholder at that position. The placeholder can be neither a blind token nor an escape.

use super::{Form, Segment, Template, TemplatePart};
use crate::edm::{EdmCow, InvalidValue};

/// Characters of a blind token: 128 bits in base32hex.
pub const TOKEN_WIDTH: usize = 26;

/// The placeholder in a key for a blind token that is not known yet.
pub const TOKEN_PLACEHOLDER: &str = "~~~~~~~~~~~~~~~~~~~~~~~~~~";

/// Returns whether the byte can occur in a blind token.
pub(super) const fn is_token_byte(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'v')
}

/// Appends to a key the placeholder of a blind token: the keyed hash of `value`, which is made
/// later.
///
/// # Errors
///
/// Fails if the value cannot be stored. The message does not quote the value.
pub fn push_token_placeholder(
    value: Result<EdmCow<'_>, InvalidValue>,
    out: &mut String,
) -> Result<(), InvalidValue> {
    value.map_err(InvalidValue::redacted)?;
    out.push_str(TOKEN_PLACEHOLDER);
    Ok(())
}

/// Returns whether `key` equals `expected` once each placeholder in `expected` is replaced by some
/// blind token.
pub fn equals_with_tokens(key: &str, expected: &str) -> bool {
    let mut rest = key;
    for (at, literal) in expected.split(TOKEN_PLACEHOLDER).enumerate() {
        if at > 0 {
            let Some((token, after)) = rest.split_at_checked(TOKEN_WIDTH) else { return false };
            if !token.bytes().all(is_token_byte) {
                return false;
            }
            rest = after;
        }
        let Some(after) = rest.strip_prefix(literal) else { return false };
        rest = after;
    }
    rest.is_empty()
}

impl Template {
    /// Iterates over the fields whose blind tokens are part of the template's keys, in template order.
    #[doc(hidden)]
    pub fn token_fields(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.parts().filter(|part| part.form == Form::Hmac).map(|part| part.field)
    }

    /// Returns whether the template's keys hold blind tokens.
    #[doc(hidden)]
    pub const fn has_tokens(&self) -> bool {
        let mut rest = self.segments;
        while let [segment, after @ ..] = rest {
            if matches!(segment, Segment::Part(TemplatePart { form: Form::Hmac, .. })) {
                return true;
            }
            rest = after;
        }
        false
    }

    /// Finds the blind tokens in a key, each with its field. Returns `None` if the template cannot
    /// have written the key.
    #[doc(hidden)]
    pub fn find_blind_tokens<'k>(&self, key: &'k str) -> Option<Vec<(&'static str, &'k str)>> {
        let texts = self.part_texts(key)?;
        let parts = self.parts().zip(texts);
        Some(
            parts
                .filter(|(part, _)| part.form == Form::Hmac)
                .map(|(part, text)| (part.field, text))
                .collect(),
        )
    }

    /// Replaces each placeholder in `key` by `token(field)`, and leaves it where `token` returns
    /// `None`. Returns `None` if the template cannot have written the key.
    #[doc(hidden)]
    pub fn replace_placeholders<'t>(
        &self,
        key: &str,
        token: impl Fn(&'static str) -> Option<&'t str>,
    ) -> Option<String> {
        let mut texts = self.part_texts(key)?.into_iter();
        let mut out = String::with_capacity(key.len());
        for segment in self.segments {
            match segment {
                Segment::Literal(literal) => out.push_str(literal),
                Segment::Part(part) => {
                    let text = texts.next()?;
                    let token = (text == TOKEN_PLACEHOLDER).then(|| token(part.field)).flatten();
                    out.push_str(token.unwrap_or(text));
                }
            }
        }
        Some(out)
    }
}
