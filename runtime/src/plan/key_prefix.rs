//! Rewrites the condition that a text begins with a prefix if only the keys hold the text.
//!
//! Escaped texts in a key do not sort like the texts, so a single bound says nothing about keys. Both bounds of a
//! prefix together do: a text begins with a prefix if and only if its escaped form begins with the escaped prefix.

use crate::{
    edm::{Value, ValueRef},
    entity::UntypedPath,
    filter::{Comparison, Filter},
    key::{Form, Template, TemplatePart, escape, successor, text_successor, unescape},
};

/// The condition that the text in a field begins with a prefix.
#[derive(Clone, Copy)]
pub(super) struct PrefixCondition<'a> {
    field: &'a str,
    prefix: &'a str,
    /// The position of the condition with the upper bound. `None` if no text is above the texts with the prefix.
    pub(super) upper: Option<usize>,
}

impl<'a> PrefixCondition<'a> {
    /// Returns the prefix that `filter` requires together with one of `all`, which are conditions combined with `and`:
    /// `P ge 'Ha'` and `P lt 'Hb'`.
    pub(super) fn find_prefix_in(filter: &'a Filter, all: &[Filter]) -> Option<Self> {
        let (field, prefix) = bound_of_text(filter, Comparison::Ge)?;
        let upper = match text_successor(prefix) {
            None => None,
            Some(above) => {
                let is_upper =
                    |other| bound_of_text(other, Comparison::Lt) == Some((field, above.as_str()));
                Some(all.iter().position(is_upper)?)
            }
        };
        Some(Self { field, prefix, upper })
    }

    /// Returns the condition on a key of the path's rows. Returns `None` if the rows store the field as a property,
    /// or if the keys cannot answer the condition.
    pub(super) fn rewrite_on_keys(&self, access: &UntypedPath) -> Option<Filter> {
        let family = access.family.filter(|family| family.in_keys.contains(&self.field))?;
        let split = family.partition.parts().count();
        let partition = family.partition.parts().enumerate();
        let row = family.row.parts().enumerate();
        let keys = partition
            .map(|(at, part)| ("PartitionKey", &family.partition, 0, at, part))
            .chain(row.map(|(at, part)| ("RowKey", &family.row, split, at, part)));
        for (name, template, first, at, part) in keys {
            if part.field != self.field || !self.is_kept_by(part) {
                continue;
            }
            if let Some(given) = access.given_part(first + at) {
                let text = unescape(given).ok()?;
                return Some(Filter::Constant(text.starts_with(self.prefix)));
            }
            let before: Option<Vec<String>> =
                (first..first + at).map(|at| access.given_part(at).map(str::to_owned)).collect();
            if let Some(before) = before {
                return Some(self.rewrite_on_key(name, template, &before));
            }
        }
        None
    }

    /// Returns whether the part writes texts of the field unchanged, except for escapes.
    fn is_kept_by(&self, part: &TemplatePart) -> bool {
        let writes_as_it_is = |text: &str| {
            let mut written = String::new();
            let encoded = (part.codec.encode)(part.form, ValueRef::String(text), &mut written);
            encoded.is_ok() && written == text
        };
        // A user's type may write its keys in a different form than its property.
        part.is_exact
            && part.form == Form::Plain
            && part.width.is_none()
            && writes_as_it_is(self.prefix)
            && text_successor(self.prefix).is_none_or(|above| writes_as_it_is(&above))
    }

    /// Returns the condition on the key `name`, whose first parts have the texts `before`.
    fn rewrite_on_key(&self, name: &str, template: &Template, before: &[String]) -> Filter {
        if self.prefix.is_empty() {
            return Filter::Constant(true);
        }
        let prefix = escape(self.prefix, template.terminator_char_of_part(before.len()));
        let start = template.key_prefix_before(before);
        let whole = [start.as_str(), &prefix].concat();
        let upper = successor(&whole).map(|above| Filter::lt(name, above));
        Filter::all([Filter::ge(name, whole)].into_iter().chain(upper))
    }
}

/// Returns the property and text of a condition that compares a property with a text by `comparison`.
fn bound_of_text(filter: &Filter, comparison: Comparison) -> Option<(&str, &str)> {
    match filter {
        Filter::Compare { property, comparison: found, value: Value::String(text) }
            if *found == comparison =>
        {
            Some((property, text))
        }
        _ => None,
    }
}
