//! Tests of writes at once, which leave the transaction of the engine open, and of reads of single rows in it.

use std::{mem, sync::atomic::AtomicU32, thread};

use entable_core::{backend::TableRequest, batch::Condition, edm::ValueRef};

use redb::TableDefinition;

use crate::{
    file_format::{RowsDefinition, rows_table_name},
    open_writes::{FoundRow, MOST_READS},
};

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

/// Returns a row with a number and a text.
fn numbered(row_key: &str, number: i64) -> Row {
    let mut row = Row::build("p", row_key);
    row.put("Number", ValueRef::Int64(number));
    row.put("Text", ValueRef::String("some text"));
    row.finish().unwrap()
}

fn number_of(row: &Row) -> i64 {
    match row.get("Number").unwrap() {
        Some(ValueRef::Int64(number)) => number,
        other => panic!("{other:?}"),
    }
}

fn single(operation: Operation) -> QueuedBatch {
    QueuedBatch::new(&Batch::single("Staff", operation).unwrap()).0
}

fn replace(row_key: &str, number: i64) -> QueuedBatch {
    single(Operation::insert_or_replace(numbered(row_key, number)))
}

fn delete(row_key: &str) -> QueuedBatch {
    single(Operation::delete("p", row_key, Condition::Any).unwrap())
}

/// Returns a request for the row (p, `row_key`).
fn of(row_key: &str) -> ReadRequest<'_> {
    ReadRequest { row_key, ..ROW }
}

fn write_all(store: &mut WriterStore, batches: &[QueuedBatch]) {
    batches.iter().for_each(|batch| _ = store.write_at_once(batch).unwrap().unwrap());
}

/// Returns a store in which the rows `kept`, `replaced` and `deleted` are committed. Open writes have inserted `inserted`,
/// and one batch of them has replaced and deleted a row.
fn store_with_open_writes(path: &Path) -> WriterStore {
    let mut store = relaxed_store(path);
    write_all(&mut store, &["kept", "replaced", "deleted"].map(|row_key| replace(row_key, 1)));
    store.commit_open_writes();
    let mut batch = Batch::new("Staff");
    batch.push(Operation::insert_or_replace(numbered("replaced", 2))).unwrap();
    batch.push(Operation::delete("p", "deleted", Condition::Any).unwrap()).unwrap();
    let batch = QueuedBatch::new(&batch).0;
    write_all(&mut store, &[insert_row(numbered("inserted", 2)), batch]);
    store
}

/// Reads a row in the open transaction. Panics if it is found elsewhere.
fn read_open(store: &mut WriterStore, request: ReadRequest<'_>) -> Result<Option<Row>> {
    match store.look_into_open_writes(request) {
        Some(FoundRow::InTransaction(answer)) => answer,
        Some(FoundRow::InSnapshot(_)) => panic!("{request:?} is not read in the transaction"),
        None => panic!("{request:?} needs a commit"),
    }
}

#[test]
fn a_read_finds_open_writes_without_a_commit() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store_with_open_writes(&directory.path().join("store.db"));
    let Some(FoundRow::InSnapshot(snapshot)) = store.look_into_open_writes(of("kept")) else {
        panic!("no open write has changed it")
    };
    for (row_key, number) in [("inserted", Some(2)), ("replaced", Some(2)), ("deleted", None)] {
        let row = read_open(&mut store, of(row_key)).unwrap();
        assert_eq!(row.as_ref().map(number_of), number, "{row_key}");
        let before = snapshot.read_row(of(row_key)).unwrap();
        assert_ne!(before, row, "{row_key}: the snapshot is older");
    }
    let names = ["Number".to_owned(), "Other".to_owned()];
    let selected = ReadRequest { select: Some(&names), ..of("replaced") };
    let open = [of("inserted"), of("replaced"), selected]
        .map(|request| read_open(&mut store, request).unwrap().unwrap());
    assert!(open[2].get("Text").unwrap().is_none() && number_of(&open[2]) == 2);
    assert!(store.gate.is_closed(), "no read commits");
    store.commit_open_writes();
    assert!(store.look_into_open_writes(of("inserted")).is_none(), "nothing is open");
    let ReaderState::Open(snapshot) = &*store.reader_state.borrow() else { unreachable!() };
    let committed = [of("inserted"), of("replaced"), selected]
        .map(|request| snapshot.read_row(request).unwrap().unwrap());
    assert_eq!(open, committed, "with the same Timestamps");
}

#[test]
fn a_read_finds_each_write_after_the_other() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = relaxed_store(&directory.path().join("store.db"));
    for number in 0..40 {
        write_all(&mut store, &[replace("r", number)]);
        assert_eq!(number_of(&read_open(&mut store, ROW).unwrap().unwrap()), number);
        if number % 3 == 0 {
            write_all(&mut store, &[delete("r")]);
            assert!(read_open(&mut store, ROW).unwrap().is_none());
        }
    }
}

