//! Tests of the journal: kills, damage, its bounds, and files that do not belong together.

use std::{collections::BTreeMap, path::PathBuf};

use entable_core::{batch::Condition, edm::ValueRef};

use super::*;
use crate::{
    journal_file::path_of_journal,
    journal_replay::{Replay, replay_journal},
    mark::{path_of_mark, read_mark},
    writer_store::CommitMode,
};

/// Returns a store with the table Staff that gets its journal with its next commit.
pub(super) fn open(path: &Path) -> Result<WriterStore> {
    let file = StoreFile::new(path);
    let opened = open_file::open_or_create(&file, Opening { mark: read_mark(path), ..OPENING })?;
    let options = EmbeddedOptions { commits_before_journal: Some(0), ..EmbeddedOptions::new() };
    let (mut store, _reader_state) = WriterStore::new(file, opened, options, Weak::new())?;
    if store.catalog.get("Staff").is_err() {
        store.create_table("Staff")?;
    }
    Ok(store)
}

pub(super) fn row(number: u32, text: &str) -> Row {
    let mut row = Row::build("p", &format!("{number:05}"));
    row.put("Text", ValueRef::String(text));
    // Some rows bring a layout, which has to be in the journal too.
    row.put(&format!("Only{}", number / 8), ValueRef::Int32(1));
    row.finish().unwrap()
}

pub(super) fn apply(
    store: &mut WriterStore,
    table: &str,
    operations: Vec<Operation>,
) -> Result<()> {
    let mut batch = Batch::new(table);
    for operation in operations {
        batch.push(operation)?;
    }
    let mut answers = store.commit_group(&[QueuedBatch::new(&batch).0])?;
    answers.remove(0).map(drop).map_err(|(_, error)| error)
}

pub(super) fn put(store: &mut WriterStore, number: u32) {
    apply(store, "Staff", vec![Operation::insert_or_replace(row(number, "text"))]).unwrap();
}

/// Returns a store whose journal has one frame for each number.
fn store_with_frames(path: &Path, numbers: std::ops::Range<u32>) -> WriterStore {
    let mut store = open(path).unwrap();
    // The commit that puts the journal into use is a checkpoint.
    put(&mut store, 99_999);
    numbers.for_each(|number| put(&mut store, number));
    store
}

/// All rows: by table and key, the text.
pub(super) type Rows = BTreeMap<(String, String), String>;

pub(super) fn rows(store: &WriterStore) -> Rows {
    let ReaderState::Open(snapshot) = &*store.reader_state.borrow() else { unreachable!() };
    let mut rows = Rows::new();
    for entry in snapshot.catalog().entries() {
        let table = snapshot.rows_of_table(&entry.name).unwrap();
        for item in redb::ReadableTable::iter(&table.table).unwrap() {
            let (key, value) = item.unwrap();
            let (key, value) = (key.value(), value.value());
            let row = table.open_value(key, value).unwrap().to_row().unwrap();
            let Some(ValueRef::String(text)) = row.get("Text").unwrap() else { panic!("{row:?}") };
            rows.insert((entry.name.clone(), row.row_key().to_owned()), text.to_owned());
        }
    }
    rows
}

/// Copies a store's file and its journal, as a killed process leaves them, and its mark if `has_mark`.
fn copy_as_killed(path: &Path, to: &Path, has_mark: bool) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::copy(path, to).unwrap();
    for (name, is_copied) in
        [(path_of_journal as fn(&Path) -> PathBuf, true), (path_of_mark, has_mark)]
    {
        drop(fs::remove_file(name(to)));
        if is_copied && name(path).exists() {
            fs::copy(name(path), name(to)).unwrap();
        }
    }
}

#[test]
fn a_killed_store_has_all_rows_that_were_in_frames() {
    let directory = tempfile::tempdir().unwrap();
    let (path, copy) = (directory.path().join("store.db"), directory.path().join("copy.db"));
    let mut store = store_with_frames(&path, 0..20);
    let delete = Operation::delete("p", "00003", Condition::Any).unwrap();
    apply(&mut store, "Staff", vec![delete, Operation::insert(row(30, "thirty"))]).unwrap();
    let expected = rows(&store);
    assert_eq!((expected.len(), store.journal.next_place().sequence), (21, 21));
    copy_as_killed(&path, &copy, true);
    let mut opened = open(&copy).unwrap();
    assert_eq!(rows(&opened), expected);
    assert!(!path_of_journal(&copy).exists(), "its frames are in the file");
    put(&mut opened, 31);
    assert!(path_of_journal(&copy).exists());
    opened.sync_and_close_file().unwrap();
    assert!(!path_of_journal(&copy).exists(), "a closed store is one file");
    assert_eq!(rows(&open(&copy).unwrap()).len(), 22);
}

