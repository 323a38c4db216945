//! Compares the types of stored values in the layout file with those in the code.

use super::shape::{JSON, StoredTypeShape};

/// Says what a change of a field's type means for stored values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TypeChange {
    /// Both types are equal.
    Equal,
    /// The field reads every stored value, and also others of the same stored type.
    Wider,
    /// The field reads every stored value, but writes another stored type, which filters and tokens distinguish.
    OtherStoredType,
    /// The field does not read every stored value, or reads another value in it.
    Unreadable,
}

/// The greatest number of a property: a row stores no `u64` above it.
pub(super) const GREATEST_IN_PROPERTY: i128 = i64::MAX as i128;

/// The greatest number of a field that only keys hold.
pub(super) const GREATEST_IN_KEY: i128 = u64::MAX as i128;

/// Compares the type of a field in the layout file with its type in the code. Stored rows hold no number above
/// `greatest_held`, also if the earlier type has greater ones.
pub(super) fn compare_types(
    was: &StoredTypeShape,
    is: &StoredTypeShape,
    greatest_held: i128,
) -> TypeChange {
    if was == is {
        return TypeChange::Equal;
    }
    let is_other_edm = was.edm != is.edm;
    // `i64` and `f64` also read an Int32.
    let is_widened = was.edm == "Int32" && matches!(is.edm.as_str(), "Int64" | "Double");
    let (old, new) = (was.values.as_str(), is.values.as_str());
    let is_read = match (integer_range(was), integer_range(is)) {
        (Some((least, greatest)), Some((new_least, new_greatest))) => {
            new_least <= least && greatest.min(greatest_held) <= new_greatest
        }
        // An f32 holds every whole number of up to 24 bits.
        (Some((least, greatest)), None) if new == "f32" => {
            least >= -(1 << 24) && greatest <= 1 << 24
        }
        _ => match (enum_variants(old), enum_variants(new)) {
            (Some(old), Some(new)) => old.iter().all(|text| new.contains(text)),
            // A String also reads the text of JSON, but not the value that it stands for.
            _ => new.is_empty() && old != JSON,
        },
    };
    match (is_other_edm, is_read) {
        (_, false) => TypeChange::Unreadable,
        (false, true) => TypeChange::Wider,
        (true, true) if is_widened => TypeChange::OtherStoredType,
        (true, true) => TypeChange::Unreadable,
    }
}

/// Returns the variants that `was` stores and `is` does not read, or `None` unless both are enums.
pub(super) fn variants_gone(was: &StoredTypeShape, is: &StoredTypeShape) -> Option<Vec<String>> {
    let (old, new) = (enum_variants(&was.values)?, enum_variants(&is.values)?);
    let gone = old.into_iter().filter(|text| !new.contains(text));
    Some(gone.map(str::to_owned).collect())
}

/// Returns the texts of an enum's variants, or `None` for the values of another type.
fn enum_variants(values: &str) -> Option<Vec<&str>> {
    Some(values.strip_prefix("enum(")?.strip_suffix(')')?.split('|').collect())
}

/// Returns the name of an integer type, or `None` for another type.
fn integer_name(of: &StoredTypeShape) -> Option<&str> {
    match (of.edm.as_str(), of.values.as_str()) {
        ("Int32", "") => Some("i32"),
        ("Int64", "") => Some("i64"),
        ("Int32" | "Int64", name) => Some(name),
        _ => None,
    }
}

/// Returns the least and the greatest number of an integer type, or `None` for another type.
fn integer_range(of: &StoredTypeShape) -> Option<(i128, i128)> {
    let bits: u32 = integer_name(of)?.get(1..)?.parse().ok().filter(|bits| *bits <= 64)?;
    match integer_name(of)?.get(..1)? {
        "u" => Some((0, (1 << bits) - 1)),
        "i" => Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1)),
        _ => None,
    }
}

/// Returns whether a key part of this form, such as `desc`, writes another text for a value of the new type
/// than for an equal one of the old type. Forms whose texts do not depend on the type never do.
pub(super) fn writes_other_key(form: &str, was: &StoredTypeShape, is: &StoredTypeShape) -> bool {
    let is_date = |of: &StoredTypeShape| of.values == "date";
    let is_other_edm = was.edm != is.edm;
    let is_other_number = is_other_edm || integer_name(was) != integer_name(is);
    match form {
        // The plain and the descending form count from the least or greatest number of the type, and a bucket
        // is a hash of the plain form.
        "" | "desc" => is_other_number,
        "hmac" => is_other_edm,
        form if form.starts_with("bucket") => is_other_number || is_date(was) != is_date(is),
        _ => false,
    }
}
