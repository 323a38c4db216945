//! Outbox messages, and receipts, which keep a message's effect from happening twice.

use std::time::Duration;

use super::{
    fence::required_text,
    hash::hash128,
    reserved_keys::{FORMAT, FORMAT_NAME, MESSAGE, RECEIPT, TYPE_NAME},
};
use crate::{
    address::TableName,
    authentic::Work,
    batch::{Condition, Operation},
    edm::{Ticks, ValueRef},
    entity::{Message, message_body},
    error::{Error, ErrorKind, Result},
    limits::{STRING_UNITS, saturating_i32, saturating_i64, saturating_u32},
    row::{ETag, Row, RowBuilder},
};

/// A message that was read from the store.
#[derive(Debug, Clone)]
pub(crate) struct StoredMessage {
    pub(crate) row: Row,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: i32,
    pub(crate) body: String,
    /// How many times the message was leased.
    pub(crate) attempts: i32,
    /// How many times the message's handler failed.
    pub(crate) failures: i32,
    /// The time until which a worker holds the message.
    leased: Option<Ticks>,
    /// The time until which the message is hidden after a failure.
    delayed: Option<Ticks>,
    pub(crate) is_done: bool,
    /// The error for the poison table. It is set before the message is moved there.
    pub(crate) poison: Option<String>,
    /// The partitions that contain a receipt of the message, as table and PartitionKey.
    pub(crate) receipts: Vec<(String, String)>,
    pub(crate) codes: WorkAndConsentCodes,
    /// When the message was emitted, or `None` if its type does not expire.
    pub(crate) sent: Option<Ticks>,
}

/// Returns the row of a message, with an empty PartitionKey that the caller must replace.
///
/// # Errors
///
/// Fails with `is_invalid` if the message cannot be written as JSON and read back, and with `is_too_large` if the JSON
/// exceeds the size of a property.
pub(crate) fn message_row<M: Message>(id: &str, message: &M, now: Ticks) -> Result<Row> {
    let body = message_body(message)?;
    if crate::limits::utf16_units(&body) > STRING_UNITS {
        let text = format!(
            "the message `{}` has more than {STRING_UNITS} UTF-16 units as JSON; store large data elsewhere and put a \
             reference in the message",
            M::NAME
        );
        return Err(Error::new(ErrorKind::TooLarge, text));
    }
    let mut row = Row::build("", &[MESSAGE, id].concat());
    row.put(TYPE_NAME, ValueRef::String("entable.message"));
    row.put(FORMAT_NAME, ValueRef::Int32(FORMAT));
    row.put("Type", ValueRef::String(M::NAME));
    row.put("Version", ValueRef::Int32(saturating_i32(M::VERSION)));
    row.put("Body", ValueRef::String(&body));
    // Only if it expires, which leaves the stored form of other messages unchanged.
    if M::EXPIRES.is_some() {
        row.put("Sent", ValueRef::DateTime(now));
    }
    row.finish()
}

/// The authenticity codes of a message.
#[derive(Debug, Clone, Default)]
pub(crate) struct WorkAndConsentCodes {
    /// The code over the message, or over the move that the message starts. `None` if it is not signed.
    pub(crate) code: Option<Vec<u8>>,
    /// The consent of the target's scope to a move. `None` if both scopes are the same.
    pub(crate) consent: Option<Vec<u8>>,
}

/// The property with the code over a message, a move, or the arrival of a move.
pub(crate) const CODE: &str = "Mac";
/// The property with the consent of the target's scope to a move.
const CONSENT: &str = "MacTo";

/// The number of bytes that codes add to a message's row in the longest form of a request, including names and types.
pub(crate) const CODE_BYTES: usize = 160;

