//! Parses filters from OData text, by the grammar of "Querying Tables and Entities".

use std::str::FromStr;

use super::{
    Comparison, Filter,
    check::check_value_is_finite,
    lex::{LexError, Lexer, Token},
};
use crate::{
    edm::Value,
    error::{Error, Result, ServiceCode},
};

/// The maximum depth of parentheses and `not`s while parsing. It refuses a text before the
/// recursion overflows the stack. A `not` prints as two levels.
const LEVELS: usize = 2 * Filter::NESTING + 1;

impl Filter {
    /// Parses a filter as the service does.
    ///
    /// Names, operators and literal prefixes are case-sensitive. `and` binds tighter than `or`, and `not` binds
    /// tighter than both. A constant may be on the left. The empty text is always true. Parsing a printed filter
    /// gives an equal filter.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid`, and the position, for a syntax error or a nesting above
    /// [`NESTING`](Self::NESTING). Fails with `is_unsupported` for arithmetic and for functions such as
    /// `startswith`, which the service does not have. Write a prefix as `ge 'abc' and lt 'abd'`.
    ///
    /// ```
    /// use entable_core::Filter;
    ///
    /// let filter = Filter::parse("PartitionKey eq 'Sales' and LastName eq 'O''Brien'")?;
    /// assert_eq!(filter.to_string(), "(PartitionKey eq 'Sales') and (LastName eq 'O''Brien')");
    /// assert!(Filter::parse("startswith(LastName, 'O')").unwrap_err().is_unsupported());
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self> {
        let mut parser = Parser { lexer: Lexer::new(text), text, ahead: None, level: 0 };
        if parser.peek_token()?.is_none() {
            return Ok(Self::Constant(true));
        }
        let filter = parser.parse_or()?;
        match parser.peek_token()? {
            // `LEVELS` limits the recursion by the text, where parentheses may be superfluous; the
            // tree has a limit of its own.
            None => filter.check_nesting().map(|()| filter),
            Some(_) => Err(parser.syntax_error()),
        }
    }
}

impl FromStr for Filter {
    type Err = Error;

    /// Parses a filter, as [`Filter::parse`] does.
    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

/// Returns the nesting depth of parentheses and `not`s in a text, without recursion. A condition alone has
/// level 1. Returns `None` if the text is not a filter.
fn levels_of_text(text: &str) -> Option<usize> {
    let mut lexer = Lexer::new(text);
    // The level at the start of each open parenthesis.
    let mut open = Vec::new();
    let (mut level, mut deepest) = (1, 1);
    while let Some(token) = lexer.next_token().ok()? {
        match token {
            Token::Open => {
                open.push(level);
                level += 1;
            }
            Token::Close => level = open.pop()?,
            Token::Word("not") => level += 1,
            Token::Word("and" | "or") => level = open.last().map_or(1, |level| level + 1),
            Token::Word(_) | Token::Literal(_) => deepest = deepest.max(level),
        }
    }
    Some(deepest)
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    text: &'a str,
    /// The next token, if it was read ahead.
    ahead: Option<Token<'a>>,
    level: usize,
}

/// One side of a comparison, or a condition that is a single word.
enum Operand<'a> {
    Name(&'a str),
    Literal(Value),
}

impl<'a> Parser<'a> {
    fn peek_token(&mut self) -> Result<Option<&Token<'a>>> {
        if self.ahead.is_none() {
            self.ahead = self.lexer.next_token().map_err(|fault| self.lex_error(&fault))?;
        }
        Ok(self.ahead.as_ref())
    }

