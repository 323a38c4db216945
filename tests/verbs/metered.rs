//! Tests the figures of a client with a recorder in memory.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use entable::{
    Error, OutboxOptions, ServiceCode,
    backend::{
        Memory,
        layer::{FaultInjector, InjectedFault, Observe, RequestKind, RetryPolicy},
    },
    prelude::*,
};
use metrics::{
    Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};

#[derive(Debug, Clone, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "dep_{department}",
    row_key = "empid_{id:06}",
    index(ByEmail, partition_key = "email_{email}", row_key = "at_{department}_{id:06}")
)]
struct Employee {
    department: String,
    id: u32,
    email: String,
}

fn don() -> Employee {
    Employee { department: "Sales".into(), id: 223, email: "don@a.com".into() }
}

/// Keeps the figures by name and labels.
#[derive(Default)]
struct Figures {
    counters: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    gauges: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    samples: Mutex<BTreeMap<String, Arc<Samples>>>,
    units: Mutex<BTreeMap<String, Option<Unit>>>,
}

#[derive(Default)]
struct Samples(Mutex<Vec<f64>>);

impl HistogramFn for Samples {
    fn record(&self, value: f64) {
        self.0.lock().unwrap().push(value);
    }
}

fn text(key: &Key) -> String {
    let labels = key.labels().map(|label| format!(" {}", label.value()));
    format!("{}{}", key.name(), labels.collect::<String>())
}

impl Recorder for Figures {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, _: SharedString) {
        self.units.lock().unwrap().insert(key.as_str().to_owned(), unit);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, _: SharedString) {
        self.units.lock().unwrap().insert(key.as_str().to_owned(), unit);
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, _: SharedString) {
        self.units.lock().unwrap().insert(key.as_str().to_owned(), unit);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.counters.lock().unwrap().entry(text(key)).or_default().clone())
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.gauges.lock().unwrap().entry(text(key)).or_default().clone())
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.samples.lock().unwrap().entry(text(key)).or_default().clone())
    }
}

