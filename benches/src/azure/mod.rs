//! Measures what a request costs its client: user and system time of the process, for each operation.
//!
//! All clients speak with one emulator, each in a process of its own, one after the other and that
//! several times over; a ratio is that of the medians. The emulator's own time does not count. This crate is
//! measured twice: over its own transport, and over the one that carries requests by `azure_data_tables`.
//!
//! `ENTABLE_AZURITE` names the emulator; `tests/azurite/with-azurite.mjs` starts one. The Python and
//! JavaScript clients are measured where their packages are installed (`.ci/azurite` does it).

mod ours;
mod theirs;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    process::{Command, Stdio},
};

use entable::backend::azure::Carrier;

use crate::figure::{figure, note};

/// Rounds; each asks every client once.
const ROUNDS: usize = 7;
/// The argument by which this program asks itself to be one of the clients.
const CHILD: &str = "azure-client";

/// How much a client does for one figure.
pub(crate) const POINTS: usize = 400;
pub(crate) const TRANSACTIONS: usize = 50;
pub(crate) const TRANSACTION: usize = 100;
pub(crate) const QUERIES: usize = 4;
pub(crate) const QUERIED: usize = TRANSACTIONS * TRANSACTION;

/// The operations; transactions and queries are counted by their rows.
const OPERATIONS: [&str; 4] = ["insert", "get", "transaction", "query"];
/// For each operation, the goals of a ratio: own transport of `azure_data_tables`, carried by 0.21 of the
/// same, own of Python, own of JavaScript.
const GOALS: [[&str; 4]; 4] = [
    ["<= 0.5", "<= 0.73", "<= 0.1", "<= 0.3"],
    ["<= 0.5", "<= 0.73", "<= 0.1", "<= 0.3"],
    ["<= 0.6", "<= 0.72", "<= 0.1", "<= 0.3"],
    ["<= 0.6", "<= 1.09", "<= 0.1", "<= 0.3"],
];

pub(crate) fn is_child(arguments: &[String]) -> bool {
    arguments.first().is_some_and(|first| first == CHILD)
}

/// Does one client's share and prints microseconds for each operation.
pub(crate) fn child(arguments: &[String]) {
    let connection = std::env::var("ENTABLE_AZURITE").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    match arguments.get(1).map(String::as_str) {
        Some("entable") => runtime.block_on(ours::run(&connection, Carrier::Reqwest)),
        Some("entable_0_21") => runtime.block_on(ours::run(&connection, Carrier::AzureDataTables)),
        _ => runtime.block_on(theirs::run(&connection)),
    }
}

/// User and system time of this process so far, in seconds.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let tasks = std::fs::read_dir("/proc/self/task").map(|tasks| {
        tasks
            .flatten()
            .filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok())
            .filter_map(|stat| stat.split_whitespace().next()?.parse::<f64>().ok())
            .sum::<f64>()
    });
    let alone = stat.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0.0);
    tasks.unwrap_or(alone) / 1e9
}

/// Measures one operation and prints its cost.
pub(crate) async fn measured(name: &str, count: usize, work: impl Future<Output = ()>) {
    let before = cpu();
    work.await;
    #[allow(clippy::cast_precision_loss, reason = "counts are small")]
    let micros = (cpu() - before) * 1e6 / count as f64;
    println!("{name} {micros}");
}

type Figures = BTreeMap<String, f64>;

fn ask(command: &mut Command) -> Option<Figures> {
    let output = command.stderr(Stdio::inherit()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let figures: Figures = text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(name, value)| Some((name.to_owned(), value.trim().parse().ok()?)))
        .collect();
    (output.status.success() && figures.len() == OPERATIONS.len()).then_some(figures)
}

fn interop(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/interop")).join(path)
}

/// The clients by name, as commands; those that are not installed are left out.
fn clients() -> Vec<(&'static str, Command)> {
    let itself = || Command::new(std::env::current_exe().unwrap());
    let mut clients = Vec::new();
    for name in ["entable", "entable_0_21", "azure_data_tables"] {
        let mut command = itself();
        command.args([CHILD, name]);
        clients.push((name, command));
    }
    let python = std::env::var_os("ENTABLE_PYTHON")
        .map_or_else(|| interop("python/.venv/bin/python"), PathBuf::from);
    if python.exists() {
        let mut command = Command::new(python);
        command.arg(interop("python/bench.py"));
        clients.push(("python", command));
    }
    if interop("js/node_modules").exists() {
        let mut command = Command::new("node");
        command.arg(interop("js/bench.mjs"));
        clients.push(("javascript", command));
    }
    clients
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Runs the suite.
pub(crate) fn run() {
    if std::env::var_os("ENTABLE_AZURITE").is_none() {
        println!("not run: ENTABLE_AZURITE names no emulator");
        return;
    }
    let mut clients = clients();
    let mut found: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    for round in 0..=ROUNDS {
        for (client, command) in &mut clients {
            let Some(figures) = ask(command) else {
                println!("{client} failed");
                std::process::exit(1);
            };
            // The first round warms the emulator up.
            for operation in OPERATIONS.into_iter().filter(|_| round > 0) {
                let value = figures.get(operation).copied().unwrap_or(f64::NAN);
                found.entry((client, operation)).or_default().push(value);
            }
        }
    }
    let mut cost = |client, operation| found.remove(&(client, operation)).and_then(median);
    for (operation, [crate_goal, carried_goal, python_goal, javascript_goal]) in
        OPERATIONS.into_iter().zip(GOALS)
    {
        let Some(ours) = cost("entable", operation) else { continue };
        note(&format!("azure {operation} us entable"), format_args!("{ours:.2}"));
        let crate_cost = cost("azure_data_tables", operation);
        for (client, theirs, goal) in [
            ("azure_data_tables", crate_cost, crate_goal),
            ("python", cost("python", operation), python_goal),
            ("javascript", cost("javascript", operation), javascript_goal),
        ] {
            let Some(theirs) = theirs else {
                note(&format!("azure {operation} {client}"), "not installed");
                continue;
            };
            note(&format!("azure {operation} us {client}"), format_args!("{theirs:.2}"));
            figure(&format!("azure {operation} of {client}"), ours / theirs, goal);
        }
        if let Some((carried, theirs)) = cost("entable_0_21", operation).zip(crate_cost) {
            note(&format!("azure {operation} us entable over 0.21"), format_args!("{carried:.2}"));
            let name = format!("azure {operation} over 0.21 of azure_data_tables");
            figure(&name, carried / theirs, carried_goal);
        }
    }
}

/// The row that every client writes: six properties, about 350 bytes.
pub(crate) fn key(at: usize) -> String {
    format!("empid_{at:06}")
}

pub(crate) const EMAIL: &str = "jonesj@contoso.example";
pub(crate) const NOTES: &str = "a note of a hundred and twenty characters or so, which is what a row of a real \
     table has, give or take some few words more";
