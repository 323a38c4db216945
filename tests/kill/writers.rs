//! The process that is killed: writers that say what they begin and what was acknowledged, and workers.

use std::{
    io::Write,
    path::Path,
    time::{Duration, SystemTime},
};

use entable::prelude::*;
use futures_util::future::join_all;

use crate::{
    model::{Person, Random, TEAMS},
    parent::skew,
    place::Place,
};

const WRITERS: u32 = 4;
const IDS: u32 = 6;

/// Writes until the process is killed.
pub(crate) async fn write(folder: &Path, number: u32, ahead: i64, seed: u64) {
    let place = Place::open(folder, ahead);
    let mut random = Random(seed);
    let mut wrong_by = || i64::try_from(random.below(2 * skew() + 1)).unwrap() - skew_i64();
    let clients: Vec<_> = (0..WRITERS + 2).map(|_| place.client(wrong_by())).collect();
    let workers = clients.iter().skip(WRITERS as usize).map(|client| {
        let worker = client.worker().with::<Person>().interval(Duration::from_millis(20));
        tokio::spawn(async move { worker.run(std::future::pending()).await })
    });
    let workers: Vec<_> = workers.collect();
    say("ready");
    let writers = clients.iter().zip(0..WRITERS).map(|(client, writer)| {
        let random = Random(seed.wrapping_mul(31).wrapping_add(writer.into()));
        let first = number * 1_000 + writer * 100;
        Writer { people: client.table::<Person>(), first, random }.run()
    });
    join_all(writers).await;
    drop(workers);
}

fn skew_i64() -> i64 {
    i64::try_from(skew()).unwrap()
}

/// Says a line to the parent. The end shows that the line is whole.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line} .").unwrap();
    out.flush().unwrap();
}

/// A number that no other write has.
fn new_mark() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    i64::try_from(now.as_nanos()).unwrap()
}

/// Reads an entity, whose team nobody knows.
pub(crate) async fn find(people: &Table<Person>, id: u32) -> Result<Option<Stored<Person>>, Error> {
    for team in TEAMS {
        if let Some(found) = people.get(Person::primary().team(team).id(id)).await? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// A writer of some entities that nobody else writes.
struct Writer {
    people: Table<Person>,
    first: u32,
    random: Random,
}

impl Writer {
    async fn run(mut self) {
        loop {
            let id = self.first + u32::try_from(self.random.below(IDS.into())).unwrap();
            // An entity that cannot be read now is another write's turn.
            if let Ok(found) = find(&self.people, id).await {
                self.step(id, found).await;
            }
            tokio::task::yield_now().await;
        }
    }

    async fn step(&mut self, id: u32, found: Option<Stored<Person>>) {
        let mark = new_mark();
        let Some(mut stored) = found else {
            let team = TEAMS[usize::try_from(self.random.below(2)).unwrap()];
            let person = Person::any(team, id, mark, &mut self.random);
            let people = self.people.clone();
            return attempt(&[(id, mark)], async { people.insert(&person).await.map(drop) }).await;
        };
        match self.random.below(12) {
            0 => attempt(&[(id, 0)], self.people.delete(&stored)).await,
            1 | 2 => {
                let other = if stored.team == TEAMS[0] { TEAMS[1] } else { TEAMS[0] };
                stored.team = other.to_owned();
                let moved = async { self.people.move_to(&stored, &self.people).await.map(drop) };
                attempt(&[(id, stored.mark)], moved).await;
            }
            3 => self.exchange(id, stored, mark).await,
            _ => {
                let new = Person::any(&stored.team, id, mark, &mut self.random);
                *stored = new;
                let replaced = async { self.people.replace(&stored).await.map(drop) };
                attempt(&[(id, mark)], replaced).await;
            }
        }
    }

    /// Exchanges the unique values of two entities in one transaction.
    async fn exchange(&mut self, id: u32, mut one: Stored<Person>, mark: i64) {
        let other = self.first + u32::try_from(self.random.below(IDS.into())).unwrap();
        let at = Person::primary().team(&one.team).id(other);
        let Ok(Some(mut two)) = self.people.get(at).await else { return };
        if other == id {
            return;
        }
        std::mem::swap(&mut one.email, &mut two.email);
        (one.mark, two.mark) = (mark, mark + 1);
        let exchanged = async {
            let mut egt = self.people.transaction();
            egt.replace(&one)?.replace(&two)?;
            egt.commit().await.map(drop)
        };
        attempt(&[(id, mark), (other, mark + 1)], exchanged).await;
    }
}

/// Says which marks a write gives to which entities, and what became of it. The mark 0 stands for an entity
/// that is gone.
async fn attempt(marks: &[(u32, i64)], write: impl Future<Output = Result<(), Error>>) {
    for (id, mark) in marks {
        say(&format!("try {id} {mark}"));
    }
    let answer = match write.await {
        Ok(()) => "yes",
        Err(error) if is_certain(&error) => "no",
        Err(_) => "maybe",
    };
    for (id, mark) in marks {
        say(&format!("{answer} {id} {mark}"));
    }
}

/// Returns whether a failed write certainly left nothing.
fn is_certain(error: &Error) -> bool {
    error.is_conflict()
        || error.is_precondition_failed()
        || error.is_not_found()
        || error.is_unique_violation()
}
