//! Runs random histories of two writers, interleaved at every request, with a fault before or after
//! each request in turn. After every history all copies and lists are exact, and every error that a
//! writer got was true of its own entity.
//!
//! `ENTABLE_SEED=n` replays one history; `ENTABLE_LONG=1` runs many.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::duplicated_attributes,
    clippy::large_enum_variant,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod world;
mod writer;

use entable::{
    Condition, Error, ErrorKind, Value,
    backend::layer::{FaultInjector, InjectedFault, RequestKind},
    prelude::*,
};
use world::{Layout, Observed, PARTITION, Person, Random, TABLE};
use writer::Writer;

/// Verbs of each writer.
const STEPS: usize = 8;

/// The parameters of a history.
#[derive(Debug, Clone, Copy)]
struct Plan {
    seed: u64,
    /// The request that fails, and whether it is carried out all the same.
    fault: Option<(usize, bool)>,
    /// Whether rows are changed behind the program's back, for writers that mend.
    damaged: bool,
}

fn seeds(short: u64, long: u64) -> Vec<u64> {
    if let Ok(seed) = std::env::var("ENTABLE_SEED") {
        return vec![seed.parse().unwrap()];
    }
    let count = if std::env::var_os("ENTABLE_LONG").is_some() { long } else { short };
    (0..count).collect()
}

fn run(plan: Plan) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let outcome =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| runtime.block_on(history(plan))));
    outcome.unwrap_or_else(|cause| {
        let text = cause.downcast_ref::<String>().cloned().unwrap_or_default();
        panic!("{plan:?} (replay with ENTABLE_SEED={}): {text}", plan.seed)
    })
}

/// Runs a history; how many requests it took.
async fn history(plan: Plan) -> usize {
    let store = Observed::new(plan.seed);
    let quiet = Client::builder().backend(store.clone()).build().unwrap();
    let fault = FaultInjector::around(store.clone());
    let client = Client::builder().backend(fault.clone()).build().unwrap();
    let staff = quiet.table::<Person>();
    staff.create().await.unwrap();
    let mut writers = [1, 2].map(|number| Writer {
        table: client.table::<Person>(),
        store: store.clone(),
        random: Random(plan.seed.wrapping_mul(31).wrapping_add(number)),
        known: Vec::new(),
        damaged: plan.damaged,
        history: Vec::new(),
    });
    if plan.damaged {
        for _ in 0..4 {
            let person = writers[0].person();
            let _ = staff.insert(&person).await;
        }
        damage(&quiet, &mut Random(plan.seed)).await;
    }
    if let Some((at, carried_out)) = plan.fault {
        let broken = Error::new(ErrorKind::Backend, "connection lost");
        let trouble =
            if carried_out { InjectedFault::After(broken) } else { InjectedFault::Before(broken) };
        fault.inject(RequestKind::Any, at, trouble);
    }
    let [one, two] = &mut writers;
    tokio::join!(steps(one), steps(two));
    let requests = fault.requests();
    if plan.damaged {
        for _ in 0..3 {
            staff.check().repair().await.unwrap();
        }
    }
    let report = staff.check().await.unwrap();
    let histories: Vec<_> = writers.iter().map(|writer| &writer.history).collect();
    assert!(report.is_clean(), "{:#?} after {histories:#?}", report.findings);
    let (found, expected) = (Layout::found(&quiet).await, Layout::expected(&staff).await);
    assert_eq!(found, expected, "after {histories:#?}");
    requests
}

async fn steps(writer: &mut Writer) {
    for _ in 0..STEPS {
        writer.step().await;
    }
}

/// Removes, changes and adds copies and entries. Copies of the unique indexes stay: without one,
/// another entity may take its key, and nothing can mend two owners.
async fn damage(client: &Client, random: &mut Random) {
    let rows = client.dynamic(TABLE);
    for row in rows.query(Keys::partition(PARTITION)).collect().await.unwrap() {
        let key = row.row_key().to_owned();
        if key.starts_with("empid_") || random.below(2) == 0 {
            continue;
        }
        match (
            random.below(3),
            key.starts_with("email_") || key.starts_with("badge_"),
            key.starts_with("lastname_"),
        ) {
            (0, false, _) => rows.delete(PARTITION, &key, Condition::Any).await.unwrap(),
            (1, _, false) => {
                let mut row = row.clone();
                let name = if key.starts_with("badge_") { "Visits" } else { "FirstName" };
                row.set(name, if name == "Visits" { Value::Int64(99) } else { "Somebody".into() });
                rows.replace(&row).await.unwrap();
            }
            (2, _, true) => {
                let mut row = row.clone();
                row.set("Ids00", r#"["empid_000002","empid_000099"]"#);
                rows.replace(&row).await.unwrap();
            }
            _ => {
                let orphan = DynamicEntity::new(PARTITION, "adult_000077")
                    .with("EntityType", "Person#Adult")
                    .with("Age", 30);
                rows.insert_or_replace(&orphan).await.unwrap();
            }
        }
    }
}

#[test]
fn copies_are_exact_after_every_history() {
    for seed in seeds(400, 100_000) {
        run(Plan { seed, fault: None, damaged: false });
    }
}

#[test]
fn copies_are_exact_after_a_fault_at_every_request() {
    for seed in seeds(12, 2_000) {
        let requests = run(Plan { seed, fault: None, damaged: false });
        for at in 0..requests {
            for carried_out in [false, true] {
                run(Plan { seed, fault: Some((at, carried_out)), damaged: false });
            }
        }
    }
}

#[test]
fn damage_is_mended_beside_writers() {
    for seed in seeds(400, 100_000) {
        run(Plan { seed, fault: None, damaged: true });
    }
}
