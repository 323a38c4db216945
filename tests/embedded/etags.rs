//! Tests that no ETag is issued twice, even if a crash loses writes and the clock is set back. A copy of the open file
//! plays the state after a power failure.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use entable::{
    Batch, Clock, Condition, Operation, Ticks,
    backend::{Backend, Durability, Embedded, EmbeddedOptions, TableRequest},
};
use proptest::{collection::vec, prelude::*};

use crate::{copy_as_crashed, create, insert, read, row, scratch};

/// No commit is due for the disk in a test.
const RELAXED: Durability = Durability::Relaxed { delay: Duration::from_secs(3600) };
/// The time that a store may reserve ahead of its clock.
const AHEAD: i64 = 5 * Ticks::PER_SECOND;
/// The time that a store may reserve ahead of the last Timestamp.
const AHEAD_OF_LAST: i64 = Ticks::PER_SECOND / 100;
const KEYS: [&str; 3] = ["a", "b", "c"];

/// A clock that shows ticks since the Unix epoch.
#[derive(Debug, Default)]
struct SetClock(AtomicI64);

impl SetClock {
    fn at(ticks: i64) -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(ticks)))
    }

    fn move_by(&self, ticks: i64) {
        // Not before the epoch: the test adds to it.
        self.0.store((self.0.load(SeqCst) + ticks).max(0), SeqCst);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Ticks {
        Ticks::new(Ticks::UNIX_EPOCH.get() + self.0.load(SeqCst)).unwrap()
    }
}

fn open(path: &Path, durability: Durability, clock: &Arc<SetClock>) -> Embedded {
    // The first commit of an opening puts a journal into use, and the others are in it.
    let options = EmbeddedOptions::new().durability(durability).journal_after_commits(0);
    options.clock(clock.clone()).open(path).unwrap()
}

/// Copies the file of an open store, and returns the path of the copy.
fn crashed(path: &Path, number: usize) -> PathBuf {
    let copy = path.with_file_name(format!("crashed{number}.db"));
    copy_as_crashed(path, &copy);
    copy
}

/// Returns the Timestamp of a row in ticks since the Unix epoch. The ETag follows from it.
async fn timestamp(store: &Embedded, key: &str) -> i64 {
    let row = read(store, "Staff", key).await.unwrap().unwrap();
    row.timestamp().unwrap().get() - Ticks::UNIX_EPOCH.get()
}

/// Inserts the row (p, r) at tick 100 and loses it in a crash. Returns the path of the file after it.
async fn write_and_crash(durability: Durability) -> (tempfile::TempDir, PathBuf, i64) {
    let (directory, path) = scratch();
    let store = open(&path, durability, &SetClock::at(100));
    create(&store, "Staff").await;
    insert(&store, "Staff", row("p", "r", 1)).await.unwrap();
    let lost = timestamp(&store, "r").await;
    (directory, crashed(&path, 0), lost)
}

#[tokio::test]
async fn the_etag_of_a_lost_row_does_not_come_again_when_the_clock_is_set_back() {
    let (_directory, path, lost) = write_and_crash(RELAXED).await;
    let store = open(&path, RELAXED, &SetClock::at(lost));
    assert!(read(&store, "Staff", "r").await.unwrap().is_none(), "the row was not synced");
    insert(&store, "Staff", row("p", "r", 2)).await.unwrap();
    let found = timestamp(&store, "r").await;
    assert!(found > lost && found <= lost + AHEAD + 1, "{found} after {lost}");
}

#[tokio::test]
async fn a_store_that_syncs_is_hardly_ahead_of_its_clock_after_a_crash() {
    let (_directory, path, written) = write_and_crash(Durability::Sync).await;
    let store = open(&path, Durability::Sync, &SetClock::at(written));
    insert(&store, "Staff", row("p", "s", 2)).await.unwrap();
    let found = timestamp(&store, "s").await;
    assert!(found > written && found <= written + AHEAD / 50 + 1, "{found} after {written}");
}

#[tokio::test]
async fn a_store_that_was_closed_continues_with_its_clock() {
    for durability in [Durability::Sync, RELAXED] {
        let (_directory, path) = scratch();
        let clock = SetClock::at(100);
        let store = open(&path, durability, &clock);
        create(&store, "Staff").await;
        insert(&store, "Staff", row("p", "r", 1)).await.unwrap();
        let last = timestamp(&store, "r").await;
        drop(store);
        clock.move_by(1);
        let store = open(&path, durability, &clock);
        insert(&store, "Staff", row("p", "s", 2)).await.unwrap();
        assert_eq!(timestamp(&store, "s").await, last + 1, "{durability:?}");
    }
}

