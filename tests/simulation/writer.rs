//! A writer that runs random verbs and checks each answer.

use entable::prelude::*;

use crate::world::{Observed, PARTITION, Person, Random, State};

/// A writer's own view of the world.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) table: Table<Person>,
    pub(crate) store: Observed,
    pub(crate) random: Random,
    /// Entities as they were read or written, which may be old.
    pub(crate) known: Vec<Stored<Person>>,
    /// Whether rows were damaged behind the program's back: then taken keys are not looked into.
    pub(crate) damaged: bool,
    pub(crate) history: Vec<String>,
}

/// The target of a verb, for judging its answer.
#[derive(Debug, Clone)]
enum Intent {
    Insert(Person),
    InsertOrReplace(Person),
    /// The version that was read, and what is put in its place; `None`: it is deleted.
    Put {
        loaded: Stored<Person>,
        new: Option<Person>,
    },
    /// Whatever is there is changed, to keys of that person if any.
    Change {
        row_key: String,
        to: Person,
    },
    /// The entity goes; it need not be there, unless the verb is in a transaction.
    Remove {
        row_key: String,
        must_exist: bool,
    },
}

impl Writer {
    pub(crate) fn person(&mut self) -> Person {
        let random = &mut self.random;
        Person {
            department: PARTITION.into(),
            id: random.below(5) as u32 + 1,
            first_name: random.pick(&["Don", "Ann"]).to_owned(),
            last_name: random.pick(&["Jones", "Smith", "Brown"]).to_owned(),
            age: random.pick(&[10, 30]),
            email: random.pick(&["a@x.com", "B@x.com", "c@X.com", "d@x.com", "e@x.com"]).to_owned(),
            badge: random.below(6) as u8,
            visits: 0,
        }
    }

    fn point(id: u32) -> Point<Person> {
        Person::primary().department(PARTITION).id(id)
    }

    /// A change of something, which may move keys.
    fn changed(&mut self, person: &Person) -> Person {
        let other = self.person();
        let mut person = person.clone();
        person.visits += 1;
        match self.random.below(7) {
            6 => person.badge = other.badge,
            0 => person.email = other.email,
            1 => person.last_name = other.last_name,
            2 => person.age = other.age,
            3 => person.first_name = other.first_name,
            4 => person.id = other.id,
            _ => person = Person { visits: person.visits, id: person.id, ..other },
        }
        person
    }

    /// Carries out some verb and judges the answer.
    pub(crate) async fn step(&mut self) {
        let from = self.store.now();
        let verb = self.random.below(14);
        let person = self.person();
        self.history.push(format!("{verb} {person:?}"));
        let id = person.id;
        match verb {
            0 | 1 => {
                let result = self.table.insert(&person).await;
                self.put(result, &Intent::Insert(person), from);
            }
            2 => {
                let result = self.table.insert_or_replace(&person).await;
                self.put(result, &Intent::InsertOrReplace(person), from);
            }
            3 => {
                let result = self.table.insert_or_merge(&person).await;
                self.put(result, &Intent::InsertOrReplace(person), from);
            }
            4 => {
                if let Ok(Some(stored)) = self.table.get(Self::point(id)).await {
                    self.known.push(stored);
                }
            }
            5 => {
                let path = Person::by_email().department(PARTITION).email(person.email);
                match self.table.get(path).await {
                    Ok(Some(stored)) => self.known.push(stored),
                    Ok(None) => {}
                    Err(error) => assert!(error.is_backend(), "{error}"),
                }
            }
            6 | 7 => self.replace(from).await,
            8 => self.patch(person, from).await,
            9 => self.update(id, from).await,
            10 => self.delete(id, from).await,
            11 => self.transaction(from).await,
            12 => self.bulk(from).await,
            _ => self.look().await,
        }
    }

    async fn replace(&mut self, from: usize) {
        if self.known.is_empty() {
            return;
        }
        let loaded = self.random.pick(&self.known);
        let mut stored = loaded.clone();
        *stored = self.changed(&loaded);
        let new = Some(Person::clone(&stored));
        let result = self.table.replace(&stored).await;
        if let Ok(written) = &result
            && loaded.index().is_none()
            && loaded.id == written.id
        {
            let before = self.store.before(written.row_key(), &written.etag());
            assert_eq!(before.map(|state| state.etag), Some(loaded.etag()), "a write was lost");
        }
        self.put(result, &Intent::Put { loaded, new }, from);
    }

