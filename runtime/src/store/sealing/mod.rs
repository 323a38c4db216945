//! Between the rows that programs work with and the rows that are stored: encrypted properties,
//! their tokens, and the property that vouches for a row.
//!
//! Above this step every row is plain, below it every row is as it is stored. Each physical row is
//! sealed for its own keys, once for each operation: what is sent again is the same.

#[cfg(feature = "encrypt")]
pub(crate) mod fetch;
#[cfg(feature = "encrypt")]
pub(crate) mod index;
pub(crate) mod plan;
pub(crate) mod open;
#[cfg(feature = "encrypt")]
pub(crate) mod reseal;
#[cfg(feature = "encrypt")]
pub(crate) mod unseal;
pub(crate) mod seal;

use std::{fmt, sync::Arc};

use crate::error::Error;
#[cfg(feature = "encrypt")]
use crate::seal::KeyProvider;

/// What becomes of a stored value that should be encrypted and is plain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PlaintextPolicy {
    /// The row is refused: who can write the store could have put the value there.
    #[default]
    Reject,
    /// It is read as it is. For a migration only: until it is over, nothing tells a plain value
    /// that the program wrote from one that somebody else put there.
    Allow,
}

/// Which properties are encrypted beside those that are declared: PartitionKey, RowKey, property.
type EncryptIf = Arc<dyn Fn(&str, &str, &str) -> bool + Send + Sync>;

/// What a client seals and opens rows with.
#[derive(Clone, Default)]
pub(crate) struct Vault {
    #[cfg(feature = "encrypt")]
    pub(crate) keys: Option<Arc<dyn KeyProvider>>,
    pub(crate) plaintext: PlaintextPolicy,
    pub(crate) encrypt_if: Option<EncryptIf>,
}

impl Vault {
    /// Whether the client asks for a property to be encrypted that no entity declares so.
    pub(crate) fn chooses(&self, partition_key: &str, row_key: &str, property: &str) -> bool {
        self.encrypt_if.as_ref().is_some_and(|choose| choose(partition_key, row_key, property))
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault").field("plaintext", &self.plaintext).finish_non_exhaustive()
    }
}

/// The error of a client without keys.
fn keyless(what: &str) -> Error {
    let message = format!(
        "{what}, and the client has no keys: give it some with `Client::builder().keys(..)`"
    );
    Error::seal(crate::error::SealFault::KeyUnavailable { retryable: false }, message)
}
