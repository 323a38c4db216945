//! Defines the entity, the store that records the states of primaries, and the rows that have to be
//! there.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use entable::{
    Batch, FromRow, Row, Written,
    backend::{
        Backend, BoxFuture, Capabilities, Memory, ReadRequest, Rows, ScanRequest, TableNames,
        TableRequest,
    },
    prelude::*,
};

pub(crate) const TABLE: &str = "Staff";
pub(crate) const PARTITION: &str = "Sales";

fn is_adult(person: &Person) -> bool {
    person.age >= 18
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByEmail, row_key = "email_{email:lower}", unique),
    index(ByBadge, row_key = "badge_{badge}", unique, only(visits)),
    index(ByName, row_key = "name_{last_name}_{id:06}", only(first_name)),
    index(Adult, row_key = "adult_{id:06}", when = is_adult),
    list(ByLastName, row_key = "lastname_{last_name}")
)]
pub(crate) struct Person {
    pub(crate) department: String,
    pub(crate) id: u32,
    pub(crate) first_name: String,
    pub(crate) last_name: String,
    pub(crate) age: i32,
    pub(crate) email: String,
    pub(crate) badge: u8,
    pub(crate) visits: i64,
}

impl Person {
    pub(crate) fn row_key(&self) -> String {
        format!("empid_{:06}", self.id)
    }

    /// The key that it has in a unique index.
    pub(crate) fn key_in(&self, index: &str) -> String {
        match index {
            "ByEmail" => format!("email_{}", self.email.to_lowercase()),
            "ByBadge" => format!("badge_{:03}", self.badge),
            other => panic!("`{other}` is not unique"),
        }
    }
}

/// A small generator: the same numbers for the same seed, on every machine.
#[derive(Debug, Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize].clone()
    }
}

/// A primary as it was after a write.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) etag: ETag,
    pub(crate) person: Person,
}

#[derive(Debug, Default)]
struct Log {
    /// The state of each primary after each write, in order.
    entries: Vec<(String, Option<State>)>,
}

/// A store that lets other tasks run before every request, and writes down what becomes of
/// primaries.
#[derive(Debug, Clone)]
pub(crate) struct Observed {
    inner: Arc<Memory>,
    log: Arc<Mutex<Log>>,
    turns: Arc<Mutex<Random>>,
}

impl Observed {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            inner: Arc::new(Memory::new()),
            log: Arc::default(),
            turns: Arc::new(Mutex::new(Random(seed ^ 0x7475_726e))),
        }
    }

    /// How many writes of primaries there were.
    pub(crate) fn now(&self) -> usize {
        self.log.lock().unwrap().entries.len()
    }

    /// The states that a primary was in from one time to another.
    pub(crate) fn states(&self, row_key: &str, from: usize, to: usize) -> Vec<Option<State>> {
        let log = self.log.lock().unwrap();
        let of = |(key, _): &&(String, Option<State>)| key == row_key;
        let first = log.entries[..from].iter().rev().find(of).and_then(|(_, state)| state.clone());
        let later = log.entries[from..to].iter().filter(of).map(|(_, state)| state.clone());
        std::iter::once(first).chain(later).collect()
    }

    /// Returns the state of the primary before the write that gave it that ETag.
    pub(crate) fn before(&self, row_key: &str, etag: &ETag) -> Option<State> {
        let log = self.log.lock().unwrap();
        let is_it = |(key, state): &(String, Option<State>)| {
            key == row_key && state.as_ref().is_some_and(|state| state.etag == *etag)
        };
        let at = log.entries.iter().position(is_it).expect("the write is in the log");
        log.entries[..at].iter().rev().find(|(key, _)| key == row_key)?.1.clone()
    }

    async fn turn(&self) {
        let turns = self.turns.lock().unwrap().below(4);
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
    }

    async fn applied(&self, batch: &Batch) -> Result<Vec<Written>, Error> {
        let written = self.inner.apply(batch).await?;
        for operation in batch.operations() {
            let row_key = operation.row().row_key();
            if !row_key.starts_with("empid_") {
                continue;
            }
            let read =
                ReadRequest { table: TABLE, partition_key: PARTITION, row_key, select: None };
            let row = self.inner.read(read).await?;
            let state = row.map(|row| State {
                etag: row.etag().unwrap(),
                person: FromRow::from_row(&row).unwrap(),
            });
            self.log.lock().unwrap().entries.push((row_key.to_owned(), state));
        }
        Ok(written)
    }
}

impl Backend for Observed {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>, Error>> {
        Box::pin(async move {
            self.turn().await;
            self.inner.read(request).await
        })
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows, Error>> {
        Box::pin(async move {
            self.turn().await;
            self.inner.scan(request).await
        })
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>, Error>> {
        Box::pin(async move {
            self.turn().await;
            // The write and what is written down of it are one step.
            tokio::task::unconstrained(self.applied(batch)).await
        })
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames, Error>> {
        self.inner.tables(request)
    }
}

/// The keys of all rows, and the ids of all lists.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    rows: BTreeSet<String>,
    lists: BTreeMap<String, BTreeSet<String>>,
}

impl Layout {
    /// Returns the stored rows.
    pub(crate) async fn found(client: &Client) -> Self {
        let mut layout = Self::default();
        for row in client.dynamic(TABLE).query(Keys::partition(PARTITION)).collect().await.unwrap()
        {
            layout.rows.insert(row.row_key().to_owned());
            if row.row_key().starts_with("lastname_") {
                let ids: Vec<String> = serde_json::from_str(row.str("Ids00").unwrap()).unwrap();
                let count = ids.len();
                let ids: BTreeSet<String> = ids.into_iter().collect();
                assert_eq!(ids.len(), count, "an id is in a list once");
                layout.lists.insert(row.row_key().to_owned(), ids);
            }
        }
        layout
    }

    /// Returns the rows that the primaries require, computed by hand and not by the library.
    pub(crate) async fn expected(table: &Table<Person>) -> Self {
        let mut layout = Self::default();
        for person in table.query(Person::scan()).collect().await.unwrap() {
            let id = person.row_key();
            layout.rows.insert(person.key_in("ByEmail"));
            layout.rows.insert(person.key_in("ByBadge"));
            layout.rows.insert(format!("name_{}_{:06}", person.last_name, person.id));
            if person.age >= 18 {
                layout.rows.insert(format!("adult_{:06}", person.id));
            }
            let list = format!("lastname_{}", person.last_name);
            layout.rows.insert(list.clone());
            layout.lists.entry(list).or_default().insert(id.to_owned());
            layout.rows.insert(id.to_owned());
        }
        layout
    }
}
