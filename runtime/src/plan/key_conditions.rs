//! Rewrites filters on fields that only the keys contain as conditions on PartitionKey and RowKey.
//!
//! Such a field is not a property of the row, and the service would silently match nothing. A condition that the keys
//! cannot express exactly is refused.

use std::ops::Bound;

use super::key_prefix::PrefixCondition;
use crate::{
    access::Keys,
    edm::{InvalidValue, KeyOnlyValue, Value, ValueRef},
    entity::UntypedPath,
    error::{Error, ErrorKind, Result},
    filter::{Comparison, Filter},
    key::{Descending, FixedWidth, Form, KeyPart, RowFamily, Template, TemplatePart, successor},
};

/// Rewrites every condition on a key field as a condition on the PartitionKey or RowKey of the path's rows.
///
/// # Errors
///
/// Fails with `is_invalid` if the keys cannot answer a condition, or if the path's copies lack a field.
pub(crate) fn rewrite_key_conditions(filter: &Filter, access: &UntypedPath) -> Result<Filter> {
    let keys_hold = |property: &String| {
        access.family.filter(|family| family.in_keys.contains(&property.as_str()))
    };
    match filter {
        Filter::And(all) => rewrite_all(all, access),
        Filter::Or(any) => Ok(Filter::any(rewrite_each(any, access)?)),
        Filter::Not(filter) => Ok(!rewrite_key_conditions(filter, access)?),
        Filter::Compare { property, comparison, value } => match keys_hold(property) {
            Some(family) => {
                // A prefix that is not below any string, such as the empty one, has a single bound.
                let alone = PrefixCondition::find_prefix_in(filter, &[]);
                if let Some(prefix) = alone.and_then(|prefix| prefix.rewrite_on_keys(access)) {
                    return Ok(prefix);
                }
                let value = Operand::Stored(value);
                KeyCondition { field: property, comparison: *comparison, value }
                    .rewrite_as_filter(family, access)
            }
            None => refuse_left_out(property, access).map(|()| filter.clone()),
        },
        // No property can hold such a value, but a key can.
        Filter::OutOfRange { property, comparison, value } => match keys_hold(property) {
            Some(family) => {
                let value = Operand::OnlyInKeys(*value);
                KeyCondition { field: property, comparison: *comparison, value }
                    .rewrite_as_filter(family, access)
            }
            None => refuse_left_out(property, access)
                .map(|()| Filter::resolve_key_only_comparison(property, *comparison, *value)),
        },
        Filter::Property(property) | Filter::Blind { property, .. } => {
            refuse_left_out(property, access).map(|()| filter.clone())
        }
        Filter::Constant(_) => Ok(filter.clone()),
        // `Filter` can get more kinds of conditions. One that is not known here may be about a field of the keys.
        _ => Err(Error::new(ErrorKind::Unsupported, "this kind of condition cannot be sent")),
    }
}

/// Refuses a condition on a property that the path's copies lack.
fn refuse_left_out(property: &str, access: &UntypedPath) -> Result<()> {
    match access.family {
        Some(family) if family.leaves_out(property) => {
            let message = format!("the copies of index `{}` do not hold this field", family.name);
            Err(Error::new(ErrorKind::Invalid, message).in_property(property))
        }
        _ => Ok(()),
    }
}

/// Rewrites conditions that are combined with `and`. Two bounds that together require a prefix are one condition on a
/// key.
fn rewrite_all(all: &[Filter], access: &UntypedPath) -> Result<Filter> {
    let prefixes: Vec<(usize, Option<usize>, Filter)> = all
        .iter()
        .enumerate()
        .filter_map(|(at, filter)| {
            let prefix = PrefixCondition::find_prefix_in(filter, all)?;
            Some((at, prefix.upper, prefix.rewrite_on_keys(access)?))
        })
        .collect();
    let mut rewritten = Vec::with_capacity(all.len());
    for (at, filter) in all.iter().enumerate() {
        if let Some((.., prefix)) = prefixes.iter().find(|(lower, ..)| *lower == at) {
            rewritten.push(prefix.clone());
        } else if prefixes.iter().all(|(_, upper, _)| *upper != Some(at)) {
            rewritten.push(rewrite_key_conditions(filter, access)?);
        }
    }
    Ok(Filter::all(rewritten))
}

