//! Evaluates a filter on a row by the service's rules.
//!
//! Unlike SQL, there is no third value for NULL. A comparison with a missing property is false, whatever
//! the operator. A stored value of another type is less than the literal. Numbers convert only from a
//! narrower literal to a wider property type. `not` is plain negation.

use std::cmp::Ordering;

use super::{Comparison, Filter, check::nesting_error};
use crate::{
    edm::ValueRef,
    error::{Error, Result},
    row::{Row, RowBytes},
};

impl Filter {
    /// Returns whether the service would return the row for this filter.
    ///
    /// # Errors
    ///
    /// `is_corrupt` for a damaged row; `is_invalid` for a filter that is nested more than
    /// [`NESTING`](Self::NESTING) deep.
    ///
    /// ```
    /// use entable_core::{Filter, Row, ValueRef};
    ///
    /// let row = Row::build("Sales", "223").with("Age", ValueRef::Int32(34))?.finish()?;
    /// assert!(Filter::ge("Age", 30).matches(&row)?);
    /// // A property that is missing answers no comparison, and `not` turns that round.
    /// assert!(!Filter::ne("Email", "a@b").matches(&row)?);
    /// assert!((!Filter::eq("Email", "a@b")).matches(&row)?);
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    pub fn matches(&self, row: &Row) -> Result<bool> {
        self.matches_bytes(row.bytes())
    }

    /// Returns whether the service would return the row whose encoded bytes are `row`.
    ///
    /// ```
    /// use entable_core::{Filter, Row, row::RowBytes};
    ///
    /// let row = Row::build("Sales", "223").finish()?;
    /// let filter = Filter::parse("PartitionKey eq 'Sales'")?;
    /// assert!(filter.matches_bytes(RowBytes::new(&row.as_bytes())?)?);
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails like [`matches`](Self::matches).
    pub fn matches_bytes(&self, row: RowBytes<'_>) -> Result<bool> {
        self.matches_values(&|name| lookup_value(row, name))
    }

