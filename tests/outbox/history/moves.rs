//! Runs histories of entities that move to and fro, beside writers that do not know moves, and of
//! messages whose handlers count.

use std::{collections::BTreeSet, sync::Arc, sync::Mutex, time::Duration};

use entable::{Context, Guard, Worker, prelude::*};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::{
    Employee, FLIGHT, LEASE, World,
    seeds::{first_wrong, is_long, play, seeds},
    store::{Random, Shared, VirtualClock},
};

#[derive(Debug, Clone, TableEntity)]
#[table(name = "Counts", partition_key = "{place}", row_key = "count_{id}")]
struct Count {
    place: String,
    id: u8,
    value: i64,
}

#[derive(Debug, Serialize, Deserialize, Message)]
struct Add {
    id: u8,
}

const PLACES: [&str; 3] = ["P", "Q", "R"];

/// Marks of writers who know nothing of moves, by entity: which of them were acknowledged.
type Marks = Arc<Mutex<BTreeSet<(u8, String)>>>;

async fn travel(client: Client, mut random: Random, name: &'static str, marks: Marks) {
    let staff = client.table::<Employee>();
    for step in 0..6 {
        let id = random.below(2) as u8;
        let place = PLACES[random.below(3) as usize];
        let at = Employee::primary().department(place).id(id);
        if random.below(2) == 0 {
            let mark = format!("Mark{name}{step}");
            let rows = client.dynamic("Staff");
            if let Ok(Some(mut row)) = rows.get(place, &format!("empid_{id:03}")).await {
                row.set(&mark, true);
                if rows.patch(&row).await.is_ok() {
                    marks.lock().unwrap().insert((id, mark));
                }
            }
        } else if let Ok(Some(mut stored)) = staff.get(at).await {
            stored.department = PLACES[random.below(3) as usize].to_owned();
            if let Ok(moving) = staff.move_to(&stored, &staff).await {
                drop(moving);
            }
        }
        let pause = random.pause(3_000);
        sleep(pause).await;
    }
}

async fn add(cx: Context, message: Add) -> Result<(), BoxError> {
    let table = cx.client().table::<Count>();
    let point = Count::primary().place("sum").id(message.id);
    let mut egt = table.transaction();
    match table.get(point).await? {
        Some(mut count) => {
            count.value += 1;
            egt.replace(&count)?;
        }
        None => {
            egt.insert(&Count { place: "sum".into(), id: message.id, value: 1 })?;
        }
    }
    cx.once(egt).await?;
    Ok(())
}

/// Emits messages beside a row for each, which tells afterwards what was committed.
async fn emit(client: Client, name: u8) {
    for step in 0..3 {
        let mut egt = client.transaction();
        let one = Count { place: "emitted".into(), id: name * 10 + step, value: 0 };
        egt.insert(&one).unwrap().emit(&Add { id: one.id % 2 }).unwrap();
        drop(egt.commit().await);
        sleep(Duration::from_secs(2)).await;
    }
}

async fn history(seed: u64, without: Option<Guard>) -> Result<(), String> {
    let clock = Arc::new(VirtualClock::new());
    let world = World { shared: Shared::new(seed, clock.clone()), clock, seed, without };
    let quiet = world.client("quiet", 0, None);
    let staff = quiet.table::<Employee>();
    staff.create().await.unwrap();
    quiet.table::<Count>().create().await.unwrap();
    quiet.create_table("EntableDirectory").await.unwrap();
    for id in 0..2 {
        let (email, team) = ("a".to_owned(), "x".to_owned());
        let one = Employee { department: "P".into(), id, email, team, visits: 0 };
        staff.insert(&one).await.unwrap().wait_for_copies().await.unwrap();
    }
    world.shared.trouble(Some(24));
    let mut random = Random(seed);
    let marks = Marks::default();
    let mut actors = Vec::new();
    for (number, name) in [(1, "A"), (2, "B")] {
        let lives = (random.below(3) == 0).then(|| random.below(40));
        let client = world.client(name, number, lives);
        let own = Random(seed.wrapping_mul(31).wrapping_add(number));
        actors.push(tokio::spawn(travel(client.clone(), own, name, marks.clone())));
        actors.push(tokio::spawn(emit(client, number as u8)));
    }
    for number in 4..=5 {
        let lives = (random.below(3) == 0).then(|| random.below(90));
        let client = world.client(["worker", "helper"][number as usize - 4], number, lives);
        let worker = client.worker().with::<Employee>().interval(Duration::from_secs(3));
        let worker = worker.lease(Duration::from_secs(6)).on(add);
        let time = Duration::from_secs(random.below(300));
        actors.push(tokio::spawn(async move { worker.run(sleep(time)).await }));
    }
    sleep(Duration::from_secs(400)).await;
    actors.iter().for_each(tokio::task::JoinHandle::abort);
    world.shared.trouble(None);
    while world.shared.late() > 0 {
        sleep(Duration::from_secs(1)).await;
    }
    let wrong = finish(&world, &quiet, &marks).await;
    wrong.map_err(|wrong| format!("{wrong}\n{}", world.shared.log.lock().unwrap().join("\n")))
}

