//! Messages of the outbox, and receipts, which keep a message's effect from taking place twice.

use std::time::Duration;

use super::{
    fence::required_text,
    hash::hash128,
    reserved_keys::{FORMAT, FORMAT_NAME, MESSAGE, RECEIPT, TYPE_NAME},
};
use crate::{
    address::TableCase,
    authentic::Work,
    batch::{Condition, Operation},
    edm::{Ticks, ValueRef},
    entity::{Message, message_body},
    error::{Error, ErrorKind, Result},
    limits::STRING_UNITS,
    row::{ETag, Row, RowBuilder},
};

/// A message as it was read from the store.
#[derive(Debug, Clone)]
pub(crate) struct StoredMessage {
    pub(crate) row: Row,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: i32,
    pub(crate) body: String,
    /// How often the message was leased.
    pub(crate) attempts: i32,
    /// How often the message's handler failed.
    pub(crate) failures: i32,
    /// The time until which a worker holds the message.
    leased: Option<Ticks>,
    /// The time until which the message is hidden after a failure.
    delayed: Option<Ticks>,
    pub(crate) is_done: bool,
    /// The error for the poison table; set before the message is moved there.
    pub(crate) poison: Option<String>,
    /// The partitions that contain a receipt of the message, as table and PartitionKey.
    pub(crate) receipts: Vec<(String, String)>,
    pub(crate) codes: WorkAndConsentCodes,
    /// The time at which the message was emitted; `None` if its type does not expire.
    pub(crate) sent: Option<Ticks>,
}

/// Returns the row of a message, with an empty PartitionKey that the caller has to replace.
///
/// # Errors
///
/// `is_invalid` if the message cannot be written as JSON and read back; `is_too_large` if the JSON is longer than
/// a property can be.
pub(crate) fn message_row<M: Message>(id: &str, message: &M, now: Ticks) -> Result<Row> {
    let body = message_body(message)?;
    if crate::limits::utf16_units(&body) > STRING_UNITS {
        let text = format!(
            "the message `{}` has more than {STRING_UNITS} UTF-16 units as JSON: store what is large, and name it in the message",
            M::NAME
        );
        return Err(Error::new(ErrorKind::TooLarge, text));
    }
    let mut row = Row::build("", &[MESSAGE, id].concat());
    row.put(TYPE_NAME, ValueRef::String("entable.message"));
    row.put(FORMAT_NAME, ValueRef::Int32(FORMAT));
    row.put("Type", ValueRef::String(M::NAME));
    row.put("Version", ValueRef::Int32(i32::try_from(M::VERSION).unwrap_or(i32::MAX)));
    row.put("Body", ValueRef::String(&body));
    // Only where it expires, so that other messages keep their stored form.
    if M::EXPIRES.is_some() {
        row.put("Sent", ValueRef::DateTime(now));
    }
    row.finish()
}

/// The codes that a message carries.
#[derive(Debug, Clone, Default)]
pub(crate) struct WorkAndConsentCodes {
    /// The code over the message, or over the move that the message starts; `None` if it is not
    /// signed.
    pub(crate) code: Option<Vec<u8>>,
    /// The consent of the target's scope to a move; `None` if both scopes are one.
    pub(crate) consent: Option<Vec<u8>>,
}

/// The property with the code over a message, a move, or the arrival of a move.
pub(crate) const CODE: &str = "Mac";
/// The property with the consent of the target's scope to a move.
const CONSENT: &str = "MacTo";

/// Number of bytes that codes add to a message's row in the longest form of a request, names and
/// types included.
pub(crate) const CODE_BYTES: usize = 160;

/// Returns the operation that inserts an outbox message into a partition. `codes` are the
/// authenticity codes to store with the message; they replace those that `message` holds already.
pub(crate) fn insert_message(
    message: &Row,
    partition_key: &str,
    codes: &WorkAndConsentCodes,
) -> Result<Operation> {
    let mut row = Row::build(partition_key, message.row_key());
    let mut properties = message.properties();
    while let Some((name, value)) = properties.next()? {
        // A message that is put back has codes of its own.
        let is_replaced =
            codes.code.is_some() && [CODE, CONSENT].map(str::as_bytes).contains(&name);
        if !is_replaced {
            row.put(&String::from_utf8_lossy(name), value);
        }
    }
    for (name, code) in [(CODE, &codes.code), (CONSENT, &codes.consent)] {
        if let Some(code) = code {
            row.put(name, ValueRef::Binary(code));
        }
    }
    row.finish().map(Operation::insert)
}

