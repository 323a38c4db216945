//! Compares histories of all verbs on each backend with a model that is written from the service's
//! semantics alone, and runs tasks that write concurrently.
//!
//! `ENTABLE_LONG=1` runs a hundred times as many.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test asserts, and its helpers with it"
)]

mod concurrent;
mod history;
mod reference;

use std::sync::Arc;

use entable::backend::{
    Backend, Embedded, Memory,
    layer::{FaultInjector, Recorder},
};

/// How often something is tried: `short`, or a hundred times that.
fn runs(short: u32) -> u32 {
    if std::env::var_os("ENTABLE_LONG").is_some() { short * 100 } else { short }
}

fn memory() -> Arc<dyn Backend> {
    Arc::new(Memory::new())
}

/// A store whose file goes when it is closed.
fn embedded() -> Arc<dyn Backend> {
    let directory = tempfile::tempdir().expect("a directory");
    Arc::new(Embedded::open(directory.path().join("store.db")).expect("a new store"))
}

/// A backend whose pages are short, and empty the first time.
fn unwilling() -> Arc<dyn Backend> {
    let fault = FaultInjector::around(Recorder::around(Memory::new()));
    fault.shorten_pages(Some(2));
    fault.empty_pages(true);
    Arc::new(fault)
}

#[test]
fn memory_agrees_with_the_model() {
    history::agrees(memory, runs(300));
}

#[test]
fn layers_agree_with_the_model() {
    history::agrees(unwilling, runs(100));
}

#[test]
fn memory_has_one_winner_per_version() {
    concurrent::one_winner_per_version(memory, runs(5));
}

#[test]
fn memory_keeps_the_sum() {
    concurrent::transfers_keep_the_sum(memory, runs(5));
}

#[test]
fn embedded_agrees_with_the_model() {
    history::agrees(embedded, runs(40));
}

#[test]
fn embedded_has_one_winner_per_version() {
    concurrent::one_winner_per_version(embedded, runs(1));
}

#[test]
fn embedded_keeps_the_sum() {
    concurrent::transfers_keep_the_sum(embedded, runs(1));
}
