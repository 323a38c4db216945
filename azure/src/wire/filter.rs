//! Writes a filter as `$filter`, with constants folded away.

use entable_core::filter::Filter;

/// The filter of a query to the service.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum QueryFilter {
    /// All rows: the query has no `$filter`.
    All,
    /// The rows that match this `$filter`.
    Matching(String),
}

/// Converts a filter. One that is always false becomes a condition that no row fulfils, and is still sent so that a
/// missing table is an error.
pub(crate) fn to_query_filter(filter: &Filter) -> QueryFilter {
    match fold_constants(filter) {
        Filter::Constant(true) => QueryFilter::All,
        // No key sorts before the empty text.
        Filter::Constant(false) => QueryFilter::Matching("PartitionKey lt ''".to_owned()),
        filter => QueryFilter::Matching(filter.to_string()),
    }
}

/// Folds the constants `true` and `false` away, because emulators read them as names of properties.
fn fold_constants(filter: &Filter) -> Filter {
    match filter {
        Filter::And(all) => fold_list(all, false),
        Filter::Or(any) => fold_list(any, true),
        Filter::Not(inner) => match fold_constants(inner) {
            Filter::Constant(constant) => Filter::Constant(!constant),
            inner => Filter::Not(Box::new(inner)),
        },
        filter => filter.clone(),
    }
}

/// Joins the parts of an `and` (`decides` is false) or an `or` (`decides` is true). If a part is
/// the constant `decides`, the result is that constant. A part that is the other constant is left
/// out.
fn fold_list(parts: &[Filter], decides: bool) -> Filter {
    let mut kept = Vec::with_capacity(parts.len());
    for part in parts {
        match fold_constants(part) {
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
