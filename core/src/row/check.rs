//! Checks rows against the service's limits, and estimates the bytes they take in a request.

use super::{
    compact_row::{Row, property_name_from_utf8},
    read::corrupt_row_error,
    row_bytes::RowBytes,
};
use crate::{
    edm::{Ticks, ValueRef},
    error::{Error, Result, ServiceCode},
    limits,
};

impl Row {
    /// Checks that the service accepts the row.
    ///
    /// Rows never change, so a row and its clones keep the result and are checked only once.
    ///
    /// # Errors
    ///
    /// Fails with `is_too_large` or `is_invalid`, and names keys, property, limit and actual size. Fails with
    /// `is_corrupt` for a damaged row.
    pub fn check(&self) -> Result<()> {
        self.checked_request_bytes().map(drop)
    }

    /// Checks the row, and returns an upper bound of the bytes that its properties take in a
    /// request body.
    ///
    /// # Errors
    ///
    /// Fails like [`check`](Self::check).
    pub(crate) fn checked_request_bytes(&self) -> Result<usize> {
        if let Some(bytes) = self.checked.get() {
            return Ok(*bytes);
        }
        let (partition_key, row_key) = self.keys();
        let bytes = limits::check_key("PartitionKey", partition_key)
            .and_then(|()| limits::check_key("RowKey", row_key))
            .and_then(|()| self.check_properties())
            .map_err(|error| error.at_keys(partition_key, row_key))?;
        Ok(*self.checked.get_or_init(|| bytes))
    }

    fn check_properties(&self) -> Result<usize> {
        let mut properties = self.properties();
        let mut names: Vec<&str> = Vec::with_capacity(16);
        let mut bytes = 0;
        while let Some((name, value)) = properties.next()? {
            let name = property_name_from_utf8(name)?;
            limits::check_property_name(name)?;
            check_value(value).map_err(|error| error.in_property(name))?;
            names.push(name);
            bytes += property_bytes(name, value);
        }
        if names.len() > limits::PROPERTIES {
            let message = format!(
                "the entity has {} properties, the limit is {} in addition to the three system properties",
                names.len(),
                limits::PROPERTIES
            );
            return Err(Error::service(ServiceCode::TooManyProperties, message));
        }
        check_distinct(names)?;
        if bytes > LARGE_ROW {
            // Cannot underflow: every Double was counted with `DOUBLE_BYTES`.
            bytes -= self.unused_bytes_of_doubles()?;
        }
        self.check_size()?;
        Ok(bytes)
    }

    fn check_size(&self) -> Result<()> {
        // The service counts at most four bytes for each byte of the row: two for each unit of a text, which takes at least
        // one byte, and at most twelve more for a property, which has at least three bytes besides its name and value.
        if self.byte_len() <= limits::ENTITY_BYTES / 4 {
            return Ok(());
        }
        let size = self.service_size()?;
        if size <= limits::ENTITY_BYTES {
            return Ok(());
        }
        let message = format!(
            "the entity has {size} bytes, the limit is {}; \
             keep large values in a blob and their address in the entity",
            limits::ENTITY_BYTES
        );
        Err(Error::service(ServiceCode::EntityTooLarge, message))
    }

    /// Returns how many bytes less than estimated the row's Doubles take in a request. The estimate counts
    /// the longest form for each Double.
    fn unused_bytes_of_doubles(&self) -> Result<usize> {
        let (mut properties, mut unused) = (self.properties(), 0);
        while let Some((_, value)) = properties.next()? {
            if let ValueRef::Double(number) = value
                // `NaN` and the infinities take at most 11 bytes; for them the estimate stays an
                // upper bound.
                && number.is_finite()
                && let Ok(text) = serde_json::to_string(&number)
            {
                unused += DOUBLE_BYTES - text.len().min(DOUBLE_BYTES);
            }
        }
        Ok(unused)
    }
}

