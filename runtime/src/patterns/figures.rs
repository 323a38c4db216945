//! Writes a plan as Markdown.

use super::{
    markdown::{percent, push_table},
    plan::{MONTH, Plan, PlannedCall},
    question::Requests,
};
use crate::{
    limits::{ACCOUNT_REQUESTS_PER_SECOND, PARTITION_ENTITIES_PER_SECOND},
    store::usage::Prices,
};

/// How many times the load a plan looks at.
const FACTORS: [(&str, f64); 3] = [("1", 1.0), ("10", 10.0), ("1,000", 1_000.0)];

impl Plan {
    /// Returns the plan as Markdown: what each pattern costs, the load of account and partitions, today and
    /// with more of it, and the storage.
    pub fn markdown(&self) -> String {
        self.render(None)
    }

    /// Returns the plan as Markdown, with money.
    pub fn markdown_priced(&self, prices: &Prices) -> String {
        self.render(Some(prices))
    }

    fn render(&self, prices: Option<&Prices>) -> String {
        let mut out = format!("# Plan of {}\n", self.name);
        self.push_calls(prices, &mut out);
        self.push_load(prices, &mut out);
        self.push_hot(&mut out);
        self.push_storage(&mut out);
        out.push_str(
            "\nRequests follow from the declarations and paths, rates from the patterns. A month has 30 \
             days. Lookups of the outbox by workers are not counted.\n",
        );
        out
    }

    fn push_calls(&self, prices: Option<&Prices>, out: &mut String) {
        let mut heads = vec![
            "pattern",
            "call",
            "class",
            "requests before the answer",
            "after it",
            "rows",
            "copies",
            "calls/s",
            "requests/s",
        ];
        heads.extend(prices.map(|_| "price of a month"));
        push_table(
            &heads,
            self.calls.iter().map(|call| {
                let mut cells = cells_of_call(call);
                cells.extend(prices.map(|prices| number(call.price_per_month(prices))));
                cells
            }),
            out,
        );
    }

    fn push_load(&self, prices: Option<&Prices>, out: &mut String) {
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
            let hottest =
                plan.partition_loads().values().fold(0.0_f64, |most, load| most.max(load.total()));
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
        push_table(&heads, rows.into_iter(), out);
        out.push_str(&format!(
            "\nTargets: {ACCOUNT_REQUESTS_PER_SECOND} requests/s for an account and \
             {PARTITION_ENTITIES_PER_SECOND} entities/s for a partition, of 1 KiB (\"Scalability and performance \
             targets for Table storage\", Azure Storage documentation, read on 2026-11-27). A pattern without \
             `over` counts for one partition.\n"
        ));
    }

    fn push_hot(&self, out: &mut String) {
        let hot = self.hot_partitions();
        if !hot.is_empty() {
            out.push('\n');
        }
        for hot in hot {
            out.push_str(&format!(
                "- **Hot:** `{}` of `{}` gets {} entities/s in one partition and needs {} partitions: {}.\n",
                hot.partition_key,
                hot.table,
                number(hot.entities_per_second),
                hot.partitions_needed,
                hot.cure
            ));
        }
    }

    fn push_storage(&self, out: &mut String) {
        if self.stored.is_empty() {
            return;
        }
        let rows = self.stored.iter().map(|stored| {
            vec![
                stored.name.clone(),
                stored.rows.to_string(),
                stored.bytes.to_string(),
                stored.how.clone(),
            ]
        });
        push_table(&["stored", "rows", "bytes", "from"], rows, out);
    }
}

fn cells_of_call(call: &PlannedCall) -> Vec<String> {
    let Requests { after, blobs, rows, .. } = call.requests;
    let before = call.requests.before();
    vec![
        call.name.replace('|', "\\|"),
        call.verb.clone(),
        call.class.clone(),
        match blobs {
            0 => before.to_string(),
            blobs => format!("{before}, and {blobs} to blobs"),
        },
        after.to_string(),
        rows.to_string(),
        call.consistency().to_owned(),
        number(call.per_second),
        number(call.requests_per_second()),
    ]
}

/// Returns a number with as many decimals as its size asks for.
pub(super) fn number(value: f64) -> String {
    match value {
        _ if value.fract() == 0.0 && value < 1e15 => format!("{value:.0}"),
        _ if value >= 100.0 => format!("{value:.0}"),
        _ if value >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.6}"),
    }
}
