//! Messages and receipts.

use std::time::Duration;

use super::{
    fence::text,
    reserved_keys::{FORMAT, FORMAT_NAME, MESSAGE, RECEIPT, TYPE_NAME},
};
use crate::{
    batch::{Condition, Operation},
    edm::{Ticks, ValueRef},
    entity::Message,
    error::{Error, ErrorKind, Result},
    limits::STRING_UNITS,
    row::{ETag, Row},
};

/// A message as it was read.
#[derive(Debug, Clone)]
pub(crate) struct OpenMessage {
    pub(crate) row: Row,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: i32,
    pub(crate) body: String,
    /// How often it was taken.
    pub(crate) attempts: i32,
    /// How often its handler failed.
    pub(crate) failures: i32,
    /// Until when somebody has it.
    leased: Option<Ticks>,
    /// Until when it waits after a failure.
    delayed: Option<Ticks>,
    pub(crate) is_done: bool,
    /// With which error it is on its way to the poison table.
    pub(crate) poison: Option<String>,
    /// Where there are receipts for it: table and PartitionKey.
    pub(crate) receipts: Vec<(String, String)>,
}

/// The row of a message, for whichever partition.
pub(crate) fn emitted<M: Message>(id: &str, message: &M) -> Result<Row> {
    let body = serde_json::to_string(message).map_err(|cause| {
        let text = format!("the message `{}` cannot be written as JSON: {cause}", M::NAME);
        Error::new(ErrorKind::Invalid, text).with_source(cause)
    })?;
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
    row.finish()
}

/// What puts a message into a partition.
pub(crate) fn posted(message: &Row, partition_key: &str) -> Result<Operation> {
    let mut row = Row::build(partition_key, message.row_key());
    let mut properties = message.properties();
    while let Some((name, value)) = properties.next()? {
        row.put(&String::from_utf8_lossy(name), value);
    }
    row.finish().map(Operation::insert)
}

/// What says that the effect of a message is in the transaction.
pub(crate) fn receipt(partition_key: &str, id: &str) -> Result<Operation> {
    let mut row = Row::build(partition_key, &receipt_key(id));
    row.put(TYPE_NAME, ValueRef::String("entable.receipt"));
    row.put(FORMAT_NAME, ValueRef::Int32(FORMAT));
    row.finish().map(Operation::insert)
}

/// The RowKey of a receipt.
pub(crate) fn receipt_key(id: &str) -> String {
    [RECEIPT, id].concat()
}

impl OpenMessage {
    /// The message of that row.
    pub(crate) fn of(row: Row) -> Result<Self> {
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
        let receipts = match row.get("Receipts")? {
            Some(ValueRef::String(text)) => serde_json::from_str(text).unwrap_or_default(),
            _ => Vec::new(),
        };
        Ok(Self {
            id: row.row_key().strip_prefix(MESSAGE).unwrap_or_default().to_owned(),
            name: text(&row, "Type")?.to_owned(),
            body: text(&row, "Body")?.to_owned(),
            version: number("Version")?,
            attempts: number("Attempts")?,
            failures: number("Failures")?,
            leased: time("Leased")?,
            delayed: time("Delayed")?,
            is_done: row.get("Done")? == Some(ValueRef::Boolean(true)),
            poison,
            receipts,
            row,
        })
    }

    /// The same with where its receipts are.
    pub(crate) fn with_receipts(self, receipts: Vec<(String, String)>) -> Self {
        Self { receipts, ..self }
    }

    /// Whether somebody has it at that time.
    pub(crate) fn is_leased(&self, now: Ticks) -> bool {
        self.leased.is_some_and(|until| now < until)
    }

    /// Whether it waits at that time after a failure.
    pub(crate) fn is_delayed(&self, now: Ticks) -> bool {
        self.delayed.is_some_and(|until| now < until)
    }

