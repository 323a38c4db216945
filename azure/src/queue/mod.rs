//! Queues of Azure Storage.

mod requests;
mod azure_queue;

pub use azure_queue::AzureQueue;
