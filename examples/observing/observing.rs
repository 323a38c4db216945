//! Shows what a program does to its store: spans as lines of text and for OpenTelemetry, counts and their price.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use std::{
    io::Write,
    sync::{Arc, Mutex, PoisonError},
};

use entable::{
    Prices, ServiceCode,
    backend::{
        Memory,
        layer::{FaultInjector, InjectedFault, Observe, RequestKind, RetryPolicy},
    },
    prelude::*,
};
use opentelemetry::{
    Value,
    trace::{SpanId, SpanKind, TracerProvider},
};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use tracing_subscriber::{filter::LevelFilter, fmt::format::FmtSpan, prelude::*};

#[derive(Debug, Clone, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByEmail, partition_key = "email_{email}", row_key = "at_{department}_{id:06}")
)]
struct Employee {
    department: String,
    id: u32,
    email: String,
}

/// Writes to standard output, and keeps what it wrote.
#[derive(Clone, Default)]
struct Printed(Arc<Mutex<Vec<u8>>>);

impl Printed {
    fn text(&self) -> String {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        print!("{}", String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stdout().flush()
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    // One line for each span at its end, with the time that it took and its fields.
    let printed = Printed::default();
    let lines = printed.clone();
    let text = tracing_subscriber::fmt::layer()
        .with_span_events(FmtSpan::CLOSE)
        .with_target(false)
        .with_ansi(false)
        .with_writer(move || lines.clone());
    // The same spans for OpenTelemetry. A service exports to its collector here:
    // `.with_batch_exporter(opentelemetry_otlp::SpanExporter::builder().with_http().build()?)`.
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    let exported = tracing_opentelemetry::layer().with_tracer(provider.tracer("staff"));
    // `INFO` shows verbs alone, without their requests.
    tracing_subscriber::registry().with(LevelFilter::DEBUG).with(text).with(exported).init();

    // Inside the retry layer, `Observe` makes a span of each attempt.
    let store = FaultInjector::around(Memory::new());
    let observed = Observe::around(store.clone()).server("staff.example.com").port(8_443);
    let client = Client::builder().backend(observed).retry(RetryPolicy::default()).build()?;
    let staff = client.table::<Employee>();
    staff.create().await?;

    println!("-- an insertion, with its copy in another partition");
    let (department, email) = ("Sales".to_owned(), "don@contoso.com".to_owned());
    let don = staff.insert(&Employee { department, id: 223, email }).await?;
    client.wait_for_copies().await;

    println!("-- a read that the store throttles once");
    let busy = Error::service(ServiceCode::ServerBusy, "the partition is busy");
    store.inject(RequestKind::Read, 0, InjectedFault::Before(busy));
    assert!(staff.get(don.point()).await?.is_some());

    println!("-- a query, a conflict");
    let found = staff.query(Employee::primary().department("Sales")).collect().await?;
    assert_eq!(found.len(), 1);
    assert!(staff.insert(&don).await.is_err_and(|error| error.is_conflict()));

    let text = printed.text();
    let is_get = |line: &str| line.contains("\"get\"") && line.contains("entable.retries=1");
    assert!(text.lines().any(is_get), "{text}");
    assert!(text.contains("EntityAlreadyExists") && text.contains("cost_class=Range"), "{text}");
    assert!(text.contains("staff.example.com"), "{text}");
    // Keys and values are in no line; `Observe::redact(false)` shows keys.
    assert!(!text.contains("Sales") && !text.contains("don@contoso.com"), "{text}");

    provider.force_flush()?;
    assert_exported(&exporter.get_finished_spans()?)?;

    // Counts since the start, and what they would cost: prices of 10,000 requests, of your region.
    let usage = client.usage();
    let price = usage.price(&Prices::per_10_000(0.00036, 0.00036, 0.00036, 0.00036));
    println!("-- {usage:?}\n-- about {price:.7}");
    assert!(usage.reads >= 1 && usage.scans >= 1 && price > 0.0);
    assert!(usage.failures >= 1, "the refused insertion");
    Ok(())
}

/// Asserts that a collector gets the throttled read as one span of a client, with a span below it for each of the
/// two attempts. The first attempt failed.
fn assert_exported(spans: &[SpanData]) -> Result<(), BoxError> {
    let get = spans.iter().find(|span| attribute(span, "entable.retries") == Some(Value::I64(1)));
    let get = get.ok_or("the verb is not exported")?;
    assert_eq!((get.name.as_ref(), &get.span_kind), ("get", &SpanKind::Client));
    assert_eq!(get.parent_span_id, SpanId::INVALID);

    let attempts: Vec<&SpanData> =
        spans.iter().filter(|span| span.parent_span_id == get.span_context.span_id()).collect();
    let [throttled, answered] = attempts[..] else { return Err("not two attempts".into()) };
    for attempt in [throttled, answered] {
        assert_eq!(attempt.span_context.trace_id(), get.span_context.trace_id());
        assert_eq!(attribute(attempt, "db.system.name"), Some("azure.tables".into()));
        assert_eq!(attribute(attempt, "server.address"), Some("staff.example.com".into()));
    }
    assert_eq!(attribute(throttled, "error.type"), Some("ServerBusy".into()));
    assert_eq!(attribute(answered, "error.type"), None);
    assert_eq!(attribute(answered, "entable.rows"), Some(Value::I64(1)));
    Ok(())
}

/// Returns the value of an attribute of a span.
fn attribute(span: &SpanData, name: &str) -> Option<Value> {
    let pair = span.attributes.iter().find(|pair| pair.key.as_str() == name)?;
    Some(pair.value.clone())
}
