//! A message as a row. The format is written down in `docs/queues.md`.

use serde::{Deserialize, Serialize};

use crate::{
    access::Keys,
    batch::{Condition, Operation},
    edm::{Ticks, ValueRef},
    error::{Error, ErrorKind, Result},
    filter::Filter,
    limits::{STRING_UNITS, utf16_units},
    queue::server_clock::after,
    row::{ETag, Row},
};

/// The version of the rows' format.
const FORMAT: i32 = 1;
/// What the RowKeys of messages that wait or are hidden begin with; when they are due comes next.
const QUEUED: &str = "q_";
/// What the RowKeys of messages that were put aside begin with.
const POISON: &str = "x_";

/// A message as its row has it.
#[derive(Debug, Clone)]
pub(crate) struct Letter {
    /// The PartitionKey: queue and shard.
    pub(crate) partition_key: String,
    pub(crate) id: String,
    pub(crate) body: String,
    /// How often it was received.
    pub(crate) count: u32,
    /// When it was sent.
    pub(crate) sent: Ticks,
}

/// What a row says beside its message.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) letter: Letter,
    pub(crate) row_key: String,
    pub(crate) etag: Option<ETag>,
    pub(crate) reason: Option<String>,
    /// Ticks that it is hidden for after it was written.
    hidden: i64,
    written: Option<Ticks>,
}

/// What proves that one has a message: the row that it is in, as text.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Receipt {
    #[serde(rename = "p")]
    pub(crate) partition_key: String,
    #[serde(rename = "r")]
    pub(crate) row_key: String,
    #[serde(rename = "e")]
    pub(crate) etag: String,
    #[serde(rename = "s")]
    pub(crate) sent: i64,
}

/// Where a message goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// When it is visible.
    pub(crate) due: Ticks,
    /// Ticks that it is hidden for, whatever the clocks of those who read it say.
    pub(crate) hidden: i64,
    /// Who puts it there.
    pub(crate) holder: &'a str,
}

impl Letter {
    /// The PartitionKey of a queue's shard.
    pub(crate) fn shard(queue: &str, shard: u32) -> String {
        format!("{queue}_{shard:02}")
    }

    /// The RowKey of the message while it is due then.
    pub(crate) fn row_key(&self, due: Ticks) -> String {
        format!("{QUEUED}{:019}_{}", due.get(), self.id)
    }

    /// The row of the message in that place.
    pub(crate) fn queued(&self, place: Place<'_>) -> Result<Row> {
        let mut row = self.row(&self.row_key(place.due));
        if place.hidden > 0 {
            row.put("Hidden", ValueRef::Int64(place.hidden));
        }
        row.put("Holder", ValueRef::String(place.holder));
        row.finish()
    }

    /// What puts the message aside.
    pub(crate) fn poisoned(&self, reason: &str) -> Result<Operation> {
        let mut row = self.row(&[POISON, &self.id].concat());
        row.put("Reason", ValueRef::String(&cut(reason)));
        row.finish().map(Operation::insert_or_replace)
    }

    fn row(&self, row_key: &str) -> crate::row::RowBuilder {
        let mut row = Row::build(&self.partition_key, row_key);
        row.put("EntityType", ValueRef::String("entable.queued"));
        row.put("Format", ValueRef::Int32(FORMAT));
        row.put("Body", ValueRef::String(&self.body));
        row.put("DequeueCount", ValueRef::Int32(i32::try_from(self.count).unwrap_or(i32::MAX)));
        row.put("Sent", ValueRef::DateTime(self.sent));
        row
    }
}

/// A reason is for people: what is over the limit of a property is left out.
fn cut(reason: &str) -> String {
    let mut units = 0;
    let fits = |c: &char| {
        units += c.len_utf16();
        units <= STRING_UNITS
    };
    reason.chars().take_while(fits).collect()
}

