//! Long texts and bytes that are split into pieces, each of which is a property of the row.

use std::{borrow::Cow, fmt, marker::PhantomData};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};

use super::{
    PropertyWriter, ReadColumn,
    several_properties::{ComparedAsOne, find_values, redact_error_if, refuse_comparisons},
};
use crate::{
    edm::{EdmType, InvalidValue, Value, ValueRef, json_from_edm},
    error::{Error, Result, SealFault, ServiceCode},
    filter::Filter,
    key::RowFamily,
    limits::{PROPERTY_BYTES, STRING_UNITS},
    row::Row,
};

/// The column of a value that is stored in `N` pieces. Filters cannot compare it.
pub struct SplitColumn<E, F, const N: usize> {
    names: &'static [&'static str; N],
    read: fn(&Row, &[&str; N]) -> Result<F>,
    of: PhantomData<fn() -> E>,
}

impl<E, F, const N: usize> fmt::Debug for SplitColumn<E, F, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SplitColumn").field(&self.names.first()).finish()
    }
}

impl<E, F, const N: usize> SplitColumn<E, F, N> {
    /// Creates the column of a value whose pieces are stored under these names.
    #[doc(hidden)]
    pub const fn new(
        names: &'static [&'static str; N],
        read: fn(&Row, &[&str; N]) -> Result<F>,
    ) -> Self {
        Self { names, read, of: PhantomData }
    }
}

impl<E, F, const N: usize> SplitColumn<E, F, N> {
    refuse_comparisons! { eq ne lt le gt ge }
}

impl<E, F, const N: usize> ReadColumn for SplitColumn<E, F, N> {
    type Field = F;

    fn select(&self, _: &RowFamily, names: &mut Vec<String>) {
        names.extend(self.names.map(str::to_owned));
    }

    fn read(&self, row: &Row, _: &'static RowFamily) -> Result<F> {
        (self.read)(row, self.names)
    }
}

/// A type that `#[table(split(n))]` supports: `String`, `Vec<u8>`, or an `Option` of these.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be split into pieces",
    label = "neither text nor bytes",
    note = "`split(n)` supports `String`, `Vec<u8>` and `Option`s of these; to split any serde type, write `#[table(split(n), json)]`"
)]
pub trait SplitValue: Sized {
    /// The type without `Option`.
    type Whole: SplitValue;

    /// The stored type of each piece.
    const EDM: EdmType;

    /// Whether a row may have no piece, which is the case for an `Option`.
    #[doc(hidden)]
    const OPTIONAL: bool = false;

    /// Returns the text or bytes, or `None` if they are absent.
    fn whole(&self) -> Option<TextOrBytes<'_>>;

    /// Joins the pieces into the value. `pieces` is `None` if the value is absent.
    ///
    /// # Errors
    ///
    /// Fails if `pieces` is `None` and the type is not an `Option`, or if the pieces have a different type.
    fn join(pieces: Option<Vec<ValueRef<'_>>>) -> Result<Self, InvalidValue>;
}

/// The value of a split field before it is split.
#[derive(Debug, Clone, Copy)]
pub enum TextOrBytes<'v> {
    /// A text, split between characters.
    Text(&'v str),
    /// Bytes.
    Bytes(&'v [u8]),
}

fn absent_error() -> InvalidValue {
    InvalidValue::new("expected the pieces of a text, found no such property")
}

impl SplitValue for String {
    type Whole = Self;

    const EDM: EdmType = EdmType::String;

    fn whole(&self) -> Option<TextOrBytes<'_>> {
        Some(TextOrBytes::Text(self))
    }

    fn join(pieces: Option<Vec<ValueRef<'_>>>) -> Result<Self, InvalidValue> {
        let texts = pieces.ok_or_else(absent_error)?.into_iter().map(|piece| match piece {
            ValueRef::String(text) => Ok(text),
            other => Err(InvalidValue::wrong_type(EdmType::String, other.edm_type())),
        });
        texts.collect()
    }
}

impl SplitValue for Vec<u8> {
    type Whole = Self;

    const EDM: EdmType = EdmType::Binary;

    fn whole(&self) -> Option<TextOrBytes<'_>> {
        Some(TextOrBytes::Bytes(self))
    }

