//! Runs histories of unique values whose entities' tables are deleted and created again, while writers and
//! workers go on and requests arrive late.
//!
//! A deleted table takes its claims, fences and open work along. While it goes on no two entities have one
//! value. Afterwards a newcomer gets every value that no entity has, and no other.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use entable::{Guard, prelude::*};
use tokio::time::sleep;

use super::{
    FLIGHT, LEASE, World,
    seeds::{first_wrong, is_long, play, seeds},
    store::{Random, Shared, VirtualClock, WATCHER, Way},
};

const TABLES: [&str; 2] = ["Staff", "Guests"];

const BADGES: [&str; 3] = ["x", "y", "z"];

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id}",
    index(ByBadge, table = "Badges", partition_key = "{badge}", row_key = "is", unique)
)]
struct Person {
    department: String,
    id: u8,
    badge: String,
    visits: u8,
}

async fn write(tables: [Table<Person>; 2], mut random: Random) {
    let mut known: Vec<(usize, Stored<Person>)> = Vec::new();
    for _ in 0..8 {
        let at = random.below(2) as usize;
        let staff = &tables[at];
        let badge = BADGES[random.below(3) as usize];
        let (id, visits) = (random.below(2) as u8, random.below(3) as u8);
        let one = Person { department: "P".to_owned(), id, badge: badge.to_owned(), visits };
        let point = Person::primary().department("P").id(id);
        match random.below(8) {
            0..3 => known.extend(staff.insert(&one).await.ok().map(|stored| (at, stored))),
            3 => known.extend(staff.insert_or_replace(&one).await.ok().map(|stored| (at, stored))),
            4 => drop(staff.delete_at(point).await),
            5 => drop(staff.patch_at(point, Person::patch().badge(badge)).await),
            6 => drop(staff.patch_at(point, Person::patch().visits(visits)).await),
            _ if !known.is_empty() => {
                let nth = random.below(known.len() as u64) as usize;
                let (at, stored) = &mut known[nth];
                (stored.badge, stored.visits) = (badge.to_owned(), visits);
                drop(tables[*at].replace(stored).await);
            }
            _ => {}
        }
        let pause = random.pause(2_000);
        sleep(pause).await;
    }
}

/// Deletes a table and creates it again, some time later, again and again.
async fn delete_tables(client: Client, way: Way, mut random: Random) {
    for _ in 0..6 {
        let pause = random.pause(4_000);
        sleep(pause).await;
        let table = TABLES[random.below(2) as usize];
        client.delete_table(table).await.unwrap();
        way.say(&format!("{table} is deleted"));
        let pause = random.pause(800);
        sleep(pause).await;
        client.create_table(table).await.unwrap();
        way.say(&format!("{table} is created again"));
    }
}

/// Returns the owner of each value; fails if two entities have one, or a value of an entity is not reserved
/// for it.
async fn held(quiet: &Client) -> Result<BTreeMap<String, String>, String> {
    let mut reserved = BTreeMap::new();
    let rows = quiet.dynamic("Badges").query(Filter::parse("RowKey eq 'is'").unwrap());
    for row in rows.allow_scan().collect().await.unwrap() {
        let from = row.str("SrcF").unwrap_or_default().replace(['"', ',', '[', ']'], " ");
        let owner = ["SrcT", "SrcP", "SrcR"].map(|name| row.str(name).unwrap()).join("   ");
        reserved.insert(row.partition_key().to_owned(), format!("{owner}; {from}"));
    }
    let mut held = BTreeMap::new();
    for table in TABLES {
        let rows = quiet.dynamic(table).query(Keys::partition("P").prefix("empid_"));
        let rows = match rows.collect().await {
            Err(error) if error.is_not_found() => Vec::new(),
            rows => rows.unwrap(),
        };
        for row in rows {
            let badge = row.str("Badge").unwrap().to_owned();
            let place = format!("{table}   P   {}", row.row_key());
            let of = reserved.get(&badge);
            if !of.is_some_and(|of| of.contains(&place)) {
                return Err(format!("{badge} of {place} is reserved for {of:?}"));
            }
            if let Some(other) = held.insert(badge.clone(), place.clone()) {
                return Err(format!("{badge} is of {other} and of {place}"));
            }
        }
    }
    Ok(held)
}

