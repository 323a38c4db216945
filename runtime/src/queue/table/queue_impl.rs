//! Implements the trait `Queue` for a queue in a table, by calls of the functions in the other
//! files.

use std::time::Duration;

use super::table_queue::{MAX_RECEIVED, TableQueue};
use crate::{
    backend::BoxFuture,
    error::Result,
    queue::{Poison, Queue, QueueCapabilities, Received},
};

#[deny(clippy::missing_trait_methods)]
impl Queue for TableQueue {
    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> QueueCapabilities {
        QueueCapabilities::new("table", MAX_RECEIVED).with_reasons()
    }

    fn send<'a>(&'a self, body: &'a str, delay: Duration) -> BoxFuture<'a, Result<String>> {
        Box::pin(self.send_message(body, delay))
    }

    fn receive(&self, most: usize, visibility: Duration) -> BoxFuture<'_, Result<Vec<Received>>> {
        Box::pin(self.receive_messages(most.min(MAX_RECEIVED), visibility))
    }

    fn extend<'a>(
        &'a self,
        message: &'a mut Received,
        visibility: Duration,
        body: Option<&'a str>,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.extend_message(message, visibility, body))
    }

    fn delete<'a>(&'a self, message: &'a Received) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.delete_message(message))
    }

    fn poison<'a>(&'a self, message: &'a Received, reason: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.move_to_poison(message, reason))
    }

    fn poisoned(&self, most: usize) -> BoxFuture<'_, Result<Vec<Poison>>> {
        Box::pin(self.poison_messages(most))
    }

    fn requeue<'a>(&'a self, poison: &'a Poison) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.requeue_poison(poison))
    }
}