    fn next_token(&mut self) -> Result<Option<Token<'a>>> {
        self.peek_token()?;
        Ok(self.ahead.take())
    }

    fn eat_token(&mut self, expected: &Token<'a>) -> Result<bool> {
        let found = self.peek_token()? == Some(expected);
        if found {
            self.ahead = None;
        }
        Ok(found)
    }

    /// Returns a syntax error. Its position is after the token that does not fit, as the service
    /// reports it.
    fn syntax_error(&self) -> Error {
        self.lex_error(&LexError::Syntax(self.lexer.at))
    }

    fn lex_error(&self, fault: &LexError) -> Error {
        let (at, what) = match fault {
            LexError::Syntax(at) => (*at, "syntax error".to_owned()),
            LexError::Literal(at, literal) => {
                (*at, format!("`{literal}` is not a valid literal of its type"))
            }
        };
        let position = self.text.get(..at).map_or(at, |before| before.chars().count());
        let mut message = format!("{what} at position {position} in the filter `{}`", self.text);
        if message.contains(char::is_control) {
            message = message.escape_debug().to_string();
        }
        Error::service(ServiceCode::InvalidInput, message)
    }

    fn parse_or(&mut self) -> Result<Filter> {
        let mut any = vec![self.parse_and()?];
        while self.eat_token(&Token::Word("or"))? {
            any.push(self.parse_and()?);
        }
        Ok(Filter::any(any))
    }

    fn parse_and(&mut self) -> Result<Filter> {
        let mut all = vec![self.parse_unary()?];
        while self.eat_token(&Token::Word("and"))? {
            all.push(self.parse_unary()?);
        }
        Ok(Filter::all(all))
    }

    fn parse_unary(&mut self) -> Result<Filter> {
        self.level += 1;
        if self.level > LEVELS {
            let levels = levels_of_text(self.text).unwrap_or(self.level);
            let message = format!(
                "the filter's text nests parentheses and `not` {levels} deep, the limit is {LEVELS}; remove \
                 parentheses"
            );
            return Err(Error::service(ServiceCode::InvalidInput, message));
        }
        let filter = if self.eat_token(&Token::Word("not"))? {
            !self.parse_unary()?
        } else if self.eat_token(&Token::Open)? {
            let inner = self.parse_or()?;
            if !self.eat_token(&Token::Close)? {
                return Err(self.syntax_error());
            }
            inner
        } else {
            self.parse_comparison()?
        };
        self.level -= 1;
        Ok(filter)
    }

    fn parse_comparison(&mut self) -> Result<Filter> {
        let left = self.parse_operand()?;
        self.refuse_arithmetic()?;
        let Some(comparison) = self.comparison_operator()? else {
            return match left {
                Operand::Literal(Value::Boolean(constant)) => Ok(Filter::Constant(constant)),
                Operand::Name(name) if name != "null" => Ok(Filter::Property(name.to_owned())),
                _ => Err(self.syntax_error()),
            };
        };
        let right = self.parse_operand()?;
        self.refuse_arithmetic()?;
        match (left, right) {
            (Operand::Name("null"), _) | (_, Operand::Name("null")) => Err(Error::service(
                ServiceCode::InvalidInput,
                "the service has no null test; `not (P ge x or P lt x)` finds rows without P",
            )),
            (Operand::Name(name), Operand::Literal(value)) => {
                check_value_is_finite(name, &value)?;
                Ok(Filter::compare(name, comparison, value))
            }
            (Operand::Literal(value), Operand::Name(name)) => {
                check_value_is_finite(name, &value)?;
                Ok(Filter::compare(name, comparison.mirrored(), value))
            }
            _ => Err(self.syntax_error()),
        }
    }

    fn parse_operand(&mut self) -> Result<Operand<'a>> {
        match self.next_token()? {
            Some(Token::Literal(value)) => Ok(Operand::Literal(value)),
            Some(Token::Word(name)) if self.lexer.rest().starts_with('(') => Err(unsupported(name)),
            Some(Token::Word(name)) if name != "not" => Ok(Operand::Name(name)),
            _ => Err(self.syntax_error()),
        }
    }

    /// Refuses an operator of arithmetic, which the grammar has and the service does not carry out.
    fn refuse_arithmetic(&mut self) -> Result<()> {
        match self.peek_token() {
            Ok(Some(Token::Word(word @ ("add" | "sub" | "mul" | "div" | "mod")))) => {
                let message = format!("the service has no arithmetic (`{word}`) in a filter");
                Err(Error::service(ServiceCode::NotImplemented, message))
            }
            // A fault is reported where the token is read.
            _ => Ok(()),
        }
    }

    fn comparison_operator(&mut self) -> Result<Option<Comparison>> {
        let Some(Token::Word(word)) = self.peek_token()? else { return Ok(None) };
        let comparison = Comparison::ALL.into_iter().find(|c| c.as_str() == *word);
        if comparison.is_some() {
            self.ahead = None;
        }
        Ok(comparison)
    }
}

fn unsupported(function: &str) -> Error {
    Error::service(
        ServiceCode::NotImplemented,
        format!(
            "the service has no function `{function}`; a prefix search is `P ge 'abc' and P lt 'abd'`"
        ),
    )
}
