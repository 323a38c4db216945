//! A filter as the service takes it: constants folded away.

use crate::filter::Filter;

/// Which rows are asked for.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::backend::azure) enum QueryFilter {
    /// All of them: no `$filter`.
    All,
    /// Those that match this text.
    Matching(String),
}

/// What a filter asks for. One that matches nothing is sent all the same: a missing table is an
/// error then too.
pub(in crate::backend::azure) fn to_query_filter(filter: &Filter) -> QueryFilter {
    match fold(filter) {
        Filter::Constant(true) => QueryFilter::All,
        Filter::Constant(false) => QueryFilter::Matching("PartitionKey lt ''".to_owned()),
        filter => QueryFilter::Matching(filter.to_string()),
    }
}

/// The filter without `true` and `false` inside: emulators read them as names of properties.
fn fold(filter: &Filter) -> Filter {
    match filter {
        Filter::And(all) => fold_list(all, false),
        Filter::Or(any) => fold_list(any, true),
        Filter::Not(inner) => match fold(inner) {
            Filter::Constant(constant) => Filter::Constant(!constant),
            inner => Filter::Not(Box::new(inner)),
        },
        filter => filter.clone(),
    }
}

/// A list in which the constant `decides` makes the whole, and its opposite says nothing.
fn fold_list(parts: &[Filter], decides: bool) -> Filter {
    let mut kept = Vec::with_capacity(parts.len());
    for part in parts {
        match fold(part) {
            Filter::Constant(constant) if constant == decides => return Filter::Constant(decides),
            Filter::Constant(_) => {}
            part => kept.push(part),
        }
    }
    if decides { Filter::any(kept) } else { Filter::all(kept) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_fold_away() {
        let point = Filter::eq("RowKey", "1");
        let all = Filter::Constant(true);
        assert_eq!(to_query_filter(&all), QueryFilter::All);
        assert_eq!(
            to_query_filter(&(all.clone() & point.clone())),
            QueryFilter::Matching("RowKey eq '1'".into())
        );
        assert_eq!(to_query_filter(&(all.clone() | point.clone())), QueryFilter::All);
        assert_eq!(to_query_filter(&!all), QueryFilter::Matching("PartitionKey lt ''".into()));
    }
}
