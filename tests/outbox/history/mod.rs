//! Runs random histories of writers and workers that are slow, fail, lose answers and die. After
//! each, a worker finishes the open work, and every copy is what the primaries say.
//!
//! `ENTABLE_SEED=n` replays one history, `ENTABLE_SEED=a..b` some; `ENTABLE_LONG=1` runs many. Each guard of the protocols is
//! left out in turn: some history fails without it.

mod lists;
mod checks;
mod dated;
mod deleted_tables;
mod expiry;
mod moves;
mod seeds;
mod store;
mod blob_store;
mod blobs;
mod unique;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use blob_store::Tray;
use entable::{Guard, OutboxOptions, prelude::*};
use seeds::{first_wrong, is_long, play, seeds};
use store::{Random, Shared, SkewedClock, VirtualClock, Way};
use tokio::time::sleep;

const FLIGHT: Duration = Duration::from_secs(80);
const LEASE: Duration = Duration::from_secs(12);

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id}",
    index(ByEmail, partition_key = "email_{email}", row_key = "at_{department}_{id}"),
    index(
        ByTeam,
        table = "Teams",
        partition_key = "{team}",
        row_key = "{department}_{id:06}",
        only(email)
    )
)]
struct Employee {
    department: String,
    id: u8,
    email: String,
    team: String,
    visits: u8,
}

fn options() -> OutboxOptions {
    OutboxOptions::default()
        .write_deadline(FLIGHT)
        .request_timeout(Duration::from_secs(8))
        .grace(Duration::from_secs(3))
        .close_idle_after(LEASE)
        .claim_time(Duration::from_secs(8))
}

/// By how many hours the clocks of clients differ from the store's.
const SKEW: [i64; 7] = [0, 9, -5, 0, -11, 14, 2];

/// The clients of one history.
struct World {
    shared: Arc<Shared>,
    clock: Arc<VirtualClock>,
    seed: u64,
    without: Option<Guard>,
}

impl World {
    fn client(&self, actor: &'static str, number: u64, lives: Option<u64>) -> Client {
        self.client_by(Way::new(&self.shared, actor, lives), number)
    }

    fn client_by(&self, way: Way, number: u64) -> Client {
        let builder = Client::builder()
            .backend(way.clone())
            .blobs(Arc::new(Tray(way)))
            .clock(Arc::new(SkewedClock(self.clock.clone(), SKEW[number as usize % SKEW.len()])))
            // The kills of a history fall between an answer and the work after it.
            .outbox(options().copies_before_answer(false))
            .seed(self.seed.wrapping_mul(131).wrapping_add(number));
        let builder = match self.without {
            Some(guard) => builder.without_guard(guard),
            None => builder,
        };
        builder.build().unwrap()
    }
}

fn someone(random: &mut Random) -> Employee {
    Employee {
        department: ["P", "Q"][random.below(4) as usize / 3].to_owned(),
        id: random.below(2) as u8,
        email: ["a", "b", "c"][random.below(3) as usize].to_owned(),
        team: ["x", "y"][random.below(8) as usize / 7].to_owned(),
        visits: random.below(3) as u8,
    }
}

async fn write(staff: Table<Employee>, mut random: Random, is_narrow: bool) {
    let mut known: Vec<Stored<Employee>> = Vec::new();
    for _ in 0..5 {
        let mut one = someone(&mut random);
        if is_narrow {
            (one.department, one.id) = ("P".to_owned(), 0);
            (one.email, one.team) = ("a".to_owned(), "x".to_owned());
            one.visits %= 2;
        }
        let point = Employee::primary().department(&*one.department).id(one.id);
        match random.below(if is_narrow { 2 } else { 8 }) {
            0 | 1 => known.extend(staff.insert_or_replace(&one).await),
            2 => known.extend(staff.insert(&one).await),
            3 => drop(staff.delete_at(point).await),
            4 => drop(staff.patch_at(point, Employee::patch().email(one.email)).await),
            5 if !known.is_empty() => {
                let mut stored = known[random.below(known.len() as u64) as usize].clone();
                (stored.email, stored.team) = (one.email, one.team);
                known.extend(staff.replace(&stored).await);
            }
            6 => {
                let mut egt = staff.transaction();
                let other = Employee { id: 1 - one.id, ..someone(&mut random) };
                let other = Employee { department: one.department.clone(), ..other };
                egt.insert_or_replace(&one).unwrap().insert_or_replace(&other).unwrap();
                drop(egt.commit().await);
            }
            _ => drop(staff.patch_at(point, Employee::patch().visits(one.visits)).await),
        }
        let pause = random.pause(if is_narrow { 1_500 } else { 4_000 });
        sleep(pause).await;
    }
}

