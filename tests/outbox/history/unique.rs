//! Runs histories of values that are unique across partitions: writers race for them, exchange
//! them, give them up, take them again, and move with them.
//!
//! While it goes on no two entities have one value; afterwards every value is reserved for who has
//! it, nothing is reserved for anybody else, and every acknowledged write stands.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use entable::{Guard, prelude::*};
use tokio::time::sleep;

use super::{
    FLIGHT, LEASE, World,
    seeds::{first_wrong, is_long, play, seeds},
    store::{Random, Shared, VirtualClock, WATCHER},
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "in_{department}",
    row_key = "empid_{id}",
    index(ByEmail, partition_key = "email_{email}", row_key = "is", unique),
    index(ByBadge, table = "Badges", partition_key = "{badge}", row_key = "is", unique, only(visits), when = Person::has_badge)
)]
struct Person {
    department: String,
    id: u8,
    email: String,
    badge: String,
    visits: u8,
}

impl Person {
    fn has_badge(&self) -> bool {
        self.badge != "none"
    }
}

/// The kind of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    /// Each writer has entities of its own, all want the same values.
    Values,
    /// All writers write one entity.
    One,
    /// Entities move.
    Moves,
}

/// The known state of an entity; `None` if the answer to a write was lost.
type Acknowledged = Arc<Mutex<BTreeMap<(String, u8), Option<Option<Person>>>>>;

struct Writer {
    staff: Table<Person>,
    random: Random,
    number: u8,
    about: About,
    acknowledged: Acknowledged,
    known: Vec<Stored<Person>>,
}

fn is_definite(error: &Error) -> bool {
    !error.is_backend() && !error.is_ambiguous()
}

