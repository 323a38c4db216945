//! Tests that the engine's panics on damaged pages are errors, of which standard error shows nothing, and that a checked
//! file opens without such a panic.

use std::{
    fs,
    panic::catch_unwind,
    path::Path,
    process::{Command, Stdio},
};

use entable::{Error, backend::Embedded};
use tokio::runtime::Runtime;

use crate::{
    Random,
    image::{PAGE, flip, original, state},
    rounds,
};

const DIRECTORY: &str = "ENTABLE_DAMAGED_FILES";

/// Writes damaged files into a directory: each page of a store is lost once, and some bits are flipped.
fn write_damaged_files(directory: &Path) -> usize {
    let runtime = Runtime::new().unwrap();
    let path = directory.join("sound.db");
    let (_, bytes) = original(&runtime, &path);
    let mut random = Random(31);
    let mut images = Vec::new();
    for page in 1..bytes.len() / PAGE {
        if bytes[page * PAGE..][..PAGE].iter().any(|byte| *byte != 0) {
            let mut image = bytes.clone();
            image[page * PAGE..][..PAGE].fill(0);
            images.push(image);
        }
    }
    for _ in 0..rounds(60, 3000) {
        let mut image = bytes.clone();
        flip(&mut random, &mut image);
        images.push(image);
    }
    for (number, image) in images.iter().enumerate() {
        fs::write(directory.join(format!("{number}.db")), image).unwrap();
    }
    images.len()
}

/// Whether the error comes of a panic of the engine.
fn is_panic(error: &Error) -> bool {
    error.to_string().contains("the engine cannot read a page")
}

/// Opens and reads the files of a directory. Returns how many opened, and how many panics of the engine were errors of
/// opening and of reading.
fn read_files(directory: &Path, verify_up_to: u64) -> [usize; 3] {
    let runtime = Runtime::new().unwrap();
    let mut counts = [0; 3];
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "db") {
            continue;
        }
        match Embedded::options().verify_files_up_to_bytes(verify_up_to).open(&path) {
            Ok(store) => {
                counts[0] += 1;
                let read = runtime.block_on(state(&store));
                counts[2] += usize::from(read.is_err_and(|error| is_panic(&error)));
            }
            Err(error) => counts[1] += usize::from(is_panic(&error)),
        }
    }
    counts
}

#[test]
fn nothing_of_the_engines_panics_reaches_standard_error() {
    let directory = tempfile::tempdir().unwrap();
    write_damaged_files(directory.path());
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["quiet::child", "--exact", "--ignored", "--nocapture"])
        .env(DIRECTORY, directory.path())
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (out, err) =
        [child.stdout, child.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).into();
    assert!(child.status.success(), "{out}{err}");
    let caught = out.lines().find_map(|line| line.rsplit_once("caught ")).unwrap().1;
    assert!(caught.parse::<usize>().unwrap() > 0, "the engine did not panic: {out}");
    println!("caught {caught} panics of the engine");
    assert!(err.contains("a panic of the program"), "the program's own panics are shown: {err}");
    assert!(!err.contains("redb") && err.matches("panicked").count() == 1, "{err}");
}

#[test]
#[ignore = "the child of the test above"]
fn child() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let [_, opening, reading] = read_files(directory.as_ref(), 0);
    println!("caught {}", opening + reading);
    catch_unwind(|| panic!("a panic of the program")).unwrap_err();
}

/// So a program that ends at each panic opens them, too, and gets an error.
#[test]
fn a_checked_file_opens_without_a_panic_of_the_engine() {
    let directory = tempfile::tempdir().unwrap();
    let all = write_damaged_files(directory.path());
    let [opened, opening, reading] = read_files(directory.path(), u64::MAX);
    println!(
        "{opened} of {all} damaged files opened, panics: {opening} opening, {reading} reading"
    );
    assert_eq!((opening, reading), (0, 0));
    assert!(opened > 1 && opened < all, "{opened} of {all} opened");
}
