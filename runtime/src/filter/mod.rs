//! Filters: a tree of comparisons that prints as OData, parses back, and is evaluated by the
//! service's own rules.

mod bounds;
mod check;
mod eval;
mod lex;
mod parse;
mod print;

use std::ops::{BitAnd, BitOr, Not};

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
#[derive(Debug, Clone, PartialEq)]
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
    /// All of these.
    And(Vec<Filter>),
    /// Any of these.
    Or(Vec<Filter>),
    /// Not this.
    Not(Box<Filter>),
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

    /// All of the given filters; grouping is kept. None: always true.
    pub fn all(filters: impl IntoIterator<Item = Self>) -> Self {
        let mut filters: Vec<Self> = filters.into_iter().collect();
        match (filters.pop(), filters.is_empty()) {
            (None, _) => Self::Constant(true),
            (Some(only), true) => only,
            (Some(last), false) => {
                filters.push(last);
                Self::And(filters)
            }
        }
    }

    /// Any of the given filters; grouping is kept. None: never true.
    pub fn any(filters: impl IntoIterator<Item = Self>) -> Self {
        let mut filters: Vec<Self> = filters.into_iter().collect();
        match (filters.pop(), filters.is_empty()) {
            (None, _) => Self::Constant(false),
            (Some(only), true) => only,
            (Some(last), false) => {
                filters.push(last);
                Self::Or(filters)
            }
        }
    }

    /// Joins two filters into one list of conditions, as `a and b and c` is read.
    #[must_use]
    pub fn and_all(self, other: Self) -> Self {
        match (self, other) {
            (Self::Constant(true), other) => other,
            (this, Self::Constant(true)) => this,
            (Self::And(mut all), Self::And(more)) => {
                all.extend(more);
                Self::And(all)
            }
            (Self::And(mut all), other) => {
                all.push(other);
                Self::And(all)
            }
            (this, Self::And(more)) => Self::And([vec![this], more].concat()),
            (this, other) => Self::And(vec![this, other]),
        }
    }

    /// Visits every property that the filter names.
    pub fn properties<'a>(&'a self, visit: &mut dyn FnMut(&'a str)) {
        match self {
            Self::Compare { property, .. } | Self::Property(property) => visit(property),
            Self::Constant(_) => {}
            Self::And(all) | Self::Or(all) => all.iter().for_each(|f| f.properties(visit)),
            Self::Not(filter) => filter.properties(visit),
        }
    }
}

impl BitAnd for Filter {
    type Output = Self;

    /// Both; a chain of `&` is one list.
    fn bitand(self, other: Self) -> Self {
        match self {
            Self::And(mut all) => {
                all.push(other);
                Self::And(all)
            }
            this => Self::And(vec![this, other]),
        }
    }
}

impl BitOr for Filter {
    type Output = Self;

    /// Either; a chain of `|` is one list.
    fn bitor(self, other: Self) -> Self {
        match self {
            Self::Or(mut any) => {
                any.push(other);
                Self::Or(any)
            }
            this => Self::Or(vec![this, other]),
        }
    }
}

impl Not for Filter {
    type Output = Self;

    fn not(self) -> Self {
        Self::Not(Box::new(self))
    }
}
