//! Runs random histories of writers, droppers and readers of dated tables: nothing that was acknowledged
//! is lost unless it was below the floor, and nothing comes back below it.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use entable::{Cursor, Guard, prelude::*};
use time::{OffsetDateTime, macros::datetime};
use tokio::time::sleep;

use super::{
    World,
    seeds::{first_wrong, play, seeds},
    store::{Random, Shared, VirtualClock, WATCHER},
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Logins{at:%Y%m%d}",
    partition_key = "{user}",
    row_key = "{at:desc}_{id:06}",
    index(
        ByTown,
        table = "Towns{at:%Y%m%d}",
        partition_key = "{town}",
        row_key = "{at:desc}_{user}_{id:06}"
    )
)]
struct Login {
    user: String,
    at: OffsetDateTime,
    id: u32,
    town: String,
}

#[derive(Debug, Clone, serde::Serialize, serde::Deserialize, Message)]
#[table(name = "welcome", unauthenticated)]
struct Welcome {
    id: u32,
}

const FIRST: OffsetDateTime = datetime!(2014-07-01 12:00 UTC);
const DAYS: i32 = 6;

fn day(number: i32) -> OffsetDateTime {
    FIRST + time::Duration::DAY * number
}

/// Knowledge that the actors of a history share.
#[derive(Default)]
struct Known {
    /// The log-ins that were acknowledged, by day and id.
    written: Mutex<BTreeSet<(i32, u32)>>,
    /// The messages that were acknowledged with log-ins, by day and id.
    emitted: Mutex<BTreeSet<(i32, u32)>>,
    /// The messages that were acknowledged before any call began that might drop their table.
    owed: Mutex<BTreeSet<u32>>,
    delivered: Mutex<BTreeSet<u32>>,
    /// The first day that no call tried to drop.
    floor: Mutex<i32>,
}

fn login(number: i32, id: u32) -> Login {
    let town = ["Kiel", "Oslo"][id as usize % 2].to_owned();
    Login { user: ["don", "eve"][id as usize / 2 % 2].to_owned(), at: day(number), id, town }
}

async fn write(known: Arc<Known>, client: Client, number: u32, mut random: Random) {
    let logins = client.table::<Login>();
    for round in 0..10 {
        let (at, id) = (random.below(DAYS as u64) as i32, number * 100 + round);
        if random.below(3) == 0 {
            let mut egt = client.transaction();
            egt.insert(&login(at, id)).unwrap().emit(&Welcome { id }).unwrap();
            if egt.commit().await.is_ok() {
                known.written.lock().unwrap().insert((at, id));
                known.emitted.lock().unwrap().insert((at, id));
            }
        } else if logins.insert(&login(at, id)).await.is_ok() {
            known.written.lock().unwrap().insert((at, id));
        }
        sleep(random.pause(3_000)).await;
    }
}

async fn drop_old(known: Arc<Known>, client: Client, mut random: Random) {
    let logins = client.table::<Login>();
    for _ in 0..3 {
        sleep(random.pause(12_000)).await;
        let to = random.below(DAYS as u64 - 1) as i32;
        {
            let mut floor = known.floor.lock().unwrap();
            let owed = known.emitted.lock().unwrap();
            let owed = owed.iter().filter(|(at, _)| *at >= *floor).map(|(_, id)| *id);
            known.owed.lock().unwrap().extend(owed);
            *floor = to.max(*floor);
        }
        drop(logins.drop_before(day(to).date()).await);
    }
}

/// Reads a window page by page. What was acknowledged before, and is not below the floor after, is seen,
/// each once.
async fn read(known: Arc<Known>, client: Client, mut random: Random) -> Result<(), String> {
    let logins = client.table::<Login>();
    for _ in 0..4 {
        sleep(random.pause(8_000)).await;
        let before = known.written.lock().unwrap().clone();
        let (mut seen, mut cursor) = (Vec::new(), None::<Cursor>);
        loop {
            let window = Login::primary().at_between(day(-1)..day(DAYS)).user("don");
            let page = match logins.query(window).page_size(2).page(cursor.clone()).await {
                Ok(page) => page,
                // A request that failed is asked for again.
                Err(_) => continue,
            };
            seen.extend(page.items.iter().map(|login| login.id));
            let Some(next) = page.next else { break };
            cursor = Some(next.to_string().parse().unwrap());
        }
        let floor = *known.floor.lock().unwrap();
        let all: BTreeSet<u32> = seen.iter().copied().collect();
        if all.len() != seen.len() {
            return Err(format!("read twice: {seen:?}"));
        }
        let expected =
            before.iter().filter(|(at, id)| *at >= floor && login(*at, *id).user == "don");
        let missing: Vec<_> = expected.filter(|(_, id)| !all.contains(id)).collect();
        if !missing.is_empty() {
            return Err(format!("not read: {missing:?}"));
        }
    }
    Ok(())
}