    fn merged(
        &self,
        seen: Option<ETag>,
        put: impl FnOnce(&mut crate::row::RowBuilder),
    ) -> Result<Operation> {
        let mut row = Row::build(self.row.partition_key(), self.row.row_key());
        put(&mut row);
        Ok(Operation::merge(row.finish()?, Condition::for_etag(seen)))
    }

    /// What takes it, until some time.
    pub(crate) fn taken(&self, until: Ticks) -> Result<Operation> {
        self.merged(self.row.etag(), |row| {
            row.put("Attempts", ValueRef::Int32(self.attempts.saturating_add(1)));
            row.put("Leased", ValueRef::DateTime(until));
        })
    }

    /// What gives it back after a failure.
    pub(crate) fn failed(
        &self,
        handle: Option<ETag>,
        error: &str,
        until: Ticks,
    ) -> Result<Operation> {
        self.merged(handle, |row| {
            row.put("Failures", ValueRef::Int32(self.failures.saturating_add(1)));
            row.put("Leased", ValueRef::DateTime(Ticks::UNIX_EPOCH));
            row.put("Delayed", ValueRef::DateTime(until));
            row.put("Error", ValueRef::String(short(error)));
            if !self.receipts.is_empty() {
                row.put("Receipts", ValueRef::String(&text_of(&self.receipts)));
            }
        })
    }

    /// What gives it back after a failure that does not count.
    pub(crate) fn postponed(
        &self,
        handle: Option<ETag>,
        error: &str,
        until: Ticks,
    ) -> Result<Operation> {
        self.merged(handle, |row| {
            row.put("Leased", ValueRef::DateTime(Ticks::UNIX_EPOCH));
            row.put("Delayed", ValueRef::DateTime(until));
            row.put("Error", ValueRef::String(short(error)));
            if !self.receipts.is_empty() {
                row.put("Receipts", ValueRef::String(&text_of(&self.receipts)));
            }
        })
    }

    /// What says that nobody shall have it any more, and why.
    pub(crate) fn poisoned(&self, handle: Option<ETag>, error: &str) -> Result<Operation> {
        self.merged(handle, |row| row.put("Poison", ValueRef::String(short(error))))
    }

    /// What gives it back without a failure.
    pub(crate) fn released(&self, handle: Option<ETag>) -> Result<Operation> {
        self.merged(handle, |row| row.put("Leased", ValueRef::DateTime(Ticks::UNIX_EPOCH)))
    }

    /// What says that it is done, while receipts for it have to stay.
    pub(crate) fn done(
        &self,
        handle: Option<ETag>,
        receipts: &[(String, String)],
    ) -> Result<Operation> {
        self.merged(handle, |row| {
            row.put("Done", ValueRef::Boolean(true));
            row.put("Receipts", ValueRef::String(&text_of(receipts)));
        })
    }

    /// What removes it.
    pub(crate) fn removed(&self, handle: Option<ETag>) -> Result<Operation> {
        let seen = Condition::for_etag(handle);
        Operation::delete(self.row.partition_key(), self.row.row_key(), seen)
    }
}

/// Receipts as a text.
fn text_of(receipts: &[(String, String)]) -> String {
    let texts = receipts.iter().map(|(table, key)| serde_json::Value::from(vec![&**table, key]));
    serde_json::Value::from_iter(texts).to_string()
}

/// As much of an error as is kept: whatever a handler says, the row has room for it.
pub(crate) fn short(error: &str) -> &str {
    error.get(..error.floor_char_boundary(ERROR_BYTES)).unwrap_or(error)
}

/// Bytes of an error that are kept.
const ERROR_BYTES: usize = 4_000;

/// A time some time after another.
pub(crate) fn after(now: Ticks, wait: Duration) -> Ticks {
    let wait = i64::try_from(wait.as_nanos() / 100).unwrap_or(i64::MAX);
    Ticks::new(now.get().saturating_add(wait)).unwrap_or(Ticks::MAX)
}
