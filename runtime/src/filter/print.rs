//! A filter as OData text.
//!
//! Every condition inside an `and` or `or` stands in parentheses, so that the text reads the same
//! under every parser.

use std::fmt::{self, Display, Write};

use super::Filter;
use crate::edm::{Value, ValueRef};

impl Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compare { property, comparison, value } => {
                write!(f, "{property} {} {}", comparison.as_str(), Literal(value))
            }
            Self::Property(name) => f.write_str(name),
            Self::Constant(constant) => write!(f, "{constant}"),
            Self::And(all) => join(f, all, " and ", "true"),
            Self::Or(any) => join(f, any, " or ", "false"),
            Self::Not(filter) => write!(f, "not ({filter})"),
        }
    }
}

fn join(f: &mut fmt::Formatter<'_>, parts: &[Filter], with: &str, empty: &str) -> fmt::Result {
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            f.write_str(with)?;
        }
        write!(f, "({part})")?;
    }
    if parts.is_empty() { f.write_str(empty) } else { Ok(()) }
}

/// A value as an OData literal.
struct Literal<'a>(&'a Value);

impl Display for Literal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_ref() {
            ValueRef::Boolean(v) => write!(f, "{v}"),
            ValueRef::Int32(v) => write!(f, "{v}"),
            ValueRef::Int64(v) => write!(f, "{v}L"),
            ValueRef::Double(v) => write!(f, "{v:?}"),
            ValueRef::String(v) => quote(f, v),
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

fn quote(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('\'')?;
    for (at, piece) in text.split('\'').enumerate() {
        if at > 0 {
            f.write_str("''")?;
        }
        f.write_str(piece)?;
    }
    f.write_char('\'')
}
