//! Tests windows of more tables than are asked one by one: what they find, and who may not list tables.

use entable::{
    Batch, Client, Error, ErrorKind, Row, Written,
    backend::{
        Backend, BoxFuture, Capabilities, Embedded, Memory, ReadRequest, Rows, ScanRequest,
        TableNames, TableRequest,
        layer::{FaultInjector, InjectedFault, Recorder, RequestKind},
    },
    prelude::*,
};
use time::{
    OffsetDateTime,
    macros::{date, datetime},
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Logins{at:%Y%m%d}",
    partition_key = "{user}",
    row_key = "{at:desc}_{id:03}",
    index(
        ByTown,
        table = "Towns{at:%Y%m%d}",
        partition_key = "{town}",
        row_key = "{at:desc}_{id:03}_{user}"
    )
)]
struct Login {
    user: String,
    at: OffsetDateTime,
    id: u16,
    town: String,
}

/// The oldest tables come first.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Bills{at:%Y%m}", partition_key = "{shop}", row_key = "{at}_{id:03}")]
struct Bill {
    shop: String,
    at: OffsetDateTime,
    id: u16,
}

const NOON: OffsetDateTime = datetime!(2014-07-31 12:00 UTC);
const DAY: time::Duration = time::Duration::DAY;
/// The days back from [`NOON`] that have logins.
const DAYS: [i64; 4] = [0, 1, 99, 20_000];

fn login(day: i64, id: u16) -> Login {
    Login {
        user: "don".into(),
        at: NOON - DAY * i32::try_from(day).unwrap(),
        id,
        town: "Kiel".into(),
    }
}

async fn filled(client: &Client) -> Table<Login> {
    let logins: Table<Login> = client.table();
    for day in DAYS {
        logins.insert(&login(day, 1)).await.unwrap();
        logins.insert(&login(day, 2)).await.unwrap();
    }
    client.wait_for_copies().await;
    // Names around those of the window.
    for other in
        ["Logins", "Logins2014", "LoginsNow", "Logins20140231", "Logins2014073112", "Login"]
    {
        client.create_table(other).await.unwrap();
    }
    logins
}

fn window(days: i32) -> std::ops::Range<OffsetDateTime> {
    NOON - DAY * days..NOON + DAY
}

async fn a_large_window_finds_what_small_ones_find(client: Client) {
    let logins = filled(&client).await;
    let all: Vec<Login> = DAYS.iter().flat_map(|day| [login(*day, 1), login(*day, 2)]).collect();
    let whole = || Login::primary().at_between(window(30_000)).user("don");
    let found = logins.query(whole()).collect().await.unwrap();
    assert_eq!(found.iter().map(|login| (**login).clone()).collect::<Vec<_>>(), all);
    // A bound inside a table is a bound of its rows.
    let from = Login::primary().at_between(NOON - DAY * 99..NOON).user("don");
    let found = logins.query(from).collect().await.unwrap();
    assert_eq!(
        found.iter().map(|login| (login.at, login.id)).collect::<Vec<_>>(),
        [(NOON - DAY, 1), (NOON - DAY, 2), (NOON - DAY * 99, 1), (NOON - DAY * 99, 2)]
    );
    let copies = Login::by_town().at_between(window(30_000)).town("Kiel");
    assert_eq!(logins.query(copies).collect().await.unwrap().len(), 8);
    let none = Login::primary().at_between(NOON + DAY * 2..NOON + DAY * 9_000).user("don");
    assert!(logins.query(none.clone()).collect().await.unwrap().is_empty());
    let page = logins.query(none).page(None).await.unwrap();
    assert!(page.items.is_empty() && page.next.is_none());
}

#[tokio::test]
async fn a_large_window_finds_everything_in_memory_and_in_a_file() {
    a_large_window_finds_what_small_ones_find(Client::memory()).await;
    let directory = tempfile::tempdir().unwrap();
    let file = Embedded::open(directory.path().join("logins.db")).unwrap();
    let client = Client::builder().backend(file).build().unwrap();
    a_large_window_finds_what_small_ones_find(client).await;
}

#[tokio::test]
async fn pages_of_a_large_window_pass_over_tables_that_come_and_go() {
    let client = Client::memory();
    let logins = filled(&client).await;
    let query = logins.query(Login::primary().at_between(window(30_000)).user("don")).page_size(1);
    let (mut seen, mut cursor): (Vec<(OffsetDateTime, u16)>, Option<Cursor>) = (Vec::new(), None);
    loop {
        let page = query.page(cursor).await.unwrap();
        seen.extend(page.items.iter().map(|login| (login.at, login.id)));
        if seen.len() == 3 {
            // Dropped while the cursor is inside it; one comes after it.
            client.delete_table_if_exists("Logins20140730").await.unwrap();
            logins.insert_or_replace(&login(50, 7)).await.unwrap();
        }
        let Some(next) = page.next else { break };
        cursor = Some(next.to_string().parse().unwrap());
    }
    let expected = [(0, 1), (0, 2), (1, 1), (50, 7), (99, 1), (99, 2), (20_000, 1), (20_000, 2)];
    assert_eq!(seen, expected.map(|(day, id)| (NOON - DAY * day, id)));
    // A cursor of another window is refused, listed or not.
    let page = query.page(None).await.unwrap();
    let other = logins.query(Login::primary().at_between(window(29_999)).user("don")).page_size(1);
    assert!(other.page(page.next).await.unwrap_err().is_invalid_cursor());
}

