//! Names the properties of fields that are stored as several properties: slots of a series, pieces of a text.

use proc_macro2::Span;
use syn::{Expr, Lit, Type, spanned::Spanned};

use crate::names;

/// The maximum number of slots for which names are made. It exceeds the number of properties of any entity.
const MAX_SLOTS: usize = 20_000;

/// The maximum number of slots of a series in one part of a wide entity.
const MAX_SLOTS_OF_PART: usize = 200;

/// Returns the type and number of the slots of a series, which is an array of literal length.
pub(crate) fn array_slot_type_and_count(ty: &Type) -> Option<(&Type, usize)> {
    let Type::Array(array) = names::ungrouped(ty) else { return None };
    Some((&array.elem, literal_number(&array.len)?))
}

/// Returns the value of an expression that is a number literal.
fn literal_number(value: &Expr) -> Option<usize> {
    match value {
        Expr::Lit(lit) => match &lit.lit {
            Lit::Int(number) => number.base10_parse().ok(),
            _ => None,
        },
        // A `macro_rules!` macro passes a literal on in an invisible group.
        Expr::Group(group) => literal_number(&group.expr),
        Expr::Paren(paren) => literal_number(&paren.expr),
        _ => None,
    }
}

/// Returns the span and the message for a series with the wrong type, or `None` for an array with at least one slot.
pub(crate) fn type_fault(field: &str, ty: &Type) -> Option<(Span, String)> {
    let example = "such as `[u32; 24]`";
    let is_option = names::is_named_one_of(ty, &["Option"]);
    let inner = is_option.then(|| names::first_argument_type(ty)).flatten();
    if let Some(Type::Array(array)) = inner.map(names::ungrouped) {
        let (slot, length) = (names::source_text(&array.elem), names::source_text(&array.len));
        let message = format!(
            "`{field}` is an optional series, but slots can only be absent one by one: write `[Option<{slot}>; {length}]`"
        );
        return Some((ty.span(), message));
    }
    let Type::Array(array) = names::ungrouped(ty) else {
        let found = names::source_text(ty);
        let message =
            format!("`{field}` is a series: expected an array {example}, found `{found}`");
        return Some((ty.span(), message));
    };
    let message = match literal_number(&array.len) {
        Some(0) => format!("`{field}` is a series without slots: expected an array {example}"),
        Some(_) => return None,
        None => format!(
            "the length of a series must be a literal number, {example}, because it determines the names of the properties; found `{}`",
            names::source_text(&array.len)
        ),
    };
    Some((array.len.span(), message))
}

/// Splits the pattern of a series, such as `Day{:03}`, into the text before the number, the number's digits, and
/// the text after it. Returns `None` unless the pattern has exactly one number `{:01}` to `{:09}`.
pub(crate) fn split_pattern(text: &str) -> Option<(&str, usize, &str)> {
    let (before, rest) = text.split_once("{:0")?;
    let (width, after) = rest.split_once('}')?;
    let width = width.parse().ok().filter(|width| (1..=9).contains(width))?;
    (!before.contains(['{', '}']) && !after.contains(['{', '}'])).then_some((before, width, after))
}

/// Returns the number of digits of the last slot's number.
pub(crate) fn last_slot_digit_count(slots: usize) -> usize {
    slots.saturating_sub(1).to_string().len()
}

/// Returns the property names of a series' slots. Without a pattern, a name is the property's own name followed by
/// the slot's number, padded with zeros to the width of the last slot's number.
pub(crate) fn slot_names(property: &str, pattern: Option<&str>, slots: usize) -> Vec<String> {
    let (before, width, after) =
        pattern.and_then(split_pattern).unwrap_or((property, last_slot_digit_count(slots), ""));
    // `check` reports a length of billions later. Until then it must not fill the memory.
    (0..slots.min(MAX_SLOTS)).map(|slot| format!("{before}{slot:0width$}{after}")).collect()
}

/// Returns which part of a wide entity contains a slot of a series, counted from the first part of the series. The
/// series is split into nearly equal pieces, longer ones first: 365 slots become 183 and 182.
pub(crate) fn part_offset_of_slot(slot: usize, slots: usize) -> usize {
    // Without slots there would be no pieces, and the next line would divide by 0.
    let pieces = slots.div_ceil(MAX_SLOTS_OF_PART).max(1);
    let (least, longer) = (slots / pieces, slots % pieces);
    let in_longer = longer * (least + 1);
    match slot.checked_sub(in_longer) {
        None => slot / (least + 1),
        Some(rest) => longer + rest / least.max(1),
    }
}

/// Returns the names of a long text's pieces: `Text`, `Text_2`, `Text_3`.
pub(crate) fn piece_names(property: &str, pieces: usize) -> Vec<String> {
    let numbered = (2..=pieces).map(|piece| format!("{property}_{piece}"));
    std::iter::once(property.to_owned()).chain(numbered).collect()
}