impl Writer {
    fn pick<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.random.below(of.len() as u64) as usize]
    }

    fn someone(&mut self) -> Person {
        let own = self.number * 2 + self.random.below(2) as u8;
        let (department, id) = match self.about {
            About::Values => (self.pick(&["P", "P", "Q"]), own),
            About::One => ("P", self.random.below(4) as u8 / 3),
            About::Moves => (self.pick(&["P", "Q"]), self.random.below(2) as u8),
        };
        let emails: &[&str] = if self.about == About::One { &["a", "b"] } else { &["a", "b", "c"] };
        Person {
            department: department.to_owned(),
            id,
            email: self.pick(emails).to_owned(),
            badge: self.pick(&["none", "none", "none", "x", "y"]).to_owned(),
            visits: self.random.below(3) as u8,
        }
    }

    /// Takes note of what a write of an entity came to.
    fn note<T>(&self, at: (&str, u8), answer: &Result<T, Error>, now: Option<Option<Person>>) {
        let mut all = self.acknowledged.lock().unwrap();
        let slot = all.entry((at.0.to_owned(), at.1)).or_insert(Some(None));
        match answer {
            Ok(_) => *slot = now,
            Err(error) if is_definite(error) => {}
            Err(_) => *slot = None,
        }
    }

    /// Changes the known state of an entity.
    fn changed(&self, at: (&str, u8), change: impl FnOnce(&mut Person)) -> Option<Option<Person>> {
        let all = self.acknowledged.lock().unwrap();
        let mut now = all.get(&(at.0.to_owned(), at.1)).cloned().flatten();
        if let Some(Some(person)) = &mut now {
            change(person);
        }
        now
    }

    /// How many kinds of writes there are.
    fn verbs(&self) -> u64 {
        match self.about {
            About::Values => 9,
            About::One => 5,
            About::Moves => 12,
        }
    }

    async fn write(mut self) {
        for _ in 0..if self.about == About::One { 12 } else { 6 } {
            let one = self.someone();
            let at = (one.department.as_str(), one.id);
            let point = Person::primary().department(&*one.department).id(one.id);
            match self.random.below(self.verbs()) {
                0 | 1 => {
                    let answer = self.staff.insert(&one).await;
                    self.note(at, &answer, Some(Some(one.clone())));
                    self.known.extend(answer);
                }
                2 => {
                    let answer = self.staff.insert_or_replace(&one).await;
                    self.note(at, &answer, Some(Some(one.clone())));
                    self.known.extend(answer);
                }
                3 => {
                    let answer = self.staff.delete_at(point).await;
                    // One that comes late may bring it back, where an answer was lost before.
                    let is_known = {
                        let all = self.acknowledged.lock().unwrap();
                        all.get(&(one.department.clone(), one.id)).is_none_or(Option::is_some)
                    };
                    self.note(at, &answer, is_known.then_some(None));
                }
                4 => {
                    let answer =
                        self.staff.patch_at(point, Person::patch().email(&*one.email)).await;
                    let now = self.changed(at, |person| person.email.clone_from(&one.email));
                    self.note(at, &answer, now);
                }
                5 => {
                    let visits = one.visits;
                    let answer = self.staff.patch_at(point, Person::patch().visits(visits)).await;
                    let now = self.changed(at, |person| person.visits = visits);
                    self.note(at, &answer, now);
                }
                6 => self.exchange(&one).await,
                7 if !self.known.is_empty() => self.replace(&one).await,
                8 => {
                    let (email, badge) = (one.email.clone(), one.badge.clone());
                    let change = |now: &mut Person| {
                        (now.email, now.badge) = (email.clone(), badge.clone());
                        Ok(())
                    };
                    let answer = self.staff.update(point, change).await;
                    self.note(at, &answer, answer.as_ref().ok().map(|now| Some((**now).clone())));
                }
                _ if self.about != About::Moves => {}
                _ => {
                    if let Ok(Some(mut stored)) = self.staff.get(point).await {
                        stored.department = if one.department == "P" { "Q" } else { "P" }.into();
                        drop(self.staff.move_to(&stored, &self.staff).await);
                    }
                }
            }
            let pause = self.random.pause(if self.about == About::Values { 3_000 } else { 1_500 });
            sleep(pause).await;
        }
    }

    /// Two entities of one partition exchange their values in one transaction.
    async fn exchange(&mut self, one: &Person) {
        let first = one.id & !1;
        let at = |id| Person::primary().department(&*one.department).id(id);
        let both = (self.staff.get(at(first)).await, self.staff.get(at(first + 1)).await);
        let (Ok(Some(mut a)), Ok(Some(mut b))) = both else { return };
        (a.email, b.email) = (b.email.clone(), a.email.clone());
        let mut egt = self.staff.transaction();
        // One that is moving is refused at once.
        if egt.replace(&a).and_then(|egt| egt.replace(&b)).is_err() {
            return;
        }
        let answer = egt.commit().await;
        for stored in [&a, &b] {
            let now = Some(Some((**stored).clone()));
            self.note((&stored.department, stored.id), &answer, now);
        }
    }

    /// An entity as it was known is written with other values, maybe under another RowKey.
    async fn replace(&mut self, one: &Person) {
        let at = self.random.below(self.known.len() as u64) as usize;
        let mut stored = self.known[at].clone();
        let before = (stored.department.clone(), stored.id);
        if self.random.below(3) == 0 {
            stored.id ^= 1;
        } else {
            stored.email.clone_from(&one.email);
        }
        let answer = self.staff.replace(&stored).await;
        if before.1 != stored.id {
            self.note((&before.0, before.1), &answer, Some(None));
        }
        self.note((&stored.department, stored.id), &answer, Some(Some((*stored).clone())));
        self.known.extend(answer);
    }
}

/// The entities as they are, without those that are on their way.
async fn people(quiet: &Client) -> Vec<(String, String, DynamicEntity)> {
    let all = quiet.dynamic("Staff").query(Filter::parse("PartitionKey ge 'in_'").unwrap());
    let rows = all.allow_scan().collect().await.unwrap();
    let people = rows.into_iter().filter(|row| row.row_key().starts_with("empid_"));
    people
        .map(|row| (row.partition_key().to_owned(), row.row_key().to_owned(), row.into_inner()))
        .collect()
}

/// Returns the owner of each reserved value, and the entity that it was taken over from.
async fn reserved(quiet: &Client) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for table in ["Staff", "Badges"] {
        let rows = quiet.dynamic(table).query(Filter::parse("RowKey eq 'is'").unwrap());
        for row in rows.allow_scan().collect().await.unwrap() {
            let from = row.str("SrcF").unwrap_or_default().replace(['"', ','], " ");
            let owner = format!("{}   {}", row.str("SrcP").unwrap(), row.str("SrcR").unwrap());
            all.insert(row.partition_key().to_owned(), format!("{owner}; {from}"));
        }
    }
    all
}

