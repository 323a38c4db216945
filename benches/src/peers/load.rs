//! What programs do with a store, in pieces that are short enough to take turns.

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::runtime::Runtime;

use super::peer::{Employee, Peer, Promise, email};

/// Tasks of the loads with many.
pub(super) const TASKS: usize = 64;

/// Names the operation that a piece repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Load {
    /// Reads a random entity by its key, from this many tasks.
    Get { tasks: usize },
    /// Reads a random entity by its e-mail address.
    Find,
    /// Reads a range of this many entities.
    Range(u32),
    /// Inserts entities in batches, with this many transactions at a time where the store can.
    Bulk { tasks: usize },
    /// Inserts one entity in a transaction of its own, from this many tasks.
    Insert { tasks: usize },
    /// Changes the e-mail address of a random entity.
    Change,
    /// Reads 19 entities by their keys, and changes an e-mail address.
    Mixed,
}

impl Load {
    /// Returns how often a piece does it. Entities count in a bulk load.
    ///
    /// A piece ends with all writes on disk. Relaxed ones are longer, so that this counts as little as it does while
    /// a program runs.
    pub(super) fn operations(self, promise: Promise) -> usize {
        let relaxed = |count: usize, factor: usize| match promise {
            Promise::Durable => count,
            Promise::Relaxed => count * factor,
        };
        match self {
            Self::Get { tasks: 1 } | Self::Find => 1_000,
            Self::Get { .. } => 100 * TASKS,
            Self::Range(rows) => (4_000 / rows as usize).max(2),
            Self::Bulk { .. } => relaxed(2_000, 4),
            Self::Insert { tasks: 1 } | Self::Change => relaxed(50, 40),
            Self::Insert { .. } => relaxed(2 * TASKS, 20),
            Self::Mixed => relaxed(500, 40),
        }
    }

    /// Returns how many pieces a measurement has.
    pub(super) fn pieces(self) -> u64 {
        match self {
            Self::Get { .. } | Self::Find | Self::Range(_) => 40,
            Self::Change | Self::Insert { tasks: 1 } => 16,
            Self::Bulk { .. } | Self::Insert { .. } | Self::Mixed => 9,
        }
    }

    /// Says whether it writes.
    pub(super) fn writes(self) -> bool {
        !matches!(self, Self::Get { .. } | Self::Find | Self::Range(_))
    }
}

/// Holds the times of a piece and the bytes that it wrote.
pub(super) struct Piece {
    pub(super) operations: usize,
    pub(super) total: Duration,
    /// Nanoseconds of each operation; none for a bulk load.
    pub(super) each: Vec<u64>,
    /// Bytes that went to the disk.
    pub(super) written: u64,
}

/// A store with the numbers of the entities in it.
pub(super) struct Entrant<P> {
    peer: Arc<P>,
    promise: Promise,
    entities: u32,
    changes: u32,
    one: Runtime,
    many: Runtime,
}

/// An [`Entrant`] of any store.
pub(super) trait Racer {
    /// Does one piece, until all that it wrote is on disk.
    fn run(&mut self, load: Load, piece: u64) -> Piece;

    /// Inserts entities until there are this many.
    fn fill(&mut self, entities: u32);
}

impl<P: Peer> Entrant<P> {
    /// Enters a store that holds this many entities.
    pub(super) fn new(peer: P, promise: Promise, entities: u32) -> Self {
        let one = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let many = crate::embedded::runtime();
        Self { peer: Arc::new(peer), promise, entities, changes: 0, one, many }
    }

    fn take_new(&mut self, count: usize) -> Vec<Employee> {
        let first = self.entities;
        self.entities += u32::try_from(count).unwrap();
        (first..self.entities).map(Employee::new).collect()
    }

    fn new_emails(&mut self, ids: Vec<u32>) -> Vec<(u32, String)> {
        let new = |id| {
            self.changes += 1;
            (id, format!("person{id}_{}@contoso.com", self.changes))
        };
        ids.into_iter().map(new).collect()
    }

    /// Runs `work` on equal shares of the items, each in a task of its own.
    fn spread<T, F>(&self, items: Vec<T>, work: fn(Arc<P>, Vec<T>) -> F) -> Vec<u64>
    where
        F: Future<Output = Vec<u64>> + Send + 'static,
    {
        let share = items.len() / TASKS;
        let mut items = items.into_iter();
        self.many.block_on(async {
            let tasks = (0..TASKS).map(|_| {
                tokio::spawn(work(self.peer.clone(), items.by_ref().take(share).collect()))
            });
            let mut each = Vec::new();
            for task in tasks.collect::<Vec<_>>() {
                each.extend(task.await.unwrap());
            }
            each
        })
    }
}

