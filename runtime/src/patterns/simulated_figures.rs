//! Writes a simulation as Markdown.

use super::{
    hot::HotPartition,
    markdown::{number, percent, push_table},
    simulate::{SimulatedCall, SimulatedLoad, Simulation},
};

/// The paragraph that explains how the figures of a simulation are computed.
const ABOUT: &str = "Predicted figures follow from the plan: requests from declarations and paths, the time of a call from its \
    round trips and the mean time of an answer, loads from the rates. Everything else was counted on a simulated account on \
    virtual time: it answers in 5 ms, one answer in a hundred takes 40 ms or more, and it refuses what exceeds the targets \
    for more than 100 ms. Requests that are sent together take as long as the slowest. Times are of calls that were \
    answered. A refused request is not tried again, and its call ends. Partitions share the load of a pattern evenly.";

impl Simulation {
    /// Returns the simulation as Markdown: requests and times of each pattern, and the load of the account and of the
    /// hottest partitions, each beside what the plan predicts.
    pub fn markdown(&self) -> String {
        let mut out = format!("# Simulation of {}\n", self.plan);
        let (seconds, seed) = (number(self.seconds), self.seed);
        out.push_str(&format!("\n{seconds} s of load on a simulated account, seed {seed}.\n"));
        let heads = [
            "pattern",
            "calls",
            "requests a call, predicted",
            "requests",
            "refused",
            "ms a call, predicted",
            "mean",
            "99th percentile",
        ];
        push_table(&heads, self.calls.iter().map(cells_of_call), &mut out);
        let heads = ["load a second", "predicted", "asked", "answered", "target", "refused"];
        push_table(&heads, self.loads.iter().map(cells_of_load), &mut out);
        out.push_str(&format!("\n{ABOUT}\n"));
        if !self.hot.is_empty() {
            out.push('\n');
        }
        let hot = self.hot.iter().map(HotPartition::words);
        hot.for_each(|hot| out.push_str(&format!("- **Hot:** {hot}\n")));
        out
    }
}

fn cells_of_call(call: &SimulatedCall) -> Vec<String> {
    let millis =
        |time: Option<f64>| time.map_or_else(|| "-".to_owned(), |time| format!("{time:.1}"));
    vec![
        call.pattern.replace('|', "\\|"),
        call.calls.to_string(),
        call.predicted_requests.to_string(),
        call.requests.to_string(),
        percent(call.refused_share()),
        millis(Some(call.predicted_millis)),
        millis(call.mean_millis),
        millis(call.p99_millis),
    ]
}

fn cells_of_load(load: &SimulatedLoad) -> Vec<String> {
    let of = load.table.as_deref().zip(load.partition_key.as_deref());
    vec![
        of.map_or_else(
            || "requests of the account".to_owned(),
            |(table, key)| format!("entities of `{key}` of `{table}`").replace('|', "\\|"),
        ),
        number(load.predicted),
        number(load.asked),
        number(load.answered),
        number(load.target),
        percent(load.refused_share()),
    ]
}
