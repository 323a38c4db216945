//! Splits the text of a key template into literals and the contents of braces.

use std::ops::Range;

use super::{Fault, forbidden};

/// Literal text or the content of braces, with its range of characters in the template.
#[derive(Debug)]
pub(super) enum Token {
    Literal(String, Range<usize>),
    Braces(String, Range<usize>),
}

/// Splits a template into tokens. `{{` and `}}` are literal braces.
pub(super) fn lex(text: &str, faults: &mut Vec<Fault>) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut literal = String::new();
    let mut start = 0;
    let mut chars = text.chars().enumerate().peekable();
    while let Some((at, c)) = chars.next() {
        let doubled = matches!(c, '{' | '}') && chars.next_if(|(_, next)| *next == c).is_some();
        match c {
            '{' if !doubled => {
                if !literal.is_empty() {
                    tokens.push(Token::Literal(std::mem::take(&mut literal), start..at));
                }
                let inner: String =
                    chars.by_ref().map(|(_, c)| c).take_while(|c| *c != '}').collect();
                let end = at + inner.chars().count() + 2;
                // The end includes a closing brace. If there is none, the end is beyond the text.
                if end > text.chars().count() {
                    faults.push(Fault::new(
                        &(at..end - 1),
                        "`{` is never closed; for a literal brace, write `{{`",
                    ));
                }
                tokens.push(Token::Braces(inner, at..end));
                start = end;
            }
            '}' if !doubled => {
                faults.push(Fault::new(
                    &(at..at + 1),
                    "`}` has no opening brace; for a literal brace, write `}}`",
                ));
            }
            c => {
                if let Some(why) = forbidden(c) {
                    faults.push(Fault::new(&(at..at + 1), why));
                }
                literal.push(c);
            }
        }
    }
    if !literal.is_empty() {
        tokens.push(Token::Literal(literal, start..text.chars().count()));
    }
    tokens
}
