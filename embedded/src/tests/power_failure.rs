//! Power failures with a journal: the accesses to both files are recorded, and each moment is played back with any part of
//! what was not synced.

use std::sync::Mutex;

use entable_core::{batch::Condition, edm::Ticks};

use super::{
    journal::{apply, open, put, row, rows},
    *,
};
use crate::{journal_file::path_of_journal, mark::path_of_mark};

/// An access to the disk, or an acknowledgement between two.
enum Event {
    Write {
        file: usize,
        at: u64,
        bytes: Vec<u8>,
    },
    Length {
        file: usize,
        length: u64,
    },
    Synced {
        file: usize,
    },
    /// An operation was acknowledged.
    Acknowledged,
}

type Events = Arc<Mutex<Vec<Event>>>;

/// A disk that writes down what happens to it.
#[derive(Debug)]
struct RecordingDisk {
    disk: Box<dyn StorageBackend>,
    file: usize,
    events: RecordedEvents,
}

#[derive(Clone, Default)]
struct RecordedEvents(Events);

impl std::fmt::Debug for RecordedEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("events")
    }
}

impl RecordingDisk {
    fn record(&self, event: Event) {
        self.events.0.lock().unwrap().push(event);
    }
}

impl StorageBackend for RecordingDisk {
    fn len(&self) -> io::Result<u64> {
        self.disk.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.disk.read(offset, out)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.record(Event::Length { file: self.file, length });
        self.disk.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.sync_data()?;
        self.record(Event::Synced { file: self.file });
        Ok(())
    }

    fn write(&self, at: u64, data: &[u8]) -> io::Result<()> {
        self.record(Event::Write { file: self.file, at, bytes: data.to_vec() });
        self.disk.write(at, data)
    }

    fn close(&self) -> io::Result<()> {
        self.disk.close()
    }

    fn try_lock_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> std::result::Result<bool, BackendError> {
        self.disk.try_lock_range(start, end)
    }

    fn unlock_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> std::result::Result<(), BackendError> {
        self.disk.unlock_range(start, end)
    }
}

/// A small generator of numbers, so that a failing case can be run again.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// A clock on which 0.04 s pass between two looks, so that the bound of Timestamps is passed often.
#[derive(Debug, Default)]
struct FastClock(AtomicI64);

impl entable_core::clock::Clock for FastClock {
    fn now(&self) -> Ticks {
        let passed = self.0.fetch_add(Ticks::PER_SECOND / 25, SeqCst);
        Ticks::new(Ticks::UNIX_EPOCH.get() + passed).unwrap()
    }
}

/// The bytes of a file after a power failure: what was synced, and any part of what was written since.
#[derive(Clone)]
struct Image {
    synced: Vec<u8>,
    since: Vec<(u64, Vec<u8>)>,
    length: usize,
}

impl Image {
    fn new(bytes: Vec<u8>) -> Self {
        Self { length: bytes.len(), synced: bytes, since: Vec::new() }
    }

    fn note(&mut self, event: &Event) {
        match event {
            Event::Write { at, bytes, .. } => {
                self.since.push((*at, bytes.clone()));
                self.length = self.length.max(usize::try_from(*at).unwrap() + bytes.len());
            }
            Event::Length { length, .. } => self.length = usize::try_from(*length).unwrap(),
            Event::Synced { .. } => {
                self.synced = self.after_power_failure(|| true);
                self.since.clear();
            }
            Event::Acknowledged => {}
        }
    }

    /// Each sector that was written since the last sync is on the disk if `has_reached` says so.
    fn after_power_failure(&self, mut has_reached: impl FnMut() -> bool) -> Vec<u8> {
        let mut bytes = self.synced.clone();
        bytes.resize(self.length.max(bytes.len()), 0);
        for (at, written) in &self.since {
            let at = usize::try_from(*at).unwrap();
            for (part, sector) in written.chunks(512).enumerate() {
                if has_reached() {
                    let at = at + part * 512;
                    if bytes.len() < at + sector.len() {
                        bytes.resize(at + sector.len(), 0);
                    }
                    bytes[at..at + sector.len()].copy_from_slice(sector);
                }
            }
        }
        bytes.truncate(self.length);
        bytes
    }
}