#[test]
fn a_read_does_not_find_a_refused_batch() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store_with_open_writes(&directory.path().join("store.db"));
    let mut batch = Batch::new("Staff");
    for row_key in ["other", "replaced"] {
        batch.push(Operation::insert(numbered(row_key, 3))).unwrap();
    }
    assert!(store.write_at_once(&QueuedBatch::new(&batch).0).unwrap().is_err(), "the row exists");
    let shared = SharedStore::new(store);
    let found = |row_key| shared.try_read_open_writes(of(row_key)).unwrap().unwrap();
    assert_eq!(found("replaced").as_ref().map(number_of), Some(2));
    assert_eq!(found("other"), None);
}

#[test]
fn rows_and_tables_without_open_writes_are_read_in_the_snapshot() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = relaxed_store(&directory.path().join("store.db"));
    store.create_table("Other").unwrap();
    let batch = Operation::insert(numbered("r", 1));
    let (batch, _) = QueuedBatch::new(&Batch::single("Other", batch).unwrap());
    write_all(&mut store, &[batch]);
    store.commit_open_writes();
    write_all(&mut store, &[replace("r", 2)]);
    let shared = SharedStore::new(store);
    // More than reads of changed rows may be.
    for _ in 0..2 * MOST_READS {
        let read = |table| shared.try_read_open_writes(ReadRequest { table, ..ROW }).unwrap();
        assert_eq!(read("other").unwrap().as_ref().map(number_of), Some(1));
        assert!(shared.try_read_open_writes(of("missing")).unwrap().unwrap().is_none());
        assert!(read("Missing").unwrap_err().is_not_found());
    }
    let other_partition = ReadRequest { partition_key: "q", ..ROW };
    assert!(shared.try_read_open_writes(other_partition).unwrap().unwrap().is_none());
    let staff = shared.try_read_open_writes(ReadRequest { table: "STAFF", ..ROW });
    assert_eq!(staff.unwrap().unwrap().as_ref().map(number_of), Some(2));
}

#[test]
fn many_reads_of_changed_rows_lead_to_a_commit() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = relaxed_store(&directory.path().join("store.db"));
    for number in 0..3 {
        write_all(&mut store, &[replace("r", number)]);
        for _ in 0..MOST_READS {
            assert_eq!(number_of(&read_open(&mut store, ROW).unwrap().unwrap()), number);
        }
    }
    assert!(store.look_into_open_writes(ROW).is_none(), "the snapshot is cheaper");
    assert!(store.look_into_open_writes(of("other")).is_some());
}

/// A reader that would have to wait goes to the gate, where it gives other tasks their turn.
#[test]
fn a_read_does_not_wait_for_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let store = store_with_open_writes(&directory.path().join("store.db"));
    let shared = SharedStore::new(store);
    let is_read = || shared.try_read_open_writes(of("replaced")).is_some();
    assert!(is_read());
    let held = shared.lock_if_idle();
    assert!(!is_read(), "somebody else holds the store");
    drop(held);
    shared.note_sent();
    assert!(!is_read(), "the job that waits begins with a commit");
    shared.note_done(1);
    assert!(is_read());
    let panicked = thread::scope(|scope| scope.spawn(|| shared.run(|_| panic!("a test"))).join());
    assert!(panicked.is_err() && !is_read(), "its state is unknown");
}

#[test]
fn a_damaged_row_is_the_same_error_in_the_open_transaction_and_in_a_snapshot() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store_with_open_writes(&directory.path().join("store.db"));
    let id = store.catalog.get("Staff").unwrap().1.id;
    let open = store.open_writes.as_ref().unwrap();
    let mut rows = open.transaction.open_table(RowsDefinition::new(&rows_table_name(id))).unwrap();
    rows.insert(&*numbered("replaced", 2).sort_key(), b"no row".as_slice()).unwrap();
    drop(rows);
    let damaged = read_open(&mut store, of("replaced")).unwrap_err();
    let layouts = mem::take(&mut store.layouts);
    let without_layout = read_open(&mut store, of("inserted")).unwrap_err();
    assert!(damaged.is_corrupt() && without_layout.is_corrupt());
    assert!(without_layout.to_string().contains("layout"), "{without_layout}");
    let in_snapshot = |store: &mut WriterStore, row_key| {
        store.publish_snapshot().unwrap();
        let ReaderState::Open(snapshot) = &*store.reader_state.borrow() else { unreachable!() };
        snapshot.read_row(of(row_key)).unwrap_err().to_string()
    };
    store.commit_open_writes();
    assert_eq!(in_snapshot(&mut store, "inserted"), without_layout.to_string());
    store.layouts = layouts;
    assert_eq!(in_snapshot(&mut store, "replaced"), damaged.to_string());
}

