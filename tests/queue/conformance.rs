//! Tests the promises of queues, on every store and on Azure Storage queues.

use std::sync::Arc;

use entable::{
    SteppedClock, Ticks,
    backend::{Backend, Embedded, Memory},
    conformance::QueueSetup,
    prelude::*,
    queue::TableQueue,
};

entable::queue_suite!(memory, TableQueue::new(Memory::new(), "letters"));
entable::queue_suite!(memory_in_shards, stepped(|clock| Memory::with_clock(clock), 3));
entable::queue_suite!(embedded, stepped(embedded, 1));

/// A queue of some shards in a store that takes the time from a clock, as its client does.
fn stepped<B: Backend>(store: impl FnOnce(Arc<SteppedClock>) -> B, shards: u32) -> QueueSetup {
    let clock = Arc::new(SteppedClock::new(Ticks::new(638_000_000_000_000_000).unwrap()));
    let store = store(clock.clone());
    let client = Client::builder().backend(store).clock(clock.clone()).build().unwrap();
    QueueSetup::stepped(client.table_queue("letters").shards(shards), clock)
}

/// A store in a file whose name is gone already.
fn embedded(clock: Arc<SteppedClock>) -> Embedded {
    let directory = tempfile::tempdir().unwrap();
    Embedded::options().clock(clock).open(directory.path().join("queues.db")).unwrap()
}

#[cfg(feature = "azure-queue")]
mod emulated {
    use entable::{Azure, AzureOptions, AzureQueue, queue::TableQueue};

    /// The emulator. `None`, said aloud, where there is none.
    pub(super) fn options() -> Option<AzureOptions> {
        let Ok(connection) = std::env::var("ENTABLE_AZURITE") else {
            println!("not run: ENTABLE_AZURITE names no emulator");
            return None;
        };
        println!("emulator: queues");
        Some(AzureOptions::from_connection_string(&connection).unwrap())
    }

    fn name() -> String {
        format!("q{}", uuid::Uuid::new_v4().simple())
    }

    fn table() -> Option<TableQueue> {
        Some(TableQueue::new(Azure::new(options()?).unwrap(), name()))
    }

    fn queue() -> Option<AzureQueue> {
        Some(AzureQueue::new(options()?, name()).unwrap())
    }

    entable::queue_suite!(table_in_azurite, optional table());
    entable::queue_suite!(queue_in_azurite, optional queue());
}