/// One history; what is wrong in the end. Actors are suspended for at most `suspension` before they send a
/// copy.
async fn history(seed: u64, without: Option<Guard>, suspension: Duration) -> Result<(), String> {
    let clock = Arc::new(VirtualClock::new());
    let world = World { shared: Shared::new(seed, clock.clone()), clock, seed, without };
    world.shared.suspend(suspension);
    let quiet = world.client("quiet", 0, None);
    quiet.table::<Employee>().create().await.unwrap();
    quiet.create_table("EntableDirectory").await.unwrap();
    // Every other history is about one entity whose copies go back and forth.
    let is_narrow = seed % 2 == 1;
    world.shared.trouble(Some(if is_narrow { 10 } else { 24 }));
    let mut random = Random(seed);
    let mut actors = Vec::new();
    for number in 1..=3 {
        let lives = (random.below(3) == 0).then(|| random.below(40));
        let client = world.client(["", "first", "second", "third"][number as usize], number, lives);
        let own = Random(seed.wrapping_mul(31).wrapping_add(number));
        actors.push(tokio::spawn(write(client.table(), own, is_narrow)));
    }
    for number in 4..=5 {
        let lives = (random.below(3) == 0).then(|| random.below(60));
        let client = world.client(["worker", "helper"][number as usize - 4], number, lives);
        let worker = client.worker().with::<Employee>().interval(Duration::from_secs(5));
        let time = Duration::from_secs(random.below(300));
        actors.push(tokio::spawn(async move { worker.run(sleep(time)).await }));
    }
    // The dead never come to an end.
    sleep(Duration::from_secs(400)).await;
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

/// Workers do what is left; then everything is right and nothing is left.
async fn finish(world: &World, quiet: &Client) -> Result<(), String> {
    for number in 0..4 {
        let client = world.client("last", 90 + number, None);
        let worker = client.worker().with::<Employee>();
        worker.drain().await.map_err(|error| error.to_string())?;
        sleep(FLIGHT + LEASE).await;
    }
    let (found, wanted) = (found(quiet).await, wanted(quiet).await);
    if found != wanted {
        return Err(format!("found {found:#?}, wanted {wanted:#?}"));
    }
    for department in ["P", "Q"] {
        let rows = quiet.dynamic("Staff").query(Keys::partition(department).prefix("~e"));
        for row in rows.collect().await.unwrap() {
            if !row.row_key().starts_with("~e0_") {
                return Err(format!("left: {}", row.row_key()));
            }
        }
    }
    let markers = quiet.dynamic("EntableDirectory").query(Filter::parse("Table ge ''").unwrap());
    let markers = markers.allow_scan().collect().await.unwrap().len();
    if markers > 0 { Err(format!("{markers} markers are left")) } else { Ok(()) }
}

type Copies = BTreeMap<(String, String), Vec<String>>;

/// The copies that are there.
async fn found(client: &Client) -> Copies {
    let mut copies = Copies::new();
    let staff = client.dynamic("Staff").query(Filter::parse("PartitionKey ge 'email_'").unwrap());
    for row in staff.allow_scan().collect().await.unwrap() {
        let key = (row.partition_key().to_owned(), row.row_key().to_owned());
        let visits = row.get("Visits").map(|visits| format!("{visits:?}")).unwrap_or_default();
        copies.insert(key, vec![row.str("Team").unwrap().to_owned(), visits]);
    }
    let teams = client.dynamic("Teams").query(Filter::parse("PartitionKey ge ''").unwrap());
    for row in teams.allow_scan().collect().await.unwrap() {
        let key = (row.partition_key().to_owned(), row.row_key().to_owned());
        copies.insert(key, vec![row.str("Email").unwrap().to_owned()]);
    }
    copies
}

/// The copies that there have to be, given the primaries: written down by hand, not derived.
async fn wanted(client: &Client) -> Copies {
    let mut copies = Copies::new();
    for one in client.table::<Employee>().query(Employee::scan()).collect().await.unwrap() {
        let row = client.dynamic("Staff").get(one.partition_key(), one.row_key()).await;
        let row = row.unwrap().unwrap();
        let visits = row.get("Visits").map(|visits| format!("{visits:?}")).unwrap_or_default();
        let email =
            (format!("email_{}", one.email), format!("at_{}_{:03}", one.department, one.id));
        copies.insert(email, vec![one.team.clone(), visits]);
        let team = (one.team.clone(), format!("{}_{:06}", one.department, one.id));
        copies.insert(team, vec![one.email.clone()]);
    }
    copies
}

fn run_with(seed: u64, without: Option<Guard>, suspension: Duration) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(history(seed, without, suspension))
}

