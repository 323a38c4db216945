//! Tests which writes relaxed durability may lose, and which it may not.

use std::time::Duration;

use entable::backend::{Backend, Embedded, TableRequest};

use crate::{
    Random,
    kill::run,
    rounds,
    rows::{TABLE, transactions},
};

const DELAY: Duration = Duration::from_millis(60);
/// The time that a commit may take on a busy machine.
const SLACK: Duration = Duration::from_millis(400);

#[tokio::test]
async fn a_killed_process_loses_the_last_moments_at_most() {
    let mut random = Random(std::process::id().into());
    for round in 0..rounds(3, 40) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ledger.db");
        let life = Duration::from_millis(400 + random.below(300) as u64);
        let said = run(&file, Some(DELAY), life, false);
        let store = Embedded::open(&file).unwrap();
        drop(store.tables(TableRequest::Create(TABLE)).await);
        let found = transactions(&store).await;
        for (writer, count) in said.flushed {
            assert!(found[&writer] >= count, "round {round}: a flushed transaction is lost");
        }
        for (writer, count, at) in said.written {
            let old = said.killed.duration_since(at) > DELAY + SLACK;
            assert!(!old || found[&writer] >= count, "round {round}: an old transaction is lost");
        }
    }
}
