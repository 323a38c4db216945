//! Measuring in turns, and printing beside the goal.

use std::time::{Duration, Instant};

/// A repeat of each side of a comparison.
const REPEATS: usize = 5;

/// The median time of each of two things, done in turns.
pub(crate) fn in_turns(mut ours: impl FnMut(), mut theirs: impl FnMut()) -> (Duration, Duration) {
    let mut times = (Vec::new(), Vec::new());
    ours();
    theirs();
    for _ in 0..REPEATS {
        times.0.push(timed(&mut ours));
        times.1.push(timed(&mut theirs));
    }
    (median(times.0), median(times.1))
}

/// How long it takes.
pub(crate) fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Prints a ratio, or a figure with its unit in its name, beside its goal.
pub(crate) fn figure(name: &str, value: f64, goal: &str) {
    println!("ratio {name} {value:.3} (goal {goal})");
}

/// Prints a figure that explains another.
pub(crate) fn note(name: &str, value: impl std::fmt::Display) {
    println!("note  {name} {value}");
}

/// Prints a rate of this machine beside its goal.
pub(crate) fn rate(name: &str, value: f64, goal: &str) {
    println!("ratio {name} {value:.0} (goal {goal})");
}