/// A message, identified by its id and by its partition or queue. Receipts hold a hash of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MessageIdentity {
    pub(crate) id: String,
    /// The hash of the partition or queue and the id.
    hash: String,
}

impl MessageIdentity {
    /// Identifies a message of the outbox by its table, partition and id.
    pub(crate) fn in_partition(
        table: &str,
        partition_key: &str,
        id: &str,
        case: TableCase,
    ) -> Self {
        let hash = hash128(&[&case.canonical_table_name(table), partition_key, id]);
        Self { id: id.to_owned(), hash }
    }

    /// Identifies a message by its queue and id.
    pub(crate) fn in_queue(queue: &str, id: &str) -> Self {
        Self { id: id.to_owned(), hash: hash128(&[queue, id]) }
    }

    /// Returns whether a receipt belongs to this message.
    pub(crate) fn owns_receipt(&self, receipt: &Row) -> Result<bool> {
        Ok(receipt.get(MESSAGE_HASH)? == Some(ValueRef::String(&self.hash)))
    }
}

/// The property of a receipt with the hash that identifies its message.
const MESSAGE_HASH: &str = "Of";

/// Returns the operation that inserts a message's receipt, in the transaction of the message's
/// effect.
pub(crate) fn insert_receipt(partition_key: &str, message: &MessageIdentity) -> Result<Operation> {
    receipt_row(partition_key, message, |_| {})
}

/// Returns the operation that inserts the receipt of a move: the row that proves, beside the entity
/// in its new partition, that the entity has arrived. It carries an authentication code if one
/// is given.
pub(crate) fn insert_arrival(
    partition_key: &str,
    message: &MessageIdentity,
    code: Option<&[u8]>,
) -> Result<Operation> {
    receipt_row(partition_key, message, |row| {
        if let Some(code) = code {
            row.put(CODE, ValueRef::Binary(code));
        }
    })
}

/// Returns the operation that inserts a tombstone: the receipt of a move that was given up, after
/// which the entity cannot be inserted at the target.
pub(crate) fn insert_tombstone(
    partition_key: &str,
    message: &MessageIdentity,
) -> Result<Operation> {
    receipt_row(partition_key, message, |row| row.put(GIVEN_UP, ValueRef::Boolean(true)))
}

/// Returns whether a receipt is a tombstone: its move was given up.
pub(crate) fn is_tombstone(receipt: &Row) -> Result<bool> {
    Ok(receipt.get(GIVEN_UP)? == Some(ValueRef::Boolean(true)))
}

/// The property that makes a receipt a tombstone.
const GIVEN_UP: &str = "GivenUp";

fn receipt_row(
    partition_key: &str,
    message: &MessageIdentity,
    put: impl FnOnce(&mut RowBuilder),
) -> Result<Operation> {
    let mut row = Row::build(partition_key, &receipt_row_key(&message.id));
    row.put(TYPE_NAME, ValueRef::String("entable.receipt"));
    row.put(FORMAT_NAME, ValueRef::Int32(FORMAT));
    row.put(MESSAGE_HASH, ValueRef::String(&message.hash));
    put(&mut row);
    row.finish().map(Operation::insert)
}

/// Returns the RowKey of the receipt of message `id`.
pub(crate) fn receipt_row_key(id: &str) -> String {
    [RECEIPT, id].concat()
}

