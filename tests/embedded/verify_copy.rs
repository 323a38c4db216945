//! Tests verifications of a copy while the store is read and written.

use std::{
    fs,
    path::Path,
    sync::{
        Arc, Mutex,
        mpsc::{Sender, channel},
    },
    time::Duration,
};

use entable::{
    Batch, Condition, Filter, Operation, Row, ValueRef,
    backend::{Backend, Durability, Embedded, ScanRequest, VerifyProgress},
};

use crate::{count, create, fill, insert, read, row, scratch};

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    entries.map(|entry| name(entry.unwrap())).collect()
}

fn copies(directory: &Path) -> Vec<String> {
    names(directory).into_iter().filter(|name| name.ends_with(".verify")).collect()
}

fn numbered(row_key: &str, number: usize) -> Row {
    let mut row = Row::build("p", row_key);
    row.put("Number", ValueRef::Int64(number.try_into().unwrap()));
    row.put("Text", ValueRef::String(&"text ".repeat(400)));
    row.finish().unwrap()
}

/// Writes row `number` and the row `last` in one transaction.
async fn write(store: &Embedded, number: usize) {
    let mut batch = Batch::new("Staff");
    batch
        .push(Operation::insert_or_replace(numbered(&format!("r{:05}", number * 7 % 5000), number)))
        .unwrap();
    batch.push(Operation::insert_or_replace(numbered("last", number))).unwrap();
    store.apply(&batch).await.unwrap();
}

/// Returns the sum of all numbers, and the number of the row `last`.
async fn sum(store: &Embedded) -> (i64, i64) {
    let filter = Filter::Constant(true);
    let (mut sum, mut last, mut from) = (0, 0, None);
    loop {
        let from_now = from.take();
        let scan = ScanRequest {
            table: "Staff",
            filter: &filter,
            select: None,
            top: None,
            from: from_now.as_ref(),
        };
        let page = store.scan(scan).await.unwrap();
        for row in page.rows {
            let row = row.unwrap();
            let Some(ValueRef::Int64(number)) = row.get("Number").unwrap() else {
                panic!("{row:?}")
            };
            if row.row_key() == "last" { last = number } else { sum += number }
        }
        from = page.next;
        if from.is_none() {
            return (sum, last);
        }
    }
}

/// A copy that waits after its first block, until the test resumes it.
struct Pause {
    told: Arc<Mutex<Vec<VerifyProgress>>>,
    resume: Sender<()>,
    has_paused: tokio::sync::oneshot::Receiver<()>,
}

fn pause_after_first_block() -> (impl Fn(VerifyProgress) + Send + Sync, Pause) {
    let (resume, waiting) = channel();
    let (paused, has_paused) = tokio::sync::oneshot::channel();
    let waiting = Mutex::new(Some((waiting, paused)));
    let told: Arc<Mutex<Vec<VerifyProgress>>> = Arc::default();
    let tell = told.clone();
    let report = move |progress| {
        tell.lock().unwrap().push(progress);
        let first = waiting.lock().unwrap().take();
        if let Some((waiting, paused)) = first {
            paused.send(()).unwrap();
            let _ = waiting.recv();
        }
    };
    (report, Pause { told, resume, has_paused })
}