#[test]
fn a_read_on_which_the_engine_fails_gets_the_error_of_the_snapshot() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store_with_open_writes(&directory.path().join("store.db"));
    let id = store.catalog.get("Staff").unwrap().1.id;
    let open = &store.open_writes.as_ref().unwrap().transaction;
    // A damaged catalog of the engine, with a table of another type.
    let name = rows_table_name(id);
    assert!(open.delete_table(RowsDefinition::new(&name)).unwrap());
    drop(open.open_table(TableDefinition::<u64, u64>::new(&name)).unwrap());
    assert!(store.look_into_open_writes(of("replaced")).is_none());
    assert!(store.gate.is_closed() && store.open_writes.is_some(), "left to the commit");
    store.commit_open_writes();
    let ReaderState::Open(snapshot) = &*store.reader_state.borrow() else { unreachable!() };
    assert!(snapshot.read_row(of("replaced")).unwrap_err().is_corrupt());
}

/// Whatever access to the disk fails first: a read finds what was acknowledged, or it fails, or the write is lost and the
/// next flush says so. A lost write is not found again.
#[tokio::test]
async fn reads_of_open_writes_on_a_failing_disk_find_them_or_a_flush_says_that_they_are_lost() {
    const KEYS: [&str; 4] = ["replaced", "kept", "inserted", "deleted"];
    const DURABLE: [Option<i64>; 4] = [Some(1), Some(1), None, Some(1)];
    const ACKNOWLEDGED: [Option<i64>; 4] = [Some(2), Some(1), Some(2), None];
    let (mut found, mut lost, mut refused) = (0, 0, 0);
    for accesses in 0..12 {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let (opened, left) = open_on_failing_disk(&path);
        let options = EmbeddedOptions::new().cache_bytes(0).durability(AN_HOUR);
        let store = Embedded::with_opened_file(StoreFile::new(&path), opened, options).unwrap();
        let apply = async |operation| {
            store.apply(&Batch::single("Staff", operation).unwrap()).await.unwrap();
        };
        for row_key in ["r", "kept", "replaced", "deleted"] {
            apply(Operation::insert(numbered(row_key, 1))).await;
        }
        store.flush().await.unwrap();
        apply(Operation::insert(numbered("inserted", 2))).await;
        apply(Operation::insert_or_replace(numbered("replaced", 2))).await;
        apply(Operation::delete("p", "deleted", Condition::Any).unwrap()).await;
        left.store(accesses, SeqCst);
        let mut is_lost = false;
        for _ in 0..3 {
            for (at, row_key) in KEYS.into_iter().enumerate() {
                let what = format!("{row_key} after {accesses} accesses");
                match store.read(of(row_key)).await {
                    Ok(row) => {
                        let number = row.as_ref().map(number_of);
                        is_lost |= number != ACKNOWLEDGED[at];
                        let expected = if is_lost { DURABLE } else { ACKNOWLEDGED };
                        assert_eq!(number, expected[at], "{what}, lost: {is_lost}");
                        found += i32::from(!is_lost);
                    }
                    Err(error) => {
                        assert!(error.is_backend(), "{what}: {error:?}");
                        refused += 1;
                    }
                }
            }
        }
        left.store(i64::MAX, SeqCst);
        wait_for_reads(&store).await;
        let flushed = store.flush().await;
        assert!(flushed.is_err() || !is_lost, "{accesses} accesses: lost without a word");
        assert!(store.flush().await.is_ok(), "{accesses} accesses: reported twice");
        lost += i32::from(flushed.is_err());
        apply(Operation::insert(numbered("later", 3))).await;
        assert!(store.read(of("later")).await.unwrap().is_some());
    }
    assert!(found > 10 && lost > 3, "{found} found, {lost} lost, {refused} refused");
}

/// Whichever way reads take, none finds an older row than a read that had ended before it, or than was acknowledged
/// before it.
#[test]
fn reads_on_several_threads_never_go_back() {
    const WRITES: u32 = 1_000;
    let directory = tempfile::tempdir().unwrap();
    let store = EmbeddedOptions::new().durability(AN_HOUR);
    let store = store.open(directory.path().join("store.db")).unwrap();
    let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime().block_on(store.tables(TableRequest::Create("Staff"))).unwrap();
    let read = |runtime: &tokio::runtime::Runtime| {
        let row = runtime.block_on(store.read(ROW)).unwrap();
        row.map_or(0, |row| u32::try_from(number_of(&row)).unwrap())
    };
    let seen = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let runtime = runtime();
                loop {
                    let before = seen.load(SeqCst);
                    let number = read(&runtime);
                    assert!(number >= before, "{number} after {before}");
                    seen.fetch_max(number, SeqCst);
                    if number == WRITES {
                        return;
                    }
                }
            });
        }
        let runtime = runtime();
        for number in 1..=WRITES {
            let row = Operation::insert_or_replace(numbered("r", i64::from(number)));
            runtime.block_on(store.apply(&Batch::single("Staff", row).unwrap())).unwrap();
            seen.fetch_max(number, SeqCst);
            if number % 2 == 0 {
                assert_eq!(read(&runtime), number);
            }
        }
    });
}

