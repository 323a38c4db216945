//! Encrypts and decrypts rows: encrypted properties, their blind tokens, and the seal over a whole
//! row.
//!
//! Callers of this module see decrypted rows, and the backend sees encrypted ones. Each operation encrypts its row
//! once, for the row's keys. A retry sends the same bytes.

pub(crate) mod fetch;
pub(crate) mod index;
pub(crate) mod plan;
pub(crate) mod held;
pub(crate) mod scope;
pub(crate) mod open;
pub(crate) mod reseal;
mod plain_pieces;
mod plain_upgrade;
pub(crate) mod unseal;
pub(crate) mod seal;
pub(crate) mod shredded;

use std::{fmt, sync::Arc};

use crate::{
    error::{Error, Result},
    seal::KeyProvider,
};

/// How to treat a stored plain value that should be encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PlaintextPolicy {
    /// Refuses the row, because anybody who can write to the store may have put the value there.
    #[default]
    Reject,
    /// Reads the value. Use it only during a migration, because the program's own plain values cannot be distinguished
    /// from values that somebody else wrote.
    Allow,
}

/// Chooses properties to encrypt in addition to the declared ones, by PartitionKey, RowKey and property name.
type EncryptIf = Arc<dyn Fn(&str, &str, &str) -> bool + Send + Sync>;

/// Encrypts and decrypts rows for a client, with the client's keys and its rules for plain values.
#[derive(Clone, Default)]
pub(crate) struct RowSealer {
    pub(crate) keys: Option<Arc<dyn KeyProvider>>,
    pub(crate) plaintext: PlaintextPolicy,
    pub(crate) encrypt_if: Option<EncryptIf>,
}

impl RowSealer {
    /// Returns whether the client's `encrypt_if` chooses a property that no type declares as encrypted.
    pub(crate) fn is_undeclared_property_chosen(
        &self,
        partition_key: &str,
        row_key: &str,
        property: &str,
    ) -> bool {
        self.encrypt_if.as_ref().is_some_and(|choose| choose(partition_key, row_key, property))
    }

    /// Checks that the client has keys.
    ///
    /// # Errors
    ///
    /// Fails with `is_key_unavailable` for a client without keys.
    pub(crate) fn check_keys_configured(&self) -> Result<()> {
        if self.keys.is_some() {
            return Ok(());
        }
        Err(no_keys_error("a blob must be encrypted"))
    }
}

impl fmt::Debug for RowSealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowSealer").field("plaintext", &self.plaintext).finish_non_exhaustive()
    }
}

/// Returns the error for a client without keys. `what` describes what needs them.
fn no_keys_error(what: &str) -> Error {
    let message =
        format!("{what}, but the client has no keys; set them with `Client::builder().keys(..)`");
    Error::seal(crate::error::SealFault::KeyUnavailable { retryable: false }, message)
}
