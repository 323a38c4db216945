//! Tests damaged files that open without a check of their pages: what `verify_copy` passes reads right data.

use std::{fs, path::Path};

use entable::{
    Batch, Condition, Error, Operation, Row, ValueRef,
    backend::{Backend, Embedded},
};
use tokio::runtime::Runtime;

use crate::{
    Random,
    image::{PAGE, State, TABLES, flip, original, row, state},
    rounds,
};

/// What came of a damaged file.
#[derive(Debug, Default)]
struct Outcomes {
    /// The file did not open.
    refused: usize,
    /// `verify_copy` found the damage.
    found: usize,
    /// Found, though every read before that gave an answer, and not the right one.
    silent: usize,
    /// The file is as good as it was.
    harmless: usize,
}

/// Opens a damaged file, reads it, verifies a copy, and reads it again.
async fn look(path: &Path, expected: &State, outcomes: &mut Outcomes, what: &str) {
    let store = match Embedded::options().verify_files_up_to_bytes(0).open(path) {
        Ok(store) => store,
        Err(error) => {
            assert!(error.is_corrupt() || error.is_unsupported(), "{what}: {error:?}");
            return outcomes.refused += 1;
        }
    };
    let unchecked = state(&store).await;
    match store.verify_copy().await {
        Ok(report) => {
            let state = state(&store).await.unwrap_or_else(|error| panic!("{what}: {error:?}"));
            assert!(state == *expected, "{what}: silently wrong after a verification");
            let rows: usize = expected.iter().map(Vec::len).sum();
            assert_eq!(report.rows, rows as u64, "{what}");
            outcomes.harmless += 1;
        }
        Err(error) => {
            assert!(error.is_corrupt(), "{what}: {error:?}");
            let path = path.to_str().unwrap();
            assert!(error.to_string().contains(path), "{what}: not about the store: {error}");
            outcomes.found += 1;
            outcomes.silent += usize::from(unchecked.is_ok_and(|state| state != *expected));
        }
    }
    drop(store);
    let left = fs::read_dir(path.parent().unwrap()).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert!(
        !left.iter().any(|name| name.to_str().unwrap().ends_with(".verify")),
        "{what}: a copy is left behind: {left:?}"
    );
}

async fn replace(store: &Embedded, table: usize, number: usize, text: &str) -> Result<(), Error> {
    let old = row(table, number);
    let mut new = Row::build(old.partition_key(), old.row_key());
    new.put("Text", ValueRef::String(text));
    let replace = Operation::replace(new.finish()?, Condition::Any);
    store.apply(&Batch::single(TABLES[table], replace)?).await.map(drop)
}

/// A write that the disk acknowledged and lost: a page holds what it held before.
#[test]
fn lost_writes_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image.db");
    let runtime = Runtime::new().unwrap();
    let (_, mut before) = original(&runtime, &path);
    // Pages are used again after a while, so that each has older selves.
    let mut versions = Vec::new();
    let mut expected = State::new();
    for round in 0..6 {
        runtime.block_on(async {
            let store = Embedded::open(&path).unwrap();
            for number in (round..150).step_by(3).filter(|number| number % 7 != 0) {
                replace(&store, number % 2, number, &format!("{round} ").repeat(80)).await.unwrap();
            }
            expected = state(&store).await.unwrap();
        });
        let after = fs::read(&path).unwrap();
        versions.push(std::mem::replace(&mut before, after));
    }
    let mut random = Random(21);
    let mut outcomes = Outcomes::default();
    let mut done = 0;
    while done < rounds(60, 1200) {
        let version = &versions[random.below(versions.len())];
        let page = 1 + random.below(version.len().min(before.len()) / PAGE - 1);
        let bytes = page * PAGE..(page + 1) * PAGE;
        if version[bytes.clone()] == before[bytes.clone()] {
            continue;
        }
        done += 1;
        let mut image = before.clone();
        image[bytes.clone()].copy_from_slice(&version[bytes]);
        fs::write(&path, image).unwrap();
        let what = format!("lost write {done}, page {page}");
        runtime.block_on(look(&path, &expected, &mut outcomes, &what));
    }
    println!("lost writes: {outcomes:?}");
    assert!(outcomes.silent > 0, "no older row was read: {outcomes:?}");
    assert!(outcomes.harmless > 0, "{outcomes:?}");
}

/// Changes some bytes in a row, so that keys and lengths are hit too.
fn scribble(random: &mut Random, image: &mut [u8]) -> String {
    let at = random.below(image.len() - 16);
    let length = 1 + random.below(16);
    for byte in &mut image[at..at + length] {
        *byte = u8::try_from(random.below(256)).unwrap();
    }
    format!("{length} bytes at {at} are changed")
}

/// Changes a letter of a key, where one is found.
fn change_key(random: &mut Random, image: &mut [u8]) -> String {
    let keys: Vec<_> = image.windows(8).enumerate().filter(|(_, at)| is_key(at)).collect();
    let (at, _) = keys[random.below(keys.len())];
    let digit = at + 4 + random.below(4);
    image[digit] = b'0' + u8::try_from(random.below(10)).unwrap();
    format!("a key at {at} is changed")
}

/// Whether the bytes are the address of a row: `p1`, the boundary, and the first digits of a RowKey.
fn is_key(bytes: &[u8]) -> bool {
    bytes[0] == b'p'
        && bytes[2] == 0
        && bytes[3] == b'r'
        && bytes[4..].iter().all(u8::is_ascii_digit)
}

#[test]
fn damage_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image.db");
    let runtime = Runtime::new().unwrap();
    let (expected, bytes) = original(&runtime, &path);
    let mut random = Random(22);
    let mut outcomes = Outcomes::default();
    for round in 0..rounds(60, 3000) {
        let mut image = bytes.clone();
        let what = match round % 3 {
            0 => flip(&mut random, &mut image),
            1 => scribble(&mut random, &mut image),
            _ => change_key(&mut random, &mut image),
        };
        fs::write(&path, image).unwrap();
        let what = format!("round {round}: {what}");
        runtime.block_on(look(&path, &expected, &mut outcomes, &what));
    }
    println!("damaged files: {outcomes:?}");
    assert!(outcomes.found > 0 && outcomes.harmless > 0, "{outcomes:?}");
}
