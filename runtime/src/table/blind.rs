//! Conditions on encrypted properties: asked for by token, and looked at again once rows are open.
//!
//! A token is shared by different values, so that what the service is asked for is wider than what
//! is wanted: where a condition is negated, it is left out of the question.

use super::request::Request;
use crate::{
    edm::Value,
    entity::Access,
    error::{Error, ErrorKind, Result},
    filter::Filter,
};

/// The token of a property's value, as a condition; an error, where it has none.
pub(super) type Token<'t> = &'t dyn Fn(&str, &Value) -> Result<Filter>;

/// Whether the filter has conditions on encrypted properties.
pub(super) fn has_blind(filter: &Filter) -> bool {
    match filter {
        Filter::Blind { .. } => true,
        Filter::And(terms) | Filter::Or(terms) => terms.iter().any(has_blind),
        Filter::Not(filter) => has_blind(filter),
        _ => false,
    }
}

/// What the service is asked for: every row that meets the filter meets it.
pub(super) fn widened(filter: &Filter, token: Token<'_>) -> Result<Filter> {
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
pub(super) fn no_token(property: &str) -> Error {
    let message = "the property is encrypted and has no token that a filter could ask for; write `#[table(encrypt, blind)]` on the field";
    Error::new(ErrorKind::Invalid, message).in_property(property)
}

impl Request {
    /// The condition on the token that stands beside a property.
    pub(super) fn companion(&self, property: &str, token: &str) -> Result<Filter> {
        let column = self.schema.and_then(|schema| schema.sealed_column(property));
        match column.and_then(|column| column.companion) {
            Some((name, _)) => Ok(Filter::eq(name, token)),
            None => Err(no_token(property)),
        }
    }

    /// A condition without a type: refused where it is known to ask for what is stored encrypted.
    pub(super) fn untyped<'c>(&self, condition: &'c Filter) -> Result<&'c Filter> {
        let mut refused = Ok(condition);
        condition.properties(&mut |property| {
            let is_declared = || {
                self.members.is_some_and(|members| {
                    members.schemas().iter().any(|schema| schema.sealed_column(property).is_some())
                })
            };
            let partition_key = self.access.keys.partition.as_deref().unwrap_or_default();
            if is_declared() || self.client.vault.chooses(partition_key, "", property) {
                let message = "the property is stored encrypted, which a filter cannot look into; compare it after it was read";
                refused = Err(Error::new(ErrorKind::Invalid, message).in_property(property));
            }
        });
        refused
    }

    /// The path with the tokens of its keys.
    pub(super) async fn keyed(&self, access: &Access) -> Result<Access> {
        match self.schema.or(self.tokens) {
            Some(schema) if access.is_open() => self.client.tokens().await?.path(schema, access),
            _ if access.is_open() => {
                let message =
                    "the path has a token in its keys, which only a query of its own type can make";
                Err(Error::new(ErrorKind::Invalid, message))
            }
            _ => Ok(access.clone()),
        }
    }

    /// What rows have to meet once they are open, where the service is asked for more.
    pub(super) fn after_opening(&self) -> Result<Option<Filter>> {
        if self.is_list() || !self.conditions.iter().any(has_blind) {
            return Ok(None);
        }
        self.condition_on(self.access.family.map_or_else(
            || match self.schema {
                Some(schema) => schema.primary(),
                None => Err(Error::new(ErrorKind::Invalid, "the path has no rows")),
            },
            Ok,
        )?)
        .map(Some)
    }

    /// The filter with all tokens that it needs.
    pub(super) async fn sent_filter(&self) -> Result<Filter> {
        let access = self.keyed(&self.access).await?;
        if !self.conditions.iter().any(has_blind) {
            return self.filter_of(&access, &|property, _| Err(no_token(property)));
        }
        let tokens = self.client.tokens().await?;
        let token = |property: &str, value: &Value| {
            let column = self.schema.and_then(|schema| schema.sealed_column(property));
            let companion = column.and_then(|column| column.companion);
            let (Some(schema), Some((name, chars))) = (self.schema, companion) else {
                return Err(no_token(property));
            };
            let token = tokens.short(schema.table, property, value.as_ref(), chars)?;
            Ok(Filter::eq(name, token))
        };
        self.filter_of(&access, &token)
    }
}
