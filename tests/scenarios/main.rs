//! Scenarios in which a mistake of the code loses or damages something. `tests/mutations.md` lists the mistakes, each with
//! the scenario that notices it. The scenarios are a target of their own, which `tests/mutations/run` builds for each
//! mistake.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod deliveries;
#[path = "../outbox/fixture.rs"]
#[allow(dead_code, reason = "tests of the outbox use the rest")]
mod fixture;
#[path = "../outbox/hooked.rs"]
#[allow(dead_code, reason = "tests of the outbox use the rest")]
mod hooked;
mod late;
mod maintenance;
mod plans;
#[path = "../outbox/timer_clock.rs"]
mod timer_clock;
#[path = "../outbox/unique/world.rs"]
#[allow(dead_code, reason = "tests of the outbox use the rest")]
mod unique;
mod values;
#[path = "../outbox/weak_store.rs"]
#[allow(dead_code, reason = "tests of the outbox use the rest")]
mod weak_store;
mod work;

use std::sync::Arc;

use entable::{Clock, OutboxOptions, backend::Backend, prelude::*};

use crate::fixture::World;

/// A client of the store that `world` uses. It leaves remote copies to workers.
fn client(world: &World, options: OutboxOptions) -> Client {
    client_of(world, world.fault.clone(), options)
}

/// A client of a store around that of `world`. It leaves remote copies to workers.
fn client_of(world: &World, store: impl Backend + 'static, options: OutboxOptions) -> Client {
    build(store, world.clock.clone(), options)
}

/// A client of `store`. It leaves remote copies to workers.
fn build(
    store: impl Backend + 'static,
    clock: Arc<impl Clock + 'static>,
    options: OutboxOptions,
) -> Client {
    let options = options.copies_before_answer(false);
    Client::builder().backend(store).clock(clock).outbox(options).build().unwrap()
}
