//! Counts the instructions of verbs with callgrind and compares them with budgets. Needs `valgrind`.
//!
//! Times depend on the machine, and small changes of a verb disappear in their noise. Counts of instructions are nearly
//! exact. The program fails if a count is more than 5 % above or below its budget, so a change that lowers a count lowers
//! the budget too. Copies of bytes are not counted, because the C library chooses their instructions by the processor.

use std::{
    hint::black_box,
    path::Path,
    process::{Command, Stdio},
};

use entable::{backend::EmbeddedOptions, prelude::*};
use futures_util::FutureExt;

use crate::{embedded::runtime, figure::note};

/// The argument of a process that callgrind watches. The name of the work follows.
const CHILD: &str = "instructions-of";
/// Rows that a range reads.
const RANGE: u32 = 100;
/// Entities in the table.
const ENTITIES: u32 = 2_000;
/// How far a count may be from its budget, in percent.
const TOLERANCE: u64 = 5;

/// A piece of work, and the instructions that it may take each time. Counted with glibc 2.36 on `x86_64`, by the compiler
/// that `rust-toolchain.toml` names.
struct Work {
    name: &'static str,
    /// The name of the function `run`, which callgrind looks for.
    function: &'static str,
    budget: u64,
    times: u32,
    run: fn(&Staff, u32),
}

const WORK: [Work; 5] = [
    Work { name: "get", function: "get", budget: 10_780, times: 2000, run: get },
    Work { name: "get by an index", function: "find", budget: 13_150, times: 2000, run: find },
    Work { name: "range of 100 rows", function: "range", budget: 643_800, times: 100, run: range },
    Work {
        name: "insert",
        function: "insert_plain",
        budget: 19_268,
        times: 2000,
        run: insert_plain,
    },
    Work {
        name: "insert with a copy",
        function: "insert_copied",
        budget: 43_360,
        times: 2000,
        run: insert_copied,
    },
];

#[derive(Debug, Clone, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByEmail, row_key = "email_{email}", unique)
)]
struct Employee {
    department: String,
    id: u32,
    first_name: String,
    last_name: String,
    age: i32,
    email: String,
}

#[derive(Debug, Clone, TableEntity)]
#[table(name = "Rooms", partition_key = "{building}", row_key = "{number:06}")]
struct Room {
    building: String,
    number: u32,
    name: String,
    seats: i32,
}

fn employee(id: u32) -> Employee {
    Employee {
        department: "Sales".into(),
        id,
        first_name: format!("First{id:06}"),
        last_name: format!("Last{id:06}"),
        age: 34,
        email: format!("person{id:06}@contoso.com"),
    }
}

/// A file with employees for reads, and a store in memory for writes: most instructions of a write to the file are the
/// engine's.
struct Staff {
    staff: Table<Employee>,
    written: Client,
}

impl Staff {
    fn open(file: &Path) -> Self {
        let store = EmbeddedOptions::new().open(file).unwrap();
        let staff: Table<Employee> = Client::builder().backend(store).build().unwrap().table();
        let written = Client::memory();
        runtime().block_on(async {
            staff.create().await.unwrap();
            let employees = (0..ENTITIES).map(employee);
            staff.bulk().insert_all(employees).await.unwrap().into_result().unwrap();
            written.table::<Employee>().create().await.unwrap();
            written.table::<Room>().create().await.unwrap();
        });
        Self { staff, written }
    }
}

// Neither store waits in these verbs, so no runtime is counted.

fn get(store: &Staff, n: u32) {
    let point = Employee::primary().department("Sales").id(n % ENTITIES);
    black_box(store.staff.get(point).now_or_never().unwrap().unwrap().unwrap());
}

fn find(store: &Staff, n: u32) {
    let email = format!("person{:06}@contoso.com", n % ENTITIES);
    let point = Employee::by_email().department("Sales").email(&email);
    black_box(store.staff.get(point).now_or_never().unwrap().unwrap().unwrap());
}

fn range(store: &Staff, n: u32) {
    let first = n * RANGE % ENTITIES;
    let path = Employee::primary().department("Sales").id_range(first..first + RANGE);
    let found = store.staff.query(path).collect().now_or_never().unwrap().unwrap();
    assert_eq!(black_box(found).len(), RANGE as usize);
}

fn insert_plain(store: &Staff, n: u32) {
    let room = Room { building: "North".into(), number: n, name: format!("Room {n:06}"), seats: 8 };
    black_box(store.written.table().insert(&room).now_or_never().unwrap().unwrap());
}

fn insert_copied(store: &Staff, n: u32) {
    black_box(store.written.table().insert(&employee(n)).now_or_never().unwrap().unwrap());
}

pub(crate) fn is_child(arguments: &[String]) -> bool {
    arguments.first().is_some_and(|argument| argument == CHILD)
}

/// Does the work that the arguments name.
pub(crate) fn child(arguments: &[String]) {
    let work = WORK.iter().find(|work| work.name == arguments[1]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let store = Staff::open(&directory.path().join("staff.db"));
    (0..work.times).for_each(|n| (work.run)(&store, n));
}

/// Counts the instructions of each work, and stops if one is not within its budget.
pub(crate) fn run() {
    let mut missed = Vec::new();
    for work in &WORK {
        let found = count(work) / u64::from(work.times);
        note(&format!("instructions: {}", work.name), format!("{found}, budget {}", work.budget));
        if 100 * found.abs_diff(work.budget) > TOLERANCE * work.budget {
            missed.push(format!("{} takes {found}, its budget is {}", work.name, work.budget));
        }
    }
    assert!(missed.is_empty(), "instructions over 5 % from their budgets: {missed:?}");
}

/// Counts the instructions of all times that the work is done, without those that copy bytes. What other threads do, and
/// what comes before and after the work, does not count.
fn count(work: &Work) -> u64 {
    let directory = tempfile::tempdir().unwrap();
    let profile = directory.path().join("profile");
    let counted = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet", "--collect-atstart=no"])
        .arg(format!("--toggle-collect=entable_benches::instructions::{}", work.function))
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(std::env::current_exe().unwrap())
        .args([CHILD, work.name])
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(counted.success());
    let table = Command::new("callgrind_annotate").arg("--threshold=100").arg(&profile).output();
    let table = String::from_utf8(table.unwrap().stdout).unwrap();
    table.lines().filter_map(instructions_of_line).sum()
}

/// Reads a line of a function, such as `1,234 ( 0.5%)  file.rs:function [program]`.
fn instructions_of_line(line: &str) -> Option<u64> {
    let (number, function) = line.trim_start().split_once(" (")?;
    let is_copy = ["memcpy", "memmove", "memset"].iter().any(|name| function.contains(name));
    let is_sum = function.contains("PROGRAM TOTALS");
    if is_copy || is_sum {
        return None;
    }
    number.replace(',', "").parse().ok()
}
