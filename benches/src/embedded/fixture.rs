//! The same rows in both stores.

use std::path::Path;

use entable::{
    Batch, Operation, Row, ValueRef,
    backend::{Backend, Embedded, EmbeddedOptions, TableRequest},
    key::encode_sort_key,
};
use redb::{Database, TableDefinition};
use tokio::runtime::Runtime;

/// Rows of one partition.
pub(crate) const PARTITION_ROWS: usize = 10_000;
/// The table of the raw engine.
pub(crate) const RAW: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("rows");
/// The cache of both.
pub(crate) const CACHE: usize = 64 * 1024 * 1024;

/// The keys of the row of that number.
pub(crate) fn keys(number: usize) -> (String, String) {
    (format!("partition_{:06}", number / PARTITION_ROWS), format!("row_{number:016}"))
}

/// The row of that number, some 512 bytes.
pub(crate) fn row(number: usize) -> Row {
    let (partition_key, row_key) = keys(number);
    let mut row = Row::build(&partition_key, &row_key);
    let mut state = number as u64 + 1;
    let text: String = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'a' + (state >> 59) as u8 % 26)
    })
    .take(380)
    .collect();
    row.put("Text", ValueRef::String(&text));
    row.put("Number", ValueRef::Int64(number as i64));
    row.put("Part", ValueRef::Double(number as f64 / 3.0));
    row.put("Flag", ValueRef::Boolean(number.is_multiple_of(2)));
    row.finish().unwrap()
}

/// A runtime of as many threads as there are processors.
pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap()
}

/// An empty table `Rows` in a new store.
pub(crate) fn store(runtime: &Runtime, path: &Path, options: EmbeddedOptions) -> Embedded {
    let store = options.cache_bytes(CACHE).open(path).unwrap();
    runtime.block_on(store.tables(TableRequest::Create("Rows"))).unwrap();
    store
}

/// Inserts rows, a hundred per transaction.
pub(crate) async fn fill(store: &Embedded, rows: std::ops::Range<usize>) {
    let mut batch = Batch::new("Rows");
    for number in rows {
        let operation = Operation::insert(row(number));
        if batch.len() == 100 || number % PARTITION_ROWS == 0 {
            let full = std::mem::replace(&mut batch, Batch::new("Rows"));
            if !full.is_empty() {
                store.apply(&full).await.unwrap();
            }
        }
        batch.push(operation).unwrap();
    }
    store.apply(&batch).await.unwrap();
}

/// The engine with the same cache.
pub(crate) fn raw(path: &Path) -> Database {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE);
    let database = builder.create(path).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(RAW).unwrap();
    transaction.commit().unwrap();
    database
}

/// Inserts rows in one raw transaction per hundred.
pub(crate) fn fill_raw(database: &Database, rows: std::ops::Range<usize>) {
    let rows: Vec<usize> = rows.collect();
    for rows in rows.chunks(100) {
        let mut transaction = database.begin_write().unwrap();
        transaction.set_durability(redb::Durability::None).unwrap();
        let mut table = transaction.open_table(RAW).unwrap();
        for number in rows {
            let (partition_key, row_key) = keys(*number);
            let key = encode_sort_key(&partition_key, &row_key);
            table.insert(&*key, &*row(*number).as_bytes()).unwrap();
        }
        drop(table);
        transaction.commit().unwrap();
    }
    database.begin_write().unwrap().commit().unwrap();
}
