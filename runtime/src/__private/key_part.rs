//! Functions for the parts of keys that generated code names instead of writing closures: each is
//! compiled once for each type of a field, not once for each part of each entity.
//!
//! They take the functions of a field type's traits as function pointers and have no trait bounds. With
//! a bound, the compiler would report a field type that lacks the trait twice: at the field, and at the
//! derive attribute.

use crate::{
    edm::{EdmCow, EdmValue, InvalidValue, Ticks, Value, ValueRef},
    error::Result,
    key::{
        DatePart, Descending, FixedWidth, Form, KeyPart, PartCodec, RowFamily, Segment, Template,
        TemplatePart, TextPart, bucket_width, date_width, decode_period, push_token_placeholder,
        unescape,
    },
    row::Row,
};

/// The value for a part that no field is read from, in the lists of indexes that [`find_key_texts`]
/// takes.
pub const UNREAD: usize = usize::MAX;

/// Creates the segment of a template that writes `field` in the form `form`. `width` is the length
/// of its text if that is fixed. `codec` converts the value of a stored property to the segment's
/// text, and back.
pub const fn part_segment(
    field: &'static str,
    form: Form,
    width: Option<usize>,
    codec: PartCodec,
) -> Segment {
    Segment::Part(TemplatePart { field, form, width, codec, is_exact: form.is_reversible() })
}

/// Creates the template segment of a date form that is coarser than the field: it writes only the period
/// that contains the time in `field`. Takes the arguments of [`part_segment`].
pub const fn period_segment(
    field: &'static str,
    form: Form,
    width: Option<usize>,
    codec: PartCodec,
) -> Segment {
    Segment::Part(TemplatePart { field, form, width, codec, is_exact: false })
}

/// Returns the number of characters that the date form `form` writes, for the `width` of [`part_segment`].
/// Never `None`: every date form has a fixed width.
pub const fn width_of_date(form: &str) -> Option<usize> {
    Some(date_width(form))
}

/// Returns the width of a part of the form `{field:bucket(count)}`: the digits of the greatest
/// bucket. Never `None`.
pub const fn width_of_bucket(count: u32) -> Option<usize> {
    Some(bucket_width(count))
}

/// Returns the codec of parts of the form `{field}`.
pub const fn plain_codec<T: KeyPart + EdmValue>() -> PartCodec {
    PartCodec { encode: encode_plain::<T>, decode: decode_plain::<T> }
}

/// Returns the codec of parts of the form `{field:06}`.
pub const fn zero_padded_codec<T: FixedWidth + EdmValue>() -> PartCodec {
    PartCodec { encode: encode_zero_padded::<T>, decode: decode_width::<T> }
}

/// Returns the codec of parts of the form `{field:desc}`.
pub const fn descending_codec<T: Descending + EdmValue>() -> PartCodec {
    PartCodec { encode: encode_descending::<T>, decode: decode_descending::<T> }
}

/// Returns the codec of parts in a date form, such as `{field:%Y%m%d}`.
pub const fn date_codec<T: DatePart + EdmValue>() -> PartCodec {
    PartCodec { encode: encode_date::<T>, decode: decode_date::<T> }
}

/// Returns the codec of parts of the form `{field:lower}`.
pub const fn lower_codec<T: TextPart + EdmValue>() -> PartCodec {
    PartCodec { encode: encode_lower::<T>, decode: refuse_to_decode }
}

/// Returns the codec of parts of the form `{field:bucket(16)}`.
pub const fn bucket_codec<T: KeyPart + EdmValue>() -> PartCodec {
    PartCodec { encode: encode_bucket::<T>, decode: refuse_to_decode }
}

/// Returns the codec of parts of the form `{field:hmac}`.
pub const fn hmac_codec<T: EdmValue>() -> PartCodec {
    PartCodec { encode: encode_hmac::<T>, decode: refuse_to_decode }
}

/// Appends a stored value in the form `{field}`.
///
/// # Errors
///
/// A value that is not of the field's type.
fn encode_plain<T: KeyPart + EdmValue>(
    _: Form,
    value: ValueRef<'_>,
    out: &mut String,
) -> Result<(), InvalidValue> {
    T::from_edm(value)?.encode(out)
}

