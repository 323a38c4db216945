//! Takes words and quoted texts from a line of a layout.

use std::{iter::Peekable, str::SplitWhitespace};

pub(super) type Words<'t> = Peekable<SplitWhitespace<'t>>;

/// Takes the next word if it is `word`, and returns whether it is.
pub(super) fn takes_word(words: &mut Words<'_>, word: &str) -> bool {
    words.next_if_eq(&word).is_some()
}

/// Takes the next word. Returns `None` if it is not `word`.
pub(super) fn expect_word(words: &mut Words<'_>, word: &str) -> Option<()> {
    takes_word(words, word).then_some(())
}

/// Returns `None` if words are left. A later version of the format may write more, which must not be ignored.
pub(super) fn is_end(mut words: Words<'_>) -> Option<()> {
    words.next().is_none().then_some(())
}

/// Splits a quoted text from the rest of a line. Returns the text without its quotes; the layout
/// file has no escapes. Returns `None` if the line does not begin with a quote, or has no second
/// one.
pub(super) fn split_leading_quoted_text(text: &str) -> Option<(String, &str)> {
    // Only numbers, words and dashes follow a quoted text, so the last quote ends it.
    let (inside, rest) = text.strip_prefix('"')?.rsplit_once('"')?;
    Some((inside.to_owned(), rest))
}
