//! Defines [`Filter`], a tree of comparisons, and its operators.

use std::{
    fmt,
    ops::{BitAnd, BitOr, Deref, Not},
};

use crate::{
    edm::{KeyOnlyValue, OutOfRangeSide, Ticks, Value},
    key::text_successor,
};

/// One of the service's six comparison operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// Equal, `eq`.
    Eq,
    /// Not equal, `ne`.
    Ne,
    /// Greater than, `gt`.
    Gt,
    /// Greater than or equal, `ge`.
    Ge,
    /// Less than, `lt`.
    Lt,
    /// Less than or equal, `le`.
    Le,
}

impl Comparison {
    /// All six operators.
    pub const ALL: [Self; 6] = [Self::Eq, Self::Ne, Self::Gt, Self::Ge, Self::Lt, Self::Le];

    /// Returns the operator as written in a request: `eq`, `ne`, `gt`, `ge`, `lt` or `le`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Eq => "eq",
            Self::Ne => "ne",
            Self::Gt => "gt",
            Self::Ge => "ge",
            Self::Lt => "lt",
            Self::Le => "le",
        }
    }

    /// Returns the operator that holds when the two sides are exchanged, such as `lt` for `gt`.
    #[must_use]
    pub const fn mirrored(self) -> Self {
        match self {
            Self::Gt => Self::Lt,
            Self::Ge => Self::Le,
            Self::Lt => Self::Gt,
            Self::Le => Self::Ge,
            Self::Eq | Self::Ne => self,
        }
    }

    /// Returns whether `value <comparison> literal` is true for every value that a property can
    /// hold, if the literal is out of their range: below or above it, as `side` says.
    #[doc(hidden)]
    pub const fn holds_for_out_of_range(self, side: OutOfRangeSide) -> bool {
        match (self, side) {
            (Self::Ne, _)
            | (Self::Lt | Self::Le, OutOfRangeSide::Above)
            | (Self::Gt | Self::Ge, OutOfRangeSide::Below) => true,
            (Self::Eq, _)
            | (Self::Gt | Self::Ge, OutOfRangeSide::Above)
            | (Self::Lt | Self::Le, OutOfRangeSide::Below) => false,
        }
    }
}

/// A condition on rows, untyped.
///
/// It prints as the service expects it, parses what the service accepts, and matches the rows that
/// the service would return. Typed filters are made from an entity's columns.
///
/// ```
/// use entable_core::Filter;
///
/// let sales = Filter::eq("PartitionKey", "Sales");
/// let names = Filter::ge("RowKey", "B") & Filter::lt("RowKey", "C");
/// let filter = Filter::all([sales, names]);
/// assert_eq!(
///     filter.to_string(),
///     "(PartitionKey eq 'Sales') and ((RowKey ge 'B') and (RowKey lt 'C'))"
/// );
/// assert_eq!(Filter::parse(&filter.to_string())?, filter);
/// # Ok::<(), entable_core::Error>(())
/// ```
///
/// Two filters are equal if their trees are equal. For this, `NaN` is equal to `NaN`. When a filter
/// is matched with a row, `NaN` is not equal to `NaN`.
#[non_exhaustive]
pub enum Filter {
    /// A comparison of a property with a value.
    Compare {
        /// The name of the property.
        property: String,
        /// The comparison operator.
        comparison: Comparison,
        /// The value that the property is compared with.
        value: Value,
    },
    /// True if the Boolean property of this name is true.
    Property(String),
    /// True or false for every row.
    Constant(bool),
    /// True if all filters of the list are true. Made by [`Filter::all`] and `&`.
    And(FilterList),
    /// True if any filter of the list is true. Made by [`Filter::any`] and `|`.
    Or(FilterList),
    /// True if the inner filter is false.
    Not(Box<Filter>),
    /// True if a property that is stored encrypted equals a value. Typed queries replace it by a
    /// condition on the blind token of the value.
    Blind {
        /// The name of the property.
        property: String,
        /// The value, which is never printed.
        value: BlindValue,
    },
    /// A comparison with a value that no property can hold. Keys can hold it: typed queries replace
    /// the condition by one on the key where the key holds the field. Elsewhere no row meets it, or
    /// every row that has the property.
    #[doc(hidden)]
    OutOfRange {
        /// The name of the property.
        property: String,
        /// The comparison operator.
        comparison: Comparison,
        /// The value that the property is compared with.
        value: KeyOnlyValue,
    },
}

