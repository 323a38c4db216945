//! Tests a store that another process has open, and processes that may not write its file.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use entable::backend::Embedded;

use crate::{count, create, insert, row, scratch};

const FILE: &str = "ENTABLE_OTHER_PROCESS_FILE";
/// A user that owns nothing.
const NOBODY: u32 = 65_534;

#[tokio::test]
async fn a_store_of_another_process_is_locked_until_that_ends() {
    let (_directory, path) = scratch();
    let store = Embedded::open(&path).unwrap();
    create(&store, "Staff").await;
    insert(&store, "Staff", row("p", "r", 1)).await.unwrap();
    drop(store);
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["processes::holder", "--exact", "--ignored", "--nocapture"])
        .env(FILE, &path)
        .stdout(Stdio::piped())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.ends_with("open")));

    let error = Embedded::open(&path).unwrap_err();
    assert!(error.is_locked(), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("store.db") && text.contains("another process"), "{text}");

    holder.kill().unwrap();
    holder.wait().unwrap();
    let store = Embedded::open(&path).unwrap();
    assert_eq!(count(&store, "Staff").await, 1);
}

#[test]
#[ignore = "the child of the test above"]
fn holder() {
    let Some(path) = std::env::var_os(FILE) else { return };
    let _store = Embedded::open(&path).unwrap();
    println!("open");
    // Until it is killed, or the other end is gone.
    drop(std::io::stdin().lines().next());
}

/// Drops the rights of the superuser for a call, because the superuser may write every file.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_may_not_be_written_is_denied() {
    use std::os::unix::fs::PermissionsExt;
    let (directory, path) = scratch();
    let store = Embedded::open(&path).unwrap();
    create(&store, "Staff").await;
    drop(store);
    let before = fs::read(&path).unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    // Another user has to be able to run this program too.
    let program = directory.path().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let user = NOBODY.to_string();
    let becomes = ["--reuid", &user, "--regid", &user, "--clear-groups"];
    let able = Command::new("setpriv").args(becomes).arg("true").status();
    if !able.is_ok_and(|status| status.success()) {
        // Not the superuser: `files::a_read_only_file_is_denied` has tried it.
        return;
    }
    let status = Command::new("setpriv")
        .args(becomes)
        .arg(&program)
        .args(["processes::denied", "--exact", "--ignored", "--nocapture"])
        .env(FILE, &path)
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(fs::read(&path).unwrap(), before, "the file was changed");
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "the child of the test above"]
fn denied() {
    let Some(path) = std::env::var_os(FILE) else { return };
    let path = Path::new(&path);
    // A file that may only be read, and a directory in which nothing may be made.
    for path in [path.to_owned(), path.with_file_name("new.db")] {
        let error = Embedded::open(&path).unwrap_err();
        let text = error.to_string();
        assert!(error.is_denied() && text.contains("may not write"), "{error:?}");
        assert!(text.contains(path.file_name().unwrap().to_str().unwrap()), "{text}");
    }
}