/// A failure of the engine after it has begun to write a batch: the open transaction has a part of the batch, so it must
/// not be committed, though the engine would do it.
#[test]
fn nothing_is_left_of_a_batch_of_which_the_engine_has_written_a_part() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = relaxed_store(&directory.path().join("store.db"));
    write(&mut store, 0);
    let layouts = store.layouts.clone();
    write_all(&mut store, &[replace("r", 1)]);
    store.commit_open_writes();
    store.flush_commits().unwrap();
    write(&mut store, 1);
    // The next layout gets an id that the file has already: rows are written, and their layout is refused.
    store.layouts = layouts;
    let mut batch = Batch::new("Staff");
    batch.push(Operation::insert(row(2))).unwrap();
    batch.push(Operation::insert(numbered("00003", 3))).unwrap();
    assert!(store.write_at_once(&QueuedBatch::new(&batch).0).is_none(), "left to the thread");
    assert!(store.open_writes.is_none() && !store.gate.is_closed());
    let shown = |store: &WriterStore| [0, 1, 2, 3].map(|number| is_shown(store, number));
    assert_eq!(shown(&store), [true, false, false, false]);
    let lost = store.flush_commits().unwrap_err();
    assert!(lost.is_backend() && lost.to_string().contains("lost"), "{lost}");
    store.flush_commits().unwrap();
    // Reads the layouts of the file.
    store.reopen_file().unwrap();
    assert_eq!(shown(&store), [true, false, false, false]);
    write_all(&mut store, &[QueuedBatch::new(&batch).0]);
    store.commit_open_writes();
    store.flush_commits().unwrap();
    assert_eq!(shown(&store), [true, false, true, true]);
}

/// Whatever access to the disk fails first while a batch is written to several pages: no part of the batch is in the file,
/// and open writes before it are there, or the next flush says once that they are lost.
#[test]
fn nothing_is_left_of_a_batch_on_which_the_disk_has_failed() {
    let rows = |numbers: &[u32]| {
        let mut batch = Batch::new("Staff");
        let inserts = numbers.iter().map(|number| Operation::insert(row(*number)));
        inserts.for_each(|insert| batch.push(insert).unwrap());
        QueuedBatch::new(&batch).0
    };
    let mut lost = 0;
    for accesses in 0.. {
        let directory = tempfile::tempdir().unwrap();
        let (mut store, left) = store_on_failing_disk(&directory.path().join("store.db"), AN_HOUR);
        let stored: Vec<u32> = (0..600).map(|number| 10 * number).collect();
        let fill: Vec<QueuedBatch> = stored.chunks(100).map(rows).collect();
        assert!(store.commit_group(&fill).unwrap().iter().all(Result::is_ok));
        store.flush_commits().unwrap();
        write(&mut store, 1);
        left.store(accesses, SeqCst);
        let parts = [1005, 2005, 3005, 4005, 5005];
        let answer = store.write_at_once(&rows(&parts));
        let has_failed = left.load(SeqCst) < 0;
        left.store(i64::MAX, SeqCst);
        store.commit_open_writes();
        let flushed = store.flush_commits();
        let what = format!("{accesses} accesses, {answer:?}, {flushed:?}");
        store.reopen_file().unwrap();
        assert!(is_shown(&store, 1) || flushed.is_err(), "{what}: lost without a word");
        assert!(store.flush_commits().is_ok(), "{what}: reported twice");
        let shown = parts.map(|number| is_shown(&store, number));
        assert_eq!(shown, [is_shown(&store, 1) && answer.is_some(); 5], "{what}");
        assert!(stored.iter().all(|number| is_shown(&store, *number)), "{what}");
        write(&mut store, 2);
        store.commit_open_writes();
        assert!(store.flush_commits().is_ok() && is_shown(&store, 2), "{what}");
        lost += i32::from(flushed.is_err());
        if !has_failed {
            break;
        }
    }
    assert!(lost > 10, "the disk has failed during {lost} batches");
}

/// Readers on other threads find each row that was acknowledged before they began, whoever commits it.
#[test]
fn readers_find_whatever_was_acknowledged() {
    const ROWS: u32 = 2_000;
    let directory = tempfile::tempdir().unwrap();
    let store = EmbeddedOptions::new().durability(AN_HOUR);
    let store = store.open(directory.path().join("store.db")).unwrap();
    let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime().block_on(store.tables(TableRequest::Create("Staff"))).unwrap();
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
