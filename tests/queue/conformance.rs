//! Tests the promises of queues, on every store and on Azure Storage queues.

use entable::{
    backend::{Embedded, Memory},
    queue::TableQueue,
};

entable::queue_suite!(memory, TableQueue::new(Memory::new(), "letters"));
entable::queue_suite!(memory_in_shards, TableQueue::new(Memory::new(), "letters").shards(3));
entable::queue_suite!(embedded, TableQueue::new(embedded(), "letters"));

/// A store in a file whose name is gone already.
fn embedded() -> Embedded {
    let directory = tempfile::tempdir().unwrap();
    Embedded::open(directory.path().join("queues.db")).unwrap()
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
