//! Tests files that open, and files that do not: each failure names the file and a remedy.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::SeqCst},
    },
    time::Duration,
};

use entable::{
    Batch, Clock, Condition, DynamicEntity, ETag, Error, Operation, SteppedClock, Ticks,
    backend::{Backend, Embedded, TableRequest},
};
use redb::TableDefinition;

use crate::{create, delete, insert, read, row, scratch};

fn refused(path: &Path) -> (Error, String) {
    let error = Embedded::open(path).unwrap_err();
    let text = error.to_string();
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(text.contains(name), "the error does not name the file: {text}");
    (error, text)
}

#[tokio::test]
async fn what_was_written_is_there_after_reopening() {
    let (_directory, path) = scratch();
    let store = Embedded::open(&path).unwrap();
    create(&store, "Staff").await;
    create(&store, "Archive").await;
    insert(&store, "Staff", row("p", "r", 7)).await.unwrap();
    let before = read(&store, "Staff", "r").await.unwrap();
    drop(store);

    let store = Embedded::open(&path).unwrap();
    assert_eq!(read(&store, "sTAFF", "r").await.unwrap(), before);
    let tables = store.tables(TableRequest::List { from: None, within: None }).await.unwrap();
    assert_eq!(tables.names, ["Archive", "Staff"]);
}

#[tokio::test]
async fn an_empty_file_becomes_a_store() {
    let (_directory, path) = scratch();
    fs::write(&path, "").unwrap();
    drop(Embedded::open(&path).unwrap());
    drop(Embedded::open(&path).unwrap());
}

#[tokio::test]
async fn nothing_is_left_beside_a_new_store() {
    let (directory, path) = scratch();
    let other = directory.path().join("store.db.new");
    fs::write(&other, "not a store").unwrap();
    let store = Embedded::open(&path).unwrap();
    create(&store, "Staff").await;
    let mut names: Vec<_> =
        fs::read_dir(directory.path()).unwrap().map(|f| f.unwrap().path()).collect();
    names.sort();
    assert_eq!(names, [path.clone(), path.with_extension("db.mark"), other.clone()]);
    assert_eq!(
        fs::read_to_string(other).unwrap(),
        "not a store",
        "a file of another program stays"
    );
}

#[cfg(unix)]
#[test]
fn a_new_store_is_private_and_no_link_is_followed() {
    use std::os::unix::fs::{MetadataExt, symlink};

    let (directory, path) = scratch();
    let victim = directory.path().join("victim");
    fs::write(&victim, "of another program").unwrap();
    symlink(&victim, directory.path().join("store.db.new")).unwrap();
    drop(Embedded::open(&path).unwrap());
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "of another program");

    // A link that leads nowhere is not replaced, and nothing is created where it leads.
    let (link, nowhere) = (directory.path().join("link.db"), directory.path().join("nowhere"));
    symlink(&nowhere, &link).unwrap();
    let (error, _) = refused(&link);
    assert!(error.is_not_found(), "{error:?}");
    assert!(!nowhere.exists() && fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 4, "nothing is left behind");
}

#[test]
fn one_store_comes_of_many_that_are_created_at_once() {
    for _ in 0..20 {
        let (directory, path) = scratch();
        let opened: usize = std::thread::scope(|scope| {
            let open = || Embedded::open(&path);
            let all: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
            let all: Vec<_> = all.into_iter().map(|one| one.join().unwrap()).collect();
            assert!(
                all.iter().all(|one| one.as_ref().err().is_none_or(Error::is_locked)),
                "{all:?}"
            );
            all.iter().filter(|one| one.is_ok()).count()
        });
        assert_eq!(opened, 1);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left behind");
    }
}

#[tokio::test]
async fn a_store_that_is_open_is_locked() {
    let (_directory, path) = scratch();
    let first = Embedded::open(&path).unwrap();
    let (error, text) = refused(&path);
    assert!(error.is_locked() && text.contains("share one client"), "{error:?}");
    drop(first);
    Embedded::open(&path).unwrap();
}

/// A clone of the client, or a task that still has one, does not keep a closed file locked.
#[tokio::test]
async fn a_closed_client_unlocks_its_file_while_clones_are_left() {
    let (_directory, path) = scratch();
    let client = entable::Client::open(&path).unwrap();
    let clone = client.clone();
    client.create_table("Staff").await.unwrap();
    let scanning = Embedded::open(&path).unwrap_err();
    assert!(scanning.is_locked(), "{scanning:?}");
    client.close().await.unwrap();
    let again = entable::Client::open(&path).unwrap();
    assert_eq!(again.tables().await.unwrap(), ["Staff"]);
    for error in [
        clone.tables().await.unwrap_err(),
        clone.create_table("Other").await.unwrap_err(),
        clone.dynamic("Staff").insert(&DynamicEntity::new("Sales", "1")).await.unwrap_err(),
        client.close().await.unwrap_err(),
    ] {
        assert!(error.is_backend() && error.to_string().contains("was closed"), "{error:?}");
    }
    assert_eq!(again.tables().await.unwrap(), ["Staff"]);
}