impl Figures {
    fn count(&self, name: &str) -> u64 {
        self.counters.lock().unwrap().get(name).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    fn gauge(&self, name: &str) -> Option<f64> {
        let gauges = self.gauges.lock().unwrap();
        gauges.get(name).map(|bits| f64::from_bits(bits.load(Ordering::Relaxed)))
    }

    fn seconds(&self, labels: &str) -> Vec<f64> {
        let name = format!("db.client.operation.duration azure.tables memory {labels}");
        let samples = self.samples.lock().unwrap();
        samples.get(&name).map(|samples| samples.0.lock().unwrap().clone()).unwrap_or_default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_recorder_gets_durations_requests_rows_bytes_retries_and_throttles() {
    let figures = Figures::default();
    let _guard = metrics::set_default_local_recorder(&figures);
    let fault = FaultInjector::around(Memory::new());
    let client = Client::builder().backend(fault.clone()).report_metrics().build().unwrap();
    let staff = client.table::<Employee>();
    staff.create().await.unwrap();
    staff.insert(&don()).await.unwrap();
    let at = || Employee::primary().department("Sales").id(223);
    fault.inject(RequestKind::Read, 0, InjectedFault::Delay(Duration::from_millis(250)));
    assert!(staff.get(at()).await.unwrap().is_some());
    assert_eq!(figures.seconds("get Staff"), [0.25], "in seconds, by verb and table");
    let path = Employee::primary().department("Sales");
    assert_eq!(staff.query(path).collect().await.unwrap().len(), 1);
    assert_eq!(figures.seconds("query Staff"), [0.0]);
    assert!(staff.insert(&don()).await.is_err());
    assert_eq!(figures.seconds("insert Staff EntityAlreadyExists"), [0.0]);
    let rows = client.dynamic("Notes");
    client.create_table("Notes").await.unwrap();
    let mut note = rows.insert(&DynamicEntity::new("p", "r")).await.unwrap();
    note.set("Text", "hello");
    rows.patch(&note).await.unwrap();
    assert_eq!(figures.seconds("patch Notes"), [0.0], "a row without a type");
    assert_eq!(figures.count("entable.requests memory scan Staff"), 1);
    assert_eq!(figures.count("entable.rows memory scan Staff"), 1);
    let reads = client.usage().reads;
    assert_eq!(figures.count("entable.requests memory read Staff"), reads);
    let bytes = ["read", "scan", "apply"]
        .map(|kind| figures.count(&format!("entable.bytes memory {kind} Staff")));
    assert!(bytes.iter().all(|bytes| *bytes > 20), "{bytes:?}");
    let busy = || Error::service(ServiceCode::ServerBusy, "busy");
    fault.inject(RequestKind::Read, 0, InjectedFault::Before(busy()));
    assert!(staff.get(at()).await.unwrap_err().is_throttled());
    assert_eq!(figures.count("entable.throttles memory read Staff"), 1);
    assert_eq!(figures.count("entable.failures memory read Staff"), 1);
    // A layer reports retries by itself.
    let retrying = Client::builder().backend(fault.clone()).retry(RetryPolicy::default());
    let again = retrying.build().unwrap();
    fault.inject(RequestKind::Read, 0, InjectedFault::Before(busy()));
    assert!(again.table::<Employee>().get(at()).await.unwrap().is_some());
    assert_eq!(figures.count("entable.retries Staff"), 1);
    let lost = Error::service(ServiceCode::OperationTimedOut, "lost");
    fault.inject(RequestKind::Apply, 0, InjectedFault::After(lost));
    again.dynamic("Staff").insert_or_replace(&DynamicEntity::new("p", "r")).await.unwrap();
    assert_eq!(figures.count("entable.lost_answers Staff carried_out"), 1);
    assert_eq!(figures.seconds("get Staff").len(), 1, "that client reports no figures");
    let units = figures.units.lock().unwrap();
    assert_eq!(units["db.client.operation.duration"], Some(Unit::Seconds));
    assert_eq!(units["entable.outbox.lag"], Some(Unit::Seconds));
    assert_eq!(units["entable.bytes"], Some(Unit::Bytes));
}

#[tokio::test]
async fn durations_tell_the_host_of_a_store_that_has_one() {
    let figures = Figures::default();
    let _guard = metrics::set_default_local_recorder(&figures);
    let backend = Observe::around(Memory::new()).server("me.table.core.windows.net");
    let client = Client::builder().backend(backend).report_metrics().build().unwrap();
    client.create_table("Staff").await.unwrap();
    client.dynamic("Staff").get("p", "r").await.unwrap();
    assert_eq!(figures.seconds("get Staff me.table.core.windows.net").len(), 1);
    assert_eq!(figures.count("entable.requests memory read Staff"), 1);
    // A port is told if it is not the default.
    let backend = Observe::around(Memory::new()).server("127.0.0.1").port(10_002);
    let client = Client::builder().backend(backend).report_metrics().build().unwrap();
    assert!(client.dynamic("Staff").get("p", "r").await.is_err());
    assert_eq!(figures.seconds("get Staff 127.0.0.1 10002 TableNotFound").len(), 1);
}

#[derive(Debug, serde::Serialize, serde::Deserialize, Message)]
#[table(name = "Greeting", version = 1)]
struct Greeting {
    text: String,
}

#[tokio::test]
async fn a_recorder_gets_the_lag_the_open_rows_the_passes_and_the_poison_of_a_worker() {
    let figures = Figures::default();
    let _guard = metrics::set_default_local_recorder(&figures);
    // The worker finds all work undone.
    let options = OutboxOptions::default().background(0);
    let builder = Client::builder().backend(Memory::new()).outbox(options);
    let client = builder.report_metrics().build().unwrap();
    let staff = client.table::<Employee>();
    staff.create().await.unwrap();
    staff.insert(&don()).await.unwrap();
    let worker = client.worker().on(|_, _: Greeting| async { Err("not today".into()) });
    worker.drain().await.unwrap();
    assert!(figures.count("entable.worker.rounds memory") > 0);
    assert!(figures.count("entable.worker.passes memory Staff") > 0);
    assert_eq!(figures.gauge("entable.outbox.open memory"), Some(0.0));
    assert_eq!(figures.gauge("entable.outbox.lag memory"), Some(0.0));
    let mut egt = client.transaction();
    egt.insert(&Employee { id: 224, email: "e@a.com".into(), ..don() }).unwrap();
    egt.emit(&Greeting { text: "hello".into() }).unwrap();
    egt.commit().await.unwrap();
    worker.drain().await.unwrap();
    assert_eq!(figures.count("entable.outbox.poisoned memory"), 1);
}
