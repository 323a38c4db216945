//! The emulator that a test runs against.

use entable::{
    Azure, AzureOptions, Batch, Operation, Result, Row, Written,
    backend::{Backend, ReadRequest, TableRequest},
};

/// The variable that names the emulator.
const VARIABLE: &str = "ENTABLE_AZURITE";

/// The options for the emulator. `None`, said aloud, where there is none.
pub(crate) fn options() -> Option<AzureOptions> {
    let Ok(connection) = std::env::var(VARIABLE) else {
        println!("not run: {VARIABLE} names no emulator");
        return None;
    };
    Some(AzureOptions::from_connection_string(&connection).unwrap())
}

/// The connection string.
pub(crate) fn connection() -> Option<String> {
    options().and_then(|_| std::env::var(VARIABLE).ok())
}

/// A backend on the emulator, if there is one.
pub(crate) fn backend() -> Option<Azure> {
    Some(Azure::new(options()?).unwrap())
}

/// A backend on the emulator with a new table.
pub(crate) async fn table() -> Option<(Azure, String)> {
    let azure = Azure::new(options()?).unwrap();
    let name = new_name();
    azure.tables(TableRequest::Create(&name)).await.unwrap();
    Some((azure, name))
}

/// A name that no other test has.
pub(crate) fn new_name() -> String {
    format!("T{}", uuid::Uuid::new_v4().simple())
}

/// A row with one property.
pub(crate) fn row(partition_key: &str, row_key: &str, text: &str) -> Row {
    let builder = Row::build(partition_key, row_key).with("Text", entable::ValueRef::String(text));
    builder.unwrap().finish().unwrap()
}

pub(crate) async fn apply(
    azure: &dyn Backend,
    table: &str,
    operation: Operation,
) -> Result<Written> {
    let written = azure.apply(&Batch::single(table, operation)?).await?;
    Ok(written.into_iter().next().unwrap())
}

pub(crate) async fn read(
    azure: &dyn Backend,
    table: &str,
    partition_key: &str,
    row_key: &str,
) -> Result<Option<Row>> {
    azure.read(ReadRequest { table, partition_key, row_key, select: None }).await
}
