//! Runs histories of large values: writers, movers, workers and sweepers for three days, with clocks hours
//! apart that jump, on stores that fail, answer late and carry out late.
//!
//! At no time does a row point to a blob that is gone. In the end every blob that a row points to is whole,
//! and there is no other.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bytes::Bytes;
use entable::{Blob, Clock, KeyScope, Keyring, RootKey, Ticks, ValueRef, prelude::*};
use futures_util::stream;
use tokio::time::sleep;

use super::{
    FLIGHT, LEASE, SKEW,
    blob_store::Tray,
    options,
    seeds::{first_wrong, is_long, play, seeds},
    store::{Random, Shared, VirtualClock, Way},
};

const HOUR: Duration = Duration::from_secs(3_600);

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Photos",
    partition_key = "{place}",
    row_key = "photo_{id}",
    index(ByEmail, partition_key = "email_{email}", row_key = "at_{place}_{id}")
)]
struct Owner {
    place: String,
    id: u8,
    email: String,
    #[table(blob)]
    photo: Option<Blob>,
    #[table(blob, encrypt)]
    letter: Option<Blob>,
}

const PLACES: [&str; 2] = ["P", "Q"];

/// A client's clock: hours beside the store's, and every five hours it jumps to another difference.
#[derive(Debug)]
struct JumpingClock(Arc<VirtualClock>, usize);

impl Clock for JumpingClock {
    fn now(&self) -> Ticks {
        let now = self.0.now().get();
        let hours = (now - 630_000_000_000_000_000) / 36_000_000_000;
        let skew = SKEW[(usize::try_from(hours).unwrap() / 5 + self.1) % SKEW.len()];
        Ticks::new(now + skew * 36_000_000_000).unwrap()
    }
}

struct World {
    shared: Arc<Shared>,
    clock: Arc<VirtualClock>,
    seed: u64,
}

impl World {
    fn client(&self, actor: &'static str, number: u64, lives: Option<u64>) -> Client {
        let way = Way::new(&self.shared, actor, lives);
        let keys =
            Keyring::builder().primary(&KeyScope::default_scope(), &RootKey::from_bytes([1; 32]));
        Client::builder()
            .backend(way.clone())
            .blobs(Arc::new(Tray(way)))
            .keys(keys.build().unwrap())
            .clock(Arc::new(JumpingClock(self.clock.clone(), number as usize)))
            .outbox(options().copies_before_answer(false))
            .seed(self.seed.wrapping_mul(131).wrapping_add(number))
            .build()
            .unwrap()
    }
}

fn blob(random: &mut Random) -> Blob {
    Blob::new(random.below(u64::MAX).to_be_bytes().to_vec())
}

fn someone(random: &mut Random) -> Owner {
    Owner {
        place: PLACES[random.below(2) as usize].to_owned(),
        id: random.below(2) as u8,
        email: ["a", "b"][random.below(2) as usize].to_owned(),
        photo: (random.below(3) > 0).then(|| blob(random)),
        letter: (random.below(3) > 0).then(|| blob(random)),
    }
}

async fn write(photos: Table<Owner>, mut random: Random) {
    let mut known: Vec<Stored<Owner>> = Vec::new();
    for _ in 0..8 {
        let mut one = someone(&mut random);
        let point = Owner::primary().place(&*one.place).id(one.id);
        match random.below(10) {
            0 => known.extend(photos.insert(&one).await),
            1 | 2 => known.extend(photos.insert_or_replace(&one).await),
            3 => {
                let patch = Owner::patch().letter(blob(&mut random)).remove_photo();
                drop(photos.patch_at(point, patch).await);
            }
            4 => drop(photos.delete_at(point).await),
            5 => {
                // Written hours after the upload, or never.
                let content = stream::iter([Ok(Bytes::from_static(b"uploaded ahead"))]);
                if let Ok(ahead) = photos.upload(&one, Owner::LETTER, content).await {
                    sleep(random.pause(1_800_000)).await;
                    one.letter = Some(ahead);
                    known.extend(photos.insert_or_replace(&one).await);
                }
            }
            6 | 7 => {
                if let Ok(Some(mut found)) = photos.get(point).await {
                    sleep(random.pause(60_000)).await;
                    found.place = PLACES[random.below(2) as usize].to_owned();
                    drop(photos.move_to(&found, &photos).await);
                }
            }
            8 if !known.is_empty() => {
                // Blobs that were read long ago, under the keys of another row.
                let old = &known[random.below(known.len() as u64) as usize];
                (one.photo, one.letter) = (old.photo.clone(), old.letter.clone());
                known.extend(photos.insert_or_replace(&one).await);
            }
            _ if !known.is_empty() => {
                let mut stored = known[random.below(known.len() as u64) as usize].clone();
                stored.email = one.email;
                stored.photo = one.photo;
                stored.id = random.below(2) as u8;
                known.extend(photos.replace(&stored).await);
            }
            _ => {}
        }
        sleep(random.pause(1_200_000)).await;
    }
}