impl RowBytes<'_> {
    /// Checks that the row gives no property twice. Readers would disagree about the value of such a
    /// property: a filter takes the first one, and a decoder may take the last.
    ///
    /// # Errors
    ///
    /// `is_corrupt` for a property that is given twice, and for a damaged row.
    pub fn check_distinct_names(self) -> Result<()> {
        let mut properties = self.properties();
        let (mut seen, mut count) = (0_u128, 0);
        while let Some((name, _, _)) = properties.next_undecoded()? {
            // Most names have their own bit, so few are compared with earlier names.
            let bit = name_bit(name);
            if seen & bit != 0 && self.has_name_before(name, count)? {
                return Err(repeated_property_error(property_name_from_utf8(name)?));
            }
            seen |= bit;
            count += 1;
        }
        Ok(())
    }

    /// Returns whether one of the first `count` properties has that name.
    fn has_name_before(self, name: &[u8], count: usize) -> Result<bool> {
        let mut properties = self.properties();
        for _ in 0..count {
            if properties.next_undecoded()?.is_some_and(|(before, _, _)| before == name) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The row size in bytes from which fractional numbers are counted digit by digit. A hundred smaller rows
/// stay far below the request limit.
const LARGE_ROW: usize = 4096;

/// The most bytes that a finite Double takes as JSON: `-2.2250738585072014e-308`.
const DOUBLE_BYTES: usize = 24;

/// Returns the most bytes that a property takes in a request body: `"name":value,` and, for any type but
/// Boolean, Int32 and String, `"name@odata.type":"type",`.
fn property_bytes(name: &str, value: ValueRef<'_>) -> usize {
    let edm = value.edm_type();
    let annotation = if edm.needs_annotation() {
        name.len() + edm.name().len() + r#""@odata.type":"","#.len()
    } else {
        0
    };
    annotation + name.len() + r#""":,"#.len() + json_bytes(value)
}

/// Returns the bytes of the value as JSON; of a Double the most that it can take.
fn json_bytes(value: ValueRef<'_>) -> usize {
    match value {
        // `true` is one byte shorter than `false`.
        ValueRef::Boolean(value) => 5 - usize::from(value),
        ValueRef::Int32(number) => decimal_bytes(number.into()),
        ValueRef::Int64(number) => 2 + decimal_bytes(number),
        ValueRef::Double(_) => DOUBLE_BYTES,
        ValueRef::DateTime(time) => 2 + date_time_bytes(time),
        ValueRef::Guid(_) => 2 + 36,
        ValueRef::String(text) => json_text_length(text),
        ValueRef::Binary(bytes) => 2 + bytes.len().div_ceil(3) * 4,
    }
}

/// Returns the bytes of a number in decimal digits, with its sign.
fn decimal_bytes(number: i64) -> usize {
    // Zero has no logarithm, and one digit.
    let digits = number.unsigned_abs().checked_ilog10().unwrap_or(0) + 1;
    usize::from(number < 0) + usize::try_from(digits).unwrap_or(20)
}

/// Returns the bytes of a time as the service writes it, without zeros at the end of the fraction.
fn date_time_bytes(time: Ticks) -> usize {
    let (mut fraction, mut digits) = (time.get().rem_euclid(Ticks::PER_SECOND), 7);
    while digits > 0 && fraction % 10 == 0 {
        (fraction, digits) = (fraction / 10, digits - 1);
    }
    "2014-07-31T12:00:00Z".len() + usize::from(digits > 0) + digits
}

/// Returns the bytes of a text as JSON, with its quotes.
pub(crate) fn json_text_length(text: &str) -> usize {
    // A count that the compiler makes for many bytes at once, since most texts have nothing to escape.
    if text.bytes().filter(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)).count() == 0 {
        return 2 + text.len();
    }
    let escapes = text.bytes().map(|byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
        // `\u001f` takes six bytes in place of one; `\n` and the other short escapes take two.
        0..0x20 => 5,
        _ => 0,
    });
    2 + text.len() + escapes.sum::<usize>()
}

/// Returns one of 128 bits for a name, by its hash. Names with different bits differ; names with equal bits
/// have to be compared.
pub(crate) fn name_bit(name: &[u8]) -> u128 {
    let hash =
        name.iter().fold(name.len(), |hash, byte| hash.wrapping_mul(31) ^ usize::from(*byte));
    1 << (hash.wrapping_mul(0x9e37_79b1) >> 16 & 127)
}

