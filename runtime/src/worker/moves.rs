//! Continues moves of entities: verifies a move's message, leases it, and takes the remaining steps.

use std::pin::pin;

use futures_util::future::{Either, select};

use super::{
    delivery::Delivery,
    handler::RenewableLease,
    lease::{OutboxLease, StoreTime},
    message_state::MessageState,
    outcome::{FailureReaction, MessageOutcome},
    state::Worker,
};
use crate::{
    authentic::{WorkRefusal, is_key_gone},
    entity::{Message, Schema},
    error::{Error, ErrorKind, Result, RetryChance},
    guard::Guard,
    limits::saturating_i32,
    outbox::moves::{MoveJob, MoveOutcome, MoveSource},
    plan::{moves::MoveMessage, outbox::StoredMessage},
};

impl Worker {
    /// Verifies a move, leases its message, and takes the remaining steps.
    pub(super) async fn handle_move(
        &self,
        mut read: MessageState<'_>,
        time: StoreTime,
    ) -> Result<MessageOutcome> {
        let (table, message) = (read.table, read.message);
        let (move_message, Some(schema)) = self.parse_move(message)? else {
            // The type is not known here after all. Nothing was done.
            return Ok(MessageOutcome::Raced);
        };
        let job = self.job_of_move(table, message, &move_message, schema);
        let found = match job.read_source(Guard::VerifiedFirst).await {
            // Do nothing with the move or the entity, both of which somebody else may have chosen.
            Ok(MoveSource::Fault(WorkRefusal::NotAuthentic)) => {
                return read.poison_unauthentic().await;
            }
            Ok(MoveSource::Fault(WorkRefusal::Passes(error))) => return Err(error),
            Ok(
                MoveSource::TargetKeyMissing(_, error)
                | MoveSource::Fault(WorkRefusal::Counts(error)),
            ) => {
                return read.count_failure(&error.to_string()).await;
            }
            Ok(found) => found,
            Err(error) => match FailureReaction::reaction_for_message(error) {
                FailureReaction::Count(error) => {
                    return read.count_failure(&error.to_string()).await;
                }
                FailureReaction::TryLater(error) => return Err(error),
                // Another actor changed the source, or its type is not known here. Leave it unchanged.
                FailureReaction::BeginAgain | FailureReaction::LeaveToOthers => {
                    return Ok(MessageOutcome::Unknown);
                }
            },
        };
        let Some(lease) = OutboxLease::take_lease(self, table, message, time).await? else {
            return Ok(MessageOutcome::Raced);
        };
        let until = lease.deadline().end_instant();
        let mut leased = MessageState { etag: lease.etag, ..read };
        let moving = tokio::time::timeout_at(until, job.finish_move(Some(found)));
        let moved = match select(pin!(moving), pin!(self.stopping.wait_for_end())).await {
            Either::Left((moved, _)) => moved,
            // Each step of a move may be dropped safely.
            Either::Right(_) => return leased.give_back().await,
        };
        // The lease has ended, and another worker may have the message.
        let Ok(moved) = moved else { return Ok(MessageOutcome::Raced) };
        match moved {
            Ok(MoveOutcome::Moved) => {
                // Keep its receipt at the target as long as the message. It prevents a slow carrier from
                // inserting the entity again.
                let receipts = [(move_message.to_table.clone(), move_message.to_partition.clone())];
                leased.finish_with_receipts(&receipts).await
            }
            Ok(MoveOutcome::Refused(error)) => leased.poison(&error).await,
            Ok(MoveOutcome::NotAuthentic) => leased.poison_unauthentic().await,
            Ok(MoveOutcome::Counted(error)) => leased.count_failure(&error.to_string()).await,
            Err(error) => match FailureReaction::reaction_for_message(error) {
                FailureReaction::Count(error) => leased.count_failure(&error.to_string()).await,
                reaction => {
                    // Give it back immediately, so the next round need not wait for the lease.
                    leased.release_lease().await?;
                    match reaction {
                        FailureReaction::TryLater(error) => Err(error),
                        _ => Ok(MessageOutcome::Unknown),
                    }
                }
            },
        }
    }

    /// Gives up a move that failed permanently. The entity can then be written again at its source. Returns the
    /// table and PartitionKey of the target, where a tombstone may be. Returns `None` if the message is not a move
    /// of a known type.
    pub(super) async fn give_up_move(
        &self,
        table: &str,
        message: &StoredMessage,
    ) -> Result<Option<(String, String)>> {
        if !self.knows_entity_of_move(message) {
            return Ok(None);
        }
        let (move_message, Some(schema)) = self.parse_move(message)? else { return Ok(None) };
        let given_up = self.job_of_move(table, message, &move_message, schema).give_up_move().await;
        match given_up {
            // The failure is temporary, such as throttling. The next round gives the move up before the message is
            // put aside.
            Err(error) if error.retry_chance() != RetryChance::Never && !is_key_gone(&error) => {
                return Err(error);
            }
            // An entity that cannot be unlocked must not keep its message out of the poison table.
            _ => {}
        }
        Ok(Some((move_message.to_table, move_message.to_partition)))
    }

    /// Verifies the codes of a move in the poison table, which cover the secret values of its entity. Returns `None`
    /// if this program does not know the type, or the entity is not locked by this move.
    pub(super) async fn verify_poisoned_move(
        &self,
        table: &str,
        message: &StoredMessage,
    ) -> Result<Option<Result<(), WorkRefusal>>> {
        let (move_message, Some(schema)) = self.parse_move(message)? else { return Ok(None) };
        let job = self.job_of_move(table, message, &move_message, schema);
        Ok(match job.read_source(Guard::VerifiedFirst).await? {
            MoveSource::Found(..) => Some(Ok(())),
            MoveSource::TargetKeyMissing(_, error) => Some(Err(WorkRefusal::Counts(error))),
            MoveSource::Fault(fault) => Some(Err(fault)),
            MoveSource::Gone => None,
        })
    }

    /// Returns whether the message is a move of an entity whose type this program knows and can decrypt.
    pub(super) fn knows_entity_of_move(&self, message: &StoredMessage) -> bool {
        let known = saturating_i32(MoveMessage::VERSION);
        let is_move = message.name == MoveMessage::NAME && message.version <= known;
        // Entities with encrypted values are moved by workers with keys.
        let can_open = |schema: &Schema| !schema.is_sealed() || self.outbox().codes.has_keys();
        is_move && self.parse_move(message).is_ok_and(|(_, schema)| schema.is_some_and(can_open))
    }

    /// Parses a message as a move. Returns `None` for the type if this program does not know it.
    pub(super) fn parse_move(
        &self,
        message: &StoredMessage,
    ) -> Result<(MoveMessage, Option<&'static Schema>)> {
        let move_message: MoveMessage = serde_json::from_str(&message.body).map_err(|cause| {
            Error::new(ErrorKind::Decode, "the message is not a move").with_source(cause)
        })?;
        let schema = self.outbox().known_types.newest_version(&move_message.entity_type);
        Ok((move_message, schema))
    }

    /// Combines a move's message with what its steps need from this worker. Sends nothing.
    pub(super) fn job_of_move<'a>(
        &'a self,
        table: &'a str,
        message: &'a StoredMessage,
        move_message: &'a MoveMessage,
        schema: &'static Schema,
    ) -> MoveJob<'a> {
        let (outbox, partition_key) = (self.outbox(), message.row.partition_key());
        let (id, codes) = (&message.id, &message.codes);
        MoveJob { outbox, table, partition_key, id, schema, message: move_message, codes }
    }
}
