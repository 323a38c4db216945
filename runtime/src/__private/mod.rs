//! Lists everything that generated code may name, and nothing else.

mod assert;
mod check;
mod json;
mod key_part;
mod property;

pub use assert::{
    assert_blob_feature, assert_date_form_resolution, assert_default_is_of_required,
    assert_expiry_is_time, assert_family_keys_apart, assert_field_has_column,
    assert_hide_none_is_optional, assert_property_count, assert_separated,
    assert_wide_part_properties,
};
pub use check::{Array, check_is_entity, check_many_field, check_one_field, check_other_field};
pub use json::{JsonCodec, JsonField};
pub use key_part::{
    UNREAD, bucket_codec, date_codec, descending_codec, find_key_texts, hmac_codec, lower_codec,
    part_segment, period_segment, plain_codec, read_date, read_part, read_plain, width_of_bucket,
    width_of_date, write_date, zero_padded_codec,
};
pub use property::{
    empty_field_slots, field_not_in_keys_error, find_properties, finish_property, finish_secret,
    finish_stored, is_one_of, keep_unknown_property, place_property,
};

pub use crate::__entable_generated_code as generated_code;
// A user's type may be named `str` or `bool`.
pub use core::primitive::{bool, str, u8, u32, usize};
pub use std::{
    borrow::Cow,
    boxed::Box,
    clone::Clone,
    convert::{From, Into, identity},
    default::Default,
    fmt::{self, Debug},
    marker::PhantomData,
    ops::{self, FnOnce},
    option::Option::{self, None, Some},
    result::Result::{Err, Ok},
    string::String,
    vec::Vec,
};

pub use crate::{
    authentic::MessageAuthenticity,
    edm::{EdmCow, EdmType, EdmValue, Input, InvalidValue, Property, PropertyBag, Ticks, ValueRef},
    entity::{
        Blind, Column, ColumnEncryption, ColumnSchema, Discriminator, Encrypted, EntityRows,
        FieldNamed, Flattened, FromRow, FullCopy, FullRow, HoldsField, Json, ListRows, Message,
        PartialCopy, Patch, PathBuilder, Plain, Point, PrimaryRow, Projection, ProjectionHeldBy,
        Properties, PropertyWriter, Range, ReadColumn, Schema, SeriesSchema, Stored, TableEntity,
        TokenProperty, UpgradeFrom,
        blob::column::{BlobColumn, read_blob_properties, write_blob_properties},
        blob::{Blob, BlobField, BlobFieldValue, BlobNames, collect_blob_field_value},
        column::ReadPart,
        dated::DatedTables,
        encode_rows::{EncodeRows, finish_owner_key_writers},
        has_property,
        home::dated_home_table,
        into_point::{HasPathStep, HasPointStep, LeadsToOneRow, NotOneRow, PathInCompilerMessage},
        names::assert_flattened,
        path::{PartitionPathBuilder, PeriodOrExact},
        projection::ProjectedColumn,
        series::{Series, finish_series, store_series},
        set::{
            Aggregate, EntitySet, Members, OtherRow, SetMember, SetMembers, Variant,
            aggregate::{ManyField, OneField, OtherField, PartitionFold},
            derived::{
                assert_copy_keys_apart, assert_member_keys_apart, assert_older, assert_same_type,
                assert_same_width, assert_shared_keys, assert_types_apart, home_table_of,
                projection_schema, read_projection,
            },
            entity_set::read_required_set_item,
            forms::{KeyForm, count_key_forms, key_forms_by_prefix},
            markers::{TypeMarker, build_marker_table, marker_hash_table_len},
            members::RowMatch,
        },
        split::{
            SplitColumn, SplitValue, finish_split, finish_split_json, read_split, read_split_json,
            store_split, store_split_json,
        },
        untyped_path::PathDraft,
        validate::ValidateOutcome,
        version::{
            owner_in_any_version, owner_of_older, primary_in_current_form, read_and_upgrade_older,
            rows_of_any_version, rows_of_older,
        },
    },
    error::{BoxError, Result},
    key::{
        DatePart, Descending, FamilyKind, FixedWidth, Form, KeyPart, KeyWriter, LeftOutStruct,
        Ordered, PrefixInput, RangeInput, Resolution, RowFamily, Segment, TOKEN_WIDTH, Template,
        TextPart, push_token_placeholder,
    },
    row::Row,
    table::{
        BulkChange, BulkVerb, Rewritable, Writable,
        set::decode_reread_row,
        set_write::{
            plan_removal_of, plan_removal_of_unknown_type, plan_replacement_of,
            plan_replacement_of_unknown_type,
        },
        writable::bulk_change,
    },
};

use std::any::TypeId;

use crate::entity::encode_rows;