impl Found {
    /// The message of a row; `None`: of a format that this program does not know.
    pub(crate) fn of(row: &Row) -> Result<Option<Self>> {
        if row.get("Format")? != Some(ValueRef::Int32(FORMAT)) {
            return Ok(None);
        }
        let text = |name: &str| match row.get(name)? {
            Some(ValueRef::String(text)) => Ok(text.to_owned()),
            _ => Err(damaged(row, name)),
        };
        let (count, sent) = match (row.get("DequeueCount")?, row.get("Sent")?) {
            (Some(ValueRef::Int32(count)), Some(ValueRef::DateTime(sent))) => (count, sent),
            _ => return Err(damaged(row, "DequeueCount")),
        };
        let hidden = match row.get("Hidden")? {
            Some(ValueRef::Int64(ticks)) => ticks,
            _ => 0,
        };
        let row_key = row.row_key();
        let id = match row_key.strip_prefix(QUEUED) {
            Some(rest) => rest.split_once('_').map_or("", |(_, id)| id),
            None => row_key.strip_prefix(POISON).unwrap_or_default(),
        };
        let letter = Letter {
            partition_key: row.partition_key().to_owned(),
            id: id.to_owned(),
            body: text("Body")?,
            count: u32::try_from(count).unwrap_or(0),
            sent,
        };
        let reason = match row.get("Reason")? {
            Some(ValueRef::String(reason)) => Some(reason.to_owned()),
            _ => None,
        };
        let (etag, written) = (row.etag(), row.timestamp());
        Ok(Some(Self { letter, row_key: row_key.to_owned(), etag, reason, hidden, written }))
    }

    /// Whether it is visible, by the clock of the store that wrote it; one that was put there by a
    /// wrong clock may seem so too early.
    pub(crate) fn is_visible(&self, date: Option<Ticks>) -> bool {
        match (date, self.written) {
            (Some(date), Some(written)) if self.hidden > 0 => {
                date.get().saturating_sub(written.get()) >= self.hidden
            }
            _ => true,
        }
    }

    /// The receipt of that row.
    pub(crate) fn receipt(&self) -> String {
        let etag = self.etag.as_ref().map(ETag::to_string).unwrap_or_default();
        Receipt::text(&self.letter, &self.row_key, etag)
    }

    /// What removes the row, in the version that was read.
    pub(crate) fn removed(&self) -> Result<Operation> {
        let seen = Condition::for_etag(self.etag.clone());
        Operation::delete(&self.letter.partition_key, &self.row_key, seen)
    }
}

fn damaged(row: &Row, name: &str) -> Error {
    Error::new(ErrorKind::Decode, "a row of a queue lacks a property")
        .at_keys(row.partition_key(), row.row_key())
        .in_property(name)
}

impl Receipt {
    /// The receipt of a message in that row.
    pub(crate) fn text(letter: &Letter, row_key: &str, etag: String) -> String {
        let receipt = Self {
            partition_key: letter.partition_key.clone(),
            row_key: row_key.to_owned(),
            etag,
            sent: letter.sent.get(),
        };
        serde_json::to_string(&receipt).unwrap_or_default()
    }

    /// The receipt of that text.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let receipt: Option<Self> = serde_json::from_str(text).ok();
        receipt.filter(|receipt| !receipt.etag.is_empty()).ok_or_else(|| {
            Error::new(ErrorKind::Invalid, "the message was not received from such a queue")
        })
    }

    /// The message that it is of.
    pub(crate) fn letter(&self, id: &str, body: &str, count: u32) -> Letter {
        Letter {
            partition_key: self.partition_key.clone(),
            id: id.to_owned(),
            body: body.to_owned(),
            count,
            sent: Ticks::new(self.sent).unwrap_or(Ticks::UNIX_EPOCH),
        }
    }

    /// What removes its row, in its version.
    pub(crate) fn removed(&self) -> Result<Operation> {
        let seen = Condition::Match(ETag::from(&*self.etag));
        Operation::delete(&self.partition_key, &self.row_key, seen)
    }
}

/// Whether a row was put there by that holder.
pub(crate) fn is_of_holder(row: &Row, holder: &str) -> Result<bool> {
    Ok(row.get("Holder")? == Some(ValueRef::String(holder)))
}

/// The messages of a shard that are due by then.
pub(crate) fn due_by(shard: &str, now: Ticks) -> Filter {
    let next = after(now, std::time::Duration::from_nanos(100));
    let end = format!("{QUEUED}{:019}", next.get());
    Keys::partition(shard).rows(QUEUED..end.as_str()).filter()
}

/// The messages of a shard that were put aside.
pub(crate) fn all_poison(shard: &str) -> Filter {
    Keys::partition(shard).prefix(POISON).filter()
}

/// Refuses a body that no property holds.
pub(crate) fn check_body(body: &str) -> Result<()> {
    let units = utf16_units(body);
    if units <= STRING_UNITS {
        return Ok(());
    }
    let message = format!(
        "the message has {units} UTF-16 units, {STRING_UNITS} are allowed: store what is large, and name it in the message"
    );
    Err(Error::new(ErrorKind::TooLarge, message))
}
