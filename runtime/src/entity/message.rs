//! Defines the trait of messages: work of the program's own that follows a committed change.

use std::time::Duration;

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    authentic::MessageAuthenticity,
    edm::readable_json_text,
    error::{Error, ErrorKind, Result},
};

/// A message of the program's own, emitted with a change and handled after the change is committed.
/// `#[derive(Message)]` implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a message",
    note = "derive `Message` for it, and serde's `Serialize` and `Deserialize`"
)]
pub trait Message: MessageBody + Send + 'static {
    /// The name under which messages of this type are stored.
    const NAME: &'static str;
    /// The version of the message's fields, counted from 1.
    const VERSION: u32;
    /// Whether a message needs a code that proves that somebody with the keys emitted it.
    const AUTHENTICITY: MessageAuthenticity = MessageAuthenticity::ByClient;
    /// How long after it was emitted a message may be handled. `None` sets no bound.
    const EXPIRES: Option<Duration> = None;
}

/// A type that serde can write and read. Without this extra bound, the compiler would report that
/// [`Message`] is a sealed trait where `Serialize` or `Deserialize` is missing.
pub trait MessageBody: Serialize + DeserializeOwned {}

impl<T: Serialize + DeserializeOwned> MessageBody for T {}

/// Converts a message to the JSON text that is its body.
///
/// # Errors
///
/// `is_invalid` for a message that cannot be written as JSON, and for one that no handler could read.
pub(crate) fn message_body<M: Message>(message: &M) -> Result<String> {
    readable_json_text(message).map_err(|invalid| {
        let text = format!("the message `{}` cannot be sent: {invalid}", M::NAME);
        Error::new(ErrorKind::Invalid, text)
    })
}
