//! Writes a plan as Markdown.

use super::{
    hot::HotPartition,
    markdown::{number, percent, push_table},
    plan::{MONTH, Plan, PlannedCall},
    question::Requests,
};
use crate::{
    limits::{ACCOUNT_REQUESTS_PER_SECOND, PARTITION_ENTITIES_PER_SECOND},
    store::usage::Prices,
};

/// The multiples of the load that a plan shows.
const FACTORS: [(&str, f64); 3] = [("1", 1.0), ("10", 10.0), ("1,000", 1_000.0)];

/// The paragraph that explains how the figures of a plan are computed.
const ABOUT: &str = "Requests follow from the declarations and paths, rates from the patterns. Round trips are the \
    requests that a caller waits for one after another. A month has 30 days. Lookups of the outbox by workers are \
    not counted.";

/// A table of a plan, with the paragraphs below it. Text between backquotes is code.
#[derive(Debug, Default)]
pub(crate) struct PlanPart {
    pub(crate) title: &'static str,
    pub(crate) heads: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<String>>,
    /// Paragraphs that explain how the figures of the table are computed.
    pub(crate) about: Vec<String>,
    /// A sentence for each partition that gets more entities per second than one partition can take.
    pub(crate) hot: Vec<String>,
}

impl Plan {
    /// Returns the plan as Markdown: the cost of each pattern, the load of the account and of partitions (also for
    /// multiples of the load), and the storage.
    pub fn markdown(&self) -> String {
        self.render(None)
    }

    /// Returns the plan as Markdown, with the prices per month.
    pub fn markdown_priced(&self, prices: &Prices) -> String {
        self.render(Some(prices))
    }

    fn render(&self, prices: Option<&Prices>) -> String {
        let mut out = format!("# Plan of {}\n", self.name);
        self.push_markdown(prices, &mut out);
        out
    }

    /// Appends the plan to `out` as Markdown. The caller writes the heading.
    pub(crate) fn push_markdown(&self, prices: Option<&Prices>, out: &mut String) {
        for part in self.parts(prices) {
            let escaped = |cell: &String| cell.replace('|', "\\|");
            let rows = part.rows.iter().map(|row| row.iter().map(escaped).collect());
            push_table(&part.heads, rows, out);
            part.about.iter().for_each(|about| out.push_str(&format!("\n{about}\n")));
            if !part.hot.is_empty() {
                out.push('\n');
            }
            part.hot.iter().for_each(|hot| out.push_str(&format!("- **Hot:** {hot}\n")));
        }
    }

    /// Returns the tables of the plan in the order in which they are shown.
    pub(crate) fn parts(&self, prices: Option<&Prices>) -> Vec<PlanPart> {
        let mut parts = vec![self.calls_part(prices), self.load_part(prices)];
        if !self.stored.is_empty() {
            parts.push(self.storage_part());
            parts.push(self.growth_part(prices));
        }
        if let Some(last) = parts.last_mut() {
            last.about.push(ABOUT.to_owned());
        }
        parts
    }

    fn calls_part(&self, prices: Option<&Prices>) -> PlanPart {
        let mut heads = vec![
            "pattern",
            "call",
            "class",
            "requests before the answer",
            "after it",
            "round trips",
            "rows",
            "copies",
            "calls/s",
            "requests/s",
        ];
        heads.extend(prices.map(|_| "price of a month"));
        let cells = |call: &PlannedCall| {
            let mut cells = cells_of_call(call);
            cells.extend(prices.map(|prices| number(call.price_per_month(prices))));
            cells
        };
        let rows = self.calls.iter().map(cells).collect();
        PlanPart { title: "Access patterns", heads, rows, ..PlanPart::default() }
    }

    fn load_part(&self, prices: Option<&Prices>) -> PlanPart {
        let mut heads = vec![
            "load",
            "requests/s",
            "requests a month",
            "of an account's target",
            "hottest partition, entities/s",
            "of a partition's target",
        ];
        heads.extend(prices.map(|_| "price of a month"));
        let rows = FACTORS.map(|(name, factor)| {
            let plan = self.times(factor);
            let hottest = plan.hottest_load();
            let mut cells = vec![
                format!("{name} times"),
                number(plan.requests_per_second()),
                number(plan.requests_per_second() * MONTH),
                percent(plan.account_share()),
                number(hottest),
                percent(hottest / f64::from(PARTITION_ENTITIES_PER_SECOND)),
            ];
            cells.extend(prices.map(|prices| number(plan.price_per_month(prices))));
            cells
        });
        let targets = format!(
            "Targets: {ACCOUNT_REQUESTS_PER_SECOND} requests/s for an account and \
             {PARTITION_ENTITIES_PER_SECOND} entities/s for a partition, of 1 KiB (\"Scalability and performance \
             targets for Table storage\", Azure Storage documentation, read on 2026-11-27). A pattern without \
             `over` counts for one partition."
        );
        let hot = self.hot_partitions();
        let limit = self.times_until_limit();
        let about = if limit.is_finite() {
            format!("{targets} The first of them is met at {} times the load.", number(limit))
        } else {
            targets
        };
        PlanPart {
            title: "Load",
            heads,
            rows: rows.to_vec(),
            about: vec![about],
            hot: hot.iter().map(HotPartition::words).collect(),
        }
    }

    fn storage_part(&self) -> PlanPart {
        let rows = self.stored.iter().map(|stored| {
            vec![
                stored.name.clone(),
                stored.rows.to_string(),
                stored.bytes.to_string(),
                stored.how.clone(),
            ]
        });
        PlanPart {
            title: "Storage",
            heads: vec!["stored", "rows", "bytes", "from"],
            rows: rows.collect(),
            ..PlanPart::default()
        }
    }
}

fn cells_of_call(call: &PlannedCall) -> Vec<String> {
    let Requests { after, blobs, rows, round_trips, .. } = call.requests;
    let before = call.requests.before();
    vec![
        call.name.clone(),
        call.verb.clone(),
        call.class.clone(),
        match blobs {
            0 => before.to_string(),
            blobs => format!("{before}, and {blobs} to blobs"),
        },
        after.to_string(),
        round_trips.to_string(),
        rows.to_string(),
        call.consistency().to_owned(),
        number(call.per_second),
        number(call.requests_per_second()),
    ]
}
