//! Queues in the tables of the client's own store.

use std::sync::Arc;

use super::Client;
use crate::queue::{MessageQueue, Queue, TableQueue};

impl Client {
    /// Returns a queue of messages in this client's store, in the table `EntableQueues`. The first message
    /// creates the table.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let queue = Client::memory().queue("archive");
    /// assert_eq!(queue.name(), "archive");
    /// # Ok(())
    /// # }
    /// ```
    pub fn queue(&self, name: impl Into<String>) -> MessageQueue {
        self.queue_over(self.table_queue(name))
    }

    /// Returns a typed queue of messages over `queue`, such as an Azure queue. Sent messages are signed with the
    /// client's keys, if it has any.
    ///
    /// ```
    /// use entable::Client;
    ///
    /// let client = Client::memory();
    /// let queue = client.queue_over(client.table_queue("orders"));
    /// assert_eq!(queue.name(), "orders");
    /// ```
    pub fn queue_over(&self, queue: impl Queue) -> MessageQueue {
        let outbox = self.outbox();
        let (random, codes) = (outbox.store.random.fork_source(), outbox.codes.clone());
        MessageQueue::over_with_codes(Arc::new(queue), random, codes, outbox.clock.clone())
    }

    /// Returns the untyped queue below [`queue`](Self::queue). It transports strings, and you can set its number of
    /// shards.
    ///
    /// ```
    /// use entable::Client;
    ///
    /// let client = Client::memory();
    /// let queue = client.queue_over(client.table_queue("orders").shards(8));
    /// assert_eq!(queue.name(), "orders");
    /// ```
    pub fn table_queue(&self, name: impl Into<String>) -> TableQueue {
        let outbox = self.outbox();
        let (clock, random) = (outbox.server.clone(), outbox.store.random.fork_source());
        TableQueue::new_with_clock(
            self.backend().clone(),
            name.into(),
            clock,
            random,
            outbox.guards,
        )
    }
}
