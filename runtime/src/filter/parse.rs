//! A filter from OData text: the grammar of "Querying Tables and Entities".

use super::{
    Comparison, Filter,
    lex::{Fault, Lexer, Token},
};
use crate::{
    edm::Value,
    error::{Error, Result, ServiceCode},
};

/// Nesting that a filter may have; deeper ones are refused before the stack is.
const DEPTH: usize = 100;

impl Filter {
    /// Reads a filter as the service does.
    ///
    /// Names, operators and literal prefixes are case-sensitive; `and` binds tighter than `or`, and
    /// `not` tighter than both; a constant may stand on the left. The empty text is always true.
    ///
    /// # Errors
    ///
    /// `is_invalid` with the position for a syntax error; `is_unsupported` for a function such as
    /// `startswith`, which the service does not have: a prefix is `ge 'abc' and lt 'abd'`.
    ///
    /// ```
    /// use entable::Filter;
    ///
    /// let filter = Filter::parse("PartitionKey eq 'Sales' and LastName eq 'O''Brien'")?;
    /// assert_eq!(filter.to_string(), "(PartitionKey eq 'Sales') and (LastName eq 'O''Brien')");
    /// assert!(Filter::parse("startswith(LastName, 'O')").unwrap_err().is_unsupported());
    /// # Ok::<(), entable::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self> {
        let mut parser = Parser { lexer: Lexer::new(text), text, ahead: None, depth: 0 };
        if parser.peek()?.is_none() {
            return Ok(Self::Constant(true));
        }
        let filter = parser.or()?;
        match parser.peek()? {
            None => Ok(filter),
            Some(_) => Err(parser.syntax()),
        }
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    text: &'a str,
    /// The next token and where it stands.
    ahead: Option<(Token<'a>, usize)>,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn peek(&mut self) -> Result<Option<&Token<'a>>> {
        if self.ahead.is_none() {
            let token = self.lexer.next().map_err(|fault| self.fault(&fault))?;
            self.ahead = token.map(|token| (token, self.lexer.at));
        }
        Ok(self.ahead.as_ref().map(|(token, _)| token))
    }

    fn next(&mut self) -> Result<Option<Token<'a>>> {
        self.peek()?;
        Ok(self.ahead.take().map(|(token, _)| token))
    }

    fn eat(&mut self, expected: &Token<'a>) -> Result<bool> {
        let found = self.peek()? == Some(expected);
        if found {
            self.ahead = None;
        }
        Ok(found)
    }

    fn syntax(&self) -> Error {
        let at = self.ahead.as_ref().map_or(self.lexer.at, |(_, at)| *at);
        self.fault(&Fault::Syntax(at))
    }

    fn fault(&self, fault: &Fault) -> Error {
        let message = match fault {
            Fault::Syntax(at) => {
                let at = self.text.get(..*at).map_or(*at, |before| before.chars().count());
                format!("syntax error at position {at} in the filter `{}`", self.text)
            }
            Fault::Literal(_, literal) => {
                format!("`{literal}` is not a literal of its type in the filter `{}`", self.text)
            }
        };
        Error::service(ServiceCode::InvalidInput, message)
    }

    fn or(&mut self) -> Result<Filter> {
        let mut any = vec![self.and()?];
        while self.eat(&Token::Or)? {
            any.push(self.and()?);
        }
        Ok(Filter::any(any))
    }

    fn and(&mut self) -> Result<Filter> {
        let mut all = vec![self.unary()?];
        while self.eat(&Token::And)? {
            all.push(self.unary()?);
        }
        Ok(Filter::all(all))
    }

    fn unary(&mut self) -> Result<Filter> {
        self.depth += 1;
        if self.depth > DEPTH {
            let message = format!("the filter is nested more than {DEPTH} deep");
            return Err(Error::service(ServiceCode::InvalidInput, message));
        }
        let filter = if self.eat(&Token::Not)? {
            !self.unary()?
        } else if self.eat(&Token::Open)? {
            let inner = self.or()?;
            if !self.eat(&Token::Close)? {
                return Err(self.syntax());
            }
            inner
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Ok(filter)
    }

    fn comparison(&mut self) -> Result<Filter> {
        let Some(left) = self.next()? else { return Err(self.syntax()) };
        let Some(Token::Compare(comparison)) = self.peek()? else {
            return match left {
                Token::Name(name) => Ok(Filter::Property(name.to_owned())),
                Token::Literal(Value::Boolean(constant)) => Ok(Filter::Constant(constant)),
                Token::Call(name) => Err(unsupported(name)),
                _ => Err(self.syntax()),
            };
        };
        let comparison = *comparison;
        self.ahead = None;
        let right = self.next()?;
        self.compare(left, comparison, right)
    }

    fn compare(
        &self,
        left: Token<'a>,
        comparison: Comparison,
        right: Option<Token<'a>>,
    ) -> Result<Filter> {
        match (left, right) {
            (Token::Name(_), Some(Token::Name("null"))) | (Token::Name("null"), _) => {
                Err(Error::service(
                    ServiceCode::InvalidInput,
                    "the service has no null test; `not (P ge x or P lt x)` finds rows without P",
                ))
            }
            (Token::Name(name), Some(Token::Literal(value))) => {
                Ok(Filter::compare(name, comparison, value))
            }
            (Token::Literal(value), Some(Token::Name(name))) => {
                Ok(Filter::compare(name, comparison.mirrored(), value))
            }
            (Token::Call(name), _) | (_, Some(Token::Call(name))) => Err(unsupported(name)),
            _ => Err(self.syntax()),
        }
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
