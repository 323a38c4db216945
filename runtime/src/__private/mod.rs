//! Everything that generated code may name, and nothing else.

mod assert;
mod json;

pub use assert::{
    assert_apart, assert_blobs, assert_covers, assert_optional, assert_properties, assert_separated,
};
pub use json::{JsonCodec, JsonField};

pub use std::{
    borrow::ToOwned,
    clone::Clone,
    convert::{From, Into},
    default::Default,
    fmt::{self, Debug},
    marker::PhantomData,
    ops::{Fn, FnOnce},
    option::Option::{self, None, Some},
    result::Result::{Err, Ok},
    string::String,
    vec::Vec,
};

pub use crate::{
    edm::{
        EdmCow, EdmType, EdmValue, Input, InvalidValue, Property, PropertyBag, Ticks, Value,
        ValueRef,
    },
    entity::{
        Access, Blind, Column, ColumnEncryption, ColumnSchema, Comparable, CopyRow, Discriminator,
        DynamicEntity, Encrypted, EntityRows, Flattened, FromRow, FullCopy, FullView, HeldBy,
        HoldsField, Json, ListEntry, ListRows, Message, PartialCopy, Partition, Patch, Path,
        PathBuilder, PathDraft, Plain, Point, PrimaryRow, Projection, Properties, PropertyWriter,
        Range, ReadColumn, RemoteList, Scan, Schema, Stored, TableEntity, TokenProperty,
        UpgradeFrom, View, assert_flattened, current_form, owner_in_any_version, owner_of_older,
        rows_of_any_version, rows_of_older,
        set::{
            Aggregate, EntitySet, KeyForm, ManyField, Members, OneField, OtherRow, PartitionFold,
            RowMatch, Set, SetMember, TypeMarker, Variant, assert_members_apart, assert_older,
            assert_same_type, assert_types_apart, build_marker_table, count_key_forms,
            declared_table_of, marker_table_len, projection_schema, read_projection, resolve_row,
            sort_key_forms,
        },
        upgrade_older,
    },
    error::{BoxError, Error, Result},
    key::{
        DatePart, Descending, Family, FamilyKind, FixedWidth, Form, KeyPart, KeyWriter, Ordered,
        Part, PrefixInput, RangeInput, Resolution, Segment, TOKEN_WIDTH, Template, TextPart,
        bucket_width, date_width, decode_period, families_may_collide, lower,
        push_token_placeholder, resolution_of,
    },
    limits::PROPERTIES,
    row::Row,
    table::{
        BulkChange, BulkVerb, Rewritable, Writable, bulk_change, other_removal, other_replacement,
        removal_of, replacement_of, reread_set,
    },
};

/// A key's parts, as they stand in it.
///
/// # Errors
///
/// `is_decode`, naming the key.
#[inline]
pub fn split_key<'k, const PARTS: usize>(
    template: &Template,
    name: &'static str,
    key: &'k str,
) -> Result<[&'k str; PARTS]> {
    template.split(key).map_err(|invalid| invalid.into_read_error(name))
}

/// A field that every family's keys hold.
///
/// # Errors
///
/// `is_decode`, naming the field, for a row of no family.
pub fn from_keys<T>(found: Option<T>, field: &'static str) -> Result<T> {
    found.ok_or_else(|| {
        InvalidValue::new("the row's keys do not hold the field").into_read_error(field)
    })
}

/// Whether a part of a row's RowKey is a text in lower case, as far as that can be told without
/// writing it: texts of ASCII without escapes.
pub fn is_lower_part(template: &Template, row: &Row, part: usize, text: &str) -> bool {
    let Ok(Some(key)) = template.part_text(row.row_key(), part) else { return false };
    let is_lower =
        |(key, text): (u8, u8)| key.is_ascii() && key != b'~' && key == text.to_ascii_lowercase();
    key.len() == text.len() && key.bytes().zip(text.bytes()).all(is_lower)
}

