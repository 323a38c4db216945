//! Tests spans of verbs and requests with an exporter in memory, and the counts of a client.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Arc, Mutex, Once},
};

use entable::{
    Error, Prices, ServiceCode,
    backend::{
        Memory,
        layer::{FaultInjector, InjectedFault, Observe, RequestKind, RetryPolicy},
    },
    prelude::*,
};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
    subscriber::{DefaultGuard, Interest},
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
    name: String,
}

fn don() -> Employee {
    let [department, email, name] = ["Secret1", "secret2@a.com", "secret3"].map(str::to_owned);
    Employee { department, id: 424_242, email, name }
}

#[derive(Debug, Clone, Default)]
struct Exported {
    name: &'static str,
    parent: Option<usize>,
    fields: BTreeMap<&'static str, String>,
}

impl Exported {
    fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }
}

impl Visit for Exported {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }
}

#[derive(Clone, Default)]
struct Exporter {
    spans: Arc<Mutex<Vec<Exported>>>,
    entered: Arc<Mutex<Vec<usize>>>,
}

impl Exporter {
    fn take(&self) -> Vec<Exported> {
        self.spans.lock().unwrap().clone()
    }

    /// The last span of a verb.
    fn verb(&self, name: &str) -> (usize, Exported) {
        let spans = self.take();
        let at = spans.iter().rposition(|span| {
            span.name == "entable.verb" && span.field("db.operation.name") == name
        });
        (at.unwrap(), spans[at.unwrap()].clone())
    }
}

fn position(id: &Id) -> usize {
    usize::try_from(id.into_u64()).unwrap() - 1
}

impl Subscriber for Exporter {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.name().starts_with("entable.")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let parent = self.entered.lock().unwrap().last().copied();
        let mut one = Exported { name: span.metadata().name(), parent, ..Exported::default() };
        span.record(&mut one);
        let mut spans = self.spans.lock().unwrap();
        spans.push(one);
        Id::from_u64(spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        values.record(&mut self.spans.lock().unwrap()[position(span)]);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let parent = self.entered.lock().unwrap().last().copied();
        let mut one = Exported { name: event.metadata().name(), parent, ..Exported::default() };
        event.record(&mut one);
        self.spans.lock().unwrap().push(one);
    }

    fn enter(&self, span: &Id) {
        self.entered.lock().unwrap().push(position(span));
    }

    fn exit(&self, _: &Id) {
        self.entered.lock().unwrap().pop();
    }
}

/// The subscriber of all other threads. It wants no span and lets each be asked for again.
struct Undecided;

