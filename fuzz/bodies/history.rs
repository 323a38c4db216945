//! Histories: the same requests to the store in memory and to the one in a file have the same
//! answers, Timestamps included.

use std::{
    cell::OnceCell,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use entable::{
    Batch, Condition, Filter, Operation, Row, SteppedClock, Ticks, ValueRef,
    backend::{Backend, Durability, Embedded, Memory, Read, Scan, TableRequest},
};
use tokio::runtime::Runtime;

/// Both stores, made once: their clocks stand still, so that both count the same ticks.
struct Pair {
    runtime: Runtime,
    memory: Memory,
    embedded: Embedded,
    _directory: tempfile::TempDir,
}

thread_local! {
    static PAIR: OnceCell<Pair> = const { OnceCell::new() };
}

static TABLES: AtomicU64 = AtomicU64::new(0);

/// Does what the bytes say, in a table of its own.
pub(crate) fn history(data: &[u8]) {
    PAIR.with(|pair| {
        let pair = pair.get_or_init(pair_of_stores);
        let table = format!("T{:08}", TABLES.fetch_add(1, Ordering::Relaxed));
        pair.runtime.block_on(replay(pair, &table, data));
    });
}

fn pair_of_stores() -> Pair {
    let directory = tempfile::tempdir().unwrap();
    let durability = Durability::Relaxed { delay: Duration::from_secs(3600) };
    let options = Embedded::options().clock(clock()).durability(durability);
    Pair {
        runtime: tokio::runtime::Builder::new_current_thread().build().unwrap(),
        memory: Memory::with_clock(clock()),
        embedded: options.open(directory.path().join("history.db")).unwrap(),
        _directory: directory,
    }
}

fn clock() -> Arc<SteppedClock> {
    Arc::new(SteppedClock::new(Ticks::UNIX_EPOCH))
}

/// Reads bytes as numbers; zeros at the end.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn next(&mut self, limit: u8) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first % limit
    }
}

const KEYS: [&str; 6] = ["", "a", "b", "aa", "\u{1f600}", "\u{ffee}"];
const NAMES: [&str; 3] = ["A", "B", "C"];

async fn replay(pair: &Pair, table: &str, data: &[u8]) {
    let both: [&dyn Backend; 2] = [&pair.memory, &pair.embedded];
    for store in both {
        store.tables(TableRequest::Create(table)).await.unwrap();
    }
    let mut script = Script(data);
    while !script.0.is_empty() {
        match script.next(8) {
            0 => {
                let (partition_key, row_key) = keys(&mut script);
                let read = Read { table, partition_key, row_key, select: None };
                let [one, other] = [both[0].read(read).await, both[1].read(read).await];
                assert_eq!(one.unwrap(), other.unwrap());
            }
            1 => compare_scans(both, table, u32::from(1 + script.next(5))).await,
            _ => apply(both, table, &mut script).await,
        }
    }
    compare_scans(both, table, 1000).await;
    for store in both {
        store.tables(TableRequest::Delete(table)).await.unwrap();
    }
}

fn keys(script: &mut Script<'_>) -> (&'static str, &'static str) {
    (KEYS[usize::from(script.next(3))], KEYS[usize::from(script.next(6))])
}

async fn apply(both: [&dyn Backend; 2], table: &str, script: &mut Script<'_>) {
    let mut batch = Batch::new(table);
    for _ in 0..=script.next(4) {
        let Some(operation) = operation(both[0], table, script).await else { return };
        // Another partition or the same row twice: refused before any store sees it.
        drop(batch.push(operation));
    }
    let answers = [both[0].apply(&batch).await, both[1].apply(&batch).await];
    let said = answers.map(|answer| match answer {
        Ok(written) => format!("{written:?}"),
        Err(error) => format!("{error}"),
    });
    assert_eq!(said[0], said[1]);
}

async fn operation(store: &dyn Backend, table: &str, script: &mut Script<'_>) -> Option<Operation> {
    let (partition_key, row_key) = keys(script);
    let mut row = Row::build(partition_key, row_key);
    for name in NAMES.into_iter().take(usize::from(script.next(4))) {
        row.put(name, ValueRef::Int32(script.next(255).into()));
    }
    let row = row.finish().ok()?;
    let read = Read { table, partition_key, row_key, select: None };
    let stored = store.read(read).await.unwrap();
    let condition = match (script.next(3), stored.and_then(|stored| stored.etag())) {
        (0, Some(etag)) => Condition::Match(etag),
        (1, _) => Condition::Match(entable::ETag::of(Ticks::UNIX_EPOCH)),
        _ => Condition::Any,
    };
    Some(match script.next(6) {
        0 => Operation::insert(row),
        1 => Operation::insert_or_replace(row),
        2 => Operation::insert_or_merge(row),
        3 => Operation::replace(row, condition),
        4 => Operation::merge(row, condition),
        _ => Operation::delete(partition_key, row_key, condition).ok()?,
    })
}

/// All rows, page by page.
async fn compare_scans(both: [&dyn Backend; 2], table: &str, top: u32) {
    let filter = Filter::Constant(true);
    let mut from = None;
    loop {
        let top = Some(top);
        let scan = Scan { table, filter: &filter, select: None, top, from: from.as_ref() };
        let [one, other] = [both[0].scan(scan).await.unwrap(), both[1].scan(scan).await.unwrap()];
        assert_eq!((one.rows, &one.next), (other.rows, &other.next));
        if one.next.is_none() {
            return;
        }
        from = one.next;
    }
}