/// The copy holds what the store held when the call began, whatever is written before each block is copied.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_is_of_one_moment_while_writers_go_on() {
    for durability in [Durability::Sync, Durability::Relaxed { delay: Duration::from_secs(3600) }] {
        let (directory, path) = scratch();
        let store = Embedded::options().durability(durability).open(&path).unwrap();
        create(&store, "Staff").await;
        for number in 0..300 {
            write(&store, number).await;
        }
        let before = sum(&store).await;
        let (report, Pause { told, resume, has_paused }) = pause_after_first_block();
        let kept = directory.path().join("kept.db");
        let verification = store.verify_copy().keep_as(&kept).on_progress(report).into_future();
        let writes = async {
            has_paused.await.unwrap();
            let copy = copies(directory.path());
            assert_eq!(copy.len(), 1, "{copy:?}");
            #[cfg(unix)]
            {
                use std::os::unix::fs::MetadataExt;
                let found = fs::metadata(directory.path().join(&copy[0])).unwrap();
                assert_eq!(found.mode() & 0o777, 0o600);
            }
            for number in 300..900 {
                write(&store, number).await;
            }
            store.flush().await.unwrap();
            resume.send(()).unwrap();
        };
        let (verified, ()) = tokio::join!(verification, writes);
        let report = verified.unwrap();
        let after = sum(&store).await;
        drop(store);
        assert_ne!(before, after);
        let copy = Embedded::open(&kept).unwrap();
        assert_eq!(sum(&copy).await, before, "{durability:?}");
        assert_eq!(report.rows, u64::try_from(count(&copy, "Staff").await).unwrap());
        assert_eq!(report.tables, 1);
        assert_eq!(copies(directory.path()), [""; 0]);
        let told = told.lock().unwrap().clone();
        let last = told.last().unwrap();
        assert_eq!((last.copied_bytes, last.rows), (report.file_bytes, report.rows));
        assert!(told.len() > 5 && told[0].copied_bytes < report.file_bytes, "{told:?}");
        let store = Embedded::open(&path).unwrap();
        assert_eq!(sum(&store).await, after);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_ends_with_the_store() {
    let (directory, path) = scratch();
    let store = Embedded::open(&path).unwrap();
    create(&store, "Staff").await;
    fill(&store, "Staff", "p", 2000).await;
    for compacts in [true, false] {
        let (report, Pause { resume, has_paused, .. }) = pause_after_first_block();
        let verification = store.verify_copy().on_progress(report).into_future();
        let ends = async {
            has_paused.await.unwrap();
            if compacts {
                store.compact().await.unwrap();
            } else {
                store.close().await.unwrap();
            }
            resume.send(()).unwrap();
        };
        let (verified, ()) = tokio::join!(verification, ends);
        let error = verified.unwrap_err();
        assert!(error.is_backend(), "{error:?}");
        assert_eq!(copies(directory.path()), [""; 0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verification_that_is_dropped_is_given_up() {
    let (directory, path) = scratch();
    let store = Embedded::open(&path).unwrap();
    create(&store, "Staff").await;
    fill(&store, "Staff", "p", 2000).await;
    let (report, Pause { told, resume, has_paused }) = pause_after_first_block();
    // The thread of the verification drops the callback, and what it holds, at its very end.
    let (held, dropped) = tokio::sync::oneshot::channel::<()>();
    let report = move |progress| {
        let _ = &held;
        report(progress);
    };
    let verification = store.verify_copy().on_progress(report).into_future();
    tokio::select! {
        _ = verification => panic!("it was paused"),
        paused = has_paused => paused.unwrap(),
    }
    resume.send(()).unwrap();
    dropped.await.unwrap_err();
    assert_eq!(copies(directory.path()), [""; 0], "the copy is left behind");
    assert_eq!(told.lock().unwrap().len(), 1);
    store.verify_copy().await.unwrap();
}

/// A callback that panics is a mistake of the program, and not damage of the file.
#[tokio::test]
async fn a_callback_that_panics_is_no_damage() {
    let (directory, path) = scratch();
    let store = Embedded::open(&path).unwrap();
    create(&store, "Staff").await;
    insert(&store, "Staff", row("p", "r", 1)).await.unwrap();
    for rows in [0, 1] {
        let report = move |at: VerifyProgress| assert!(at.rows != rows, "of the program");
        let error = store.verify_copy().on_progress(report).await.unwrap_err();
        assert!(error.is_rejected(), "{error:?}");
        assert_eq!(copies(directory.path()), [""; 0]);
    }
    store.verify_copy().await.unwrap();
}

#[tokio::test]
async fn a_copy_replaces_no_file_and_may_be_elsewhere() {
    let (directory, path) = scratch();
    let store = Embedded::open(&path).unwrap();
    create(&store, "Staff").await;
    insert(&store, "Staff", row("p", "r", 1)).await.unwrap();
    let taken = directory.path().join("taken.db");
    fs::write(&taken, "of another program").unwrap();
    let error = store.verify_copy().keep_as(&taken).await.unwrap_err();
    assert!(error.is_conflict() && error.to_string().contains("taken.db"), "{error:?}");
    assert_eq!(fs::read_to_string(&taken).unwrap(), "of another program");
    let missing = directory.path().join("missing");
    let error = store.verify_copy().in_directory(&missing).await.unwrap_err();
    assert!(error.is_not_found(), "{error:?}");
    fs::create_dir(&missing).unwrap();
    let there = missing.clone();
    let seen = Arc::new(Mutex::new(0));
    let count = seen.clone();
    let report = move |_| *count.lock().unwrap() += copies(&there).len();
    store.verify_copy().in_directory(&missing).on_progress(report).await.unwrap();
    assert!(*seen.lock().unwrap() > 0, "the copy was elsewhere");
    assert_eq!(names(&missing), [""; 0]);
    let delete = Operation::delete("p", "r", Condition::Any).unwrap();
    store.apply(&Batch::single("Staff", delete).unwrap()).await.unwrap();
    assert!(read(&store, "Staff", "r").await.unwrap().is_none());
}