#[test]
fn a_journal_is_made_after_some_commits_and_only_for_durable_writes() {
    for (durability, has_journal) in
        [(Durability::Sync, true), (Durability::Relaxed { delay: DELAY }, false)]
    {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let file = StoreFile::new(&path);
        let opened = open_file::open_or_create(&file, OPENING).unwrap();
        let options = EmbeddedOptions::new().durability(durability);
        let (mut store, _reader_state) =
            WriterStore::new(file, opened, options, Weak::new()).unwrap();
        store.create_table("Staff").unwrap();
        (0..16).for_each(|number| put(&mut store, number));
        assert!(!path_of_journal(&path).exists(), "a program that writes little has one file");
        put(&mut store, 16);
        assert_eq!(path_of_journal(&path).exists(), has_journal);
        put(&mut store, 17);
        assert_eq!(store.journal.has_frames(), has_journal);
        store.sync_and_close_file().unwrap();
    }
}

#[test]
fn a_checkpoint_makes_the_frames_before_it_unnecessary() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let mut store = store_with_frames(&path, 0..3);
    assert_eq!(store.time_to_maintenance(), Some(Duration::from_secs(5)));
    store.run_maintenance_step();
    assert!(!store.journal.has_frames());
    assert_eq!(store.time_to_maintenance(), None, "nothing is left to do");
    put(&mut store, 3);
    store.create_table("Other").unwrap();
    assert!(!store.journal.has_frames(), "tables are created in the engine's file");
    put(&mut store, 4);
    let expected = rows(&store);
    let copy = directory.path().join("copy.db");
    copy_as_killed(&path, &copy, true);
    assert_eq!(rows(&open(&copy).unwrap()), expected);
}

#[test]
fn a_full_journal_is_emptied_by_a_checkpoint() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let mut store = store_with_frames(&path, 0..1);
    let large = "x".repeat(30_000);
    let mut generations = Vec::new();
    for number in 0..40 {
        let inserts = (0..50).map(|part| Operation::insert(row(100 + number * 50 + part, &large)));
        apply(&mut store, "Staff", inserts.collect()).unwrap();
        generations.push(store.journal.next_place().generation);
    }
    let bytes = fs::metadata(path_of_journal(&path)).unwrap().len();
    assert!(bytes <= 4 * 1024 * 1024 + 4096, "{bytes}");
    let checkpoints = generations.last().unwrap() - generations.first().unwrap();
    assert!((13..21).contains(&checkpoints), "{checkpoints} checkpoints of 60 MB");
    let copy = directory.path().join("copy.db");
    copy_as_killed(&path, &copy, true);
    assert_eq!(rows(&open(&copy).unwrap()).len(), 2_002);
}

#[test]
fn many_small_rows_are_put_into_the_file_before_they_dirty_too_many_pages() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store_with_frames(&directory.path().join("store.db"), 0..1);
    let before = store.journal.next_place().generation;
    for number in 0..85 {
        let inserts = (0..100).map(|part| {
            let row = Row::build("p", &format!("small{:06}", number * 100 + part));
            Operation::insert(row.finish().unwrap())
        });
        apply(&mut store, "Staff", inserts.collect()).unwrap();
    }
    assert_eq!(store.journal.next_place().generation, before + 1);
}

