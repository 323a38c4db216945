//! Kills a writing process at random times and checks that every acknowledged write is on disk.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use entable::backend::{Backend, Durability, Embedded, TableRequest};

use crate::{
    Random, rounds,
    rows::{TABLE, WRITERS, transaction, transactions},
};

const FILE: &str = "ENTABLE_CRASH_FILE";
const DELAY: &str = "ENTABLE_CRASH_DELAY";

/// The process that is killed: each writer goes on where it was, and says what was acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the child of the other tests"]
async fn child() {
    let Some(file) = std::env::var_os(FILE) else { return };
    let mut options = Embedded::options();
    if let Ok(delay) = std::env::var(DELAY) {
        let delay = Duration::from_millis(delay.parse().unwrap());
        options = options.durability(Durability::Relaxed { delay });
    }
    let store = Arc::new(options.open(file).unwrap());
    drop(store.tables(TableRequest::Create(TABLE)).await);
    let counts = transactions(&store).await;
    say("ready");
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (store, first) = (store.clone(), counts[&writer]);
            tokio::spawn(async move {
                for number in first.. {
                    store.apply(&transaction(writer, number)).await.unwrap();
                    say(&format!("written {writer} {number}"));
                    if number % 50 == 49 {
                        store.flush().await.unwrap();
                        say(&format!("flushed {writer} {number}"));
                    }
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
}

/// The acknowledgements of a killed process, and how long before its end each came.
pub(crate) struct Said {
    /// By writer, how many transactions were acknowledged, and when.
    pub(crate) written: Vec<(usize, i64, Instant)>,
    pub(crate) flushed: Vec<(usize, i64)>,
    pub(crate) killed: Instant,
}

pub(crate) fn start(file: &Path, delay: Option<Duration>) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["kill::child", "--exact", "--ignored", "--nocapture"]).env(FILE, file);
    if let Some(delay) = delay {
        child.env(DELAY, delay.as_millis().to_string());
    }
    child.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// Runs the writers and kills them after `life`, counted from when they are ready, or from the
/// start where `early` is set.
pub(crate) fn run(file: &Path, delay: Option<Duration>, life: Duration, early: bool) -> Said {
    let mut child = start(file, delay);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    if !early {
        assert!(lines.by_ref().map_while(Result::ok).any(|line| line.ends_with("ready")));
    }
    let listener = thread::spawn(move || {
        let (mut written, mut flushed) = (Vec::new(), Vec::new());
        for line in lines.map_while(Result::ok) {
            let words: Vec<&str> = line.split(' ').collect();
            if let [what, writer, number] = words[..] {
                let (Ok(writer), Ok(number)) = (writer.parse(), number.parse::<i64>()) else {
                    continue;
                };
                match what {
                    "written" => written.push((writer, number + 1, Instant::now())),
                    "flushed" => flushed.push((writer, number + 1)),
                    _ => {}
                }
            }
        }
        (written, flushed)
    });
    thread::sleep(life);
    let killed = Instant::now();
    child.kill().unwrap();
    child.wait().unwrap();
    let (written, flushed) = listener.join().unwrap();
    Said { written, flushed, killed }
}

#[tokio::test]
async fn a_killed_process_loses_no_acknowledged_transaction() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ledger.db");
    let mut random = Random(std::process::id().into());
    let mut least: BTreeMap<usize, i64> = (0..WRITERS).map(|writer| (writer, 0)).collect();
    for round in 0..rounds(8, 200) {
        let life = Duration::from_micros(random.below(120_000) as u64);
        let said = run(&file, None, life, round % 4 == 3);
        for (writer, count, _) in said.written {
            least.insert(writer, count.max(least[&writer]));
        }
        if !file.exists() {
            // Killed before the store was made.
            continue;
        }
        let store = Embedded::open(&file).unwrap();
        drop(store.tables(TableRequest::Create(TABLE)).await);
        let found = transactions(&store).await;
        for (writer, count) in found {
            let acknowledged = least[&writer];
            assert!(
                count == acknowledged || count == acknowledged + 1,
                "round {round}: writer {writer} has {count} of {acknowledged} transactions"
            );
            least.insert(writer, count);
        }
    }
    assert!(least.values().all(|count| *count > 0), "nothing was written: {least:?}");
}
