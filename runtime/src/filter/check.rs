//! What a filter that was built by hand may hold: no more than the service can read.

use super::Filter;
use crate::{
    edm::Value,
    error::{Error, Result, ServiceCode},
    limits,
};

/// Words that the grammar takes for itself.
const RESERVED: [&str; 12] =
    ["and", "or", "not", "eq", "ne", "gt", "ge", "lt", "le", "true", "false", "null"];

impl Filter {
    /// Refuses the filter where the service could not read its text.
    ///
    /// # Errors
    ///
    /// `is_invalid` for a property whose name is no identifier or is a word of the grammar, and for
    /// a Double that is not finite.
    pub fn check(&self) -> Result<()> {
        match self {
            Self::Constant(_) => Ok(()),
            Self::Property(name) => check_name(name),
            Self::Compare { property, value, .. } => {
                check_name(property)?;
                match value {
                    Value::Double(number) if !number.is_finite() => {
                        let why = format!("{number} has no literal in a filter");
                        Err(Error::service(ServiceCode::InvalidInput, why).in_property(property))
                    }
                    _ => Ok(()),
                }
            }
            Self::And(all) | Self::Or(all) => all.iter().try_for_each(Self::check),
            Self::Not(filter) => filter.check(),
        }
    }
}

fn check_name(name: &str) -> Result<()> {
    if limits::is_identifier(name) && !RESERVED.contains(&name) {
        return Ok(());
    }
    let why = format!("a filter cannot name the property `{}`", name.escape_debug());
    Err(Error::service(ServiceCode::InvalidInput, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_text_is_refused() {
        for name in ["", "a b", "1a", "a-b", "and", "true", "null"] {
            assert!(Filter::eq(name, 1).check().unwrap_err().is_invalid(), "{name}");
            assert!((!Filter::Property(name.to_owned())).check().is_err(), "{name}");
        }
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(
                Filter::all([Filter::Constant(true), Filter::eq("P", number)]).check().is_err()
            );
        }
    }

    #[test]
    fn what_was_parsed_is_taken() {
        let text = "PartitionKey eq 'p' and not (Gr\u{f6}\u{df}e gt -1.5e300 or _a) and true";
        assert!(Filter::parse(text).unwrap().check().is_ok());
    }
}
