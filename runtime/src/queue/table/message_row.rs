//! Messages as rows of a table. `docs/queues.md` specifies the format.

use serde::{Deserialize, Serialize};

use crate::{
    access::Keys,
    batch::{Condition, Operation},
    edm::{Ticks, ValueRef},
    entity::TYPE_NAME,
    error::{Error, ErrorKind, Result},
    filter::Filter,
    limits::{STRING_UNITS, saturating_i32, utf16_units},
    row::{ETag, Row, RowBuilder},
    server_clock::later_time,
};

/// The version of the rows' format.
const FORMAT: i32 = 1;
/// The prefix of the RowKeys of queued messages; the time when a message becomes visible follows.
const QUEUED_PREFIX: &str = "q_";
/// The prefix of the RowKeys of poison messages; the message's id follows.
const POISON_PREFIX: &str = "x_";

/// A message of a queue in a table, without the time when it becomes visible.
#[derive(Debug, Clone)]
pub(crate) struct TableQueueMessage {
    /// The PartitionKey of the message's row, which names queue and shard.
    pub(crate) partition_key: String,
    pub(crate) id: String,
    pub(crate) body: String,
    /// How often the message was received.
    pub(crate) dequeue_count: u32,
    /// The time of sending.
    pub(crate) sent: Ticks,
}

/// A row that holds a message, as it was read.
#[derive(Debug, Clone)]
pub(crate) struct StoredMessageRow {
    pub(crate) message: TableQueueMessage,
    pub(crate) row_key: String,
    pub(crate) etag: Option<ETag>,
    pub(crate) reason: Option<String>,
    /// The ticks that the row stays hidden after its Timestamp.
    hidden_ticks: i64,
    /// The Timestamp of the row.
    written: Option<Ticks>,
}

/// The proof that a receiver holds a message: keys and ETag of the message's row.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PopReceipt {
    #[serde(rename = "p")]
    pub(crate) partition_key: String,
    #[serde(rename = "r")]
    pub(crate) row_key: String,
    #[serde(rename = "e")]
    pub(crate) etag: String,
    #[serde(rename = "s")]
    pub(crate) sent: i64,
}

/// The time when a message becomes visible again, and the id of the request that sets it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visibility<'a> {
    /// The time in the RowKey. Receivers find the row from then on.
    pub(crate) due: Ticks,
    /// The ticks that the row stays hidden after its Timestamp, both by the store's clock. The row therefore
    /// stays hidden even if a client's wrong clock made `due` too early.
    pub(crate) hidden_ticks: i64,
    /// The random id of the request that writes the row. A reader resolves a lost answer with it.
    pub(crate) holder: &'a str,
}

impl TableQueueMessage {
    /// Returns the PartitionKey of a shard of a queue.
    pub(crate) fn shard_key(queue: &str, shard: u32) -> String {
        format!("{queue}_{shard:02}")
    }

    /// Returns the RowKey of the message if it becomes visible at `due`.
    pub(crate) fn row_key(&self, due: Ticks) -> String {
        format!("{QUEUED_PREFIX}{:019}_{}", due.get(), self.id)
    }

    /// Builds the row of the queued message.
    pub(crate) fn queued_row(&self, visibility: Visibility<'_>) -> Result<Row> {
        let mut row = self.begin_row(&self.row_key(visibility.due));
        if visibility.hidden_ticks > 0 {
            row.put("Hidden", ValueRef::Int64(visibility.hidden_ticks));
        }
        row.put("Holder", ValueRef::String(visibility.holder));
        row.finish()
    }

    /// Returns the operation that writes the message as poison.
    pub(crate) fn insert_as_poison(&self, reason: &str) -> Result<Operation> {
        let mut row = self.begin_row(&[POISON_PREFIX, &self.id].concat());
        row.put("Reason", ValueRef::String(&cut_to_property(reason)));
        row.finish().map(Operation::insert_or_replace)
    }

    /// Begins a row with the properties that queued and poison messages share.
    fn begin_row(&self, row_key: &str) -> RowBuilder {
        let mut row = Row::build(&self.partition_key, row_key);
        row.put(TYPE_NAME, ValueRef::String("entable.queued"));
        row.put("Format", ValueRef::Int32(FORMAT));
        row.put("Body", ValueRef::String(&self.body));
        row.put("DequeueCount", ValueRef::Int32(saturating_i32(self.dequeue_count)));
        row.put("Sent", ValueRef::DateTime(self.sent));
        row
    }
}

/// Cuts a reason to the largest text that a property holds.
fn cut_to_property(reason: &str) -> String {
    let mut units = 0;
    let fits = |c: &char| {
        units += c.len_utf16();
        units <= STRING_UNITS
    };
    reason.chars().take_while(fits).collect()
}

