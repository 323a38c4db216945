//! Tests the mark beside a file: a file that is older than it was says so.

use std::{
    fs,
    path::{Path, PathBuf},
};

use entable::backend::{Backend, Embedded, TableRequest};

use crate::{count, create, insert, row, scratch};

fn mark_of(path: &Path) -> PathBuf {
    path.with_extension("db.mark")
}

/// Writes rows `from..to` into the store, closes it, and returns the bytes of the file.
async fn write(path: &Path, from: i64, to: i64) -> Vec<u8> {
    let store = Embedded::open(path).unwrap();
    if from == 0 {
        create(&store, "Staff").await;
    }
    for number in from..to {
        insert(&store, "Staff", row("p", &format!("r{number}"), number)).await.unwrap();
    }
    store.close().await.unwrap();
    fs::read(path).unwrap()
}

async fn rows(path: &Path) -> usize {
    count(&Embedded::open(path).unwrap(), "Staff").await
}

#[tokio::test]
async fn an_older_file_is_refused_until_it_is_accepted() {
    let (_directory, path) = scratch();
    let older = write(&path, 0, 3).await;
    write(&path, 3, 6).await;
    assert_eq!(rows(&path).await, 6);
    fs::write(&path, &older).unwrap();
    for _ in 0..2 {
        let error = Embedded::open(&path).unwrap_err();
        assert!(error.is_rolled_back(), "{error:?}");
        let text = error.to_string();
        assert!(
            text.contains("store.db.mark") && text.contains("accept_rolled_back(true)"),
            "{text}"
        );
        assert!(fs::read(&path).unwrap() == older, "the file was changed");
    }
    let store = Embedded::options().accept_rolled_back(true).open(&path).unwrap();
    assert_eq!(count(&store, "Staff").await, 3);
    drop(store);
    assert_eq!(rows(&path).await, 3);
    write(&path, 3, 5).await;
    assert_eq!(rows(&path).await, 5);
    // The mark still tells.
    fs::write(&path, &older).unwrap();
    assert!(Embedded::open(&path).unwrap_err().is_rolled_back());
}

/// A file that was copied while it was open has to be repaired, which must not hide that it is older.
#[tokio::test]
async fn an_older_file_is_refused_as_a_crash_left_it() {
    let (_directory, path) = scratch();
    write(&path, 0, 3).await;
    let store = Embedded::open(&path).unwrap();
    insert(&store, "Staff", row("p", "r3", 3)).await.unwrap();
    let older = fs::read(&path).unwrap();
    insert(&store, "Staff", row("p", "r4", 4)).await.unwrap();
    drop(store);
    fs::write(&path, &older).unwrap();
    for verify_up_to in [0, u64::MAX] {
        let opened = Embedded::options().verify_files_up_to_bytes(verify_up_to).open(&path);
        assert!(opened.unwrap_err().is_rolled_back());
        assert!(fs::read(&path).unwrap() == older, "the file was changed");
    }
    fs::remove_file(mark_of(&path)).unwrap();
    assert_eq!(rows(&path).await, 4);
}

#[tokio::test]
async fn a_mark_that_is_missing_or_damaged_says_nothing() {
    let (_directory, path) = scratch();
    let older = write(&path, 0, 3).await;
    write(&path, 3, 6).await;
    let mark = fs::read(mark_of(&path)).unwrap();
    let mut changed = mark.clone();
    changed[25] ^= 1;
    for says_nothing in [None, Some(changed), Some(Vec::new()), Some(mark[..35].to_vec())] {
        fs::write(&path, &older).unwrap();
        match says_nothing {
            Some(bytes) => fs::write(mark_of(&path), bytes).unwrap(),
            None => fs::remove_file(mark_of(&path)).unwrap(),
        }
        assert_eq!(rows(&path).await, 3);
    }
    // The next write begins a new mark.
    write(&path, 3, 4).await;
    fs::write(&path, &older).unwrap();
    assert!(Embedded::open(&path).unwrap_err().is_rolled_back());
}

#[tokio::test]
async fn a_backup_in_the_place_of_a_store_is_not_refused() {
    let (directory, path) = scratch();
    write(&path, 0, 3).await;
    let store = Embedded::open(&path).unwrap();
    let backups = ["backup.db", "kept.db"].map(|name| directory.path().join(name));
    store.backup(&backups[0]).await.unwrap();
    store.verify_copy().keep_as(&backups[1]).await.unwrap();
    drop(store);
    write(&path, 3, 40).await;
    let mark = fs::read(mark_of(&path)).unwrap();
    for backup in backups {
        // The mark of the store that the backup was made of, which is newer.
        fs::write(mark_of(&path), &mark).unwrap();
        fs::rename(&backup, &path).unwrap();
        assert_eq!(rows(&path).await, 3, "{backup:?}");
        assert_eq!(fs::read(mark_of(&path)).unwrap(), mark, "nothing was written");
        let older = write(&path, 3, 4).await;
        assert_ne!(fs::read(mark_of(&path)).unwrap(), mark);
        write(&path, 4, 40).await;
        fs::write(&path, older).unwrap();
        assert!(Embedded::open(&path).unwrap_err().is_rolled_back());
    }
    // A store that is begun anew under the name of an old one.
    fs::remove_file(&path).unwrap();
    write(&path, 0, 1).await;
    assert_eq!(rows(&path).await, 1);
}

#[tokio::test]
async fn a_copy_under_another_name_has_no_mark() {
    let (directory, path) = scratch();
    let older = write(&path, 0, 3).await;
    write(&path, 3, 6).await;
    let other = directory.path().join("other.db");
    fs::write(&other, &older).unwrap();
    assert_eq!(rows(&other).await, 3);
    assert!(!mark_of(&other).exists(), "a program that only reads makes no mark");
    assert_eq!(rows(&path).await, 6);
}

#[tokio::test]
async fn maintenance_never_makes_a_file_older() {
    let (_directory, path) = scratch();
    let store = Embedded::open(&path).unwrap();
    for round in 0..4 {
        let table = format!("Table{round}");
        create(&store, &table).await;
        insert(&store, &table, row("p", "r", 1)).await.unwrap();
        store.compact().await.unwrap();
        store.verify().await.unwrap();
        insert(&store, &table, row("p", "s", 1)).await.unwrap();
        store.tables(TableRequest::Delete(&table)).await.unwrap();
        store.verify().await.unwrap();
    }
    drop(store);
    drop(Embedded::open(&path).unwrap());
}

/// The directory is not writable, or the name of the mark is taken: the store works without a mark.
#[tokio::test]
async fn a_store_works_without_its_mark() {
    let (_directory, path) = scratch();
    fs::create_dir(mark_of(&path)).unwrap();
    let older = write(&path, 0, 3).await;
    write(&path, 3, 6).await;
    fs::write(&path, &older).unwrap();
    assert_eq!(rows(&path).await, 3);
}
