//! Computes the key range of a signature from a selection of rows.
//!
//! A signature's range includes both ends, and an empty end means no end. A selection can exclude
//! its end, as a prefix does: `ge 'email_a' and lt 'email_b'`. A range that ends at `email_b` would
//! permit the row `email_b`, which belongs to someone else. So the range ends directly below: it
//! never permits more than the selection, and it lacks only keys that do not occur in practice.

use std::{cmp::Ordering, ops::Bound};

use entable_core::{
    access::Keys,
    error::{Error, Result},
    limits::{self, is_forbidden_in_key},
};

use super::token::invalid_signature_terms_error;

/// One end of a range: a PartitionKey, and a RowKey unless the whole partition is included.
pub(super) type RangeEnd = (String, Option<String>);

/// The smallest character that a key may contain. No key lies between a key and that key followed
/// by a blank.
const LEAST: char = ' ';
/// The greatest UTF-16 unit. It is a noncharacter that no text contains, so no key continues after
/// it.
const GREATEST: char = '\u{ffff}';

/// Returns the first and last key that the selection includes, or no ends for the whole table.
///
/// # Errors
///
/// Fails with `is_invalid` for a range of RowKeys over all partitions, for the empty PartitionKey, and for a selection
/// that includes no key or ends at the empty RowKey. Also fails for keys that the service refuses.
pub(super) fn range_ends(keys: &Keys) -> Result<(Option<RangeEnd>, Option<RangeEnd>)> {
    let Some(partition) = &keys.partition else {
        return if keys.bounds_row_key() {
            Err(invalid_signature_terms_error(
                "a SAS cannot limit RowKeys across all partitions; name one partition",
            ))
        } else {
            Ok((None, None))
        };
    };
    if partition.is_empty() {
        return Err(invalid_signature_terms_error(
            "a SAS cannot be limited to the empty PartitionKey, because an empty bound means no bound; use a \
             PartitionKey that is not empty, or sign for the whole table",
        ));
    }
    let from = first_row_key(keys.rows.lower());
    let to = last_row_key(keys.rows.upper())?;
    let ends = (Some((partition.clone(), from)), Some((partition.clone(), to)));
    check_range_ends(ends.0.as_ref(), ends.1.as_ref())?;
    Ok(ends)
}

/// Checks that the service applies the ends as given. Fails for keys that the service refuses.
/// Fails with `is_invalid` for an empty PartitionKey and an empty last RowKey, since the service takes
/// an empty end for no end, and for a range that ends before it begins.
pub(super) fn check_range_ends(from: Option<&RangeEnd>, to: Option<&RangeEnd>) -> Result<()> {
    for (partition_key, row_key) in from.into_iter().chain(to) {
        limits::check_key("PartitionKey", partition_key)?;
        limits::check_key("RowKey", row_key.as_deref().unwrap_or_default())?;
        if partition_key.is_empty() {
            return Err(invalid_signature_terms_error(
                "a key range cannot begin or end at the empty PartitionKey",
            ));
        }
    }
    if let Some((_, Some(row_key))) = to
        && row_key.is_empty()
    {
        return Err(empty_row_key());
    }
    match (from, to) {
        (Some(from), Some(to)) if is_after(from, to) => Err(no_key_error()),
        _ => Ok(()),
    }
}

/// Returns whether the first end lies after the second one. Both ends belong to the range, so equal
/// ends include one key.
fn is_after((from, first): &RangeEnd, (to, last): &RangeEnd) -> bool {
    match from.encode_utf16().cmp(to.encode_utf16()) {
        Ordering::Equal => match (first, last) {
            (Some(first), Some(last)) => first.encode_utf16().gt(last.encode_utf16()),
            // An end without a RowKey is the first or last row of its partition, which no RowKey
            // passes.
            _ => false,
        },
        order => order == Ordering::Greater,
    }
}

/// Returns the first RowKey of the range, or `None` for the partition's first row.
fn first_row_key(lower: Bound<&str>) -> Option<String> {
    match lower {
        Bound::Included(key) if !key.is_empty() => Some(key.to_owned()),
        // The empty RowKey is the least one, so a range from it on begins with the partition.
        Bound::Included(_) | Bound::Unbounded => None,
        Bound::Excluded(key) => Some(format!("{key}{LEAST}")),
    }
}

/// Returns the last RowKey of the range, or `None` for the partition's last row.
fn last_row_key(upper: Bound<&str>) -> Result<Option<String>> {
    let last = match upper {
        Bound::Unbounded => return Ok(None),
        Bound::Included(key) => key.to_owned(),
        Bound::Excluded(key) => greatest_key_below(key).ok_or_else(no_key_error)?,
    };
    if last.is_empty() {
        return Err(empty_row_key());
    }
    Ok(Some(last))
}

fn empty_row_key() -> Error {
    invalid_signature_terms_error(
        "a SAS cannot end at the empty RowKey, because an empty bound means no bound; sign for the partition, or use \
         a RowKey that is not empty",
    )
}

