//! A filter on fields that only the keys hold, as conditions on the keys.
//!
//! The service would silently match nothing: such a field is no property of the row. Where the key
//! tells the same exactly, the condition becomes one on PartitionKey or RowKey; else it is refused.

use std::ops::Bound;

use crate::{
    access::Keys,
    edm::Value,
    entity::{Access, Schema},
    error::{Error, ErrorKind, Result},
    filter::{Comparison, Filter},
    key::{Family, Form, Part, Template, successor},
};

/// The filter with every condition on a key field put onto the keys of the path's rows.
pub(crate) fn key_conditions(filter: Filter, schema: &Schema, access: &Access) -> Result<Filter> {
    let each = |filters: Vec<Filter>| -> Result<Vec<Filter>> {
        filters.into_iter().map(|filter| key_conditions(filter, schema, access)).collect()
    };
    match filter {
        Filter::And(all) => Ok(Filter::And(each(all)?)),
        Filter::Or(any) => Ok(Filter::Or(each(any)?)),
        Filter::Not(filter) => Ok(!key_conditions(*filter, schema, access)?),
        Filter::Compare { property, comparison, value: Value::String(text) }
            if schema.column(&property).is_some_and(|column| !column.stored) =>
        {
            KeyCondition { field: &property, comparison, text }.rewrite(access)
        }
        other => Ok(other),
    }
}

/// A comparison of a key field with a value, which is already written as the part of the key.
struct KeyCondition<'a> {
    field: &'a str,
    comparison: Comparison,
    text: String,
}

impl KeyCondition<'_> {
    fn rewrite(self, access: &Access) -> Result<Filter> {
        let Some(family) = access.family else {
            return Err(self.refused("", "the path has no keys"));
        };
        let split = family.partition.parts().count();
        let given = |at: usize| access.parts.get(at).cloned().flatten();
        for (at, part) in family.partition.parts().chain(family.row.parts()).enumerate() {
            if part.field != self.field || !part.form.is_reversible() {
                continue;
            }
            if let Some(given) = given(at) {
                return self.known(family, part, &given);
            }
            let (template, name, first) = if at < split {
                (&family.partition, "PartitionKey", 0)
            } else {
                (&family.row, "RowKey", split)
            };
            let before: Option<Vec<String>> = (first..at).map(given).collect();
            let Some(before) = before else { continue };
            return self.on_key(family, template, name, part, &before);
        }
        Err(self.refused(
            family.name,
            "its place in the key follows parts that the path leaves open; give these first, or store the field too with `#[table(store)]`",
        ))
    }

    /// The path fixes the field: the condition is true or false.
    fn known(&self, family: &Family, part: &Part, given: &str) -> Result<Filter> {
        let order = self.ordered(part).then(|| given.cmp(&self.text));
        let order = match part.form {
            Form::Descending => order.map(std::cmp::Ordering::reverse),
            _ => order,
        };
        let holds = match (self.comparison, order) {
            (Comparison::Eq, _) => given == self.text,
            (Comparison::Ne, _) => given != self.text,
            (Comparison::Gt, Some(order)) => order.is_gt(),
            (Comparison::Ge, Some(order)) => order.is_ge(),
            (Comparison::Lt, Some(order)) => order.is_lt(),
            (Comparison::Le, Some(order)) => order.is_le(),
            (_, None) => return Err(self.unordered(family.name)),
        };
        Ok(Filter::Constant(holds))
    }

    /// All parts before it are known: the condition is one on the key.
    fn on_key(
        &self,
        family: &Family,
        template: &Template,
        name: &str,
        part: &Part,
        before: &[String],
    ) -> Result<Filter> {
        let at = before.len();
        let whole = template.prefix_with(before, &self.text);
        let last = at + 1 == template.parts().count();
        let equal = || {
            if last {
                return Filter::eq(name, whole.as_str());
            }
            let bounds = Keys::everything().prefix(&whole);
            bounds_of(name, &bounds.lower, &bounds.upper)
        };
        let comparison = match part.form {
            Form::Descending => self.comparison.mirrored(),
            _ => self.comparison,
        };
        match comparison {
            Comparison::Eq => return Ok(equal()),
            Comparison::Ne => return Ok(!equal()),
            _ if !self.ordered(part) => return Err(self.unordered(family.name)),
            _ => {}
        }
        let above = successor(&whole);
        Ok(match (comparison, last) {
            (Comparison::Ge, _) => Filter::ge(name, whole),
            (Comparison::Lt, _) => Filter::lt(name, whole),
            (comparison, true) => Filter::compare(name, comparison, whole),
            (Comparison::Gt, false) => {
                above.map_or(Filter::Constant(false), |key| Filter::ge(name, key))
            }
            (_, false) => above.map_or(Filter::Constant(true), |key| Filter::lt(name, key)),
        })
    }

    /// Whether texts of the part sort as its values do.
    fn ordered(&self, part: &Part) -> bool {
        part.width.is_some()
    }

    fn unordered(&self, path: &str) -> Error {
        self.refused(path, "texts in a key do not sort as tuples; compare with `eq` or `ne`, or use the path's range")
    }

    fn refused(&self, path: &str, why: &str) -> Error {
        let message = format!(
            "the rows of path `{path}` do not hold the field `{}` as a property, and their keys do not answer the condition: {why}",
            self.field
        );
        Error::new(ErrorKind::Invalid, message)
    }
}

fn bounds_of(name: &str, lower: &Bound<String>, upper: &Bound<String>) -> Filter {
    let lower = match lower {
        Bound::Included(key) | Bound::Excluded(key) => Some(Filter::ge(name, key.as_str())),
        Bound::Unbounded => None,
    };
    let upper = match upper {
        Bound::Included(key) | Bound::Excluded(key) => Some(Filter::lt(name, key.as_str())),
        Bound::Unbounded => None,
    };
    Filter::all(lower.into_iter().chain(upper))
}
