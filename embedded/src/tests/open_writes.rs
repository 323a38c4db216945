//! Tests of writes at once, which leave the transaction of the engine open.

use std::{sync::atomic::AtomicU32, thread};

use super::*;

const AN_HOUR: Durability = Durability::Relaxed { delay: Duration::from_secs(3600) };

fn row(number: u32) -> Row {
    Row::build("p", &format!("{number:05}")).finish().unwrap()
}

/// Returns a store that takes writes at once for as long as a test runs.
fn relaxed_store(path: &Path) -> WriterStore {
    let file = StoreFile::new(path);
    let opened = open_file::open_or_create(&file, OPENING).unwrap();
    let options = EmbeddedOptions::new().durability(AN_HOUR);
    let (mut store, _reader_state) = WriterStore::new(file, opened, options, Weak::new()).unwrap();
    store.create_table("Staff").unwrap();
    store
}

fn write(store: &mut WriterStore, number: u32) {
    store.write_at_once(&insert_row(row(number))).unwrap().unwrap();
}

/// Returns whether the newest snapshot has the row.
fn is_shown(store: &WriterStore, number: u32) -> bool {
    let ReaderState::Open(snapshot) = &*store.reader_state.borrow() else { unreachable!() };
    let row_key = &*format!("{number:05}");
    snapshot.read_row(ReadRequest { row_key, ..ROW }).unwrap().is_some()
}

#[test]
fn writes_at_once_stay_in_one_transaction_until_somebody_reads() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = relaxed_store(&directory.path().join("store.db"));
    (0..10).for_each(|number| write(&mut store, number));
    assert!(store.gate.is_closed() && !is_shown(&store, 0));
    assert!(store.write_at_once(&insert_row(row(9))).unwrap().is_err(), "the row exists");
    assert!(store.gate.is_closed(), "a refused write changes nothing");
    store.commit_open_writes();
    assert!(!store.gate.is_closed() && (0..10).all(|number| is_shown(&store, number)));
    assert!(store.write_at_once(&insert_row(row(9))).unwrap().is_err());
    assert!(!store.gate.is_closed() && store.open_writes.is_none(), "nothing was written");
}

#[test]
fn a_write_at_once_is_committed_while_a_reader_waits() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = relaxed_store(&directory.path().join("store.db"));
    let gate = store.gate.clone();
    let waiting = gate.enter();
    write(&mut store, 0);
    assert!(!gate.is_closed() && is_shown(&store, 0));
    drop(waiting);
    write(&mut store, 1);
    assert!(gate.is_closed() && !is_shown(&store, 1));
}

#[test]
fn a_transaction_does_not_grow_without_bound() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = relaxed_store(&directory.path().join("store.db"));
    let mut batches = 0;
    while batches == 0 || store.gate.is_closed() {
        let mut batch = Batch::new("Staff");
        let inserts = (0..100).map(|number| Operation::insert(row(batches * 100 + number)));
        inserts.for_each(|insert| batch.push(insert).unwrap());
        store.write_at_once(&QueuedBatch::new(&batch).0).unwrap().unwrap();
        batches += 1;
        assert!(batches < 100, "it is never committed");
    }
    assert!(batches > 10 && is_shown(&store, batches * 100 - 1), "{batches}");
}

#[test]
fn a_job_of_the_writer_thread_commits_before_it_begins() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = relaxed_store(&directory.path().join("store.db"));
    write(&mut store, 0);
    let shared = SharedStore::new(store);
    let (is_shown, _) = shared.run(|store| !store.gate.is_closed() && is_shown(store, 0)).unwrap();
    assert!(is_shown);
}