#[tokio::test]
async fn a_missing_directory_is_not_found() {
    let (directory, _) = scratch();
    let (error, text) = refused(&directory.path().join("missing").join("store.db"));
    assert!(error.is_not_found() && text.contains("create it first"), "{error:?}");
}

#[tokio::test]
async fn a_directory_is_not_a_store() {
    let (directory, _) = scratch();
    let (error, _) = refused(directory.path());
    assert!(error.is_invalid(), "{error:?}");
}

#[tokio::test]
async fn a_foreign_file_is_refused_and_left_alone() {
    let (_directory, path) = scratch();
    for bytes in ["a", "SQLite format 3\0 and so on, a foreign file"] {
        fs::write(&path, bytes).unwrap();
        let (error, text) = refused(&path);
        assert!(error.is_corrupt() && text.contains("not an entable store"), "{error:?}");
        assert_eq!(fs::read(&path).unwrap(), bytes.as_bytes());
    }
}

#[tokio::test]
async fn another_file_of_the_engine_is_refused() {
    let (_directory, path) = scratch();
    let table: TableDefinition<'_, &str, u64> = TableDefinition::new("other");
    let database = redb::Database::create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(table).unwrap().insert("a", 1).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let (error, text) = refused(&path);
    assert!(error.is_corrupt() && text.contains("not an entable store"), "{error:?}");
}

/// The engine writes its header into an empty file before the store's first transaction.
#[tokio::test]
async fn a_crash_while_an_empty_file_becomes_a_store_is_made_good() {
    let (_directory, path) = scratch();
    let first = path.with_extension("first");
    let database = redb::Database::create(&first).unwrap();
    // A copy of the open file stands for the state after a crash.
    fs::copy(&first, &path).unwrap();
    drop(database);
    for path in [path, first] {
        let store = Embedded::open(&path).unwrap();
        create(&store, "Staff").await;
        insert(&store, "Staff", row("p", "r", 7)).await.unwrap();
        drop(store);
        let store = Embedded::open(&path).unwrap();
        assert!(read(&store, "Staff", "r").await.unwrap().is_some());
    }
}

