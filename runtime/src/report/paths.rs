//! Lists the access paths of an entity type with their cost classes, filters and requests.

use super::{example::example_key, model::PathModel};
use crate::{
    access::{CostClass, Keys},
    entity::Schema,
    filter::Filter,
    key::{Form, RowFamily, Segment, Template},
    query::conditions::type_condition,
};

const A_PAGE: &str = "1 for each 1,000 rows";

/// Returns the paths by key, and the scan of the table as the last. Each row family has one path for each
/// number of RowKey parts that a caller can give, from all parts down to none. A list has only the path with
/// all parts.
pub(super) fn paths_of(schema: &'static Schema) -> Vec<PathModel> {
    let mut paths: Vec<PathModel> =
        schema.families.iter().flat_map(|family| paths_of_family(schema, family)).collect();
    let whole = Keys::whole_table();
    let primary = schema.families.first();
    let filter = primary.map(|primary| filter_of(schema, primary, &whole).to_string());
    let requests = match schema.dated {
        Some(_) => format!("{A_PAGE} of one table, which `table_named` opens"),
        None => format!("{A_PAGE} of the table"),
    };
    paths.push(PathModel {
        entry: format!("{}::scan()", schema.entity),
        given: Vec::new(),
        class: CostClass::TableScan.to_string(),
        filter: filter.unwrap_or_default(),
        requests,
    });
    paths
}

/// Returns the name of the method that begins a path of the family.
pub(super) fn path_method_name(schema: &'static Schema, family: &RowFamily) -> String {
    let mut name = String::new();
    let mut after_lower = false;
    for c in family.name.chars() {
        if after_lower && c.is_uppercase() {
            name.push('_');
        }
        after_lower = c.is_lowercase() || c.is_ascii_digit();
        name.extend(c.to_lowercase());
    }
    format!("{}::{name}()", schema.entity)
}

/// Returns the filter that is sent for the keys.
fn filter_of(schema: &'static Schema, family: &RowFamily, keys: &Keys) -> Filter {
    let filter = keys.filter();
    match type_condition(schema, family, keys) {
        Some(condition) => filter.and_all(condition),
        None => filter,
    }
}

fn paths_of_family(schema: &'static Schema, family: &'static RowFamily) -> Vec<PathModel> {
    let (partition, row) = (example_key(&family.partition), example_key(&family.row));
    let path = |mut given: Vec<String>, keys: &Keys, requests: &str| {
        let filter = filter_of(schema, family, keys);
        let is_point = CostClass::of_filter(&filter) == CostClass::Point;
        let mut requests = requests.to_owned();
        if let Some(dated) = schema.dated
            && !given.iter().any(|field| field == dated.property)
        {
            // The time is the first step of the path. With a window of times a point is a query.
            given.insert(
                0,
                if is_point {
                    dated.property.to_owned()
                } else {
                    format!("{} or a window of it", dated.property)
                },
            );
            if !is_point {
                requests.push_str(", and 1 for each further table of the window");
            }
        }
        if !schema.parts.is_empty() && is_point && family.is_primary() {
            requests = format!("{}, one for each part", schema.parts.len());
        }
        PathModel {
            entry: path_method_name(schema, family),
            given,
            class: schema.cost_class(family, &filter).to_string(),
            filter: filter.to_string(),
            requests,
        }
    };
    let all = row.parts.len();
    let whole = Keys::point(partition.text.clone(), row.text.clone());
    let point = |requests| given_fields(family, all).map(|fields| path(fields, &whole, requests));
    if family.is_list() {
        let ids = point("1 for the ids, 1 more for each entity");
        let filter = |ids: PathModel| {
            if family.in_blob { PathModel { filter: "(a blob)".to_owned(), ..ids } } else { ids }
        };
        return ids.map(filter).into_iter().collect();
    }
    let ranges = (0..all).rev().filter_map(|known| {
        let fields = given_fields(family, known)?;
        let texts: Vec<&str> = row.parts.iter().take(known).map(|part| &*part.text).collect();
        let keys = Keys::partition(partition.text.clone()).prefix(prefix_of(&family.row, &texts));
        Some(path(fields, &keys, A_PAGE))
    });
    point("1").into_iter().chain(ranges).collect()
}

/// Returns the fields that a caller gives for a path by the PartitionKey and the first `known` parts of the
/// RowKey. Returns `None` if a further RowKey part writes such a field, since a caller gives a field as a
/// whole. If the PartitionKey contains only the period or the bucket of the field, the caller gives that
/// instead.
fn given_fields(family: &RowFamily, known: usize) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let is_open = |field: &str| family.row.parts().skip(known).any(|part| part.field == field);
    for part in family.partition.parts() {
        names.push(match part.form {
            Form::Date(_) if is_open(part.field) => format!("period of {}", part.field),
            Form::Bucket(_) if is_open(part.field) => format!("bucket of {}", part.field),
            _ if is_open(part.field) => return None,
            _ => part.field.to_owned(),
        });
    }
    for part in family.row.parts().take(known) {
        if is_open(part.field) {
            return None;
        }
        if !names.iter().any(|name| name == part.field) {
            names.push(part.field.to_owned());
        }
    }
    Some(names)
}

/// Returns the start of the RowKeys whose first parts are given. A literal behind the last given part is left
/// out if the part has a fixed width: the literal does not narrow the prefix, and queries leave it out too.
fn prefix_of(template: &Template, texts: &[&str]) -> String {
    let mut given = texts.iter();
    let mut prefix = String::new();
    let mut after_fixed = false;
    for segment in template.segments {
        match segment {
            Segment::Literal(text) if after_fixed && given.len() == 0 => {
                debug_assert!(!text.is_empty(), "literals are not empty");
                break;
            }
            Segment::Literal(text) => prefix.push_str(text),
            Segment::Part(part) => {
                let Some(text) = given.next() else { break };
                prefix.push_str(text);
                after_fixed = part.width.is_some();
            }
        }
    }
    prefix
}
