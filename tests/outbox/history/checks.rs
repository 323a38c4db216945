//! Runs histories with checks, repairs and rebuilds beside writers and workers, while copies are
//! removed, changed and forged. No check reports a copy that is right, and in the end every copy is
//! right.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use entable::{Condition, Guard, prelude::*};
use tokio::time::sleep;

use super::{
    Employee, FLIGHT, LEASE, World, finish, found,
    seeds::{first_wrong, is_long, play, seeds},
    store::{Random, Shared, VirtualClock, Way},
    wanted, write,
};

/// Table, PartitionKey and RowKey of copies that were damaged.
type Damaged = Arc<Mutex<BTreeSet<(String, String, String)>>>;

/// Removes a copy, changes one, or makes one up, now and then.
async fn damage(client: Client, mut random: Random, damaged: Damaged) {
    for _ in 0..random.below(12) {
        sleep(Duration::from_millis(random.below(30_000))).await;
        let department = ["P", "Q"][random.below(2) as usize];
        let id = random.below(2) as u8;
        let email = ["a", "b", "c"][random.below(3) as usize];
        let team = ["x", "y"][random.below(2) as usize];
        let (table, partition_key, row_key, kind) = match random.below(2) {
            0 => ("Staff", format!("email_{email}"), format!("at_{department}_{id:03}"), "ByEmail"),
            _ => ("Teams", team.to_owned(), format!("{department}_{id:06}"), "ByTeam"),
        };
        damaged.lock().unwrap().insert((table.into(), partition_key.clone(), row_key.clone()));
        let rows = client.dynamic(table);
        if random.below(2) == 0 {
            drop(rows.delete(&partition_key, &row_key, Condition::Any).await);
            continue;
        }
        let there = rows.get(&partition_key, &row_key).await.unwrap().map(Stored::into_inner);
        let mut row = there.unwrap_or_else(|| {
            DynamicEntity::new(&partition_key, &row_key)
                .with_framework_names()
                .with("EntityType", format!("Employee#{kind}"))
                .with("Src", "W/\"1\"")
                .with("Visits", 0)
                .with("Team", team)
                .with("Email", email)
        });
        if kind == "ByTeam" {
            row.set("SrcP", department);
            row.set("SrcR", format!("empid_{id:03}"));
            row.set("SrcT", "Staff");
            row.set("Email", format!("wrong{}", random.below(3)));
            row.remove("Visits");
            row.remove("Team");
        } else {
            row.set("Team", format!("wrong{}", random.below(3)));
            row.remove("Email");
        }
        drop(rows.insert_or_replace(&row).await);
    }
}

/// Returns the findings of a check about rows that were never damaged.
async fn mend(client: Client, mut random: Random, damaged: Damaged) -> Result<(), String> {
    let staff = client.table::<Employee>();
    loop {
        sleep(Duration::from_millis(random.below(20_000))).await;
        if random.below(4) == 0 {
            drop(staff.rebuild(Employee::by_team()).await);
        }
        let Ok(report) = staff.check().await else { continue };
        for finding in &report.findings {
            let (table, partition_key) = (finding.table.clone(), finding.partition_key.clone());
            let place = (table, partition_key, finding.row_key.clone());
            if !damaged.lock().unwrap().contains(&place) {
                return Err(format!("{finding:?} is no mistake"));
            }
        }
        drop(report.repair().await);
    }
}

/// Writes to several partitions at once, which registers for them together.
async fn load(staff: Table<Employee>, mut random: Random) {
    for _ in 0..3 {
        sleep(Duration::from_millis(random.below(120_000))).await;
        let email = ["a", "b", "c"][random.below(3) as usize];
        let all = [("P", 0), ("P", 1), ("Q", 0), ("Q", 1)].map(|(department, id)| Employee {
            department: department.into(),
            id,
            email: email.into(),
            team: "x".into(),
            visits: 0,
        });
        drop(staff.bulk().insert_all(all).await);
    }
}