/// After the clock was wrong, Timestamps continue after the latest one, since it may have been seen.
#[tokio::test]
async fn a_clock_that_was_ahead_for_a_while_is_remembered() {
    let (_directory, path) = scratch();
    let clock = SetClock::at(100);
    let store = open(&path, RELAXED, &clock);
    create(&store, "Staff").await;
    clock.move_by(1_000 * AHEAD);
    insert(&store, "Staff", row("p", "r", 1)).await.unwrap();
    let last = timestamp(&store, "r").await;
    clock.move_by(-1_000 * AHEAD);
    drop(store);
    let store = open(&path, RELAXED, &clock);
    insert(&store, "Staff", row("p", "s", 2)).await.unwrap();
    assert_eq!(timestamp(&store, "s").await, last + 1);
}

#[tokio::test]
async fn a_relaxed_store_syncs_once_for_each_bound() {
    let (_directory, path) = scratch();
    let (clock, syncs) = (SetClock::at(100), Arc::new(AtomicUsize::new(0)));
    let options = EmbeddedOptions::new().durability(RELAXED).clock(clock.clone());
    let store = options.count_syncs_into(syncs.clone()).open(&path).unwrap();
    create(&store, "Staff").await;
    for number in 0..1_000 {
        insert(&store, "Staff", row("p", &number.to_string(), number)).await.unwrap();
        clock.move_by(AHEAD / 100);
    }
    // The clock moved by ten bounds, and creating the table has stored the first.
    assert_eq!(syncs.load(SeqCst), 9);
}

/// A step of a history.
#[derive(Debug, Clone, Copy)]
enum Step {
    Write(usize),
    Delete(usize),
    Flush,
    MoveClock(i64),
    CloseAndOpen,
    CrashAndOpen,
    RecreateTable,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..KEYS.len()).prop_map(Step::Write),
        3 => (0..KEYS.len()).prop_map(Step::Delete),
        1 => Just(Step::Flush),
        2 => (-3 * AHEAD..3 * AHEAD).prop_map(Step::MoveClock),
        2 => (-3_i64..3).prop_map(Step::MoveClock),
        1 => Just(Step::CloseAndOpen),
        2 => Just(Step::CrashAndOpen),
        1 => Just(Step::RecreateTable),
    ];
    vec(step, 1..40)
}

/// A store under a history, and all that was seen of it.
struct Seen {
    path: PathBuf,
    durability: Durability,
    clock: Arc<SetClock>,
    store: Option<Embedded>,
    timestamps: HashSet<(usize, i64)>,
    /// The latest time that the clock has shown or a row has had.
    latest: i64,
    crashes: usize,
}

impl Seen {
    fn store(&self) -> &Embedded {
        self.store.as_ref().unwrap()
    }

    fn open(&mut self) {
        self.store = Some(open(&self.path, self.durability, &self.clock));
    }

    async fn apply(&self, operation: Operation) -> bool {
        self.store().apply(&Batch::single("Staff", operation).unwrap()).await.is_ok()
    }

    async fn write(&mut self, key: usize) {
        let written = self.apply(Operation::insert_or_replace(row("p", KEYS[key], 1))).await;
        // A crash may have lost the table.
        if !written {
            return create(self.store(), "Staff").await;
        }
        let found = timestamp(self.store(), KEYS[key]).await;
        assert!(
            self.timestamps.insert((key, found)),
            "{} has the ETag of {found} again",
            KEYS[key]
        );
        // Crashes one after the other do not add up the time ahead of the clock.
        let crashes = i64::try_from(self.crashes).unwrap();
        let most = self.latest + AHEAD + (AHEAD_OF_LAST + 1) * crashes;
        assert!(found <= most, "{found} is long after {}", self.latest);
        self.latest = self.latest.max(found);
    }

    async fn run(&mut self, step: Step) {
        self.latest = self.latest.max(self.clock.0.load(SeqCst));
        match step {
            Step::Write(key) => self.write(key).await,
            Step::Delete(key) => {
                self.apply(Operation::delete("p", KEYS[key], Condition::Any).unwrap()).await;
            }
            Step::Flush => self.store().flush().await.unwrap(),
            Step::MoveClock(ticks) => self.clock.move_by(ticks),
            Step::CloseAndOpen => {
                self.store = None;
                self.open();
            }
            Step::CrashAndOpen => {
                let copy = crashed(&self.path, self.crashes);
                self.crashes += 1;
                self.store = None;
                self.path = copy;
                self.open();
            }
            Step::RecreateTable => {
                drop(self.store().tables(TableRequest::Delete("Staff")).await);
                create(self.store(), "Staff").await;
            }
        }
    }
}

async fn run_history(durability: Durability, steps: &[Step]) {
    let (_directory, path) = scratch();
    let clock = SetClock::at(10 * AHEAD);
    let timestamps = HashSet::new();
    let mut seen =
        Seen { path, durability, clock, store: None, timestamps, latest: 10 * AHEAD, crashes: 0 };
    seen.open();
    create(seen.store(), "Staff").await;
    for step in steps {
        seen.run(*step).await;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn no_history_gives_an_etag_twice(steps in steps(), is_relaxed in any::<bool>()) {
        let durability = if is_relaxed { RELAXED } else { Durability::Sync };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(run_history(durability, &steps));
    }
}
