//! Makes and verifies authentication codes (MACs) with the keys of a client. A code covers one piece of [`Work`], which is
//! something that a row or a message makes a worker do, such as a move of an entity.

use std::{fmt, sync::Arc};

use super::{
    policy::{Authenticity, MessageAuthenticity},
    work::Work,
};
use crate::{
    provider::{KeyProvider, KeyScope},
    work_code::work_key_id_of,
};
use entable_core::error::{Error, Result, SealFault};

/// The keys that a client signs and verifies work with, and its setting for work without a code.
#[derive(Clone, Default)]
pub struct WorkCodes {
    keys: Option<Arc<dyn KeyProvider>>,
    authenticity: Authenticity,
}

/// Why a piece of work is not done.
#[derive(Debug)]
pub enum WorkRefusal {
    /// The code is wrong, or is missing where one is required.
    NotAuthentic,
    /// The scope does not have the key. Another program may have it already, so the failure counts
    /// towards the poison table.
    Counts(Error),
    /// The key store does not answer; another attempt may succeed.
    Passes(Error),
}

impl WorkCodes {
    /// Returns this value with the keys that make and verify codes and the setting for work without a code.
    pub fn with_keys(self, keys: Option<Arc<dyn KeyProvider>>, authenticity: Authenticity) -> Self {
        Self { keys, authenticity }
    }

    /// Returns whether the client has keys.
    pub const fn has_keys(&self) -> bool {
        self.keys.is_some()
    }

    /// Returns whether the framework's own work, such as a move, needs a code.
    pub fn requires_code_by_default(&self) -> bool {
        self.has_keys() && self.authenticity == Authenticity::Require
    }

    /// Returns whether a message needs a code, given what its type declares.
    pub fn requires_code_for_message(&self, declared: MessageAuthenticity) -> bool {
        match declared {
            MessageAuthenticity::Required => true,
            MessageAuthenticity::ByClient => self.requires_code_by_default(),
            MessageAuthenticity::NotRequired => false,
        }
    }

    /// Refuses a message that its type declares `authenticated`, if the client has no keys.
    ///
    /// # Errors
    ///
    /// `is_key_unavailable` for such a message.
    pub fn check_can_sign_message(&self, name: &str, declared: MessageAuthenticity) -> Result<()> {
        if declared != MessageAuthenticity::Required || self.has_keys() {
            return Ok(());
        }
        let message = format!(
            "the message `{name}` is declared `authenticated`, but the client has no keys; set them with \
             `Client::builder().keys(..)`"
        );
        Err(Error::seal(SealFault::KeyUnavailable { retryable: false }, message))
    }

    /// Returns whether both partitions have one scope of keys; `true` for a client without keys.
    pub fn is_same_scope(&self, one: &str, other: &str) -> bool {
        self.keys.as_ref().is_none_or(|keys| keys.scope_of(one) == keys.scope_of(other))
    }

    /// Signs work with the key of a partition's scope. `None` is the default scope. Returns `None` if there is no key,
    /// unless the work `must` be signed.
    ///
    /// # Errors
    ///
    /// `is_key_unavailable` if work must be signed and there is no key, or if the key store does not answer.
    pub async fn sign_work(
        &self,
        partition_key: Option<&str>,
        work: &Work<'_>,
        must: bool,
    ) -> Result<Option<Vec<u8>>> {
        let Some(keys) = &self.keys else {
            return if must { Err(no_keys_error()) } else { Ok(None) };
        };
        match keys.primary(&scope_of_partition(&**keys, partition_key)).await {
            Ok(key) => key.sign_work(&work.signed_input()).map(Some),
            // A scope that was destroyed cannot sign; work that needs no code goes on without one.
            Err(error) if !must && is_key_gone(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Verifies the code of work with the keys of a partition's scope. `None` is the default scope. A client without
    /// keys accepts any code. Work without a code is refused if `is_required`.
    ///
    /// # Errors
    ///
    /// The [`WorkRefusal`] says why the work is not done.
    pub async fn verify_work(
        &self,
        partition_key: Option<&str>,
        work: &Work<'_>,
        code: Option<&[u8]>,
        is_required: bool,
    ) -> Result<(), WorkRefusal> {
        if let (Some(keys), Some(code)) = (&self.keys, code) {
            // A code of unknown form is as good as a wrong one.
            let Ok(id) = work_key_id_of(code) else { return Err(WorkRefusal::NotAuthentic) };
            let key = keys
                .get(&scope_of_partition(&**keys, partition_key), id)
                .await
                .map_err(WorkRefusal::from_key_error)?;
            let verified = key.verify_work(&work.signed_input(), code);
            // Do not report why a code fails: the answer would help a forger.
            return verified.map_err(|_| WorkRefusal::NotAuthentic);
        }
        match (code, is_required) {
            (None, true) => Err(WorkRefusal::NotAuthentic),
            _ => Ok(()),
        }
    }
}

impl WorkRefusal {
    /// Converts the error of fetching the work's key to a refusal. A key that is unknown here or destroyed
    /// gives `Counts`: the attempt counts towards the poison table. Any other error gives `Passes`: the
    /// attempt does not count, since a later one may succeed.
    fn from_key_error(error: Error) -> Self {
        match error.seal_fault() {
            // Not known here: a program that is rolled out later may have the key.
            Some(SealFault::KeyNotFound(_)) => Self::Counts(error),
            _ if is_key_gone(&error) => Self::Counts(error),
            _ => Self::Passes(error),
        }
    }
}

fn scope_of_partition(keys: &dyn KeyProvider, partition_key: Option<&str>) -> KeyScope {
    partition_key.map_or_else(KeyScope::default_scope, |key| keys.scope_of(key))
}

/// Returns whether the error says that the key of a scope is deleted for good.
pub fn is_key_gone(error: &Error) -> bool {
    let is_no = error.seal_fault() == Some(SealFault::KeyUnavailable { retryable: false });
    is_no && !error.is_key_withheld()
}

/// Returns the error for work that has to be signed by a client without keys.
fn no_keys_error() -> Error {
    let message = "the work must be signed, but the client has no keys; set them with `Client::builder().keys(..)`";
    Error::seal(SealFault::KeyUnavailable { retryable: false }, message)
}

impl fmt::Debug for WorkCodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("WorkCodes");
        debug.field("authenticity", &self.authenticity).finish_non_exhaustive()
    }
}
