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

/// The time of each of two things that are each done in `pieces` pieces, in turns piece by piece: a piece
/// is shorter than a turn of the scheduler, so that other programs hardly count. Of each piece it
/// is the median of the repeats.
pub(crate) fn in_pieces(
    pieces: usize,
    mut ours: impl FnMut(usize),
    mut theirs: impl FnMut(usize),
) -> (Duration, Duration) {
    let mut times = vec![(Vec::new(), Vec::new()); pieces];
    for repeat in 0..=2 * REPEATS {
        for (piece, times) in times.iter_mut().enumerate() {
            let (first, second) = (timed(|| ours(piece)), timed(|| theirs(piece)));
            if repeat > 0 {
                times.0.push(first);
                times.1.push(second);
            }
        }
    }
    times.into_iter().fold((Duration::ZERO, Duration::ZERO), |sum, (ours, theirs)| {
        (sum.0 + median(ours), sum.1 + median(theirs))
    })
}

/// The median time of a thing that is done a few times.
pub(crate) fn median_of(mut work: impl FnMut()) -> Duration {
    work();
    median((0..REPEATS).map(|_| timed(&mut work)).collect())
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
