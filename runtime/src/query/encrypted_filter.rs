//! Filters on encrypted properties: the service compares blind tokens, and the client compares the
//! decrypted values.
//!
//! Different values may share a blind token. The filter that is sent therefore finds at least the requested
//! rows, and perhaps more. Under a negation, a blind token would find fewer rows, so such a condition is not
//! sent.

use crate::{
    edm::Value,
    error::{Error, ErrorKind, Result},
    filter::Filter,
};

/// Returns the condition on the blind token of a property's value. Fails if the property has no blind token.
pub(crate) type MakeTokenCondition<'t> = &'t dyn Fn(&str, &Value) -> Result<Filter>;

/// Returns whether the filter has conditions on encrypted properties.
pub(crate) fn has_encrypted_condition(filter: &Filter) -> bool {
    match filter {
        Filter::Blind { .. } => true,
        Filter::And(terms) | Filter::Or(terms) => terms.iter().any(has_encrypted_condition),
        Filter::Not(filter) => has_encrypted_condition(filter),
        _ => false,
    }
}

/// Returns the filter to send. It matches every row that `filter` matches.
pub(crate) fn wider_filter_with_tokens(
    filter: &Filter,
    token: MakeTokenCondition<'_>,
) -> Result<Filter> {
    if has_encrypted_condition(filter) {
        approximate_filter(filter, Approximation::Wider, token)
    } else {
        Ok(filter.clone())
    }
}

/// Returns the text of the filter with blind tokens instead of encrypted values. Filters with different
/// tokens have different texts, and no text contains a value.
pub(crate) fn distinguishing_text(
    filter: &Filter,
    token: MakeTokenCondition<'_>,
) -> Result<String> {
    approximate_filter(filter, Approximation::OfText, token).map(|filter| filter.to_string())
}

/// How the rows that a filter's replacement accepts relate to the rows that the filter accepts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Approximation {
    /// The replacement is not sent. It keeps every condition and serves to distinguish filters.
    OfText,
    /// The replacement accepts every row that the filter accepts, and possibly others.
    Wider,
    /// The replacement accepts only rows that the filter accepts, but possibly not all of them.
    Narrower,
}

impl Approximation {
    const fn negated(self) -> Self {
        match self {
            Self::OfText => Self::OfText,
            Self::Wider => Self::Narrower,
            Self::Narrower => Self::Wider,
        }
    }
}

/// Replaces the conditions on encrypted properties by conditions on blind tokens.
fn approximate_filter(
    filter: &Filter,
    bound: Approximation,
    token: MakeTokenCondition<'_>,
) -> Result<Filter> {
    Ok(match filter {
        Filter::Blind { property, value } if bound != Approximation::Narrower => {
            token(property, value.expose_plaintext())?
        }
        // No narrower condition on tokens exists, because a token never proves a match.
        Filter::Blind { .. } => Filter::Constant(false),
        Filter::Not(inner) => match approximate_filter(inner, bound.negated(), token)? {
            Filter::Constant(constant) => Filter::Constant(!constant),
            inner => !inner,
        },
        Filter::And(terms) => {
            let terms = terms.iter().map(|term| approximate_filter(term, bound, token));
            join_terms(terms.collect::<Result<_>>()?, Join::And)
        }
        Filter::Or(terms) => {
            let terms = terms.iter().map(|term| approximate_filter(term, bound, token));
            join_terms(terms.collect::<Result<_>>()?, Join::Or)
        }
        other => other.clone(),
    })
}

/// Whether the terms of a filter are joined by `and` or by `or`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Join {
    And,
    Or,
}

/// Joins terms. A constant term either decides the result or is dropped.
fn join_terms(terms: Vec<Filter>, join: Join) -> Filter {
    let neutral = join == Join::And;
    let decides = |term: &Filter| matches!(term, Filter::Constant(value) if *value != neutral);
    if terms.iter().any(decides) {
        return Filter::Constant(!neutral);
    }
    let rest = terms.into_iter().filter(|term| !matches!(term, Filter::Constant(_)));
    match join {
        Join::And => Filter::all(rest),
        Join::Or => Filter::any(rest),
    }
}

/// Returns the error for a condition on an encrypted property without a blind token.
pub(crate) fn no_token_error(property: &str) -> Error {
    let message = "the property is encrypted and has no blind token to filter by; write `#[table(encrypt, blind)]` on \
                   the field";
    Error::new(ErrorKind::Invalid, message).in_property(property)
}
