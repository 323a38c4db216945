//! Checks that a filter can be sent: names, numbers and nesting.

use super::Filter;
use crate::{
    edm::Value,
    error::{Error, Result, ServiceCode},
    limits,
};

/// Words that have another meaning for the service where a filter names a property.
pub(super) const RESERVED: [&str; 14] =
    ["and", "or", "not", "eq", "ne", "gt", "ge", "lt", "le", "true", "false", "null", "NaN", "INF"];

impl Filter {
    /// The maximum nesting of a filter, where each `and`, `or` and `not` counts.
    pub const NESTING: usize = 100;

    /// Checks that the filter can be sent: the service accepts its text and reads the same filter
    /// from it.
    ///
    /// # Errors
    ///
    /// `is_invalid` for a text that cannot name a property, for a Double that is not finite (the
    /// service documents no literal for it), and for a nesting above [`NESTING`](Self::NESTING);
    /// `is_too_large` for a name above 255 UTF-16 units.
    ///
    /// ```
    /// use entable_core::Filter;
    ///
    /// assert!(Filter::eq("LastName", "x' or true or '").check().is_ok());
    /// assert!(Filter::eq("Last Name", "Jones").check().unwrap_err().is_invalid());
    /// assert!(Filter::eq("not", "Jones").check().unwrap_err().is_invalid());
    /// ```
    pub fn check(&self) -> Result<()> {
        self.check_nesting()?;
        let mut checked = Ok(());
        self.visit_nodes(|filter| {
            if checked.is_ok() {
                checked = check_condition(filter);
            }
        });
        checked
    }

    pub(super) fn check_nesting(&self) -> Result<()> {
        let depth = self.depth();
        if depth <= Self::NESTING { Ok(()) } else { Err(nesting_error(depth)) }
    }
}

pub(super) fn nesting_error(found: usize) -> Error {
    let limit = Filter::NESTING;
    let message = format!(
        "the filter is nested {found} deep, the limit is {limit}; \
         join conditions with `Filter::all` and `Filter::any`"
    );
    Error::service(ServiceCode::InvalidInput, message)
}

/// Checks one node of a filter, without its children.
fn check_condition(filter: &Filter) -> Result<()> {
    match filter {
        Filter::Compare { property, value, .. } => {
            check_name(property)?;
            check_value_is_finite(property, value)
        }
        Filter::Property(name)
        | Filter::Blind { property: name, .. }
        | Filter::OutOfRange { property: name, .. } => check_name(name),
        Filter::Constant(_) | Filter::And(_) | Filter::Or(_) | Filter::Not(_) => Ok(()),
    }
}

/// Refuses a Double that is not finite: the service documents no literal for it.
pub(super) fn check_value_is_finite(property: &str, value: &Value) -> Result<()> {
    match value {
        Value::Double(number) if !number.is_finite() => {
            let message = format!("{number} cannot be written as a literal in a filter");
            Err(Error::service(ServiceCode::InvalidInput, message).in_property(property))
        }
        _ => Ok(()),
    }
}

fn check_name(name: &str) -> Result<()> {
    if matches!(name, "PartitionKey" | "RowKey" | "Timestamp") {
        return Ok(());
    }
    // The service would report a syntax error, whose code is `InvalidInput`.
    limits::check_property_name(name).map_err(|error| {
        if error.is_invalid() { error.with_code(ServiceCode::InvalidInput) } else { error }
    })?;
    if RESERVED.contains(&name) {
        let message = format!(
            "a filter cannot use the property `{name}`, because its name is a reserved word"
        );
        return Err(Error::service(ServiceCode::InvalidInput, message).in_property(name));
    }
    Ok(())
}
