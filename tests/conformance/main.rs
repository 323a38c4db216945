//! Tests the promises of every backend on each backend and through each layer.

#![allow(clippy::expect_used, reason = "a suite without its store is a failed test")]

use std::{
    path::Path,
    sync::{Arc, OnceLock},
};

use entable::{
    Batch, Clock, Operation, Row, SteppedClock, SystemClock, ValueRef,
    backend::{
        Backend, Embedded, Memory, TableRequest,
        layer::{FaultInjector, Recorder, Retry, RetryPolicy},
    },
    choice_suite, conformance_suite,
};

conformance_suite!(memory, Memory::new());
conformance_suite!(embedded, scratch());
// Some rows have layouts and others describe themselves.
conformance_suite!(embedded_mixed, nearly_full());
conformance_suite!(recorder, Recorder::around(Memory::new()));
conformance_suite!(fault, FaultInjector::around(Memory::new()));
conformance_suite!(retry, Retry::around(Memory::new(), RetryPolicy::new()));
// A clock that never moves: order and versions do not hang on it.
conformance_suite!(standing_clock, Memory::with_clock(standing()));

choice_suite!(memory_choices, Memory::new());
choice_suite!(embedded_choices, scratch());

/// A store whose file goes when it is closed.
fn scratch() -> Embedded {
    let directory = tempfile::tempdir().expect("a directory");
    Embedded::open(directory.path().join("store.db")).expect("a new store")
}

/// A store that takes a few more layouts of rows, and stores further rows self-described.
fn nearly_full() -> Embedded {
    static FILE: OnceLock<Vec<u8>> = OnceLock::new();
    let bytes = FILE.get_or_init(|| {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("store.db");
        std::thread::scope(|scope| scope.spawn(|| fill_layouts(&path)).join()).expect("a store");
        std::fs::read(path).expect("the store's file")
    });
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    std::fs::write(&path, bytes).expect("a copy of the file");
    Embedded::open(path).expect("a store")
}

/// Makes a store without tables that has three layouts less than it may have.
fn fill_layouts(path: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let store = Embedded::open(path).expect("a new store");
        store.tables(TableRequest::Create("Filled")).await.expect("a table");
        let numbers: Vec<usize> = (0..4_096 - 3).collect();
        for numbers in numbers.chunks(100) {
            let mut batch = Batch::new("Filled");
            for number in numbers {
                let mut row = Row::build("p", &format!("{number}"));
                row.put("EntityType", ValueRef::String(&format!("Type{}", number / 8)));
                row.put(&format!("Only{number}"), ValueRef::Boolean(true));
                batch.push(Operation::insert(row.finish().expect("a row"))).expect("a batch");
            }
            store.apply(&batch).await.expect("rows");
        }
        store.tables(TableRequest::Delete("Filled")).await.expect("no table");
        store.compact().await.expect("a small file");
        store.close().await.expect("a whole file");
    });
}

fn standing() -> Arc<dyn Clock> {
    Arc::new(SteppedClock::new(SystemClock.now()))
}