fn rewrite_each(filters: &[Filter], access: &UntypedPath) -> Result<Vec<Filter>> {
    filters.iter().map(|filter| rewrite_key_conditions(filter, access)).collect()
}

/// A comparison of a value with a field that only the keys contain.
#[derive(Clone, Copy)]
struct KeyCondition<'a> {
    field: &'a str,
    comparison: Comparison,
    value: Operand<'a>,
}

/// The value that a key is compared with.
#[derive(Clone, Copy)]
enum Operand<'a> {
    /// A value that a property can also hold.
    Stored(&'a Value),
    /// A value that only keys can hold, such as a time before 1601.
    OnlyInKeys(KeyOnlyValue),
}

impl Operand<'_> {
    /// Appends the value in the form of the key's part.
    fn encode(self, part: &TemplatePart, out: &mut String) -> Result<(), InvalidValue> {
        match self {
            Self::Stored(value) => (part.codec.encode)(part.form, value.as_ref(), out),
            Self::OnlyInKeys(KeyOnlyValue::Before1601(ticks)) => {
                (part.codec.encode)(part.form, ValueRef::DateTime(ticks), out)
            }
            Self::OnlyInKeys(KeyOnlyValue::AboveInt64(number)) => {
                encode_above_int64(part, number, out)
            }
        }
    }
}

/// Appends a number above the largest Int64 in the form of `u64`. Fails if the part's own type writes numbers
/// differently.
fn encode_above_int64(
    part: &TemplatePart,
    number: u64,
    out: &mut String,
) -> Result<(), InvalidValue> {
    let as_u64 = |number: u64, out: &mut String| match part.form {
        Form::Plain => number.encode(out),
        Form::Width(width) => number.encode_zero_padded(width, out),
        Form::Descending => number.encode_descending(out),
        _ => Err(InvalidValue::new(format!("{number} is above the largest Int64"))),
    };
    // Try two known numbers: only a part that writes them like `u64` can be trusted with a larger one.
    for known in [0, i64::MAX] {
        let (mut own, mut ours) = (String::new(), String::new());
        let written = (part.codec.encode)(part.form, ValueRef::Int64(known), &mut own);
        if written != as_u64(known.unsigned_abs(), &mut ours) || own != ours {
            return Err(InvalidValue::new(format!("{number} is above the largest Int64")));
        }
    }
    as_u64(number, out)
}

/// The key that a condition is rewritten for: PartitionKey or RowKey.
#[derive(Clone, Copy)]
struct Key {
    name: &'static str,
    template: &'static Template,
    /// The number of the key's first part among the parts of both keys.
    first: usize,
}

