//! Runs random histories on a backend and on the model, and compares the results.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use entable::{
    Batch, Comparison, Condition, Continuation, ETag, Error, Filter, Operation, Row, Ticks, Value,
    Verb,
    backend::{Backend, ReadRequest, ScanRequest, TableRequest, layer::FaultInjector},
};
use proptest::{
    collection::{btree_map, vec},
    option,
    prelude::*,
    sample::select,
    test_runner::{Config, TestRunner},
};

use crate::reference::{Entity, Expect, Model, Refusal, Write};

type Keys = (String, String);

/// One step of a history.
#[derive(Debug, Clone)]
enum Step {
    Create(&'static str),
    Drop(&'static str),
    List,
    Read(&'static str, Keys),
    /// A query to its end, with the selected properties.
    Query(&'static str, Filter, Option<u32>, Option<Vec<String>>),
    /// The first page of a query that goes on between other steps.
    Begin(&'static str, Filter, u32),
    /// The next page of that query.
    Continue,
    Apply(&'static str, Vec<Planned>),
}

/// A write whose version is chosen when it is carried out: the row's current one, or one that is
/// some writes older.
#[derive(Debug, Clone)]
struct Planned {
    verb: Verb,
    keys: Keys,
    properties: BTreeMap<String, Value>,
    expect: Option<usize>,
}

fn table() -> impl Strategy<Value = &'static str> {
    // The first two are one table.
    prop_oneof![8 => Just("Staff"), 2 => Just("STAFF"), 1 => Just("Archive")]
}

fn partition_key() -> impl Strategy<Value = String> {
    prop_oneof![4 => Just("a"), 1 => select(vec!["", "a ", "aa", "b", "\u{1f600}", "\u{e000}"])]
        .prop_map(str::to_owned)
}

fn row_key() -> impl Strategy<Value = String> {
    select(vec!["", "1", "10", "2", "a'b", "\u{1f600}", "\u{ffff}"]).prop_map(str::to_owned)
}

fn name() -> impl Strategy<Value = String> {
    select(vec!["A", "B", "a"]).prop_map(str::to_owned)
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::from),
        (-2..3_i32).prop_map(Value::from),
        (-2..3_i64).prop_map(Value::from),
        (-4..5_i32).prop_map(|halves| Value::from(f64::from(halves) / 2.0)),
        select(vec!["", "1", "a", "B", "\u{1f600}", "\u{e000}"]).prop_map(Value::from),
        (0..3_i64).prop_map(|n| {
            Value::from(Ticks::new(Ticks::UNIX_EPOCH.get() + n).expect("a time"))
        }),
        (0..3_u128).prop_map(|n| Value::from(uuid::Uuid::from_u128(n))),
        vec(0..3_u8, 0..2).prop_map(Value::from),
    ]
}

fn filter() -> impl Strategy<Value = Filter> {
    use Comparison::{Eq, Ge, Gt, Le, Lt, Ne};
    let comparison = || select(vec![Eq, Ne, Gt, Ge, Lt, Le]);
    let leaf = prop_oneof![
        4 => (name(), comparison(), value()).prop_map(|(n, c, v)| Filter::compare(n, c, v)),
        2 => (comparison(), partition_key()).prop_map(|(c, v)| Filter::compare("PartitionKey", c, v)),
        3 => (comparison(), row_key()).prop_map(|(c, v)| Filter::compare("RowKey", c, v)),
        1 => (comparison(), value()).prop_map(|(c, v)| Filter::compare("RowKey", c, v)),
        1 => name().prop_map(Filter::Property),
        1 => any::<bool>().prop_map(Filter::Constant),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            3 => vec(inner.clone(), 1..4).prop_map(Filter::all),
            1 => vec(inner.clone(), 1..4).prop_map(Filter::any),
            1 => inner.prop_map(|filter| !filter),
        ]
    })
}

fn planned(partition_key: impl Strategy<Value = String>) -> impl Strategy<Value = Planned> {
    use Verb::{Delete, Insert, InsertOrMerge, InsertOrReplace, Merge, Replace};
    let verb = select(vec![Insert, Replace, Merge, InsertOrReplace, InsertOrMerge, Delete]);
    let expect = prop_oneof![4 => Just(None), 3 => Just(Some(0)), 1 => (1..3_usize).prop_map(Some)];
    (verb, (partition_key, row_key()), btree_map(name(), value(), 0..3), expect)
        .prop_map(|(verb, keys, properties, expect)| Planned { verb, keys, properties, expect })
}

fn step() -> impl Strategy<Value = Step> {
    let batch = partition_key().prop_flat_map(|key| vec(planned(Just(key)), 2..6));
    prop_oneof![
        1 => table().prop_map(Step::Create),
        1 => table().prop_map(Step::Drop),
        1 => Just(Step::List),
        3 => (table(), (partition_key(), row_key())).prop_map(|(table, keys)| Step::Read(table, keys)),
        5 => (table(), filter(), option::of(1..4_u32), option::weighted(0.2, vec(name(), 0..3)))
            .prop_map(|(table, filter, top, select)| Step::Query(table, filter, top, select)),
        2 => (table(), filter(), 1..3_u32).prop_map(|(t, filter, top)| Step::Begin(t, filter, top)),
        6 => Just(Step::Continue),
        10 => (table(), planned(partition_key())).prop_map(|(t, w)| Step::Apply(t, vec![w])),
        6 => (table(), batch).prop_map(|(table, writes)| Step::Apply(table, writes)),
        1 => (table(), vec(planned(partition_key()), 2..4)).prop_map(|(t, w)| Step::Apply(t, w)),
    ]
}

/// Tries `histories` random histories. Makes a failing one as short as possible.
pub(crate) fn agrees(backend: impl Fn() -> Arc<dyn Backend>, histories: u32) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let config = Config { cases: histories, failure_persistence: None, ..Config::default() };
    let steps = vec(step(), 1..60);
    let tried = TestRunner::new(config).run(&steps, |steps| {
        let mut pair = Pair::new(backend());
        runtime.block_on(async {
            pair.create("Staff").await;
            for step in steps {
                pair.step(step).await;
            }
            for table in ["Staff", "Archive"] {
                pair.query(table, &Filter::Constant(true), None, None).await;
            }
        });
        Ok(())
    });
    if let Err(failure) = tried {
        panic!("{failure}");
    }
}

