//! Prints the figures of every store, and the ratios of entable's times to the others' with their goals.

use super::race::Outcome;
use crate::figure::{figure, note};

/// Goals: the time of ours over that of another store.
const GOALS: [(&str, &str, &str); 15] = [
    ("point read", "native_db", "<= 1.1"),
    ("point read", "SQLite", "<= 0.6"),
    ("read by index", "native_db", "<= 0.7"),
    ("read by index", "SQLite", "<= 0.6"),
    ("range of 100", "native_db", "<= 1.1"),
    ("range of 100", "SQLite", "<= 0.7"),
    ("range of 10000", "native_db", "<= 1.1"),
    ("range of 10000", "SQLite", "<= 0.7"),
    ("durable insert", "native_db", "<= 1.0"),
    ("durable insert", "SQLite", "<= 1.5"),
    ("durable insert, 64 tasks", "native_db", "<= 0.2"),
    ("durable insert, 64 tasks", "SQLite", "<= 0.2"),
    ("relaxed insert", "SQLite", "<= 1.5"),
    ("relaxed bulk load", "SQLite", "<= 1.5"),
    ("relaxed bulk load, 8 at a time", "SQLite", "<= 0.8"),
];

/// Prints the outcomes of one load. The first outcome is entable's.
pub(super) fn print(outcomes: &[Outcome]) {
    outcomes.iter().for_each(print_times);
    let [ours, theirs @ ..] = outcomes else { return };
    for their in theirs {
        let name = format!("peers.{}, time to {}'s", ours.load, their.peer);
        let ratio = ours.median / their.median;
        match GOALS.iter().find(|(load, peer, _)| *load == ours.load && *peer == their.peer) {
            Some((.., goal)) => figure(&name, ratio, goal),
            None => note(&name, format!("{ratio:.3}")),
        }
    }
    let slowest = ours.percentile(0.999).filter(|_| ours.load == "durable insert, 64 tasks");
    if let Some(slowest) = slowest {
        figure("peers.p99.9 of a durable insert, 64 tasks, ms", slowest / 1e6, "<= 250");
    }
}

/// Prints the outcomes of several loads, grouped by load.
pub(super) fn print_each(mut outcomes: Vec<Outcome>) {
    // The sort is stable: ours stays first.
    outcomes.sort_by(|one, other| one.load.cmp(&other.load));
    outcomes.chunk_by(|one, other| one.load == other.load).for_each(print);
}

fn print_times(outcome: &Outcome) {
    let mut line = format!("{} each", time(outcome.median));
    let p50 = outcome.percentile(0.5).zip(outcome.percentile(0.99)).zip(outcome.mean());
    if let Some(((p50, p99), mean)) = p50 {
        line += &format!(", p50 {}, p99 {}, mean {}", time(p50), time(p99), time(mean));
    }
    if outcome.written > 0.0 {
        line += &format!(", {:.0} bytes written", outcome.written);
    }
    note(&format!("peers.{}, {}", outcome.load, outcome.peer), line);
}

/// Returns a time with three digits and its unit.
pub(super) fn time(nanoseconds: f64) -> String {
    let (value, unit) = match nanoseconds {
        ..1e3 => (nanoseconds, "ns"),
        ..1e6 => (nanoseconds / 1e3, "µs"),
        _ => (nanoseconds / 1e6, "ms"),
    };
    let digits = usize::from(value < 100.0) + usize::from(value < 10.0);
    format!("{value:.digits$} {unit}")
}
