//! Runs histories of busy remote lists: writers insert, delete, change names, keys and partitions,
//! beside several workers. At rest each list has exactly the primaries that derive it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use entable::{
    Guard, Transaction,
    object_store::{GetOptions, ObjectStore},
    prelude::*,
};
use futures_util::{StreamExt, future::BoxFuture};
use tokio::time::sleep;

use super::{
    FLIGHT, LEASE, World,
    seeds::{first_wrong, is_long, play, seeds},
    store::{Random, Shared, VirtualClock, Way},
};

/// An entity whose lists are kept in one way or another.
trait Member: TableEntity + Clone + Send + Sync + Unpin {
    fn new(department: &str, id: u8, grade: u8, name: &str, team: &str) -> Self;
    fn keys(&self) -> (String, u8, u8);
    /// Takes everything over but for the partition and the id.
    fn change(&mut self, other: &Self);
    fn send(&mut self, department: &str);
    fn rename(&self, staff: Table<Self>) -> BoxFuture<'static, ()>;
    fn both(staff: &Table<Self>, one: &Self, other: &Self) -> Transaction;
    /// Where its lists are.
    fn lists(&self) -> Vec<String>;
}

macro_rules! member {
    ($type:ident, $table:literal, ($($list:tt)*), $lists:expr) => {
        #[derive(Debug, Clone, PartialEq, TableEntity)]
        #[table(
            name = $table,
            partition_key = "{department}",
            row_key = "empid_{id}_{grade}",
            $($list)*
        )]
        struct $type {
            department: String,
            id: u8,
            grade: u8,
            name: String,
            team: String,
        }

        impl Member for $type {
            fn new(department: &str, id: u8, grade: u8, name: &str, team: &str) -> Self {
                let [department, name, team] = [department, name, team].map(str::to_owned);
                Self { department, id, grade, name, team }
            }

            fn keys(&self) -> (String, u8, u8) {
                (self.department.clone(), self.id, self.grade)
            }

            fn change(&mut self, other: &Self) {
                let Self { grade, name, team, .. } = other.clone();
                (self.grade, self.name, self.team) = (grade, name, team);
            }

            fn send(&mut self, department: &str) {
                self.department = department.to_owned();
            }

            fn rename(&self, staff: Table<Self>) -> BoxFuture<'static, ()> {
                let (point, patch) = (self.point(), Self::patch().name(&*self.name));
                Box::pin(async move { drop(staff.patch_at(point, patch).await) })
            }

            fn both(staff: &Table<Self>, one: &Self, other: &Self) -> Transaction {
                let mut egt = staff.transaction();
                egt.insert_or_replace(one).unwrap().insert_or_replace(other).unwrap();
                egt
            }

            fn lists(&self) -> Vec<String> {
                let lists: fn(&Self) -> Vec<String> = $lists;
                lists(self)
            }
        }
    };
}

member!(
    Clerk,
    "Staff",
    (
        list(ByName, partition_key = "name_{name}", row_key = "ids"),
        list(ByTeam, table = "Teams", partition_key = "{team}", row_key = "all")
    ),
    |one| vec![format!("name_{}", one.name), one.team.clone()]
);

member!(
    Sailor,
    "Crew",
    (list(ByName, partition_key = "everywhere", row_key = "{name}", in_blob)),
    |one| vec![format!("crew/everywhere/{}.jsonl", one.name)]
);

fn someone<M: Member>(random: &mut Random, is_narrow: bool) -> M {
    let department = ["P", "Q"][random.below(4) as usize / 3];
    let (id, grade) = (random.below(2) as u8, random.below(8) as u8 / 7);
    let name = ["a", "b"][random.below(4) as usize / 3];
    let team = ["x", "y"][random.below(8) as usize / 7];
    if is_narrow { M::new("P", 0, 0, name, "x") } else { M::new(department, id, grade, name, team) }
}

