//! Tests files with flipped bits, torn writes and missing ends: reads return right data or a clear
//! error.

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    time::{Duration, Instant},
};

use entable::{
    Batch, Condition, Error, Operation, Row, ValueRef,
    backend::{Backend, Embedded, ReadRequest, TableRequest},
};
use tokio::runtime::Runtime;

use crate::{Random, rounds, rows::rows};

pub(crate) const TABLES: [&str; 2] = ["First", "Second"];
pub(crate) const PAGE: usize = 4096;
/// Rows from this number on have a layout of their own.
const NEW_LAYOUTS: usize = 1000;

pub(crate) type State = Vec<Vec<Row>>;

pub(crate) fn row(table: usize, number: usize) -> Row {
    let mut row = Row::build(&format!("p{}", number % 3), &format!("r{number:05}"));
    row.put("Table", ValueRef::Int32(i32::try_from(table).unwrap()));
    row.put("Text", ValueRef::String(&"text ".repeat(number % 60)));
    if number >= NEW_LAYOUTS {
        // One type may have 64 layouts.
        row.put("EntityType", ValueRef::String(&format!("Type{}", number / 32)));
        row.put(&format!("Only{number}"), ValueRef::Boolean(true));
    }
    row.finish().unwrap()
}

pub(crate) async fn write(store: &Embedded, numbers: std::ops::Range<usize>) {
    for (index, table) in TABLES.into_iter().enumerate() {
        for number in numbers.clone() {
            let insert = Operation::insert(row(index, number));
            store.apply(&Batch::single(table, insert).unwrap()).await.unwrap();
        }
    }
}

pub(crate) async fn state(store: &Embedded) -> Result<State, Error> {
    let mut state = Vec::new();
    for table in TABLES {
        state.push(rows(store, table).await?);
    }
    Ok(state)
}

/// A store of two tables in which something was deleted, its rows, and its file.
pub(crate) fn original(runtime: &Runtime, path: &Path) -> (State, Vec<u8>) {
    let state = runtime.block_on(async {
        let store = Embedded::open(path).unwrap();
        for table in TABLES {
            store.tables(TableRequest::Create(table)).await.unwrap();
        }
        write(&store, 0..150).await;
        for number in (0..150).step_by(7) {
            let row = row(0, number);
            let delete =
                Operation::delete(row.partition_key(), row.row_key(), Condition::Any).unwrap();
            store.apply(&Batch::single("First", delete).unwrap()).await.unwrap();
        }
        state(&store).await.unwrap()
    });
    (state, fs::read(path).unwrap())
}

/// Reads an opened image: every row by scan and by point read, or the first error.
async fn look(path: &Path, verify_up_to: u64, expected: &State) -> Result<State, Error> {
    let store = Embedded::options().verify_files_up_to_bytes(verify_up_to).open(path)?;
    let found = state(&store).await?;
    for (table, rows) in TABLES.into_iter().zip(expected) {
        for row in rows {
            let (partition_key, row_key) = (row.partition_key(), row.row_key());
            let read = ReadRequest { table, partition_key, row_key, select: None };
            let point = store.read(read).await?;
            let scanned = found.iter().flatten().any(|found| Some(found) == point.as_ref());
            assert!(scanned || point.is_none(), "a point read and a scan differ");
        }
    }
    Ok(found)
}

/// How a store opens that image: its state, or an error that is clear.
fn outcome(
    runtime: &Runtime,
    path: &Path,
    verify_up_to: u64,
    expected: &State,
    what: &str,
) -> Option<State> {
    let looked =
        catch_unwind(AssertUnwindSafe(|| runtime.block_on(look(path, verify_up_to, expected))));
    match looked {
        Ok(Ok(state)) => Some(state),
        Ok(Err(error)) => {
            let text = error.to_string();
            assert!(error.is_corrupt() || error.is_unsupported(), "{what}: {error:?}");
            assert!(text.contains(".db"), "{what}: the error does not name the file: {text}");
            None
        }
        Err(_) => panic!("{what}: panicked"),
    }
}

/// Damages the file again and again; what opens has to be one of the states. How many opened.
fn damage(
    few: usize,
    verify_up_to: u64,
    seed: u64,
    mut spoil: impl FnMut(&mut Random, &mut Vec<u8>) -> String,
) -> (usize, usize) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image.db");
    let runtime = Runtime::new().unwrap();
    let (expected, bytes) = original(&runtime, &path);
    let mut random = Random(seed);
    let (mut opened, all) = (0, rounds(few, 20 * few));
    for round in 0..all {
        let mut image = bytes.clone();
        let what = format!("round {round}: {}", spoil(&mut random, &mut image));
        fs::write(&path, image).unwrap();
        if let Some(state) = outcome(&runtime, &path, verify_up_to, &expected, &what) {
            assert_eq!(state, expected, "{what}");
            opened += 1;
        }
    }
    (opened, all)
}