async fn history(seed: u64, without: Option<Guard>) -> Result<(), String> {
    let clock = Arc::new(VirtualClock::new());
    let world = World { shared: Shared::new(seed, clock.clone()), clock, seed, without };
    let known = Arc::new(Known::default());
    let quiet = world.client(WATCHER, 0, None);
    quiet.create_table("EntableDirectory").await.unwrap();
    world.shared.trouble(Some(30));
    let mut actors = Vec::new();
    for number in 1..=3 {
        let client = world.client(["", "first", "second", "third"][number as usize], number, None);
        let own = Random(seed.wrapping_mul(31).wrapping_add(number));
        actors.push(tokio::spawn(write(known.clone(), client, number as u32, own)));
    }
    for number in 4..=5 {
        let client = world.client(["dropper", "cleaner"][number as usize - 4], number, None);
        let own = Random(seed.wrapping_mul(37).wrapping_add(number));
        actors.push(tokio::spawn(drop_old(known.clone(), client, own)));
    }
    let reader = world.client("reader", 6, None);
    let reader = tokio::spawn(read(known.clone(), reader, Random(seed.wrapping_mul(41))));
    let delivered = |client: &Client| {
        let known = known.clone();
        client.worker().with::<Login>().on(move |_, welcome: Welcome| {
            known.delivered.lock().unwrap().insert(welcome.id);
            async { Ok(()) }
        })
    };
    let client = world.client("worker", 7, None);
    let worker = delivered(&client).interval(Duration::from_secs(5));
    let worker = tokio::spawn(async move { worker.run(sleep(Duration::from_secs(100_000))).await });
    for actor in actors {
        actor.await.map_err(|error| error.to_string())?;
    }
    let read = reader.await.map_err(|error| error.to_string())?;
    worker.abort();
    world.shared.trouble(None);
    while world.shared.late() > 0 {
        sleep(Duration::from_secs(1)).await;
    }
    read?;
    for number in 0..3 {
        sleep(super::FLIGHT * 2).await;
        let client = world.client("last", 90 + number, None);
        delivered(&client).drain().await.map_err(|error| error.to_string())?;
    }
    check(&known, &quiet).await
}

/// Checks what is left when all work is done.
async fn check(known: &Known, quiet: &Client) -> Result<(), String> {
    let (floor, logins) = (*known.floor.lock().unwrap(), quiet.table::<Login>());
    let dropped = logins.drop_before(day(floor).date()).await.map_err(|error| error.to_string())?;
    if !dropped.kept.is_empty() {
        return Err(format!("kept without open work: {:?}", dropped.kept));
    }
    for number in 0..floor {
        let late = logins.insert(&login(number, 900 + number as u32)).await;
        if !late.is_err_and(|error| error.is_not_found()) {
            return Err(format!("day {number} was written again below day {floor}"));
        }
    }
    let tables = quiet.tables().await.unwrap();
    let below: Vec<_> = (0..floor).map(|number| format!("201407{:02}", number + 1)).collect();
    if let Some(table) = tables.iter().find(|name| below.iter().any(|date| name.ends_with(date))) {
        return Err(format!("{table} is below the floor"));
    }
    let written = known.written.lock().unwrap().clone();
    for (number, id) in written.iter().filter(|(number, _)| *number >= floor) {
        let one = login(*number, *id);
        let point = Login::primary().user(&*one.user).at(one.at).id(*id);
        if logins.get(point).await.unwrap().as_deref() != Some(&one) {
            return Err(format!("{one:?} is lost, the floor is day {floor}"));
        }
        let copy = Login::by_town().town(&*one.town).at(one.at).user(&*one.user).id(*id);
        if logins.get(copy).await.unwrap().is_none() {
            return Err(format!("the copy of {one:?} is lost"));
        }
    }
    let emitted = known.emitted.lock().unwrap().clone();
    let mut owed = known.owed.lock().unwrap().clone();
    owed.extend(emitted.iter().filter(|(number, _)| *number >= floor).map(|(_, id)| *id));
    let delivered = known.delivered.lock().unwrap().clone();
    match owed.difference(&delivered).collect::<Vec<_>>().as_slice() {
        [] => Ok(()),
        lost => Err(format!("messages {lost:?} are lost, the floor is day {floor}")),
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

#[test]
fn nothing_above_the_floor_is_lost_in_any_history() {
    play(&seeds(&[], 60, 20_000), |seed| run(seed, None));
}

#[test]
fn a_writer_reads_the_floor_before_it_makes_a_table() {
    assert!(first_wrong(0, 100, |seed| run(seed, Some(Guard::FloorRead))).is_some());
}

#[test]
fn a_table_with_open_work_is_kept() {
    assert!(first_wrong(6, 3_000, |seed| run(seed, Some(Guard::OpenWorkKept))).is_some());
}
