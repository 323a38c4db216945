//! Reads and writes single properties of rows. Generated code passes these functions where it would
//! otherwise need a closure for each property.

use crate::{
    edm::{InvalidValue, Value, ValueRef},
    entity::is_framework_property,
    error::Result,
    row::{Row, is_operation_id},
};

/// Returns one empty slot for each field, to be filled from a row. The compiler infers the number
/// of slots.
#[inline]
pub fn empty_field_slots<T: Copy, const SLOTS: usize>() -> [Option<T>; SLOTS] {
    [None; SLOTS]
}

/// Puts the properties of a row whose names are in `names` into `found`, in the order of `names`. Ignores other
/// properties. `names` is a static array. Its address identifies the type to rows that share their columns.
///
/// In a row that describes itself, reading begins at the byte offset `from`: another reader has read the properties before
/// it. It is 0 for a row that shares its columns.
///
/// # Errors
///
/// `is_corrupt` for a damaged row. Of a row that shares its columns, only the values in `found` are checked.
#[inline]
pub fn find_properties<'r, const NAMES: usize>(
    row: &'r Row,
    from: u32,
    names: &'static [&'static str; NAMES],
    found: &mut [Option<ValueRef<'r>>; NAMES],
) -> Result<()> {
    if row.read_by_columns(names, found)? {
        return Ok(());
    }
    let mut next = 0;
    let mut properties = row.properties_from_offset(from);
    while let Some((name, value)) = properties.next()? {
        place_property(name, value, names, &mut next, found);
    }
    Ok(())
}

/// Puts a property into the slot of its name. Returns `false` if no slot has that name.
#[inline]
pub fn place_property<'r, const NAMES: usize>(
    name: &[u8],
    value: ValueRef<'r>,
    names: &[&str; NAMES],
    next: &mut usize,
    found: &mut [Option<ValueRef<'r>>; NAMES],
) -> bool {
    // Rows keep their properties in field order, so the name is usually the next.
    let is_next = names.get(*next).is_some_and(|known| is_same_name(known.as_bytes(), name));
    if !is_next {
        match names.iter().position(|known| is_same_name(known.as_bytes(), name)) {
            Some(at) => *next = at,
            None => return false,
        }
    }
    if let Some(slot) = found.get_mut(*next) {
        *slot = Some(value);
    }
    *next += 1;
    true
}

/// Compares two names. Names of 2 to 16 bytes are equal if their first bytes and their last bytes
/// are equal, each compared as one number; the two numbers may overlap. A call of the general
/// comparison would take longer than reading the property.
#[inline]
fn is_same_name(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    match a.len() {
        8..=16 => a.first_chunk::<8>() == b.first_chunk() && a.last_chunk::<8>() == b.last_chunk(),
        4..=7 => a.first_chunk::<4>() == b.first_chunk() && a.last_chunk::<4>() == b.last_chunk(),
        2..=3 => a.first_chunk::<2>() == b.first_chunk() && a.last_chunk::<2>() == b.last_chunk(),
        _ => a == b,
    }
}

/// Reads a field from what was found of it, by [`Property::from_stored`](crate::Property).
///
/// # Errors
///
/// `is_decode`, naming the property.
#[inline]
pub fn finish_stored<'r, T>(
    found: Option<ValueRef<'r>>,
    prefix: &str,
    name: &str,
    from_stored: fn(Option<ValueRef<'r>>) -> Result<T, InvalidValue>,
) -> Result<T> {
    from_stored(found).map_err(|invalid| invalid.into_read_error(&[prefix, name].concat()))
}

/// Reads a field of the entity, not of a flattened struct, from its stored value, by
/// [`Property::from_stored`](crate::Property).
///
/// # Errors
///
/// `is_decode`, naming the property.
#[inline]
pub fn finish_property<'r, T>(
    found: Option<ValueRef<'r>>,
    name: &str,
    from_stored: fn(Option<ValueRef<'r>>) -> Result<T, InvalidValue>,
) -> Result<T> {
    from_stored(found).map_err(|invalid| invalid.into_read_error(name))
}

/// Reads a field whose value no error may show, by [`Property::from_stored`](crate::Property).
///
/// # Errors
///
/// `is_decode`, naming the property.
#[inline]
pub fn finish_secret<'r, T>(
    found: Option<ValueRef<'r>>,
    prefix: &str,
    name: &str,
    from_stored: fn(Option<ValueRef<'r>>) -> Result<T, InvalidValue>,
) -> Result<T> {
    from_stored(found)
        .map_err(|invalid| invalid.redacted().into_read_error(&[prefix, name].concat()))
}

/// Returns the error for a field that neither the row's keys nor its properties hold.
///
/// # Errors
///
/// Always: `is_decode`, naming the field.
#[cold]
pub fn field_not_in_keys_error<T>(field: &'static str) -> Result<T> {
    Err(InvalidValue::new("the row's keys do not hold the field").into_read_error(field))
}

/// Keeps a property that the struct does not know, by [`PropertyBag::put`](crate::PropertyBag::put).
///
/// # Errors
///
/// `is_corrupt` where the name is not UTF-8.
pub fn keep_unknown_property<B>(
    bag: &mut B,
    name: &[u8],
    value: ValueRef<'_>,
    put: fn(&mut B, &str, Value),
) -> Result<()> {
    let is_id = is_operation_id(name, value);
    let name = std::str::from_utf8(name)
        .map_err(|_| crate::row::corrupt_row_error("a property's name is not UTF-8"))?;
    // A property of the library belongs to no field, and stays in the row without one.
    if !is_id && !is_framework_property(name) {
        put(bag, name, value.to_value());
    }
    Ok(())
}

/// Returns whether a property's name is one of `names`.
pub fn is_one_of(name: &[u8], names: &[&str]) -> bool {
    names.iter().any(|known| known.as_bytes() == name)
}
