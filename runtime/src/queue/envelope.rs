//! Messages of the program's own types as texts. The format is written down in `docs/queues.md`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    entity::Message,
    error::{Error, ErrorKind, Result},
};

/// The version of the envelope's format.
const FORMAT: u32 = 1;

/// The members that this program writes itself.
const OWN: [&str; 8] = ["format", "id", "type", "version", "body", "skipped", "done", "receipts"];

/// What a message is longer by than it has to be: room for what workers note on it, in queues
/// that it only just fits into.
const ROOM: &str = "                        ";

/// Where receipts of a message are: table and PartitionKey.
pub(crate) type Receipts = Vec<(String, String)>;

/// A message and what workers note on it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Envelope {
    #[serde(default = "first")]
    format: u32,
    /// The message's own id; one that another program sent may have none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) id: String,
    #[serde(rename = "type")]
    pub(crate) name: String,
    #[serde(default = "first")]
    pub(crate) version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<Box<RawValue>>,
    /// How often it was received without counting: by workers that do not know its type, or that
    /// failed for a reason that passes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) skipped: u32,
    /// Whether it was handled, and stays for its receipts alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) done: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) receipts: Receipts,
    /// What other programs, or later formats, have beside; it is kept.
    #[serde(skip)]
    others: Members,
}

type Members = BTreeMap<String, Box<RawValue>>;

const fn first() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Envelope {
    /// A message with its envelope.
    pub(crate) fn of<M: Message>(id: String, message: &M) -> Result<Self> {
        let body = serde_json::value::to_raw_value(message).map_err(|cause| {
            let text = format!("the message `{}` cannot be written as JSON: {cause}", M::NAME);
            Error::new(ErrorKind::Invalid, text).with_source(cause)
        })?;
        Ok(Self {
            format: FORMAT,
            id,
            name: M::NAME.to_owned(),
            version: M::VERSION,
            body: Some(body),
            skipped: 0,
            done: false,
            receipts: Vec::new(),
            others: Members::new(),
        })
    }

    /// The envelope of a text.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let parsed = || {
            let mut others: Members = serde_json::from_str(text)?;
            others.retain(|name, _| !OWN.contains(&name.as_str()));
            Ok(Self { others, ..serde_json::from_str(text)? })
        };
        parsed().map_err(|cause: serde_json::Error| {
            let message = "the text is not a message: an object with `type`, `version` and `body`";
            Error::new(ErrorKind::Decode, message).with_source(cause)
        })
    }

    /// Whether it is in a format that this program knows.
    pub(crate) const fn is_known(&self) -> bool {
        self.format <= FORMAT
    }

    /// The message as JSON.
    pub(crate) fn body(&self) -> &str {
        self.body.as_ref().map_or("null", |body| body.get())
    }

    /// The same with where its receipts are.
    pub(crate) fn with_receipts(self, receipts: Receipts) -> Self {
        Self { receipts, ..self }
    }

    /// The same for a message that was handled: its body is not needed any more.
    pub(crate) fn handled(self, receipts: Receipts) -> Self {
        Self { body: None, done: true, receipts, others: Members::new(), ..self }
    }

    /// The text of a message that is sent: workers can note on it how often they left it, whatever
    /// its length.
    pub(crate) fn sent(&self) -> Result<String> {
        Ok(self.text()? + ROOM)
    }

    /// The text.
    pub(crate) fn text(&self) -> Result<String> {
        let written = || {
            let own = serde_json::to_string(self)?;
            if self.others.is_empty() {
                return Ok(own);
            }
            let mut all: Members = serde_json::from_str(&own)?;
            all.extend(self.others.clone());
            serde_json::to_string(&all)
        };
        written().map_err(|cause: serde_json::Error| {
            Error::new(ErrorKind::Invalid, "the message cannot be written as JSON")
                .with_source(cause)
        })
    }
}
