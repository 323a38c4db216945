//! Everything that generated code may name, and nothing else.

pub use std::{
    borrow::ToOwned,
    clone::Clone,
    convert::{From, Into},
    default::Default,
    fmt::{self, Debug},
    marker::PhantomData,
    ops::Fn,
    option::Option::{self, None, Some},
    result::Result::{Err, Ok},
    string::String,
    vec::Vec,
};

pub use crate::{
    edm::{EdmCow, EdmType, EdmValue, Input, InvalidValue, Property, PropertyBag, Value, ValueRef},
    entity::set::{members_meet, types_meet},
    entity::{
        Access, Column, ColumnSchema, Comparable, CopyRow, Discriminator, Draft, DynamicEntity,
        EntityRows, Flattened, FromRow, FullCopy, FullView, Holds, Json, ListEntry, ListRows,
        PartialCopy, Partition, Patch, Path, Plain, Point, PrimaryRow, Projection, Properties,
        PropertyWriter, Range, ReadColumn, Scan, Schema, Stored, TableEntity, View, Within,
        finish_json, finish_property, keep_extra, older_rows, older_version, read_json,
        read_properties, read_property,
        set::{
            Aggregate, Claim, EntitySet, Folding, Many, Marker, Members, One, Set, SetMember,
            Variant, count_markers, read_member, resolve_row, sorted_markers,
        },
    },
    error::{BoxError, Error, Result},
    key::{
        DatePart, Descending, Family, FamilyKind, FixedWidth, Form, KeyPart, KeyWriter, Ordered,
        Part, PrefixInput, RangeInput, Resolution, Segment, Template, TextPart, bucket_width,
        date_width, decode_date, encode_bucket, encode_date, families_meet, lower, resolution_of,
    },
    limits::PROPERTIES,
    row::Row,
    table::{
        BulkChange, BulkVerb, Rewritable, Writable, bulk_change, other_removal, other_replacement,
        removal_of, replacement_of,
    },
};

/// A key's parts, as they stand in it.
///
/// # Errors
///
/// `is_decode`, naming the key.
pub fn split_key<'k, const PARTS: usize>(
    template: &Template,
    name: &'static str,
    key: &'k str,
) -> Result<[&'k str; PARTS]> {
    template.split(key).map_err(|invalid| invalid.on_read(name))
}

/// A field that every family's keys hold.
///
/// # Errors
///
/// `is_decode`, naming the field, for a row of no family.
pub fn from_keys<T>(found: Option<T>, field: &'static str) -> Result<T> {
    found.ok_or_else(|| InvalidValue::new("the row's keys do not hold the field").on_read(field))
}

/// Refuses a copy whose key does not follow from its fields.
///
/// # Errors
///
/// `is_decode`: another program changed the row.
pub fn check_copy_key(row: &Row, expected: &str) -> Result<()> {
    if row.row_key() == expected {
        return Ok(());
    }
    let message = format!(
        "the copy's key does not match its fields, which give `{}`: another program changed it; `check()` and `repair()` mend it",
        expected.escape_debug()
    );
    Err(InvalidValue::new(message).on_read("RowKey"))
}

/// The family that is read, the primary unless told.
pub fn family_or_primary<E: TableEntity>(
    family: Option<&'static Family>,
) -> Option<&'static Family> {
    family.or_else(|| E::SCHEMA.primary().ok())
}

/// A field from a part in its plain form.
///
/// # Errors
///
/// `is_decode`, naming the field.
pub fn read_plain<T: KeyPart>(field: &'static str, text: &str) -> Result<T> {
    let decoded = if T::WIDTH.is_some() {
        T::decode(text)
    } else {
        crate::key::unescape(text).and_then(|text| T::decode(&text))
    };
    decoded.map_err(|invalid| invalid.on_read(field))
}

/// A field from a part of fixed width.
///
/// # Errors
///
/// `is_decode`, naming the field.
pub fn read_width<T: FixedWidth>(field: &'static str, text: &str) -> Result<T> {
    T::decode_width(text).map_err(|invalid| invalid.on_read(field))
}

/// A field from a part in descending form.
///
/// # Errors
///
/// `is_decode`, naming the field.
pub fn read_descending<T: Descending>(field: &'static str, text: &str) -> Result<T> {
    T::decode_descending(text).map_err(|invalid| invalid.on_read(field))
}

/// A field from a part in a date form.
///
/// # Errors
///
/// `is_decode`, naming the field.
pub fn read_date<T: DatePart>(field: &'static str, text: &str, form: &str) -> Result<T> {
    decode_date(text, form).map_err(|invalid| invalid.on_read(field))
}

/// The table that an entity declares.
pub fn table_of<E: TableEntity>(_: &E) -> &'static str {
    E::SCHEMA.table
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
    let width = bucket_width(count);
    out.push_str(&format!("{bucket:0width$}"));
    Ok(())
}

/// Refuses the expansion where a part has a variable width and no literal after it: the text of the
/// panic is the compiler's message.
#[allow(clippy::panic, reason = "evaluated by the compiler only")]
pub const fn assert_separated(template: &Template, message: &'static str) {
    if !template.is_separated() {
        panic!("{}", message);
    }
}

/// Refuses the expansion of an entity with more properties than the service keeps.
#[allow(clippy::panic, reason = "evaluated by the compiler only")]
pub const fn assert_properties(columns: &[ColumnSchema], markers: usize, message: &'static str) {
    if ColumnSchema::count(columns) + markers > PROPERTIES {
        panic!("{}", message);
    }
}

/// Refuses the expansion where two families of rows could meet in one key.
#[allow(clippy::panic, reason = "evaluated by the compiler only")]
pub const fn assert_apart(a: &Family, b: &Family, message: &'static str) {
    if families_meet(a, b) {
        panic!("{}", message);
    }
}

/// Refuses the expansion where a date form that was taken to give its field back does not.
#[allow(clippy::panic, reason = "evaluated by the compiler only")]
pub const fn assert_covers(form: &str, value: Resolution, message: &'static str) {
    if !resolution_of(form).covers(value) {
        panic!("{}", message);
    }
}

/// Refuses the expansion of a set in which two members' rows say the same type.
#[track_caller]
#[allow(clippy::panic, reason = "evaluated by the compiler only")]
pub const fn assert_types_apart(a: &Schema, b: &Schema, message: &'static str) {
    if types_meet(a, b) {
        panic!("{}", message);
    }
}

/// Refuses the expansion of a set in which rows of two members could have one key.
#[track_caller]
#[allow(clippy::panic, reason = "evaluated by the compiler only")]
pub const fn assert_members_apart(a: &Schema, b: &Schema, message: &'static str) {
    if !types_meet(a, b) && members_meet(a, b) {
        panic!("{}", message);
    }
}
