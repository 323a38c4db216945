//! The order of the race, and what its figures are.

use std::{fs::File, path::Path, time::Instant};

use super::{
    load::{Entrant, Load, Piece, Racer},
    native::Native,
    ours::Entable,
    peer::{Peer, Promise},
    raw::Raw,
    sqlite::Sqlite,
};

/// A store that enters the race.
pub(super) struct Start {
    pub(super) peer: &'static str,
    /// Opens a folder that holds this many entities.
    pub(super) open: fn(&Path, Promise, u32) -> Box<dyn Racer>,
    /// Whether the store can acknowledge a write before it is on disk.
    pub(super) can_relax: bool,
}

/// Every store, entable first.
pub(super) const STARTS: [Start; 4] = [
    Start { peer: "entable", open: enter::<Entable>, can_relax: true },
    Start { peer: "native_db", open: enter::<Native>, can_relax: false },
    Start { peer: "SQLite", open: enter::<Sqlite>, can_relax: true },
    Start { peer: "redb", open: enter::<Raw>, can_relax: true },
];

fn enter<P: Peer>(folder: &Path, promise: Promise, entities: u32) -> Box<dyn Racer> {
    Box::new(Entrant::new(P::open(folder, promise), promise, entities))
}

/// Stores that take turns.
pub(super) struct Field {
    racers: Vec<(&'static str, Box<dyn Racer>)>,
}

/// The figures of one store and one load.
pub(super) struct Outcome {
    /// Such as `durable insert`.
    pub(super) load: String,
    pub(super) peer: &'static str,
    /// Nanoseconds of an operation: the median of the pieces.
    pub(super) median: f64,
    /// Nanoseconds of single operations, sorted.
    each: Vec<u64>,
    /// Bytes written to the disk for an operation.
    pub(super) written: f64,
}

impl Field {
    /// Opens every store that can keep the promise, each in a folder of its own.
    pub(super) fn open(folder: &Path, promise: Promise, entities: u32) -> Self {
        let starts = STARTS.iter().filter(|start| promise == Promise::Durable || start.can_relax);
        let racers = starts.map(|start| {
            let folder = folder.join(start.peer);
            std::fs::create_dir_all(&folder).unwrap();
            read_files(&folder);
            (start.peer, (start.open)(&folder, promise, entities))
        });
        Self { racers: racers.collect() }
    }

    /// Fills every store.
    pub(super) fn fill(&mut self, entities: u32) {
        self.racers.iter_mut().for_each(|(_, racer)| racer.fill(entities));
    }

    /// Runs a load on every store, piece by piece in an order that rotates. The first piece of each warms up.
    pub(super) fn race(&mut self, name: &str, load: Load) -> Vec<Outcome> {
        let count = self.racers.len();
        let mut pieces: Vec<Vec<Piece>> = self.racers.iter().map(|_| Vec::new()).collect();
        for piece in 0..=load.pieces() {
            for turn in 0..count {
                let at = (piece as usize + turn) % count;
                let ran = self.racers[at].1.run(load, piece);
                if piece > 0 {
                    pieces[at].push(ran);
                }
            }
        }
        let peers = self.racers.iter().map(|(peer, _)| *peer);
        let of = |(peer, pieces)| Outcome::of(name, peer, pieces);
        peers.zip(pieces).map(of).collect()
    }
}

/// Reads all files of a folder, so that the system has them in its cache.
fn read_files(folder: &Path) {
    for file in std::fs::read_dir(folder).unwrap() {
        let mut file = File::open(file.unwrap().path()).unwrap();
        std::io::copy(&mut file, &mut std::io::sink()).unwrap();
    }
}

impl Outcome {
    fn of(load: &str, peer: &'static str, pieces: Vec<Piece>) -> Self {
        let per_operation = |piece: &Piece| piece.total.as_nanos() as f64 / piece.operations as f64;
        let mut totals: Vec<f64> = pieces.iter().map(per_operation).collect();
        totals.sort_by(f64::total_cmp);
        let written: u64 = pieces.iter().map(|piece| piece.written).sum();
        let operations: usize = pieces.iter().map(|piece| piece.operations).sum();
        let written = written as f64 / operations as f64;
        let mut each: Vec<u64> = pieces.into_iter().flat_map(|piece| piece.each).collect();
        each.sort_unstable();
        Self { load: load.to_owned(), peer, median: totals[totals.len() / 2], each, written }
    }

    /// Makes an outcome of times that were taken one by one, in nanoseconds.
    pub(super) fn of_times(load: &str, peer: &'static str, mut each: Vec<u64>) -> Self {
        each.sort_unstable();
        let median = each[each.len() / 2] as f64;
        Self { load: load.to_owned(), peer, median, each, written: 0.0 }
    }

    /// Returns the nanoseconds that this share of the operations took at most.
    pub(super) fn percentile(&self, share: f64) -> Option<f64> {
        let at = (self.each.len() as f64 * share) as usize;
        self.each.get(at).map(|time| *time as f64)
    }

    /// Returns the mean nanoseconds of an operation.
    pub(super) fn mean(&self) -> Option<f64> {
        let count = self.each.len();
        (count > 0).then(|| self.each.iter().sum::<u64>() as f64 / count as f64)
    }
}

/// Rounds of opening.
const OPENINGS: usize = 9;

/// Opens the files again and again, and reads at once. The files are in the system's cache.
pub(super) fn race_cold(folder: &Path, entities: u32) -> Vec<Outcome> {
    let mut times: Vec<[Vec<u64>; 3]> = STARTS.iter().map(|_| Default::default()).collect();
    for round in 0..OPENINGS {
        for turn in 0..STARTS.len() {
            let at = (round + turn) % STARTS.len();
            let start = Instant::now();
            let folder = folder.join(STARTS[at].peer);
            let mut racer = (STARTS[at].open)(&folder, Promise::Durable, entities);
            let opened = u64::try_from(start.elapsed().as_nanos()).unwrap();
            let each = racer.run(Load::Get { tasks: 1 }, round as u64 + 100).each;
            times[at][0].push(opened);
            times[at][1].push(each[0]);
            times[at][2].extend(&each[1..]);
        }
    }
    let names = ["opening", "first read of an opened file", "next 999 reads of it"];
    let mut outcomes = Vec::new();
    for (start, times) in STARTS.iter().zip(times) {
        let of = |(name, each)| Outcome::of_times(name, start.peer, each);
        outcomes.extend(names.into_iter().zip(times).map(of));
    }
    outcomes
}