#[tokio::test]
async fn a_newer_format_is_refused() {
    let (_directory, path) = scratch();
    drop(Embedded::open(&path).unwrap());
    let table: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("entable.meta");
    let database = redb::Database::create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(table).unwrap().insert("format", &2_u32.to_le_bytes()[..]).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let (error, text) = refused(&path);
    assert!(error.is_unsupported() && text.contains("newer version"), "{error:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_read_only_file_is_denied() {
    use std::os::unix::fs::PermissionsExt;
    let (_directory, path) = scratch();
    drop(Embedded::open(&path).unwrap());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    if fs::OpenOptions::new().write(true).open(&path).is_ok() {
        // The superuser may write it all the same.
        return;
    }
    let (error, text) = refused(&path);
    assert!(error.is_denied() && text.contains("may not write"), "{error:?}");
}

#[tokio::test]
async fn a_row_that_comes_back_after_reopening_has_a_new_etag() {
    let (_directory, path) = scratch();
    let open = || {
        let options = Embedded::options().clock(Arc::new(SteppedClock::new(Ticks::UNIX_EPOCH)));
        options.open(&path).unwrap()
    };
    let mut etags = Vec::new();
    for _ in 0..3 {
        let store = open();
        drop(store.tables(TableRequest::Create("Staff")).await);
        insert(&store, "Staff", row("p", "r", 1)).await.unwrap();
        etags.push(read(&store, "Staff", "r").await.unwrap().unwrap().etag().unwrap());
        apply(&store, delete_row()).await;
    }
    assert!(etags[0] != etags[1] && etags[1] != etags[2] && etags[0] != etags[2], "{etags:?}");
}

/// A clock that can be set back. It shows ticks since the Unix epoch.
#[derive(Debug)]
struct SetClock(AtomicI64);

impl SetClock {
    fn set(&self, ticks: i64) {
        self.0.store(ticks, SeqCst);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Ticks {
        Ticks::new(Ticks::UNIX_EPOCH.get() + self.0.load(SeqCst)).unwrap()
    }
}

fn open_at(path: &Path, ticks: i64) -> (Embedded, Arc<SetClock>) {
    let clock = Arc::new(SetClock(AtomicI64::new(ticks)));
    (Embedded::options().clock(clock.clone()).open(path).unwrap(), clock)
}

/// Creates a store, writes the row (p, r) at tick 100, closes the store and returns the row's ETag.
async fn write_at_100(path: &Path) -> ETag {
    let (store, _) = open_at(path, 100);
    create(&store, "Staff").await;
    insert(&store, "Staff", row("p", "r", 1)).await.unwrap();
    etag(&store).await
}

async fn apply(store: &Embedded, operation: Operation) {
    store.apply(&Batch::single("Staff", operation).unwrap()).await.unwrap();
}

fn delete_row() -> Operation {
    Operation::delete("p", "r", Condition::Any).unwrap()
}

/// Inserts the row (p, r) and returns its ETag.
async fn insert_again(store: &Embedded) -> ETag {
    insert(store, "Staff", row("p", "r", 2)).await.unwrap();
    etag(store).await
}

/// Returns the ETag of the row (p, r).
async fn etag(store: &Embedded) -> ETag {
    read(store, "Staff", "r").await.unwrap().unwrap().etag().unwrap()
}

/// A row that is written after the clock was set back gets a Timestamp later than the clock.
#[tokio::test]
async fn an_etag_ahead_of_the_clock_does_not_come_again() {
    let (_directory, path) = scratch();
    write_at_100(&path).await;
    let (store, _) = open_at(&path, 50);
    apply(&store, Operation::replace(row("p", "r", 2), Condition::Any)).await;
    let before = etag(&store).await;
    apply(&store, delete_row()).await;
    drop(store);
    let (store, _) = open_at(&path, 101);
    assert_ne!(insert_again(&store).await, before);
}

#[tokio::test]
async fn the_etag_of_a_row_deleted_under_a_clock_set_back_does_not_come_again() {
    let (_directory, path) = scratch();
    let before = write_at_100(&path).await;
    let (store, clock) = open_at(&path, 50);
    apply(&store, delete_row()).await;
    clock.set(100);
    assert_ne!(insert_again(&store).await, before);
}

#[tokio::test]
async fn the_etags_of_a_deleted_table_do_not_come_again() {
    for is_reopened in [false, true] {
        let (_directory, path) = scratch();
        let before = write_at_100(&path).await;
        // Nothing was written or deleted since the store was opened, which could tell the time.
        let (mut store, mut clock) = open_at(&path, 200);
        delete(&store, "Staff").await;
        if is_reopened {
            drop(store);
            (store, clock) = open_at(&path, 200);
        }
        create(&store, "Staff").await;
        clock.set(100);
        assert_ne!(insert_again(&store).await, before, "reopened: {is_reopened}");
    }
}

/// The file is moved away while the store reopens it, and comes back later.
#[cfg(unix)]
#[tokio::test]
async fn a_file_that_comes_back_is_read_again_without_a_write() {
    let (_directory, path) = scratch();
    let store = Embedded::open(&path).unwrap();
    create(&store, "Staff").await;
    insert(&store, "Staff", row("p", "r", 7)).await.unwrap();
    let away = path.with_extension("away");
    fs::rename(&path, &away).unwrap();
    store.compact().await.unwrap_err();
    assert!(read(&store, "Staff", "r").await.unwrap_err().is_backend());
    assert!(store.flush().await.is_err(), "a flush of a store without its file");
    fs::rename(&away, &path).unwrap();
    let end = tokio::time::Instant::now() + Duration::from_secs(20);
    while read(&store, "Staff", "r").await.is_err() {
        assert!(tokio::time::Instant::now() < end, "the store stays closed");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn a_store_works_without_a_runtime_of_its_own() {
    let (_directory, path) = scratch();
    let store = Embedded::open(&path).unwrap();
    // Polled by hand: nothing in the store asks for tokio's reactor.
    block_on(async {
        create(&store, "Staff").await;
        insert(&store, "Staff", row("p", "r", 7)).await.unwrap();
        crate::fill(&store, "Staff", "q", 3000).await;
        assert_eq!(crate::count(&store, "Staff").await, 3001);
        store.flush().await.unwrap();
        store.compact().await.unwrap();
    });
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut work = std::pin::pin!(work);
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    loop {
        match work.as_mut().poll(&mut context) {
            std::task::Poll::Ready(value) => return value,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}