/// No two entities have one value, and every value is reserved for who has it: at any moment.
async fn held(quiet: &Client) -> Result<(), String> {
    let mut held = BTreeMap::new();
    let reserved = reserved(quiet).await;
    for (partition_key, row_key, row) in people(quiet).await {
        if row.get("EntableMoving").is_some() {
            continue;
        }
        for index in ["Email", "Badge"] {
            let value = row.str(index).unwrap().to_owned();
            if value == "none" {
                continue;
            }
            let place = format!("{partition_key}   {row_key}");
            let key = if index == "Email" { format!("email_{value}") } else { value };
            if let Some(other) = held.insert(key.clone(), place.clone()) {
                return Err(format!("{key} is of {other} and of {place}"));
            }
            let of = reserved.get(&key);
            if !of.is_some_and(|of| of.contains(&place)) {
                return Err(format!("{key} of {place} is reserved for {of:?}"));
            }
        }
    }
    Ok(())
}

async fn watch(quiet: Client, wrong: Arc<Mutex<Option<String>>>) {
    loop {
        if let Err(found) = held(&quiet).await {
            wrong.lock().unwrap().get_or_insert(found);
        }
        sleep(Duration::from_secs(3)).await;
    }
}

async fn history(seed: u64, without: Option<Guard>, suspension: Duration) -> Result<(), String> {
    let clock = Arc::new(VirtualClock::new());
    let world = World { shared: Shared::new(seed, clock.clone()), clock, seed, without };
    world.shared.suspend(suspension);
    let quiet = world.client("quiet", 0, None);
    quiet.table::<Person>().create().await.unwrap();
    quiet.create_table("EntableDirectory").await.unwrap();
    let about = [About::Values, About::One, About::Moves][seed as usize % 3];
    world.shared.trouble(Some(if about == About::One { 10 } else { 24 }));
    let mut random = Random(seed);
    let acknowledged = Acknowledged::default();
    let wrong = Arc::new(Mutex::new(None));
    let watcher = world.client(WATCHER, 80, None);
    let mut actors = vec![tokio::spawn(watch(watcher, wrong.clone()))];
    for number in 1..=3_u8 {
        let lives = (random.below(3) == 0).then(|| random.below(50));
        let name = ["", "first", "second", "third"][usize::from(number)];
        let client = world.client(name, number.into(), lives);
        let writer = Writer {
            staff: client.table(),
            random: Random(seed.wrapping_mul(31).wrapping_add(number.into())),
            number,
            about,
            acknowledged: acknowledged.clone(),
            known: Vec::new(),
        };
        actors.push(tokio::spawn(writer.write()));
    }
    for number in 4..=5 {
        let lives = (random.below(3) == 0).then(|| random.below(60));
        let client = world.client(["worker", "helper"][number as usize - 4], number, lives);
        let worker = client.worker().with::<Person>().interval(Duration::from_secs(2));
        let time = Duration::from_secs(random.below(400));
        actors.push(tokio::spawn(async move { worker.run(sleep(time)).await }));
    }
    // The dead never come to an end.
    sleep(Duration::from_secs(450)).await;
    actors.iter().for_each(tokio::task::JoinHandle::abort);
    world.shared.trouble(None);
    while world.shared.late() > 0 {
        sleep(Duration::from_secs(1)).await;
    }
    let mut report = wrong.lock().unwrap().take().map_or(Ok(()), Err);
    if report.is_ok() {
        report = finish(&world, &quiet, about).await;
    }
    // Writers of others may have changed what was acknowledged, except where each has its own.
    if report.is_ok() && about == About::Values {
        report = stands(&quiet, &acknowledged).await;
    }
    report.map_err(|wrong| {
        let log = world.shared.log.lock().unwrap().join("\n");
        format!("{about:?}: {wrong}\n{log}")
    })
}