impl StoredMessageRow {
    /// Parses a row; returns `None` for a format that this crate does not know. Fails with
    /// `is_decode` if a property is missing.
    pub(crate) fn parse(row: &Row) -> Result<Option<Self>> {
        // A later format is left to programs that know it.
        if row.get("Format")? != Some(ValueRef::Int32(FORMAT)) {
            return Ok(None);
        }
        let text = |name: &str| match row.get(name)? {
            Some(ValueRef::String(text)) => Ok(text.to_owned()),
            _ => Err(damaged_error(row, name)),
        };
        let (count, sent) = match (row.get("DequeueCount")?, row.get("Sent")?) {
            (Some(ValueRef::Int32(count)), Some(ValueRef::DateTime(sent))) => (count, sent),
            _ => return Err(damaged_error(row, "DequeueCount")),
        };
        let hidden_ticks = match row.get("Hidden")? {
            Some(ValueRef::Int64(ticks)) => ticks,
            _ => 0,
        };
        let row_key = row.row_key();
        let id = match row_key.strip_prefix(QUEUED_PREFIX) {
            Some(rest) => rest.split_once('_').map_or("", |(_, id)| id),
            None => row_key.strip_prefix(POISON_PREFIX).unwrap_or_default(),
        };
        let message = TableQueueMessage {
            partition_key: row.partition_key().to_owned(),
            id: id.to_owned(),
            body: text("Body")?,
            dequeue_count: u32::try_from(count).map_err(|_| damaged_error(row, "DequeueCount"))?,
            sent,
        };
        let reason = match row.get("Reason")? {
            Some(ValueRef::String(reason)) => Some(reason.to_owned()),
            _ => None,
        };
        let (etag, written) = (row.etag(), row.timestamp());
        Ok(Some(Self { message, row_key: row_key.to_owned(), etag, reason, hidden_ticks, written }))
    }

    /// Returns whether the row is visible at `date`, the store's date. Returns `true` if the date
    /// or the row's Timestamp is not known.
    pub(crate) fn is_visible(&self, date: Option<Ticks>) -> bool {
        // A sender with a wrong clock may have written a due time that has come too early. Date and
        // Timestamp are both the store's, so their difference is right whatever other clocks say.
        match (date, self.written) {
            (Some(date), Some(written)) if self.hidden_ticks > 0 => {
                date.get().saturating_sub(written.get()) >= self.hidden_ticks
            }
            _ => true,
        }
    }

    /// Returns the text of the pop receipt of this row.
    pub(crate) fn pop_receipt(&self) -> String {
        let etag = self.etag.as_ref().map(ETag::to_string).unwrap_or_default();
        PopReceipt::encode(&self.message, &self.row_key, etag)
    }

    /// Returns the operation that deletes the row under the ETag that was read.
    pub(crate) fn delete_operation(&self) -> Result<Operation> {
        let seen = Condition::for_etag(self.etag.clone());
        Operation::delete(&self.message.partition_key, &self.row_key, seen)
    }
}

/// Returns the error for a row whose property `name` is missing or has another type.
fn damaged_error(row: &Row, name: &str) -> Error {
    Error::new(
        ErrorKind::Decode,
        "a queue row lacks a property, or the property has another type or a negative number",
    )
    .at_keys(row.partition_key(), row.row_key())
    .in_property(name)
}

impl PopReceipt {
    /// Returns the text of the pop receipt of a message in the row `row_key`.
    pub(crate) fn encode(message: &TableQueueMessage, row_key: &str, etag: String) -> String {
        let receipt = Self {
            partition_key: message.partition_key.clone(),
            row_key: row_key.to_owned(),
            etag,
            sent: message.sent.get(),
        };
        serde_json::to_string(&receipt).unwrap_or_default()
    }

    /// Parses the text of a pop receipt. Fails with `is_invalid` for a receipt of another queue.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let receipt: Option<Self> = serde_json::from_str(text).ok();
        receipt.filter(|receipt| !receipt.etag.is_empty()).ok_or_else(|| {
            Error::new(
                ErrorKind::Invalid,
                "the message's pop receipt is not of a queue in a table: the message was \
                                            received from another queue",
            )
        })
    }

    /// Builds the received message. The PartitionKey and the time of sending are those in the pop
    /// receipt.
    pub(crate) fn rebuild_message(
        &self,
        id: &str,
        body: &str,
        dequeue_count: u32,
    ) -> TableQueueMessage {
        TableQueueMessage {
            partition_key: self.partition_key.clone(),
            id: id.to_owned(),
            body: body.to_owned(),
            dequeue_count,
            sent: Ticks::new(self.sent).unwrap_or(Ticks::UNIX_EPOCH),
        }
    }

    /// Returns the operation that deletes the receipt's row under the receipt's ETag.
    pub(crate) fn delete_operation(&self) -> Result<Operation> {
        let seen = Condition::Match(ETag::from(&*self.etag));
        Operation::delete(&self.partition_key, &self.row_key, seen)
    }
}

/// Returns whether the request `holder` wrote the row.
pub(crate) fn is_written_by_request(row: &Row, holder: &str) -> Result<bool> {
    Ok(row.get("Holder")? == Some(ValueRef::String(holder)))
}

/// Returns the filter for the messages of a shard that are due at `now`.
pub(crate) fn due_filter(shard: &str, now: Ticks) -> Filter {
    // One tick more: rows that are due exactly now are included.
    let next = later_time(now, std::time::Duration::from_nanos(100));
    let end = format!("{QUEUED_PREFIX}{:019}", next.get());
    Keys::partition(shard).rows(QUEUED_PREFIX..end.as_str()).filter()
}

/// Returns the filter for the poison messages of a shard.
pub(crate) fn poison_filter(shard: &str) -> Filter {
    Keys::partition(shard).prefix(POISON_PREFIX).filter()
}

/// Fails with `is_too_large` for a body that does not fit a property.
pub(crate) fn check_body(body: &str) -> Result<()> {
    let units = utf16_units(body);
    if units <= STRING_UNITS {
        return Ok(());
    }
    let message = format!(
        "the message has {units} UTF-16 units, the limit is {STRING_UNITS}; store large data elsewhere and put a \
         reference in the message"
    );
    Err(Error::new(ErrorKind::TooLarge, message))
}
