//! Defines the kinds of work that carry an authentication code (a MAC by a key of the keyring), and the bytes over
//! which each code is computed. The kinds are messages of the outbox, messages of queues, and three steps of a move.

use crate::work_code::WorkInput;
use entable_core::{
    __runtime::{
        address::{RowAt, TableName},
        limits::{saturating_i64, saturating_u32},
    },
    edm::{Ticks, Value},
};
use sha2::{Digest, Sha256};

/// One piece of work that an authentication code covers: what a row or a queued message makes a worker do.
#[allow(missing_debug_implementations, reason = "a move has secret values")]
pub enum Work<'w> {
    /// A message of the outbox.
    Message {
        /// The table whose outbox holds the message.
        table: TableName<'w>,
        /// The partition whose outbox holds the message.
        partition_key: &'w str,
        /// The id of the message.
        id: &'w str,
        /// The name of the message's type.
        name: &'w str,
        /// The version of the message's type.
        version: u32,
        /// The message as JSON.
        body: &'w str,
        /// When the message was emitted, or `None` if its type does not expire.
        sent: Option<Ticks>,
    },
    /// A message of a queue.
    Queued {
        /// The name of the queue.
        queue: &'w str,
        /// The id of the message.
        id: &'w str,
        /// The name of the message's type.
        name: &'w str,
        /// The version of the message's type.
        version: u32,
        /// The SHA-256 of the body.
        digest: [u8; 32],
        /// When the message was sent, or `None` if its type does not expire.
        sent: Option<Ticks>,
    },
    /// A move of an entity whose secret values are `held`. The keys of the source's scope sign it.
    Move {
        /// The move.
        place: MoveIdentity<'w>,
        /// The secret values of the entity.
        held: &'w SecretValues,
    },
    /// The consent of the target's scope to a move with this code.
    Consent {
        /// The move.
        place: MoveIdentity<'w>,
        /// The code of the move, by a key of the source's scope.
        code: &'w [u8],
    },
    /// The arrival of a moved entity, signed by the target's scope.
    Arrival {
        /// The move.
        place: MoveIdentity<'w>,
    },
}

/// The identity of a move: its id, the type of the entity, and the source and target row.
#[derive(Debug, Clone, Copy)]
pub struct MoveIdentity<'w> {
    /// The id of the move.
    pub id: &'w str,
    /// The name of the entity's type.
    pub entity_type: &'w str,
    /// The source row.
    pub from: RowAt<'w>,
    /// The target row.
    pub to: RowAt<'w>,
}

/// The values of an entity that only programs with the keys can know or make, by property name in byte order. `None` is
/// a hidden null.
pub type SecretValues = std::collections::BTreeMap<String, Option<Value>>;

/// Flag in the kind of a message that expires.
const EXPIRES_FLAG: u8 = 0x80;

impl Work<'_> {
    /// Returns the bytes that the code over the work covers. They contain the canonical form of each table's name: a
    /// worker takes the name from a directory marker, which may spell it differently than the name that was signed.
    pub(crate) fn signed_input(&self) -> WorkInput {
        match self {
            Self::Message { table, partition_key, id, name, version, body, sent } => {
                let mut input = message_input(1, *sent);
                input.push_text(&table.form());
                input.push_text(partition_key);
                let digest = Sha256::digest(body.as_bytes());
                finish_message(input, [id, name], *version, &digest, *sent)
            }
            Self::Queued { queue, id, name, version, digest, sent } => {
                let mut input = message_input(2, *sent);
                input.push_text(queue);
                finish_message(input, [id, name], *version, digest, *sent)
            }
            Self::Move { place, held } => {
                let mut input = place.signed_input(3);
                // The code covers the number of values, so none can be left out.
                input.push_number(saturating_u32(held.len()));
                for (name, value) in *held {
                    input.push_text(name);
                    input.push_value(value.as_ref().map(Value::as_ref));
                }
                input
            }
            Self::Consent { place, code } => {
                let mut input = place.signed_input(4);
                input.push_bytes_without_length(code);
                input
            }
            Self::Arrival { place } => place.signed_input(5),
        }
    }
}

impl MoveIdentity<'_> {
    fn signed_input(&self, kind: u8) -> WorkInput {
        let mut input = WorkInput::new(kind);
        input.push_text(self.id);
        input.push_text(self.entity_type);
        for row in [self.from, self.to] {
            input.push_text(&row.table.form());
            input.push_text(row.partition_key);
            input.push_text(row.row_key);
        }
        input
    }
}

fn message_input(kind: u8, sent: Option<Ticks>) -> WorkInput {
    // The flag is part of the kind: nobody can remove the time and keep the code valid.
    WorkInput::new(if sent.is_some() { kind | EXPIRES_FLAG } else { kind })
}

fn finish_message(
    mut input: WorkInput,
    [id, name]: [&str; 2],
    version: u32,
    digest: &[u8],
    sent: Option<Ticks>,
) -> WorkInput {
    input.push_text(id);
    input.push_text(name);
    input.push_number(version);
    // A hash in place of the body: a queue keeps the hash after it has dropped the body.
    input.push_bytes_without_length(digest);
    if let Some(sent) = sent {
        input.push_time(sent.get() - Ticks::UNIX_EPOCH.get());
    }
    input
}

/// Returns whether a message that was sent at `sent` is older than `expires`, its type's limit.
/// Returns `false` if `sent`, `expires` or `now` is `None`.
pub fn is_message_expired(
    sent: Option<Ticks>,
    expires: Option<std::time::Duration>,
    now: Option<Ticks>,
) -> bool {
    let (Some(sent), Some(expires), Some(now)) = (sent, expires, now) else { return false };
    let most = saturating_i64(expires.as_nanos() / 100);
    now.get().saturating_sub(sent.get()) > most
}