/// The value of an encrypted property in a condition, or of a hashed field in a path. A blind token replaces it
/// in the request. `Debug` does not show the value.
#[derive(Clone, PartialEq)]
pub struct BlindValue(Value);

impl BlindValue {
    /// Wraps a value that becomes a blind token.
    #[doc(hidden)]
    pub fn new(value: Value) -> Self {
        Self(value)
    }

    /// Returns the value in plain text.
    #[doc(hidden)]
    pub fn expose_plaintext(&self) -> &Value {
        &self.0
    }
}

impl fmt::Debug for BlindValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BlindValue(..)")
    }
}

/// The operands of an `and` or an `or`. There are at least two: a list of one would print as its only filter,
/// and that text would parse as another tree.
pub struct FilterList(pub(super) Vec<Filter>);

impl Deref for FilterList {
    type Target = [Filter];

    fn deref(&self) -> &[Filter] {
        &self.0
    }
}

impl<'a> IntoIterator for &'a FilterList {
    type Item = &'a Filter;
    type IntoIter = std::slice::Iter<'a, Filter>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl fmt::Debug for FilterList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}

macro_rules! comparisons {
    ($($(#[$doc:meta])* $name:ident => $comparison:ident;)*) => {
        impl Filter {
            $($(#[$doc])*
            pub fn $name(property: impl Into<String>, value: impl Into<Value>) -> Self {
                Self::compare(property, Comparison::$comparison, value)
            })*
        }
    };
}

comparisons! {
    /// Requires that the property equals the value.
    eq => Eq;
    /// Requires that the row has the property and that it differs from the value.
    ne => Ne;
    /// Requires that the property is greater than the value.
    gt => Gt;
    /// Requires that the property is greater than or equal to the value.
    ge => Ge;
    /// Requires that the property is less than the value, or has another type.
    lt => Lt;
    /// Requires that the property is less than or equal to the value, or has another type.
    le => Le;
}

impl Filter {
    /// Compares a property with a value.
    ///
    /// ```
    /// # use entable_core::{Comparison, Filter};
    /// let adults = Filter::compare("Age", Comparison::Ge, 18);
    /// assert_eq!(adults.to_string(), "Age ge 18");
    /// ```
    pub fn compare(
        property: impl Into<String>,
        comparison: Comparison,
        value: impl Into<Value>,
    ) -> Self {
        Self::Compare { property: property.into(), comparison, value: value.into() }
    }

    /// Requires that the property is a text that begins with `prefix`. Case-sensitive. The service has no such
    /// operator, so the condition is a range of texts.
    ///
    /// ```
    /// # use entable_core::Filter;
    /// let jones = Filter::starts_with("LastName", "Jo");
    /// assert_eq!(jones.to_string(), "(LastName ge 'Jo') and (LastName lt 'Jp')");
    /// ```
    pub fn starts_with(property: impl Into<String>, prefix: impl AsRef<str>) -> Self {
        let (property, prefix) = (property.into(), prefix.as_ref());
        // A value of another type meets `lt` and never `ge`, so only texts meet both.
        let upper = text_successor(prefix).map(|above| Self::lt(property.as_str(), above));
        Self::all([Self::ge(property, prefix)].into_iter().chain(upper))
    }

    /// Joins filters with `and`. A filter that is itself an `and` stays one operand; use
    /// [`and_all`](Self::and_all) to flatten it. Without filters, the result is always true. A single filter is
    /// returned unchanged.
    ///
    /// ```
    /// # use entable_core::{Comparison, Filter};
    /// let all = Filter::all([Filter::eq("Age", 30), Filter::eq("LastName", "Hall")]);
    /// assert_eq!(all.to_string(), "(Age eq 30) and (LastName eq 'Hall')");
    /// ```
    pub fn all(filters: impl IntoIterator<Item = Self>) -> Self {
        match single_filter_or_list(filters) {
            Ok(one) => one.unwrap_or(Self::Constant(true)),
            Err(all) => Self::And(FilterList(all)),
        }
    }

    /// Joins filters with `or` and keeps their grouping. Without filters, the result is never true. A single
    /// filter is returned unchanged.
    ///
    /// ```
    /// # use entable_core::{Comparison, Filter};
    /// let any = Filter::any([Filter::eq("Age", 30), Filter::eq("Age", 31)]);
    /// assert_eq!(any.to_string(), "(Age eq 30) or (Age eq 31)");
    /// ```
    pub fn any(filters: impl IntoIterator<Item = Self>) -> Self {
        match single_filter_or_list(filters) {
            Ok(one) => one.unwrap_or(Self::Constant(false)),
            Err(any) => Self::Or(FilterList(any)),
        }
    }

    /// Joins two filters with `and` into one flat list of conditions, as `a and b and c` is read.
    ///
    /// ```
    /// use entable_core::Filter;
    ///
    /// let keys = Filter::eq("PartitionKey", "Sales") & Filter::ge("RowKey", "B");
    /// let both = keys.and_all(Filter::ge("Age", 30) & Filter::lt("Age", 40));
    /// assert_eq!(
    ///     both.to_string(),
    ///     "(PartitionKey eq 'Sales') and (RowKey ge 'B') and (Age ge 30) and (Age lt 40)"
    /// );
    /// ```
    #[must_use]
    pub fn and_all(self, other: Self) -> Self {
        if self == Self::Constant(true) {
            return other;
        }
        if other == Self::Constant(true) {
            return self;
        }
        let mut all = self.into_conditions();
        all.extend(other.into_conditions());
        Self::And(FilterList(all))
    }

    /// Returns the filters that an `and` joins, or any other filter alone.
    fn into_conditions(mut self) -> Vec<Self> {
        match &mut self {
            // A type with `Drop` cannot be taken apart, so the list is taken out of it.
            Self::And(all) => std::mem::take(&mut all.0),
            _ => vec![self],
        }
    }

    /// Returns the condition for the comparison of a property with `value`, which a key can hold and no
    /// property: a number above the largest Int64, or a time before 1601. `value` lies above or below all
    /// that the property can hold, so the condition selects either no row or every row that has the property.
    #[doc(hidden)]
    pub fn resolve_key_only_comparison(
        property: &str,
        comparison: Comparison,
        value: KeyOnlyValue,
    ) -> Self {
        if comparison.holds_for_out_of_range(value.out_of_range_side()) {
            let first: Value = match value {
                KeyOnlyValue::AboveInt64(_) => i64::MIN.into(),
                KeyOnlyValue::Before1601(_) => Ticks::MIN_PROPERTY.into(),
            };
            // No Int64 or DateTime is less than `first`, so this holds wherever the property has
            // that type, and nowhere without the property.
            Self::ge(property, first)
        } else {
            Self::Constant(false)
        }
    }

    /// Calls `visit` with the name of every property in the filter, repeated names included.
    ///
    /// ```
    /// # use entable_core::{Comparison, Filter};
    /// let filter = Filter::all([Filter::eq("Age", 30), Filter::eq("LastName", "Hall")]);
    /// let mut names = Vec::new();
    /// filter.visit_properties(&mut |name| names.push(name));
    /// assert_eq!(names, ["Age", "LastName"]);
    /// ```
    pub fn visit_properties<'a>(&'a self, visit: &mut dyn FnMut(&'a str)) {
        self.visit_nodes(|filter| match filter {
            Self::Compare { property, .. }
            | Self::Property(property)
            | Self::Blind { property, .. }
            | Self::OutOfRange { property, .. } => visit(property),
            Self::Constant(_) | Self::And(_) | Self::Or(_) | Self::Not(_) => {}
        });
    }
}

fn single_filter_or_list(
    filters: impl IntoIterator<Item = Filter>,
) -> Result<Option<Filter>, Vec<Filter>> {
    let mut filters: Vec<Filter> = filters.into_iter().collect();
    if filters.len() > 1 { Err(filters) } else { Ok(filters.pop()) }
}

impl BitAnd for Filter {
    type Output = Self;

    /// Joins two filters with `and`. A chain of `&` makes one flat list.
    fn bitand(mut self, other: Self) -> Self {
        match &mut self {
            Self::And(all) => {
                // A chain of `&` stays one level deep, because the depth of a filter is limited.
                all.0.push(other);
                self
            }
            _ => Self::And(FilterList(vec![self, other])),
        }
    }
}

impl BitOr for Filter {
    type Output = Self;

    /// Joins two filters with `or`. A chain of `|` makes one flat list.
    fn bitor(mut self, other: Self) -> Self {
        match &mut self {
            Self::Or(any) => {
                // A chain of `|` stays one level deep, because the depth of a filter is limited.
                any.0.push(other);
                self
            }
            _ => Self::Or(FilterList(vec![self, other])),
        }
    }
}

impl Not for Filter {
    type Output = Self;

    fn not(self) -> Self {
        Self::Not(Box::new(self))
    }
}
