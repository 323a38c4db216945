//! Implements the traits of key parts for integers and `bool`.

use super::{Descending, FixedWidth, KeyPart, Ordered};
use crate::edm::{InvalidValue, OutOfRangeSide};

/// Parses a zero-padded number. Fails on every text that [`push_padded`] does not write for the
/// type and width.
#[inline]
fn parse_digits<T: TryFrom<u64>>(text: &str, width: Option<usize>) -> Result<T, InvalidValue> {
    let fits = width.is_none_or(|width| text.len() == width) && !text.is_empty();
    let number = text.bytes().try_fold(0_u64, |number, byte| match byte {
        b'0'..=b'9' => number.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    });
    number.filter(|_| fits).and_then(|number| T::try_from(number).ok()).ok_or_else(|| {
        let text = text.escape_debug();
        InvalidValue::new(format!(
            "expected a zero-padded number in the range of its type, found `{text}`"
        ))
    })
}

/// Appends a number to `out`, zero padded to at least `width` digits.
pub(super) fn push_padded(mut number: u64, width: usize, out: &mut String) {
    // Digits are made by hand: the formatter is several times slower, and keys are on every hot
    // path.
    let mut buffer = [b'0'; u64::MAX.ilog10() as usize + 1];
    let mut used = 0;
    for slot in buffer.iter_mut().rev() {
        if number == 0 && used > 0 {
            break;
        }
        // A remainder of 10 fits a byte, so the fallback is never taken.
        *slot = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
        used += 1;
    }
    out.extend(std::iter::repeat_n('0', width.saturating_sub(used)));
    // `used` counts slots of the buffer, which hold ASCII digits: no fallback is taken.
    let digits = buffer.get(buffer.len() - used..).unwrap_or_default();
    out.push_str(std::str::from_utf8(digits).unwrap_or_default());
}

macro_rules! integers {
    ($($type:ty, $unsigned:ty, $width:literal;)*) => {
        $(
            impl KeyPart for $type {
                const WIDTH: Option<usize> = Some($width);

                fn encode(&self, out: &mut String) -> Result<(), InvalidValue> {
                    // The distance from the least number rises with the number, also where that is
                    // negative.
                    push_padded(u64::from(self.abs_diff(Self::MIN)), $width, out);
                    Ok(())
                }

                fn decode(text: &str) -> Result<Self, InvalidValue> {
                    let above = parse_digits::<$unsigned>(text, Some($width))?;
                    // For signed types both the cast and the sum may wrap, and then cancel out.
                    Ok(Self::MIN.wrapping_add(above as Self))
                }
            }

            impl Descending for $type {
                const WIDTH_DESCENDING: usize = $width;

                fn encode_descending(&self, out: &mut String) -> Result<(), InvalidValue> {
                    // The distance from the greatest number falls while the number rises.
                    push_padded(u64::from(self.abs_diff(Self::MAX)), $width, out);
                    Ok(())
                }

                fn decode_descending(text: &str) -> Result<Self, InvalidValue> {
                    let below = parse_digits::<$unsigned>(text, Some($width))?;
                    // For signed types both the cast and the difference may wrap, and then cancel
                    // out.
                    Ok(Self::MAX.wrapping_sub(below as Self))
                }
            }

            impl FixedWidth for $type {
                fn encode_zero_padded(&self, width: usize, out: &mut String) -> Result<(), InvalidValue> {
                    let number = u64::try_from(*self).map_err(|_| {
                        InvalidValue::out_of_range(OutOfRangeSide::Below, format!(
                            "{self} is negative, but a key part of fixed width has no sign; remove the width for a \
                             form that sorts negative numbers too"
                        ))
                    })?;
                    let from = out.len();
                    push_padded(number, width, out);
                    if out.len() - from > width {
                        return Err(InvalidValue::out_of_range(OutOfRangeSide::Above, format!(
                            "{self} has more than the {width} digits of its key part"
                        )));
                    }
                    Ok(())
                }

                fn decode_width(text: &str) -> Result<Self, InvalidValue> {
                    // The width belongs to the template, which has cut the text to it.
                    parse_digits(text, None)
                }
            }

            impl<const LAST: bool> Ordered<LAST> for $type {}
        )*
    };
}

integers! {
    u8, u8, 3;
    u16, u16, 5;
    u32, u32, 10;
    u64, u64, 20;
    i8, u8, 3;
    i16, u16, 5;
    i32, u32, 10;
    i64, u64, 20;
}

impl KeyPart for bool {
    const WIDTH: Option<usize> = Some(1);

    fn encode(&self, out: &mut String) -> Result<(), InvalidValue> {
        out.push(if *self { '1' } else { '0' });
        Ok(())
    }

    fn decode(text: &str) -> Result<Self, InvalidValue> {
        match text {
            "0" => Ok(false),
            "1" => Ok(true),
            _ => Err(InvalidValue::new(format!("expected `0` or `1`, found `{text}`"))),
        }
    }
}

impl<const LAST: bool> Ordered<LAST> for bool {}
