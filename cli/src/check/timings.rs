//! The time of common requests.

use std::time::{Duration, Instant};

use entable::{
    Batch, Error, Filter, Operation, Row, ValueRef,
    backend::{Backend, ReadRequest, ScanRequest, TableRequest},
};

/// The times of one kind of request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Timing {
    /// The kind of request, such as "insert of a row".
    pub(crate) name: &'static str,
    /// Number of requests that were timed.
    pub(crate) requests: usize,
    /// The median, in milliseconds.
    pub(crate) median_ms: f64,
    /// The slowest, in milliseconds.
    pub(crate) slowest_ms: f64,
}

/// Requests of one row that are timed.
const SINGLE: usize = 30;
/// Transactions and pages that are timed.
const LARGE: usize = 10;
/// Rows of a transaction.
const ROWS: usize = 100;

/// Times single inserts and reads, transactions of 100 inserts, and pages of 1,000 rows, one after the other.
///
/// # Errors
///
/// Errors of the requests.
pub(super) async fn measure(service: &dyn Backend, table: &str) -> Result<Vec<Timing>, Error> {
    service.tables(TableRequest::Create(table)).await?;
    let mut inserts = Vec::new();
    let mut reads = Vec::new();
    for number in 0..SINGLE {
        let row_key = format!("{number:04}");
        let insert = Batch::single(table, Operation::insert(row("single", &row_key)?))?;
        let started = Instant::now();
        service.apply(&insert).await?;
        inserts.push(started.elapsed());
        let request =
            ReadRequest { table, partition_key: "single", row_key: &row_key, select: None };
        let started = Instant::now();
        service.read(request).await?;
        reads.push(started.elapsed());
    }
    let mut transactions = Vec::new();
    for number in 0..LARGE {
        let mut batch = Batch::new(table);
        for row_number in 0..ROWS {
            batch.push(Operation::insert(row("many", &format!("{number:02}{row_number:02}"))?))?;
        }
        let started = Instant::now();
        service.apply(&batch).await?;
        transactions.push(started.elapsed());
    }
    let mut pages = Vec::new();
    let filter = Filter::parse("PartitionKey eq 'many'")?;
    for _ in 0..LARGE {
        let scan = ScanRequest { table, filter: &filter, select: None, top: None, from: None };
        let started = Instant::now();
        service.scan(scan).await?;
        pages.push(started.elapsed());
    }
    Ok(vec![
        timing("insert of a row", inserts),
        timing("read of a row", reads),
        timing("transaction of 100 inserts", transactions),
        timing("page of 1,000 rows", pages),
    ])
}

fn timing(name: &'static str, mut times: Vec<Duration>) -> Timing {
    times.sort_unstable();
    let ms = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1e3);
    Timing {
        name,
        requests: times.len(),
        median_ms: ms(times.get(times.len() / 2)),
        slowest_ms: ms(times.last()),
    }
}

fn row(partition_key: &str, row_key: &str) -> Result<Row, Error> {
    Row::build(partition_key, row_key)
        .with("Text", ValueRef::String("a text of some length, as rows of programs have"))?
        .with("Count", ValueRef::Int64(1))?
        .finish()
}