/// Refuses a copy whose key does not follow from its fields.
///
/// # Errors
///
/// `is_decode`: another program changed the row.
pub fn check_copy_key(row: &Row, expected: &str) -> Result<()> {
    // Tokens are compared where their keys are: when the row is opened.
    if row.row_key() == expected || crate::key::equals_with_tokens(row.row_key(), expected) {
        return Ok(());
    }
    let message = format!(
        "the copy's key does not match its fields, which give `{}`: another program changed it; `check()` and `repair()` mend it",
        expected.escape_debug()
    );
    Err(InvalidValue::new(message).into_read_error("RowKey"))
}

/// Refuses a copy in another partition whose PartitionKey does not follow from its fields.
///
/// # Errors
///
/// `is_decode`: another program changed the row.
pub fn check_copy_partition(row: &Row, expected: &str) -> Result<()> {
    let key = row.partition_key();
    if key == expected || crate::key::equals_with_tokens(key, expected) {
        return Ok(());
    }
    let message = format!(
        "the copy's key does not match its fields, which give `{}`: another program changed it; `check()` and `repair()` mend it",
        expected.escape_debug()
    );
    Err(InvalidValue::new(message).into_read_error("PartitionKey"))
}

/// The family that a projection is read from, the entity's primary unless told.
///
/// # Errors
///
/// `is_invalid` for a schema without families, which no derive writes.
pub fn family_or_primary<P: Projection>(
    family: Option<&'static Family>,
) -> Result<&'static Family> {
    family.map_or_else(|| P::Entity::SCHEMA.primary(), Ok)
}

/// A field from a part, by the decoder of its form.
///
/// Generated code names the field's traits itself, `<Type as Trait>::item`, and hands their
/// functions on: so a type that lacks a trait is one message of the compiler's, at the type.
///
/// # Errors
///
/// `is_decode`, naming the field.
#[inline]
pub fn read_part<T>(
    field: &'static str,
    text: &str,
    decode: impl FnOnce(&str) -> Result<T, InvalidValue>,
) -> Result<T> {
    decode(text).map_err(|invalid| invalid.into_read_error(field))
}

/// A field from a part in its plain form: escapes are undone where the part has them.
///
/// # Errors
///
/// `is_decode`, naming the field.
#[inline]
pub fn read_plain<T>(
    field: &'static str,
    text: &str,
    width: Option<usize>,
    decode: impl FnOnce(&str) -> Result<T, InvalidValue>,
) -> Result<T> {
    let decoded = match width {
        Some(_) => decode(text),
        None => crate::key::unescape(text).and_then(|text| decode(&text)),
    };
    decoded.map_err(|invalid| invalid.into_read_error(field))
}

/// Appends what [`DatePart::to_ticks`] made of a field, in a date form.
///
/// # Errors
///
/// A time that has no ticks.
pub fn write_date(
    ticks: Result<Ticks, InvalidValue>,
    form: &str,
    out: &mut String,
) -> Result<(), InvalidValue> {
    crate::key::encode_ticks_in_form(ticks?, form, out)
}

/// Appends the bucket of what `encode` writes.
///
/// # Errors
///
/// Those of `encode`.
pub fn write_bucket_of(
    encode: impl FnOnce(&mut String) -> Result<(), InvalidValue>,
    count: u32,
    out: &mut String,
) -> Result<(), InvalidValue> {
    let mut text = String::new();
    encode(&mut text)?;
    crate::key::push_bucket(crate::key::bucket(&text, count), count, out);
    Ok(())
}

/// A field from what was found of it, by [`Property::from_stored`].
///
/// # Errors
///
/// `is_decode`, naming the property.
#[inline]
pub fn finish_stored<'r, T>(
    found: Option<ValueRef<'r>>,
    prefix: &str,
    name: &str,
    from_stored: impl FnOnce(Option<ValueRef<'r>>) -> Result<T, InvalidValue>,
) -> Result<T> {
    from_stored(found).map_err(|invalid| invalid.into_read_error(&[prefix, name].concat()))
}

