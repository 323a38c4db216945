//! Fault 14: tests that a log of everything that the carrier and its HTTP client write, through `tracing`
//! and through `log`, holds no secret.

use std::{
    cell::Cell,
    fmt::Write,
    sync::{Arc, Mutex, atomic::Ordering},
};

use entable::{Azure, AzureOptions, Operation};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use crate::{
    emulator::{apply, new_name, read, row},
    raw_server::{http, listen},
    scripted_http::{Fake, KEY, answer},
};

thread_local! {
    /// Whether what this thread does is kept: the subscriber is one for all tests.
    static KEPT: Cell<bool> = const { Cell::new(false) };
}

/// A subscriber that records every event, at every level.
#[derive(Clone, Default)]
struct Everything(Arc<Mutex<String>>);

impl Visit for Everything {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = writeln!(self.0.lock().unwrap(), "{field}={value:#?}");
    }
}

impl Subscriber for Everything {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        if KEPT.get() {
            span.record(&mut self.clone());
        }
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, values: &span::Record<'_>) {
        if KEPT.get() {
            values.record(&mut self.clone());
        }
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        if KEPT.get() {
            event.record(&mut self.clone());
        }
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

impl log::Log for Everything {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        if KEPT.get() {
            let _ = writeln!(self.0.lock().unwrap(), "{} {}", record.target(), record.args());
        }
    }

    fn flush(&self) {}
}

async fn use_it(azure: &Azure) {
    let table = new_name();
    let _ = read(azure, &table, "p", "r").await;
    let _ = apply(azure, &table, Operation::insert(row("p", "r", "x"))).await;
    let _ = azure.access_policies(&table).await;
}

#[tokio::test]
async fn f14_no_key_signature_or_token_reaches_a_log() {
    let log = Everything::default();
    tracing::subscriber::set_global_default(log.clone()).unwrap();
    log::set_logger(Box::leak(Box::new(log.clone()))).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    KEPT.set(true);
    let sas = "sv=2019-02-02&tn=Staff&sp=r&se=2030-01-01T00%3A00%3A00Z&sig=s3cretSignature%3D";
    let (address, asked) = listen(http("404 Not Found", "", "")).await;
    let seen = Fake::new(vec![answer(403, &[]); 3]);
    for options in [
        AzureOptions::from_sas(&format!("{address}?{sas}")).unwrap(),
        AzureOptions::from_account_key("myaccount", KEY).unwrap().endpoint(&address).unwrap(),
    ] {
        use_it(&Azure::new(options).unwrap()).await;
    }
    assert_eq!(asked.load(Ordering::SeqCst), 6);
    use_it(&seen.azure()).await;
    let signature = seen.asked()[0].header("authorization").unwrap().to_owned();
    let log = log.0.lock().unwrap();
    let (_, host) = address.split_once("//").unwrap();
    let (host, _) = host.split_once('/').unwrap();
    assert!(log.contains(host), "the log is empty: {log}");
    for secret in ["s3cretSignature", KEY, &signature, "SharedKey "] {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
}

#[tokio::test]
async fn f14_no_secret_is_in_debug_or_errors() {
    let sas = "sv=2019-02-02&sig=s3cretSignature%3D";
    let options = [
        AzureOptions::from_account_key("myaccount", KEY).unwrap(),
        AzureOptions::from_sas(sas).unwrap().account("myaccount").unwrap(),
    ];
    for options in options {
        // Nobody listens there: the error names the address, without a query.
        let options = options.endpoint("http://127.0.0.1:9/devstoreaccount1").unwrap();
        let mut text = format!("{options:?}");
        let azure = Azure::new(options).unwrap();
        let error = read(&azure, "Staff", "p", "r").await.unwrap_err();
        let _ = write!(text, "{azure:?} {error} {error:?}");
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            let _ = write!(text, "{cause} {cause:?}");
            source = cause.source();
        }
        assert!(!text.contains("s3cretSignature") && !text.contains(KEY), "{text}");
        assert!(text.contains("127.0.0.1:9"), "{text}");
    }
}