pub(crate) fn flip(random: &mut Random, image: &mut [u8]) -> String {
    let (at, bit) = (random.below(image.len()), random.below(8));
    image[at] ^= 1 << bit;
    format!("bit {bit} of byte {at} is flipped")
}

#[test]
fn a_flipped_bit_is_seen_or_does_no_harm() {
    let (opened, all) = damage(300, u64::MAX, 11, |random, image| flip(random, image));
    assert!(opened > 0 && opened < all, "{opened} of {all} images opened");
}

#[test]
fn a_flipped_bit_is_seen_in_the_rows_of_a_file_that_is_not_verified() {
    let (opened, all) = damage(300, 0, 12, |random, image| flip(random, image));
    assert!(opened > 0 && opened < all, "{opened} of {all} images opened");
}

#[test]
fn a_lost_page_is_seen_or_does_no_harm() {
    let lose = |random: &mut Random, image: &mut Vec<u8>| {
        let page = random.below(image.len() / PAGE);
        image[page * PAGE..][..PAGE].fill(0);
        format!("page {page} is lost")
    };
    damage(60, u64::MAX, 13, lose);
}

/// Bytes 2 and 3 of a page are the number of its entries. A store whose tables are hidden by damage is not
/// taken for an empty one, also if its pages are not verified.
#[test]
fn a_page_that_lists_no_tables_is_no_empty_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image.db");
    let runtime = Runtime::new().unwrap();
    let (expected, bytes) = original(&runtime, &path);
    let mut refused = 0;
    for page in 1..bytes.len() / PAGE {
        let mut image = bytes.clone();
        let list = &mut image[page * PAGE..][..PAGE];
        let name = b"entable.meta";
        if !list.windows(name.len()).any(|part| part == name) {
            continue;
        }
        list[2..4].fill(0);
        fs::write(&path, image).unwrap();
        let what = format!("page {page} lists no tables");
        match outcome(&runtime, &path, 0, &expected, &what) {
            // Pages of earlier commits are not needed any more.
            Some(state) => assert_eq!(state, expected, "{what}"),
            None => refused += 1,
        }
    }
    assert!(refused > 0, "the page that lists the tables is not found");
}

#[test]
fn a_file_that_is_cut_is_refused() {
    let cut = |random: &mut Random, image: &mut Vec<u8>| {
        let length = 1 + random.below(image.len() - 1);
        image.truncate(length);
        format!("the file ends at {length}")
    };
    let (opened, _) = damage(60, u64::MAX, 14, cut);
    assert_eq!(opened, 0, "files that were cut opened");
}

/// Between the two images is one commit of the engine and its sync, of which any part may have reached the disk.
#[test]
fn a_torn_commit_happened_or_did_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image.db");
    let torn = directory.path().join("torn.db");
    let runtime = Runtime::new().unwrap();
    let mut random = Random(15);
    let mut opened = 0;
    original(&runtime, &path);
    // With a journal, the engine would not sync each commit.
    let store = Embedded::options().journal_after_commits(None).open(&path).unwrap();
    let all = rounds(40, 800);
    // A busy machine makes some rounds too slowly. They are made again.
    for round in 0..10 * all {
        if opened == all {
            break;
        }
        let insert = |number: usize| {
            let insert = Operation::insert(row(0, number));
            let batch = Batch::single(TABLES[0], insert).unwrap();
            runtime.block_on(store.apply(&batch)).unwrap();
        };
        let start = Instant::now();
        insert(NEW_LAYOUTS + 2 * round);
        let before = (runtime.block_on(state(&store)).unwrap(), fs::read(&path).unwrap());
        // The mark of the commit before the torn one, which a crash leaves: the torn one was not acknowledged.
        fs::copy(path.with_extension("db.mark"), torn.with_extension("db.mark")).unwrap();
        insert(NEW_LAYOUTS + 2 * round + 1);
        let after = (runtime.block_on(state(&store)).unwrap(), fs::read(&path).unwrap());
        if start.elapsed() > Duration::from_millis(30) {
            // The store may have been idle, and made a commit of its own between.
            continue;
        }
        let mut image = after.1.clone();
        for page in 0..before.1.len().min(image.len()) / PAGE {
            if random.below(2) == 0 {
                let bytes = page * PAGE..(page + 1) * PAGE;
                image[bytes.clone()].copy_from_slice(&before.1[bytes]);
            }
        }
        fs::write(&torn, image).unwrap();
        let what = format!("round {round}");
        let found = outcome(&runtime, &torn, u64::MAX, &after.0, &what);
        let Some(found) = found else { panic!("{what}: a crash left a file that does not open") };
        assert!(found == before.0 || found == after.0, "{what}: neither before nor after");
        opened += 1;
    }
    assert!(opened > 0, "no round was quick enough");
}
