// The store of the examples in the documentation of methods: a hidden line of each includes this file.
#[allow(unused_imports)]
use entable_core::{
    backend::{Backend, Memory, TableRequest},
    *,
};

/// Inserts rows with these RowKeys into the partition Sales of the table Staff, all or none.
#[allow(dead_code)]
async fn insert(store: &Memory, row_keys: &[&str]) -> Result<Vec<Written>, Error> {
    let mut batch = Batch::new("Staff");
    for row_key in row_keys {
        batch.push(Operation::insert(Row::build("Sales", row_key).finish()?))?;
    }
    store.apply(&batch).await
}

/// Returns a store in memory whose table Staff has one row, `empid_000007`.
#[allow(dead_code)]
async fn staff() -> Result<Memory, Error> {
    let store = Memory::new();
    store.tables(TableRequest::Create("Staff")).await?;
    insert(&store, &["empid_000007"]).await?;
    Ok(store)
}
