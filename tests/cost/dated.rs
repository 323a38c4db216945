//! Counts the requests of windows of dated tables, by the number of tables in the window.

use entable::{
    Client,
    backend::{
        Backend, Embedded, Memory,
        layer::{Recorder, Request},
    },
    prelude::*,
};
use time::{
    OffsetDateTime,
    macros::{date, datetime},
};

#[derive(Debug, Clone, TableEntity)]
#[table(
    name = "Visits{at:%Y%m%d%H}",
    partition_key = "{page}",
    row_key = "{at:desc}_{id:04}",
    list(ByGuest, row_key = "guest_{guest}")
)]
struct Visit {
    page: String,
    at: OffsetDateTime,
    id: u16,
    guest: String,
    seconds: i32,
}

const START: OffsetDateTime = datetime!(2014-07-31 0:00 UTC);
/// 54 years and some days of hours.
const HOURS: u64 = 474_804;
/// The hours that have rows.
const FILLED: [i64; 3] = [0, 40, 300_000];

/// A measured call: the requests that it has to cost, and the window's number of tables.
struct Line {
    call: &'static str,
    tables: u64,
    lists: usize,
    others: usize,
}

fn requests(recorder: &Recorder) -> (usize, usize) {
    let requests = recorder.take();
    let lists = requests.iter().filter(|request| **request == Request::ListTables).count();
    (lists, requests.len() - lists)
}

fn visit(hour: i64, id: u16) -> Visit {
    let at = START + time::Duration::hours(hour) + time::Duration::seconds(i64::from(id));
    Visit { page: "home".into(), at, id, guest: "don".into(), seconds: 0 }
}

fn window(hours: u64) -> std::ops::Range<OffsetDateTime> {
    START..START + time::Duration::hours(i64::try_from(hours).unwrap())
}

/// Two visits in each of three hours, among other tables.
async fn store(backend: impl Backend + 'static) -> (Recorder, Table<Visit>) {
    let recorder = Recorder::around(backend);
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    for other in ["Aaa", "Visits2014", "Visits1914010100", "VisitsOfGuests", "Zzz"] {
        client.create_table(other).await.unwrap();
    }
    let visits = client.table::<Visit>();
    for hour in FILLED {
        visits.insert(&visit(hour, 1)).await.unwrap();
        visits.insert(&visit(hour, 2)).await.unwrap();
    }
    recorder.clear();
    (recorder, visits)
}

async fn lines(backend: impl Backend + 'static) -> Vec<Line> {
    let (recorder, visits) = store(backend).await;
    let mut lines = Vec::new();
    let mut record = |call, tables| {
        let (lists, others) = requests(&recorder);
        lines.push(Line { call, tables, lists, others });
    };
    let of = |hours| visits.query(Visit::primary().at_between(window(hours)).page("home"));
    for (hours, found) in [(32, 2), (33, 2), (HOURS, 6)] {
        assert_eq!(of(hours).collect().await.unwrap().len(), found);
        record("a query", hours);
    }
    assert_eq!(of(HOURS).count().await.unwrap(), 6);
    record("`count`", HOURS);
    let (mut cursor, mut pages) = (None, 0);
    loop {
        let page = of(HOURS).page_size(1).page(cursor).await.unwrap();
        (cursor, pages) = (page.next, pages + 1);
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(pages, 9);
    record("9 pages of at most one entity", HOURS);
    let listed = Visit::by_guest().at_between(window(HOURS)).page("home").guest("don");
    assert_eq!(visits.keys(listed).await.unwrap().len(), 6);
    record("`keys` of a list", HOURS);
    let change = |visit: &mut Visit| {
        visit.seconds += 1;
        Ok(())
    };
    assert_eq!(visits.bulk().update_all(of(HOURS), change).await.unwrap().done, 6);
    record("`update_all` of 6 entities", HOURS);
    assert_eq!(of(HOURS).delete_all().await.unwrap().done, 6);
    record("`delete_all` of 6 entities, a list in each table", HOURS);
    assert_eq!(visits.create_between(START..START + time::Duration::hours(50)).await.unwrap(), 48);
    record("`create_between`, 2 of them exist", 50);
    assert!(visits.create_between(window(HOURS)).await.unwrap_err().is_invalid());
    record("`create_between`, refused", HOURS);
    assert_eq!(visits.drop_before(date!(2014 - 08 - 01)).await.unwrap().dropped.len(), 25);
    record("`drop_before` of 25 tables", 25);
    lines
}

fn expected() -> Vec<(u64, usize, usize)> {
    vec![
        (32, 0, 32),
        (33, 1, 1),
        (HOURS, 1, 3),
        (HOURS, 1, 3),
        // Three pages of each table, which is found in a list before its first page.
        (HOURS, 3, 9),
        (HOURS, 1, 3),
        (HOURS, 1, 6),
        // A page, the list and a transaction of each table.
        (HOURS, 1, 9),
        (50, 0, 51),
        (HOURS, 0, 0),
        (25, 1, 29),
    ]
}

/// The section of `docs/costs.md`.
pub(crate) async fn section() -> String {
    let mut text = String::from(
        "\n## Windows of dated tables\n\n\
         Requests of a window over hourly tables, three of which exist. For a window of more than 32 tables, entable\n\
         first lists the existing tables, 1,000 per request, and reads only those.\n\n\
         | call | tables in the window | lists | others |\n|---|---|---|---|\n",
    );
    for Line { call, tables, lists, others } in lines(Memory::new()).await {
        text.push_str(&format!("| {call} | {tables} | {lists} | {others} |\n"));
    }
    text
}

#[tokio::test]
async fn windows_cost_what_exists_and_not_what_they_span() {
    let directory = tempfile::tempdir().unwrap();
    let file = Embedded::open(directory.path().join("visits.db")).unwrap();
    for lines in [lines(Memory::new()).await, lines(file).await] {
        for (Line { call, tables, lists, others }, expected) in lines.iter().zip(expected()) {
            assert_eq!((*tables, *lists, *others), expected, "{call}");
        }
        assert_eq!(lines.len(), expected().len());
    }
}

#[tokio::test]
async fn explain_says_how_many_tables_a_window_has_and_how_they_are_found() {
    let (recorder, visits) = store(Memory::new()).await;
    for (hours, lists, requests) in
        [(1, false, 1), (32, false, 32), (33, true, 2), (HOURS, true, 2)]
    {
        let query = visits.query(Visit::primary().at_between(window(hours)).page("home"));
        let explain = query.explain();
        let found = (explain.tables, explain.lists_tables, explain.estimated_requests);
        assert_eq!(found, (hours, lists, requests));
        let text = explain.to_string();
        assert_eq!(text.contains(&format!("tables={hours}, listed first")), lists, "{text}");
    }
    let point = visits.query(Visit::primary().page("home").at(START).id(1)).explain();
    assert_eq!((point.tables, point.lists_tables), (1, false));
    assert!(!point.to_string().contains("tables="));
    assert_eq!(recorder.count(), 0);
}
