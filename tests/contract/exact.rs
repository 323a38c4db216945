//! Tests that copies and lists match their primaries after any verbs, races and failures.

use std::collections::{BTreeMap, BTreeSet};

use entable::{
    ErrorKind,
    backend::layer::{InjectedFault, RequestKind},
    prelude::*,
};

use crate::store::{Store, TestResult, on_both};

fn is_adult(person: &Person) -> bool {
    person.age >= 18
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "People",
    partition_key = "{city}",
    row_key = "id_{id:02}",
    index(ByEmail, row_key = "email_{email:lower}", unique),
    index(ByName, row_key = "name_{name}_{id:02}", only(age)),
    index(Adult, row_key = "adult_{age:03}_{id:02}", when = is_adult),
    list(SameName, row_key = "same_{name}"),
    list(SameAge, row_key = "age_{age:03}")
)]
pub struct Person {
    pub city: String,
    pub id: u8,
    pub name: String,
    pub age: u8,
    pub email: String,
    pub note: Option<String>,
}

/// A small generator (SplitMix64): the same numbers in every run.
#[derive(Clone)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    fn byte(&mut self, sides: u64) -> u8 {
        u8::try_from(self.roll(sides)).unwrap()
    }

    fn name(&mut self) -> String {
        ["Jones", "Smith", "a_b", "a"][self.roll(4) as usize].to_owned()
    }

    fn email(&mut self) -> String {
        format!("{}@X", ["A", "a", "b", "c", "d", "e", "f"][self.roll(7) as usize])
    }

    fn person(&mut self) -> Person {
        Person {
            city: "Rome".into(),
            id: self.byte(5),
            name: self.name(),
            age: 16 + self.byte(4),
            email: self.email(),
            note: (self.roll(2) == 0).then(|| "note".to_owned()),
        }
    }
}

/// One verb on random entities; what it answers does not matter here.
async fn verb(people: &Table<Person>, dice: &mut Dice) -> Result<(), Error> {
    let person = dice.person();
    let point = Person::primary().city("Rome").id(person.id);
    match dice.roll(12) {
        0 | 1 => people.insert(&person).await.map(drop),
        2 => people.insert_or_replace(&person).await.map(drop),
        3 => people.insert_or_merge(&person).await.map(drop),
        4 => people.replace_any(&person).await.map(drop),
        5 => {
            let Some(mut read) = people.get(point).await? else { return Ok(()) };
            let id = if dice.roll(3) == 0 { dice.byte(5) } else { read.id };
            *read = Person { id, ..person };
            people.replace(&read).await.map(drop)
        }
        6 => {
            let patch = match dice.roll(4) {
                0 => Person::patch().name(dice.name()),
                1 => Person::patch().age(person.age).remove_note(),
                2 => Person::patch().email(dice.email()).note("patched"),
                _ => Person::patch().note("only"),
            };
            people.patch_at(point, patch).await.map(drop)
        }
        7 => {
            let changed = person.clone();
            let change = move |read: &mut Person| {
                *read = Person { id: read.id, ..changed.clone() };
                Ok(())
            };
            people.update(point, change).await.map(drop)
        }
        8 => people.delete_at(point).await.map(drop),
        9 => {
            let by_email = Person::by_email().city("Rome").email(dice.email());
            let Some(mut read) = people.get(by_email).await? else { return Ok(()) };
            if dice.roll(2) == 0 {
                return people.delete(&read).await;
            }
            read.name = dice.name();
            people.replace(&read).await.map(drop)
        }
        10 => {
            let mut egt = people.transaction();
            for _ in 0..=dice.roll(3) {
                let person = dice.person();
                let point = Person::primary().city("Rome").id(person.id);
                let added = match dice.roll(4) {
                    0 => egt.insert(&person),
                    1 => egt.insert_or_replace(&person),
                    2 => egt.patch_at::<Person>(point, Person::patch().email(dice.email())),
                    _ => egt.delete_at(point),
                };
                drop(added);
            }
            egt.commit().await.map(drop)
        }
        _ => {
            let many: Vec<Person> = (0..4).map(|_| dice.person()).collect();
            let bulk = people.bulk();
            let report = match dice.roll(2) {
                0 => bulk.insert_all(many).await,
                _ => bulk.insert_or_replace_all(many).await,
            };
            report.map(drop)
        }
    }
}

/// Compares the rows of the partition with the rows that its primaries derive.
async fn is_exact(store: &Store) -> Result<(), Error> {
    let mut expected: BTreeMap<String, Bag> = BTreeMap::new();
    let mut lists: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut found: BTreeMap<String, Bag> = BTreeMap::new();
    let mut found_lists: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in store.rows("People", "Rome").await {
        let key = Stored::row_key(&row).to_owned();
        match row.entity_type() {
            Some("Person") => {
                let rows = Person::from_row(row.row())?.rows()?;
                for copy in &rows.local_copies {
                    expected.insert(copy.row.row_key().to_owned(), copy.row.to_bag()?);
                }
                for entry in &rows.local_list_entries {
                    lists.entry(entry.row_key.clone()).or_default().insert(entry.id.clone());
                }
            }
            Some("entable.list") => {
                let ids: Vec<String> = serde_json::from_str(row.str("Ids00")?).unwrap();
                let count = ids.len();
                let ids: BTreeSet<String> = ids.into_iter().collect();
                assert_eq!(ids.len(), count, "an id twice in {key}");
                found_lists.insert(key, ids);
            }
            _ => {
                found.insert(key, row.properties().clone());
            }
        }
    }
    assert_eq!(found, expected);
    assert_eq!(found_lists, lists);
    Ok(())
}

async fn history(store: &Store, seed: u64, verbs: usize) -> TestResult {
    let mut dice = Dice(seed);
    let people = store.client.table::<Person>();
    for step in 0..verbs {
        let said = format!("seed {seed}, step {step}");
        match dice.roll(6) {
            0 => {
                let lost = Error::new(ErrorKind::Backend, "connection lost");
                let lost = if dice.roll(2) == 0 {
                    InjectedFault::Before(lost)
                } else {
                    InjectedFault::After(lost)
                };
                store.fault.inject(RequestKind::Any, dice.roll(5) as usize, lost);
            }
            1 | 2 => {
                let other = store.other.table::<Person>();
                let mut dice = Dice(dice.roll(u64::MAX));
                store.before_next_write(async move {
                    drop(verb(&other, &mut dice).await);
                });
            }
            _ => {}
        }
        let result = verb(&people, &mut dice).await;
        eprintln!("{said}: {result:?}");
        if let Err(error) = result {
            let known = error.is_conflict()
                || error.is_unique_violation()
                || error.is_precondition_failed()
                || error.is_not_found()
                || error.is_backend()
                || error.is_invalid();
            assert!(known, "{said}: {error:?}");
        }
        is_exact(store).await?;
    }
    Ok(())
}

#[tokio::test]
async fn copies_and_lists_are_exact_after_random_histories() -> TestResult {
    on_both(async |store| {
        store.table::<Person>().await;
        let memory = store.file.is_none();
        for seed in 0..if memory { 40 } else { 4 } {
            history(&store, seed, 60).await?;
        }
        Ok(())
    })
    .await
}