/// Whatever bit of the journal is flipped: the store opens with all rows, or says that some are missing. Without a mark, the
/// last frame cannot be distinguished from one that a crash has torn.
#[test]
fn a_flipped_bit_loses_no_frame_silently() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let store = store_with_frames(&path, 0..3);
    let expected = rows(&store);
    let journal = fs::read(path_of_journal(&path)).unwrap();
    let used = journal.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let last = 4096 + 2 * 512;
    let (mut refused, mut without_last, mut whole) = (0, 0, 0);
    let copy = directory.path().join("copy.db");
    let step = if std::env::var_os("ENTABLE_LONG").is_some() { 1 } else { 5 };
    let bytes = (0..28).chain((4096..used).step_by(step)).chain([28, 4095]);
    for (at, has_mark) in bytes.flat_map(|at| [(at, false), (at, true)]) {
        copy_as_killed(&path, &copy, has_mark);
        let mut changed = journal.clone();
        changed[at] ^= 1 << (at % 8);
        fs::write(path_of_journal(&copy), &changed).unwrap();
        match open(&copy) {
            Ok(opened) if rows(&opened) == expected => whole += 1,
            Ok(opened) => {
                assert!(!has_mark && at >= last, "byte {at}: {:?}", rows(&opened));
                assert_eq!(rows(&opened).len(), expected.len() - 1);
                without_last += 1;
            }
            Err(error) => {
                assert!(error.is_rolled_back(), "byte {at}: {error:?}");
                let found = fs::read(path_of_journal(&copy)).unwrap();
                assert!(found == changed, "byte {at}: the journal was changed");
                refused += 1;
            }
        }
    }
    assert!(refused > 50 && without_last > 10 && whole > 10, "{refused}, {without_last}, {whole}");
}

#[test]
fn a_journal_that_is_cut_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let store = store_with_frames(&path, 0..4);
    let expected = rows(&store);
    let journal = fs::read(path_of_journal(&path)).unwrap();
    let copy = directory.path().join("copy.db");
    // The zeros of a new journal are on disk before the first frame, so a shorter file has lost something.
    for length in (4096..4096 + 5 * 512).step_by(97).chain([journal.len() - 1]) {
        for has_mark in [false, true] {
            copy_as_killed(&path, &copy, has_mark);
            fs::write(path_of_journal(&copy), &journal[..length]).unwrap();
            let error = open(&copy).map(drop).unwrap_err();
            assert!(error.is_rolled_back(), "{length} bytes: {error:?}");
        }
    }
    copy_as_killed(&path, &copy, true);
    assert_eq!(rows(&open(&copy).unwrap()), expected);
}

/// A mark that a power failure has left is older than the file and the journal.
#[test]
fn an_older_mark_refuses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (path, copy) = (directory.path().join("store.db"), directory.path().join("copy.db"));
    let mut store = open(&path).unwrap();
    let mut marks = vec![fs::read(path_of_mark(&path)).unwrap()];
    for number in 0..6 {
        put(&mut store, number);
        if number == 3 {
            store.sync_acknowledged_commits().unwrap();
        }
        marks.push(fs::read(path_of_mark(&path)).unwrap());
    }
    for mark in marks {
        copy_as_killed(&path, &copy, false);
        fs::write(path_of_mark(&copy), mark).unwrap();
        assert_eq!(rows(&open(&copy).unwrap()).len(), 6);
    }
}

#[test]
fn an_opening_after_a_kill_need_not_repair_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let (path, copy) = (directory.path().join("store.db"), directory.path().join("copy.db"));
    let is_repaired = |path: &Path| {
        let was_called = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let called = was_called.clone();
        let mut engine = redb::Builder::new();
        engine.set_repair_callback(move |_| called.store(true, SeqCst));
        drop(engine.open(path).unwrap());
        was_called.load(SeqCst)
    };
    let mut store = store_with_frames(&path, 0..3);
    copy_as_killed(&path, &copy, true);
    let replayed = open_file::open_or_create(&StoreFile::new(&copy), OPENING).unwrap();
    let after_replay = directory.path().join("replayed.db");
    fs::copy(&copy, &after_replay).unwrap();
    assert!(!is_repaired(&after_replay), "after a crash right after the replay");
    drop(replayed);
    copy_as_killed(&path, &copy, true);
    assert!(!is_repaired(&copy));
    store.create_table("New").unwrap();
    put(&mut store, 3);
    copy_as_killed(&path, &copy, true);
    assert!(!is_repaired(&copy), "after a table was created");
    let without = EmbeddedOptions { commits_before_journal: None, ..EmbeddedOptions::new() };
    let other = directory.path().join("other.db");
    let file = StoreFile::new(&other);
    let opened = open_file::open_or_create(&file, OPENING).unwrap();
    let (mut store, _reader_state) = WriterStore::new(file, opened, without, Weak::new()).unwrap();
    store.create_table("Staff").unwrap();
    put(&mut store, 0);
    copy_as_killed(&other, &copy, true);
    assert!(is_repaired(&copy), "without a journal, each commit leaves a file to be repaired");
}

