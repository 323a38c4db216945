//! Runs random histories of writers that renew, and workers that sweep, on clocks hours apart: nothing
//! alive is deleted, and everything that is over goes.

use std::{sync::Arc, time::Duration};

use entable::prelude::*;
use time::OffsetDateTime;
use tokio::time::sleep;

use super::{
    World,
    seeds::{play, seeds},
    store::{Random, Shared, VirtualClock},
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Sessions",
    partition_key = "{user}",
    row_key = "s_{id:06}",
    expires = until,
    index(ByUse, row_key = "use_{uses:04}_{id:06}", only(until)),
    index(ByToken, partition_key = "token_{token}", row_key = "token", unique),
    index(BySeat, row_key = "seat_{seat}", unique, only(until))
)]
struct Session {
    user: String,
    id: u32,
    token: u32,
    seat: u32,
    until: OffsetDateTime,
    uses: u32,
}

const MINUTE: Duration = Duration::from_secs(60);

fn store_time(world: &World) -> OffsetDateTime {
    use entable::Clock;
    OffsetDateTime::from(world.clock.now())
}

/// Writes sessions of its own, one after the other. What was acknowledged and is alive has to be there.
async fn use_sessions(world: Arc<World>, client: Client, number: u32, mut random: Random) {
    let sessions = client.table::<Session>();
    let watcher = world.client(super::store::WATCHER, 0, None);
    for lifetime in 0..6 {
        let user = ["P", "Q"][random.below(2) as usize].to_owned();
        let id = number * 100 + lifetime;
        let left = |random: &mut Random| MINUTE * (1 + random.below(150) as u32);
        let until = store_time(&world) + left(&mut random);
        // Tokens and seats are few, so that some are of sessions that are over.
        let token = random.below(6) as u32;
        let seat = random.below(8) as u32;
        let mut known = Session { user, id, token, seat, until, uses: 0 };
        let mut stored = match sessions.insert(&known).await {
            Ok(stored) => stored,
            Err(_) => continue,
        };
        for _ in 0..4 {
            sleep(MINUTE * random.below(70) as u32).await;
            let point = Session::primary().user(&*known.user).id(known.id);
            let rows = watcher.dynamic("Sessions");
            let row = rows.get(&known.user, &format!("s_{:06}", known.id)).await;
            if store_time(&world) < known.until {
                let row = row.unwrap();
                assert!(row.is_some(), "{known:?} was deleted at {}", store_time(&world));
            }
            let later = store_time(&world) + left(&mut random);
            let renewed = match random.below(4) {
                0 => {
                    stored.until = later;
                    sessions.replace(&stored).await
                }
                1 => {
                    let until = Session::patch().until(later);
                    let patched = sessions.patch_at(point.clone(), until).await;
                    match patched {
                        Ok(_) => watcher.table::<Session>().get(point).await.map(Option::unwrap),
                        Err(error) => Err(error),
                    }
                }
                2 => {
                    let uses = Session::patch().uses(known.uses + 1);
                    let patched = sessions.patch_at(point.clone(), uses).await;
                    let Ok(_) = patched else { break };
                    known.uses += 1;
                    match watcher.table::<Session>().get(point).await.unwrap() {
                        Some(now) => {
                            stored = now;
                            continue;
                        }
                        None => break,
                    }
                }
                _ => continue,
            };
            // A renewal that lost its answer may have taken effect, or take effect late.
            let Ok(now) = renewed else { break };
            stored = now;
            known.until = later;
        }
    }
}

async fn history(seed: u64) -> Result<(), String> {
    let clock = Arc::new(VirtualClock::new());
    let shared = Shared::new(seed, clock.clone());
    let world = Arc::new(World { shared, clock, seed, without: None });
    let quiet = world.client(super::store::WATCHER, 0, None);
    quiet.table::<Session>().create().await.unwrap();
    world.shared.trouble(Some(30));
    let mut random = Random(seed);
    let (mut writers, mut workers) = (Vec::new(), Vec::new());
    for number in 1..=3 {
        let actor = ["", "first", "second", "third"][number as usize];
        let client = world.client(actor, number, None);
        let own = Random(seed.wrapping_mul(31).wrapping_add(number));
        writers.push(tokio::spawn(use_sessions(world.clone(), client, number as u32, own)));
    }
    for number in 4..=5 {
        let lives = (random.below(3) == 0).then(|| random.below(200));
        let client = world.client(["worker", "helper"][number as usize - 4], number, lives);
        let worker = client.worker().with::<Session>().interval(MINUTE * 4);
        workers.push(tokio::spawn(async move { worker.run(sleep(MINUTE * 60 * 24)).await }));
    }
    for writer in writers {
        writer.await.map_err(|error| error.to_string())?;
    }
    for worker in workers {
        worker.abort();
    }
    world.shared.trouble(None);
    while world.shared.late() > 0 {
        sleep(Duration::from_secs(1)).await;
    }
    // After the last of them is over, new workers delete all, and the second look is past.
    sleep(MINUTE * 60 * 4).await;
    for number in 0..4 {
        let client = world.client("last", 90 + number, None);
        let worker = client.worker().with::<Session>();
        worker.drain().await.map_err(|error| error.to_string())?;
        sleep(MINUTE * 20).await;
    }
    let all = quiet.dynamic("Sessions").query(Filter::ge("PartitionKey", ""));
    let rows = all.allow_scan().collect().await.unwrap();
    let left: Vec<_> = rows.iter().filter(|row| !row.row_key().starts_with("~e0_")).collect();
    if !left.is_empty() {
        return Err(format!("left at {}: {left:#?}", store_time(&world)));
    }
    let markers = quiet.dynamic("EntableExpiry").query(Filter::ge("PartitionKey", ""));
    let markers = markers.allow_scan().collect().await.unwrap();
    if !markers.is_empty() {
        return Err(format!("markers are left: {markers:#?}"));
    }
    Ok(())
}

fn run(seed: u64) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(history(seed))
}

#[test]
fn renewals_and_sweeps_end_right_in_every_history() {
    play(&seeds(&[], 40, 10_000), run);
}