async fn watch(quiet: Client, wrong: Arc<Mutex<Option<String>>>) {
    loop {
        if let Err(found) = held(&quiet).await {
            wrong.lock().unwrap().get_or_insert(found);
        }
        sleep(Duration::from_secs(1)).await;
    }
}

async fn history(seed: u64, without: Option<Guard>) -> Result<(), String> {
    let clock = Arc::new(VirtualClock::new());
    let world = World { shared: Shared::new(seed, clock.clone()), clock, seed, without };
    let quiet = world.client("quiet", 0, None);
    let tables_of = |client: &Client| TABLES.map(|name| client.table_named::<Person>(name));
    for table in TABLES.into_iter().chain(["Badges", "EntableDirectory"]) {
        quiet.create_table(table).await.unwrap();
    }
    world.shared.trouble(Some(12));
    let mut random = Random(seed);
    let wrong = Arc::new(Mutex::new(None));
    let watcher = world.client(WATCHER, 80, None);
    let mut actors = vec![tokio::spawn(watch(watcher.clone(), wrong.clone()))];
    let way = Way::new(&world.shared, "deletion", None);
    actors.push(tokio::spawn(delete_tables(watcher, way, Random(seed.wrapping_mul(17)))));
    for number in 1..=3 {
        let lives = (random.below(3) == 0).then(|| random.below(50));
        let client = world.client(["", "first", "second", "third"][number as usize], number, lives);
        let own = Random(seed.wrapping_mul(31).wrapping_add(number));
        actors.push(tokio::spawn(write(tables_of(&client), own)));
    }
    for number in 4..=5 {
        let client = world.client(["worker", "helper"][number as usize - 4], number, None);
        let worker = client.worker().with::<Person>().interval(Duration::from_secs(2));
        let time = Duration::from_secs(random.below(300));
        actors.push(tokio::spawn(async move { worker.run(sleep(time)).await }));
    }
    // The dead never come to an end.
    sleep(Duration::from_secs(400)).await;
    actors.iter().for_each(tokio::task::JoinHandle::abort);
    world.shared.trouble(None);
    while world.shared.late() > 0 {
        sleep(Duration::from_secs(1)).await;
    }
    let mut report = wrong.lock().unwrap().take().map_or(Ok(()), Err);
    if report.is_ok() {
        report = finish(&world, &quiet).await;
    }
    report.map_err(|wrong| {
        let log = world.shared.log.lock().unwrap().join("\n");
        format!("{wrong}\n{log}")
    })
}

/// Workers do what is left; then a newcomer gets every value that no entity has.
async fn finish(world: &World, quiet: &Client) -> Result<(), String> {
    for table in TABLES {
        quiet.create_table_if_not_exists(table).await.unwrap();
    }
    for number in 0..5 {
        let worker = world.client("last", 90 + number, None).worker().with::<Person>();
        worker.drain().await.map_err(|error| error.to_string())?;
        sleep(FLIGHT + LEASE).await;
    }
    let held_before = held(quiet).await?;
    let staff = quiet.table::<Person>();
    for (id, badge) in (10..).zip(BADGES) {
        let one = Person { department: "P".to_owned(), id, badge: badge.to_owned(), visits: 0 };
        match (staff.insert(&one).await, held_before.get(badge)) {
            (Ok(_), None) => {}
            (Err(error), Some(_)) if error.is_unique_violation() => {}
            (answer, holder) => {
                let answer = answer.map(drop);
                return Err(format!("{badge} of {holder:?}: a newcomer's answer is {answer:?}"));
            }
        }
    }
    quiet.wait_for_copies().await;
    held(quiet).await.map(drop)
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
fn values_are_unique_although_tables_are_deleted_and_created_again() {
    play(&seeds(&[], 150, 30_000), |seed| run(seed, None));
}

#[test]
fn a_transaction_deletes_its_claim_although_tables_are_deleted() {
    let most = if is_long() { 30_000 } else { 4_000 };
    let guard = Guard::ClaimInTransaction;
    let seed = first_wrong(0, most, |seed| run(seed, Some(guard)));
    println!("{guard:?}: seed {seed:?}");
    assert!(seed.is_some(), "no history needs it");
}