/// The engine fails after the sync of a frame, and its file stays in order: the frame is replayed before the next.
#[test]
fn a_frame_whose_commit_has_failed_is_replayed() {
    let directory = tempfile::tempdir().unwrap();
    let (path, copy) = (directory.path().join("store.db"), directory.path().join("copy.db"));
    let mut store = store_with_frames(&path, 0..2);
    let mut frame = store.journal.begin_frame().unwrap();
    let staff = store.catalog.get("Staff").unwrap().1.id;
    frame.put_deletion(staff, &row(0, "").sort_key());
    assert!(store.journal.reserve(&frame));
    store.journal.append(frame, None).unwrap();
    let error = redb::Error::Corrupted("a page".to_owned());
    assert!(store.reopen_after_failure(error, |_| true).is_ambiguous());
    assert_eq!(rows(&store).len(), 2, "the deletion took place");
    put(&mut store, 5);
    put(&mut store, 6);
    copy_as_killed(&path, &copy, true);
    assert_eq!(rows(&open(&copy).unwrap()), rows(&store));
}

/// Another process has removed the store and begun a new one under its name.
#[test]
fn a_store_removes_no_journal_but_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let (path, other) = (directory.path().join("store.db"), directory.path().join("other.db"));
    let mut store = store_with_frames(&path, 0..2);
    let others = store_with_frames(&other, 0..2);
    fs::remove_file(path_of_journal(&path)).unwrap();
    fs::copy(path_of_journal(&other), path_of_journal(&path)).unwrap();
    store.sync_and_close_file().unwrap();
    assert!(path_of_journal(&path).exists());
    drop(others);
}

#[test]
fn a_leftover_of_a_new_journal_does_not_block_a_store() {
    let directory = tempfile::tempdir().unwrap();
    let unused = directory.path().join("unused.db");
    crate::journal_file::create_journal(&unused, &[7; 16]).unwrap();
    let unused = fs::read(path_of_journal(&unused)).unwrap();
    for (name, left) in [("a.db", Vec::new()), ("b.db", unused)] {
        let path = directory.path().join(name);
        fs::write(path_of_journal(&path), &left).unwrap();
        let mut store = store_with_frames(&path, 0..2);
        assert!(store.journal.has_frames(), "next to a new store");
        store.sync_and_close_file().unwrap();
        fs::write(path_of_journal(&path), &left).unwrap();
        assert!(store_with_frames(&path, 0..2).journal.has_frames(), "next to a closed store");
    }
}

/// Replaying fails at any access to the disk: the next opening has everything.
#[test]
fn a_replay_that_fails_is_repeated() {
    let directory = tempfile::tempdir().unwrap();
    let (path, copy) = (directory.path().join("store.db"), directory.path().join("copy.db"));
    let store = store_with_frames(&path, 0..20);
    let expected = rows(&store);
    for accesses in 0.. {
        copy_as_killed(&path, &copy, true);
        let left = Arc::new(AtomicI64::new(i64::MAX));
        let file = OpenOptions::new().read(true).write(true).open(&copy).unwrap();
        let file = Box::new(FileBackend::new(file).unwrap());
        let disk = WatchedFile::new(FailingDisk { file, accesses_left: left.clone() });
        let database = redb::Builder::new().create_with_backend(disk).unwrap();
        left.store(accesses, SeqCst);
        let (file, mark) = (StoreFile::new(&copy), read_mark(&copy));
        let replayed = replay_journal(&file, &database, mark, false, Replay::ToFile);
        drop(database);
        assert_eq!(rows(&open(&copy).unwrap()), expected, "{accesses} accesses");
        if replayed.is_ok() {
            assert!(accesses > 2, "{accesses}");
            break;
        }
    }
}

/// A disk that takes nothing but the engine's header while it is full.
#[derive(Debug)]
struct FullDisk {
    file: FileBackend,
    is_full: Arc<std::sync::atomic::AtomicBool>,
}

