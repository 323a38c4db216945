//! This crate's client.

use entable::{
    Azure, AzureOptions, Batch, Filter, Operation, Row, Ticks, ValueRef,
    backend::{Backend, ReadRequest, ScanRequest, TableRequest, azure::Carrier},
};

use super::{EMAIL, NOTES, POINTS, QUERIED, QUERIES, TRANSACTION, TRANSACTIONS, key, measured};

/// 2014-08-22T00:50:32Z.
const HIRED: Ticks = match Ticks::new(635_442_654_320_000_000) {
    Some(ticks) => ticks,
    None => Ticks::MIN,
};

fn row(partition: &str, at: usize) -> Row {
    let mut row = Row::build(partition, &key(at));
    row.put("FirstName", ValueRef::String("Don"));
    row.put("LastName", ValueRef::String("Hall"));
    row.put("Age", ValueRef::Int32(34));
    row.put("Email", ValueRef::String(EMAIL));
    row.put("Salary", ValueRef::Double(55_000.5));
    row.put("Hired", ValueRef::DateTime(HIRED));
    row.put("Notes", ValueRef::String(NOTES));
    row.finish().unwrap()
}

/// Measures all operations over one of the transports.
pub(super) async fn run(connection: &str, carrier: Carrier) {
    let options = AzureOptions::from_connection_string(connection).unwrap().carrier(carrier);
    let azure = Azure::new(options).unwrap();
    let table = format!("Bench{}", std::process::id());
    azure.tables(TableRequest::Create(&table)).await.unwrap();
    let azure = &azure;
    let name = &*table;
    let one = |at| async move {
        let batch = Batch::single(name, Operation::insert(row("single", at))).unwrap();
        azure.apply(&batch).await.unwrap();
    };
    // The connection is opened before anything is measured.
    one(POINTS).await;
    measured("insert", POINTS, async {
        for at in 0..POINTS {
            one(at).await;
        }
    })
    .await;
    measured("get", POINTS, async {
        for at in 0..POINTS {
            let key = key(at);
            let read =
                ReadRequest { table: name, partition_key: "single", row_key: &key, select: None };
            let row = azure.read(read).await.unwrap().unwrap();
            assert_eq!(row.get("Age").unwrap(), Some(ValueRef::Int32(34)));
        }
    })
    .await;
    measured("transaction", TRANSACTIONS * TRANSACTION, async {
        for part in 0..TRANSACTIONS {
            let mut batch = Batch::new(name);
            for at in 0..TRANSACTION {
                batch.push(Operation::insert(row("many", part * TRANSACTION + at))).unwrap();
            }
            assert_eq!(azure.apply(&batch).await.unwrap().len(), TRANSACTION);
        }
    })
    .await;
    measured("query", QUERIES * QUERIED, async {
        let filter = Filter::eq("PartitionKey", "many");
        for _ in 0..QUERIES {
            let (mut count, mut from) = (0, None);
            loop {
                let scan = ScanRequest {
                    table: name,
                    filter: &filter,
                    select: None,
                    top: None,
                    from: from.as_ref(),
                };
                let page = azure.scan(scan).await.unwrap();
                count += page.rows.len();
                from = page.next;
                if from.is_none() {
                    break;
                }
            }
            assert_eq!(count, QUERIED);
        }
    })
    .await;
    azure.tables(TableRequest::Delete(name)).await.unwrap();
}