/// Puts messages back that were put aside: only for what counts, a handler that ran out of its lease
/// or was first overtaken in creating a row.
async fn put_back(worker: &Worker) -> Result<(), String> {
    for poisoned in worker.poisoned().await.map_err(|error| error.to_string())? {
        let is_of_handler = poisoned.message() == Some("Add");
        let counts = ["lease of", "EntityAlreadyExists"];
        if is_of_handler && !counts.iter().any(|text| poisoned.error.contains(text)) {
            return Err(format!("poisoned by what passes: {}", poisoned.error));
        }
        worker.requeue(&poisoned).await.map_err(|error| error.to_string())?;
    }
    Ok(())
}

async fn finish(world: &World, quiet: &Client, marks: &Marks) -> Result<(), String> {
    for number in 0..5 {
        let worker = world.client("last", 90 + number, None).worker().with::<Employee>().on(add);
        worker.drain().await.map_err(|error| error.to_string())?;
        sleep(FLIGHT + LEASE).await;
        put_back(&worker).await?;
    }
    for id in 0..2 {
        let mut found = Vec::new();
        for place in PLACES {
            let row = quiet.dynamic("Staff").get(place, &format!("empid_{id:03}")).await.unwrap();
            found.extend(row);
        }
        let [row] = &found[..] else {
            return Err(format!("entity {id} is in {} places", found.len()));
        };
        for (of, mark) in marks.lock().unwrap().iter() {
            if *of == id && row.get(mark).is_none() {
                return Err(format!("{mark} of entity {id} is lost"));
            }
        }
        if row.get("EntableMoving").is_some() {
            return Err(format!("entity {id} is still moving"));
        }
    }
    let counts = quiet.table::<Count>();
    let emitted = counts.query(Count::primary().place("emitted")).collect().await.unwrap().len();
    let sum = counts.query(Count::primary().place("sum")).collect().await.unwrap();
    let sum: i64 = sum.iter().map(|count| count.value).sum();
    if sum != emitted as i64 {
        return Err(format!("{emitted} messages had {sum} effects"));
    }
    let all = quiet.dynamic("Staff").query(Filter::parse("RowKey ge '~e1'").unwrap());
    match all.allow_scan().collect().await.unwrap().first() {
        Some(left) => Err(format!("left: {}", left.row_key())),
        None => Ok(()),
    }
}

fn run(seed: u64, without: Option<Guard>) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(history(seed, without))
}

fn failing(guard: Guard, known: u64, most: u64) -> Option<u64> {
    first_wrong(known, most, |seed| run(seed, Some(guard)))
}

#[test]
fn entities_and_messages_come_through_every_history() {
    play(&seeds(&[581, 30_001, 30_009, 30_081], 200, 20_000), |seed| run(seed, None));
}

#[test]
fn what_is_moved_is_deleted_in_the_version_that_was_carried_over() {
    let seed = failing(Guard::LeaveVersion, 40, 3_000);
    println!("LeaveVersion: seed {seed:?}");
    assert!(seed.is_some(), "no history needs it");
}

#[test]
fn effects_leave_a_receipt() {
    let seed = failing(Guard::Receipt, 0, 3_000);
    println!("Receipt: seed {seed:?}");
    assert!(seed.is_some(), "no history needs it");
}

#[test]
fn leases_are_an_economy() {
    assert_eq!(failing(Guard::Lease, 0, if is_long() { 2_000 } else { 60 }), None);
}