/// The result of a conversion whose error says nothing of the value.
///
/// # Errors
///
/// The conversion's, redacted.
#[inline]
pub fn redacted<T>(result: Result<T, InvalidValue>) -> Result<T, InvalidValue> {
    result.map_err(InvalidValue::redacted)
}

/// One field straight from a row, by [`Property::from_stored`].
///
/// # Errors
///
/// `is_decode`, naming the property; `is_corrupt` for a damaged row.
pub fn read_stored<'r, T>(
    row: &'r Row,
    name: &str,
    from_stored: impl FnOnce(Option<ValueRef<'r>>) -> Result<T, InvalidValue>,
) -> Result<T> {
    finish_stored(row.get(name)?, "", name, from_stored)
}

/// Keeps a property that the struct does not know, by [`PropertyBag::put`].
///
/// # Errors
///
/// `is_corrupt` where the name is not UTF-8.
pub fn keep_unknown(name: &[u8], value: ValueRef<'_>, put: impl FnOnce(&str, Value)) -> Result<()> {
    let name = std::str::from_utf8(name)
        .map_err(|_| crate::row::corrupt_row("a property's name is not UTF-8"))?;
    // What a move leaves on a row is nobody's property.
    if !name.starts_with("EntableMov") {
        put(name, value.to_value());
    }
    Ok(())
}

/// What a patch may set a property of type `F` to.
pub trait PatchInput<F> {
    /// The patch with the property set.
    fn set<E>(self, patch: Patch<E>, name: &'static str) -> Patch<E>;
}

#[diagnostic::do_not_recommend]
impl<F: Property, V: Input<F::Scalar>> PatchInput<F> for V {
    fn set<E>(self, patch: Patch<E>, name: &'static str) -> Patch<E> {
        patch.set::<F>(name, &self.input())
    }
}

/// The type of a property that a patch can remove.
#[diagnostic::on_unimplemented(
    message = "a property of type `{Self}` cannot be removed",
    label = "not an `Option`",
    note = "an entity without it could not be read; make the field an `Option`"
)]
pub trait Removable {}

#[diagnostic::do_not_recommend]
impl<T> Removable for Option<T> {}

/// That a projection's field has the type of the entity's.
#[diagnostic::on_unimplemented(
    message = "expected the entity's type `{T}`, found `{Self}`",
    label = "not a `{T}`",
    note = "a projection's field has the type that the entity's field has"
)]
pub trait SameType<T> {
    /// The same value.
    fn same(value: T) -> Self;
}

impl<T> SameType<T> for T {
    fn same(value: T) -> Self {
        value
    }
}

/// A projection's field, from the column of that name.
pub trait Projected<C>: Sized {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// `is_decode`, naming the property.
    fn project(column: &C, row: &Row, family: &'static Family) -> Result<Self>;
}

impl<F: SameType<C::Field>, C: ReadColumn> Projected<C> for F {
    fn project(column: &C, row: &Row, family: &'static Family) -> Result<Self> {
        column.read(row, family).map(Self::same)
    }
}

/// The name of a property in a struct that is flattened twice.
pub fn join(prefix: &str, name: &str) -> String {
    [prefix, name].concat()
}

/// The error for a text that is no variant of an enum.
pub fn unknown_variant(expected: &str, found: &str) -> InvalidValue {
    InvalidValue::new(format!("expected {expected}, found `{}`", found.escape_debug()))
}

/// One value for each bucket, in order.
pub fn each_bucket<T>(count: u32, make: impl FnMut(u32) -> T) -> Vec<T> {
    (0..count).map(make).collect()
}

/// Appends the number of a bucket, as a key has it.
///
/// # Errors
///
/// Never: it has the form of a part's encoder.
pub fn write_bucket(bucket: u32, count: u32, out: &mut String) -> Result<(), InvalidValue> {
    crate::key::push_bucket(bucket, count, out);
    Ok(())
}