/// A backend and the model, which carry out one history.
struct Pair {
    backend: Arc<dyn Backend>,
    model: Model,
    /// The ETag of each version of the model.
    etags: HashMap<usize, ETag>,
    /// The versions that a row had, the last one at the end.
    versions: HashMap<(String, Keys), Vec<usize>>,
    open: Option<Open>,
}

/// A query that goes on between other steps.
struct Open {
    table: &'static str,
    filter: Filter,
    top: u32,
    from: Option<Continuation>,
}

impl Pair {
    fn new(backend: Arc<dyn Backend>) -> Self {
        let (etags, versions) = (HashMap::new(), HashMap::new());
        Self { backend, model: Model::default(), etags, versions, open: None }
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Create(table) => self.create(table).await,
            Step::Drop(table) => {
                let found = self.backend.tables(TableRequest::Delete(table)).await;
                same(found.map(drop), self.model.drop_table(table));
            }
            Step::List => {
                let found =
                    self.backend.tables(TableRequest::List { from: None, within: None }).await;
                assert_eq!(found.expect("tables can be listed").names, self.model.table_names());
            }
            Step::Read(table, keys) => self.read(table, &keys).await,
            Step::Query(table, filter, top, select) => {
                self.query(table, &filter, top, select.as_deref()).await;
            }
            Step::Begin(table, filter, top) => {
                self.open = Some(Open { table, filter, top, from: None });
                self.next_page().await;
            }
            Step::Continue => self.next_page().await,
            Step::Apply(table, writes) => self.apply(table, writes).await,
        }
    }

    async fn create(&mut self, table: &str) {
        let found = self.backend.tables(TableRequest::Create(table)).await;
        same(found.map(drop), self.model.create(table));
    }

    async fn read(&self, table: &str, keys: &Keys) {
        let (partition_key, row_key) = (keys.0.as_str(), keys.1.as_str());
        let read = ReadRequest { table, partition_key, row_key, select: None };
        let found = self.backend.read(read).await;
        let found = found.map(|row| row.map(|row| self.entity(table, &row)));
        same(found, self.model.read(table, keys));
    }

    async fn query(
        &self,
        table: &str,
        filter: &Filter,
        top: Option<u32>,
        select: Option<&[String]>,
    ) {
        let mut expected = self.model.query(table, filter);
        if let (Ok(entities), Some(select)) = (&mut expected, select) {
            for entity in entities {
                entity.properties.retain(|name, _| select.contains(name));
            }
        }
        let mut entities = Vec::new();
        let mut from = None;
        loop {
            let scan = ScanRequest { table, filter, select, top, from: from.as_ref() };
            match self.backend.scan(scan).await {
                Err(error) => return same(Err::<(), _>(error), expected.map(drop)),
                Ok(page) => {
                    assert!(top.is_none_or(|top| page.rows.len() <= top as usize));
                    from.clone_from(&page.next);
                    let rows = page.into_rows().expect("each row decodes");
                    entities.extend(rows.iter().map(|row| self.entity(table, row)));
                }
            }
            if from.is_none() {
                break;
            }
        }
        assert_eq!(Ok(entities), expected, "{filter}");
    }

    /// The next page of the open query shows what matches now, from where it stands.
    async fn next_page(&mut self) {
        let Some(Open { table, filter, top, from }) = self.open.take() else { return };
        let scan = ScanRequest {
            table,
            filter: &filter,
            select: None,
            top: Some(top),
            from: from.as_ref(),
        };
        let place = FaultInjector::backend_continuation(from.as_ref());
        let ahead = self.model.query_from(table, &filter, place.as_ref());
        let (page, mut ahead) = match (self.backend.scan(scan).await, ahead) {
            (Ok(page), Ok(ahead)) => (page, ahead),
            (page, ahead) => return same(page.map(drop), ahead.map(drop)),
        };
        assert!(page.rows.len() <= top as usize);
        if page.next.is_some() {
            ahead.truncate(page.rows.len());
        }
        let next = page.next.clone();
        let rows = page.into_rows().expect("each row decodes");
        let found: Vec<Entity> = rows.iter().map(|row| self.entity(table, row)).collect();
        assert_eq!(found, ahead, "{filter} from {from:?}");
        self.open = next.map(|next| Open { table, filter, top, from: Some(next) });
    }

    async fn apply(&mut self, table: &str, planned: Vec<Planned>) {
        let place = |keys: &Keys| (table.to_lowercase(), keys.clone());
        let writes: Vec<Write> = planned
            .into_iter()
            .map(|Planned { verb, keys, properties, expect }| {
                let versions = self.versions.get(&place(&keys));
                let chosen = expect.and_then(|age| {
                    let versions = versions?;
                    versions.len().checked_sub(age + 1).map(|at| versions[at])
                });
                let expect = chosen.map_or(Expect::Any, Expect::Version);
                Write { verb, keys, properties, expect }
            })
            .collect();
        let found = match self.batch(table, &writes) {
            Ok(batch) => self.backend.apply(&batch).await,
            Err(error) => Err(error),
        };
        match (found, self.model.apply(table, &writes)) {
            (Ok(written), Ok(versions)) => {
                assert_eq!(written.len(), versions.len());
                for ((write, written), version) in writes.iter().zip(written).zip(versions) {
                    assert_eq!(written.etag.is_some(), version.is_some());
                    let (Some(etag), Some(version)) = (written.etag, version) else { continue };
                    let row = self.versions.entry(place(&write.keys)).or_default();
                    assert!(row.iter().all(|old| self.etags[old] != etag), "{etag} comes twice");
                    row.push(version);
                    self.etags.insert(version, etag);
                }
            }
            (found, expected) => same(found.map(drop), expected.map(drop)),
        }
    }

    fn batch(&self, table: &str, writes: &[Write]) -> Result<Batch, Error> {
        let mut batch = Batch::new(table);
        for write in writes {
            let (partition_key, row_key) = (&write.keys.0, &write.keys.1);
            let mut row = Row::build(partition_key, row_key);
            for (name, value) in &write.properties {
                row.put(name, value.as_ref());
            }
            let row = row.finish()?;
            let condition = match write.expect {
                Expect::Any => Condition::Any,
                Expect::Version(version) => Condition::Match(self.etags[&version].clone()),
            };
            batch.push(match write.verb {
                Verb::Insert => Operation::insert(row),
                Verb::Replace => Operation::replace(row, condition),
                Verb::Merge => Operation::merge(row, condition),
                Verb::InsertOrReplace => Operation::insert_or_replace(row),
                Verb::InsertOrMerge => Operation::insert_or_merge(row),
                Verb::Delete => Operation::delete(partition_key, row_key, condition)?,
            })?;
        }
        Ok(batch)
    }

    /// A row as the model has it.
    fn entity(&self, table: &str, row: &Row) -> Entity {
        let mut properties = BTreeMap::new();
        let mut found = row.properties();
        while let Some((name, value)) = found.next().expect("the row is whole") {
            properties.insert(String::from_utf8_lossy(name).into_owned(), value.to_value());
        }
        let keys = (row.partition_key().to_owned(), row.row_key().to_owned());
        let etag = row.etag().expect("a stored row has a version");
        // Rows that one transaction wrote may share an ETag.
        let versions = self.versions.get(&(table.to_lowercase(), keys.clone()));
        let version = versions.and_then(|all| all.iter().find(|known| self.etags[known] == etag));
        let version = *version.expect("the version was reported by a write to the row");
        Entity { keys, properties, version }
    }
}

/// Both say the same, or refuse with the same code and operation.
fn same<T: std::fmt::Debug + PartialEq>(found: Result<T, Error>, expected: Result<T, Refusal>) {
    match (found, expected) {
        (Ok(found), Ok(expected)) => assert_eq!(found, expected),
        (Err(found), Err((code, index))) => {
            assert_eq!((found.code(), found.failed_index()), (Some(code), index), "{found}");
        }
        (found, expected) => panic!("found {found:?}, the model has {expected:?}"),
    }
}