    fn join(pieces: Option<Vec<ValueRef<'_>>>) -> Result<Self, InvalidValue> {
        let bytes = pieces.ok_or_else(absent_error)?.into_iter().map(|piece| match piece {
            ValueRef::Binary(bytes) => Ok(bytes),
            other => Err(InvalidValue::wrong_type(EdmType::Binary, other.edm_type())),
        });
        Ok(bytes.collect::<Result<Vec<_>, _>>()?.concat())
    }
}

impl<T: SplitValue<Whole = T>> SplitValue for Option<T> {
    type Whole = T;

    const EDM: EdmType = T::EDM;

    const OPTIONAL: bool = true;

    fn whole(&self) -> Option<TextOrBytes<'_>> {
        self.as_ref().and_then(T::whole)
    }

    fn join(pieces: Option<Vec<ValueRef<'_>>>) -> Result<Self, InvalidValue> {
        pieces.map(|pieces| T::join(Some(pieces))).transpose()
    }
}

/// The number of bytes in the hash at the beginning of an encrypted value.
const HASH_BYTES: usize = 16;
/// The length of that hash at the beginning of a text, as unpadded base64 for URLs.
const HASH_CHARACTERS: usize = 22;

/// Returns the first bytes of the SHA-256 of a value, given in pieces. The hash is encrypted together with the first
/// piece, and proves that all pieces belong to one value: each piece is encrypted on its own, so without the hash
/// somebody could put back an older piece.
fn hash_of_pieces<'p>(pieces: impl Iterator<Item = &'p [u8]>) -> [u8; HASH_BYTES] {
    let mut hash = Sha256::new();
    pieces.for_each(|piece| hash.update(piece));
    let mut first = [0; HASH_BYTES];
    first.iter_mut().zip(hash.finalize()).for_each(|(to, from)| *to = from);
    first
}

fn hash_and_bytes(bytes: &[u8]) -> Vec<u8> {
    [&hash_of_pieces([bytes].into_iter())[..], bytes].concat()
}

fn hash_and_text(text: &str) -> String {
    let hash = hash_of_pieces([text.as_bytes()].into_iter());
    [&*URL_SAFE_NO_PAD.encode(hash), text].concat()
}

/// Returns the pieces of an encrypted value without the hash in the first piece. Returns `None` if the hash is
/// missing or does not match the pieces.
fn verify_pieces<'r>(mut pieces: Vec<ValueRef<'r>>) -> Option<Vec<ValueRef<'r>>> {
    let first = pieces.first_mut()?;
    let stored = match *first {
        ValueRef::String(text) => {
            let (hash, text) = text.split_at_checked(HASH_CHARACTERS)?;
            *first = ValueRef::String(text);
            URL_SAFE_NO_PAD.decode(hash).ok()?
        }
        ValueRef::Binary(bytes) => {
            let (hash, bytes) = bytes.split_at_checked(HASH_BYTES)?;
            *first = ValueRef::Binary(bytes);
            hash.to_vec()
        }
        // The caller that joins the pieces refuses other types.
        _ => return Some(pieces),
    };
    let contents = pieces.iter().map(|piece| match piece {
        ValueRef::String(text) => text.as_bytes(),
        ValueRef::Binary(bytes) => bytes,
        _ => &[],
    });
    (stored == hash_of_pieces(contents)).then_some(pieces)
}

