//! Compares the server with Azurite: the same load from one client, on files of both, one after the other.
//!
//! Azurite is the one of `tests/azurite`, once `npm ci` was run there. Both keep their rows on disk. Each server is a
//! process of its own.

mod client;
mod place;

use std::time::Duration;

use entable::prelude::Error;

use self::{
    client::Load,
    place::{Place, Served},
};
use crate::{
    Size,
    figure::{figure, note},
};

/// How long each load lasts.
const SECONDS: Duration = Duration::from_secs(4);
/// The requests while memory is compared.
const REQUESTS: usize = 100_000;
const MANY_REQUESTS: usize = 1_000_000;

/// The figures of one place, in requests a second and milliseconds.
struct Figures {
    inserts: [f64; 2],
    slowest: f64,
    reads: f64,
    transactions: f64,
}

/// Says whether this process is a server for the suite.
pub(crate) fn is_child(arguments: &[String]) -> bool {
    place::is_child(arguments)
}

/// Serves until the process is killed.
pub(crate) fn child(arguments: &[String]) {
    place::serve(arguments);
}

pub(crate) fn run(size: Size) {
    let runtime = crate::embedded::runtime();
    let started: Vec<_> = (0..5).map(|_| Place::Durable.start().1).collect();
    let start = started.iter().min().copied().unwrap_or_default();
    figure("serve_start_ms", start.as_secs_f64() * 1e3, "<= 50");
    let Some(azurite) = Place::Azurite.measure(&runtime) else {
        note("serve", "Azurite is not installed: run `npm ci` in tests/azurite");
        return;
    };
    let (Some(durable), Some(relaxed)) =
        (Place::Durable.measure(&runtime), Place::Relaxed.measure(&runtime))
    else {
        return;
    };
    let of = |ours: f64, theirs: f64| ours / theirs;
    figure("serve_inserts_16", of(durable.inserts[0], azurite.inserts[0]), ">= 3");
    figure("serve_inserts_64", of(durable.inserts[1], azurite.inserts[1]), ">= 6");
    figure("serve_relaxed_inserts_16", of(relaxed.inserts[0], azurite.inserts[0]), ">= 6");
    figure("serve_reads_16", of(durable.reads, azurite.reads), ">= 15");
    figure("serve_transactions_16", of(durable.transactions, azurite.transactions), ">= 5");
    figure("serve_slowest_of_100_64", of(durable.slowest, azurite.slowest), "<= 0.3");
    let requests = if size == Size::Usual { REQUESTS } else { MANY_REQUESTS };
    compare_memory(&runtime, requests);
}

impl Place {
    fn measure(self, runtime: &tokio::runtime::Runtime) -> Option<Figures> {
        let served = self.find()?.0;
        let figures = runtime.block_on(load(&served)).unwrap();
        let (inserts, slowest) = (figures.inserts, figures.slowest);
        note(
            &format!("serve_{self:?}").to_lowercase(),
            format!(
                "{:.0} inserts/s with 16 clients, {:.0} with 64 (99 % in {slowest:.1} ms), {:.0} reads/s, {:.1} \
                 transactions/s",
                inserts[0], inserts[1], figures.reads, figures.transactions
            ),
        );
        Some(figures)
    }
}

async fn load(served: &Served) -> Result<Figures, Error> {
    let load = Load::new(served.endpoint.clone()).await;
    let few = load.run(16, SECONDS, Load::insert).await;
    let many = load.run(64, SECONDS, Load::insert).await;
    let reads = load.run(16, SECONDS, Load::read).await;
    let transactions = load.run(16, SECONDS, Load::transaction).await;
    Ok(Figures {
        inserts: [few.rate, many.rate],
        slowest: many.slowest,
        reads: reads.rate,
        transactions: transactions.rate,
    })
}

/// Prints how much more memory the server has after many requests than after some.
fn compare_memory(runtime: &tokio::runtime::Runtime, requests: usize) {
    let served = Place::Durable.start().0;
    let [before, after] = runtime.block_on(async {
        let load = Load::new(served.endpoint.clone()).await;
        load.run(64, Duration::from_secs(2), Load::replace).await;
        let before = served.memory();
        load.repeat(64, requests, Load::replace).await;
        [before, served.memory()]
    });
    note("serve_memory_mib", format!("{before:.1}, and {after:.1} after {requests} requests"));
    figure("serve_memory_growth", after / before, "<= 1.1");
}