/// Appends a stored value in the form `{field:06}`.
///
/// # Errors
///
/// A value that is not of the field's type or too wide.
fn encode_zero_padded<T: FixedWidth + EdmValue>(
    form: Form,
    value: ValueRef<'_>,
    out: &mut String,
) -> Result<(), InvalidValue> {
    let Form::Width(width) = form else { return Err(other_form_error()) };
    T::from_edm(value)?.encode_zero_padded(width, out)
}

/// Appends a stored value in the form `{field:desc}`.
///
/// # Errors
///
/// A value that is not of the field's type.
fn encode_descending<T: Descending + EdmValue>(
    _: Form,
    value: ValueRef<'_>,
    out: &mut String,
) -> Result<(), InvalidValue> {
    T::from_edm(value)?.encode_descending(out)
}

/// Appends a stored value in a date form, such as `{field:%Y%m%d}`.
///
/// # Errors
///
/// A value that is not of the field's type.
fn encode_date<T: DatePart + EdmValue>(
    form: Form,
    value: ValueRef<'_>,
    out: &mut String,
) -> Result<(), InvalidValue> {
    let Form::Date(form) = form else { return Err(other_form_error()) };
    write_date(T::from_edm(value)?.to_ticks(), form, out)
}

/// Appends a stored value in the form `{field:lower}`.
///
/// # Errors
///
/// A value that is not of the field's type.
fn encode_lower<T: TextPart + EdmValue>(
    _: Form,
    value: ValueRef<'_>,
    out: &mut String,
) -> Result<(), InvalidValue> {
    crate::key::lower(T::from_edm(value)?.as_text(), out);
    Ok(())
}

/// Appends the bucket of a stored value, for the form `{field:bucket(16)}`. The bucket is a hash of
/// the value's key text, a number below 16 here.
///
/// # Errors
///
/// A value that is not of the field's type.
fn encode_bucket<T: KeyPart + EdmValue>(
    form: Form,
    value: ValueRef<'_>,
    out: &mut String,
) -> Result<(), InvalidValue> {
    let Form::Bucket(count) = form else { return Err(other_form_error()) };
    write_bucket_of(&T::from_edm(value)?, T::encode, count, out)
}

/// Appends a key part of the form `{field:hmac}`: a placeholder, which is later replaced by the blind
/// token of the stored value.
///
/// # Errors
///
/// A value that is not of the field's type.
fn encode_hmac<T: EdmValue>(
    _: Form,
    value: ValueRef<'_>,
    out: &mut String,
) -> Result<(), InvalidValue> {
    push_token_placeholder(T::from_edm(value)?.to_edm(), out)
}

/// Reads a value from a part of the form `{field}`.
fn decode_plain<T: KeyPart + EdmValue>(_: Form, text: &str) -> Result<Value, InvalidValue> {
    match T::WIDTH {
        Some(_) => stored_form_of(&T::decode(text)?),
        None => stored_form_of(&T::decode(&unescape(text)?)?),
    }
}

/// Reads a value from a part of the form `{field:06}`.
fn decode_width<T: FixedWidth + EdmValue>(_: Form, text: &str) -> Result<Value, InvalidValue> {
    stored_form_of(&T::decode_width(text)?)
}

/// Reads a value from a part of the form `{field:desc}`.
fn decode_descending<T: Descending + EdmValue>(_: Form, text: &str) -> Result<Value, InvalidValue> {
    stored_form_of(&T::decode_descending(text)?)
}

/// Reads a value from a part in a date form.
fn decode_date<T: DatePart + EdmValue>(form: Form, text: &str) -> Result<Value, InvalidValue> {
    let Form::Date(form) = form else { return Err(other_form_error()) };
    stored_form_of(&T::from_ticks(decode_period(text, form)?)?)
}

/// Fails: the text of such a part does not restore its field.
fn refuse_to_decode(_: Form, _: &str) -> Result<Value, InvalidValue> {
    Err(InvalidValue::new("the key part does not restore its field"))
}

fn stored_form_of<T: EdmValue>(value: &T) -> Result<Value, InvalidValue> {
    value.to_edm().map(EdmCow::into_value)
}

fn other_form_error() -> InvalidValue {
    InvalidValue::new("the part has another form than its codec")
}

