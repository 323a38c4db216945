//! Durable writes.

use std::{cell::Cell, sync::Arc, time::Duration};

use entable::{
    Batch, Operation,
    backend::{Backend, Embedded, EmbeddedOptions},
    key::encode_sort_key,
};
use redb::Database;

use super::fixture::{RAW, raw, row, runtime, store};
use crate::figure::{figure, in_turns, note};

const BATCHES: usize = 200;
const SINGLES: usize = 4_096;
const TASKS: usize = 64;
/// Time that a sync of a usual disk takes; in memory or behind a write cache it takes none.
const SYNC: Duration = Duration::from_millis(3);
/// Inserts of each task on the slow disk.
const SLOW_EACH: usize = 256;

pub(crate) fn run() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = runtime();
    let ours = Arc::new(store(&runtime, &directory.path().join("ours.db"), EmbeddedOptions::new()));
    let theirs = raw(&directory.path().join("raw.db"));

    let (next, raw_next) = (Cell::new(0), Cell::new(0));
    let take = |from: &Cell<usize>, count: usize| from.replace(from.get() + count);
    let (mine, own) = in_turns(
        || runtime.block_on(batches(&ours, take(&next, BATCHES * 100))),
        || raw_batches(&theirs, take(&raw_next, BATCHES * 100)),
    );
    figure("embedded.durable_batch_100", own.as_secs_f64() / mine.as_secs_f64(), ">= 0.8");
    note("embedded.durable batches/s", BATCHES as f64 / mine.as_secs_f64());

    let (many, one) = in_turns(
        || runtime.block_on(singles(&ours, take(&next, SINGLES), TASKS)),
        || runtime.block_on(singles(&ours, take(&next, SINGLES / 8), 1)),
    );
    let gain = one.as_secs_f64() * 8.0 / many.as_secs_f64();
    figure("embedded.durable_64_tasks", gain, ">= 3.5");
    note("embedded.durable one task/s", (SINGLES / 8) as f64 / one.as_secs_f64());
    note("embedded.durable 64 tasks/s", SINGLES as f64 / many.as_secs_f64());
    run_on_slow_disk(&runtime, &directory.path().join("slow.db"));
}

/// Several tasks beside one, on a disk whose sync takes [`SYNC`].
fn run_on_slow_disk(runtime: &tokio::runtime::Runtime, path: &std::path::Path) {
    let slow = Arc::new(store(runtime, path, EmbeddedOptions::new().simulated_sync_delay(SYNC)));
    let next = Cell::new(0);
    let insert = |tasks: usize| {
        let first = next.replace(next.get() + tasks * SLOW_EACH);
        runtime.block_on(each_inserts(&slow, first, tasks, SLOW_EACH));
    };
    for (tasks, goal) in [(4, ">= 3.5"), (16, ">= 9")] {
        let (many, one) = in_turns(|| insert(tasks), || insert(1));
        let gain = one.as_secs_f64() * tasks as f64 / many.as_secs_f64();
        figure(&format!("embedded.durable_{tasks}_tasks_to_one"), gain, goal);
        let rate = |tasks: usize, time: Duration| (tasks * SLOW_EACH) as f64 / time.as_secs_f64();
        note(&format!("embedded.durable {tasks} tasks/s, sync of 3 ms"), rate(tasks, many));
        note("embedded.durable one task/s, sync of 3 ms", rate(1, one));
    }
}

async fn batches(store: &Embedded, first: usize) {
    for batch in 0..BATCHES {
        let mut egt = Batch::new("Rows");
        for number in 0..100 {
            egt.push(Operation::insert(row(first + batch * 100 + number))).unwrap();
        }
        store.apply(&egt).await.unwrap();
    }
}

fn raw_batches(database: &Database, first: usize) {
    for batch in 0..BATCHES {
        let transaction = database.begin_write().unwrap();
        let mut table = transaction.open_table(RAW).unwrap();
        for number in 0..100 {
            let row = row(first + batch * 100 + number);
            let key = encode_sort_key(row.partition_key(), row.row_key());
            table.insert(&*key, &*row.as_bytes()).unwrap();
        }
        drop(table);
        transaction.commit().unwrap();
    }
}

/// Inserts rows one by one from several tasks, each waiting for its own.
async fn singles(store: &Arc<Embedded>, first: usize, tasks: usize) {
    let each = if tasks == 1 { SINGLES / 8 } else { SINGLES / tasks };
    each_inserts(store, first, tasks, each).await;
}

/// Inserts `each` rows from each of several tasks, each row when the one before is on disk.
async fn each_inserts(store: &Arc<Embedded>, first: usize, tasks: usize, each: usize) {
    let tasks: Vec<_> = (0..tasks)
        .map(|task| {
            let store = store.clone();
            tokio::spawn(async move {
                for number in 0..each {
                    let row = row(first + task * each + number);
                    let batch = Batch::single("Rows", Operation::insert(row)).unwrap();
                    store.apply(&batch).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}
