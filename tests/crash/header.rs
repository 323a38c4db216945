//! Tests flipped bits in the header of a file that a kill left: with the mark, no acknowledged commit is missing
//! silently. Also measures how often the engine alone goes back, with commits of one phase and of two.

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

use entable::{
    Batch, Operation,
    backend::{Backend, Embedded},
};
use redb::{Database, ReadableDatabase, TableDefinition};
use tokio::runtime::Runtime;

use crate::{
    image::{State, TABLES, original, row, state},
    rounds,
};

/// Bytes of the header. The rest of its page is not used.
const HEADER: usize = 320;

/// What came of the files.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcomes {
    newest: usize,
    refused: usize,
    /// Opened at the commit before the newest one.
    older: usize,
}

impl Outcomes {
    fn count(&mut self, found: Option<bool>) {
        match found {
            Some(true) => self.newest += 1,
            Some(false) => self.older += 1,
            None => self.refused += 1,
        }
    }
}

/// Returns whether the file opens with all rows; `None` if it is refused.
fn look(runtime: &Runtime, path: &Path, before: &State, after: &State, what: &str) -> Option<bool> {
    match Embedded::open(path) {
        Ok(store) => {
            let found = runtime.block_on(state(&store)).unwrap();
            assert!(found == *before || found == *after, "{what}: neither before nor after");
            Some(found == *after)
        }
        Err(error) => {
            let is_clear = error.is_rolled_back() || error.is_corrupt() || error.is_unsupported();
            assert!(is_clear, "{what}: {error:?}");
            None
        }
    }
}

#[test]
fn a_flipped_bit_in_the_header_after_a_kill_hides_no_commit() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image.db");
    let mark = path.with_extension("db.mark");
    let runtime = Runtime::new().unwrap();
    original(&runtime, &path);
    let store = Embedded::open(&path).unwrap();
    let mut states = Vec::new();
    for number in [1000, 1001] {
        let batch = Batch::single(TABLES[0], Operation::insert(row(0, number))).unwrap();
        runtime.block_on(store.apply(&batch)).unwrap();
        // What a kill leaves.
        let files = (fs::read(&path).unwrap(), fs::read(&mark).unwrap());
        states.push((runtime.block_on(state(&store)).unwrap(), files));
    }
    drop(store);
    let (before, after) = (&states[0].0, &states[1].0);
    let (image, newest_mark) = &states[1].1;
    let mut outcomes = [Outcomes::default(), Outcomes::default()];
    let bits = HEADER * 8;
    let step = bits / rounds(64, bits);
    for bit in (0..bits).step_by(step).map(|bit| bit + bit / 8 % step) {
        let mut image = image.clone();
        image[bit / 8] ^= 1 << (bit % 8);
        for (has_mark, outcomes) in [false, true].into_iter().zip(&mut outcomes) {
            fs::write(&path, &image).unwrap();
            if has_mark {
                fs::write(&mark, newest_mark).unwrap();
            } else {
                let _ = fs::remove_file(&mark);
            }
            let what = format!("bit {bit}, with a mark: {has_mark}");
            outcomes.count(look(&runtime, &path, before, after, &what));
        }
    }
    let [without, with] = outcomes;
    println!("header after a kill, without a mark: {without:?}, with a mark: {with:?}");
    assert!(without.older > 0, "{without:?}");
    assert_eq!(with.older, 0, "{with:?}");
    assert_eq!(with.newest, without.newest, "the mark refused a file with all rows");
}

const VALUES: TableDefinition<'_, u64, u64> = TableDefinition::new("values");

/// Returns the file that a kill leaves after commits of 1 and 2, of one or two phases.
fn killed(path: &Path, is_two_phase: bool) -> Vec<u8> {
    let database = Database::create(path).unwrap();
    for value in [1, 2] {
        let mut transaction = database.begin_write().unwrap();
        transaction.set_two_phase_commit(is_two_phase);
        transaction.open_table(VALUES).unwrap().insert(0, value).unwrap();
        transaction.commit().unwrap();
    }
    fs::read(path).unwrap()
}

/// Opens a file with the engine alone. Returns the value, or `None` if the file does not open.
fn open_value(path: &Path) -> Option<u64> {
    let open = || {
        let database = Database::open(path).ok()?;
        let transaction = database.begin_read().ok()?;
        let value = transaction.open_table(VALUES).ok()?.get(0).ok()??;
        Some(value.value())
    };
    catch_unwind(AssertUnwindSafe(open)).ok().flatten()
}

/// `docs/embedded-format.md` has these counts, of which the decision for a mark and against two phases came.
#[test]
fn two_phases_leave_flips_that_go_back_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("engine.db");
    let [one, two] = [false, true].map(|is_two_phase| {
        let _ = fs::remove_file(&path);
        let image = killed(&path, is_two_phase);
        let mut outcomes = Outcomes::default();
        let bits = HEADER * 8;
        // The byte of flags, and some of the others.
        let others = (0..bits).step_by(bits / rounds(256, bits));
        for bit in (9 * 8..10 * 8).chain(others.filter(|bit| bit / 8 != 9)) {
            let mut image = image.clone();
            image[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &image).unwrap();
            outcomes.count(open_value(&path).map(|value| value == 2));
        }
        outcomes
    });
    println!("header after a kill, one phase: {one:?}, two phases: {two:?}");
    assert!(one.older > two.older, "one phase: {one:?}, two phases: {two:?}");
    assert!(two.older > 0, "two phases alone would be enough: {two:?}");
}