async fn write<M: Member>(staff: Table<M>, mut random: Random, is_narrow: bool) {
    let mut known: Vec<Stored<M>> = Vec::new();
    for _ in 0..6 {
        let one: M = someone(&mut random, is_narrow);
        match random.below(if is_narrow { 5 } else { 10 }) {
            0 => known.extend(staff.insert_or_replace(&one).await),
            1 => known.extend(staff.insert(&one).await),
            2 | 3 => drop(staff.delete_at(one.point()).await),
            4 | 5 => one.rename(staff.clone()).await,
            6 | 7 if !known.is_empty() => {
                let mut stored = known[random.below(known.len() as u64) as usize].clone();
                stored.change(&one);
                known.extend(staff.replace(&stored).await);
            }
            8 => {
                let (department, id, grade) = one.keys();
                let mut other = M::new(&department, 1 - id, grade, "a", "x");
                let named: M = someone(&mut random, false);
                other.change(&named);
                drop(M::both(&staff, &one, &other).commit().await);
            }
            _ => {
                let department = ["P", "Q"][random.below(2) as usize];
                if let Ok(Some(mut stored)) = staff.get(one.point()).await {
                    stored.send(department);
                    drop(staff.move_to(&stored, &staff).await);
                }
            }
        }
        let pause = random.pause(if is_narrow { 1_500 } else { 4_000 });
        sleep(pause).await;
    }
}

async fn history<M: Member>(seed: u64, without: Option<Guard>, checks: bool) -> Result<(), String> {
    let clock = Arc::new(VirtualClock::new());
    let world = World { shared: Shared::new(seed, clock.clone()), clock, seed, without };
    let quiet = world.client("quiet", 0, None);
    quiet.table::<M>().create().await.unwrap();
    quiet.create_table("EntableDirectory").await.unwrap();
    let is_narrow = seed % 2 == 1;
    world.shared.trouble(Some(if is_narrow { 10 } else { 24 }));
    let mut random = Random(seed);
    let mut actors = Vec::new();
    for number in 1..=3 {
        let lives = (random.below(3) == 0).then(|| random.below(40));
        let client = world.client(["", "first", "second", "third"][number as usize], number, lives);
        let own = Random(seed.wrapping_mul(31).wrapping_add(number));
        actors.push(tokio::spawn(write::<M>(client.table(), own, is_narrow)));
    }
    for number in 4..=5 {
        let lives = (random.below(3) == 0).then(|| random.below(60));
        let client = world.client(["worker", "helper"][number as usize - 4], number, lives);
        let worker = client.worker().with::<M>().interval(Duration::from_secs(5));
        let time = Duration::from_secs(random.below(300));
        actors.push(tokio::spawn(async move { worker.run(sleep(time)).await }));
    }
    let checked = checks.then(|| {
        let way = Way::new(&world.shared, "checker", None).reading_well();
        tokio::spawn(check(world.client_by(way, 6).table::<M>()))
    });
    sleep(Duration::from_secs(400)).await;
    for actor in actors {
        actor.abort();
    }
    match checked.map(|checked| (checked.is_finished(), checked)) {
        Some((true, checked)) => return Err(checked.await.unwrap()),
        Some((false, checked)) => checked.abort(),
        None => {}
    }
    world.shared.trouble(None);
    while world.shared.late() > 0 {
        sleep(Duration::from_secs(1)).await;
    }
    finish::<M>(&world, &quiet).await.map_err(|wrong| {
        let log = world.shared.log.lock().unwrap().join("\n");
        format!("{wrong}\n{log}")
    })
}

/// Checks for ever; what is reported, since nothing is ever wrong for good.
async fn check<M: Member>(staff: Table<M>) -> String {
    loop {
        sleep(Duration::from_secs(7)).await;
        if let Ok(report) = staff.check().await
            && let Some(finding) = report.findings.first()
        {
            return format!("{finding:?} is no mistake");
        }
    }
}

/// Workers do what is left; then every list is right and nothing is left.
async fn finish<M: Member>(world: &World, quiet: &Client) -> Result<(), String> {
    for number in 0..5 {
        let client = world.client("last", 90 + number, None);
        let worker = client.worker().with::<M>();
        worker.drain().await.map_err(|error| error.to_string())?;
        sleep(FLIGHT + LEASE).await;
    }
    let (found, wanted) = (found(world, quiet).await, wanted::<M>(quiet).await);
    if found != wanted {
        return Err(format!("found {found:#?}, wanted {wanted:#?}"));
    }
    for department in ["P", "Q"] {
        let rows = quiet.dynamic(M::SCHEMA.table).query(Keys::partition(department).prefix("~e"));
        for row in rows.collect().await.unwrap() {
            if !row.row_key().starts_with("~e0_") {
                return Err(format!("left: {}", row.row_key()));
            }
        }
    }
    Ok(())
}

type Lists = BTreeMap<String, Vec<[String; 2]>>;