impl StoredMessage {
    /// Reads a message.
    ///
    /// # Errors
    ///
    /// `is_decode` if the row lacks a property that a message must have.
    pub(crate) fn from_row(row: Row) -> Result<Self> {
        let number = |name: &str| {
            Ok(match row.get(name)? {
                Some(ValueRef::Int32(number)) => number,
                _ => 0,
            })
        };
        let time = |name: &str| {
            Ok(match row.get(name)? {
                Some(ValueRef::DateTime(time)) => Some(time),
                _ => None,
            })
        };
        let poison = match row.get("Poison")? {
            Some(ValueRef::String(error)) => Some(error.to_owned()),
            _ => None,
        };
        // A list that does not parse counts as empty: receipts that nobody names stay where they
        // are.
        let receipts = match row.get("Receipts")? {
            Some(ValueRef::String(text)) => serde_json::from_str(text).unwrap_or_default(),
            _ => Vec::new(),
        };
        Ok(Self {
            id: row.row_key().strip_prefix(MESSAGE).unwrap_or_default().to_owned(),
            name: required_text(&row, "Type")?.to_owned(),
            body: required_text(&row, "Body")?.to_owned(),
            version: number("Version")?,
            attempts: number("Attempts")?,
            failures: number("Failures")?,
            leased: time("Leased")?,
            delayed: time("Delayed")?,
            is_done: row.get("Done")? == Some(ValueRef::Boolean(true)),
            poison,
            receipts,
            codes: WorkAndConsentCodes {
                code: code_of(&row, CODE)?,
                consent: code_of(&row, CONSENT)?,
            },
            sent: time("Sent")?,
            row,
        })
    }

    /// Returns the values of the message over which its code is made and verified.
    pub(crate) fn as_work<'m>(&'m self, table: &'m str) -> Work<'m> {
        self.as_work_in_partition(table, self.row.partition_key())
    }

    /// Returns the values over which the code of the message is made and verified, for a message in
    /// that table and partition.
    pub(crate) fn as_work_in_partition<'m>(
        &'m self,
        table: &'m str,
        partition_key: &'m str,
    ) -> Work<'m> {
        Work::Message {
            table,
            partition_key,
            id: &self.id,
            name: &self.name,
            version: u32::try_from(self.version).unwrap_or(u32::MAX),
            body: &self.body,
            sent: self.sent,
        }
    }

    /// Returns the identity of the message, which was found in `table`.
    pub(crate) fn message_identity(&self, table: &str, case: TableCase) -> MessageIdentity {
        MessageIdentity::in_partition(table, self.row.partition_key(), &self.id, case)
    }

    /// Returns the message with this list of partitions that contain a receipt of it.
    pub(crate) fn with_receipts(self, receipts: Vec<(String, String)>) -> Self {
        Self { receipts, ..self }
    }

    /// Returns whether a worker holds the message at that time.
    pub(crate) fn is_leased(&self, now: Ticks) -> bool {
        self.leased.is_some_and(|until| now < until)
    }

    /// Returns how long the message is still hidden after a failure; `None` if it is not.
    pub(crate) fn delay_left(&self, now: Ticks) -> Option<Duration> {
        let ticks = self.delayed?.get().checked_sub(now.get()).filter(|left| *left > 0)?;
        // A tick is 100 ns.
        Some(Duration::from_nanos(u64::try_from(ticks).ok()?.saturating_mul(100)))
    }

    /// Returns the operation that merges properties into the message under an ETag.
    fn merge_operation(
        &self,
        etag: Option<ETag>,
        put: impl FnOnce(&mut RowBuilder),
    ) -> Result<Operation> {
        let mut row = Row::build(self.row.partition_key(), self.row.row_key());
        put(&mut row);
        Ok(Operation::merge(row.finish()?, Condition::for_etag(etag)))
    }

    /// Returns the operation that leases the message until a time and counts the attempt.
    pub(crate) fn lease_operation(&self, until: Ticks) -> Result<Operation> {
        self.merge_operation(self.row.etag(), |row| {
            row.put("Attempts", ValueRef::Int32(self.attempts.saturating_add(1)));
            row.put("Leased", ValueRef::DateTime(until));
        })
    }

    /// Returns the operation that extends the message's lease until a time.
    pub(crate) fn renew_lease_operation(
        &self,
        etag: Option<ETag>,
        until: Ticks,
    ) -> Result<Operation> {
        self.merge_operation(etag, |row| row.put("Leased", ValueRef::DateTime(until)))
    }

    /// Returns the operation that counts a failure, ends the lease and hides the message until a
    /// time.
    pub(crate) fn failure_operation(
        &self,
        etag: Option<ETag>,
        error: &str,
        until: Ticks,
    ) -> Result<Operation> {
        self.merge_operation(etag, |row| {
            row.put("Failures", ValueRef::Int32(self.failures.saturating_add(1)));
            self.put_postponement(row, error, until);
        })
    }

    /// Returns the operation that ends the lease and hides the message until a time, without
    /// counting a failure.
    pub(crate) fn postpone_operation(
        &self,
        etag: Option<ETag>,
        error: &str,
        until: Ticks,
    ) -> Result<Operation> {
        self.merge_operation(etag, |row| self.put_postponement(row, error, until))
    }

    /// Puts the end of the lease, the time until which the message is hidden, and the last error.
    fn put_postponement(&self, row: &mut RowBuilder, error: &str, until: Ticks) {
        // A time in the past: any worker may take the message again.
        row.put("Leased", ValueRef::DateTime(Ticks::UNIX_EPOCH));
        row.put("Delayed", ValueRef::DateTime(until));
        row.put("Error", ValueRef::String(truncate_error(error)));
        if !self.receipts.is_empty() {
            row.put("Receipts", ValueRef::String(&receipts_json(&self.receipts)));
        }
    }

    /// Returns the operation that marks the message for the poison table, with the reason.
    pub(crate) fn mark_poisoned(&self, etag: Option<ETag>, error: &str) -> Result<Operation> {
        self.merge_operation(etag, |row| row.put("Poison", ValueRef::String(truncate_error(error))))
    }

    /// Returns the operation that ends the lease without a failure.
    pub(crate) fn release_operation(&self, etag: Option<ETag>) -> Result<Operation> {
        self.merge_operation(etag, |row| row.put("Leased", ValueRef::DateTime(Ticks::UNIX_EPOCH)))
    }

    /// Returns the operation that marks the message as done, and names its receipts. A worker
    /// deletes receipts and message later, once no other worker can still handle the message.
    pub(crate) fn mark_done(
        &self,
        etag: Option<ETag>,
        receipts: &[(String, String)],
    ) -> Result<Operation> {
        self.merge_operation(etag, |row| {
            row.put("Done", ValueRef::Boolean(true));
            row.put("Receipts", ValueRef::String(&receipts_json(receipts)));
        })
    }

    /// Returns the operation that deletes the message.
    pub(crate) fn delete_operation(&self, etag: Option<ETag>) -> Result<Operation> {
        let seen = Condition::for_etag(etag);
        Operation::delete(self.row.partition_key(), self.row.row_key(), seen)
    }
}

