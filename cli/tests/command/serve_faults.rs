//! `entable serve` when its process is killed, and when the disk is full: what it acknowledged is there.
//!
//! `ENTABLE_LONG=1` kills it a hundred times.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicUsize, Ordering},
};

use entable::{
    Azure, Batch, Filter, Operation, Row, ServiceCode, ValueRef,
    backend::{Backend, ScanRequest, TableRequest},
};

use super::{
    serve::{Served, block_on},
    *,
};

const WRITERS: usize = 16;
/// The row of each partition with the number of its latest transaction.
const LATEST: &str = "latest";

/// Connects to a server, without retries.
fn connect(served: &Served) -> Arc<Azure> {
    let options = AzureOptions::from_connection_string(served.connection_string()).unwrap();
    Arc::new(Azure::new(options).unwrap())
}

fn row(partition: &str, row_key: &str, number: i64) -> Row {
    let row = Row::build(partition, row_key).with("Number", ValueRef::Int64(number));
    row.unwrap().finish().unwrap()
}

/// Inserts the row `number`. Every second one is in a transaction with the row [`LATEST`].
async fn write(rows: &Azure, partition: &str, number: i64) -> entable::Result<()> {
    let mut batch = Batch::new("Staff");
    batch.push(Operation::insert(row(partition, &format!("{number:06}"), number)))?;
    if number % 2 == 0 {
        batch.push(Operation::insert_or_replace(row(partition, LATEST, number)))?;
    }
    rows.apply(&batch).await.map(drop)
}

/// Returns the rows of a partition, as pairs of key and number.
async fn read(rows: &Azure, partition: &str) -> Vec<(String, i64)> {
    let filter = Filter::parse(&format!("PartitionKey eq '{partition}'")).unwrap();
    let (mut found, mut from) = (Vec::new(), None);
    loop {
        let scan = ScanRequest {
            table: "Staff",
            filter: &filter,
            select: None,
            top: None,
            from: from.as_ref(),
        };
        let page = rows.scan(scan).await.unwrap();
        let next = page.next.clone();
        for row in page.into_rows().unwrap() {
            let Ok(Some(ValueRef::Int64(number))) = row.get("Number") else { panic!("{row:?}") };
            found.push((row.row_key().to_owned(), number));
        }
        from = next;
        if from.is_none() {
            return found;
        }
    }
}

/// Writes from `first` on until the server is gone, and returns the first number that was not acknowledged.
async fn write_until_killed(
    rows: Arc<Azure>,
    partition: String,
    first: i64,
    acknowledged: Arc<AtomicUsize>,
) -> i64 {
    let mut number = first;
    while write(&rows, &partition, number).await.is_ok() {
        acknowledged.fetch_add(1, Ordering::SeqCst);
        number += 1;
    }
    number
}

/// Asserts that a partition has all rows below `unknown`, perhaps this one, and no part of a transaction. Returns the
/// number that comes next.
fn check(partition: &str, found: &[(String, i64)], unknown: i64) -> i64 {
    let of_key = |found: &&(String, i64)| found.0 != LATEST;
    let numbers: BTreeSet<i64> = found.iter().filter(of_key).map(|(_, number)| *number).collect();
    let next = if numbers.contains(&unknown) { unknown + 1 } else { unknown };
    assert_eq!(numbers, (1..next).collect(), "{partition}: {unknown} was not acknowledged");
    let latest = found.iter().find(|(key, _)| key == LATEST).map_or(0, |(_, number)| *number);
    assert_eq!(latest, (next - 1) / 2 * 2, "{partition}: a transaction is whole");
    next
}

#[test]
fn a_killed_server_has_kept_all_that_it_acknowledged() {
    let rounds = if std::env::var_os("ENTABLE_LONG").is_some() { 100 } else { 3 };
    let place = Place(tempdir().unwrap());
    let mut next = [1; WRITERS];
    for round in 0..rounds {
        let served = Served::start(&place, &["staff.db"], &[]);
        let client = connect(&served);
        block_on(async {
            if round == 0 {
                client.tables(TableRequest::Create("Staff")).await.unwrap();
            }
            let acknowledged = Arc::new(AtomicUsize::new(0));
            let writers = next.iter().enumerate().map(|(writer, first)| {
                let (client, acknowledged) = (client.clone(), acknowledged.clone());
                tokio::spawn(write_until_killed(client, writer.to_string(), *first, acknowledged))
            });
            let writers: Vec<_> = writers.collect();
            while acknowledged.load(Ordering::SeqCst) < 100 + round * 37 % 200 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            drop(served);
            for (next, writer) in next.iter_mut().zip(writers) {
                *next = writer.await.unwrap();
            }
        });
        let served = Served::start(&place, &["staff.db"], &[]);
        let client = connect(&served);
        block_on(async {
            for (writer, next) in next.iter_mut().enumerate() {
                let partition = writer.to_string();
                *next = check(&partition, &read(&client, &partition).await, *next);
            }
        });
        assert_eq!(served.stop(), 0);
    }
    place.run(&["verify", "staff.db"]).ok();
}

#[test]
fn a_full_disk_refuses_writes_and_the_server_works_on() {
    let lifts = Command::new("prlimit").arg("--version").stdout(Stdio::null()).status();
    if lifts.is_err() {
        // Nothing here that lifts the limit again.
        return;
    }
    let place = Place(tempdir().unwrap());
    let mut limited = Command::new("sh");
    let script = "trap '' XFSZ; ulimit -S -f 8192; exec \"$0\" \"$@\"";
    limited.args(["-c", script, env!("CARGO_BIN_EXE_entable")]);
    let served = Served::start_with(limited, &place, &["staff.db"], &[]);
    let client = connect(&served);
    let filler = "x".repeat(30_000);
    let pair = |number: usize| {
        let mut batch = Batch::new("Staff");
        for half in ["a", "b"] {
            let row = Row::build("p", &format!("{number:04}{half}"));
            let row = row.with("Number", ValueRef::Int64(1)).unwrap();
            let row = row.with("Filler", ValueRef::String(&filler)).unwrap();
            batch.push(Operation::insert(row.finish().unwrap())).unwrap();
        }
        batch
    };
    block_on(async {
        client.tables(TableRequest::Create("Staff")).await.unwrap();
        let mut pairs = 0;
        let error = loop {
            match client.apply(&pair(pairs)).await {
                Ok(_) => pairs += 1,
                Err(error) => break error,
            }
            assert!(pairs < 1_000, "the limit does not hold");
        };
        assert_eq!(error.service_code(), Some(&ServiceCode::InternalError), "{error:?}");
        assert!(!error.to_string().contains("staff.db"), "a client sees no path: {error}");
        assert_eq!(read(&client, "p").await.len(), 2 * pairs, "half of a transaction");
        // After a failure the store opens its file again, which can free some pages. Then the disk is full again.
        let mut refused = 0;
        while refused < 2 {
            match client.apply(&pair(pairs)).await {
                Ok(_) => (pairs, refused) = (pairs + 1, 0),
                Err(_) => refused += 1,
            }
            assert!(pairs < 1_000, "the limit does not hold");
        }
        assert_eq!(read(&client, "p").await.len(), 2 * pairs, "half of a transaction");

        let process = served.child.id().to_string();
        let lift = ["--pid", &process, "--fsize=unlimited:unlimited"];
        assert!(Command::new("prlimit").args(lift).status().unwrap().success());
        client.apply(&pair(pairs)).await.unwrap();
        assert_eq!(read(&client, "p").await.len(), 2 * pairs + 2);
    });
    assert_eq!(served.stop(), 0);
    place.run(&["verify", "staff.db"]).ok();
}
