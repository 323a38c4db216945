//! Computes the storage and the scans of a design with a million, a billion and a trillion rows.

use super::{
    figures::PlanPart,
    markdown::{number, percent},
    plan::{Plan, count_to_f64},
};
use crate::{
    limits::{ACCOUNT_REQUESTS_PER_SECOND, PAGE_ROWS},
    store::usage::Prices,
};

const ROWS: [(&str, f64); 3] = [("10^6", 1e6), ("10^9", 1e9), ("10^12", 1e12)];
const TIB: f64 = 1_099_511_627_776.0;
/// The documented maximum size of a table, in TiB.
const TABLE_TIB: f64 = 500.0;
/// Units of time, each with its length in seconds. A time of at least two units is shown in that unit.
const UNITS: [(&str, f64); 3] = [("days", 86_400.0), ("h", 3_600.0), ("min", 60.0)];

impl Plan {
    /// Returns a table with the storage and the cost of one scan, for larger numbers of rows with the mean size of the
    /// plan's rows.
    pub(super) fn growth_part(&self, prices: Option<&Prices>) -> PlanPart {
        let rows = self.stored.iter().fold(0, |sum: u64, stored| sum.saturating_add(stored.rows));
        let row = count_to_f64(self.stored_bytes()) / count_to_f64(rows.max(1));
        let mut heads =
            vec!["rows", "TiB", "of a table's limit", "requests of a scan", "least time of a scan"];
        heads.extend(prices.map(|_| "price of a month's storage"));
        heads.extend(prices.map(|_| "price of a scan"));
        let rows = ROWS.map(|(name, rows)| {
            let (bytes, pages) = (row * rows, (rows / f64::from(PAGE_ROWS)).ceil());
            let mut cells = vec![
                name.to_owned(),
                number(bytes / TIB),
                percent(bytes / TIB / TABLE_TIB),
                number(pages),
                format_seconds(pages / f64::from(ACCOUNT_REQUESTS_PER_SECOND)),
            ];
            cells.extend(prices.map(|prices| number(prices.of_stored_bytes(bytes))));
            cells.extend(prices.map(|prices| {
                let [_, scan, ..] = prices.of_each_request();
                number(pages * scan)
            }));
            cells
        });
        let about = format!(
            "Rows have the mean size of those above, {row:.0} bytes. A table has at most {TABLE_TIB:.0} TiB. A scan reads \
             pages of {PAGE_ROWS} rows, at an account's target of {ACCOUNT_REQUESTS_PER_SECOND} requests/s; one \
             partition alone takes longer. Point reads, ranges and writes cost the same for any number of rows."
        );
        PlanPart {
            title: "Growth",
            heads,
            rows: rows.to_vec(),
            about: vec![about],
            ..PlanPart::default()
        }
    }
}

/// Returns a time as text, in the largest unit that fits into it at least twice, otherwise in seconds.
fn format_seconds(seconds: f64) -> String {
    let unit = UNITS.iter().find(|(_, unit)| seconds >= 2.0 * unit);
    unit.map_or_else(
        || format!("{} s", number(seconds)),
        |(name, unit)| format!("{:.1} {name}", seconds / unit),
    )
}