/// Returns the error for a stored row that gives a property twice.
pub(crate) fn repeated_property_error(name: &str) -> Error {
    corrupt_row_error("a property is given twice; give it once").in_property(name)
}

fn check_distinct(mut names: Vec<&str>) -> Result<()> {
    // Length is compared first, because most names differ in it. Any order does to find duplicates.
    names.sort_unstable_by(|one, other| one.len().cmp(&other.len()).then_with(|| one.cmp(other)));
    let twice = names.iter().zip(names.iter().skip(1)).find(|(one, next)| one == next);
    match twice {
        None => Ok(()),
        Some((twice, _)) => {
            let message = "the property is given twice";
            Err(Error::service(ServiceCode::DuplicatePropertiesSpecified, message)
                .in_property(twice))
        }
    }
}

fn check_value(value: ValueRef<'_>) -> Result<()> {
    let (what, found, limit) = match value {
        // A text has no more units than bytes, which need not be counted.
        ValueRef::String(text) if text.len() <= limits::STRING_UNITS => return Ok(()),
        ValueRef::String(text) => {
            ("UTF-16 units of text", limits::utf16_units(text), limits::STRING_UNITS)
        }
        ValueRef::Binary(bytes) => ("bytes", bytes.len(), limits::PROPERTY_BYTES),
        // The service stores times from 1601 on. Earlier `Ticks` exist because keys can hold them.
        ValueRef::DateTime(ticks) if ticks < Ticks::MIN_PROPERTY => {
            let message = format!("{ticks} is before the year 1601");
            return Err(Error::service(ServiceCode::OutOfRangeInput, message));
        }
        _ => return Ok(()),
    };
    if found <= limit {
        return Ok(());
    }
    let message = format!("the property has {found} {what}, the limit is {limit}");
    Err(Error::service(ServiceCode::PropertyValueTooLarge, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{RowBuilder, json::encode::JsonRow};

    /// Only a Double may take fewer bytes than it is counted with.
    #[test]
    fn bytes_of_a_request_are_those_of_the_json() {
        let time = |text: &str| ValueRef::DateTime(text.parse().unwrap());
        let json = |row: RowBuilder| serde_json::to_vec(&JsonRow(&row.finish().unwrap())).unwrap();
        let empty = json(Row::build("p", "r")).len();
        for value in [
            ValueRef::Boolean(true),
            ValueRef::Boolean(false),
            ValueRef::Int32(0),
            ValueRef::Int32(i32::MIN),
            ValueRef::Int64(i64::MIN),
            ValueRef::Int64(10),
            time("2014-07-31T12:00:00Z"),
            time("2014-07-31T12:00:00.1Z"),
            time("2014-07-31T12:00:00.0000001Z"),
            ValueRef::Guid(uuid::Uuid::nil()),
            ValueRef::String("a\"\\\n\u{1f}\u{e9}"),
            ValueRef::Binary(&[]),
            ValueRef::Binary(&[1, 2, 3, 4]),
        ] {
            let row = Row::build("p", "r").with("Name", value).unwrap();
            assert_eq!(property_bytes("Name", value), json(row).len() - empty, "{value:?}");
        }
    }

    #[test]
    fn a_property_that_is_given_twice_is_found_among_many() {
        let names: Vec<String> = (0..252).map(|n| format!("Property{n}")).collect();
        let mut builder = Row::build("p", "r");
        names.iter().for_each(|name| builder.put(name, ValueRef::Int32(1)));
        builder.clone().finish().unwrap().bytes().check_distinct_names().unwrap();
        for twice in [0, 100, 251] {
            let mut builder = builder.clone();
            builder.put(&names[twice], ValueRef::Int32(2));
            let error = builder.finish().unwrap().bytes().check_distinct_names().unwrap_err();
            assert!(error.is_corrupt() && error.property() == Some(&names[twice]), "{error}");
        }
    }
}
