//! Verifies the codes of messages before their handlers are called, and of messages and moves in the poison
//! table. Checks whether a message has expired. Signs work in the poison table for an operator who vouches for
//! it.

use std::borrow::Cow;

use super::state::Worker;
use crate::{
    address::TableName,
    authentic::{MessageAuthenticity, Work, WorkAuthenticity, WorkRefusal, is_message_expired},
    edm::Ticks,
    entity::Message,
    error::{Error, ErrorKind, Result},
    plan::{
        moves::MoveMessage,
        outbox::{StoredMessage, WorkAndConsentCodes},
    },
    queue::Envelope,
    row::Row,
};

/// A message and its code, for verification.
pub(super) struct SignedMessage<'m> {
    /// The partition whose scope has the keys, or `None` for the default scope.
    partition_key: Option<&'m str>,
    name: &'m str,
    sent: Option<Ticks>,
    work: Work<'m>,
    code: Option<Cow<'m, [u8]>>,
}

impl<'m> SignedMessage<'m> {
    /// Creates it from a message in the outbox of `table`.
    pub(super) fn for_outbox(table: TableName<'m>, message: &'m StoredMessage) -> Self {
        Self {
            partition_key: Some(message.row.partition_key()),
            name: &message.name,
            sent: message.sent,
            work: message.work_covered_by_code(table),
            code: message.codes.code.as_deref().map(Cow::Borrowed),
        }
    }

    /// Creates it from a message of a queue. `id` is the id that the code covers.
    pub(super) fn for_queue(queue: &'m str, id: &'m str, envelope: &'m Envelope) -> Self {
        Self {
            partition_key: None,
            name: &envelope.name,
            sent: envelope.sent_time(),
            work: envelope.work_covered_by_code(queue, id),
            code: envelope.authenticity_code().map(Cow::Owned),
        }
    }
}

impl Worker {
    /// Returns whether this client can verify messages with this name. Messages declared `authenticated` need keys.
    pub(super) fn can_verify_message(&self, name: &str) -> bool {
        self.handlers.authenticity(name) != MessageAuthenticity::Required
            || self.outbox().codes.has_keys()
    }

    /// Verifies the code of a message. If a message needs a code and its type expires, it is authentic only if it
    /// contains the time when it was sent.
    pub(super) async fn verify_message(
        &self,
        message: &SignedMessage<'_>,
    ) -> Result<(), WorkRefusal> {
        let SignedMessage { partition_key, name, sent, ref work, ref code } = *message;
        let codes = &self.outbox().codes;
        let is_required = codes.requires_code_for_message(self.handlers.authenticity(name));
        codes.verify_work(partition_key, work, code.as_deref(), is_required).await?;
        let expires = self.handlers.message_lifetime(name).is_some();
        if is_required && expires && sent.is_none() {
            Err(WorkRefusal::NotAuthentic)
        } else {
            Ok(())
        }
    }

    /// Returns whether a message was sent longer ago than its type allows.
    pub(super) fn is_expired(&self, message: &SignedMessage<'_>, now: Ticks) -> bool {
        is_message_expired(message.sent, self.handlers.message_lifetime(message.name), Some(now))
    }

    /// Verifies the code of a message or a move in the poison table. Returns `Unverified` if that is impossible, with
    /// the error if there was one, such as a failed request.
    pub(super) async fn verify_poisoned_work(
        &self,
        table: &str,
        row: &Row,
    ) -> (WorkAuthenticity, Option<Error>) {
        let codes = &self.outbox().codes;
        let Ok(message) = StoredMessage::from_row(row.clone()) else {
            return (WorkAuthenticity::Unverified, None);
        };
        let is_move = message.name == MoveMessage::NAME;
        let is_required = if is_move {
            codes.requires_code_by_default()
        } else {
            codes.requires_code_for_message(self.handlers.authenticity(&message.name))
        };
        // Without a code, only the type's declaration shows whether one is missing.
        if message.codes.code.is_none() {
            let is_declared = is_move || self.handlers.can_handle_message(&message);
            let found = match (is_required, is_declared) {
                (true, false) => WorkAuthenticity::Unverified,
                (true, true) => WorkAuthenticity::NotAuthentic,
                (false, _) => WorkAuthenticity::Unsigned,
            };
            return (found, None);
        }
        if !codes.has_keys() {
            return (WorkAuthenticity::Unverified, None);
        }
        let verified = if is_move {
            match self.verify_poisoned_move(table, &message).await {
                Ok(Some(verified)) => verified,
                Ok(None) => return (WorkAuthenticity::Unverified, None),
                Err(error) => return (WorkAuthenticity::Unverified, Some(error)),
            }
        } else {
            self.verify_message(&SignedMessage::for_outbox(
                self.store().names().name(table),
                &message,
            ))
            .await
        };
        match verified {
            Ok(()) => (WorkAuthenticity::Authentic, None),
            Err(WorkRefusal::NotAuthentic) => (WorkAuthenticity::NotAuthentic, None),
            Err(WorkRefusal::Counts(error) | WorkRefusal::Passes(error)) => {
                (WorkAuthenticity::Unverified, Some(error))
            }
        }
    }

    /// Signs a message or a move with this client's keys, for an operator who vouches for it. Does not verify it.
    pub(super) async fn sign_for_operator(
        &self,
        table: &str,
        row: &Row,
    ) -> Result<WorkAndConsentCodes> {
        let message = StoredMessage::from_row(row.clone())?;
        let name = self.store().names().name(table);
        if message.name != MoveMessage::NAME {
            let (codes, partition_key) = (&self.outbox().codes, Some(row.partition_key()));
            let code =
                codes.sign_work(partition_key, &message.work_covered_by_code(name), true).await?;
            return Ok(WorkAndConsentCodes { code, consent: None });
        }
        let (move_message, Some(schema)) = self.parse_move(&message)? else {
            let message = "this program does not know the type of the entity that moves";
            return Err(Error::new(ErrorKind::UnrecognizedEntity, message).in_table(table));
        };
        self.job_of_move(table, &message, &move_message, schema).sign_move().await
    }
}