impl FullDisk {
    fn check(&self, end: u64) -> io::Result<()> {
        let is_full = self.is_full.load(SeqCst) && end > 4096;
        if is_full { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

impl StorageBackend for FullDisk {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.check(length).and_then(|()| self.file.set_len(length))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.check(offset + data.len() as u64).and_then(|()| self.file.write(offset, data))
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }
}

/// A page that a frame changes is damaged: the rest of the file can be opened without the frames.
#[test]
fn frames_that_do_not_fit_the_file_are_left_out_if_that_is_accepted() {
    let directory = tempfile::tempdir().unwrap();
    let (path, copy) = (directory.path().join("store.db"), directory.path().join("copy.db"));
    let mut store = store_with_frames(&path, 0..3);
    let mut frame = store.journal.begin_frame().unwrap();
    frame.put_deletion(99, b"of a table that does not exist");
    assert!(store.journal.reserve(&frame));
    store.journal.append(frame, None).unwrap();
    copy_as_killed(&path, &copy, true);
    assert!(open(&copy).map(drop).unwrap_err().is_corrupt());
    assert!(path_of_journal(&copy).exists());
    let opening = Opening { accepts_older: true, ..OPENING };
    drop(open_file::open_or_create(&StoreFile::new(&copy), opening).unwrap());
    assert!(!path_of_journal(&copy).exists(), "it has another name");
    fs::remove_file(path_of_mark(&copy)).unwrap();
    assert_eq!(rows(&open(&copy).unwrap()).len(), 1);
}

/// A store that cannot put its frames into the file does not say that it is closed.
#[test]
fn closing_on_a_failing_disk_is_an_error_while_the_journal_is_needed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let (mut store, left) = journaled_store_on_failing_disk(&path);
    let away = path.with_extension("away");
    left.store(0, SeqCst);
    fs::rename(&path, &away).unwrap();
    assert!(store.sync_and_close_file().is_err());
    assert!(path_of_journal(&path).exists());
    fs::rename(away, &path).unwrap();
    let mut opened = open_file::open_or_create(&StoreFile::new(&path), OPENING).unwrap();
    assert!(opened.database.check_integrity().unwrap());
    assert!(!path_of_journal(&path).exists());
}

/// Reads need no room on the disk.
#[test]
fn a_full_disk_keeps_nobody_from_reading_what_is_in_the_journal() {
    let directory = tempfile::tempdir().unwrap();
    let (path, copy) = (directory.path().join("store.db"), directory.path().join("copy.db"));
    let store = store_with_frames(&path, 0..20);
    let expected = rows(&store);
    copy_as_killed(&path, &copy, true);
    let is_full = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let start = || {
        let file = OpenOptions::new().read(true).write(true).open(&copy).unwrap();
        let file = FileBackend::new(file).unwrap();
        let disk = WatchedFile::new(FullDisk { file, is_full: is_full.clone() });
        let database = redb::Builder::new().create_with_backend(disk.clone()).unwrap();
        OpenedFile { database, disk }
    };
    let file = StoreFile::new(&copy);
    let replay = |opened: &OpenedFile, to| {
        replay_journal(&file, &opened.database, read_mark(&copy), false, to).unwrap()
    };
    let journal = fs::read(path_of_journal(&copy)).unwrap();
    let opened = start();
    assert!(!replay(&opened, Replay::ToFile), "there is no room");
    drop(opened);
    let opened = start();
    assert!(replay(&opened, Replay::ToMemory));
    let options = EmbeddedOptions { commits_before_journal: Some(0), ..EmbeddedOptions::new() };
    let relaxed = options.clone().durability(Durability::Relaxed { delay: DELAY });
    let new =
        |opened, options| WriterStore::new(file.clone(), opened, options, Weak::new()).unwrap().0;
    let mut store = new(opened, relaxed);
    store.bound.note_stored(entable_core::edm::Ticks::MAX);
    let mode = store.next_commit_mode(store.last);
    assert_eq!(mode, CommitMode::SyncedQuickRepair, "a relaxed commit would be overwritten");
    drop(store);
    let opened = start();
    assert!(replay(&opened, Replay::ToMemory));
    let mut store = new(opened, options);
    assert_eq!(rows(&store), expected);
    assert!(fs::read(path_of_journal(&copy)).unwrap() == journal, "it is still needed");
    assert_eq!(store.time_to_maintenance(), None, "an attempt would pause the readers");
    store.run_maintenance_step();
    assert_eq!(rows(&store), expected);
    is_full.store(false, SeqCst);
    put(&mut store, 50);
    assert!(!path_of_journal(&copy).exists(), "the first write is a checkpoint");
    put(&mut store, 51);
    put(&mut store, 52);
    assert!(store.journal.has_frames());
    assert_eq!(rows(&store).len(), expected.len() + 3);
    store.sync_and_close_file().unwrap();
    assert_eq!(rows(&open(&copy).unwrap()).len(), expected.len() + 3);
}

/// Files that do not belong together are refused, and neither is changed. The other file stays next to the store that is
/// opened without it.
#[test]
fn files_that_do_not_belong_together_are_refused_until_that_is_accepted() {
    let directory = tempfile::tempdir().unwrap();
    let (path, other) = (directory.path().join("store.db"), directory.path().join("other.db"));
    let mut store = store_with_frames(&path, 0..2);
    let early = fs::read(&path).unwrap();
    let early_journal = fs::read(path_of_journal(&path)).unwrap();
    store.run_maintenance_step();
    put(&mut store, 2);
    let (late, journal) = (fs::read(&path).unwrap(), fs::read(path_of_journal(&path)).unwrap());
    let mark = fs::read(path_of_mark(&path)).unwrap();
    store.sync_and_close_file().unwrap();
    let closed = fs::read(&path).unwrap();
    let mut store = store_with_frames(&path, 3..5);
    let next_journal = fs::read(path_of_journal(&path)).unwrap();
    store.sync_and_close_file().unwrap();
    let others = store_with_frames(&other, 0..1);
    let other_journal = fs::read(path_of_journal(&other)).unwrap();
    drop(others);
    let cases = [
        ("a file that is older than its journal", &early, Some(&journal), 1),
        ("a journal that is older than its file", &late, Some(&early_journal), 3),
        ("a journal that is missing", &late, None, 3),
        ("the journal of another store", &late, Some(&other_journal), 3),
        ("the next journal of the store", &late, Some(&next_journal), 3),
        ("an empty journal", &late, Some(&Vec::new()), 3),
        ("a closed file with the next journal", &closed, Some(&next_journal), 4),
        ("a closed file with the journal of another store", &closed, Some(&other_journal), 4),
    ];
    let place = directory.path().join("placed");
    for (what, file, journal, rows_without) in cases {
        drop(fs::remove_dir_all(&place));
        fs::create_dir(&place).unwrap();
        let path = place.join("store.db");
        fs::write(&path, file).unwrap();
        if file == &late {
            fs::write(path_of_mark(&path), &mark).unwrap();
        }
        if let Some(journal) = journal {
            fs::write(path_of_journal(&path), journal).unwrap();
        }
        for _ in 0..2 {
            let error = open(&path).map(drop).unwrap_err();
            assert!(error.is_rolled_back(), "{what}: {error:?}");
            let text = error.to_string();
            assert!(
                text.contains("store.db.journal") && text.contains("accept_rolled_back(true)"),
                "{text}"
            );
            assert_eq!(fs::read(path_of_journal(&path)).ok().as_ref(), journal, "{what}");
        }
        let opening = Opening { accepts_older: true, ..OPENING };
        drop(open_file::open_or_create(&StoreFile::new(&path), opening).unwrap());
        let mut opened = open(&path).unwrap();
        assert_eq!(rows(&opened).len(), rows_without, "{what}");
        put(&mut opened, 50);
        put(&mut opened, 51);
        assert!(opened.journal.has_frames(), "{what}: the name of the journal is free");
        let aside = fs::read_dir(&place).unwrap().filter(|entry| {
            entry.as_ref().unwrap().file_name().to_str().unwrap().ends_with(".aside")
        });
        // Without the mark, an older journal looks like one without frames.
        let is_kept = journal.is_some_and(|journal| journal != &early_journal);
        let aside: Vec<_> = aside.map(|entry| entry.unwrap().path()).collect();
        assert_eq!(aside.len(), usize::from(is_kept), "{what}");
        opened.sync_and_close_file().unwrap();
        if let [aside] = &*aside
            && !journal.is_some_and(Vec::is_empty)
        {
            fs::rename(aside, path_of_journal(&path)).unwrap();
            assert!(open(&path).map(drop).unwrap_err().is_rolled_back(), "{what}: it is put back");
            assert!(path_of_journal(&path).exists());
        }
    }
}
