//! Exports, imports, copies and backups: rows a second, and the memory that each takes at most.

use std::{
    future::Future,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use entable::{
    backend::{Durability, Embedded, EmbeddedOptions},
    prelude::*,
};

use crate::{
    csv, data,
    embedded::runtime,
    figure::rate,
    load::Single,
    memory::{peak_mebibytes, reset_peak},
};

/// Rows of 512 bytes in the store that is backed up.
const BACKED_UP: u32 = 400_000;
const MIB: f64 = 1024.0 * 1024.0;

/// The rows per second; of the real year where `given`.
pub(crate) fn run(given: Option<&Path>) {
    let directory = tempfile::tempdir().unwrap();
    let file = data::year_file(given, directory.path());
    let at = |name: &str| directory.path().join(name);
    runtime().block_on(async {
        let source = open(&at("flights.db"));
        let table: Table<Single> = source.1.table();
        table.create().await.unwrap();
        let flights: Vec<Single> = csv::read(&file).unwrap();
        table.bulk().insert_all(&flights).await.unwrap().into_result().unwrap();
        let rows = flights.len() as u64;
        drop(flights);

        let lines = at("flights.jsonl");
        let exported = source.1.export("Flights").to_file(&lines);
        let exported = measured("export", rows, ">= 400000", exported).await;
        assert_eq!(exported.digest.rows(), rows);
        println!("note  data.export file, MiB {:.1}", exported.file_bytes as f64 / MIB);

        let target = open(&at("imported.db"));
        let imported = target.1.import("Flights").from_file(&lines);
        let imported = measured("import", rows, ">= 150000", imported).await;
        assert_eq!(imported.digest, exported.digest);
        target.0.flush().await.unwrap();
        drop(target);

        let target = open(&at("copied.db"));
        let copy = source.1.copy_to(&target.1);
        let copied =
            measured("copy with its verification", rows, ">= 150000", async { copy.await });
        assert!(copied.await.is_equal());
        drop(target);

        let large = open(&at("large.db"));
        large.1.create_table("Large").await.unwrap();
        let text = "x".repeat(480);
        let all = (0..BACKED_UP).map(|id| {
            DynamicEntity::new(format!("{:03}", id / 1_000), format!("{id:08}"))
                .with("Text", text.as_str())
        });
        large.1.dynamic("Large").bulk().insert_or_replace_all(all).await.unwrap();
        let path = at("backup.db");
        let backup = large.1.backup(&path);
        let backup = measured("backup", u64::from(BACKED_UP), ">= 250000", backup).await;
        println!("note  data.backup bytes of a row {}", backup.row_bytes / backup.rows);
        assert_eq!(backup.rows, u64::from(BACKED_UP));
    });
}

fn open(path: &Path) -> (Arc<Embedded>, Client) {
    let relaxed = Durability::Relaxed { delay: Duration::from_millis(100) };
    let store =
        EmbeddedOptions::new().durability(relaxed).cache_bytes(16 << 20).open(path).unwrap();
    let store = Arc::new(store);
    let client = Client::builder().backend(store.clone()).build().unwrap();
    (store, client)
}

/// Runs a job, and prints its rate, and the most memory that it took above what there was.
async fn measured<T>(
    name: &str,
    rows: u64,
    goal: &str,
    job: impl Future<Output = Result<T, Error>>,
) -> T {
    let before = reset_peak();
    let start = Instant::now();
    let done = job.await.unwrap();
    let took = start.elapsed();
    rate(&format!("data.{name}, rows/s"), rows as f64 / took.as_secs_f64(), goal);
    if let (Some(before), Some(peak)) = (before, peak_mebibytes()) {
        println!("ratio data.{name} memory, MiB {:.1} (goal < 128)", peak - before);
    }
    done
}
