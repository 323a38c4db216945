//! The canonical bytes of a value: one encoding per value, which is encrypted, sealed and hashed
//! into blind tokens.

use std::borrow::Cow;

use bytes::Bytes;
use uuid::Uuid;
use zeroize::Zeroize;

use crate::envelope::PLAIN_BYTES;
use entable_core::{
    edm::{Ticks, Value, ValueRef},
    error::{Error, Result, SealFault},
    limits::utf16_units,
};

pub(crate) const NULL: u8 = 0;
const BOOLEAN: u8 = 1;
const INT32: u8 = 2;
const INT64: u8 = 3;
const DOUBLE: u8 = 4;
const DATE_TIME: u8 = 5;
const GUID: u8 = 6;
const BINARY: u8 = 7;
const UTF8: u8 = 8;
const UTF16: u8 = 9;
/// Flag in the type tag of a padded value.
const PADDED_FLAG: u8 = 0x80;
/// Byte that ends a padded value; only zeros follow.
const PADDING_MARK: u8 = 0x80;

/// Returns whether the text takes fewer bytes as UTF-16 than as UTF-8.
fn is_shorter_as_utf16(text: &str) -> bool {
    // The check for ASCII is fast, and ASCII is never shorter as UTF-16.
    !text.is_ascii() && 2 * utf16_units(text) < text.len()
}

/// Returns the number of bytes of type tag and value, without padding.
pub(crate) fn plain_len(value: Option<ValueRef<'_>>) -> usize {
    1 + match value {
        None => 0,
        Some(ValueRef::Boolean(_)) => 1,
        Some(ValueRef::Int32(_)) => 4,
        Some(ValueRef::Int64(_) | ValueRef::Double(_) | ValueRef::DateTime(_)) => 8,
        Some(ValueRef::Guid(_)) => 16,
        Some(ValueRef::Binary(bytes)) => bytes.len(),
        Some(ValueRef::String(text)) => {
            if is_shorter_as_utf16(text) {
                2 * utf16_units(text)
            } else {
                text.len()
            }
        }
    }
}

/// Returns the number of bytes with padding: the next multiple of `pad`, but no more than fits into a
/// property. A `pad` of 0 or 1 adds none.
pub(crate) fn padded_len(plain: usize, pad: usize) -> usize {
    if pad <= 1 {
        return plain;
    }
    // One byte more for the mark that ends the value.
    let marked = plain.saturating_add(1);
    let multiple = marked.checked_next_multiple_of(pad).unwrap_or(usize::MAX);
    // Never above a property's size: a long value is padded less rather than refused.
    multiple.min(PLAIN_BYTES).max(marked)
}

