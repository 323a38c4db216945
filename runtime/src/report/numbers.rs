//! Writes numbers, sizes and durations in a form that is easy to read.

use std::time::Duration;

pub(super) use crate::patterns::markdown::percent;

/// Returns a number with a comma before each group of three digits.
pub(super) fn with_thousands_commas(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Returns a number of bytes with one decimal in the unit that fits, such as `1.5 MiB`.
pub(super) fn format_bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{} bytes", with_thousands_commas(bytes));
    }
    // Saturates from 1.6 EiB on, and a table of the service holds at most 500 TiB.
    let mut tenths = bytes.saturating_mul(10) / 1024;
    let mut name = "KiB";
    for unit in UNITS {
        name = unit;
        if tenths < 10_240 || unit == "TiB" {
            break;
        }
        tenths /= 1024;
    }
    format!("{}.{} {name}", with_thousands_commas(tenths / 10), tenths % 10)
}

/// Returns a duration in its largest unit, such as `3 min`.
pub(super) fn format_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", with_thousands_commas(seconds / 86_400)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_people_do() {
        let texts = [0, 999, 1_000, 1_234_567].map(with_thousands_commas);
        assert_eq!(texts, ["0", "999", "1,000", "1,234,567"]);
        let texts = [1_023, 1_024, 1_536, 1 << 20, (1 << 20) - 1, 5 << 40].map(format_bytes);
        let expected = ["1,023 bytes", "1.0 KiB", "1.5 KiB", "1.0 MiB", "1,023.9 KiB", "5.0 TiB"];
        assert_eq!(texts, expected);
        let texts =
            [59, 60, 7_199, 200_000].map(|seconds| format_duration(Duration::from_secs(seconds)));
        assert_eq!(texts, ["59 s", "1 min", "1 h", "2 days"]);
        assert_eq!(percent(0.75), "75.0 %");
    }
}
