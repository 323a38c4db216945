//! The race: entable's store in a file and what a program could take instead, with the same entities and loads.
//!
//! Stores take turns, piece by piece in an order that rotates, so that whatever else the machine does hits all of them.

mod load;
mod native;
mod ours;
mod output;
mod peer;
mod plot;
mod race;
mod raw;
mod slow;
mod space;
mod sqlite;

use std::path::Path;

use self::{
    load::{Load, TASKS},
    peer::Promise,
    race::{Field, Outcome, race_cold},
};
use crate::{Size, figure::note};

/// Entities of a store while reads are measured.
const ENTITIES: u32 = 40_000;
/// Entities of the long part.
const MANY: u32 = 1_000_000;

/// Prints all figures, and draws them into the file `svg`.
pub(crate) fn run(size: Size, svg: Option<&Path>) {
    print_conditions();
    let folder = tempfile::tempdir().unwrap();
    let durable = folder.path().join("durable");
    let mut outcomes = run_field(&durable, Promise::Durable);
    outcomes.extend(run_field(&folder.path().join("relaxed"), Promise::Relaxed));
    space::compare_layouts(folder.path(), ENTITIES);
    slow::run(folder.path());
    if size >= Size::Large {
        run_large(&folder.path().join("large"));
    }
    if let Some(svg) = svg {
        std::fs::write(svg, plot::draw(&outcomes)).unwrap();
    }
}

fn print_conditions() {
    note("peers.durable", "a write is on disk before it returns. SQLite: WAL, synchronous FULL");
    note(
        "peers.relaxed",
        "entable: a crash loses at most the last 100 ms. SQLite, WAL with synchronous NORMAL: a power failure loses \
         all since the last checkpoint, a crash of the process nothing. redb, Durability::None: a crash loses all \
         since the last durable commit. native_db is always durable",
    );
    note("peers.64 tasks", "SQLite's one connection is behind a mutex");
}

/// Runs every load with one promise; reads, which are the same with both, with the durable stores alone.
fn run_field(folder: &Path, promise: Promise) -> Vec<Outcome> {
    let mut field = Field::open(folder, promise, 0);
    let mut outcomes = Vec::new();
    let mut race = |field: &mut Field, name: &str, load| {
        let raced = field.race(name, load);
        output::print(&raced);
        outcomes.extend(raced);
    };
    let named = |name: &str| format!("{} {name}", promise.word());
    race(&mut field, &named("bulk load"), Load::Bulk { tasks: 1 });
    race(&mut field, &named("bulk load, 8 at a time"), Load::Bulk { tasks: 8 });
    field.fill(ENTITIES);
    if promise == Promise::Durable {
        drop(field);
        space::print_held(folder, ENTITIES);
        space::print_memory(folder, ENTITIES);
        output::print_each(race_cold(folder, ENTITIES));
        field = Field::open(folder, promise, ENTITIES);
        for (name, load) in READS {
            race(&mut field, name, load);
        }
    }
    for (name, load) in WRITES {
        race(&mut field, &named(name), load);
    }
    outcomes
}

const READS: [(&str, Load); 5] = [
    ("point read", Load::Get { tasks: 1 }),
    ("point read, 64 tasks", Load::Get { tasks: TASKS }),
    ("read by index", Load::Find),
    ("range of 100", Load::Range(100)),
    ("range of 10000", Load::Range(10_000)),
];

const WRITES: [(&str, Load); 4] = [
    ("insert", Load::Insert { tasks: 1 }),
    ("insert, 64 tasks", Load::Insert { tasks: TASKS }),
    ("change of an index key", Load::Change),
    ("mix of 95 reads and 5 changes", Load::Mixed),
];

/// Reads among a million entities.
fn run_large(folder: &Path) {
    let mut field = Field::open(folder, Promise::Durable, 0);
    field.fill(MANY);
    drop(field);
    space::print_held(folder, MANY);
    let mut field = Field::open(folder, Promise::Durable, MANY);
    for (name, load) in READS {
        output::print(&field.race(&format!("{name} among 1000000"), load));
    }
}

/// Says whether this process is one that a figure starts.
pub(crate) fn is_child(arguments: &[String]) -> bool {
    slow::is_child(arguments) || space::is_child(arguments)
}

/// Does the work of such a process.
pub(crate) fn child(arguments: &[String]) {
    if slow::is_child(arguments) {
        return slow::child(arguments);
    }
    space::child(arguments);
}
