//! The JSON envelope around a typed message in a queue. `docs/queues.md` specifies the format.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::{
    authentic::Work,
    edm::Ticks,
    entity::{Message, message_body},
    error::{Error, ErrorKind, Result},
};

/// The version of the envelope's format.
const FORMAT: u32 = 1;

/// The members of the JSON object that this crate defines.
const OWN_MEMBERS: [&str; 11] = [
    "format", "id", "type", "version", "body", "skipped", "done", "receipts", "mac", "digest",
    "sent",
];

/// Spaces at the end of a sent message. Workers add the members `skipped` and `done` later, and a message of
/// the largest size still has to fit its queue then.
const PADDING: &str = "                        ";

/// The places of a message's receipts (rows that prove that its effects took place): table and
/// PartitionKey of each.
pub(crate) type Receipts = Vec<(String, String)>;

/// A message's JSON object: type, body, and what workers record on it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Envelope {
    #[serde(default = "default_number")]
    format: u32,
    /// The message's id; empty if another program sent the message without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) id: String,
    #[serde(rename = "type")]
    pub(crate) name: String,
    #[serde(default = "default_number")]
    pub(crate) version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<Box<RawValue>>,
    /// Deliveries that do not count towards poison: the worker could not handle the type or
    /// version, had no key to verify the message, was stopping, or failed with a transient error.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) skipped: u32,
    /// Whether a handler has completed, and the message only stays until its receipts are removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) done: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) receipts: Receipts,
    /// The code over the message, in base64url.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mac: Option<String>,
    /// The SHA-256 of the body, in base64url, once the message is done and has no body any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// When the message was sent, if its type expires: ticks of 100 ns since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sent: Option<i64>,
    /// Members of other programs or later formats, which are preserved.
    #[serde(skip)]
    foreign: Members,
}

/// Members of a JSON object, each as its JSON text.
type Members = BTreeMap<String, Box<RawValue>>;

/// Returns the format and the version of a message that names none.
const fn default_number() -> u32 {
    1
}

/// Returns whether a number is zero; such members are not written.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Envelope {
    /// Wraps a message under the id `id`. Fails with `is_invalid` if it cannot be written as JSON and
    /// read back.
    pub(crate) fn wrap_message<M: Message>(id: String, message: &M, now: Ticks) -> Result<Self> {
        let body = RawValue::from_string(message_body(message)?).map_err(|cause| {
            Error::new(ErrorKind::Invalid, cause.to_string()).with_source(cause)
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
            mac: None,
            digest: None,
            sent: M::EXPIRES.map(|_| now.get() - Ticks::UNIX_EPOCH.get()),
            foreign: Members::new(),
        })
    }

    /// Returns the envelope after a delivery that was not an attempt.
    pub(crate) fn without_attempt(mut self) -> Self {
        self.skipped = self.skipped.saturating_add(1);
        self
    }

    /// Parses the text of a queue message. Fails with `is_decode` unless it is a JSON object with `type`.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let parsed = || {
            let mut foreign: Members = serde_json::from_str(text)?;
            // Keep unknown members: those of later formats have to survive a change by this program.
            foreign.retain(|name, _| !OWN_MEMBERS.contains(&name.as_str()));
            Ok(Self { foreign, ..serde_json::from_str(text)? })
        };
        parsed().map_err(|cause: serde_json::Error| {
            let message = "expected a message as a JSON object with `type`, `version` and `body`, found other text";
            Error::new(ErrorKind::Decode, message).with_source(cause)
        })
    }

    /// Returns whether this crate knows the format of the envelope.
    pub(crate) const fn has_known_format(&self) -> bool {
        // Other formats may give members a meaning that this program does not know.
        self.format == FORMAT
    }

    /// Returns the message itself as JSON text.
    pub(crate) fn body_json(&self) -> &str {
        self.body.as_ref().map_or("null", |body| body.get())
    }

    /// Returns the values that the message's code covers, for the message with the id `id` in the queue `queue`.
    pub(crate) fn work_covered_by_code<'m>(&'m self, queue: &'m str, id: &'m str) -> Work<'m> {
        let (name, version, digest) = (self.name.as_str(), self.version, self.body_digest());
        Work::Queued { queue, id, name, version, digest, sent: self.sent_time() }
    }

    /// Returns the SHA-256 of the body. A message that is done has no body any more: returns the digest that
    /// stands for it, or zeros, which are the digest of no body, if the message has none of 32 bytes.
    fn body_digest(&self) -> [u8; 32] {
        if !self.done {
            return Sha256::digest(self.body_json()).into();
        }
        let digest = self.digest.as_ref().and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
        digest.and_then(|digest| digest.try_into().ok()).unwrap_or_default()
    }

    /// Returns when the message was sent, if its type expires.
    pub(crate) fn sent_time(&self) -> Option<Ticks> {
        Ticks::new(self.sent?.checked_add(Ticks::UNIX_EPOCH.get())?)
    }

    /// Adds the code over the message.
    pub(crate) fn with_code(self, code: Option<Vec<u8>>) -> Self {
        Self { mac: code.map(|code| URL_SAFE_NO_PAD.encode(code)), ..self }
    }

    /// Returns whether the message has a code, right or wrong.
    pub(crate) const fn has_code(&self) -> bool {
        self.mac.is_some()
    }

    /// Returns the message's code. Invalid base64url gives an empty code, which never verifies.
    pub(crate) fn authenticity_code(&self) -> Option<Vec<u8>> {
        Some(URL_SAFE_NO_PAD.decode(self.mac.as_ref()?).unwrap_or_default())
    }

    /// Replaces the places of the receipts.
    pub(crate) fn with_receipts(self, receipts: Receipts) -> Self {
        Self { receipts, ..self }
    }

    /// Marks the message as handled, and drops its body, which no delivery needs again.
    pub(crate) fn mark_handled_and_drop_body(self, receipts: Receipts) -> Self {
        // The digest stands for the body, without which nobody could verify the code.
        let digest =
            self.mac.as_ref().map(|_| URL_SAFE_NO_PAD.encode(Sha256::digest(self.body_json())));
        Self { body: None, done: true, receipts, digest, foreign: Members::new(), ..self }
    }

    /// Returns the text of a new message, with spaces at its end as room for what workers add.
    pub(crate) fn padded_text(&self) -> Result<String> {
        // Workers add members to the text later, and the queue limits its length.
        Ok(self.to_message_text()? + PADDING)
    }

    /// Returns the text of the message. Fails with `is_invalid` if it cannot be written as JSON.
    pub(crate) fn to_message_text(&self) -> Result<String> {
        let written = || {
            let own = serde_json::to_string(self)?;
            if self.foreign.is_empty() {
                return Ok(own);
            }
            let mut all: Members = serde_json::from_str(&own)?;
            all.extend(self.foreign.clone());
            serde_json::to_string(&all)
        };
        written().map_err(|cause: serde_json::Error| {
            Error::new(ErrorKind::Invalid, "the message cannot be written as JSON")
                .with_source(cause)
        })
    }
}