/// Returns the end of the keys below `key`, in the order of UTF-16 units, or `None` if no key is
/// below. Only keys with the noncharacter U+FFFF can lie between the result and `key`.
fn greatest_key_below(key: &str) -> Option<String> {
    let mut below = key.to_owned();
    let last = below.pop()?;
    // Directly below a key are those that continue its predecessor: the last character replaced by
    // the previous one, followed by anything.
    if let Some(previous) = previous_char(last) {
        below.push(previous);
        below.push(GREATEST);
    }
    Some(below)
}

/// Returns the previous character that a key may contain, in UTF-16 code unit order. Surrogate pairs sort between
/// U+D7FF and U+E000.
fn previous_char(c: char) -> Option<char> {
    let mut c = c;
    loop {
        c = match c {
            '\u{e000}' => '\u{10ffff}',
            '\u{10000}' => '\u{d7ff}',
            c => char::from_u32(u32::from(c).checked_sub(1)?)?,
        };
        if !is_forbidden_in_key(c) {
            return Some(c);
        }
    }
}

fn no_key_error() -> Error {
    invalid_signature_terms_error(
        "the path covers no keys, because its end is before its beginning; give the lower bound first",
    )
}

#[cfg(test)]
mod tests {
    use entable_core::access::RowKeys;

    use super::*;

    fn ends(keys: &Keys) -> (String, String) {
        let (from, to) = range_ends(keys).unwrap();
        let text = |end: Option<RangeEnd>| match end {
            None => String::new(),
            Some((partition, None)) => partition,
            Some((partition, Some(row))) => format!("{partition}|{row}"),
        };
        (text(from), text(to))
    }

    fn sales() -> Keys {
        Keys::partition("Sales")
    }

    #[test]
    fn ends_that_are_included_are_taken_as_they_are() {
        let is =
            |keys: Keys, from: &str, to: &str| assert_eq!(ends(&keys), (from.into(), to.into()));
        is(Keys::whole_table(), "", "");
        is(sales(), "Sales", "Sales");
        is(sales().row("empid_000223"), "Sales|empid_000223", "Sales|empid_000223");
        is(sales().rows("a"..="b"), "Sales|a", "Sales|b");
        is(sales().rows("a"..), "Sales|a", "Sales");
        is(sales().rows(..="b"), "Sales", "Sales|b");
        is(sales().rows("".."b"), "Sales", "Sales|a\u{ffff}");
    }

    #[test]
    fn an_end_that_is_left_out_is_not_let_in() {
        let last = |key: &str| ends(&sales().rows(..key)).1.split_off("Sales|".len());
        assert_eq!(last("email_b"), "email_a\u{ffff}");
        assert_eq!(last("empid_000124"), "empid_000123\u{ffff}");
        // `/` is forbidden in keys.
        assert_eq!(last("30"), "3.\u{ffff}");
        assert_eq!(last("a\u{e000}"), "a\u{10ffff}\u{ffff}");
        assert_eq!(last("a\u{10000}"), "a\u{d7ff}\u{ffff}");
        assert_eq!(last("a\u{a0}"), "a~\u{ffff}");
        // No key sorts between a key and the same key followed by a space.
        assert_eq!(last("a "), "a");
        let after = Keys {
            rows: RowKeys::between(Bound::Excluded("a".into()), Bound::Unbounded),
            ..sales()
        };
        assert_eq!(ends(&after), ("Sales|a ".into(), "Sales".into()));
    }

    #[test]
    fn what_cannot_be_said_exactly_is_refused() {
        let refused = |keys: Keys| range_ends(&keys).unwrap_err().to_string();
        assert!(refused(Keys::partition("")).contains("sign for the whole table"));
        assert!(refused(sales().row("")).contains("sign for the partition"));
        assert!(refused(sales().rows(.." ")).contains("sign for the partition"));
        assert!(refused(sales().rows(.."")).contains("covers no keys"));
        assert!(refused(sales().rows("b"..="a")).contains("covers no keys"));
        assert!(refused(sales().rows("a".."a")).contains("covers no keys"));
        assert!(refused(Keys::whole_table().rows("a"..)).contains("name one partition"));
    }

    #[test]
    fn a_range_and_its_filter_agree_on_every_key() {
        // Every text of up to three of these, at each end and as a key.
        let alphabet = [' ', '.', '0', 'a', 'b', '\u{d7ff}', '\u{10000}', '\u{10ffff}', '\u{e000}'];
        let mut keys = vec![String::new()];
        let mut longest = keys.clone();
        for _ in 0..2 {
            longest = longest.iter().flat_map(|k| alphabet.map(|c| format!("{k}{c}"))).collect();
            keys.extend(longest.iter().cloned());
        }
        let units = |text: &str| text.encode_utf16().collect::<Vec<_>>();
        for end in &keys {
            for upper in [Bound::Included(&**end), Bound::Excluded(&**end)] {
                let Ok(last) = last_row_key(upper) else { continue };
                let last = units(&last.unwrap());
                for key in &keys {
                    let inside = match &upper {
                        Bound::Included(end) => units(key) <= units(end),
                        _ => units(key) < units(end),
                    };
                    assert_eq!(units(key) <= last, inside, "{key:?} {upper:?}");
                }
            }
            let first = units(&first_row_key(Bound::Excluded(end)).unwrap());
            for key in &keys {
                assert_eq!(units(key) >= first, units(key) > units(end), "{key:?} {end:?}");
            }
        }
    }
}
