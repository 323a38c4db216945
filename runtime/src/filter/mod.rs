//! Filters: a tree of comparisons that prints as OData, parses back, and is evaluated by the
//! service's own rules.
//!
//! A tree may be as deep as memory is large: whatever walks it without being able to fail (print,
//! clone, compare, drop) does so without recursion; what can fail refuses trees that are nested
//! deeper than [`Filter::NESTING`].

mod bounds;
mod check;
mod eval;
mod lex;
mod parse;
mod print;
mod tree;

use std::{
    fmt,
    ops::{BitAnd, BitOr, Deref, Not},
};

pub use bounds::KeyBounds;

use crate::edm::Value;

/// One of the six comparisons of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// equal
    Eq,
    /// not equal
    Ne,
    /// greater
    Gt,
    /// greater or equal
    Ge,
    /// less
    Lt,
    /// less or equal
    Le,
}

impl Comparison {
    /// All six.
    pub const ALL: [Self; 6] = [Self::Eq, Self::Ne, Self::Gt, Self::Ge, Self::Lt, Self::Le];

    /// The operator on the wire: `eq`, `ne`, `gt`, `ge`, `lt`, `le`.
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

    /// The comparison with its sides exchanged.
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
}

/// A condition on rows.
///
/// Prints as the service wants it, parses what the service takes, and says of a row what the
/// service would say. Typed filters come from an entity's columns; this is the untyped form.
///
/// ```
/// use entable::Filter;
///
/// let sales = Filter::eq("PartitionKey", "Sales");
/// let names = Filter::ge("RowKey", "B") & Filter::lt("RowKey", "C");
/// let filter = Filter::all([sales, names]);
/// assert_eq!(
///     filter.to_string(),
///     "(PartitionKey eq 'Sales') and ((RowKey ge 'B') and (RowKey lt 'C'))"
/// );
/// assert_eq!(Filter::parse(&filter.to_string())?, filter);
/// # Ok::<(), entable::Error>(())
/// ```
///
/// Two filters are equal where they are the same tree; `NaN` equals itself here, as it does not in a
/// comparison.
#[non_exhaustive]
pub enum Filter {
    /// A property against a value.
    Compare {
        /// The property's name.
        property: String,
        /// How they are compared.
        comparison: Comparison,
        /// The value.
        value: Value,
    },
    /// A Boolean property that is true.
    Property(String),
    /// Always or never.
    Constant(bool),
    /// All of these: [`Filter::all`] and `&` make it.
    And(Terms),
    /// Any of these: [`Filter::any`] and `|` make it.
    Or(Terms),
    /// Not this.
    Not(Box<Filter>),
    /// A property that is stored encrypted equals a value: typed queries find it by its token.
    Blind {
        /// The property's name.
        property: String,
        /// The value, which nothing prints.
        value: BlindValue,
    },
}

/// The value of a condition on an encrypted property. It is compared and never shown.
#[derive(Clone, PartialEq)]
pub struct BlindValue(Value);

impl BlindValue {
    pub(crate) fn new(value: Value) -> Self {
        Self(value)
    }

    pub(crate) fn get(&self) -> &Value {
        &self.0
    }
}

impl fmt::Debug for BlindValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BlindValue(..)")
    }
}

/// What an `and` or an `or` joins: two filters at least, so that what is printed is read back as it
/// was.
pub struct Terms(Vec<Filter>);

impl Deref for Terms {
    type Target = [Filter];

    fn deref(&self) -> &[Filter] {
        &self.0
    }
}

impl<'a> IntoIterator for &'a Terms {
    type Item = &'a Filter;
    type IntoIter = std::slice::Iter<'a, Filter>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl fmt::Debug for Terms {
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
    /// The property equals the value.
    eq => Eq;
    /// The property is there and differs from the value.
    ne => Ne;
    /// The property is greater.
    gt => Gt;
    /// The property is greater or equal.
    ge => Ge;
    /// The property is less, or of another type.
    lt => Lt;
    /// The property is less or equal, or of another type.
    le => Le;
}

impl Filter {
    /// A property against a value.
    pub fn compare(
        property: impl Into<String>,
        comparison: Comparison,
        value: impl Into<Value>,
    ) -> Self {
        Self::Compare { property: property.into(), comparison, value: value.into() }
    }

    /// All of the given filters; grouping is kept. None: always true. One: that one.
    pub fn all(filters: impl IntoIterator<Item = Self>) -> Self {
        match one_or_many(filters) {
            Ok(one) => one.unwrap_or(Self::Constant(true)),
            Err(all) => Self::And(Terms(all)),
        }
    }

    /// Any of the given filters; grouping is kept. None: never true. One: that one.
    pub fn any(filters: impl IntoIterator<Item = Self>) -> Self {
        match one_or_many(filters) {
            Ok(one) => one.unwrap_or(Self::Constant(false)),
            Err(any) => Self::Or(Terms(any)),
        }
    }

    /// Joins two filters into one list of conditions, as `a and b and c` is read.
    ///
    /// ```
    /// use entable::Filter;
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
        Self::And(Terms(all))
    }

    /// What an `and` joins; any other filter is its own only condition.
    fn into_conditions(mut self) -> Vec<Self> {
        match &mut self {
            Self::And(all) => std::mem::take(&mut all.0),
            _ => vec![self],
        }
    }

    /// Visits every property that the filter names.
    pub fn properties<'a>(&'a self, visit: &mut dyn FnMut(&'a str)) {
        self.each(|filter| match filter {
            Self::Compare { property, .. }
            | Self::Property(property)
            | Self::Blind { property, .. } => visit(property),
            Self::Constant(_) | Self::And(_) | Self::Or(_) | Self::Not(_) => {}
        });
    }
}

fn one_or_many(filters: impl IntoIterator<Item = Filter>) -> Result<Option<Filter>, Vec<Filter>> {
    let mut filters: Vec<Filter> = filters.into_iter().collect();
    if filters.len() > 1 { Err(filters) } else { Ok(filters.pop()) }
}

impl BitAnd for Filter {
    type Output = Self;

    /// Both; a chain of `&` is one list.
    fn bitand(mut self, other: Self) -> Self {
        match &mut self {
            Self::And(all) => {
                all.0.push(other);
                self
            }
            _ => Self::And(Terms(vec![self, other])),
        }
    }
}

impl BitOr for Filter {
    type Output = Self;

    /// Either; a chain of `|` is one list.
    fn bitor(mut self, other: Self) -> Self {
        match &mut self {
            Self::Or(any) => {
                any.0.push(other);
                self
            }
            _ => Self::Or(Terms(vec![self, other])),
        }
    }
}

impl Not for Filter {
    type Output = Self;

    fn not(self) -> Self {
        Self::Not(Box::new(self))
    }
}
