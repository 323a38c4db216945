//! What has to be true after a kill.

use std::{collections::BTreeMap, time::Duration};

use entable::{WorkerStats, prelude::*};

use crate::{
    ledger::Ledger,
    model::{Person, TEAMS},
    place::{Place, is_emulator},
};

type Verdict<T> = Result<T, String>;

/// Returns the text of an error, with what was done.
fn at(what: &'static str) -> impl Fn(Error) -> String {
    move |error| format!("{what}: {error}")
}

/// Finishes the open work and compares. `is_whole` also waits for second looks, which an embedded store's
/// clock brings at once. Open work is waited for always: an entity on its way is in two places.
pub(crate) async fn judge(place: &Place, ledger: &mut Ledger, is_whole: bool) -> Verdict<()> {
    let client = place.client(0);
    let people = client.table::<Person>();
    drain(place, &client, is_whole).await?;
    let all = read_all(&people).await?;
    let mut marks = BTreeMap::new();
    let mut holders = BTreeMap::new();
    for person in &all {
        if marks.insert(person.id, person.mark).is_some() {
            return Err(format!("entity {} is in two places: {all:?}", person.id));
        }
        if let Some(other) = holders.insert(person.email.clone(), person.id) {
            return Err(format!("{} and {other} have the value {}", person.id, person.email));
        }
    }
    ledger.compare(&marks)?;
    for person in &all {
        let path = Person::by_email().email(&person.email);
        let held = people.get(path).await.map_err(at("by value"))?;
        if held.as_ref().map(|held| held.id) != Some(person.id) {
            return Err(format!("the value {} finds {held:?}, not {person:?}", person.email));
        }
    }
    if is_whole {
        let report = people.check().without_waiting().await.map_err(at("check"))?;
        if report.progress.suspects + report.progress.pending > 0 || !report.is_clean() {
            return Err(format!("the check found {report:?}"));
        }
        compare_lists(&people, &all).await?;
    }
    client.close().await.map_err(at("close"))
}

/// Does the open work. Without second looks, claims of dead writers and removals are left.
async fn drain(place: &Place, client: &Client, is_whole: bool) -> Verdict<()> {
    let worker = client.worker().with::<Person>();
    let mut stats = WorkerStats::default();
    for attempt in 0..17 {
        if attempt > 0 {
            wait(place, is_whole).await;
        }
        stats = worker.drain().await.map_err(at("drain"))?;
        if stats.poisoned > 0 || stats.unknown > 0 {
            return Err(format!("work was put aside or left: {stats:?}"));
        }
        if stats.open == 0 && (!is_whole || stats.waiting == 0) {
            return Ok(());
        }
    }
    Err(format!("work is left: {stats:?}"))
}

/// Lets time pass between two drains.
async fn wait(place: &Place, is_whole: bool) {
    match is_emulator() {
        // Work that a killed process has begun stays open until its deadline is over, some 50 seconds.
        true if !is_whole => tokio::time::sleep(Duration::from_secs(6)).await,
        true => tokio::time::sleep(Duration::from_secs(37)).await,
        false => place.clock.advance(400),
    }
}

async fn read_all(people: &Table<Person>) -> Verdict<Vec<Person>> {
    let mut all = Vec::new();
    for team in TEAMS {
        let found = people.query(Person::primary().team(team)).collect().await;
        let found = found.map_err(at("read"))?;
        all.extend(found.into_iter().map(Stored::into_inner));
    }
    Ok(all)
}

async fn compare_lists(people: &Table<Person>, all: &[Person]) -> Verdict<()> {
    let mut cities: Vec<_> = all.iter().map(|person| person.city.clone()).collect();
    cities.extend((0..3).map(|city| format!("c{city}")));
    cities.sort_unstable();
    cities.dedup();
    for city in cities {
        let listed = people.keys(Person::by_city().city(&city)).await.map_err(at("list"))?;
        let mut listed: Vec<_> = listed.iter().map(|key| key.row_key().to_owned()).collect();
        let here = all.iter().filter(|person| person.city == city);
        let mut expected: Vec<_> = here.map(|person| format!("{:06}", person.id)).collect();
        listed.sort_unstable();
        expected.sort_unstable();
        if listed != expected {
            return Err(format!("{city} lists {listed:?}, expected {expected:?}"));
        }
    }
    Ok(())
}
