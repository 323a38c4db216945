//! Walks filter trees of any depth without recursion: visiting, cloning, comparing, dropping.

use super::{Filter, FilterList};
use crate::edm::Value;

impl Filter {
    /// Returns the filters directly below this one.
    fn children(&self) -> &[Self] {
        match self {
            Self::And(children) | Self::Or(children) => children,
            Self::Not(child) => std::slice::from_ref(&**child),
            Self::Compare { .. }
            | Self::Property(_)
            | Self::Constant(_)
            | Self::Blind { .. }
            | Self::OutOfRange { .. } => &[],
        }
    }

    /// Calls `visit` with this filter and all filters below it, in printing order.
    pub(super) fn visit_nodes<'a>(&'a self, mut visit: impl FnMut(&'a Self)) {
        let mut rest = vec![self];
        while let Some(filter) = rest.pop() {
            visit(filter);
            // The last one pushed is visited first, so this visits from left to right.
            rest.extend(filter.children().iter().rev());
        }
    }

    /// Calls `visit` with the property of every condition, and with the literal that the property is compared with. The
    /// literal is `None` for a condition without one.
    ///
    /// ```
    /// use entable_core::Filter;
    ///
    /// let mut properties = Vec::new();
    /// Filter::parse("Age ge 30 and Active")?.visit_operands(|property, _| properties.push(property.to_owned()));
    /// assert_eq!(properties, ["Age", "Active"]);
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    pub fn visit_operands(&self, mut visit: impl FnMut(&str, Option<&Value>)) {
        self.visit_nodes(|filter| match filter {
            Self::Property(property)
            | Self::Blind { property, .. }
            | Self::OutOfRange { property, .. } => visit(property, None),
            Self::Compare { property, value, .. } => visit(property, Some(value)),
            Self::Constant(_) | Self::And(_) | Self::Or(_) | Self::Not(_) => {}
        });
    }

    /// Returns the depth of the tree. A single comparison has depth 1.
    pub(super) fn depth(&self) -> usize {
        let mut deepest = 0;
        let mut rest = vec![(self, 1)];
        while let Some((filter, depth)) = rest.pop() {
            deepest = deepest.max(depth);
            rest.extend(filter.children().iter().map(|child| (child, depth + 1)));
        }
        deepest
    }
}

/// A step of a walk that returns to a filter after its children.
enum Step<'a> {
    Visit(&'a Filter),
    Leave(&'a Filter),
}

impl Clone for Filter {
    fn clone(&self) -> Self {
        let mut done = Vec::new();
        let mut steps = vec![Step::Visit(self)];
        while let Some(step) = steps.pop() {
            match step {
                Step::Visit(filter) if filter.children().is_empty() => {
                    done.push(copy_leaf_filter(filter))
                }
                Step::Visit(filter) => {
                    steps.push(Step::Leave(filter));
                    steps.extend(filter.children().iter().rev().map(Step::Visit));
                }
                Step::Leave(filter) => {
                    let children = done.split_off(done.len() - filter.children().len());
                    done.push(rebuild_filter(filter, children));
                }
            }
        }
        // Every visited filter leaves one clone, so the root's is left.
        done.pop().unwrap_or(Self::Constant(true))
    }
}

fn copy_leaf_filter(filter: &Filter) -> Filter {
    match filter {
        Filter::Compare { property, comparison, value } => {
            Filter::compare(property.as_str(), *comparison, value.clone())
        }
        Filter::Property(name) => Filter::Property(name.clone()),
        Filter::Constant(constant) => Filter::Constant(*constant),
        Filter::Blind { property, value } => {
            Filter::Blind { property: property.clone(), value: value.clone() }
        }
        Filter::OutOfRange { property, comparison, value } => Filter::OutOfRange {
            property: property.clone(),
            comparison: *comparison,
            value: *value,
        },
        Filter::And(_) | Filter::Or(_) | Filter::Not(_) => rebuild_filter(filter, Vec::new()),
    }
}

/// Builds a filter of the kind of `like` over other children.
fn rebuild_filter(like: &Filter, mut children: Vec<Filter>) -> Filter {
    match like {
        Filter::Or(_) => Filter::Or(FilterList(children)),
        // `Not` always has one child, so the fallback is never taken.
        Filter::Not(_) => !children.pop().unwrap_or(Filter::Constant(true)),
        _ => Filter::And(FilterList(children)),
    }
}

impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        let mut rest = vec![(self, other)];
        while let Some((a, b)) = rest.pop() {
            let (of_a, of_b) = (a.children(), b.children());
            if !is_equal_apart_from_children(a, b) || of_a.len() != of_b.len() {
                return false;
            }
            rest.extend(of_a.iter().zip(of_b));
        }
        true
    }
}

/// Returns whether two filters are equal apart from their children.
fn is_equal_apart_from_children(a: &Filter, b: &Filter) -> bool {
    match (a, b) {
        (
            Filter::Compare { property: a, comparison: by_a, value: to_a },
            Filter::Compare { property: b, comparison: by_b, value: to_b },
        ) => a == b && by_a == by_b && (to_a == to_b || (is_nan(to_a) && is_nan(to_b))),
        (Filter::Property(a), Filter::Property(b)) => a == b,
        (
            Filter::Blind { property: a, value: to_a },
            Filter::Blind { property: b, value: to_b },
        ) => a == b && to_a == to_b,
        (
            Filter::OutOfRange { property: a, comparison: by_a, value: to_a },
            Filter::OutOfRange { property: b, comparison: by_b, value: to_b },
        ) => a == b && by_a == by_b && to_a == to_b,
        (Filter::Constant(a), Filter::Constant(b)) => a == b,
        (Filter::And(_), Filter::And(_))
        | (Filter::Or(_), Filter::Or(_))
        | (Filter::Not(_), Filter::Not(_)) => true,
        _ => false,
    }
}

fn is_nan(value: &Value) -> bool {
    value.as_f64().is_some_and(f64::is_nan)
}

impl Drop for Filter {
    fn drop(&mut self) {
        let mut rest = Vec::new();
        take_children(self, &mut rest);
        // Each filter is dropped without children, so the nested call of `drop` does nothing.
        while let Some(mut filter) = rest.pop() {
            take_children(&mut filter, &mut rest);
        }
    }
}

fn take_children(filter: &mut Filter, into: &mut Vec<Filter>) {
    match filter {
        Filter::And(children) | Filter::Or(children) => into.append(&mut children.0),
        // A negated leaf is dropped without deep recursion, and most negated filters are leaves.
        Filter::Not(child) if child.children().is_empty() => {}
        Filter::Not(child) => into.push(std::mem::replace(&mut **child, Filter::Constant(true))),
        Filter::Compare { .. }
        | Filter::Property(_)
        | Filter::Constant(_)
        | Filter::Blind { .. }
        | Filter::OutOfRange { .. } => {}
    }
}