    async fn patch(&mut self, person: Person, from: usize) {
        let patch = match self.random.below(5) {
            4 => Person::patch().badge(person.badge),
            0 => Person::patch().visits(7),
            1 => Person::patch().age(person.age),
            2 => Person::patch().last_name(person.last_name.clone()),
            _ => Person::patch().email(person.email.clone()),
        };
        let result = self.table.patch_at(Self::point(person.id), patch).await;
        let intent = Intent::Change { row_key: person.row_key(), to: person };
        self.judge_result(&result, &intent, from);
    }

    async fn update(&mut self, id: u32, from: usize) {
        let mut seen = None;
        let other = self.person();
        let moves = self.random.below(2) == 0;
        let result = self
            .table
            .update(Self::point(id), |person| {
                seen = Some(person.clone());
                person.visits += 1;
                if moves {
                    person.email = other.email.clone();
                    person.last_name = other.last_name.clone();
                }
                Ok(())
            })
            .await;
        if let Ok(written) = &result {
            let before = self.store.before(written.row_key(), &written.etag());
            assert_eq!(before.map(|state| state.person), seen, "an update was lost");
        }
        let intent = Intent::Change { row_key: other_key(id), to: other };
        self.put(result, &intent, from);
    }

    async fn delete(&mut self, id: u32, from: usize) {
        if self.random.below(2) == 0 || self.known.is_empty() {
            let result = self.table.delete_at(Self::point(id)).await;
            let intent = Intent::Remove { row_key: other_key(id), must_exist: false };
            self.judge_result(&result, &intent, from);
        } else {
            let loaded = self.random.pick(&self.known);
            let result = self.table.delete(&loaded).await;
            self.judge_result(&result, &Intent::Put { loaded, new: None }, from);
        }
    }

    async fn transaction(&mut self, from: usize) {
        let mut egt = self.table.transaction();
        let mut intents: Vec<Intent> = Vec::new();
        let mut taken: Vec<u32> = Vec::new();
        for _ in 0..=self.random.below(3) {
            let person = self.person();
            let id = person.id;
            if taken.contains(&id) {
                continue;
            }
            let loaded = self.known.iter().rev().find(|stored| stored.id == id).cloned();
            let added = match (self.random.below(5), loaded) {
                (0, Some(loaded)) => {
                    let mut stored = loaded.clone();
                    *stored = Person { id, ..self.changed(&loaded) };
                    let new = Some(Person::clone(&stored));
                    intents.push(Intent::Put { loaded, new });
                    egt.replace(&stored).map(drop)
                }
                (1, Some(loaded)) => {
                    let added = egt.delete(&loaded).map(drop);
                    intents.push(Intent::Put { loaded, new: None });
                    added
                }
                (2, _) => {
                    let intent = Intent::Remove { row_key: other_key(id), must_exist: true };
                    intents.push(intent);
                    egt.delete_at(Self::point(id)).map(drop)
                }
                (3, _) => {
                    let added = egt.insert_or_replace(&person).map(drop);
                    intents.push(Intent::InsertOrReplace(person));
                    added
                }
                _ => {
                    let added = egt.insert(&person).map(drop);
                    intents.push(Intent::Insert(person));
                    added
                }
            };
            added.unwrap();
            taken.push(id);
        }
        if let Err(error) = egt.commit().await {
            if error.is_backend() {
                return;
            }
            let verb = error.failed_index().unwrap_or_else(|| panic!("whose is {error}"));
            let others: Vec<Intent> = intents
                .iter()
                .enumerate()
                .filter(|(at, _)| *at != verb)
                .map(|(_, i)| i.clone())
                .collect();
            self.judge(&error, &intents[verb], &others, from);
        }
    }

