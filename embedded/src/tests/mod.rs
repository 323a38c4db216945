//! Tests of commits and maintenance: they call the code of the writer thread on the test's own thread.

mod journal;
mod layouts;
mod open_writes;
mod power_failure;
mod rows;
mod rows_in_memory;

use std::{
    fs::{self, OpenOptions},
    io,
    ops::Bound,
    path::Path,
    sync::{
        Arc, Weak,
        atomic::{AtomicI64, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use entable_core::{
    backend::{Backend, ReadRequest, ScanRequest},
    batch::{Batch, Operation},
    error::Result,
    filter::Filter,
    row::Row,
};
use redb::{BackendError, StorageBackend, backends::FileBackend};

use crate::{
    Durability, Embedded, EmbeddedOptions,
    job::QueuedBatch,
    open_file::{self, OpenedFile, Opening},
    shared_store::SharedStore,
    snapshot::{ReaderState, Snapshot},
    store_file::StoreFile,
    watched_file::WatchedFile,
    writer_store::WriterStore,
};

const DELAY: Duration = Duration::from_millis(20);

const OPENING: Opening = Opening {
    cache_bytes: 1024 * 1024,
    verify_files_up_to_bytes: None,
    mark: None,
    accepts_older: false,
};

fn store(path: &Path) -> WriterStore {
    let file = StoreFile::new(path);
    let options = EmbeddedOptions::new().durability(Durability::Relaxed { delay: DELAY });
    let opened = open_file::open_or_create(&file, OPENING).unwrap();
    let (mut store, _reader_state) = WriterStore::new(file, opened, options, Weak::new()).unwrap();
    store.create_table("Staff").unwrap();
    store
}

/// Returns a batch that inserts the row (p, r).
fn insert() -> QueuedBatch {
    insert_row(Row::build("p", "r").finish().unwrap())
}

fn insert_row(row: Row) -> QueuedBatch {
    let batch = Batch::single("Staff", Operation::insert(row)).unwrap();
    QueuedBatch::new(&batch).0
}

#[test]
fn refused_writes_do_not_put_the_disk_off() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(&directory.path().join("store.db"));
    assert!(store.commit_group(&[insert()]).unwrap().remove(0).is_ok());
    assert!(store.unsynced.is_some(), "a relaxed write waits for its delay");
    assert!(store.commit_group(&[insert()]).unwrap().remove(0).is_err());
    assert!(store.unsynced.is_some(), "the delay is not over");
    std::thread::sleep(DELAY);
    assert!(store.commit_group(&[insert()]).unwrap().remove(0).is_err());
    assert!(store.unsynced.is_none(), "the write is on disk, though none came after it");
}

#[test]
fn a_commit_that_waits_for_the_disk_is_left_to_the_writer_thread() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(&directory.path().join("store.db"));
    assert!(store.write_at_once(&insert()).unwrap().is_ok());
    assert!(store.write_at_once(&insert()).unwrap().is_err(), "the row exists");
    std::thread::sleep(DELAY);
    assert!(store.write_at_once(&insert()).is_none(), "its sync is due");
    store.commit_open_writes();
    store.flush_commits().unwrap();
    assert!(store.write_at_once(&insert()).is_some());
    store.database = None;
    assert!(store.write_at_once(&insert()).is_none(), "the file is not open");
}

#[test]
fn a_caller_writes_at_once_only_while_nobody_writes_and_no_job_waits() {
    let directory = tempfile::tempdir().unwrap();
    let shared = SharedStore::new(store(&directory.path().join("store.db")));
    let (is_held, _) = shared.run(|_| shared.lock_if_idle().is_none()).unwrap();
    assert!(is_held && shared.lock_if_idle().is_some());
    shared.note_sent();
    assert!(shared.lock_if_idle().is_none(), "it would overtake the job");
    shared.note_done(1);
    assert!(shared.lock_if_idle().is_some());
}

fn is_readable(store: &WriterStore) -> bool {
    matches!(&*store.reader_state.borrow(), ReaderState::Open(_))
}

/// Returns a store that could not reopen its file, with the file back in its place.
fn store_without_its_file(path: &Path) -> WriterStore {
    let mut store = store(path);
    let away = path.with_extension("away");
    // Closed first, because not every system renames open files.
    store.database = None;
    fs::rename(path, &away).unwrap();
    store.reopen_file().unwrap_err();
    assert!(!is_readable(&store));
    fs::rename(away, path).unwrap();
    store
}

#[test]
fn maintenance_opens_a_file_again_that_did_not_open_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store_without_its_file(&directory.path().join("store.db"));
    assert_eq!(store.time_to_maintenance(), Some(Duration::ZERO));
    store.run_maintenance_step();
    assert!(is_readable(&store));
    assert_eq!(store.time_to_maintenance(), None, "nothing is left to do");
}