/// Does one operation, or two of which the first changes no row.
fn write_at_random(store: &mut WriterStore, number: u32, random: &mut Random) {
    let recent = number - u32::try_from(random.below(2)).unwrap() - 1;
    match random.below(8) {
        0 => {
            let key = format!("{recent:05}");
            let delete = Operation::delete("p", &key, Condition::Any).unwrap();
            // It may be deleted already.
            drop(apply(store, "Staff", vec![delete]));
        }
        1 => {
            let table = format!("Table{number}");
            store.create_table(&table).unwrap();
            apply(store, &table, vec![Operation::insert(row(1, "other"))]).unwrap();
        }
        2 => store.sync_acknowledged_commits().unwrap(),
        3 => {
            let large = "x".repeat(20_000);
            let inserts = (0..8).map(|part| row(number * 100 + part, &large));
            apply(store, "Staff", inserts.map(Operation::insert).collect()).unwrap();
        }
        _ => {
            let rows = [row(recent, "changed"), row(number, "new")];
            apply(store, "Staff", rows.map(Operation::insert_or_replace).to_vec()).unwrap();
        }
    }
}

/// Opens a store whose second commit puts a journal into use, and records the accesses to the engine's file.
fn recorded_store(path: &Path, events: &RecordedEvents) -> WriterStore {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let disk = Box::new(FileBackend::new(file).unwrap());
    let disk = WatchedFile::new(RecordingDisk { disk, file: 0, events: events.clone() });
    let mut engine = redb::Builder::new();
    engine.set_cache_size(0);
    let database = engine.create_with_backend(disk.clone()).unwrap();
    let options = EmbeddedOptions {
        commits_before_journal: Some(1),
        clock: Arc::new(FastClock::default()),
        ..EmbeddedOptions::new()
    };
    let opened = OpenedFile { database, disk };
    WriterStore::new(StoreFile::new(path), opened, options, Weak::new()).unwrap().0
}

/// A power failure after any access to either file, of which any part since the last sync is lost: each acknowledged
/// operation is there, and of the one under way all or nothing.
#[test]
fn a_power_failure_at_any_access_loses_nothing_that_was_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    open(&path).unwrap().sync_and_close_file().unwrap();

    let events = RecordedEvents::default();
    let before = fs::read(&path).unwrap();
    let mut store = recorded_store(&path, &events);
    put(&mut store, 0);
    let mut states = vec![(rows(&store), store.last)];
    let mut marks = vec![fs::read(path_of_mark(&path)).unwrap()];
    let first = events.0.lock().unwrap().len();
    put(&mut store, 1);
    let created = fs::read(path_of_journal(&path)).unwrap();
    store
        .journal
        .wrap_file(|disk| Box::new(RecordingDisk { disk, file: 1, events: events.clone() }));

    let mut acknowledge = |store: &WriterStore| {
        events.0.lock().unwrap().push(Event::Acknowledged);
        states.push((rows(store), store.last));
        marks.push(fs::read(path_of_mark(&path)).unwrap());
    };
    acknowledge(&store);
    let mut random = Random(1);
    for number in 2..60 {
        write_at_random(&mut store, number, &mut random);
        acknowledge(&store);
    }
    store.sync_and_close_file().unwrap();

    let is_long = std::env::var_os("ENTABLE_LONG").is_some();
    let events = events.0.lock().unwrap();
    let mut images = [Image::new(before), Image::new(created)];
    let (mut acknowledged, mut replayed) = (0, 0);
    let copy = directory.path().join("copy").join("store.db");
    fs::create_dir(copy.parent().unwrap()).unwrap();
    for (index, event) in events.iter().enumerate() {
        match event {
            Event::Write { file, .. } | Event::Length { file, .. } | Event::Synced { file } => {
                images[*file].note(event);
            }
            Event::Acknowledged => acknowledged += 1,
        }
        if index < first || !is_long && random.below(12) != 0 {
            continue;
        }
        let odds = random.below(5);
        let [file, journal] = [&images[0], &images[1]]
            .map(|image| image.after_power_failure(|| random.below(4) < odds));
        fs::write(&copy, file).unwrap();
        fs::write(path_of_journal(&copy), &journal).unwrap();
        // The mark is never synced, so a power failure leaves an older one, or none.
        let mark = usize::try_from(random.below(2 + acknowledged as u64)).unwrap();
        if mark <= acknowledged {
            fs::write(path_of_mark(&copy), &marks[mark]).unwrap();
        } else {
            drop(fs::remove_file(path_of_mark(&copy)));
        }
        let opened = open(&copy);
        let opened = opened.unwrap_or_else(|error| panic!("access {index}: {error:?}"));
        let found = rows(&opened);
        let (before, last) = &states[acknowledged];
        let (after, _) = states.get(acknowledged + 1).unwrap_or(&states[acknowledged]);
        assert!(
            found == *before || found == *after,
            "access {index}: neither the state after operation {acknowledged} nor the next"
        );
        assert!(opened.last >= *last, "access {index}: an ETag may be given twice");
        replayed += 1;
    }
    assert!(replayed > 30, "{replayed} of {} accesses", events.len());
}