/// Appends a time to a key, in the date form `form`. `ticks` is the result of
/// [`DatePart::to_ticks`].
///
/// # Errors
///
/// Returns the error in `ticks`, for a time outside the range that ticks can express.
pub fn write_date(
    ticks: Result<Ticks, InvalidValue>,
    form: &str,
    out: &mut String,
) -> Result<(), InvalidValue> {
    crate::key::encode_ticks_in_form(ticks?, form, out)
}

/// Appends a value's bucket: the hash of the text that `encode` writes of the value, below `count`.
///
/// # Errors
///
/// Returns the error of `encode`.
fn write_bucket_of<T>(
    value: &T,
    encode: fn(&T, &mut String) -> Result<(), InvalidValue>,
    count: u32,
    out: &mut String,
) -> Result<(), InvalidValue> {
    let mut text = String::new();
    encode(value, &mut text)?;
    write_bucket(crate::key::bucket(&text, count), count, out)
}

/// Appends the number of a bucket, padded to the width that all buckets of a key have.
///
/// # Errors
///
/// None. The function returns a `Result` because encoders of parts do.
fn write_bucket(bucket: u32, count: u32, out: &mut String) -> Result<(), InvalidValue> {
    crate::key::push_bucket(bucket, count, out);
    Ok(())
}

/// Splits the keys of `row` into the texts of their parts, and stores each text in `texts`. `slots`
/// contains a pair for each row family: for every part of the PartitionKey, and for every part of
/// the RowKey, the index in `texts`. The index [`UNREAD`] means that no field needs the part. A key
/// is not compared with its template if all of its parts are `UNREAD`.
///
/// # Errors
///
/// `is_decode`, naming the key, for a key that its template cannot have written.
#[inline]
pub fn find_key_texts<'r, const FIELDS: usize>(
    row: &'r Row,
    family: &'static RowFamily,
    slots: &[(&[usize], &[usize])],
    texts: &mut [Option<&'r str>; FIELDS],
) -> Result<()> {
    let Some((partition_slots, row_slots)) = slots.get(family.index) else { return Ok(()) };
    let (partition_key, row_key) = row.keys();
    read_key(&family.partition, "PartitionKey", partition_key, partition_slots, texts)?;
    read_key(&family.row, "RowKey", row_key, row_slots, texts)
}

#[inline]
fn read_key<'r>(
    template: &Template,
    name: &'static str,
    key: &'r str,
    slots: &[usize],
    texts: &mut [Option<&'r str>],
) -> Result<()> {
    if slots.iter().all(|slot| *slot == UNREAD) {
        return Ok(());
    }
    let mut slots = slots.iter();
    template
        .each_part_text(key, |text| {
            if let Some(place) = slots.next().and_then(|slot| texts.get_mut(*slot)) {
                *place = Some(text);
            }
        })
        .map_err(|invalid| invalid.into_read_error(name))
}

/// Reads a field from a part, by the decoder of its form.
///
/// Generated code passes the decoder as `<Type as Trait>::item`. If the type lacks the trait, the
/// compiler then reports that once, at the type.
///
/// # Errors
///
/// `is_decode`, naming the field.
#[inline]
pub fn read_part<T>(
    field: &'static str,
    text: &str,
    decode: fn(&str) -> Result<T, InvalidValue>,
) -> Result<T> {
    decode(text).map_err(|invalid| invalid.into_read_error(field))
}

/// Reads a field from a part in its plain form: escapes are undone where the part has them.
///
/// # Errors
///
/// `is_decode`, naming the field.
#[inline]
pub fn read_plain<T>(
    field: &'static str,
    text: &str,
    width: Option<usize>,
    decode: fn(&str) -> Result<T, InvalidValue>,
) -> Result<T> {
    let decoded = match width {
        Some(_) => decode(text),
        None => unescape(text).and_then(|text| decode(&text)),
    };
    decoded.map_err(|invalid| invalid.into_read_error(field))
}

/// Reads a field from a part in a date form, by [`DatePart::from_ticks`].
///
/// # Errors
///
/// `is_decode`, naming the field.
#[inline]
pub fn read_date<T>(
    field: &'static str,
    text: &str,
    form: &str,
    from_ticks: fn(Ticks) -> Result<T, InvalidValue>,
) -> Result<T> {
    decode_period(text, form).and_then(from_ticks).map_err(|invalid| invalid.into_read_error(field))
}