async fn history(seed: u64, without: Option<Guard>) -> Result<(), String> {
    let clock = Arc::new(VirtualClock::new());
    let world = World { shared: Shared::new(seed, clock.clone()), clock, seed, without };
    let quiet = world.client("quiet", 0, None);
    quiet.table::<Employee>().create().await.unwrap();
    quiet.create_table("EntableDirectory").await.unwrap();
    // In one of three histories nothing is damaged: no finding is true.
    let (is_narrow, is_damaged) = (seed % 2 == 1, !seed.is_multiple_of(3));
    world.shared.trouble(Some(if is_narrow { 10 } else { 24 }));
    let (mut random, damaged) = (Random(seed ^ 0x6d65_6e64), Damaged::default());
    let own = |number: u64| Random(seed.wrapping_mul(31).wrapping_add(number));
    let mut actors = Vec::new();
    for (number, name) in [(1, "first"), (2, "second")] {
        let lives = (random.below(3) == 0).then(|| random.below(40));
        let staff = world.client(name, number, lives).table();
        let mut own = own(number);
        actors.push(tokio::spawn(async move {
            for _ in 0..4 {
                sleep(Duration::from_millis(own.below(60_000))).await;
                write(staff.clone(), own.clone(), is_narrow).await;
                own.below(2);
            }
        }));
    }
    if !is_narrow {
        let staff = world.client("loader", 3, None).table();
        actors.push(tokio::spawn(load(staff, own(3))));
    }
    let lives = (random.below(3) == 0).then(|| random.below(80));
    let worker = world.client("worker", 4, lives).worker();
    let worker = worker.with::<Employee>().interval(Duration::from_secs(5));
    let time = Duration::from_secs(random.below(500));
    actors.push(tokio::spawn(async move { worker.run(sleep(time)).await }));
    if is_damaged {
        let way = Way::new(&world.shared, "vandal", None).reading_well();
        actors.push(tokio::spawn(damage(world.client_by(way, 6), own(6), damaged.clone())));
    }
    let way = Way::new(&world.shared, "mender", None).reading_well();
    let mender = mend(world.client_by(way, 5), own(5), damaged);
    let outcome = tokio::time::timeout(Duration::from_secs(600), mender).await;
    actors.iter().for_each(tokio::task::JoinHandle::abort);
    world.shared.trouble(None);
    while world.shared.late() > 0 {
        sleep(Duration::from_secs(1)).await;
    }
    let wrong = match outcome {
        Ok(outcome) => outcome,
        Err(_) => end(&world, &quiet).await,
    };
    wrong.map_err(|wrong| format!("{wrong}\n{}", world.shared.log.lock().unwrap().join("\n")))
}

/// Repairs until nothing is wrong any more.
async fn end(world: &World, quiet: &Client) -> Result<(), String> {
    for _ in 0..2 {
        let worker = world.client("last", 80, None).worker().with::<Employee>();
        worker.drain().await.map_err(|error| error.to_string())?;
        sleep(FLIGHT + LEASE).await;
        worker.drain().await.map_err(|error| error.to_string())?;
        let repaired = quiet.table::<Employee>().check().repair().await;
        repaired.map_err(|error| error.to_string())?;
    }
    finish(world, quiet).await?;
    let report = quiet.table::<Employee>().check().await.map_err(|error| error.to_string())?;
    let (found, wanted) = (found(quiet).await, wanted(quiet).await);
    if found == wanted && report.is_clean() && report.progress.suspects == 0 {
        return Ok(());
    }
    Err(format!("{report:?}: found {found:#?}, wanted {wanted:#?}"))
}

fn run(seed: u64, without: Option<Guard>) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(history(seed, without))
}

#[test]
fn no_check_reports_what_is_right_and_all_is_mended() {
    play(&seeds(&[], 100, 20_000), |seed| run(seed, None));
}

fn failing(guard: Guard, known: u64) -> Option<u64> {
    let most = if is_long() { 20_000 } else { 2_000 };
    first_wrong(known, most, |seed| run(seed, Some(guard)))
}

#[test]
fn a_check_looks_at_open_work() {
    let seed = failing(Guard::CheckOpenWork, 0);
    println!("CheckOpenWork: seed {seed:?}");
    assert!(seed.is_some(), "no history needs it");
}

#[test]
fn a_check_reports_only_what_was_so_a_flight_before() {
    let seed = failing(Guard::CheckTwice, 78);
    println!("CheckTwice: seed {seed:?}");
    assert!(seed.is_some(), "no history needs it");
}