impl Subscriber for Undecided {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, _: &Metadata<'_>) -> bool {
        false
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Exports the spans of this thread until the guard is dropped.
///
/// While a process has one subscriber, `tracing` asks that of the thread which first comes to a span whether
/// anybody wants it, and keeps the answer. A test on a thread without a subscriber would answer no.
fn export_spans() -> (Exporter, DefaultGuard) {
    static FOR_ALL_THREADS: Once = Once::new();
    FOR_ALL_THREADS.call_once(|| tracing::subscriber::set_global_default(Undecided).unwrap());
    let exporter = Exporter::default();
    let guard = tracing::subscriber::set_default(exporter.clone());
    (exporter, guard)
}

#[tokio::test]
async fn verbs_and_requests_have_spans_without_keys_and_values() {
    let (exporter, _guard) = export_spans();
    let observe = Observe::around(Memory::new()).server("here").port(8_443);
    let client = Client::builder().backend(observe).build().unwrap();
    let staff = client.table::<Employee>();
    staff.create().await.unwrap();
    let stored = staff.insert(&don()).await.unwrap();
    let (insert, span) = exporter.verb("insert");
    let fields =
        ["db.namespace", "db.collection.name", "server.address", "server.port", "error.type"];
    let expected = ["memory", "Staff", "here", "8443", ""];
    assert_eq!(fields.map(|name| span.field(name)), expected);
    let constants = ["otel.kind", "db.system.name"].map(|name| span.field(name));
    assert_eq!(constants, ["client", "azure.tables"]);
    let spans = exporter.take();
    let requests: Vec<_> = spans.iter().filter(|span| span.parent == Some(insert)).collect();
    assert_eq!(span.field("entable.requests"), requests.len().to_string());
    let applied = |span: &&&Exported| span.field("db.operation.name") == "apply";
    let applied = requests.iter().filter(applied).count();
    assert!(applied >= 3, "the commit, the copy, the dirty row: {requests:?}");
    let is_request = |span: &&Exported| span.name == "entable.request";
    assert!(requests.iter().all(|span| is_request(span) && span.field("server.address") == "here"));
    assert!(requests.iter().all(|span| span.field("server.port") == "8443"));
    // Failures are told by their codes.
    assert!(staff.insert(&don()).await.is_err());
    let (_, span) = exporter.verb("insert");
    let failure = ["error.type", "db.response.status_code"].map(|name| span.field(name));
    assert_eq!(failure, ["EntityAlreadyExists", "409"]);
    assert!(staff.get(stored.point()).await.unwrap().is_some());
    assert_eq!(exporter.verb("get").1.field("entable.requests"), "1");
    let path = Employee::primary().department("Secret1");
    let query = staff.query(path).filter(Employee::NAME.eq("secret3"));
    assert_eq!(query.collect().await.unwrap().len(), 1);
    let (_, span) = exporter.verb("query");
    let asked = ["entable.cost_class", "entable.rows"].map(|name| span.field(name));
    assert_eq!(asked, ["Range", "1"]);
    staff.patch(&stored, Employee::patch().name("secret4")).await.unwrap();
    staff
        .update(stored.point(), |one| {
            one.name.push('5');
            Ok(())
        })
        .await
        .unwrap();
    let mut egt = client.transaction();
    egt.insert(&Employee { id: 424_243, ..don() }).unwrap();
    egt.commit().await.unwrap();
    assert!(staff.delete_at(stored.point()).await.unwrap());
    for verb in ["patch", "update", "transaction", "delete_at"] {
        assert_eq!(exporter.verb(verb).1.field("db.collection.name"), "Staff", "{verb}");
    }
    for span in exporter.take() {
        let text = format!("{span:?}").to_lowercase();
        assert!(!text.contains("secret") && !text.contains("42424"), "{text}");
    }
}

#[tokio::test]
async fn each_verb_on_rows_without_a_type_has_a_span() {
    let (exporter, _guard) = export_spans();
    let client = Client::memory();
    client.create_table("Staff").await.unwrap();
    let rows = client.dynamic("Staff");
    let mut row = rows.insert(&DynamicEntity::new("p", "r")).await.unwrap();
    row.set("Age", 30);
    let mut row = rows.replace(&row).await.unwrap();
    row.set("Age", 31);
    let old = rows.patch(&row).await.unwrap();
    rows.insert_or_replace(&old).await.unwrap();
    rows.insert_or_merge(&old).await.unwrap();
    let told = |verb: &str| {
        let (_, span) = exporter.verb(verb);
        let names = ["db.collection.name", "entable.requests", "error.type"];
        names.map(|name| span.field(name).to_owned())
    };
    for verb in ["insert", "replace", "patch", "insert_or_replace", "insert_or_merge"] {
        assert_eq!(told(verb), ["Staff", "1", ""], "{verb}");
    }
    let mut row = old;
    row.set("Age", 32);
    assert!(rows.patch(&row).await.unwrap_err().is_precondition_failed());
    assert_eq!(told("patch"), ["Staff", "1", "UpdateConditionNotSatisfied"]);
    // An update is a read and a patch.
    let patches = || {
        let spans = exporter.take();
        spans.iter().filter(|span| span.field("db.operation.name") == "patch").count()
    };
    assert_eq!(patches(), 2);
    rows.update("p", "r", |row| {
        row.set("Age", 33);
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(patches(), 3);
    assert_eq!(told("get"), ["Staff", "1", ""]);
    rows.delete("p", "r", Condition::Any).await.unwrap();
    assert_eq!(told("delete"), ["Staff", "1", ""]);
}

#[tokio::test]
async fn a_client_counts_its_requests() {
    let client = Client::memory();
    let staff = client.table::<Employee>();
    staff.create().await.unwrap();
    let rows = client.dynamic("Staff");
    rows.insert(&DynamicEntity::new("p", "r")).await.unwrap();
    assert!(rows.insert(&DynamicEntity::new("p", "r")).await.is_err());
    assert!(rows.get("p", "r").await.unwrap().is_some());
    assert_eq!(rows.query(Keys::partition("p")).collect().await.unwrap().len(), 1);
    let usage = client.clone().usage();
    let counts = [usage.reads, usage.scans, usage.rows, usage.writes, usage.operations];
    assert_eq!(counts, [1, 1, 2, 2, 2]);
    assert_eq!((usage.table_requests, usage.transactions), (1, 0));
    assert_eq!((usage.failures, usage.throttled), (1, 0));
    let price = usage.price(&Prices::per_10_000(10_000.0, 20_000.0, 30_000.0, 0.0));
    assert!((price - (1.0 + 2.0 + 9.0)).abs() < 1e-9, "{price}");
}

#[tokio::test(start_paused = true)]
async fn spans_tell_retries_and_what_was_decided_after_a_lost_answer() {
    let (exporter, _guard) = export_spans();
    let fault = FaultInjector::around(Memory::new());
    let client =
        Client::builder().backend(fault.clone()).retry(RetryPolicy::default()).build().unwrap();
    let rows = client.dynamic("Staff");
    client.create_table("Staff").await.unwrap();
    let busy = || Error::service(ServiceCode::ServerBusy, "busy");
    let lost = || Error::service(ServiceCode::OperationTimedOut, "lost");
    let entity = DynamicEntity::new("p", "secret");
    fault.inject(RequestKind::Apply, 0, InjectedFault::Before(busy()));
    fault.inject(RequestKind::Apply, 1, InjectedFault::Before(lost()));
    rows.insert(&entity).await.unwrap();
    let told = |verb: &str| {
        let (_, span) = exporter.verb(verb);
        let names = ["entable.requests", "entable.retries", "entable.decision", "error.type"];
        names.map(|name| span.field(name).to_owned())
    };
    assert_eq!(told("insert"), ["1", "2", "sent_again", ""]);
    fault.inject(RequestKind::Apply, 0, InjectedFault::After(lost()));
    rows.insert_or_replace(&entity).await.unwrap();
    assert_eq!(told("insert_or_replace"), ["1", "", "carried_out", ""]);
    // Another writer could have written this row: what the first request did, nobody knows.
    fault.inject(RequestKind::Apply, 0, InjectedFault::After(lost()));
    let stored = rows.get("p", "secret").await.unwrap().unwrap();
    let error = rows.replace(&stored).await.unwrap_err();
    assert!(error.is_ambiguous(), "{error}");
    assert_eq!(told("replace"), ["1", "", "ambiguous", "Ambiguous"]);
    fault.inject(RequestKind::Read, 0, InjectedFault::Before(busy()));
    rows.get("p", "secret").await.unwrap();
    assert_eq!(told("get"), ["1", "1", "", ""]);
    // Each is an event of its own in the span of its verb.
    let (verb, _) = exporter.verb("get");
    let spans = exporter.take();
    let event = spans.iter().find(|one| one.name == "entable.retry" && one.parent == Some(verb));
    assert_eq!(event.unwrap().field("db.collection.name"), "Staff");
    let decided = spans.iter().filter(|one| one.name == "entable.lost_answer");
    let decided: Vec<_> = decided.map(|one| one.field("entable.decision")).collect();
    assert_eq!(decided, ["sent_again", "sent_again", "carried_out", "ambiguous"]);
    assert!(spans.iter().all(|span| !format!("{span:?}").contains("secret")));
}

#[tokio::test]
async fn spans_show_keys_and_filters_if_they_are_asked_to() {
    let (exporter, _guard) = export_spans();
    let observe = Observe::around(Memory::new()).redact(false);
    let client = Client::builder().backend(observe).build().unwrap();
    let rows = client.dynamic("Staff");
    client.create_table("Staff").await.unwrap();
    let mut row = DynamicEntity::new("Secret1", "secret2");
    row.set("Name", "hidden");
    rows.insert(&row).await.unwrap();
    rows.get("Secret1", "secret2").await.unwrap();
    let by_name = Keys::partition("Secret1");
    rows.query(by_name).filter(Filter::eq("Name", "asked")).collect().await.unwrap();
    let spans = exporter.take();
    let request = |operation: &str| {
        let is_it = |span: &&Exported| {
            span.name == "entable.request" && span.field("db.operation.name") == operation
        };
        spans.iter().find(is_it).unwrap()
    };
    for operation in ["apply", "read"] {
        let keys = ["entable.partition_key", "entable.row_key"];
        let keys = keys.map(|name| request(operation).field(name));
        assert_eq!(keys, ["Secret1", "secret2"], "{operation}");
    }
    let text = request("scan").field("db.query.text");
    assert_eq!(text, "(PartitionKey eq 'Secret1') and (Name eq 'asked')");
    // Values that are written are in no span.
    assert!(!format!("{spans:?}").contains("hidden"));
}
