//! Names the service's limits, each as one constant, and checks keys and names against them before
//! a request is sent.
//!
//! Sources: "Understanding the Table Service Data Model", "Scalability and performance targets for
//! Table storage" and "Performing Entity Group Transactions" of the Azure Storage reference.

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

use crate::error::{Error, Result, ServiceCode};

/// UTF-16 units of a PartitionKey or a RowKey, at most. The service documents 1 KiB; 512 units are
/// accepted everywhere.
pub const KEY_UNITS: usize = 512;
/// Properties of an entity, at most, not counting PartitionKey, RowKey and Timestamp.
pub const PROPERTIES: usize = 252;
/// UTF-16 units of a property's name, at most.
pub const PROPERTY_NAME_UNITS: usize = 255;
/// Bytes of a String property (as UTF-16) or Binary property, at most.
pub const PROPERTY_BYTES: usize = 64 * 1024;
/// UTF-16 units of a String property, at most.
pub const STRING_UNITS: usize = PROPERTY_BYTES / 2;
/// Bytes of an entity by the service's formula, at most: 1 MiB less 168 bytes that the service adds
/// itself.
pub const ENTITY_BYTES: usize = 1024 * 1024 - 168;
/// Operations of an entity group transaction, at most.
pub const BATCH_OPERATIONS: usize = 100;
/// The size limit of a request body in bytes. The body of a batch has to be smaller.
pub const REQUEST_BYTES: usize = 4 * 1024 * 1024;
/// Entities in one response of the service, at most.
pub const PAGE_ROWS: u32 = 1000;
/// Dated tables that one call creates, or asks one by one, at most, unless the caller allows more.
#[doc(hidden)]
pub const DATED_TABLES: u64 = 10_000;
/// Entities of about 1 KiB that one partition takes in a second: the service's target.
///
/// Source: "Scalability and performance targets for Table storage", Azure Storage documentation, read on
/// 2026-11-27.
pub const PARTITION_ENTITIES_PER_SECOND: u32 = 2_000;
/// Requests for entities of about 1 KiB that a storage account takes in a second: the service's target.
///
/// Source: "Scalability and performance targets for Table storage", Azure Storage documentation, read on
/// 2026-11-27.
pub const ACCOUNT_REQUESTS_PER_SECOND: u32 = 20_000;
/// Characters of a table's name: minimum and maximum.
pub const TABLE_NAME: (usize, usize) = (3, 63);

/// Returns the number of UTF-16 units of a text, which is what the service counts.
pub fn utf16_units(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(char::len_utf16).sum() }
}

/// Returns whether the service forbids the character in keys: `/`, `\`, `#`, `?` and control
/// characters.
pub const fn is_forbidden_in_key(c: char) -> bool {
    matches!(c, '/' | '\\' | '#' | '?' | '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}')
}

/// Returns whether the byte is an ASCII character that keys may contain. Nearly all keys consist of
/// such bytes alone, so this is the fast first check.
#[inline]
pub(crate) const fn is_ascii_allowed_in_key(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && !is_forbidden_in_key(byte as char)
}

/// Checks that the service accepts a key. The error shows `name`, which is `PartitionKey` or `RowKey`.
///
/// # Errors
///
/// `is_too_large` above 512 UTF-16 units; `is_invalid` for a character that is forbidden in keys.
///
/// ```
/// use entable_core::limits::check_key;
///
/// assert!(check_key("RowKey", "email_jonesj@contoso.com").is_ok());
/// assert!(check_key("RowKey", "R&D/Test").unwrap_err().is_invalid());
/// assert!(check_key("RowKey", &"x".repeat(513)).unwrap_err().is_too_large());
/// ```
pub fn check_key(name: &str, key: &str) -> Result<()> {
    if key.len() <= KEY_UNITS && key.bytes().all(is_ascii_allowed_in_key) {
        return Ok(());
    }
    let units = utf16_units(key);
    if units > KEY_UNITS {
        let message = format!("{name} has {units} UTF-16 units, the limit is {KEY_UNITS}");
        return Err(Error::service(ServiceCode::KeyValueTooLarge, message));
    }
    // Most keys are ASCII, where a byte is a character.
    let is_plain = key.is_ascii() && !key.bytes().any(|byte| is_forbidden_in_key(char::from(byte)));
    if is_plain {
        return Ok(());
    }
    match key.chars().find(|c| is_forbidden_in_key(*c)) {
        None => Ok(()),
        Some(c) => Err(Error::service(
            ServiceCode::OutOfRangeInput,
            format!(
                "{name} `{}` holds {c:?}, which the service forbids in keys",
                key.escape_debug()
            ),
        )),
    }
}

