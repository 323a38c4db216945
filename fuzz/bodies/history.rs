//! Histories: the same requests to the store in memory and to the one in a file have the same
//! answers, Timestamps included.

use std::{cell::OnceCell, sync::Arc, time::Duration};

use entable::{
    Batch, Condition, Filter, Operation, Row, SteppedClock, Ticks, ValueRef,
    backend::{Backend, Durability, Embedded, Memory, ReadRequest, ScanRequest, TableRequest},
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

const TABLE: &str = "Histories";

/// Does what the bytes say, in an empty table.
pub(crate) fn history(data: &[u8]) {
    PAIR.with(|pair| {
        let pair = pair.get_or_init(pair_of_stores);
        pair.runtime.block_on(replay(pair.stores(), data));
    });
}

impl Pair {
    fn stores(&self) -> [&dyn Backend; 2] {
        [&self.memory, &self.embedded]
    }
}

fn pair_of_stores() -> Pair {
    let directory = tempfile::tempdir().unwrap();
    let durability = Durability::Relaxed { delay: Duration::from_secs(3600) };
    let options = Embedded::options().clock(clock()).durability(durability);
    let pair = Pair {
        runtime: tokio::runtime::Builder::new_current_thread().build().unwrap(),
        memory: Memory::with_clock(clock()),
        embedded: options.open(directory.path().join("history.db")).unwrap(),
        _directory: directory,
    };
    for store in pair.stores() {
        pair.runtime.block_on(store.tables(TableRequest::Create(TABLE))).unwrap();
    }
    pair
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

async fn replay(both: [&dyn Backend; 2], data: &[u8]) {
    let mut script = Script(data);
    while !script.0.is_empty() {
        match script.next(8) {
            0 => {
                let (partition_key, row_key) = keys(&mut script);
                let read = ReadRequest { table: TABLE, partition_key, row_key, select: None };
                let [one, other] = [both[0].read(read).await, both[1].read(read).await];
                assert_eq!(one.unwrap(), other.unwrap());
            }
            1 => {
                compare_scans(both, u32::from(1 + script.next(5))).await;
            }
            _ => apply(both, &mut script).await,
        }
    }
    let rows = compare_scans(both, 1000).await;
    // Empty again, for the next history.
    for row in rows {
        let delete = Operation::delete(row.partition_key(), row.row_key(), Condition::Any).unwrap();
        let batch = Batch::single(TABLE, delete).unwrap();
        for store in both {
            store.apply(&batch).await.unwrap();
        }
    }
}

fn keys(script: &mut Script<'_>) -> (&'static str, &'static str) {
    (KEYS[usize::from(script.next(3))], KEYS[usize::from(script.next(6))])
}

async fn apply(both: [&dyn Backend; 2], script: &mut Script<'_>) {
    let mut batch = Batch::new(TABLE);
    for _ in 0..=script.next(4) {
        let Some(operation) = operation(both[0], script).await else { return };
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

async fn operation(store: &dyn Backend, script: &mut Script<'_>) -> Option<Operation> {
    let (partition_key, row_key) = keys(script);
    let mut row = Row::build(partition_key, row_key);
    for name in NAMES.into_iter().take(usize::from(script.next(4))) {
        row.put(name, ValueRef::Int32(script.next(255).into()));
    }
    let row = row.finish().ok()?;
    let read = ReadRequest { table: TABLE, partition_key, row_key, select: None };
    let stored = store.read(read).await.unwrap();
    let condition = match (script.next(3), stored.and_then(|stored| stored.etag())) {
        (0, Some(etag)) => Condition::Match(etag),
        (1, _) => Condition::Match(entable::ETag::from_timestamp(Ticks::UNIX_EPOCH)),
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
async fn compare_scans(both: [&dyn Backend; 2], top: u32) -> Vec<Row> {
    let filter = Filter::Constant(true);
    let mut from = None;
    let mut rows = Vec::new();
    loop {
        let top = Some(top);
        let scan =
            ScanRequest { table: TABLE, filter: &filter, select: None, top, from: from.as_ref() };
        let [one, other] = [both[0].scan(scan).await.unwrap(), both[1].scan(scan).await.unwrap()];
        assert_eq!(one.next, other.next);
        let next = one.next.clone();
        let page = one.into_rows().unwrap();
        assert_eq!(page, other.into_rows().unwrap());
        rows.extend(page);
        if next.is_none() {
            return rows;
        }
        from = next;
    }
}