impl<P: Peer> Racer for Entrant<P> {
    fn run(&mut self, load: Load, piece: u64) -> Piece {
        let count = load.operations(self.promise);
        let ids: Vec<u32> = numbers(piece, self.entities).take(count).collect();
        let (peer, before) = (self.peer.clone(), written_bytes());
        let (start, each) = match load {
            Load::Get { tasks: 1 } => (Instant::now(), self.one.block_on(gets(peer, ids))),
            Load::Get { .. } => (Instant::now(), self.spread(ids, gets)),
            Load::Find => {
                let emails: Vec<_> = ids.into_iter().map(|id| (id, email(id))).collect();
                (Instant::now(), self.one.block_on(finds(peer, emails)))
            }
            Load::Range(rows) => (Instant::now(), self.one.block_on(ranges(peer, ids, rows))),
            Load::Bulk { tasks } => {
                let employees = self.take_new(count);
                let start = Instant::now();
                self.one.block_on(peer.load(employees, tasks));
                (start, Vec::new())
            }
            Load::Insert { tasks } => {
                let employees = self.take_new(count);
                let start = Instant::now();
                (
                    start,
                    match tasks {
                        1 => self.one.block_on(inserts(peer, employees)),
                        _ => self.spread(employees, inserts),
                    },
                )
            }
            Load::Change => {
                let emails = self.new_emails(ids);
                (Instant::now(), self.one.block_on(changes(peer, emails)))
            }
            Load::Mixed => {
                let emails = self.new_emails(ids);
                (Instant::now(), self.one.block_on(mixed(peer, emails)))
            }
        };
        if load.writes() {
            self.one.block_on(self.peer.settle());
        }
        Piece { operations: count, total: start.elapsed(), each, written: written_bytes() - before }
    }

    fn fill(&mut self, entities: u32) {
        while self.entities < entities {
            let employees = self.take_new(10_000);
            self.one.block_on(self.peer.load(employees, 8));
        }
        self.one.block_on(self.peer.settle());
    }
}

/// Takes the time from one operation to the next.
struct Laps {
    last: Instant,
    each: Vec<u64>,
}

impl Laps {
    fn start(count: usize) -> Self {
        Self { each: Vec::with_capacity(count), last: Instant::now() }
    }

    fn lap(&mut self) {
        let now = Instant::now();
        self.each.push(u64::try_from((now - self.last).as_nanos()).unwrap());
        self.last = now;
    }
}

async fn gets<P: Peer>(peer: Arc<P>, ids: Vec<u32>) -> Vec<u64> {
    let mut laps = Laps::start(ids.len());
    for id in ids {
        assert_eq!(peer.get(id).await, id);
        laps.lap();
    }
    laps.each
}

async fn finds<P: Peer>(peer: Arc<P>, emails: Vec<(u32, String)>) -> Vec<u64> {
    let mut laps = Laps::start(emails.len());
    for (id, email) in &emails {
        assert_eq!(peer.find(*id / super::peer::DEPARTMENT, email).await, *id);
        laps.lap();
    }
    laps.each
}

async fn ranges<P: Peer>(peer: Arc<P>, ids: Vec<u32>, rows: u32) -> Vec<u64> {
    let mut laps = Laps::start(ids.len());
    for id in ids {
        let first = id / rows * rows;
        assert_eq!(peer.range(first..first + rows).await, rows as usize);
        laps.lap();
    }
    laps.each
}

async fn inserts<P: Peer>(peer: Arc<P>, employees: Vec<Employee>) -> Vec<u64> {
    let mut laps = Laps::start(employees.len());
    for employee in employees {
        peer.insert(employee).await;
        laps.lap();
    }
    laps.each
}

async fn changes<P: Peer>(peer: Arc<P>, emails: Vec<(u32, String)>) -> Vec<u64> {
    let mut laps = Laps::start(emails.len());
    for (id, email) in emails {
        peer.change_email(id, email).await;
        laps.lap();
    }
    laps.each
}

async fn mixed<P: Peer>(peer: Arc<P>, emails: Vec<(u32, String)>) -> Vec<u64> {
    let mut laps = Laps::start(emails.len());
    for (number, (id, email)) in emails.into_iter().enumerate() {
        if number % 20 == 19 {
            peer.change_email(id, email).await;
        } else {
            peer.get(id).await;
        }
        laps.lap();
    }
    laps.each
}

fn numbers(seed: u64, below: u32) -> impl Iterator<Item = u32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) + 7;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        u32::try_from(state >> 33).unwrap() % below.max(1)
    })
}

/// Returns the bytes that this process has sent to the disk, as Linux counts them; 0 elsewhere.
fn written_bytes() -> u64 {
    let counts = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = counts.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    line.and_then(|bytes| bytes.parse().ok()).unwrap_or_default()
}