/// Returns the operation that inserts an outbox message into a partition. `codes` are the authenticity codes to
/// store with the message. They replace any codes in `message`.
pub(crate) fn insert_message(
    message: &Row,
    partition_key: &str,
    codes: &WorkAndConsentCodes,
) -> Result<Operation> {
    let mut row = Row::build(partition_key, message.row_key());
    let mut properties = message.properties();
    while let Some((name, value)) = properties.next()? {
        // A message that is put back already has codes.
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

/// A message, identified by its id and its partition or queue. Receipts contain a hash of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MessageIdentity {
    pub(crate) id: String,
    /// The hash of the id and the partition or queue.
    hash: String,
}

impl MessageIdentity {
    /// Creates the identity of an outbox message from its table, partition and id.
    pub(crate) fn in_partition(table: TableName<'_>, partition_key: &str, id: &str) -> Self {
        let hash = hash128(&[&table.form(), partition_key, id]);
        Self { id: id.to_owned(), hash }
    }

    /// Creates the identity of a message from its queue and id.
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

/// Returns the operation that inserts a message's receipt, in the transaction of the message's effect.
pub(crate) fn insert_receipt(partition_key: &str, message: &MessageIdentity) -> Result<Operation> {
    receipt_row(partition_key, message, |_| {})
}

/// Returns the operation that inserts the receipt of a move. This row proves in the entity's new partition that the
/// entity has arrived. It contains an authenticity code if one is given.
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

/// Returns the operation that inserts a tombstone, which is the receipt of a move that was given up. The entity can
/// then no longer be inserted at the target.
pub(crate) fn insert_tombstone(
    partition_key: &str,
    message: &MessageIdentity,
) -> Result<Operation> {
    receipt_row(partition_key, message, |row| row.put(GIVEN_UP, ValueRef::Boolean(true)))
}

/// Returns whether a receipt is a tombstone, which means that its move was given up.
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

/// Reads a count of a message's row, which is 0 if the row does not have it. A message whose counts cannot be read is
/// not handled as if it were new.
fn read_count(row: &Row, name: &str) -> Result<i32> {
    match row.get(name)? {
        None => Ok(0),
        Some(ValueRef::Int32(count)) if count >= 0 => Ok(count),
        Some(_) => {
            let message = "a number of a message is not an Int32 of at least 0";
            let error = Error::new(ErrorKind::Decode, message).in_property(name);
            Err(error.at_keys(row.partition_key(), row.row_key()))
        }
    }
}

impl StoredMessage {
    /// Reads a message.
    ///
    /// # Errors
    ///
    /// Fails with `is_decode` if the row lacks a property of a message, or if one of its counts is not an Int32 of at
    /// least 0.
    pub(crate) fn from_row(row: Row) -> Result<Self> {
        let number = |name: &str| read_count(&row, name);
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
        // A list that does not parse counts as empty, and its receipts are never deleted.
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
                code: code_in_property(&row, CODE)?,
                consent: code_in_property(&row, CONSENT)?,
            },
            sent: time("Sent")?,
            row,
        })
    }

    /// Returns the values of the message that its code covers.
    pub(crate) fn work_covered_by_code<'m>(&'m self, table: TableName<'m>) -> Work<'m> {
        self.work_covered_by_code_in_partition(table, self.row.partition_key())
    }

    /// Returns the values that the code of the message covers, for a message in this table and partition.
    pub(crate) fn work_covered_by_code_in_partition<'m>(
        &'m self,
        table: TableName<'m>,
        partition_key: &'m str,
    ) -> Work<'m> {
        Work::Message {
            table,
            partition_key,
            id: &self.id,
            name: &self.name,
            version: saturating_u32(self.version),
            body: &self.body,
            sent: self.sent,
        }
    }

    /// Returns the identity of the message, which is in `table`.
    pub(crate) fn message_identity(&self, table: TableName<'_>) -> MessageIdentity {
        MessageIdentity::in_partition(table, self.row.partition_key(), &self.id)
    }

    /// Returns the message with this list of partitions that contain its receipts.
    pub(crate) fn with_receipts(self, receipts: Vec<(String, String)>) -> Self {
        Self { receipts, ..self }
    }

    /// Returns whether a worker holds the message at the given time.
    pub(crate) fn is_leased(&self, now: Ticks) -> bool {
        self.leased.is_some_and(|until| now < until)
    }

    /// Returns how long the message is still hidden after a failure, if it is.
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

    /// Returns the operation that counts a failure, ends the lease, and hides the message until a time.
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

    /// Returns the operation that ends the lease and hides the message until a time, without counting a failure.
    pub(crate) fn postpone_operation(
        &self,
        etag: Option<ETag>,
        error: &str,
        until: Ticks,
    ) -> Result<Operation> {
        self.merge_operation(etag, |row| self.put_postponement(row, error, until))
    }

    /// Ends the lease, hides the message until a time, and stores the last error and the receipts so far.
    fn put_postponement(&self, row: &mut RowBuilder, error: &str, until: Ticks) {
        // A time in the past lets any worker take the message again.
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

    /// Returns the operation that ends the lease, so that any worker may take the message at once. It does not count
    /// as a failure of the message. `etag` is the ETag of the message's row under this lease: if the row has another
    /// ETag, the lease has already passed to another worker and the operation fails.
    pub(crate) fn release_lease_operation(&self, etag: Option<ETag>) -> Result<Operation> {
        self.merge_operation(etag, |row| row.put("Leased", ValueRef::DateTime(Ticks::UNIX_EPOCH)))
    }

    /// Returns the operation that marks the message as done and stores its receipts. A worker later deletes
    /// receipts and message, once no other worker can still handle the message.
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

/// Returns the code in a property, or `None` if the property is missing. Returns an empty code, which is never
/// valid, if the property is not a Binary.
pub(crate) fn code_in_property(row: &Row, property: &str) -> Result<Option<Vec<u8>>> {
    Ok(row.get(property)?.map(|value| match value {
        ValueRef::Binary(code) => code.to_vec(),
        // Not `None`: a code of another type must fail instead of passing for a message without a
        // code.
        _ => Vec::new(),
    }))
}

/// Returns the partitions with receipts as JSON.
pub(crate) fn receipts_json(receipts: &[(String, String)]) -> String {
    let texts = receipts.iter().map(|(table, key)| serde_json::Value::from(vec![&**table, key]));
    serde_json::Value::from_iter(texts).to_string()
}

/// Truncates an error text to the bytes that a row can hold.
pub(crate) fn truncate_error(error: &str) -> &str {
    let most = ERROR_BYTES.min(error.len());
    // Cut between two characters. 0 is always such a position.
    let end = (0..=most).rev().find(|end| error.is_char_boundary(*end));
    end.and_then(|end| error.get(..end)).unwrap_or(error)
}

/// The maximum number of bytes of an error text in a message.
const ERROR_BYTES: usize = 4_000;

/// Adds a duration to a time. The result is at most `Ticks::MAX`.
pub(crate) fn add_duration(now: Ticks, wait: Duration) -> Ticks {
    let wait = saturating_i64(wait.as_nanos() / 100);
    Ticks::new(now.get().saturating_add(wait)).unwrap_or(Ticks::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_is_none_is_not_taken_for_0() {
        let row = |count: Option<ValueRef<'_>>| {
            let mut row = Row::build("p", "r");
            count.into_iter().for_each(|count| row.put("Attempts", count));
            row.finish().unwrap()
        };
        assert_eq!(read_count(&row(None), "Attempts").unwrap(), 0);
        assert_eq!(read_count(&row(Some(ValueRef::Int32(7))), "Attempts").unwrap(), 7);
        for damaged in [ValueRef::Int32(-1), ValueRef::Int64(1), ValueRef::String("1")] {
            let error = read_count(&row(Some(damaged)), "Attempts").unwrap_err();
            assert_eq!((error.is_decode(), error.property()), (true, Some("Attempts")));
        }
    }
}
