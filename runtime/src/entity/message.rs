//! Defines the trait of messages, which let a program do its own work after a committed change.

use std::time::Duration;

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    authentic::MessageAuthenticity,
    edm::readable_json_text,
    error::{Error, ErrorKind, Result},
};

/// A message of the program that is emitted with a change and handled after the change is committed.
/// Implemented by `#[derive(Message)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a message",
    note = "derive `Message`, and serde's `Serialize` and `Deserialize`"
)]
pub trait Message: MessageBody + Send + 'static {
    /// The name in stored messages of this type.
    const NAME: &'static str;
    /// The version of the message's fields, counted from 1.
    const VERSION: u32;
    /// Whether a message needs an authenticity code, which proves that somebody with the keys emitted it.
    const AUTHENTICITY: MessageAuthenticity = MessageAuthenticity::ByClient;
    /// How long after its emission a message may be handled. `None` sets no limit.
    const EXPIRES: Option<Duration> = None;
}

/// A type that serde can serialize and deserialize. Without this extra bound, a missing `Serialize` or
/// `Deserialize` would be reported as [`Message`] being a sealed trait.
pub trait MessageBody: Serialize + DeserializeOwned {}

impl<T: Serialize + DeserializeOwned> MessageBody for T {}

/// Serializes a message to JSON, which is its body.
///
/// # Errors
///
/// Fails with `is_invalid` for a message that cannot be written as JSON, and for one that no handler could read.
pub(crate) fn message_body<M: Message>(message: &M) -> Result<String> {
    readable_json_text(message).map_err(|invalid| {
        let text = format!("the message `{}` cannot be sent: {invalid}", M::NAME);
        Error::new(ErrorKind::Invalid, text)
    })
}
