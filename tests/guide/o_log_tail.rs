//! O: log tail.

use entable::{
    Batch, Row, Ticks, Written,
    backend::{
        Backend, BoxFuture, Capabilities, ReadRequest, Rows, ScanRequest, TableNames, TableRequest,
        layer::{FaultInjector, Request},
    },
    prelude::*,
};
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::{
    model::at,
    store::{TestResult, on_both},
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "EmployeeExpense",
    partition_key = "{employee}",
    row_key = "{claimed:desc}_{id}",
    discriminator = row_key
)]
struct Expense {
    employee: String,
    claimed: OffsetDateTime,
    id: Uuid,
    amount: f64,
}

fn expense(minutes: i64, id: u128) -> Expense {
    Expense {
        employee: "empid".into(),
        claimed: at("2014-08-22T00:50:32Z") + Duration::minutes(minutes),
        id: Uuid::from_u128(id),
        amount: 12.5,
    }
}

/// A key of the time alone.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Ticks", partition_key = "ticks", row_key = "{at:desc}")]
struct Tick {
    at: OffsetDateTime,
}

fn key(time: OffsetDateTime) -> String {
    Tick { at: time }.to_row().unwrap().row_key().to_owned()
}

#[tokio::test]
async fn o01_the_newest_come_first() -> TestResult {
    on_both(async |store| {
        let expenses = store.table::<Expense>().await;
        for minute in [5, 1, 9, 3] {
            expenses.insert(&expense(minute, 1)).await?;
        }
        let all = expenses.query(Expense::primary().employee("empid")).collect().await?;
        let times: Vec<OffsetDateTime> = all.iter().map(|e| e.claimed).collect();
        assert_eq!(times, [9, 5, 3, 1].map(|minute| expense(minute, 1).claimed));
        let newest = expenses.query(Expense::primary().employee("empid")).first().await?.unwrap();
        assert_eq!(*newest, expense(9, 1));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn o02_the_ten_most_recent_of_twenty_five() -> TestResult {
    on_both(async |store| {
        let expenses = store.table::<Expense>().await;
        let rows = (0..25).map(|minute| expense(minute, 1));
        expenses.bulk().insert_all(rows).await?.into_result()?;
        store.requests();
        let ten = expenses.query(Expense::primary().employee("empid")).take(10).collect().await?;
        let expected: Vec<Expense> = (15..25).rev().map(|minute| expense(minute, 1)).collect();
        assert_eq!(ten.into_iter().map(Stored::into_inner).collect::<Vec<_>>(), expected);
        let requests = store.requests();
        assert!(matches!(requests[..], [Request::Scan { top: Some(10), .. }]), "{requests:?}");
        Ok(())
    })
    .await
}

#[test]
fn o03_ticks_are_inverted_as_dotnet_does() {
    assert_eq!(key(at("2014-08-22T00:50:32Z")), "2519936321679999999");
    assert_eq!(key(at("2014-08-22T00:50:34Z")), "2519936321659999999");
    assert!(key(at("2014-08-22T00:50:34Z")) < key(at("2014-08-22T00:50:32Z")));
    assert_eq!(key(at("1970-01-01T00:00:00Z")), "2534023007999999999");
    assert_eq!(key(at("0001-01-01T00:00:00Z")), "3155378975999999999");
}

#[test]
fn o04_and_back_exactly() -> Result<(), Error> {
    let times = [
        "2014-08-22T00:50:32Z",
        "2014-08-22T00:50:32.1234567Z",
        "1970-01-01T00:00:00Z",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59.9999999Z",
    ];
    for time in times {
        let row = Tick { at: at(time) }.to_row()?;
        assert_eq!(Tick::from_row(&row)?.at, at(time), "{time}");
    }
    let finer = at("2014-08-22T00:50:32.1234567Z") + Duration::nanoseconds(99);
    assert_eq!(key(finer), key(at("2014-08-22T00:50:32.1234567Z")), "cut to 100 ns");
    Ok(())
}

#[tokio::test]
async fn o05_the_newest_ten_of_a_partition() -> TestResult {
    on_both(async |store| {
        let expenses = store.table::<Expense>().await;
        let explain = expenses.query(Expense::primary().employee("empid")).take(10).explain();
        assert_eq!(explain.filter, "PartitionKey eq 'empid'");
        assert_eq!(explain.top, Some(10));
        assert_eq!(explain.estimated_requests, 1);
        let since = at("2014-08-22T00:55:00Z");
        let since = Expense::primary().employee("empid").claimed_range(since..);
        let since = expenses.query(since).explain();
        assert_eq!(since.class, CostClass::Range, "what is newer than a time: {since}");
        Ok(())
    })
    .await
}

#[cfg(feature = "azure-wire")]
#[test]
fn o06_the_endpoint_is_that_of_another_cloud() -> TestResult {
    use entable::AzureOptions;

    let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let china = AzureOptions::from_account_key("myaccount", key)?;
    let china = Client::azure(china.endpoint_suffix("core.chinacloudapi.cn")?)?;
    assert_eq!(
        china.table_url("EmployeeExpense")?,
        "https://myaccount.table.core.chinacloudapi.cn/EmployeeExpense"
    );
    let text =
        format!("AccountName=myaccount;AccountKey={key};EndpointSuffix=core.usgovcloudapi.net");
    let government = Client::azure(AzureOptions::from_connection_string(&text)?)?;
    let url = government.table_url("EmployeeExpense")?;
    assert_eq!(url, "https://myaccount.table.core.usgovcloudapi.net/EmployeeExpense");
    Ok(())
}

#[test]
fn o07_always_nineteen_digits() {
    assert_eq!(key(Ticks::MAX.into()), "0000000000000000000");
    for time in ["0001-01-01T00:00:00Z", "2014-08-22T00:50:32Z", "9999-12-31T00:00:00Z"] {
        assert_eq!(key(at(time)).len(), 19, "{time}");
    }
}

#[tokio::test]
async fn o09_a_store_without_order_has_no_newest() -> TestResult {
    on_both(async |store| {
        let expenses = store.table::<Expense>().await;
        for minute in [5, 1, 9] {
            expenses.insert(&expense(minute, 1)).await?;
        }
        // As Cosmos DB says of itself.
        let cosmos = Client::builder().backend(Unordered(store.fault.clone())).build()?;
        let expenses = cosmos.table::<Expense>();
        let all = || expenses.query(Expense::primary().employee("empid"));
        for refused in [all().take(2).collect().await.map(drop), all().first().await.map(drop)] {
            let error = refused.unwrap_err();
            assert!(error.is_unsupported(), "{error}");
            assert!(error.to_string().contains("any_order()"), "{error}");
        }
        assert_eq!(all().take(2).any_order().collect().await?.len(), 2);
        assert!(all().any_order().first().await?.is_some());
        assert_eq!(all().collect().await?.len(), 3, "all of them need no order");
        let one = Expense::primary().employee("empid").claimed(expense(9, 1).claimed);
        let one = expenses.query(one.id(Uuid::from_u128(1)));
        assert!(one.first().await?.is_some(), "one row is in any order");
        Ok(())
    })
    .await
}

/// A store whose rows come in any order.
#[derive(Debug)]
struct Unordered(FaultInjector);

impl Backend for Unordered {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities().unordered()
    }

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>, Error>> {
        self.0.read(request)
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows, Error>> {
        self.0.scan(request)
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>, Error>> {
        self.0.apply(batch)
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames, Error>> {
        self.0.tables(request)
    }
}

/// Entries of a log whose tie-breaker descends, as its time does.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Entries", partition_key = "{device}", row_key = "{at:desc}_{number:desc}")]
struct Entry {
    device: String,
    at: OffsetDateTime,
    number: u32,
}

#[tokio::test]
async fn o02_the_newest_of_simultaneous_entries() -> TestResult {
    on_both(async |store| {
        let entries = store.table::<Entry>().await;
        let at = at("2014-08-22T00:50:32Z");
        let entry = |number| Entry { device: "d1".into(), at, number };
        entries.bulk().insert_all([3, 1, 6, 2, 5, 4].map(entry)).await?.into_result()?;
        let newest = entries.query(Entry::primary().device("d1")).take(3).collect().await?;
        assert_eq!(newest.iter().map(|entry| entry.number).collect::<Vec<_>>(), [6, 5, 4]);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn o10_two_claims_of_one_tick() -> TestResult {
    on_both(async |store| {
        let expenses = store.table::<Expense>().await;
        expenses.insert(&expense(1, 1)).await?;
        expenses.insert(&expense(1, 2)).await?;
        let claimed = expense(1, 1).claimed;
        let both = Expense::primary().employee("empid").claimed(claimed);
        assert_eq!(expenses.query(both.clone()).collect().await?.len(), 2);
        let second = expenses.get(both.id(Uuid::from_u128(2))).await?.unwrap();
        assert_eq!(
            second.row_key(),
            format!("{}_00000000-0000-0000-0000-000000000002", key(claimed))
        );
        Ok(())
    })
    .await
}
