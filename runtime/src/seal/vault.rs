//! Keyrings that are kept as secrets of Azure Key Vault.

use std::{fmt, sync::Arc};

pub use azure_security_keyvault_secrets as secrets;
use azure_security_keyvault_secrets::SecretClient;
use zeroize::Zeroizing;

use super::{
    data_key::DataKey,
    envelope::KeyId,
    index_key::IndexKey,
    keyring::Keyring,
    provider::{KeyFuture, KeyProvider, KeyScope, ScopeRule},
};
use crate::error::{Error, ErrorKind, Result, SealFault};

/// Characters that a secret's name may have.
const NAME: usize = 127;

/// Keyrings that are kept as secrets of Azure Key Vault, one secret a scope: its text is a keyring
/// with the keys of that scope, as [`Keyring::parse`] reads it. Deleting and purging a scope's secret
/// destroys its keys.
///
/// Each answer is a request to the vault, so put it behind [`CachedKeys`](super::CachedKeys). Keys
/// that are wrapped and kept beside the rows are not read at all: whoever may write there could wrap
/// a key of their own, since wrapping takes the public key only.
pub struct VaultKeys {
    client: Arc<SecretClient>,
    prefix: String,
    rule: Option<ScopeRule>,
}

impl VaultKeys {
    /// Keys in the secrets `{prefix}-{scope}` of the vault that the client is for.
    pub fn new(client: Arc<SecretClient>, prefix: &str) -> Self {
        Self { client, prefix: prefix.to_owned(), rule: None }
    }

    /// The same, with a rule that gives each partition its scope. A scope's name has to be letters,
    /// digits and `-`, as secrets' names are.
    #[must_use]
    pub fn scopes(mut self, rule: impl Fn(&str) -> KeyScope + Send + Sync + 'static) -> Self {
        self.rule = Some(Arc::new(rule));
        self
    }

    /// The keyring of a scope.
    ///
    /// # Errors
    ///
    /// `is_key_unavailable` where the vault does not answer, refuses, or has no such secret;
    /// `is_invalid` for a scope that cannot be part of a name and for a secret that is no keyring.
    pub async fn load(&self, scope: &KeyScope) -> Result<Keyring> {
        let name = self.name_of(scope)?;
        let response = self.client.get_secret(&name, None).await.map_err(|error| {
            // What the vault says of the request itself does not change by asking again.
            let retryable = !error
                .http_status()
                .is_some_and(|status| matches!(u16::from(status), 400..=407 | 409..=428));
            let fault = SealFault::KeyUnavailable { retryable };
            Error::seal(fault, format!("the vault gave no secret `{name}`")).with_source(error)
        })?;
        // An error about the body would show what stands in it.
        let secret = response.into_model().ok().and_then(|secret| secret.value);
        let text = secret.map(Zeroizing::new).ok_or_else(|| {
            let fault = SealFault::KeyUnavailable { retryable: false };
            Error::seal(fault, format!("the secret `{name}` of the vault has no value"))
        })?;
        Keyring::parse(&text).map_err(|error| {
            let message = format!("the secret `{name}` of the vault: {}", error.message());
            match error.seal_fault() {
                Some(fault) => Error::seal(fault, message),
                None => Error::new(error.kind(), message),
            }
        })
    }

    fn name_of(&self, scope: &KeyScope) -> Result<String> {
        let name = format!("{}-{scope}", self.prefix);
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if is_name && name.len() <= NAME {
            return Ok(name);
        }
        let message = format!(
            "the secret of the scope would be `{}`: a name in the vault is at most {NAME} letters, \
             digits and `-`",
            name.escape_debug()
        );
        Err(Error::new(ErrorKind::Invalid, message))
    }
}

impl KeyProvider for VaultKeys {
    fn scope_of(&self, partition_key: &str) -> KeyScope {
        self.rule.as_ref().map_or_else(KeyScope::default_scope, |rule| rule(partition_key))
    }

    fn primary<'a>(&'a self, scope: &'a KeyScope) -> KeyFuture<'a, Arc<DataKey>> {
        Box::pin(async move { self.load(scope).await?.primary_key(scope) })
    }

    fn get<'a>(&'a self, scope: &'a KeyScope, id: KeyId) -> KeyFuture<'a, Arc<DataKey>> {
        Box::pin(async move { self.load(scope).await?.data_key(scope, id) })
    }

    fn index<'a>(
        &'a self,
        scope: &'a KeyScope,
        version: Option<u32>,
    ) -> KeyFuture<'a, Arc<IndexKey>> {
        Box::pin(async move { self.load(scope).await?.index_key(scope, version) })
    }
}

impl fmt::Debug for VaultKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VaultKeys")
            .field("endpoint", &self.client.endpoint().as_str())
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}
