//! Splits a filter's text into tokens.

use bytes::Bytes;
use uuid::Uuid;

use crate::{
    edm::{Ticks, Value},
    limits::{begins_identifier, continues_identifier},
};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token<'a> {
    Open,
    Close,
    /// The name of a property, an operator or a function, depending on its position.
    Word(&'a str),
    Literal(Value),
}

/// The reason why a text is not a filter.
#[derive(Debug)]
pub(super) enum LexError {
    /// A syntax error at this byte.
    Syntax(usize),
    /// A literal at this byte whose text does not fit its type: a number, time, GUID or binary.
    Literal(usize, String),
}

#[derive(Debug, Clone)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    pub(super) at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Returns the text that is not read yet.
    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_bytes(&mut self, bytes: usize) {
        self.at += bytes;
    }

    pub(super) fn next_token(&mut self) -> Result<Option<Token<'a>>, LexError> {
        let blank = self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
        self.skip_bytes(blank);
        let Some(first) = self.rest().chars().next() else { return Ok(None) };
        let token = match first {
            '(' => self.take_token(1, Token::Open),
            ')' => self.take_token(1, Token::Close),
            '\'' => Token::Literal(Value::String(self.read_quoted()?)),
            '0'..='9' | '-' | '.' => self.read_number()?,
            c if begins_identifier(c) => self.read_word()?,
            _ => return Err(LexError::Syntax(self.at)),
        };
        Ok(Some(token))
    }

    fn take_token(&mut self, bytes: usize, token: Token<'a>) -> Token<'a> {
        self.skip_bytes(bytes);
        token
    }

    /// Reads the quoted text at the current position. Two quotes stand for one.
    fn read_quoted(&mut self) -> Result<String, LexError> {
        let start = self.at;
        self.skip_bytes(1);
        let mut out = String::new();
        loop {
            let Some(end) = self.rest().find('\'') else { return Err(LexError::Syntax(start)) };
            out.push_str(self.rest().get(..end).unwrap_or_default());
            self.skip_bytes(end + 1);
            if !self.rest().starts_with('\'') {
                return Ok(out);
            }
            out.push('\'');
            self.skip_bytes(1);
        }
    }

    fn read_word(&mut self) -> Result<Token<'a>, LexError> {
        let rest = self.rest();
        let end = rest.find(|c| !continues_identifier(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        let start = self.at;
        self.skip_bytes(end);
        if after.starts_with('\'') && matches!(word, "datetime" | "guid" | "X" | "binary") {
            let text = self.read_quoted()?;
            return typed_literal(word, &text)
                .map(Token::Literal)
                .ok_or(LexError::Literal(start, text));
        }
        Ok(match word {
            "true" => Token::Literal(Value::Boolean(true)),
            "false" => Token::Literal(Value::Boolean(false)),
            "NaN" => Token::Literal(Value::Double(f64::NAN)),
            "INF" => Token::Literal(Value::Double(f64::INFINITY)),
            _ => Token::Word(word),
        })
    }

    fn read_number(&mut self) -> Result<Token<'a>, LexError> {
        let rest = self.rest();
        if let Some(after) = rest.strip_prefix("-INF")
            && !after.starts_with(continues_identifier)
        {
            self.skip_bytes(rest.len() - after.len());
            return Ok(Token::Literal(Value::Double(f64::NEG_INFINITY)));
        }
        // A sign belongs to the number at its beginning and after the `e` of an exponent.
        let mut previous = ' ';
        let end = rest
            .find(|c: char| {
                let part = c.is_ascii_digit()
                    || matches!(c, '.' | 'e' | 'E')
                    || (matches!(c, '-' | '+') && matches!(previous, ' ' | 'e' | 'E'));
                previous = c;
                !part
            })
            .unwrap_or(rest.len());
        let (text, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        let start = self.at;
        let long = after.starts_with('L');
        self.skip_bytes(end + usize::from(long));
        if self.rest().starts_with(continues_identifier) {
            return Err(LexError::Syntax(self.at));
        }
        let value = if long {
            text.parse().ok().map(Value::Int64)
        } else if text.contains(['.', 'e', 'E']) {
            text.parse().ok().filter(|v: &f64| v.is_finite()).map(Value::Double)
        } else {
            text.parse().ok().map(Value::Int32)
        };
        value.map(Token::Literal).ok_or_else(|| LexError::Literal(start, text.to_owned()))
    }
}

/// Parses a literal that has a type prefix, such as `datetime'..'`.
fn typed_literal(prefix: &str, text: &str) -> Option<Value> {
    match prefix {
        "datetime" => text.parse::<Ticks>().ok().map(Value::DateTime),
        "guid" if text.len() == 36 => Uuid::try_parse(text).ok().map(Value::Guid),
        "X" | "binary" => parse_hex(text).map(Value::Binary),
        _ => None,
    }
}

fn parse_hex(text: &str) -> Option<Bytes> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok())).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(
        digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect(),
    )
}
