//! Plays the histories of many seeds, shared out over the cores: a long search that is the last test to end would
//! otherwise leave the other cores idle.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

pub(crate) fn is_long() -> bool {
    std::env::var_os("ENTABLE_LONG").is_some()
}

/// Returns the seeds that were asked for; else those that went wrong once, then the first.
pub(crate) fn seeds(once_wrong: &[u64], short: u64, long: u64) -> Vec<u64> {
    let Ok(asked) = std::env::var("ENTABLE_SEED") else {
        let first = 0..if is_long() { long } else { short };
        return once_wrong.iter().copied().chain(first).collect();
    };
    match asked.split_once("..") {
        Some((from, to)) => (from.parse().unwrap()..to.parse().unwrap()).collect(),
        None => vec![asked.parse().unwrap()],
    }
}

/// Plays all histories. Fails with the seeds of all that go wrong, and with what happened in the first.
pub(crate) fn play(seeds: &[u64], history: impl Fn(u64) -> Result<(), String> + Sync) {
    let wrong = wrong_histories(seeds, false, &history);
    let Some((seed, error)) = wrong.first() else { return };
    let (all, count) = (wrong.iter().map(|(seed, _)| seed).collect::<Vec<_>>(), seeds.len());
    panic!("{all:?} of {count} went wrong: seed {seed} (replay with ENTABLE_SEED={seed}): {error}");
}

/// Returns the first seed whose history goes wrong: of `known`, which did before, and all below `most`.
pub(crate) fn first_wrong(
    known: u64,
    most: u64,
    history: impl Fn(u64) -> Result<(), String> + Sync,
) -> Option<u64> {
    let seeds: Vec<u64> = std::iter::once(known).chain(0..most).collect();
    wrong_histories(&seeds, true, &history).first().map(|(seed, _)| *seed)
}

/// Returns the histories that go wrong in the order of `seeds`, or only the first of them.
fn wrong_histories(
    seeds: &[u64],
    is_one_enough: bool,
    history: &(impl Fn(u64) -> Result<(), String> + Sync),
) -> Vec<(u64, String)> {
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(BTreeMap::new());
    let play_next = || {
        while let at = next.fetch_add(1, Ordering::Relaxed)
            && let Some(&seed) = seeds.get(at)
        {
            if let Err(error) = history(seed) {
                wrong.lock().unwrap().insert(at, (seed, error));
                if is_one_enough {
                    // Each earlier seed was taken before this one, and its history is played to the end.
                    next.fetch_max(seeds.len(), Ordering::Relaxed);
                }
            }
        }
    };
    let cores = thread::available_parallelism().map_or(1, usize::from).min(seeds.len());
    thread::scope(|scope| {
        for _ in 1..cores {
            scope.spawn(play_next);
        }
        play_next();
    });
    wrong.into_inner().unwrap().into_values().collect()
}

#[test]
fn wrong_histories_are_told_in_the_order_of_their_seeds() {
    let odd =
        |seed: u64| if seed.is_multiple_of(2) { Ok(()) } else { Err(format!("{seed} is odd")) };
    let wrong = wrong_histories(&[8, 5, 4, 3, 1], false, &odd);
    assert_eq!(wrong.iter().map(|(seed, _)| *seed).collect::<Vec<_>>(), [5, 3, 1]);
    assert_eq!(wrong[1].1, "3 is odd");
    for _ in 0..100 {
        assert_eq!(first_wrong(9, 100, odd), Some(9));
        assert_eq!(first_wrong(2, 100, odd), Some(1));
    }
    assert_eq!(first_wrong(2, 1, odd), None);
}

#[test]
#[should_panic(expected = "[3, 7] of 10 went wrong: seed 3 (replay with ENTABLE_SEED=3): no")]
fn all_wrong_seeds_are_told() {
    play(
        &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        |seed| if seed % 4 == 3 { Err("no".into()) } else { Ok(()) },
    );
}
