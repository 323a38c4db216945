//! Tests the journal next to a file as a program sees it: when there is one, and what it means for copies and leftovers.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use entable::{
    Batch, Condition, Operation, Row, ValueRef,
    backend::{Backend, Durability, Embedded, EmbeddedOptions},
};

use crate::{copy_as_crashed, count, create, insert, read, row, scratch};

fn journal_of(path: &Path) -> PathBuf {
    path.with_extension("db.journal")
}

/// The first commit of an opening puts a journal into use.
fn journaled() -> EmbeddedOptions {
    Embedded::options().journal_after_commits(0)
}

/// Opens a new store and inserts rows, all but the first of them into its journal.
async fn store_with_rows(path: &Path, rows: i64) -> Embedded {
    let store = journaled().open(path).unwrap();
    create(&store, "Staff").await;
    for number in 0..rows {
        insert(&store, "Staff", row("p", &format!("r{number}"), number)).await.unwrap();
    }
    store
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_closed_store_has_no_journal() {
    let (directory, path) = scratch();
    let store = store_with_rows(&path, 3).await;
    assert_eq!(names(directory.path()), ["store.db", "store.db.journal", "store.db.mark"]);
    store.close().await.unwrap();
    assert_eq!(names(directory.path()), ["store.db", "store.db.mark"]);
    let store = journaled().open(&path).unwrap();
    insert(&store, "Staff", row("p", "s", 1)).await.unwrap();
    drop(store);
    assert_eq!(names(directory.path()), ["store.db", "store.db.mark"], "dropped is closed");
    assert_eq!(count(&Embedded::open(&path).unwrap(), "Staff").await, 4);
}

#[tokio::test]
async fn a_relaxed_store_takes_over_the_journal_of_a_crash_and_makes_none() {
    let (_directory, path) = scratch();
    let store = store_with_rows(&path, 20).await;
    let copy = path.with_file_name("crashed.db");
    copy_as_crashed(&path, &copy);
    let durability = Durability::Relaxed { delay: Duration::from_secs(3600) };
    let opened = journaled().durability(durability).open(&copy).unwrap();
    assert!(!journal_of(&copy).exists());
    assert_eq!(count(&opened, "Staff").await, 20);
    insert(&opened, "Staff", row("p", "s", 1)).await.unwrap();
    opened.flush().await.unwrap();
    assert!(!journal_of(&copy).exists());
    drop(store);
}

#[tokio::test]
async fn a_crash_leaves_new_layouts_and_deletions() {
    let (_directory, path) = scratch();
    let store = store_with_rows(&path, 3).await;
    let mut other = Row::build("p", "other");
    other.put("EntityType", ValueRef::String("Other"));
    other.put("Name", ValueRef::String("of another type"));
    insert(&store, "Staff", other.finish().unwrap()).await.unwrap();
    let delete = Operation::delete("p", "r1", Condition::Any).unwrap();
    store.apply(&Batch::single("Staff", delete).unwrap()).await.unwrap();
    let copy = path.with_file_name("crashed.db");
    copy_as_crashed(&path, &copy);
    let opened = Embedded::open(&copy).unwrap();
    assert_eq!(count(&opened, "Staff").await, 3);
    let other = read(&opened, "Staff", "other").await.unwrap().unwrap();
    assert_eq!(other.get("Name").unwrap(), Some(ValueRef::String("of another type")));
    assert!(read(&opened, "Staff", "r1").await.unwrap().is_none());
    drop(store);
}

/// A crash in an opening, after the frames were committed and before the journal was removed.
#[tokio::test]
async fn a_journal_that_was_replayed_is_replayed_no_second_time() {
    let (_directory, path) = scratch();
    let store = store_with_rows(&path, 5).await;
    let copy = path.with_file_name("crashed.db");
    copy_as_crashed(&path, &copy);
    let journal = fs::read(journal_of(&copy)).unwrap();
    let opened = Embedded::open(&copy).unwrap();
    insert(&opened, "Staff", row("p", "s", 1)).await.unwrap();
    drop(opened);
    fs::write(journal_of(&copy), journal).unwrap();
    let opened = journaled().open(&copy).unwrap();
    assert!(!journal_of(&copy).exists());
    assert_eq!(count(&opened, "Staff").await, 6);
    drop(store);
}

#[tokio::test]
async fn a_backup_and_a_kept_copy_need_no_journal() {
    let (directory, path) = scratch();
    let store = store_with_rows(&path, 7).await;
    let copies = ["backup.db", "kept.db"].map(|name| directory.path().join(name));
    store.backup(&copies[0]).await.unwrap();
    store.verify_copy().keep_as(&copies[1]).await.unwrap();
    for copy in copies {
        assert!(!journal_of(&copy).exists());
        let opened = journaled().open(&copy).unwrap();
        assert_eq!(count(&opened, "Staff").await, 7);
        insert(&opened, "Staff", row("p", "s", 1)).await.unwrap();
        insert(&opened, "Staff", row("p", "t", 1)).await.unwrap();
        let crashed = copy.with_extension("crashed");
        copy_as_crashed(&copy, &crashed);
        assert_eq!(count(&Embedded::open(&crashed).unwrap(), "Staff").await, 9);
    }
}

/// A backup takes the place of a store that has crashed: its journal is of the store that was there.
#[tokio::test]
async fn a_backup_next_to_a_journal_is_refused_and_says_what_to_do() {
    let (directory, path) = scratch();
    let store = store_with_rows(&path, 3).await;
    let backup = directory.path().join("backup.db");
    store.backup(&backup).await.unwrap();
    insert(&store, "Staff", row("p", "s", 1)).await.unwrap();
    let crashed = directory.path().join("crashed.db");
    copy_as_crashed(&path, &crashed);
    fs::copy(&backup, &crashed).unwrap();
    let before = fs::read(journal_of(&crashed)).unwrap();
    let error = Embedded::open(&crashed).unwrap_err();
    let text = error.to_string();
    assert!(error.is_rolled_back() && text.contains("move the journal away"), "{error:?}");
    assert!(fs::read(journal_of(&crashed)).unwrap() == before);
    fs::rename(journal_of(&crashed), directory.path().join("away")).unwrap();
    assert_eq!(count(&Embedded::open(&crashed).unwrap(), "Staff").await, 3);
}

#[tokio::test]
async fn a_new_store_next_to_a_journal_that_was_left_is_refused() {
    let (directory, path) = scratch();
    let store = store_with_rows(&path, 3).await;
    let other = directory.path().join("other.db");
    fs::copy(journal_of(&path), journal_of(&other)).unwrap();
    drop(store);
    for is_empty in [false, true] {
        if is_empty {
            fs::write(&other, "").unwrap();
        }
        assert!(Embedded::open(&other).unwrap_err().is_rolled_back());
        assert_eq!(other.exists(), is_empty, "nothing is made");
        assert!(journal_of(&other).exists());
    }
    drop(Embedded::options().accept_rolled_back(true).open(&other).unwrap());
    assert!(names(directory.path()).iter().any(|name| name.ends_with(".aside")));
    drop(Embedded::open(&other).unwrap());
}

/// The name of the journal is taken: the store works without one, and leaves the other file alone.
#[tokio::test]
async fn a_store_works_without_its_journal() {
    let (_directory, path) = scratch();
    fs::write(journal_of(&path), "of another program").unwrap();
    let store = store_with_rows(&path, 5).await;
    let copy = path.with_file_name("crashed.db");
    fs::copy(&path, &copy).unwrap();
    assert_eq!(count(&Embedded::open(&copy).unwrap(), "Staff").await, 5);
    store.close().await.unwrap();
    assert_eq!(fs::read(journal_of(&path)).unwrap(), b"of another program");
    assert_eq!(count(&Embedded::open(&path).unwrap(), "Staff").await, 5);
}

#[tokio::test]
async fn verifying_and_compacting_take_over_what_is_in_the_journal() {
    let (_directory, path) = scratch();
    let store = store_with_rows(&path, 5).await;
    store.verify().await.unwrap();
    insert(&store, "Staff", row("p", "a", 1)).await.unwrap();
    insert(&store, "Staff", row("p", "b", 1)).await.unwrap();
    store.compact().await.unwrap();
    insert(&store, "Staff", row("p", "c", 1)).await.unwrap();
    insert(&store, "Staff", row("p", "d", 1)).await.unwrap();
    let report = store.verify_copy().await.unwrap();
    assert_eq!(report.rows, 9);
    insert(&store, "Staff", row("p", "e", 1)).await.unwrap();
    let copy = path.with_file_name("crashed.db");
    copy_as_crashed(&path, &copy);
    assert_eq!(count(&Embedded::open(&copy).unwrap(), "Staff").await, 10);
    drop(store);
    assert_eq!(count(&Embedded::open(&path).unwrap(), "Staff").await, 10);
}