/// Checks that the service accepts a table's name: a letter, then letters and digits, 3 to 63
/// characters, not `tables`.
///
/// # Errors
///
/// `is_invalid`, with the error code that the service would send.
///
/// ```
/// use entable_core::limits::check_table_name;
///
/// assert!(check_table_name("Staff2014").is_ok());
/// assert_eq!(check_table_name("2014Staff").unwrap_err().code(), Some("InvalidResourceName"));
/// ```
pub fn check_table_name(name: &str) -> Result<()> {
    let refuse = |code, why: &str| {
        Err(Error::service(code, format!("table name `{}` {why}", name.escape_debug())))
    };
    if name.contains('{') {
        return refuse(
            ServiceCode::InvalidResourceName,
            "stands for one table per period, but one table is needed; give its time, or open it by its own name with \
             `table_named`",
        );
    }
    let mut characters = name.chars();
    if !characters.next().is_some_and(|c| c.is_ascii_alphabetic())
        || !characters.all(|c| c.is_ascii_alphanumeric())
    {
        return refuse(
            ServiceCode::InvalidResourceName,
            "must be a letter followed by letters and digits",
        );
    }
    let (least, most) = TABLE_NAME;
    if name.len() < least || name.len() > most {
        return refuse(
            ServiceCode::OutOfRangeInput,
            &format!("has {} characters, expected {least} to {most}", name.len()),
        );
    }
    // The service lists all tables under the address `/Tables`.
    if name.eq_ignore_ascii_case("tables") {
        return refuse(ServiceCode::InvalidInput, "is reserved");
    }
    Ok(())
}

/// Returns whether a text is a C# identifier, as the names of properties must be.
pub fn is_identifier(name: &str) -> bool {
    if let [first, rest @ ..] = name.as_bytes()
        && is_ascii_letter(*first)
        && rest.iter().all(|byte| is_ascii_letter(*byte) || byte.is_ascii_digit())
    {
        return true;
    }
    let mut characters = name.chars();
    characters.next().is_some_and(begins_identifier) && characters.all(continues_identifier)
}

/// Returns whether a character may begin a C# identifier: a letter, a letter number such as a Roman
/// numeral (Unicode category Nl), or `_`.
pub(crate) fn begins_identifier(character: char) -> bool {
    use GeneralCategory as Category;
    if character.is_ascii() {
        return character == '_' || character.is_ascii_alphabetic();
    }
    matches!(
        character.general_category(),
        Category::UppercaseLetter
            | Category::LowercaseLetter
            | Category::TitlecaseLetter
            | Category::ModifierLetter
            | Category::OtherLetter
            | Category::LetterNumber
    )
}

/// Returns whether a character may continue a C# identifier: also a combining mark, a decimal digit, a
/// connector or a format character. Other numbers, as a superscript two, may not.
pub(crate) fn continues_identifier(character: char) -> bool {
    use GeneralCategory as Category;
    if character.is_ascii() {
        return character == '_' || character.is_ascii_alphanumeric();
    }
    begins_identifier(character)
        || matches!(
            character.general_category(),
            Category::NonspacingMark
                | Category::SpacingMark
                | Category::DecimalNumber
                | Category::ConnectorPunctuation
                | Category::Format
        )
}

const fn is_ascii_letter(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphabetic()
}

/// Checks that the service accepts a property's name: a C# identifier of at most 255 UTF-16 units.
///
/// # Errors
///
/// `is_invalid` if the name is not an identifier or is a system property (`PartitionKey`, `RowKey`,
/// `Timestamp`); `is_too_large` if it is too long.
///
/// ```
/// use entable_core::limits::check_property_name;
///
/// assert!(check_property_name("FirstName").is_ok());
/// assert!(check_property_name("e\u{301}t\u{e9}").is_ok());
/// assert!(check_property_name("m\u{b2}").unwrap_err().is_invalid());
/// assert!(check_property_name("First-Name").unwrap_err().is_invalid());
/// assert!(check_property_name("Timestamp").unwrap_err().is_invalid());
/// ```
pub fn check_property_name(name: &str) -> Result<()> {
    if !is_identifier(name) {
        return Err(Error::service(
            ServiceCode::PropertyNameInvalid,
            format!(
                "property name `{}` is not an identifier: a letter or `_`, then letters, digits, combining marks and `_`",
                name.escape_debug()
            ),
        ));
    }
    // A character never has more UTF-16 units than bytes.
    if name.len() > PROPERTY_NAME_UNITS && utf16_units(name) > PROPERTY_NAME_UNITS {
        let units = utf16_units(name);
        return Err(Error::service(
            ServiceCode::PropertyNameTooLong,
            format!("property name has {units} UTF-16 units, the limit is {PROPERTY_NAME_UNITS}"),
        ));
    }
    if matches!(name, "PartitionKey" | "RowKey" | "Timestamp") {
        return Err(Error::service(
            ServiceCode::PropertyNameInvalid,
            format!("property name `{name}` is reserved for the system property"),
        ));
    }
    Ok(())
}

macro_rules! saturating {
    ($($name:ident -> $number:ident),* $(,)?) => {$(
        /// Returns a count, size or time as this type, or the largest value of the type if the number does not fit.
        #[doc(hidden)]
        pub fn $name(number: impl TryInto<$number>) -> $number {
            number.try_into().unwrap_or($number::MAX)
        }
    )*};
}

saturating! {
    saturating_u64 -> u64, saturating_usize -> usize, saturating_u32 -> u32, saturating_i32 -> i32, saturating_i64 -> i64,
}