    /// Returns whether the service would return the row whose values `value_of` looks up: those of `PartitionKey`,
    /// `RowKey`, `Timestamp` and of properties, by name. A store that keeps rows in a format of its own then makes a
    /// [`Row`] only of those that match.
    ///
    /// ```
    /// use entable_core::{Error, Filter, ValueRef};
    ///
    /// let value_of = |name: &str| Ok::<_, Error>((name == "Age").then_some(ValueRef::Int32(34)));
    /// assert!(Filter::ge("Age", 30).matches_values(&value_of)?);
    /// assert!(!Filter::ge("Salary", 30).matches_values(&value_of)?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_invalid` for a filter that is nested more than [`NESTING`](Self::NESTING) deep, and the errors of
    /// `value_of`.
    pub fn matches_values<'r>(
        &self,
        value_of: &impl Fn(&str) -> Result<Option<ValueRef<'r>>>,
    ) -> Result<bool> {
        let matched = self.matches_within(value_of, Self::NESTING);
        // The evaluation stops at the first part that is too deep. Another part may be deeper.
        matched.map_err(|error| self.check_nesting().err().unwrap_or(error))
    }

    /// Evaluates a filter that may be at most `depth` deep.
    fn matches_within<'r>(
        &self,
        value_of: &impl Fn(&str) -> Result<Option<ValueRef<'r>>>,
        depth: usize,
    ) -> Result<bool> {
        let Some(below) = depth.checked_sub(1) else { return Err(self.error_too_deep()) };
        match self {
            Self::Constant(constant) => Ok(*constant),
            // A name alone matches in the service only as the Boolean `true`, whatever else is
            // stored.
            Self::Property(name) => Ok(value_of(name)? == Some(ValueRef::Boolean(true))),
            Self::Compare { property, comparison, value } => {
                let stored = value_of(property)?;
                // In the service, every comparison with a missing property is false, even `ne`.
                Ok(stored.is_some_and(|stored| {
                    comparison_holds(*comparison, compare_values(stored, value.as_ref()))
                }))
            }
            Self::Blind { property, value } => {
                let stored = value_of(property)?;
                Ok(stored.is_some_and(|stored| {
                    comparison_holds(
                        Comparison::Eq,
                        compare_values(stored, value.expose_plaintext().as_ref()),
                    )
                }))
            }
            Self::OutOfRange { property, comparison, value } => {
                Self::resolve_key_only_comparison(property, *comparison, *value)
                    .matches_within(value_of, depth)
            }
            Self::And(all) => {
                for filter in all {
                    if !filter.matches_within(value_of, below)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Or(any) => {
                for filter in any {
                    if filter.matches_within(value_of, below)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::Not(filter) => Ok(!filter.matches_within(value_of, below)?),
        }
    }

    /// Returns the error for a filter that is too deep. `self` is its first part below
    /// [`NESTING`](Self::NESTING) levels.
    fn error_too_deep(&self) -> Error {
        nesting_error(Self::NESTING + self.depth())
    }
}

fn lookup_value<'r>(row: RowBytes<'r>, name: &str) -> Result<Option<ValueRef<'r>>> {
    match name {
        "PartitionKey" => Ok(Some(ValueRef::String(row.partition_key()))),
        "RowKey" => Ok(Some(ValueRef::String(row.row_key()))),
        "Timestamp" => Ok(row.timestamp().map(ValueRef::DateTime)),
        _ => row.get(name),
    }
}

/// Returns whether an order satisfies a comparison. `None` means not comparable, as NaN is; then
/// only `ne` holds. The service's rule for NaN is not known, so this follows IEEE 754.
fn comparison_holds(comparison: Comparison, order: Option<Ordering>) -> bool {
    match comparison {
        Comparison::Eq => order == Some(Ordering::Equal),
        Comparison::Ne => order != Some(Ordering::Equal),
        Comparison::Gt => order == Some(Ordering::Greater),
        Comparison::Ge => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        Comparison::Lt => order == Some(Ordering::Less),
        Comparison::Le => matches!(order, Some(Ordering::Less | Ordering::Equal)),
    }
}

/// Compares a stored value with a literal by the service's rules. A narrower number literal is widened to
/// the stored type. An Int64 literal is compared with a stored Double without rounding. For any other pair
/// of types the stored value is `Less`, as in the service. Returns `None` if a stored NaN is compared with
/// a number, or a stored Double with NaN.
fn compare_values(stored: ValueRef<'_>, literal: ValueRef<'_>) -> Option<Ordering> {
    use ValueRef::{Binary, Boolean, DateTime, Double, Guid, Int32, Int64, String};
    match (stored, literal) {
        (Boolean(a), Boolean(b)) => Some(a.cmp(&b)),
        (Int32(a), Int32(b)) => Some(a.cmp(&b)),
        (Int64(a), Int64(b)) => Some(a.cmp(&b)),
        (Int64(a), Int32(b)) => Some(a.cmp(&i64::from(b))),
        (Double(a), Double(b)) => a.partial_cmp(&b),
        (Double(a), Int32(b)) => a.partial_cmp(&f64::from(b)),
        (Double(a), Int64(b)) => compare_wide(a, b),
        (String(a), String(b)) => Some(compare_utf16(a, b)),
        (DateTime(a), DateTime(b)) => Some(a.cmp(&b)),
        (Guid(a), Guid(b)) => Some(a.cmp(&b)),
        (Binary(a), Binary(b)) => Some(a.cmp(b)),
        _ => Some(Ordering::Less),
    }
}

/// Compares a double with a 64-bit integer exactly, without rounding the integer.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
fn compare_wide(a: f64, b: i64) -> Option<Ordering> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if a.is_nan() {
        return None;
    }
    if a >= LIMIT {
        return Some(Ordering::Greater);
    }
    if a < -LIMIT {
        return Some(Ordering::Less);
    }
    // `a` is within Int64 here, so the cast below is exact.
    let whole = a.trunc();
    Some((whole as i64).cmp(&b).then_with(|| a.partial_cmp(&whole).unwrap_or(Ordering::Equal)))
}

/// Compares texts as the service does, by UTF-16 units.
///
/// ```
/// use entable_core::filter::compare_utf16;
///
/// // The order of UTF-8 is the other way round.
/// assert!(compare_utf16("\u{1f600}", "\u{ffff}").is_lt());
/// ```
pub fn compare_utf16(a: &str, b: &str) -> Ordering {
    if a.is_ascii() && b.is_ascii() { a.cmp(b) } else { a.encode_utf16().cmp(b.encode_utf16()) }
}