/// The names that each derive imports all at once: `_rt`, and those that generated code uses most. A
/// path of one segment costs the compiler less than one of two. Each begins with `_rt_`: under its own
/// name it would hide a type of the user.
pub mod short {
    pub use super::{
        BlobField as _rt_BlobField, BulkChange as _rt_BulkChange, BulkVerb as _rt_BulkVerb,
        Clone as _rt_Clone, Column as _rt_Column, ColumnSchema as _rt_ColumnSchema, Cow as _rt_Cow,
        DatePart as _rt_DatePart, Debug as _rt_Debug, Descending as _rt_Descending,
        EncodeRows as _rt_EncodeRows, Err as _rt_Err, FixedWidth as _rt_FixedWidth,
        FnOnce as _rt_FnOnce, Form as _rt_Form, From as _rt_From, FromRow as _rt_FromRow,
        FullCopy as _rt_FullCopy, FullRow as _rt_FullRow, Input as _rt_Input, Into as _rt_Into,
        KeyFieldPatchInput as _rt_KeyFieldPatchInput, KeyPart as _rt_KeyPart,
        KeyWriter as _rt_KeyWriter, None as _rt_None, Ok as _rt_Ok, Option as _rt_Option,
        PartitionPathBuilder as _rt_PartitionPathBuilder, Patch as _rt_Patch,
        PatchInput as _rt_PatchInput, PathBuilder as _rt_PathBuilder, PathDraft as _rt_PathDraft,
        PhantomData as _rt_PhantomData, Plain as _rt_Plain, Point as _rt_Point,
        PrefixInput as _rt_PrefixInput, PrimaryRow as _rt_PrimaryRow, Properties as _rt_Properties,
        Property as _rt_Property, PropertyBag as _rt_PropertyBag,
        PropertyWriter as _rt_PropertyWriter, Range as _rt_Range, RangeInput as _rt_RangeInput,
        ReadColumn as _rt_ReadColumn,
        ReadPart::{Date as _rt_ReadDate, Fixed as _rt_ReadFixed, Plain as _rt_ReadPlain},
        Removable as _rt_Removable, Result as _rt_Result, Row as _rt_Row, RowFamily as _rt_Family,
        Schema as _rt_Schema,
        Segment::Literal as _rt_Literal,
        Some as _rt_Some, SplitValue as _rt_SplitValue, String as _rt_String,
        TableEntity as _rt_TableEntity, Template as _rt_Template, TextPart as _rt_TextPart,
        UpgradeFrom as _rt_UpgradeFrom, ValueRef as _rt_ValueRef, Writable as _rt_Writable,
        bucket_codec as _rt_bucket_codec, bulk_change as _rt_bulk_change,
        check_row_key_matches_fields as _rt_check_row_key_matches_fields,
        date_codec as _rt_date_codec, descending_codec as _rt_descending_codec,
        empty_field_slots as _rt_empty_field_slots, find_key_texts as _rt_key_texts,
        find_properties as _rt_find_properties,
        finish_owner_key_writers as _rt_finish_owner_key_writers,
        finish_property as _rt_finish_property,
        fmt::{Formatter as _rt_Formatter, Result as _rt_FmtResult},
        hmac_codec as _rt_hmac_codec, identity as _rt_identity, is_lower_part as _rt_is_lower_part,
        key_field_schema as _rt_key_field_schema, lower_codec as _rt_lower_codec,
        part_segment as _rt_part_segment, plain_codec as _rt_plain_codec, point as _rt_point,
        property_schema as _rt_property_schema, read_part as _rt_read_part,
        read_plain as _rt_read_plain, schema_defaults_of_entity as _rt_schema_defaults_of_entity,
        set_in_patch as _rt_set_in_patch, start_key_path as _rt_start_key_path,
        stored_column as _rt_stored_column, str as _rt_str, u32 as _rt_u32, usize as _rt_usize,
        zero_padded_codec as _rt_zero_padded_codec,
    };
    pub use crate::__private as _rt;
}

/// Returns whether a part of a row's RowKey is `text` in lower case. Returns `false` for text with escapes or
/// beyond ASCII too, since comparing it would require writing the key.
pub fn is_lower_part(template: &Template, row: &Row, part: usize, text: &str) -> bool {
    let Ok(Some(key)) = template.part_text(row.row_key(), part) else { return false };
    let is_lower =
        |(key, text): (u8, u8)| key.is_ascii() && key != b'~' && key == text.to_ascii_lowercase();
    key.len() == text.len() && key.bytes().zip(text.bytes()).all(is_lower)
}

/// Refuses a copy whose RowKey does not follow from the fields of the entity that was read from it.
///
/// # Errors
///
/// Fails with `is_decode` if the keys and the fields differ, because another program changed the row.
pub fn check_row_key_matches_fields(
    row: &Row,
    family: &'static RowFamily,
    entity: &dyn EncodeRows,
) -> Result<()> {
    check_copy_key("RowKey", row.row_key(), &encode_rows::row_key_in_family(entity, family)?)
}

/// Refuses a remote copy whose PartitionKey does not follow from the fields of the entity that was
/// read from it.
///
/// # Errors
///
/// `is_decode`: another program changed the row.
pub fn check_partition_key_matches_fields(
    row: &Row,
    family: &'static RowFamily,
    entity: &dyn EncodeRows,
) -> Result<()> {
    check_copy_key(
        "PartitionKey",
        row.partition_key(),
        &encode_rows::partition_key_in_family(entity, family)?,
    )
}