async fn sweep(photos: Table<Owner>, mut random: Random, grace: Duration) {
    for _ in 0..10 {
        sleep(random.pause(10_000_000)).await;
        drop(photos.sweep_blobs().grace(grace).await);
    }
}

/// One history, with sweeps after that grace; what is wrong in the end.
async fn history(seed: u64, grace: Duration) -> Result<(), String> {
    let clock = Arc::new(VirtualClock::new());
    let world = World { shared: Shared::new(seed, clock.clone()), clock, seed };
    let quiet = world.client("quiet", 0, None);
    quiet.table::<Owner>().create().await.unwrap();
    quiet.create_table("EntableDirectory").await.unwrap();
    world.shared.trouble(Some(24));
    let mut random = Random(seed);
    let mut actors = Vec::new();
    for number in 1..=3 {
        let lives = (random.below(4) == 0).then(|| random.below(80));
        let client = world.client(["", "first", "second", "third"][number as usize], number, lives);
        let own = Random(seed.wrapping_mul(31).wrapping_add(number));
        actors.push(tokio::spawn(write(client.table(), own)));
    }
    for number in 4..=5 {
        let lives = (random.below(3) == 0).then(|| random.below(200));
        let client = world.client(["worker", "helper"][number as usize - 4], number, lives);
        let worker = client.worker().with::<Owner>().interval(HOUR);
        let time = HOUR * (random.below(70) as u32);
        actors.push(tokio::spawn(async move { worker.run(sleep(time)).await }));
    }
    let sweeper = world.client("sweeper", 6, None);
    let own = Random(seed.wrapping_mul(31).wrapping_add(6));
    actors.push(tokio::spawn(sweep(sweeper.table(), own, grace)));
    // The dead never come to an end.
    sleep(72 * HOUR).await;
    for actor in actors {
        actor.abort();
    }
    world.shared.trouble(None);
    while world.shared.late() > 0 {
        sleep(Duration::from_secs(1)).await;
    }
    let report = finish(&world, &quiet).await;
    report.map_err(|wrong| {
        let log = world.shared.log.lock().unwrap().join("\n");
        format!("{wrong}\n{log}")
    })
}

/// Workers and a sweep do what is left; then blobs and rows agree.
async fn finish(world: &World, quiet: &Client) -> Result<(), String> {
    for number in 0..4 {
        let client = world.client("last", 90 + number, None);
        let worker = client.worker().with::<Owner>();
        worker.drain().await.map_err(|error| error.to_string())?;
        sleep(FLIGHT + LEASE).await;
    }
    let photos = quiet.table::<Owner>();
    sleep(25 * HOUR).await;
    photos.sweep_blobs().await.map_err(|error| error.to_string())?;
    if let Some(broken) = world.shared.broken.lock().unwrap().first() {
        return Err(broken.clone());
    }
    let (mut primaries, mut all) = (BTreeSet::new(), BTreeSet::new());
    let rows = quiet.dynamic("Photos").query(Filter::parse("PartitionKey ge ''").unwrap());
    for row in rows.allow_scan().collect().await.unwrap() {
        for name in ["Photo", "Letter"] {
            let Ok(Some(ValueRef::String(blob))) = row.row().get(name) else { continue };
            all.insert(blob.to_owned());
            if row.row_key().starts_with("photo_") {
                primaries.insert(blob.to_owned());
            }
        }
    }
    let blobs = world.shared.blob_names().await;
    if all != primaries || blobs != primaries {
        return Err(format!("primaries {primaries:#?}, rows {all:#?}, blobs {blobs:#?}"));
    }
    for one in photos.query(Owner::scan()).collect().await.map_err(|error| error.to_string())? {
        for blob in [&one.photo, &one.letter].into_iter().flatten() {
            photos.blob(blob).bytes().await.map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

fn run(seed: u64, grace: Duration) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(history(seed, grace))
}

#[test]
fn rows_and_blobs_agree_after_every_history() {
    play(&seeds(&[], 60, 20_000), |seed| run(seed, 24 * HOUR));
}

#[test]
fn a_sweep_needs_its_grace() {
    let most = if is_long() { 10_000 } else { 400 };
    let seed = first_wrong(5, most, |seed| run(seed, Duration::ZERO));
    println!("without grace: seed {seed:?}");
    assert!(seed.is_some(), "no history needs it");
}