/// Writes that a damaged page takes with it are reported, and rows of later writes have layouts that are in the file.
#[test]
fn lost_writes_are_reported_by_the_next_flush() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = relaxed_store(&directory.path().join("store.db"));
    let with_age = |number| {
        let row = row(number).with_values(&[("Age", 34.into())]);
        insert_row(row.unwrap())
    };
    store.write_at_once(&with_age(0)).unwrap().unwrap();
    let open = store.open_writes.take().unwrap();
    store.abandon_open_writes(open);
    assert!(!store.gate.is_closed() && !is_shown(&store, 0));
    let lost = store.flush_commits().unwrap_err();
    assert!(lost.is_backend() && lost.to_string().contains("lost"), "{lost}");
    store.write_at_once(&with_age(1)).unwrap().unwrap();
    store.commit_open_writes();
    store.flush_commits().unwrap();
    store.reopen_file().unwrap();
    assert!(!is_shown(&store, 0) && is_shown(&store, 1));
}

/// A transaction without acknowledged writes takes none with it.
#[test]
fn nothing_is_reported_as_lost_that_was_not_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = relaxed_store(&directory.path().join("store.db"));
    let open = store.begin_open_writes().unwrap();
    store.abandon_open_writes(open);
    store.flush_commits().unwrap();
}

/// Whatever access to the disk fails first: a row that was acknowledged is in the file, or the next flush says that it is
/// lost.
#[test]
fn a_failing_disk_loses_no_acknowledged_write_silently() {
    let mut at_once = 0;
    for (has_reader, accesses) in
        [false, true].into_iter().flat_map(|reader| (0..40).map(move |n| (reader, n)))
    {
        let directory = tempfile::tempdir().unwrap();
        let (mut store, left) = store_on_failing_disk(&directory.path().join("store.db"), AN_HOUR);
        let gate = store.gate.clone();
        let waiting = has_reader.then(|| gate.enter());
        left.store(accesses, SeqCst);
        let mut acknowledged = Vec::new();
        for number in 0..4 {
            let batch = insert_row(row(number));
            let answer = match store.write_at_once(&batch) {
                Some(answer) => {
                    at_once += 1;
                    let is_waiting = matches!(&*store.reader_state.borrow(), ReaderState::Paused);
                    assert!(
                        !is_waiting,
                        "{accesses} accesses: acknowledged, and its commit failed"
                    );
                    Ok(answer)
                }
                None => {
                    store.commit_open_writes();
                    store.commit_group(&[batch]).map(|mut answers| answers.remove(0))
                }
            };
            if answer.is_ok_and(|answer| answer.is_ok()) {
                acknowledged.push(number);
            }
        }
        drop(waiting);
        let what = format!("{accesses} accesses, {has_reader}, {acknowledged:?}");
        left.store(i64::MAX, SeqCst);
        store.commit_open_writes();
        let flushed = store.flush_commits();
        assert!(!store.gate.is_closed() && is_readable(&store), "{what}");
        let has_all = acknowledged.iter().all(|number| is_shown(&store, *number));
        assert!(has_all || flushed.is_err(), "{what}: lost without a word");
        assert!(store.flush_commits().is_ok(), "{what}: reported twice");
    }
    assert!(at_once > 100, "{at_once}");
}

/// Readers on other threads find each row that was acknowledged before they began, whoever commits it.
#[test]
fn readers_find_whatever_was_acknowledged() {
    const ROWS: u32 = 2_000;
    let directory = tempfile::tempdir().unwrap();
    let store = EmbeddedOptions::new().durability(AN_HOUR);
    let store = store.open(directory.path().join("store.db")).unwrap();
    let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime().block_on(store.tables(entable_core::backend::TableRequest::Create("Staff"))).unwrap();
    let acknowledged = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let runtime = runtime();
                let mut reads = 0;
                loop {
                    let count = acknowledged.load(SeqCst);
                    if let Some(last) = count.checked_sub(1) {
                        let row_key = &*format!("{last:05}");
                        let read = runtime.block_on(store.read(ReadRequest { row_key, ..ROW }));
                        assert!(read.unwrap().is_some(), "{last} is missing after {reads} reads");
                        reads += 1;
                    }
                    if count == ROWS {
                        return;
                    }
                }
            });
        }
        let runtime = runtime();
        for number in 0..ROWS {
            let batch = Batch::single("Staff", Operation::insert(row(number))).unwrap();
            runtime.block_on(store.apply(&batch)).unwrap();
            acknowledged.store(number + 1, SeqCst);
        }
    });
}
