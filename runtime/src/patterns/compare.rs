//! Compares two designs for the same questions.

use super::{
    markdown::{number, push_table},
    plan::{Plan, PlannedCall},
};
use crate::store::usage::Prices;

impl Plan {
    /// Returns a Markdown table with both designs: for each pattern, by its name, the cost class, requests, round
    /// trips, rows and consistency. The last rows contain the requests, storage and prices of each whole design.
    pub fn compare(&self, other: &Self, prices: &Prices) -> String {
        let mut out = format!("# {} and {}\n", self.name, other.name);
        let (mine, theirs) = (self.name.as_str(), other.name.as_str());
        let names = self.calls.iter().map(|call| call.name.as_str());
        let only_theirs = other.calls.iter().map(|call| call.name.as_str());
        let only_theirs = only_theirs.filter(|name| self.call(name).is_none());
        push_table(
            &["pattern", mine, theirs],
            names.chain(only_theirs).map(|name| {
                vec![name.replace('|', "\\|"), cell(self.call(name)), cell(other.call(name))]
            }),
            &mut out,
        );
        let figures: [(&str, [String; 2]); 4] = [
            ("requests/s", [self, other].map(|plan| number(plan.requests_per_second()))),
            ("bytes stored", [self, other].map(|plan| plan.stored_bytes().to_string())),
            ("hot partitions", [self, other].map(|plan| plan.hot_partitions().len().to_string())),
            ("price of a month", [self, other].map(|plan| number(plan.price_per_month(prices)))),
        ];
        push_table(
            &["whole", mine, theirs],
            figures.into_iter().map(|(name, [first, second])| vec![name.to_owned(), first, second]),
            &mut out,
        );
        out
    }

    fn call(&self, name: &str) -> Option<&PlannedCall> {
        self.calls.iter().find(|call| call.name == name)
    }
}

fn cell(call: Option<&PlannedCall>) -> String {
    let Some(call) = call else { return "not asked".to_owned() };
    let requests = call.requests;
    format!(
        "{}, {} + {} requests, {}, {} rows, {}",
        call.class,
        requests.before(),
        requests.after,
        round_trip_words(requests.round_trips),
        requests.rows,
        call.consistency()
    )
}

fn round_trip_words(round_trips: u64) -> String {
    match round_trips {
        1 => "1 round trip".to_owned(),
        more => format!("{more} round trips"),
    }
}
