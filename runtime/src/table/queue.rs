//! Queues in the client's own store.

use std::sync::Arc;

use super::Client;
use crate::queue::{MessageQueue, TableQueue};

impl Client {
    /// A queue of messages in this client's store, in the table `EntableQueues`. It comes into being
    /// with its first message.
    pub fn queue(&self, name: impl Into<String>) -> MessageQueue {
        let random = self.outbox().store.random.fork();
        MessageQueue::with_random(Arc::new(self.table_queue(name)), random)
    }

    /// The same as texts, to be told how many shards it has.
    ///
    /// ```
    /// use entable::{Client, queue::MessageQueue};
    ///
    /// let client = Client::memory();
    /// let queue = MessageQueue::over(client.table_queue("orders").shards(8));
    /// assert_eq!(queue.name(), "orders");
    /// ```
    pub fn table_queue(&self, name: impl Into<String>) -> TableQueue {
        let outbox = self.outbox();
        let (clock, random) = (outbox.server.clone(), outbox.store.random.fork());
        TableQueue::with_clock(self.backend().clone(), name.into(), clock, random)
    }
}
