//! Conditions on encrypted properties: asked for by token, and looked at again once rows are open.
//!
//! A token is shared by different values, so that what the service is asked for is wider than what
//! is wanted: where a condition is negated, it is left out of the question.

use crate::{
    edm::Value,
    error::{Error, ErrorKind, Result},
    filter::Filter,
};

/// The token of a property's value, as a condition; an error, where it has none.
pub(crate) type Token<'t> = &'t dyn Fn(&str, &Value) -> Result<Filter>;

/// Whether the filter has conditions on encrypted properties.
pub(crate) fn has_blind(filter: &Filter) -> bool {
    match filter {
        Filter::Blind { .. } => true,
        Filter::And(terms) | Filter::Or(terms) => terms.iter().any(has_blind),
        Filter::Not(filter) => has_blind(filter),
        _ => false,
    }
}

/// What the service is asked for: every row that meets the filter meets it.
pub(crate) fn widened(filter: &Filter, token: Token<'_>) -> Result<Filter> {
    if has_blind(filter) { asked(filter, true, token) } else { Ok(filter.clone()) }
}

/// A filter that is met whenever this one is (`wide`), or only if this one is.
fn asked(filter: &Filter, wide: bool, token: Token<'_>) -> Result<Filter> {
    Ok(match filter {
        Filter::Blind { property, value } if wide => token(property, value.get())?,
        Filter::Blind { .. } => Filter::Constant(false),
        Filter::Not(inner) => match asked(inner, !wide, token)? {
            Filter::Constant(constant) => Filter::Constant(!constant),
            inner => !inner,
        },
        Filter::And(terms) => {
            let terms = terms.iter().map(|term| asked(term, wide, token));
            joined(terms.collect::<Result<_>>()?, true)
        }
        Filter::Or(terms) => {
            let terms = terms.iter().map(|term| asked(term, wide, token));
            joined(terms.collect::<Result<_>>()?, false)
        }
        other => other.clone(),
    })
}

/// Terms joined without constants: one that decides is all, others say nothing.
fn joined(terms: Vec<Filter>, and: bool) -> Filter {
    let decides = |term: &Filter| matches!(term, Filter::Constant(constant) if *constant != and);
    if terms.iter().any(decides) {
        return Filter::Constant(!and);
    }
    let rest = terms.into_iter().filter(|term| !matches!(term, Filter::Constant(_)));
    if and { Filter::all(rest) } else { Filter::any(rest) }
}

/// The condition on a property that has no token.
pub(crate) fn no_token(property: &str) -> Error {
    let message = "the property is encrypted and has no token that a filter could ask for; write `#[table(encrypt, blind)]` on the field";
    Error::new(ErrorKind::Invalid, message).in_property(property)
}
