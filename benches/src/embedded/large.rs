//! A million rows: opening, size, memory, dropping.

use std::{
    hint::black_box,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use entable::{
    Batch, Filter, Operation,
    backend::{
        Backend, Durability, Embedded, EmbeddedOptions, ReadRequest, ScanRequest, TableRequest,
    },
    key::encode_sort_key,
};

use super::fixture::{CACHE, fill, keys, row, runtime, store};
use crate::figure::{figure, note, timed};

const ROWS: usize = 1_000_000;
const MIB: f64 = 1024.0 * 1024.0;

pub(crate) fn run() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("million.db");
    let runtime = runtime();
    let relaxed = Durability::Relaxed { delay: Duration::from_secs(1) };
    let ours = store(&runtime, &path, EmbeddedOptions::new().durability(relaxed));
    let filled = timed(|| runtime.block_on(fill(&ours, 0..ROWS)));
    note("embedded.million filled, rows/s", ROWS as f64 / filled.as_secs_f64());
    let raw: usize = (0..ROWS).step_by(100).map(|number| raw_bytes(number) * 100).sum();
    let size = || path.metadata().unwrap().len() as f64 / raw as f64;
    note("embedded.million size before compact", size());
    let compacted = timed(|| runtime.block_on(ours.compact()).unwrap());
    note("embedded.million compact, s", compacted.as_secs_f64());
    figure("embedded.million size", size(), "<= 2.2");
    drop(ours);

    figure("embedded.million open, s", opened(&path), "< 1");
    let memory = ask("embedded-child-scan", &path).parse().unwrap();
    figure("embedded.million scan memory, MiB", memory, "< 128");
    killed(&path);
    figure("embedded.million open after kill, s", opened(&path), "<= 0.5");

    let ours = EmbeddedOptions::new().open(&path).unwrap();
    let start = Instant::now();
    runtime.block_on(ours.tables(TableRequest::Delete("Rows"))).unwrap();
    figure("embedded.million drop, ms", start.elapsed().as_secs_f64() * 1000.0, "< 50");
    runtime.block_on(ours.tables(TableRequest::Create("Rows"))).unwrap();
    let slowest = runtime.block_on(slowest_insert(&ours));
    note("embedded.million slowest insert while reclaiming, ms", slowest.as_secs_f64() * 1000.0);
    let reclaimed = timed(|| runtime.block_on(ours.compact()).unwrap());
    note("embedded.million reclaim the rest and compact, s", reclaimed.as_secs_f64());
    note("embedded.million size after the drop", size());
}

/// Ten million rows beside ten thousand.
pub(crate) fn run_huge() {
    let runtime = runtime();
    let [small, large] = [10_000, 10 * ROWS].map(|rows| {
        let directory = tempfile::tempdir().unwrap();
        let relaxed = Durability::Relaxed { delay: Duration::from_secs(1) };
        let options = EmbeddedOptions::new().durability(relaxed);
        let ours = store(&runtime, &directory.path().join("store.db"), options);
        runtime.block_on(fill(&ours, 0..rows));
        runtime.block_on(ours.flush()).unwrap();
        runtime.block_on(gets(&ours, rows));
        timed(|| runtime.block_on(gets(&ours, rows))).as_secs_f64()
    });
    figure("embedded.get at 10 million beside 10,000", large / small, "<= 2");
}

async fn gets(store: &Embedded, rows: usize) {
    let mut state = 7_u64;
    for _ in 0..100_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (partition_key, row_key) = keys((state >> 33) as usize % rows);
        let (partition_key, row_key) = (&*partition_key, &*row_key);
        let read = ReadRequest { table: "Rows", partition_key, row_key, select: None };
        black_box(store.read(read).await.unwrap().unwrap());
    }
}

fn raw_bytes(number: usize) -> usize {
    let row = row(number);
    encode_sort_key(row.partition_key(), row.row_key()).len() + row.as_bytes().len()
}

fn opened(path: &Path) -> f64 {
    let start = Instant::now();
    let store = EmbeddedOptions::new().cache_bytes(CACHE).open(path).unwrap();
    let time = start.elapsed().as_secs_f64();
    drop(store);
    time
}

async fn slowest_insert(store: &Embedded) -> Duration {
    let mut slowest = Duration::ZERO;
    for number in 0..500 {
        let batch = Batch::single("Rows", Operation::insert(row(number))).unwrap();
        let start = Instant::now();
        store.apply(&batch).await.unwrap();
        slowest = slowest.max(start.elapsed());
    }
    slowest
}

fn command(what: &str, path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(what).arg(path).stdout(Stdio::piped());
    command
}

fn ask(what: &str, path: &Path) -> String {
    let output = command(what, path).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Kills a process in the middle of its writes, shortly before a checkpoint is due.
fn killed(path: &Path) {
    let mut child = command("embedded-child-write", path).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.by_ref().take(8_000).all(|line| line.is_ok()));
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Whether this process is one that a figure starts.
pub(crate) fn is_child(arguments: &[String]) -> bool {
    arguments.first().is_some_and(|what| what.starts_with("embedded-child-"))
}

/// The work of such a process.
pub(crate) fn child(arguments: &[String]) {
    let [what, path] = arguments else { return };
    let store = EmbeddedOptions::new().cache_bytes(CACHE).open(path).unwrap();
    let runtime = runtime();
    match what.as_str() {
        "embedded-child-scan" => {
            let idle = resident("VmRSS");
            runtime.block_on(scan_all(&store));
            println!("{}", (resident("VmHWM") - idle) / MIB);
        }
        _ => runtime.block_on(write_on(Arc::new(store))),
    }
}

async fn scan_all(store: &Embedded) {
    let filter = Filter::Constant(true);
    let (mut rows, mut from) = (0, None);
    loop {
        let from_here = from.as_ref();
        let scan = ScanRequest {
            table: "Rows",
            filter: &filter,
            select: None,
            top: None,
            from: from_here,
        };
        let page = store.scan(scan).await.unwrap();
        rows += page.rows.len();
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    assert!(rows >= ROWS);
}

/// Replaces random rows from sixteen tasks, without an end.
async fn write_on(store: Arc<Embedded>) {
    let writers = (1..=16_u64).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            let mut state = writer;
            let mut replace = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let replace = Operation::insert_or_replace(row((state >> 33) as usize % ROWS));
                Batch::single("Rows", replace).unwrap()
            };
            while store.apply(&replace()).await.is_ok() {
                println!("{writer}");
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
}

/// Bytes of memory of this process, as Linux counts them; 0 elsewhere.
fn resident(what: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(what)).unwrap_or_default();
    let kib = line.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok());
    kib.unwrap_or_default() * 1024.0
}