/// The lists that are there, as their rows and blobs say; no list is as good as an empty one.
async fn found(world: &World, client: &Client) -> Lists {
    let mut lists = Lists::new();
    for (table, filter) in [("Staff", "PartitionKey ge 'name_'"), ("Teams", "PartitionKey ge ''")] {
        let rows = client.dynamic(table).query(Filter::parse(filter).unwrap()).allow_scan();
        for row in rows.collect().await.unwrap_or_default() {
            assert!(["ids", "all"].contains(&row.row_key()));
            assert_eq!(row.str("EntityType").unwrap(), "entable.list");
            let ids = serde_json::from_str(row.str("Ids00").unwrap()).unwrap();
            lists.insert(row.partition_key().to_owned(), ids);
        }
    }
    for blob in world.shared.blobs.list(None).collect::<Vec<_>>().await {
        let name = blob.unwrap().location;
        let blob = world.shared.blobs.get_opts(&name, GetOptions::default()).await.unwrap();
        let text = String::from_utf8(blob.bytes().await.unwrap().to_vec()).unwrap();
        let ids = text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
        lists.insert(name.to_string(), ids);
    }
    lists.retain(|_, ids| !ids.is_empty());
    lists.values_mut().for_each(|ids| ids.sort());
    lists
}

/// The lists that there have to be, given the primaries: written down by hand, not derived.
async fn wanted<M: Member>(client: &Client) -> Lists {
    let mut lists = Lists::new();
    for one in client.table::<M>().query(M::scan()).collect().await.unwrap() {
        let (department, id, grade) = one.keys();
        let key = [department, format!("empid_{id:03}_{grade:03}")];
        for list in one.lists() {
            lists.entry(list).or_default().push(key.clone());
        }
    }
    lists.values_mut().for_each(|ids| ids.sort());
    lists
}

fn run<M: Member>(seed: u64, without: Option<Guard>) -> Result<(), String> {
    played::<M>(seed, without, false)
}

fn played<M: Member>(seed: u64, without: Option<Guard>, checks: bool) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(history::<M>(seed, without, checks))
}

fn is_right_after_every_history<M: Member>() {
    play(&seeds(&[], 300, 20_000), |seed| run::<M>(seed, None));
}

#[test]
fn lists_in_rows_are_right_after_every_history() {
    is_right_after_every_history::<Clerk>();
}

#[test]
fn no_check_reports_what_is_only_late() {
    play(&seeds(&[], 150, 20_000), |seed| played::<Clerk>(seed, None, true));
}

#[test]
fn a_check_of_lists_looks_twice() {
    for (guard, known) in [(Guard::CheckOpenWork, 1), (Guard::CheckTwice, 32)] {
        let wrong = first_wrong(known, 4_000, |seed| played::<Clerk>(seed, Some(guard), true));
        println!("{guard:?}: seed {wrong:?}");
        assert!(wrong.is_some(), "no history needs it");
    }
}

#[test]
fn lists_in_blobs_are_right_after_every_history() {
    is_right_after_every_history::<Sailor>();
}

fn failing<M: Member>(guard: Guard, known: u64) -> Option<u64> {
    let most = if is_long() { 100_000 } else { 4_000 };
    first_wrong(known, most, |seed| run::<M>(seed, Some(guard)))
}

macro_rules! needed {
    ($($name:ident: $type:ident, $guard:ident, $known:literal;)*) => {
        $(
            #[test]
            fn $name() {
                let seed = failing::<$type>(Guard::$guard, $known);
                println!("{}, {:?}: seed {seed:?}", stringify!($type), Guard::$guard);
                assert!(seed.is_some(), "no history needs it");
            }
        )*
    };
}

needed! {
    an_entry_that_is_there_is_written_once_more: Clerk, EntryWritten, 13;
    an_entry_that_is_gone_is_looked_at_again: Clerk, EntrySecondLook, 140;
    a_list_is_written_in_the_version_that_was_read: Clerk, DestinationVersion, 2;
    open_work_on_a_list_is_removed_in_its_version: Clerk, DirtyVersion, 24;
    an_entry_that_is_in_a_blob_is_written_once_more: Sailor, EntryWritten, 961;
    an_entry_that_is_not_in_a_blob_is_looked_at_again: Sailor, EntrySecondLook, 55;
    a_blob_is_written_in_the_version_that_was_read: Sailor, DestinationVersion, 10;
    a_list_is_read_before_the_primary: Sailor, DestinationFirst, 800;
}
