//! Rewrites conditions on RowKeys so all or none of a wide entity's parts meet them.

use std::ops::Bound;

use super::layout::{maximum_parts_of_versions, row_key_of_part};
use crate::{
    access::{Keys, RowKeys},
    edm::ValueRef,
    entity::Schema,
    filter::{Comparison, Filter},
};

/// Adjusts RowKey bounds that are keys of part 1, to select all or none of an entity's parts.
pub(crate) fn bounds_with_all_parts(schema: &'static Schema, keys: &Keys) -> Keys {
    // A RowKey that does not belong to an entity has no other parts.
    let last = |key: &str| {
        row_key_of_part(key, maximum_parts_of_versions(schema)).unwrap_or_else(|_| key.to_owned())
    };
    let lower = match keys.rows.lower() {
        Bound::Excluded(key) => Bound::Excluded(last(key)),
        other => other.map(str::to_owned),
    };
    let upper = match keys.rows.upper() {
        Bound::Included(key) => Bound::Included(last(key)),
        other => other.map(str::to_owned),
    };
    Keys { rows: RowKeys::between(lower, upper), ..keys.clone() }
}

/// Rewrites the filter's comparisons with RowKeys of part 1, to make all or none of an entity's parts meet each
/// comparison.
pub(crate) fn condition_on_all_parts(schema: &'static Schema, filter: &Filter) -> Filter {
    let each = |one: &Filter| condition_on_all_parts(schema, one);
    let Filter::Compare { property, comparison, value } = filter else {
        return match filter {
            Filter::And(all) => Filter::all(all.iter().map(each)),
            Filter::Or(any) => Filter::any(any.iter().map(each)),
            Filter::Not(filter) => !each(filter),
            other => other.clone(),
        };
    };
    let (ValueRef::String(first), "RowKey") = (value.as_ref(), property.as_str()) else {
        return filter.clone();
    };
    let last = row_key_of_part(first, maximum_parts_of_versions(schema))
        .unwrap_or_else(|_| first.to_owned());
    let is_it = || Filter::ge("RowKey", first) & Filter::le("RowKey", last.as_str());
    match comparison {
        Comparison::Eq => is_it(),
        Comparison::Ne => !is_it(),
        Comparison::Gt | Comparison::Le => Filter::compare("RowKey", *comparison, last),
        Comparison::Ge | Comparison::Lt => Filter::compare("RowKey", *comparison, first),
    }
}