#[tokio::test]
async fn a_large_window_reads_in_the_order_of_its_keys() {
    let client = Client::memory();
    let bills: Table<Bill> = client.table();
    let times = [NOON, NOON - DAY * 400, NOON - DAY * 9_000, NOON - DAY * 31];
    for (id, at) in (1..).zip(times) {
        bills.insert(&Bill { shop: "a".into(), at, id }).await.unwrap();
    }
    let query = bills.query(Bill::primary().at_between(window(10_000)).shop("a"));
    assert!(query.explain().lists_tables);
    let found = query.collect().await.unwrap();
    assert_eq!(found.iter().map(|bill| bill.id).collect::<Vec<_>>(), [3, 2, 4, 1]);
}

fn denied() -> Error {
    Error::new(ErrorKind::Denied, "this signature is for rows")
}

#[tokio::test]
async fn a_client_that_may_not_list_tables_asks_each_up_to_ten_thousand() {
    let recorder = Recorder::around(Memory::new());
    let fault = FaultInjector::around(recorder.clone());
    let client = Client::builder().backend(fault.clone()).build().unwrap();
    let logins = filled(&client).await;
    recorder.clear();
    let of = |days| logins.query(Login::primary().at_between(window(days)).user("don"));
    fault.inject(RequestKind::Tables, 0, InjectedFault::Before(denied()));
    assert_eq!(of(99).collect().await.unwrap().len(), 6);
    assert_eq!(recorder.take().len(), 101);
    fault.inject(RequestKind::Tables, 0, InjectedFault::Before(denied()));
    let refused = of(10_000).collect().await.unwrap_err();
    assert!(refused.is_invalid() && refused.message().contains("10002 tables"), "{refused}");
    assert!(refused.message().contains("allow_many_tables"), "{refused}");
    assert_eq!(recorder.take().len(), 0);
    fault.inject(RequestKind::Tables, 0, InjectedFault::Before(denied()));
    assert_eq!(of(9_998).count().await.unwrap(), 6);
    assert_eq!(recorder.take().len(), 10_000);
    fault.inject(RequestKind::Tables, 0, InjectedFault::Before(denied()));
    assert_eq!(of(20_000).allow_many_tables().collect().await.unwrap().len(), 8);
    assert_eq!(recorder.take().len(), 20_002);
    // Any other error is the query's own.
    let lost = Error::new(ErrorKind::Backend, "connection lost");
    fault.inject(RequestKind::Tables, 0, InjectedFault::Before(lost));
    assert!(of(99).collect().await.unwrap_err().is_backend());
    assert_eq!(recorder.take().len(), 0);
}

#[tokio::test]
async fn a_query_that_is_refused_lists_no_tables() {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    let logins: Table<Login> = client.table();
    let wrong = Login::primary().at_between(NOON..NOON - DAY * 99).user("don");
    assert!(logins.query(wrong).collect().await.unwrap_err().is_invalid());
    let whole = || Login::primary().at_between(window(99)).user("don");
    let sizes = logins.query(whole()).page_size(5_000);
    assert!(sizes.collect().await.unwrap_err().is_invalid());
    let merged = logins.query_many([whole()]).in_key_order();
    assert!(merged.collect().await.unwrap_err().is_invalid());
    assert!(logins.query(whole()).take(0).collect().await.unwrap().is_empty());
    assert_eq!(recorder.count(), 0);
}

#[tokio::test]
async fn more_than_ten_thousand_tables_are_created_only_on_demand() {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    let logins: Table<Login> = client.table();
    let all = date!(0001 - 01 - 01)..date!(9999 - 12 - 31);
    let refused = logins.create_between(all).await.unwrap_err();
    assert!(refused.is_invalid() && refused.message().contains("3652058 tables"), "{refused}");
    assert!(refused.message().contains("allow_many_tables"), "{refused}");
    let ends = date!(2000 - 01 - 01) + DAY * 10_001;
    let years = date!(2000 - 01 - 01)..ends;
    assert!(logins.create_between(years.clone()).await.unwrap_err().is_invalid());
    assert_eq!(recorder.count(), 0);
    let most = years.start..ends - DAY;
    assert_eq!(logins.create_between(most).await.unwrap(), 10_000);
    assert_eq!(logins.create_between(years.clone()).allow_many_tables().await.unwrap(), 1);
    // Nothing is created before it is awaited.
    recorder.clear();
    drop(logins.create_between(years));
    assert_eq!(recorder.count(), 0);
}

/// A store that lists all tables, whatever range is asked for.
#[derive(Debug)]
struct ListsAll(Memory);

impl Backend for ListsAll {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
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
        let request = match request {
            TableRequest::List { from, .. } => TableRequest::List { from, within: None },
            other => other,
        };
        self.0.tables(request)
    }
}

#[tokio::test]
async fn a_store_that_lists_all_names_is_asked_for_the_tables_of_the_window() {
    let recorder = Recorder::around(ListsAll(Memory::new()));
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    let logins = filled(&client).await;
    recorder.take();
    let path = Login::primary().at_between(window(40)).user("don");
    let found = logins.query(path).collect().await.unwrap();
    assert_eq!(found.len(), 4, "two logins of each of two days");
    assert_eq!(recorder.take().len(), 3, "a list, and the two tables of the window");
}
