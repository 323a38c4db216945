//! Messages of the program's own.

use serde::{Serialize, de::DeserializeOwned};

/// Work of the program's own that follows a change: `#[derive(Message)]` implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a message",
    note = "derive `Message` for it, and serde's `Serialize` and `Deserialize`"
)]
pub trait Message: MessageBody + Send + 'static {
    /// What it is called where it is stored.
    const NAME: &'static str;
    /// The version of its fields, from 1.
    const VERSION: u32;
}

/// What serde writes and reads: every type with `Serialize` and `Deserialize`. A bound of its own, so
/// that the compiler does not call [`Message`] sealed where one of the two is missing.
pub trait MessageBody: Serialize + DeserializeOwned {}

impl<T: Serialize + DeserializeOwned> MessageBody for T {}