async fn stands(quiet: &Client, acknowledged: &Acknowledged) -> Result<(), String> {
    let staff = quiet.table::<Person>();
    let all = acknowledged.lock().unwrap().clone();
    for ((department, id), wanted) in all {
        let Some(wanted) = wanted else { continue };
        let found = staff.get(Person::primary().department(&*department).id(id)).await.unwrap();
        let found = found.map(Stored::into_inner);
        if found != wanted {
            return Err(format!("{department} {id}: found {found:?}, acknowledged {wanted:?}"));
        }
    }
    Ok(())
}

/// Workers do what is left; then every value is reserved for who has it.
async fn finish(world: &World, quiet: &Client, about: About) -> Result<(), String> {
    for number in 0..5 {
        let worker = world.client("last", 90 + number, None).worker().with::<Person>();
        let stats = worker.drain().await.map_err(|error| error.to_string())?;
        // A move to a place that is taken is put aside.
        if stats.poisoned > 0 && about != About::Moves {
            return Err(format!("put aside: {stats:?}"));
        }
        sleep(FLIGHT + LEASE).await;
    }
    held(quiet).await?;
    let mut wanted = BTreeSet::new();
    for (partition_key, row_key, row) in people(quiet).await {
        let owner = format!("{partition_key} {row_key} {:?}", row.get("Visits"));
        wanted.insert(format!("email_{} {owner}", row.str("Email").unwrap()));
        if row.str("Badge").unwrap() != "none" {
            wanted.insert(format!("{} {owner}", row.str("Badge").unwrap()));
        }
    }
    let mut found = BTreeSet::new();
    for table in ["Staff", "Badges"] {
        let rows = quiet.dynamic(table).query(Filter::parse("RowKey eq 'is'").unwrap());
        for row in rows.allow_scan().collect().await.unwrap() {
            if row.get("SrcC").is_some() {
                return Err(format!("{} is still reserved", row.partition_key()));
            }
            let (of, key) = (row.str("SrcP").unwrap(), row.str("SrcR").unwrap());
            found.insert(format!("{} {of} {key} {:?}", row.partition_key(), row.get("Visits")));
        }
    }
    if found != wanted {
        return Err(format!("found {found:#?}, wanted {wanted:#?}"));
    }
    let all = quiet.dynamic("Staff").query(Filter::parse("RowKey ge '~e1'").unwrap());
    match all.allow_scan().collect().await.unwrap().first() {
        Some(left) => Err(format!("left: {}", left.row_key())),
        None => Ok(()),
    }
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
fn values_are_unique_in_every_history() {
    play(&seeds(&[10_001], 300, 20_000), |seed| run(seed, None));
}

#[test]
fn values_are_unique_although_actors_are_suspended() {
    play(&seeds(&[], 150, 20_000), |seed| run_suspended(seed, None));
}

#[test]
fn no_value_is_reserved_after_the_write_deadline() {
    let most = if is_long() { 100_000 } else { 6_000 };
    let seed = first_wrong(5, most, |seed| run_suspended(seed, Some(Guard::WriteDeadline)));
    println!("{:?}: seed {seed:?}", Guard::WriteDeadline);
    assert!(seed.is_some(), "no history needs it");
}

fn failing(guard: Guard, known: u64) -> Option<u64> {
    let most = if is_long() { 100_000 } else { 6_000 };
    first_wrong(known, most, |seed| run(seed, Some(guard)))
}

macro_rules! needed {
    ($($name:ident: $guard:ident, $known:literal;)*) => {
        $(
            #[test]
            fn $name() {
                let seed = failing(Guard::$guard, $known);
                println!("{:?}: seed {seed:?}", Guard::$guard);
                assert!(seed.is_some(), "no history needs it");
            }
        )*
    };
}

needed! {
    a_transaction_deletes_its_claim: ClaimInTransaction, 6;
    a_claim_is_dead_before_it_is_settled: ClaimKilled, 20;
    a_claim_is_read_between_reservation_and_primary: ClaimBetween, 958;
    what_is_given_up_goes_back_to_its_holder: ReleaseRestores, 4;
    claims_are_looked_at_again: ClaimSecondLook, 24;
    a_claimed_row_is_left_alone: ClaimLeft, 13;
}
