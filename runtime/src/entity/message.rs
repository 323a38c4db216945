//! Messages of the program's own.

use serde::{Serialize, de::DeserializeOwned};

/// Work of the program's own that follows a change: `#[derive(Message)]` implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a message",
    note = "derive `Message` for it, and serde's `Serialize` and `Deserialize`"
)]
pub trait Message: Serialize + DeserializeOwned + Send + 'static {
    /// What it is called where it is stored.
    const NAME: &'static str;
    /// The version of its fields, from 1.
    const VERSION: u32;
}
