//! Tokens of secret values in keys.
//!
//! A token needs a key that only the verbs have. Until then its place in the key is held by a text
//! that no token and no escape can be.

use super::{Form, Segment, Template};
use crate::edm::{EdmCow, InvalidValue};

/// Characters of a token: 128 bits in base32hex.
pub const TOKEN_WIDTH: usize = 26;

/// What holds the place of a token that is not known yet.
pub(crate) const HELD: &str = "~~~~~~~~~~~~~~~~~~~~~~~~~~";

/// Whether a token can have that character.
pub(super) const fn is_of_token(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'v')
}

/// Holds the place of the token of a value that can be stored.
///
/// # Errors
///
/// A value that cannot.
pub fn hold_token(
    value: Result<EdmCow<'_>, InvalidValue>,
    out: &mut String,
) -> Result<(), InvalidValue> {
    value.map_err(InvalidValue::hushed)?;
    out.push_str(HELD);
    Ok(())
}

/// Whether a key is the one that is expected, with tokens where places are held.
pub(crate) fn is_same_but_held(key: &str, expected: &str) -> bool {
    let mut rest = key;
    for (at, literal) in expected.split(HELD).enumerate() {
        if at > 0 {
            let Some((token, after)) = rest.split_at_checked(TOKEN_WIDTH) else { return false };
            if !token.bytes().all(is_of_token) {
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
    /// The fields whose tokens its keys have, in order.
    pub(crate) fn token_fields(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.parts().filter(|part| part.form == Form::Hmac).map(|part| part.field)
    }

    /// The tokens that a key of the template has, with their fields; `None`: it is none of its keys.
    pub(crate) fn tokens<'k>(&self, key: &'k str) -> Option<Vec<(&'static str, &'k str)>> {
        let texts = self.texts(key)?;
        let parts = self.parts().zip(texts);
        Some(
            parts
                .filter(|(part, _)| part.form == Form::Hmac)
                .map(|(part, text)| (part.field, text))
                .collect(),
        )
    }

    /// The key with tokens where their places are held; `None`: it is none of the template's.
    pub(crate) fn with_tokens<'t>(
        &self,
        key: &str,
        token: impl Fn(&'static str) -> Option<&'t str>,
    ) -> Option<String> {
        let mut texts = self.texts(key)?.into_iter();
        let mut out = String::with_capacity(key.len());
        for segment in self.segments {
            match segment {
                Segment::Literal(literal) => out.push_str(literal),
                Segment::Part(part) => {
                    let text = texts.next()?;
                    let token = (text == HELD).then(|| token(part.field)).flatten();
                    out.push_str(token.unwrap_or(text));
                }
            }
        }
        Some(out)
    }
}
