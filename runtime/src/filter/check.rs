//! What a filter has to be before it is sent.

use super::Filter;
use crate::{
    error::{Error, ErrorKind, Result, ServiceCode},
    limits,
};

/// Words that the service reads as something else where a property's name would stand.
pub(super) const RESERVED: [&str; 6] = ["not", "true", "false", "null", "NaN", "INF"];

impl Filter {
    /// How deep filters may be nested: `and`, `or` and `not` count.
    pub const NESTING: usize = 100;

    /// Refuses a filter whose text would not be read as the filter: one that names what is no
    /// property's name, or that is nested more than [`NESTING`](Self::NESTING) deep.
    ///
    /// # Errors
    ///
    /// `is_invalid`, naming the property; `is_too_large` for a name above 255 UTF-16 units.
    ///
    /// ```
    /// use entable::Filter;
    ///
    /// assert!(Filter::eq("LastName", "x' or true or '").check().is_ok());
    /// assert!(Filter::eq("Last Name", "Jones").check().unwrap_err().is_invalid());
    /// assert!(Filter::eq("not", "Jones").check().unwrap_err().is_invalid());
    /// ```
    pub fn check(&self) -> Result<()> {
        self.check_nesting()?;
        let mut checked = Ok(());
        self.properties(&mut |name| {
            if checked.is_ok() {
                checked = check_name(name);
            }
        });
        checked
    }

    pub(super) fn check_nesting(&self) -> Result<()> {
        let depth = self.depth();
        if depth <= Self::NESTING { Ok(()) } else { Err(too_deep(depth)) }
    }
}

pub(super) fn too_deep(found: usize) -> Error {
    let limit = Filter::NESTING;
    let message = format!(
        "the filter is nested {found} deep, the limit is {limit}; \
         join conditions with `Filter::all` and `Filter::any`"
    );
    Error::service(ServiceCode::InvalidInput, message)
}

fn check_name(name: &str) -> Result<()> {
    if matches!(name, "PartitionKey" | "RowKey" | "Timestamp") {
        return Ok(());
    }
    limits::check_property_name(name)?;
    if RESERVED.contains(&name) {
        let message = format!("filters cannot name a property `{name}`: the word is reserved");
        return Err(Error::new(ErrorKind::Invalid, message).in_property(name));
    }
    Ok(())
}