/// Returns the code in a property; `None` if the property is missing; an empty code, which is never
/// right, if it is no Binary.
pub(crate) fn code_of(row: &Row, property: &str) -> Result<Option<Vec<u8>>> {
    Ok(row.get(property)?.map(|value| match value {
        ValueRef::Binary(code) => code.to_vec(),
        // Not `None`: a code of another type has to fail, and not to pass for a message without
        // one.
        _ => Vec::new(),
    }))
}

/// Returns the partitions with receipts as JSON.
pub(crate) fn receipts_json(receipts: &[(String, String)]) -> String {
    let texts = receipts.iter().map(|(table, key)| serde_json::Value::from(vec![&**table, key]));
    serde_json::Value::from_iter(texts).to_string()
}

/// Cuts an error text to the bytes that a row has room for.
pub(crate) fn truncate_error(error: &str) -> &str {
    let most = ERROR_BYTES.min(error.len());
    // The text is cut between two characters; 0 is always such a place.
    let end = (0..=most).rev().find(|end| error.is_char_boundary(*end));
    end.and_then(|end| error.get(..end)).unwrap_or(error)
}

/// Most bytes of an error text that a message stores.
const ERROR_BYTES: usize = 4_000;

/// Adds a duration to a time. The result is at most `Ticks::MAX`.
pub(crate) fn add_duration(now: Ticks, wait: Duration) -> Ticks {
    let wait = i64::try_from(wait.as_nanos() / 100).unwrap_or(i64::MAX);
    Ticks::new(now.get().saturating_add(wait)).unwrap_or(Ticks::MAX)
}
