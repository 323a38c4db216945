//! Prints filters as OData text.
//!
//! Every condition inside an `and` or `or` is put in parentheses, so all parsers agree on its meaning.

use std::fmt::{self, Debug, Display, Write};

use super::Filter;
use crate::edm::{Value, ValueRef};

/// A piece of the text that is still to be printed.
enum PieceToPrint<'a> {
    Filter(&'a Filter),
    Text(&'static str),
}

impl Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A recursion could overflow the stack, since a program can nest filters without a limit.
        let mut pending = vec![PieceToPrint::Filter(self)];
        while let Some(next) = pending.pop() {
            match next {
                PieceToPrint::Text(text) => f.write_str(text)?,
                PieceToPrint::Filter(Self::Compare { property, comparison, value }) => {
                    write!(f, "{property} {} {}", comparison.as_str(), Literal(value))?;
                }
                PieceToPrint::Filter(Self::Property(name)) => f.write_str(name)?,
                PieceToPrint::Filter(Self::Blind { property, .. }) => {
                    write!(f, "{property} eq ..")?
                }
                PieceToPrint::Filter(Self::OutOfRange { property, comparison, value }) => {
                    write!(
                        f,
                        "{}",
                        Self::resolve_key_only_comparison(property, *comparison, *value)
                    )?;
                }
                PieceToPrint::Filter(Self::Constant(constant)) => write!(f, "{constant}")?,
                PieceToPrint::Filter(Self::And(all)) => push_joined(&mut pending, all, ") and ("),
                PieceToPrint::Filter(Self::Or(any)) => push_joined(&mut pending, any, ") or ("),
                PieceToPrint::Filter(Self::Not(filter)) => {
                    f.write_str("not (")?;
                    pending.extend([PieceToPrint::Text(")"), PieceToPrint::Filter(filter)]);
                }
            }
        }
        Ok(())
    }
}

/// Pushes a list of conditions onto the stack, the first on top.
fn push_joined<'a>(
    pending: &mut Vec<PieceToPrint<'a>>,
    parts: &'a [Filter],
    between: &'static str,
) {
    pending.push(PieceToPrint::Text(")"));
    for (at, part) in parts.iter().enumerate().rev() {
        pending.push(PieceToPrint::Filter(part));
        pending.push(PieceToPrint::Text(if at == 0 { "(" } else { between }));
    }
}

impl Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Filter({self})")
    }
}

/// Prints a value as an OData literal.
struct Literal<'a>(&'a Value);

impl Display for Literal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_ref() {
            ValueRef::Boolean(v) => write!(f, "{v}"),
            ValueRef::Int32(v) => write!(f, "{v}"),
            ValueRef::Int64(v) => write!(f, "{v}L"),
            ValueRef::Double(v) if v.is_nan() => f.write_str("NaN"),
            ValueRef::Double(f64::INFINITY) => f.write_str("INF"),
            ValueRef::Double(f64::NEG_INFINITY) => f.write_str("-INF"),
            // `Debug` keeps the point or exponent that makes the number a Double.
            ValueRef::Double(v) => write!(f, "{v:?}"),
            ValueRef::String(v) => write!(f, "'{}'", v.replace('\'', "''")),
            ValueRef::DateTime(v) => write!(f, "datetime'{v}'"),
            ValueRef::Guid(v) => write!(f, "guid'{v}'"),
            ValueRef::Binary(v) => {
                f.write_str("X'")?;
                v.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_char('\'')
            }
        }
    }
}
