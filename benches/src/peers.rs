//! Typed reads beside those of `native_db`, a typed store on the same engine: both from a file, the same
//! entities, one current-thread runtime.

use std::{hint::black_box, ops::Range, path::Path};

use entable::{backend::EmbeddedOptions, prelude::*};
use native_db::{Builder, Database, Models, ToKey, native_db};
use native_model::{Model, native_model};
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;

use crate::figure::{figure, in_pieces, note};

/// Entities in both stores.
const ENTITIES: u32 = 40_000;
/// Entities of a partition.
const PARTITION: u32 = 1_000;
/// Point reads of a measurement.
const GETS: usize = 40_000;
/// Ranges of a measurement.
const SCANS: usize = 2_000;
/// Entities of a range.
const RANGE: u32 = 100;
/// Pieces in which a measurement is done, in turns with the other store.
const PIECES: usize = 40;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "dept_{department:04}",
    row_key = "empid_{id:08}",
    index(ByEmail, row_key = "email_{email}", unique)
)]
struct Employee {
    department: u32,
    id: u32,
    first_name: String,
    last_name: String,
    age: i32,
    email: String,
}

/// The same entity, as a program with `native_db` would declare it: its number alone is the key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[native_model(id = 1, version = 1)]
#[native_db]
struct Person {
    department: u32,
    #[primary_key]
    id: u32,
    first_name: String,
    last_name: String,
    age: i32,
    #[secondary_key(unique)]
    email: String,
}

impl Employee {
    fn new(id: u32) -> Self {
        Self {
            department: id / PARTITION,
            id,
            first_name: format!("First{}", id % 977),
            last_name: format!("Last{}", id % 1009),
            age: i32::try_from(20 + id % 50).unwrap(),
            email: format!("person{id}@contoso.com"),
        }
    }
}

impl Person {
    fn new(id: u32) -> Self {
        let Employee { department, id, first_name, last_name, age, email } = Employee::new(id);
        Self { department, id, first_name, last_name, age, email }
    }
}

/// Prints all figures.
pub(crate) fn run() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let staff = fill_ours(&runtime, &directory.path().join("ours.db"));
    let models = {
        let mut models = Models::new();
        models.define::<Person>().unwrap();
        models
    };
    let theirs = fill_theirs(&models, &directory.path().join("theirs.db"));
    let ids = |count: usize, below: u32| -> Vec<u32> { numbers(below).take(count).collect() };

    let points = ids(GETS, ENTITIES);
    let slice = |piece: usize| &points[piece * GETS / PIECES..(piece + 1) * GETS / PIECES];
    let (ours, own) = in_pieces(
        PIECES,
        |piece| runtime.block_on(gets(&staff, slice(piece))),
        |piece| their_gets(&theirs, slice(piece)),
    );
    figure(
        "peers.point read, time to native_db's",
        ours.as_secs_f64() / own.as_secs_f64(),
        "<= 1.2",
    );
    note("peers.point read, nanoseconds", ours.as_nanos() / GETS as u128);

    let starts = ids(SCANS, ENTITIES / RANGE);
    let slice = |piece: usize| &starts[piece * SCANS / PIECES..(piece + 1) * SCANS / PIECES];
    let (ours, own) = in_pieces(
        PIECES,
        |piece| runtime.block_on(scans(&staff, slice(piece))),
        |piece| their_scans(&theirs, slice(piece)),
    );
    figure(
        "peers.range of 100, time to native_db's",
        ours.as_secs_f64() / own.as_secs_f64(),
        "<= 1.8",
    );
    note(
        "peers.range of 100, nanoseconds a row",
        ours.as_nanos() / (SCANS as u128 * u128::from(RANGE)),
    );
}

fn numbers(below: u32) -> impl Iterator<Item = u32> {
    let mut state = 7_u64;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        u32::try_from(state >> 33).unwrap() % below
    })
}

fn fill_ours(runtime: &Runtime, path: &Path) -> Table<Employee> {
    let store = EmbeddedOptions::new().open(path).unwrap();
    let staff: Table<Employee> = Client::builder().backend(store).build().unwrap().table();
    runtime.block_on(async {
        staff.create().await.unwrap();
        let all = (0..ENTITIES).map(Employee::new);
        staff.bulk().insert_all(all).await.unwrap().into_result().unwrap();
    });
    staff
}

fn fill_theirs<'m>(models: &'m Models, path: &Path) -> Database<'m> {
    let database = Builder::new().create(models, path).unwrap();
    for from in (0..ENTITIES).step_by(100) {
        let transaction = database.rw_transaction().unwrap();
        for id in from..from + 100 {
            transaction.insert(Person::new(id)).unwrap();
        }
        transaction.commit().unwrap();
    }
    database
}

async fn gets(staff: &Table<Employee>, ids: &[u32]) {
    for &id in ids {
        let point = Employee::primary().department(id / PARTITION).id(id);
        let found = staff.get(point).await.unwrap().unwrap();
        assert_eq!(black_box(found).id, id);
    }
}

fn their_gets(database: &Database<'_>, ids: &[u32]) {
    for &id in ids {
        let transaction = database.r_transaction().unwrap();
        let found: Person = transaction.get().primary(id).unwrap().unwrap();
        assert_eq!(black_box(found).id, id);
    }
}

/// The ids of a range, all of one partition.
fn ids_of_range(number: u32) -> Range<u32> {
    number * RANGE..(number + 1) * RANGE
}

async fn scans(staff: &Table<Employee>, numbers: &[u32]) {
    for &number in numbers {
        let ids = ids_of_range(number);
        let path = Employee::primary().department(ids.start / PARTITION).id_range(ids);
        let found = staff.query(path).collect().await.unwrap();
        assert_eq!(black_box(found).len(), 100);
    }
}

fn their_scans(database: &Database<'_>, numbers: &[u32]) {
    for &number in numbers {
        let ids = ids_of_range(number);
        let transaction = database.r_transaction().unwrap();
        let scan = transaction.scan().primary::<Person>().unwrap();
        let range = scan.range(ids).unwrap();
        let found: Vec<Person> = range.collect::<Result<_, _>>().unwrap();
        assert_eq!(black_box(found).len(), 100);
    }
}
