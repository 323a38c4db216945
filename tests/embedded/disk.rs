//! Tests a full disk: the write fails with an error, stored rows stay, and the store keeps working.

use std::process::{Command, Stdio};

use entable::backend::Embedded;

use crate::{count, create, fill, insert, read, row, scratch};

const FILE: &str = "ENTABLE_FULL_DISK_FILE";

/// Runs under a limit for the size of files, which the child lifts itself.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_and_the_store_works_on() {
    let (_directory, path) = scratch();
    let lifted = Command::new("prlimit").arg("--version").stdout(Stdio::null()).status();
    if lifted.is_err() {
        // Nothing here that lifts the limit again.
        return;
    }
    let script = "trap '' XFSZ; ulimit -S -f 8192; exec \"$0\" \"$@\"";
    let status = Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .args(["disk::child", "--exact", "--ignored", "--nocapture"])
        .env(FILE, &path)
        .status()
        .unwrap();
    assert!(status.success());
}

#[tokio::test]
#[ignore = "the child of the test above"]
async fn child() {
    let Some(path) = std::env::var_os(FILE) else { return };
    let store = Embedded::open(&path).unwrap();
    create(&store, "Staff").await;
    fill(&store, "Staff", "before", 300).await;
    let filler = "x".repeat(30_000);
    let large = |number: i64| {
        let mut row = entable::Row::build("p", &format!("{number:08}"));
        row.put("Filler", entable::ValueRef::String(&filler));
        row.finish().unwrap()
    };
    let mut number = 0;
    let error = loop {
        match insert(&store, "Staff", large(number)).await {
            Ok(()) => number += 1,
            Err(error) => break error,
        }
        assert!(number < 10_000, "the limit does not hold");
    };
    let text = error.to_string();
    println!("after {number} rows: {error:?}");
    assert!(error.is_backend() && text.contains("no space is left"), "{error:?}");
    assert!(text.contains("store.db"), "{text}");

    // Acknowledged writes are stored, and readers continue.
    assert_eq!(count(&store, "Staff").await, 300 + usize::try_from(number).unwrap());
    assert!(read(&store, "Staff", &format!("{:08}", number - 1)).await.unwrap().is_some());
    // After a failure the store opens its file again, which can free some pages. Then the disk is full again.
    let mut refused = 0;
    while refused < 2 {
        match insert(&store, "Staff", large(number)).await {
            Ok(()) => (number, refused) = (number + 1, 0),
            Err(again) => {
                assert!(again.is_backend(), "{again:?}");
                refused += 1;
            }
        }
        assert!(number < 10_000, "the limit does not hold");
    }
    assert_eq!(count(&store, "Staff").await, 300 + usize::try_from(number).unwrap());

    let process = std::process::id().to_string();
    let lift = ["--pid", &process, "--fsize=unlimited:unlimited"];
    assert!(Command::new("prlimit").args(lift).status().unwrap().success());
    insert(&store, "Staff", large(number)).await.unwrap();
    insert(&store, "Staff", row("q", "r", 1)).await.unwrap();
    store.verify().await.unwrap();
    drop(store);
    let store = Embedded::open(&path).unwrap();
    assert_eq!(count(&store, "Staff").await, 302 + usize::try_from(number).unwrap());
}