fn run(seed: u64, without: Option<Guard>) -> Result<(), String> {
    run_with(seed, without, Duration::ZERO)
}

/// Runs a history of actors that are suspended for longer than a write deadline.
fn run_suspended(seed: u64, without: Option<Guard>) -> Result<(), String> {
    run_with(seed, without, 3 * FLIGHT)
}

#[test]
fn copies_are_right_after_every_history() {
    play(&seeds(&[], 300, 100_000), |seed| run(seed, None));
}

fn failing(guard: Guard, known: u64, most: u64) -> Option<u64> {
    first_wrong(known, most, |seed| run(seed, Some(guard)))
}

macro_rules! needed {
    ($($name:ident: $guard:ident, $known:literal;)*) => {
        $(
            #[test]
            fn $name() {
                let seed = failing(Guard::$guard, $known, if is_long() { 100_000 } else { 4_000 });
                println!("{:?}: seed {seed:?}", Guard::$guard);
                assert!(seed.is_some(), "no history needs it");
            }
        )*
    };
}

needed! {
    open_work_is_written_with_its_fence: FenceInTransaction, 9;
    a_fence_is_taken_down_in_the_version_that_was_seen: FenceVersion, 39;
    the_fence_stands_before_its_marker: FenceFirst, 10;
    every_registration_has_its_own_fence: FenceOfItsOwn, 9;
    a_writer_removes_only_what_it_created: DirtyInserted, 6;
    rows_elsewhere_are_written_in_the_version_that_was_read: DestinationVersion, 525;
    rows_elsewhere_are_read_before_the_primary: DestinationFirst, 859;
    a_copy_is_current_by_version: CurrentByVersion, 783;
    open_work_is_removed_in_the_version_that_was_read: DirtyVersion, 14;
    what_others_may_still_do_is_looked_at_again: SecondLook, 28;
}

#[test]
fn copies_are_right_although_actors_are_suspended() {
    play(&seeds(&[], 150, 20_000), |seed| run_suspended(seed, None));
}

#[test]
fn nothing_is_sent_after_the_write_deadline() {
    let most = if is_long() { 100_000 } else { 4_000 };
    let seed = first_wrong(8, most, |seed| run_suspended(seed, Some(Guard::WriteDeadline)));
    println!("{:?}: seed {seed:?}", Guard::WriteDeadline);
    assert!(seed.is_some(), "no history needs it");
}

#[test]
fn putting_back_is_an_economy() {
    assert_eq!(failing(Guard::PutBack, 0, if is_long() { 20_000 } else { 100 }), None);
}