fn check_copy_key(name: &str, found: &str, expected: &str) -> Result<()> {
    // Blind tokens are compared where their keys are: when the row is opened.
    if found == expected || crate::key::equals_with_tokens(found, expected) {
        return Ok(());
    }
    let message = format!(
        "the copy's key does not match its fields, which give `{}`: another program changed the copy; mend it with \
         `check()` and `repair()`",
        expected.escape_debug()
    );
    Err(InvalidValue::new(message).into_read_error(name))
}

/// Returns the row family that a projection is read from: `family` if given, otherwise the entity's primary.
///
/// # Errors
///
/// Fails with `is_invalid` for a schema without row families, which no derive generates.
pub fn given_family_or_primary<P: Projection>(
    family: Option<&'static RowFamily>,
) -> Result<&'static RowFamily> {
    family.map_or_else(|| P::Entity::SCHEMA.primary(), Ok)
}

/// A value that a patch accepts for a property whose field has the type `F`.
pub trait PatchInput<F> {
    /// Sets the property.
    fn set<E>(self, patch: Patch<E>, name: &'static str) -> Patch<E>;
}

#[diagnostic::do_not_recommend]
impl<F: Property, V: Input<F::Scalar>> PatchInput<F> for V {
    fn set<E>(self, patch: Patch<E>, name: &'static str) -> Patch<E> {
        patch.set::<F>(name, &self.input())
    }
}

/// Passes on the code of a derive whose `crate = ".."` gives the path of entable. A path that leads
/// nowhere is an error at this call alone: without the call, it would be one at each name in the code.
#[doc(hidden)]
#[macro_export]
macro_rules! __entable_generated_code {
    ($($code:tt)*) => { $($code)* };
}

/// Sets the property `name` in a patch to the argument of a setter.
pub fn set_in_patch<E, F>(
    patch: Patch<E>,
    value: impl PatchInput<F>,
    name: &'static str,
) -> Patch<E> {
    value.set(patch, name)
}

/// A value that a patch can give to a field of the key. There is none.
#[diagnostic::on_unimplemented(
    message = "a patch cannot change a field of the key",
    label = "this field is a part of the key",
    note = "to change the key, delete the entity and insert it again under its new key"
)]
pub trait KeyFieldPatchInput {}

/// The type of a field whose property a patch can remove: an `Option`.
#[diagnostic::on_unimplemented(
    message = "a property of type `{Self}` cannot be removed",
    label = "not an `Option`",
    note = "an entity without this property could not be read; make the field an `Option`"
)]
pub trait Removable {}

#[diagnostic::do_not_recommend]
impl<T> Removable for Option<T> {}

/// Returns the prefix of a flattened struct inside another. `prefix` is the outer struct's prefix, and
/// `name` is the inner struct's prefix within it.
pub fn join_flattened_prefixes(prefix: &str, name: &str) -> String {
    [prefix, name].concat()
}

/// Returns the error for a stored text that no variant of an enum has.
pub fn unknown_variant_error(expected: &str, found: &str) -> InvalidValue {
    InvalidValue::new(format!("expected {expected}, found `{}`", found.escape_debug()))
}

/// Returns a schema with the members that have the same form for every entity. Generated code sets the
/// other members itself.
pub const fn schema_defaults_of_entity<E: TableEntity>() -> Schema {
    Schema {
        rows_through: rows_of_any_version::<E>,
        primary_in_current_form: primary_in_current_form::<E>,
        owner: owner_in_any_version::<E>,
        type_id: TypeId::of::<E>,
        ..Schema::NONE
    }
}

/// Creates the column of a field that is stored as the property `name`. `read` makes the field's
/// value from the stored value, which is `None` if the row lacks the property.
pub const fn stored_column<E, F>(
    name: &'static str,
    read: fn(Option<ValueRef<'_>>) -> Result<F, InvalidValue>,
) -> Column<E, F> {
    Column::for_stored_property(name, read)
}

/// Describes the column of a field that is one property, by [`Property::COLUMN`].
pub const fn property_schema(
    name: &'static str,
    column: (EdmType, bool, &'static str),
) -> ColumnSchema {
    ColumnSchema::of_property_type(name, column)
}

/// Describes the column of a field that the primary's keys give back, by [`Property::COLUMN`].
pub const fn key_field_schema(
    name: &'static str,
    column: (EdmType, bool, &'static str),
) -> ColumnSchema {
    ColumnSchema::of_key_field(name, column)
}

/// Begins a path through a row family, with no part of its keys given.
pub fn start_key_path(family: &'static RowFamily) -> PathDraft {
    PathDraft::new(family)
}

/// Creates the path to one row from what a builder has gathered.
pub fn point<E, V>(draft: PathDraft) -> Point<E, V> {
    Point::from_path_draft(draft)
}

/// Calls `make` with the number of each bucket, in order.
pub fn map_bucket_numbers<T>(count: u32, make: impl FnMut(u32) -> T) -> Vec<T> {
    (0..count).map(make).collect()
}