    async fn bulk(&mut self, from: usize) {
        let people: Vec<Person> = (0..4).map(|_| self.person()).collect();
        let bulk = self.table.bulk().concurrency(2);
        let kind = self.random.below(3);
        let report = match kind {
            0 => bulk.insert_all(&people).await,
            1 => bulk.insert_or_replace_all(&people).await,
            _ => bulk.delete_all(people.iter().map(|person| Self::point(person.id))).await,
        };
        let intent = |person: &Person| match kind {
            0 => Intent::Insert(person.clone()),
            1 => Intent::InsertOrReplace(person.clone()),
            _ => Intent::Remove { row_key: person.row_key(), must_exist: false },
        };
        let intents: Vec<Intent> = people.iter().map(intent).collect();
        for failure in report.unwrap().failed {
            let at = failure.index;
            let others: Vec<Intent> = intents
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != at)
                .map(|(_, i)| i.clone())
                .collect();
            self.judge(&failure.error, &intents[at], &others, from);
        }
    }

    /// A check beside the other writer: nothing is wrong but what was damaged.
    async fn look(&mut self) {
        if self.damaged {
            if let Err(error) = self.table.check().repair().await {
                assert!(error.is_backend(), "{error}");
            }
            return;
        }
        match self.table.check().await {
            Ok(report) => assert!(report.is_clean(), "{:?}", report.findings),
            Err(error) => assert!(error.is_backend(), "{error}"),
        }
    }

    fn put(&mut self, result: Result<Stored<Person>, Error>, intent: &Intent, from: usize) {
        self.judge_result(&result, intent, from);
        self.known.extend(result);
    }

    fn judge_result<T>(&self, result: &Result<T, Error>, intent: &Intent, from: usize) {
        if let Err(error) = result {
            self.judge(error, intent, &[], from);
        }
    }

    /// Whether an error is true of the caller's own row at some time between the call and now.
    fn judge(&self, error: &Error, intent: &Intent, others: &[Intent], from: usize) {
        if error.is_backend() {
            return;
        }
        let is_true = if error.is_unique_violation() {
            self.damaged || self.is_taken(error, intent, others, from)
        } else {
            let (_, row_key) = error.keys().unwrap_or_else(|| panic!("no keys: {error}"));
            assert!(row_key.starts_with("empid_"), "an internal row reached the caller: {error}");
            self.is_true(error, intent, others, from)
        };
        assert!(is_true, "{error} was answered to {intent:?} beside {others:?}");
    }

    fn is_true(&self, error: &Error, intent: &Intent, others: &[Intent], from: usize) -> bool {
        let states = |row_key: &str| self.store.states(row_key, from, self.store.now());
        let was_there = |row_key: &str| {
            let others = others.iter().any(|other| other.creates() == Some(row_key.to_owned()));
            others || states(row_key).iter().any(Option::is_some)
        };
        let was_absent = |row_key: &str| states(row_key).iter().any(Option::is_none);
        match intent {
            Intent::Insert(person) => error.is_conflict() && was_there(&person.row_key()),
            Intent::InsertOrReplace(_) => false,
            Intent::Put { loaded, new } => {
                let row_key = other_key(loaded_id(loaded));
                let is_other = |state: &State| match loaded.index() {
                    None => state.etag != loaded.etag(),
                    Some(_) => true,
                };
                let moved = new.as_ref().map(Person::row_key).filter(|new| *new != row_key);
                (error.is_not_found() && was_absent(&row_key))
                    || (error.is_precondition_failed()
                        && states(&row_key).iter().flatten().any(is_other))
                    || (error.is_conflict() && moved.is_some_and(|moved| was_there(&moved)))
            }
            Intent::Change { row_key, .. } => error.is_not_found() && was_absent(row_key),
            Intent::Remove { row_key, must_exist } => {
                *must_exist && error.is_not_found() && was_absent(row_key)
            }
        }
    }

    /// Whether the entity that is named had the key that is wanted.
    fn is_taken(&self, error: &Error, intent: &Intent, others: &[Intent], from: usize) -> bool {
        let index = error.index().expect("a violation names its index");
        let (_, holder) = error.holder().unwrap_or_else(|| panic!("nobody holds it: {error}"));
        let Some((own, wanted)) = intent.wants(index) else { return false };
        if own == holder {
            return false;
        }
        let among = others.iter().filter_map(|other| other.wants(index));
        if among.into_iter().any(|other| other == (holder.to_owned(), wanted.clone())) {
            return true;
        }
        let states = self.store.states(holder, from, self.store.now());
        states.into_iter().flatten().any(|state| state.person.key_in(index) == wanted)
    }
}

fn other_key(id: u32) -> String {
    format!("empid_{id:06}")
}

/// The id under which an entity was loaded, whatever became of the value since.
fn loaded_id(loaded: &Stored<Person>) -> u32 {
    match loaded.index() {
        None => loaded.row_key().trim_start_matches("empid_").parse().unwrap(),
        Some(_) => loaded.id,
    }
}

impl Intent {
    fn creates(&self) -> Option<String> {
        match self {
            Self::Insert(person) | Self::InsertOrReplace(person) => Some(person.row_key()),
            Self::Put { new: Some(person), .. } => Some(person.row_key()),
            _ => None,
        }
    }

    /// Returns the key of an index that the write wants, and the entity that wants it.
    fn wants(&self, index: &str) -> Option<(String, String)> {
        match self {
            Self::Insert(person) | Self::InsertOrReplace(person) => {
                Some((person.row_key(), person.key_in(index)))
            }
            Self::Put { new: Some(person), .. } => Some((person.row_key(), person.key_in(index))),
            Self::Change { row_key, to } => Some((row_key.clone(), to.key_in(index))),
            _ => None,
        }
    }
}
