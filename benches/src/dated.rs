//! Dated tables and entities that expire: requests of dropping, a window beside injected latency,
//! markers, and how fast a worker sweeps.

use std::{sync::Arc, time::Duration};

use entable::{
    Clock, SteppedClock, Ticks,
    backend::{
        Embedded, EmbeddedOptions, Memory,
        layer::{FaultInjector, InjectedFault, Recorder, RequestKind},
    },
    prelude::*,
};
use time::{OffsetDateTime, macros::datetime};
use tokio::runtime::Runtime;

use crate::figure::{figure, note, rate, timed};

/// Day tables that are dropped.
const DROPPED: i32 = 60;
/// Day tables of a window, and log-ins of each.
const WINDOW: i32 = 8;
const LOGINS: u16 = 100;
/// Writes of one partition, process and hour, and hours.
const WRITES: u32 = 100;
const HOURS: u32 = 5;
/// Sessions that are swept, and their partitions.
const SESSIONS: u32 = 100_000;
const PARTITIONS: u32 = 1_000;

const NOON: OffsetDateTime = datetime!(2014-07-31 12:00 UTC);
const DAY: time::Duration = time::Duration::DAY;
const HOUR: Duration = Duration::from_secs(3600);
const LATENCY: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, TableEntity)]
#[table(name = "Logins{at:%Y%m%d}", partition_key = "{user}", row_key = "{at:desc}_{id:06}")]
struct Login {
    user: String,
    at: OffsetDateTime,
    id: u16,
}

#[derive(Debug, Clone, TableEntity)]
#[table(name = "Sessions", partition_key = "{user:06}", row_key = "s_{id:06}", expires = until)]
struct Session {
    user: u32,
    id: u32,
    until: OffsetDateTime,
    device: String,
}

/// Prints all figures.
pub(crate) fn run(runtime: &Runtime) {
    runtime.block_on(drop_days());
    runtime.block_on(read_window());
    runtime.block_on(write_markers());
    sweep(runtime);
}

/// Inserts log-ins on each of `days` days up to that of `NOON`.
async fn fill(logins: &Table<Login>, days: i32, each: u16) {
    let days = (0..days).map(|day| NOON - DAY * day);
    let all = days.flat_map(|at| (0..each).map(move |id| Login { user: "don".into(), at, id }));
    logins.bulk().insert_all(all).await.unwrap().into_result().unwrap();
}

/// Counts the requests that drop day tables.
async fn drop_days() {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    let logins: Table<Login> = client.table();
    fill(&logins, DROPPED, LOGINS).await;
    recorder.clear();
    let dropped = logins.drop_before(NOON + DAY).await.unwrap();
    assert_eq!(dropped.dropped.len(), DROPPED as usize);
    let requests = recorder.count();
    figure("models.dropping 60 day tables, requests", requests as f64, "<= 66");
    note("models.rows dropped with them", DROPPED * i32::from(LOGINS));
}

/// Reads a window of tables, the answer of each of which takes a latency.
async fn read_window() {
    let fault = FaultInjector::around(Memory::new());
    let client = Client::builder().backend(fault.clone()).build().unwrap();
    let logins: Table<Login> = client.table();
    fill(&logins, WINDOW, LOGINS).await;
    for request in 0..WINDOW as usize {
        fault.inject(RequestKind::Scan, request, InjectedFault::Delay(LATENCY));
    }
    let window = Login::primary().at_between(NOON - DAY * (WINDOW - 1)..NOON + DAY).user("don");
    let start = std::time::Instant::now();
    let found = logins.query(window).collect().await.unwrap();
    let took = start.elapsed();
    assert_eq!(found.len(), WINDOW as usize * usize::from(LOGINS));
    let latencies = took.as_secs_f64() / LATENCY.as_secs_f64();
    figure("models.window over 8 tables, latencies of 100 ms", latencies, "< 2");
}

fn start() -> Arc<SteppedClock> {
    Arc::new(SteppedClock::new(Ticks::new(638_000_000_000_000_000).unwrap()))
}

/// Returns a session that is over an hour after the time that the clock shows.
fn session(clock: &SteppedClock, user: u32, id: u32) -> Session {
    let until = OffsetDateTime::from(clock.now()) + HOUR;
    Session { user, id, until, device: format!("device {id}") }
}

/// Counts what markers cost over the writes themselves, table and first question included.
async fn write_markers() {
    let clock = start();
    let recorder = Recorder::around(Memory::with_clock(clock.clone()));
    let client = Client::builder().backend(recorder.clone()).clock(clock.clone()).build().unwrap();
    let sessions: Table<Session> = client.table();
    sessions.create().await.unwrap();
    recorder.clear();
    let writes = WRITES * HOURS;
    for id in 0..writes {
        sessions.insert(&session(&clock, 1, id)).await.unwrap();
        clock.advance(HOUR / WRITES);
    }
    let more = recorder.count() - writes as usize;
    let each = more as f64 / f64::from(writes);
    figure("models.markers of expiry, requests for a write", each, "<= 0.04");
}

/// Measures how fast a worker deletes what is over.
fn sweep(runtime: &Runtime) {
    let directory = tempfile::tempdir().unwrap();
    let clock = start();
    let options = EmbeddedOptions::new().clock(clock.clone());
    let store: Arc<Embedded> =
        Arc::new(options.open(directory.path().join("sessions.db")).unwrap());
    let client = Client::builder().backend(store).clock(clock.clone()).build().unwrap();
    let sessions: Table<Session> = client.table();
    runtime.block_on(async {
        sessions.create().await.unwrap();
        let all = (0..SESSIONS).map(|id| session(&clock, id / (SESSIONS / PARTITIONS), id));
        sessions.bulk().insert_all(all).await.unwrap().into_result().unwrap();
    });
    clock.advance(3 * HOUR);
    let time = timed(|| {
        let swept = runtime.block_on(client.worker().with::<Session>().drain()).unwrap();
        assert_eq!(swept.expired, u64::from(SESSIONS));
    });
    let left = client.dynamic("Sessions").query(Filter::ge("PartitionKey", ""));
    assert_eq!(runtime.block_on(left.allow_scan().count()).unwrap(), 0);
    let swept = f64::from(SESSIONS) / time.as_secs_f64();
    rate("models.swept rows/s, 100,000 in 1,000 partitions", swept, ">= 5000");
}