/// The text of a part before the compared one. With a part, it is the text of the compared value's own period, and rows
/// of other periods have a different text. Without a part, it is a text from the access path, which all rows have.
type TextBefore = (Option<&'static TemplatePart>, String);

impl KeyCondition<'_> {
    fn rewrite_as_filter(self, family: &'static RowFamily, access: &UntypedPath) -> Result<Filter> {
        let split = family.partition.parts().count();
        let partition = Key { name: "PartitionKey", template: &family.partition, first: 0 };
        let row = Key { name: "RowKey", template: &family.row, first: split };
        for (at, part) in family.partition.parts().chain(family.row.parts()).enumerate() {
            if part.field != self.field || !part.is_exact {
                continue;
            }
            let key = if at < split { partition } else { row };
            let text = match self.text_of_part(key, at, part) {
                Ok(text) => text,
                // No key holds a value on that side, so the answer is the same for every key.
                Err(invalid) => match invalid.out_of_range_side() {
                    Some(side) => {
                        return Ok(Filter::Constant(self.comparison.holds_for_out_of_range(side)));
                    }
                    None => return Err(invalid.into_write_error(self.field)),
                },
            };
            // The path fixes the field, so the condition is true for all of its rows or for none.
            if let Some(given) = given_text(access, at) {
                return self.constant_answer(family, part, &text, given);
            }
            if let Some(before) = self.texts_before(key, at, access)? {
                let filter = self.rewrite_after_periods(family, key, part, &text, &before)?;
                // A condition on the PartitionKey in addition to the RowKey lets the store read fewer partitions.
                let periods = if at < split {
                    Filter::Constant(true)
                } else {
                    self.rewrite_on_periods(family, partition, access)?
                };
                return Ok(periods.and_all(filter));
            }
        }
        Err(self.refused_error(
            family.name,
            "in the key it follows parts that the path leaves open; give those parts first, or store the field too \
             with `#[table(store)]`",
        ))
    }

    /// Returns the text of the compared value in `part`, which is number `at` of both keys and belongs to `key`.
    fn text_of_part(
        &self,
        key: Key,
        at: usize,
        part: &TemplatePart,
    ) -> Result<String, InvalidValue> {
        key.template.encode_part(at - key.first, |out| self.value.encode(part, out))
    }

    /// Returns the texts of the parts of `key` before part number `at` of both keys. Returns `None` if the path
    /// does not give one of them and it does not follow from the compared value.
    fn texts_before(
        &self,
        key: Key,
        at: usize,
        access: &UntypedPath,
    ) -> Result<Option<Vec<TextBefore>>> {
        let mut texts = Vec::new();
        for (before, part) in (key.first..at).zip(key.template.parts()) {
            texts.push(if let Some(given) = given_text(access, before) {
                (None, given.to_owned())
            } else if part.is_period_of(self.field) {
                let text = self.text_of_part(key, before, part);
                (Some(part), text.map_err(|invalid| invalid.into_write_error(self.field))?)
            } else {
                return Ok(None);
            });
        }
        Ok(Some(texts))
    }

    /// Rewrites the condition as a filter on `key`. If `part` comes after coarser periods of the field that the
    /// path does not give, compares the periods first: a later period decides alone, and `part` decides within the
    /// value's own period.
    fn rewrite_after_periods(
        &self,
        family: &RowFamily,
        key: Key,
        part: &TemplatePart,
        text: &str,
        before: &[TextBefore],
    ) -> Result<Filter> {
        let texts: Vec<String> = before.iter().map(|(_, text)| text.clone()).collect();
        let (strict, wide) = match self.comparison {
            Comparison::Gt | Comparison::Ge => (Comparison::Gt, Comparison::Ge),
            Comparison::Lt | Comparison::Le => (Comparison::Lt, Comparison::Le),
            // The texts in all parts follow from the value, so compare the whole key.
            Comparison::Eq | Comparison::Ne => {
                return self.rewrite_on_key(family, key, part, text, &texts);
            }
        };
        let mut filter = self.rewrite_on_key(family, key, part, text, &texts)?;
        // From the finest period to the coarsest.
        for (at, (period, text)) in before.iter().enumerate().rev() {
            let Some(period) = period else { continue };
            let texts = texts.get(..at).unwrap_or_default();
            let compare = |comparison| {
                Self { comparison, ..*self }.rewrite_on_key(family, key, period, text, texts)
            };
            filter = compare(wide)?.and_all(Filter::any([compare(strict)?, filter]));
        }
        Ok(filter)
    }

    /// Returns the condition on the first part of the PartitionKey that the path does not give. The part must be a
    /// period of the field, in which case its condition follows from this one.
    fn rewrite_on_periods(
        &self,
        family: &RowFamily,
        partition: Key,
        access: &UntypedPath,
    ) -> Result<Filter> {
        let comparison = match self.comparison {
            Comparison::Eq => Comparison::Eq,
            Comparison::Gt | Comparison::Ge => Comparison::Ge,
            Comparison::Lt | Comparison::Le => Comparison::Le,
            Comparison::Ne => return Ok(Filter::Constant(true)),
        };
        let condition = Self { comparison, ..*self };
        let parts = partition.template.parts();
        let given: Vec<String> =
            (0..parts.count()).map_while(|at| given_text(access, at).map(str::to_owned)).collect();
        let open = partition.template.parts().nth(given.len());
        let Some(period) = open.filter(|part| part.is_period_of(self.field)) else {
            return Ok(Filter::Constant(true));
        };
        let text = self.text_of_part(partition, given.len(), period);
        let text = text.map_err(|invalid| invalid.into_write_error(self.field))?;
        condition.rewrite_on_key(family, partition, period, &text, &given)
    }

    /// Compares the condition with the value that the access path gives for the field. Returns a filter that
    /// matches all rows or none. Fails if the comparison needs an order that key texts do not have.
    fn constant_answer(
        &self,
        family: &RowFamily,
        part: &TemplatePart,
        text: &str,
        given: &str,
    ) -> Result<Filter> {
        // Only texts of equal width sort like their values.
        let order = part.width.is_some().then(|| given.cmp(text));
        let order = match part.form {
            Form::Descending => order.map(std::cmp::Ordering::reverse),
            _ => order,
        };
        let holds = match (self.comparison, order) {
            (Comparison::Eq, _) => given == text,
            (Comparison::Ne, _) => given != text,
            (Comparison::Gt, Some(order)) => order.is_gt(),
            (Comparison::Ge, Some(order)) => order.is_ge(),
            (Comparison::Lt, Some(order)) => order.is_lt(),
            (Comparison::Le, Some(order)) => order.is_le(),
            (_, None) => return Err(self.unordered_error(family.name)),
        };
        Ok(Filter::Constant(holds))
    }

    /// Rewrites the condition as a filter on the PartitionKey or RowKey `key`. `before` contains the texts of all
    /// parts before `part` in that key.
    fn rewrite_on_key(
        &self,
        family: &RowFamily,
        key: Key,
        part: &TemplatePart,
        text: &str,
        before: &[String],
    ) -> Result<Filter> {
        let Key { name, template, .. } = key;
        let at = before.len();
        let whole = template.key_prefix_through(before, text);
        let last = at + 1 == template.parts().count();
        let equal = || {
            if last {
                return Filter::eq(name, whole.as_str());
            }
            let bounds = Keys::whole_table().prefix(&whole);
            bounds_of(name, bounds.rows.lower(), bounds.rows.upper())
        };
        let comparison = match part.form {
            // A descending part reverses the order of keys.
            Form::Descending => self.comparison.mirrored(),
            _ => self.comparison,
        };
        match comparison {
            Comparison::Eq => return Ok(equal()),
            Comparison::Ne => return Ok(!equal()),
            _ if part.width.is_none() => return Err(self.unordered_error(family.name)),
            _ => {}
        }
        // The first key after all keys that begin with `whole`.
        let above = successor(&whole);
        Ok(match (comparison, last) {
            (Comparison::Ge, _) => Filter::ge(name, whole),
            (Comparison::Lt, _) => Filter::lt(name, whole),
            (comparison, true) => Filter::compare(name, comparison, whole),
            (Comparison::Gt, false) => {
                // Without a successor, no key is above the keys with the prefix.
                above.map_or(Filter::Constant(false), |key| Filter::ge(name, key))
            }
            (_, false) => above.map_or(Filter::Constant(true), |key| Filter::lt(name, key)),
        })
    }

    fn unordered_error(&self, path: &str) -> Error {
        self.refused_error(path, "texts in a key do not sort as tuples; compare with `eq`, `ne` or `starts_with`, or use the path's range")
    }

    fn refused_error(&self, path: &str, why: &str) -> Error {
        let message = format!(
            "the rows of path `{path}` do not hold the field as a property, and their keys do not answer the condition: {why}"
        );
        Error::new(ErrorKind::Invalid, message).in_property(self.field)
    }
}

/// Returns the text that the access path gives for part number `at` of both keys.
fn given_text(access: &UntypedPath, at: usize) -> Option<&str> {
    access.given_part(at)
}

fn bounds_of(name: &str, lower: Bound<&str>, upper: Bound<&str>) -> Filter {
    // The bounds of `prefix`: the lower one is never excluded, and the upper one never included.
    let lower = match lower {
        Bound::Included(key) | Bound::Excluded(key) => Some(Filter::ge(name, key)),
        Bound::Unbounded => None,
    };
    let upper = match upper {
        Bound::Included(key) | Bound::Excluded(key) => Some(Filter::lt(name, key)),
        Bound::Unbounded => None,
    };
    Filter::all(lower.into_iter().chain(upper))
}