#[test]
fn a_file_that_stays_away_is_tried_after_a_rest() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let mut store = store_without_its_file(&path);
    fs::remove_file(&path).unwrap();
    store.run_maintenance_step();
    let rest = store.time_to_maintenance().unwrap();
    assert!(rest > Duration::from_millis(500), "a thread that tries without a pause: {rest:?}");
}

#[test]
fn a_flush_opens_a_file_again_that_did_not_open_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let mut store = store_without_its_file(&path);
    store.flush_commits().unwrap();
    assert!(is_readable(&store));
    let mut store = store_without_its_file(&directory.path().join("other.db"));
    fs::remove_file(directory.path().join("other.db")).unwrap();
    assert!(store.flush_commits().unwrap_err().is_not_found());
}

/// A disk that fails for ever after a number of accesses.
#[derive(Debug)]
struct FailingDisk {
    file: Box<dyn StorageBackend>,
    accesses_left: Arc<AtomicI64>,
}

impl FailingDisk {
    fn access(&self) -> io::Result<()> {
        let is_sound = self.accesses_left.fetch_sub(1, SeqCst) > 0;
        is_sound.then_some(()).ok_or_else(|| io::Error::other("the disk fails"))
    }
}

impl StorageBackend for FailingDisk {
    fn len(&self) -> io::Result<u64> {
        self.access().and_then(|()| self.file.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.access().and_then(|()| self.file.read(offset, out))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.access().and_then(|()| self.file.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.access().and_then(|()| self.file.sync_data())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.access().and_then(|()| self.file.write(offset, data))
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> std::result::Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn unlock_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> std::result::Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }
}

/// Opens a store with the table Staff on a failing disk. Returns the accesses that the disk has left, too.
fn open_on_failing_disk(path: &Path) -> (OpenedFile, Arc<AtomicI64>) {
    store(path).sync_and_close_file().unwrap();
    let accesses_left = Arc::new(AtomicI64::new(i64::MAX));
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let file = Box::new(FileBackend::new(file).unwrap());
    let disk = FailingDisk { file, accesses_left: accesses_left.clone() };
    let mut engine = redb::Builder::new();
    // Without a cache, a snapshot reads from the disk.
    engine.set_cache_size(0);
    let disk = WatchedFile::new(disk);
    let database = engine.create_with_backend(disk.clone()).unwrap();
    (OpenedFile { database, disk }, accesses_left)
}

/// Returns a store with the tables Staff and Old on a failing disk, and the accesses that the disk has left.
fn store_on_failing_disk(path: &Path, durability: Durability) -> (WriterStore, Arc<AtomicI64>) {
    let (opened, accesses_left) = open_on_failing_disk(path);
    let options = EmbeddedOptions::new().cache_bytes(0).durability(durability);
    let opened = WriterStore::new(StoreFile::new(path), opened, options, Weak::new());
    let (mut store, _reader_state) = opened.unwrap();
    store.create_table("Old").unwrap();
    (store, accesses_left)
}

/// Returns a durable store with the tables Staff and Old and a frame in its journal. Both files are on a failing disk, whose
/// accesses that are left it returns too.
fn journaled_store_on_failing_disk(path: &Path) -> (WriterStore, Arc<AtomicI64>) {
    let (opened, accesses_left) = open_on_failing_disk(path);
    let options = EmbeddedOptions {
        cache_bytes: 0,
        commits_before_journal: Some(0),
        ..EmbeddedOptions::new()
    };
    let opened = WriterStore::new(StoreFile::new(path), opened, options, Weak::new());
    let (mut store, _reader_state) = opened.unwrap();
    store.create_table("Old").unwrap();
    for row_key in ["a", "b"] {
        let row = Row::build("p", row_key).finish().unwrap();
        assert!(store.commit_group(&[insert_row(row)]).unwrap().remove(0).is_ok());
    }
    assert!(store.journal.has_frames());
    let accesses = accesses_left.clone();
    store.journal.wrap_file(|file| Box::new(FailingDisk { file, accesses_left: accesses }));
    (store, accesses_left)
}

/// Does `work` with stores whose disk fails after no access, after one, and so on until `work` needs no more. The
/// answer has to agree with the file, and readers have to continue without another write.
fn fail_at_each_access(
    make: impl Fn(&Path) -> (WriterStore, Arc<AtomicI64>),
    work: impl Fn(&mut WriterStore) -> Result<()>,
    is_done: impl Fn(&Snapshot) -> bool,
) {
    fail_at_accesses(1, make, work, is_done);
}

/// Does the same at some accesses. With `ENTABLE_LONG=1`, at all.
fn fail_at_some_accesses(
    work: impl Fn(&mut WriterStore) -> Result<()>,
    is_done: impl Fn(&Snapshot) -> bool,
) {
    let step = if std::env::var_os("ENTABLE_LONG").is_some() { 1 } else { 5 };
    fail_at_accesses(step, journaled_store_on_failing_disk, work, is_done);
}

fn fail_at_accesses(
    step: usize,
    make: impl Fn(&Path) -> (WriterStore, Arc<AtomicI64>),
    work: impl Fn(&mut WriterStore) -> Result<()>,
    is_done: impl Fn(&Snapshot) -> bool,
) {
    for accesses in (0..).step_by(step) {
        let directory = tempfile::tempdir().unwrap();
        let (mut store, left) = make(&directory.path().join("store.db"));
        left.store(accesses, SeqCst);
        let answer = work(&mut store);
        let has_failed = left.load(SeqCst) < 0;
        if !is_readable(&store) {
            assert_eq!(store.time_to_maintenance(), Some(Duration::ZERO), "{accesses} accesses");
            store.run_maintenance_step();
        }
        assert!(is_readable(&store), "{accesses} accesses: readers cannot continue");
        // A disk that has failed after the answer only would fail again in the check of the answer.
        store.reopen_file().unwrap();
        let ReaderState::Open(snapshot) = &*store.reader_state.borrow() else { unreachable!() };
        match answer {
            Ok(()) => assert!(is_done(snapshot), "{accesses} accesses: done, and not in the file"),
            Err(error) if error.is_ambiguous() => {}
            Err(error) => assert!(!is_done(snapshot), "{accesses} accesses: done, and {error:?}"),
        }
        if !has_failed {
            return;
        }
    }
}

#[test]
fn the_answer_to_a_write_on_a_failing_disk_agrees_with_the_file() {
    for make in [durable_store, journaled_store_on_failing_disk] {
        fail_at_each_access(make, write, has_row);
    }
}

#[test]
fn the_answer_to_a_write_before_a_checkpoint_on_a_failing_disk_agrees_with_the_file() {
    let write_and_sync = |store: &mut WriterStore| {
        write(store)?;
        // Its failure loses no write, as the row is in the journal.
        drop(store.sync_acknowledged_commits());
        Ok(())
    };
    fail_at_some_accesses(write_and_sync, has_row);
}

#[test]
fn the_answer_to_a_write_before_a_close_on_a_failing_disk_agrees_with_the_file() {
    let write_and_close = |store: &mut WriterStore| {
        write(store)?;
        drop(store.sync_and_close_file());
        store.reopen_file()
    };
    fail_at_some_accesses(write_and_close, has_row);
}

fn durable_store(path: &Path) -> (WriterStore, Arc<AtomicI64>) {
    store_on_failing_disk(path, Durability::Sync)
}

fn write(store: &mut WriterStore) -> Result<()> {
    store.commit_group(&[insert()])?.remove(0).map(drop).map_err(|(_, error)| error)
}

fn has_row(snapshot: &Snapshot) -> bool {
    snapshot.read_row(ROW).unwrap().is_some()
}

#[test]
fn the_answer_to_a_write_at_once_on_a_failing_disk_agrees_with_the_file() {
    let insert_and_flush = |store: &mut WriterStore| {
        let batch = insert();
        let answer = match store.write_at_once(&batch) {
            Some(answer) => answer,
            None => store.commit_group(&[batch])?.remove(0),
        };
        answer.map_err(|(_, error)| error)?;
        store.commit_open_writes();
        store.flush_commits()
    };
    let delay = Duration::from_secs(3600);
    let relaxed = |path: &Path| store_on_failing_disk(path, Durability::Relaxed { delay });
    fail_at_each_access(relaxed, insert_and_flush, has_row);
}

#[test]
fn the_answer_to_a_new_table_on_a_failing_disk_agrees_with_the_file() {
    let is_done = |snapshot: &Snapshot| snapshot.catalog().get("New").is_ok();
    fail_at_each_access(durable_store, |store| store.create_table("New"), is_done);
    fail_at_some_accesses(|store| store.create_table("New"), is_done);
}

#[test]
fn the_answer_to_a_deleted_table_on_a_failing_disk_agrees_with_the_file() {
    let is_done = |snapshot: &Snapshot| snapshot.catalog().get("Old").is_err();
    fail_at_each_access(durable_store, |store| store.delete_table("Old"), is_done);
    fail_at_some_accesses(|store| store.delete_table("Old"), is_done);
}

/// Batches that are committed at once and batches of the writer thread share the layouts of the file.
#[test]
fn rows_committed_at_once_have_layouts_that_later_commits_keep() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(&directory.path().join("store.db"));
    // Without a bound that a durable commit has stored, a batch waits for the writer thread.
    assert!(store.commit_group(&[insert()]).unwrap().remove(0).is_ok());
    let mut at_once = 0;
    for (row_key, name) in [("first", "A"), ("second", "B"), ("third", "C"), ("fourth", "A")] {
        let mut row = Row::build("p", row_key);
        row.put(name, entable_core::edm::ValueRef::Int32(1));
        let batch = insert_row(row.finish().unwrap());
        match store.write_at_once(&batch) {
            Some(answer) => at_once += i32::from(answer.is_ok()),
            None => {
                store.commit_open_writes();
                assert!(store.commit_group(&[batch]).unwrap().remove(0).is_ok());
            }
        }
    }
    store.commit_open_writes();
    assert!(at_once > 1, "{at_once}");
    for is_reopened in [false, true] {
        if is_reopened {
            store.sync_acknowledged_commits().unwrap();
            store.reopen_file().unwrap();
        }
        let ReaderState::Open(snapshot) = &*store.reader_state.borrow() else { unreachable!() };
        for row_key in ["first", "second", "third", "fourth"] {
            assert!(snapshot.read_row(ReadRequest { row_key, ..ROW }).unwrap().is_some());
        }
    }
}

/// A writer whose transaction failed forgets the layouts that it would have written: a later row does not have one that
/// is not in the file.
#[test]
fn a_row_after_a_failed_transaction_has_a_layout_that_is_in_the_file() {
    let kinds = |row_key: &str, name: &str| {
        let mut row = Row::build("p", row_key);
        row.put(name, entable_core::edm::ValueRef::Int32(1));
        insert_row(row.finish().unwrap())
    };
    for accesses in 0.. {
        let directory = tempfile::tempdir().unwrap();
        let (mut store, left) =
            store_on_failing_disk(&directory.path().join("store.db"), Durability::Sync);
        left.store(accesses, SeqCst);
        let answer = store.commit_group(&[kinds("first", "A"), kinds("second", "B")]);
        let has_failed = left.load(SeqCst) < 0;
        assert!(has_failed || answer.is_ok(), "{accesses} accesses");
        left.store(i64::MAX, SeqCst);
        // The first write of a store whose disk has failed may only open the file again.
        drop(store.flush_commits());
        for (row_key, name) in [("third", "B"), ("fourth", "C"), ("fifth", "A")] {
            assert!(store.commit_group(&[kinds(row_key, name)]).unwrap().remove(0).is_ok());
        }
        store.reopen_file().unwrap();
        let ReaderState::Open(snapshot) = &*store.reader_state.borrow() else { unreachable!() };
        for row_key in ["first", "second", "third", "fourth", "fifth"] {
            let row = snapshot.read_row(ReadRequest { row_key, ..ROW }).unwrap();
            assert!(row.is_some() || has_failed, "{accesses} accesses: {row_key}");
        }
        if !has_failed {
            return;
        }
    }
}

const ROW: ReadRequest<'static> =
    ReadRequest { table: "Staff", partition_key: "p", row_key: "r", select: None };

/// Returns an idle store with the row (p, r), whose disk fails at the next access.
async fn idle_store_on_failed_disk(path: &Path) -> Embedded {
    let (opened, left) = open_on_failing_disk(path);
    let options = EmbeddedOptions::new().cache_bytes(0);
    let store = Embedded::with_opened_file(StoreFile::new(path), opened, options).unwrap();
    let row = Row::build("p", "r").finish().unwrap();
    store.apply(&Batch::single("Staff", Operation::insert(row)).unwrap()).await.unwrap();
    // The writer thread syncs once more when it is idle. A failure then would open the file again.
    tokio::time::sleep(Duration::from_millis(500)).await;
    left.store(0, SeqCst);
    store
}

/// Waits until reads find the row (p, r). Nothing is written meanwhile.
async fn wait_for_reads(store: &Embedded) {
    let started = Instant::now();
    loop {
        match store.read(ROW).await {
            Ok(row) => return assert!(row.is_some()),
            Err(error) => {
                assert!(error.is_backend(), "{error:?}");
                assert!(started.elapsed() < Duration::from_secs(20), "reads fail: {error:?}");
            }
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn reads_continue_after_a_read_on_a_disk_that_failed_for_a_moment() {
    let directory = tempfile::tempdir().unwrap();
    let store = idle_store_on_failed_disk(&directory.path().join("store.db")).await;
    let error = store.read(ROW).await.unwrap_err();
    assert!(error.is_backend(), "{error:?}");
    wait_for_reads(&store).await;
}

#[tokio::test]
async fn reads_continue_after_a_failed_scan_of_a_snapshot_or_a_failed_backup() {
    let directory = tempfile::tempdir().unwrap();
    let store = idle_store_on_failed_disk(&directory.path().join("store.db")).await;
    let snapshot = Backend::snapshot(&store).await.unwrap();
    let filter = Filter::Constant(true);
    let scan = ScanRequest { table: "Staff", filter: &filter, select: None, top: None, from: None };
    assert!(snapshot.rows().scan(scan).await.unwrap_err().is_backend());
    wait_for_reads(&store).await;

    let store = idle_store_on_failed_disk(&directory.path().join("other.db")).await;
    let backup = directory.path().join("backup.db");
    assert!(store.backup(&backup).await.unwrap_err().is_backend());
    wait_for_reads(&store).await;
    store.backup(&backup).await.unwrap();
}

/// A snapshot that outlives its store does not keep the writer thread waiting.
#[tokio::test]
async fn a_store_ends_while_a_snapshot_whose_reads_failed_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let store = idle_store_on_failed_disk(&path).await;
    let snapshot = Backend::snapshot(&store).await.unwrap();
    assert!(snapshot.rows().read(ROW).await.is_err());
    wait_for_reads(&store).await;
    drop(store);
    assert!(snapshot.rows().read(ROW).await.is_err());
    Embedded::open(&path).unwrap();
}

/// Lets the engine make an empty file its own on a disk that fails after some accesses. Returns `false` if the
/// engine needed no more.
fn begin_file(path: &Path, accesses: i64) -> bool {
    fs::write(path, "").unwrap();
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let file = Box::new(FileBackend::new(file).unwrap());
    let disk = FailingDisk { file, accesses_left: Arc::new(AtomicI64::new(accesses)) };
    redb::Builder::new().create_with_backend(disk).is_err()
}

/// Returns the bytes of a file that the engine has begun, and that has no first bytes yet.
fn unfinished_file(path: &Path) -> Vec<u8> {
    let mut unfinished = (0..).take_while(|accesses| begin_file(path, *accesses));
    let found = unfinished.find_map(|_| {
        let bytes = fs::read(path).unwrap();
        (bytes.first() == Some(&0) && bytes.iter().any(|byte| *byte != 0)).then_some(bytes)
    });
    found.unwrap()
}

#[test]
fn a_crash_at_each_access_of_the_engine_to_an_empty_file_is_made_good() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let file = StoreFile::new(&path);
    let mut without_first_bytes = 0;
    for accesses in 0.. {
        let is_unfinished = begin_file(&path, accesses);
        without_first_bytes += i32::from(fs::read(&path).unwrap().first() == Some(&0));
        drop(open_file::open_or_create(&file, OPENING).unwrap());
        store(&path).sync_and_close_file().unwrap();
        if !is_unfinished {
            break;
        }
    }
    assert!(without_first_bytes > 1, "{without_first_bytes}");
}

#[test]
fn an_unfinished_file_of_which_a_part_has_not_reached_the_disk_is_made_good() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let bytes = unfinished_file(&path);
    for lost in [0..bytes.len(), 0..64, 64..512] {
        let mut torn = bytes.clone();
        torn[lost].fill(0);
        fs::write(&path, torn).unwrap();
        store(&path).sync_and_close_file().unwrap();
    }
}

#[test]
fn a_file_that_only_resembles_an_unfinished_one_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let bytes = unfinished_file(&path);
    let with = |at: usize, byte: u8| {
        let mut other = bytes.clone();
        other[at] = byte;
        other
    };
    let shorter = bytes[..bytes.len() - 1].to_vec();
    let longer = [&*bytes, &[0]].concat();
    let others =
        [with(0, b'r'), with(bytes.len() / 2, 1), with(bytes.len() - 1, 1), shorter, longer];
    for other in others {
        fs::write(&path, &other).unwrap();
        let error = open_file::open_or_create(&StoreFile::new(&path), OPENING).unwrap_err();
        assert!(error.is_corrupt(), "{error:?}");
        assert!(fs::read(&path).unwrap() == other, "the file was changed");
    }
}

#[test]
fn an_unfinished_file_that_another_handle_works_on_is_locked_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let bytes = unfinished_file(&path);
    fs::write(&path, &bytes).unwrap();
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let other = FileBackend::new(file).unwrap();
    assert!(other.try_lock_range(Bound::Unbounded, Bound::Unbounded).unwrap());
    let error = open_file::open_or_create(&StoreFile::new(&path), OPENING).unwrap_err();
    assert!(error.is_locked(), "{error:?}");
    assert!(fs::read(&path).unwrap() == bytes, "the file was changed");
    drop(other);
    store(&path).sync_and_close_file().unwrap();
}