/// Returns the form of a value that seals of entities and codes over work are computed from. Stores change
/// some values: so every NaN becomes one NaN, and -0.0 becomes 0.0.
pub(crate) fn normal_form(value: ValueRef<'_>) -> ValueRef<'_> {
    match value {
        // Azurite stores -0.0 as 0.0.
        ValueRef::Double(0.0) => ValueRef::Double(0.0),
        // The service returns only one NaN, whichever was written.
        ValueRef::Double(v) if v.is_nan() => ValueRef::Double(f64::NAN),
        other => other,
    }
}

/// Appends type tag, value and padding: the plaintext of an encrypted property.
pub(crate) fn write_plain(out: &mut Vec<u8>, value: Option<ValueRef<'_>>, pad: usize) {
    let start = out.len();
    match value {
        None => out.push(NULL),
        Some(ValueRef::String(text)) if is_shorter_as_utf16(text) => {
            out.push(UTF16);
            text.encode_utf16().for_each(|unit| out.extend_from_slice(&unit.to_le_bytes()));
        }
        Some(value) => write_value(out, value),
    }
    if pad > 1 {
        let length = padded_len(out.len() - start, pad);
        if let Some(tag) = out.get_mut(start) {
            *tag |= PADDED_FLAG;
        }
        out.push(PADDING_MARK);
        out.resize(start + length, 0);
    }
}

/// Appends type tag and value, with a text always as UTF-8. Seals, blind tokens and codes over work are made
/// from this form. The plaintext of an encrypted property has it too, before the padding, except for a text
/// that is shorter as UTF-16.
pub(crate) fn write_value(out: &mut Vec<u8>, value: ValueRef<'_>) {
    let (tag, bytes): (u8, Cow<'_, [u8]>) = match value {
        ValueRef::Boolean(v) => return out.extend_from_slice(&[BOOLEAN, u8::from(v)]),
        ValueRef::Int32(v) => return put_tagged(out, INT32, &v.to_be_bytes()),
        ValueRef::Int64(v) => return put_tagged(out, INT64, &v.to_be_bytes()),
        ValueRef::Double(v) => return put_tagged(out, DOUBLE, &v.to_bits().to_be_bytes()),
        ValueRef::DateTime(v) => {
            return put_tagged(out, DATE_TIME, &ticks_since_1970(v).to_be_bytes());
        }
        ValueRef::Guid(v) => return put_tagged(out, GUID, v.as_bytes()),
        ValueRef::Binary(v) => (BINARY, v.into()),
        ValueRef::String(v) => (UTF8, v.as_bytes().into()),
    };
    put_tagged(out, tag, &bytes);
}

fn put_tagged(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    out.extend_from_slice(bytes);
}

/// Returns the 100 ns ticks since 1970-01-01.
fn ticks_since_1970(at: Ticks) -> i64 {
    at.get() - Ticks::UNIX_EPOCH.get()
}

/// Reads a value from a decrypted plaintext. The bytes become part of the value or are wiped.
///
/// # Errors
///
/// [`SealFault::Malformed`] for a plaintext that encodes no value.
pub(crate) fn read_plain(mut plain: Vec<u8>) -> Result<Option<Value>> {
    let value = match unpadded(&plain) {
        Some((tag, length)) => {
            plain.truncate(length);
            read_tagged(tag, &mut plain)
        }
        None => None,
    };
    // The plaintext is secret: what is not part of the value is wiped.
    plain.zeroize();
    // Only a holder of the key can have written this, so the message gives nothing away.
    value.ok_or_else(|| {
        Error::seal(
            SealFault::Malformed,
            "the value was decrypted, but its type tag or length does not belong to any property type",
        )
    })
}

/// Returns the type tag and the number of bytes of tag and value, without padding. Returns `None` for
/// an empty plaintext and for padding that is not one mark and zeros.
fn unpadded(plain: &[u8]) -> Option<(u8, usize)> {
    let tag = *plain.first()?;
    if tag & PADDED_FLAG == 0 {
        return Some((tag, plain.len()));
    }
    // The last byte that is not zero has to be the mark.
    let mark = plain.iter().rposition(|byte| *byte != 0)?;
    (mark > 0 && plain.get(mark) == Some(&PADDING_MARK)).then_some((tag & !PADDED_FLAG, mark))
}

/// Returns the value whose bytes follow the tag. Text and binary values reuse the allocation.
#[allow(
    clippy::option_option,
    reason = "the outer None is a malformed value, the inner None a null"
)]
fn read_tagged(tag: u8, plain: &mut Vec<u8>) -> Option<Option<Value>> {
    let value = plain.get(1..)?;
    Some(Some(match tag {
        NULL if value.is_empty() => return Some(None),
        BOOLEAN => match value {
            [0] => Value::Boolean(false),
            [1] => Value::Boolean(true),
            _ => return None,
        },
        INT32 => Value::Int32(i32::from_be_bytes(value.try_into().ok()?)),
        INT64 => Value::Int64(i64::from_be_bytes(value.try_into().ok()?)),
        DOUBLE => Value::Double(f64::from_bits(u64::from_be_bytes(value.try_into().ok()?))),
        DATE_TIME => {
            let ticks = i64::from_be_bytes(value.try_into().ok()?);
            Value::DateTime(Ticks::new(ticks.checked_add(Ticks::UNIX_EPOCH.get())?)?)
        }
        GUID => Value::Guid(Uuid::from_bytes(value.try_into().ok()?)),
        BINARY => Value::Binary(Bytes::from(take_value_bytes(plain))),
        UTF8 => {
            // Check first: text that is not UTF-8 must be wiped, not moved out.
            std::str::from_utf8(value).ok()?;
            Value::String(String::from_utf8(take_value_bytes(plain)).ok()?)
        }
        UTF16 => {
            let (pairs, rest) = value.as_chunks();
            let units = pairs.iter().map(|pair| u16::from_le_bytes(*pair));
            let text: Result<String, _> = char::decode_utf16(units).collect();
            Value::String(text.ok().filter(|_| rest.is_empty())?)
        }
        _ => return None,
    }))
}

/// Takes the bytes after the tag out of `plain`, in the same allocation.
fn take_value_bytes(plain: &mut Vec<u8>) -> Vec<u8> {
    let mut taken = std::mem::take(plain);
    taken.remove(0);
    taken
}