/// Returns the first piece in the form that encrypted fields store, given all pieces of a value without its hash.
/// Returns `None` if a piece is missing or is neither text nor bytes.
pub(crate) fn first_piece_with_hash(pieces: &[Option<ValueRef<'_>>]) -> Option<Value> {
    let mut contents = Vec::with_capacity(pieces.len());
    for piece in pieces {
        contents.push(match (*piece)? {
            ValueRef::String(text) => text.as_bytes(),
            ValueRef::Binary(bytes) => bytes,
            _ => return None,
        });
    }
    let hash = hash_of_pieces(contents.into_iter());
    Some(match (*pieces.first()?)? {
        ValueRef::String(text) => [&*URL_SAFE_NO_PAD.encode(hash), text].concat().into(),
        ValueRef::Binary(bytes) => Value::Binary([&hash[..], bytes].concat().into()),
        _ => return None,
    })
}

/// The maximum number of bytes that encryption adds to a text.
const SEAL_BYTES: usize = 512;

/// Returns the maximum number of bytes in a piece of a text. A piece of an encrypted field is shorter, because its
/// padded and encrypted form must fit into a property.
fn piece_bytes(pad: Option<u32>) -> usize {
    match pad {
        None => usize::MAX,
        Some(pad) => {
            // The derive refuses a `pad` above 32,768, so the conversion succeeds, and a piece has
            // room for more than 31 KiB. The result is never 0, which `chunks` would refuse.
            let pad = usize::try_from(pad).unwrap_or_default();
            PROPERTY_BYTES.saturating_sub(SEAL_BYTES + pad)
        }
    }
}

/// Returns the longest prefix of a text that fits into a piece, and the rest.
fn cut_text(text: &str, most_bytes: usize) -> (&str, &str) {
    let mut units = 0;
    for (at, character) in text.char_indices() {
        units += character.len_utf16();
        // The service counts UTF-16 units in a text. An encrypted text is stored as bytes.
        if units > STRING_UNITS || at + character.len_utf8() > most_bytes {
            // `char_indices` returns character boundaries, so the fallback is unreachable.
            return text.split_at_checked(at).unwrap_or((text, ""));
        }
    }
    (text, "")
}

/// Writes a text or bytes in pieces. Writes nothing for an absent value. `whole` is the result of
/// `SplitValue::whole`. `pad` is the padding of an encrypted field, whose first piece also contains a hash of the
/// value. Unused pieces are written empty to replace the pieces of an earlier value.
///
/// # Errors
///
/// Fails with `is_too_large` and the property's name if the value does not fit into the pieces.
#[doc(hidden)]
pub fn store_split<const N: usize>(
    out: &mut PropertyWriter<'_>,
    names: &[&str; N],
    whole: Option<TextOrBytes<'_>>,
    pad: Option<u32>,
) -> Result<()> {
    match whole {
        None => Ok(()),
        Some(TextOrBytes::Text(text)) => store_text(out, names, text, pad),
        Some(TextOrBytes::Bytes(bytes)) => {
            let most = piece_bytes(pad).min(PROPERTY_BYTES);
            let stored = match pad {
                Some(_) => Cow::Owned(hash_and_bytes(bytes)),
                None => Cow::Borrowed(bytes),
            };
            if stored.len() > most.saturating_mul(N) {
                return Err(value_too_large_error(out, names, bytes.len(), pad));
            }
            let mut pieces = stored.chunks(most);
            for name in names {
                out.put_value(name, ValueRef::Binary(pieces.next().unwrap_or_default()));
            }
            Ok(())
        }
    }
}

fn store_text(
    out: &mut PropertyWriter<'_>,
    names: &[&str],
    text: &str,
    pad: Option<u32>,
) -> Result<()> {
    let most = piece_bytes(pad);
    let stored = match pad {
        Some(_) => Cow::Owned(hash_and_text(text)),
        None => Cow::Borrowed(text),
    };
    let mut rest = &*stored;
    let mut pieces = Vec::with_capacity(names.len());
    for _ in names {
        let (piece, after) = cut_text(rest, most);
        pieces.push(piece);
        rest = after;
    }
    if !rest.is_empty() {
        return Err(value_too_large_error(out, names, text.len(), pad));
    }
    for (name, piece) in names.iter().zip(pieces) {
        out.put_value(name, ValueRef::String(piece));
    }
    Ok(())
}

/// Returns the error for a value that does not fit into its pieces.
fn value_too_large_error(
    out: &PropertyWriter<'_>,
    names: &[&str],
    bytes: usize,
    pad: Option<u32>,
) -> Error {
    let (pieces, most) = (names.len(), piece_bytes(pad).min(PROPERTY_BYTES));
    let hash = if pad.is_some() { ", the first one with a hash of the value" } else { "" };
    let message = format!(
        "the value has {bytes} bytes, but each of its {pieces} pieces holds at most {most}{hash}; write a larger \
         `split(n)`, or keep the value in a blob"
    );
    let name = names.first().copied().unwrap_or_default();
    out.write_error_with_row_keys(
        Error::service(ServiceCode::PropertyValueTooLarge, message).in_property(name),
    )
}

/// Writes the JSON text of a value in pieces.
///
/// # Errors
///
/// Fails with `is_invalid` for a value without a JSON form and for JSON that does not read back as its type. Fails
/// with `is_too_large` if the JSON does not fit.
#[doc(hidden)]
pub fn store_split_json<T: Serialize + DeserializeOwned, const N: usize>(
    out: &mut PropertyWriter<'_>,
    names: &[&str; N],
    value: &T,
    pad: Option<u32>,
) -> Result<()> {
    let name = names.first().copied().unwrap_or_default();
    let text = out.json_text(value).map_err(|invalid| {
        // The message of serde may contain the value.
        out.write_error_with_row_keys(
            redact_error_if(pad.is_some(), invalid).into_write_error(name),
        )
    })?;
    store_text(out, names, &text, pad)
}

/// Joins the pieces that were found in a row into a value. `join` is the method of [`SplitValue`]. If no piece was
/// found, the value is absent.
///
/// # Errors
///
/// Fails with `is_decode` and the property's name if only some pieces were found, a piece does not fit, or the
/// value is absent and the type is not an `Option`. Fails with `is_decrypt` if encrypted pieces belong to
/// different values.
#[doc(hidden)]
pub fn finish_split<T, const N: usize>(
    found: [Option<ValueRef<'_>>; N],
    names: &[&str; N],
    is_secret: bool,
    join: impl Fn(Option<Vec<ValueRef<'_>>>) -> Result<T, InvalidValue>,
) -> Result<T> {
    let first = names.first().copied().unwrap_or_default();
    let value = join(whole_pieces(found, names, is_secret)?);
    value.map_err(|invalid| redact_error_if(is_secret, invalid).into_read_error(first))
}

/// Returns all pieces, or `None` if the row has none of them. For an encrypted value, verifies the hash in the
/// first piece and removes it.
///
/// # Errors
///
/// Fails with `is_decode` if the row has only some of the pieces, and with `is_decrypt` if encrypted pieces belong
/// to different values.
fn whole_pieces<'r, const N: usize>(
    found: [Option<ValueRef<'r>>; N],
    names: &[&str; N],
    is_secret: bool,
) -> Result<Option<Vec<ValueRef<'r>>>> {
    if found.iter().all(Option::is_none) {
        return Ok(None);
    }
    let pieces = found.into_iter().zip(names).map(|(piece, name)| {
        let missing = || InvalidValue::new("expected all pieces of the text, this one is missing");
        piece.ok_or_else(|| missing().into_read_error(name))
    });
    let pieces = pieces.collect::<Result<Vec<_>>>()?;
    if !is_secret {
        return Ok(Some(pieces));
    }
    let mixed = || {
        let message = "the pieces of the value were not written together: another program wrote one of them, or \
                       someone restored an old one";
        let name = names.first().copied().unwrap_or_default();
        Error::seal(SealFault::Authentication, message).in_property(name)
    };
    verify_pieces(pieces).ok_or_else(mixed).map(Some)
}

/// Reads a value from the pieces of its JSON text.
///
/// # Errors
///
/// Fails with `is_decode` and the property's name for a piece that is missing or does not fit, and with
/// `is_decrypt` if encrypted pieces belong to different values.
#[doc(hidden)]
pub fn finish_split_json<T: DeserializeOwned, const N: usize>(
    found: [Option<ValueRef<'_>>; N],
    names: &[&str; N],
    is_secret: bool,
) -> Result<T> {
    let first = names.first().copied().unwrap_or_default();
    let value = String::join(whole_pieces(found, names, is_secret)?)
        .and_then(|text| json_from_edm(Some(ValueRef::String(&text))));
    value.map_err(|invalid| redact_error_if(is_secret, invalid).into_read_error(first))
}

/// Reads a text or bytes from a row. `join` is the method of [`SplitValue`]. If the row has no piece, the value
/// is absent.
///
/// # Errors
///
/// Fails with `is_decode` and the property's name for a piece that is missing or does not fit, and with
/// `is_decrypt` if encrypted pieces belong to different values.
#[doc(hidden)]
pub fn read_split<T, const N: usize>(
    row: &Row,
    names: &[&str; N],
    is_secret: bool,
    join: impl Fn(Option<Vec<ValueRef<'_>>>) -> Result<T, InvalidValue>,
) -> Result<T> {
    finish_split(find_values(row, names)?, names, is_secret, join)
}

/// Reads a value from a row that contains its JSON text in pieces.
///
/// # Errors
///
/// Fails with `is_decode` and the property's name for a piece that is missing or does not fit, and with
/// `is_decrypt` if encrypted pieces belong to different values.
#[doc(hidden)]
pub fn read_split_json<T: DeserializeOwned, const N: usize>(
    row: &Row,
    names: &[&str; N],
    is_secret: bool,
) -> Result<T> {
    finish_split_json(find_values(row, names)?, names, is_secret)
}
