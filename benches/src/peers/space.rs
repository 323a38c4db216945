//! What stores take: bytes of a file, and memory.

use std::{os::unix::fs::MetadataExt, path::Path, process::Command};

use entable::{prelude::*, table::Writable};

use super::{
    load::Load,
    ours::{Entable, open_file},
    peer::{Employee, Peer, Promise},
    race::STARTS,
    sqlite::Sqlite,
};
use crate::{
    figure::{figure, note},
    memory,
};

const CHILD: &str = "peers-child-memory";

/// Prints the bytes of each store's files for an entity.
pub(super) fn print_held(folder: &Path, entities: u32) {
    for start in &STARTS {
        let [length, blocks] =
            held(&folder.join(start.peer)).map(|bytes| bytes / u64::from(entities));
        note(
            &format!("peers.bytes held per entity, {}", start.peer),
            format!("{blocks} in blocks, {length} in length"),
        );
    }
}

/// Returns the bytes of the files in a folder: their lengths, and the blocks that they take.
fn held(folder: &Path) -> [u64; 2] {
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().metadata().unwrap());
    files.fold([0, 0], |[length, blocks], file| [length + file.len(), blocks + file.blocks() * 512])
}

macro_rules! staff {
    ($(#[$table:meta])* $name:ident) => {
        #[derive(Debug, Clone, TableEntity)]
        $(#[$table])*
        struct $name {
            department: u32,
            id: u32,
            first_name: String,
            last_name: String,
            age: i32,
            email: String,
        }

        impl From<Employee> for $name {
            fn from(employee: Employee) -> Self {
                let Employee { department, id, first_name, last_name, age, email } = employee;
                Self { department, id, first_name, last_name, age, email }
            }
        }
    };
}

staff! {
    #[table(name = "Staff", partition_key = "dept_{department:04}", row_key = "empid_{id:08}")]
    Plain
}
staff! {
    #[table(
        name = "Staff",
        partition_key = "dept_{department:04}",
        row_key = "empid_{id:08}",
        index(ByEmail, row_key = "email_{email}", unique, only())
    )]
    Keyed
}

/// Prints how many times as many blocks as SQLite entable takes: without an index, with full copies, and with copies of
/// keys alone.
pub(super) fn compare_layouts(folder: &Path, entities: u32) {
    let at = |name: &str| {
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    };
    let employees = || (0..entities).map(Employee::new);
    let (plain, keyed) = (at("plain"), at("keyed"));
    fill::<Plain>(&plain, employees().map(Plain::from));
    fill::<Keyed>(&keyed, employees().map(Keyed::from));
    let (full, sqlite, indexed) = (at("full"), at("sqlite"), at("indexed"));
    run(Entable::open(&full, Promise::Relaxed), employees().collect());
    run(Sqlite::open_plain(&sqlite, Promise::Relaxed), employees().collect());
    run(Sqlite::open(&indexed, Promise::Relaxed), employees().collect());
    let blocks = |folder: &Path| held(folder)[1] as f64;
    let layouts = [
        ("plain row", &plain, &sqlite, "<= 1.2"),
        ("row with a full copy", &full, &indexed, "<= 2.7"),
        ("row with a copy of its keys", &keyed, &indexed, "<= 1.8"),
    ];
    for (name, ours, theirs, goal) in layouts {
        let name = format!("peers.blocks per {name}, to SQLite's");
        figure(&name, blocks(ours) / blocks(theirs), goal);
        let store = open_file(ours, Promise::Durable);
        crate::embedded::runtime().block_on(store.compact()).unwrap();
        drop(store);
        note(&format!("{name}, compacted"), format!("{:.3}", blocks(ours) / blocks(theirs)));
    }
}

fn run<P: Peer>(peer: P, employees: Vec<Employee>) {
    let runtime = crate::embedded::runtime();
    runtime.block_on(async {
        peer.load(employees, 8).await;
        peer.settle().await;
    });
}

fn fill<E: TableEntity + Writable>(folder: &Path, entities: impl Iterator<Item = E> + Send) {
    let store = open_file(folder, Promise::Relaxed);
    crate::embedded::runtime().block_on(async {
        let table: Table<E> = Client::builder().backend(store.clone()).build().unwrap().table();
        table.create().await.unwrap();
        table.bulk().insert_all(entities.collect::<Vec<_>>()).await.unwrap().into_result().unwrap();
        store.flush().await.unwrap();
    });
}

/// Prints the memory that each store takes for reads in a process of its own.
pub(super) fn print_memory(folder: &Path, entities: u32) {
    for start in &STARTS {
        let mut child = Command::new(std::env::current_exe().unwrap());
        let output = child
            .arg(CHILD)
            .arg(start.peer)
            .arg(folder)
            .arg(entities.to_string())
            .output()
            .unwrap();
        let mebibytes = String::from_utf8(output.stdout).unwrap();
        note(&format!("peers.memory for reads, MiB, {}", start.peer), mebibytes.trim());
    }
}

/// Says whether this process is one whose memory is measured.
pub(super) fn is_child(arguments: &[String]) -> bool {
    arguments.first().is_some_and(|what| what == CHILD)
}

/// Opens a store, reads from it, and prints how much memory that took.
pub(super) fn child(arguments: &[String]) {
    let [_, peer, folder, entities] = arguments else { return };
    let start = STARTS.iter().find(|start| start.peer == peer).unwrap();
    let before = memory::reset_peak().unwrap_or_default();
    let folder = Path::new(folder).join(peer);
    let mut racer = (start.open)(&folder, Promise::Durable, entities.parse().unwrap());
    for load in [Load::Get { tasks: 1 }, Load::Find, Load::Range(10_000)] {
        (0..load.pieces()).for_each(|piece| drop(racer.run(load, piece)));
    }
    println!("{:.1}", memory::peak_mebibytes().unwrap_or_default() - before);
}
