//! The end of a delivery, which is the same for a message of the outbox and for one of a queue: refused before its
//! handler is called, or settled by what the handler returned.

use std::future::Future;

use super::{
    failure::HandlerFailure, outcome::MessageOutcome, state::Worker, verify::SignedMessage,
};
use crate::{
    authentic::WorkRefusal,
    edm::Ticks,
    error::{Error, Result},
};

/// A message that this worker holds or has just read, and the ways in which its delivery can end. Each of them fails or
/// returns [`MessageOutcome::Raced`] if another worker has the message, and then changes nothing.
pub(super) trait Delivery: Send {
    /// Ends a message whose handler succeeded. If it has receipts, marks it as done and keeps it until no worker can
    /// still deliver it; otherwise deletes it.
    fn finish(&mut self) -> impl Future<Output = Result<MessageOutcome>> + Send;

    /// Hides a message whose handler failed for a temporary reason. The failure does not count.
    fn postpone(&mut self, error: Error) -> impl Future<Output = Result<MessageOutcome>> + Send;

    /// Leaves a message for later whose code could not be verified, because its keys were not available.
    fn wait_for_keys(
        &mut self,
        error: Error,
    ) -> impl Future<Output = Result<MessageOutcome>> + Send;

    /// Counts a failure, and hides the message for a time that grows with the failures. After too many failures, puts
    /// the message aside as poison.
    fn count_failure(
        &mut self,
        reason: &str,
    ) -> impl Future<Output = Result<MessageOutcome>> + Send;

    /// Makes a message available to other workers at once. The delivery does not count.
    fn give_back(&mut self) -> impl Future<Output = Result<MessageOutcome>> + Send;

    /// Puts aside a message that is not authentic.
    fn poison_unauthentic(&mut self) -> impl Future<Output = Result<MessageOutcome>> + Send;

    /// Puts aside a message that has expired according to its type.
    fn poison_expired(&mut self) -> impl Future<Output = Result<MessageOutcome>> + Send;
}

/// Ends a delivery by what the handler returned.
pub(super) async fn settle_delivery(
    delivery: &mut impl Delivery,
    handled: Result<(), HandlerFailure>,
) -> Result<MessageOutcome> {
    match handled {
        Ok(()) => delivery.finish().await,
        Err(HandlerFailure::Passing(error)) => delivery.postpone(error).await,
        Err(HandlerFailure::Counted(reason)) => delivery.count_failure(&reason).await,
        Err(HandlerFailure::Stopped) => delivery.give_back().await,
    }
}

impl Worker {
    /// Verifies the code of a message, and its age at the time `now`. `now` is `None` for a message whose work was begun
    /// in time. Returns the outcome if the message must not be handled, or `None` if it may.
    pub(super) async fn refuse_delivery(
        &self,
        signed: &SignedMessage<'_>,
        now: Option<Ticks>,
        delivery: &mut impl Delivery,
    ) -> Result<Option<MessageOutcome>> {
        let outcome = match self.verify_message(signed).await {
            Ok(()) if now.is_some_and(|now| self.is_expired(signed, now)) => {
                delivery.poison_expired().await
            }
            Ok(()) => return Ok(None),
            Err(WorkRefusal::NotAuthentic) => delivery.poison_unauthentic().await,
            Err(WorkRefusal::Passes(error)) => delivery.wait_for_keys(error).await,
            Err(WorkRefusal::Counts(error)) => delivery.count_failure(&error.to_string()).await,
        };
        outcome.map(Some)
    }
}
