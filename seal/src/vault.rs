//! Keyrings stored as secrets in Azure Key Vault.

use std::{fmt, sync::Arc, time::Duration};

pub use azure_security_keyvault_secrets as secrets;
use azure_security_keyvault_secrets::SecretClient;
use zeroize::Zeroizing;

use crate::{
    blind_token_key::BlindTokenKey,
    cache::{KeyCache, Lifetime},
    data_key::DataKey,
    envelope::KeyId,
    keyring::Keyring,
    provider::{KeyFuture, KeyProvider, KeyScope, PartitionScopeRule},
};
use entable_core::{
    clock::{Clock, SystemClock},
    error::{Error, ErrorKind, Result, SealFault},
};

/// Largest number of characters of a secret's name.
const NAME_CHARACTERS: usize = 127;

/// How long a keyring answers all requests about its scope. A page of rows with made-up key ids then reads the keyring
/// once, not once for each id.
const KEYRING_LIFETIME: Duration = Duration::from_secs(5);

/// A key provider that reads keyrings from Azure Key Vault. Each scope has one secret. Its text is a keyring with the
/// keys of that scope, in the format of [`Keyring::parse`]. Deleting and purging the secret of a scope destroys its
/// keys.
///
/// Only a 404 for the secret means that the keys of a scope are destroyed. If the vault refuses access (401, 403), the
/// keys are unavailable: everything that needs them fails with `is_key_unavailable`, and messages and moves wait. The
/// vault also refuses a disabled secret (403). To withhold the keys of a scope for a time, disable its secret. To
/// destroy them, delete and purge it.
///
/// A keyring answers all requests about its scope for five seconds after it was read. To keep keys longer, wrap the
/// provider in [`CachedKeys`](crate::CachedKeys). Wrapped keys stored alongside the rows are not supported: wrapping
/// needs only the public key, so a writer of the rows could wrap a key of their own.
pub struct VaultKeys {
    client: Arc<SecretClient>,
    prefix: String,
    rule: Option<PartitionScopeRule>,
    has_blind_token_key_per_scope: bool,
    clock: Arc<dyn Clock>,
    rings: KeyCache<KeyScope, Keyring>,
}

impl VaultKeys {
    /// Reads the keys of each scope from the secret `{prefix}-{scope}` in the client's vault.
    pub fn new(client: Arc<SecretClient>, prefix: &str) -> Self {
        Self {
            client,
            prefix: prefix.to_owned(),
            rule: None,
            has_blind_token_key_per_scope: false,
            clock: Arc::new(SystemClock),
            rings: KeyCache::default(),
        }
    }

    /// Makes each blind token with the blind token key of its row's own scope. Without this, all use the key of the
    /// default scope. See [`Keyring::with_blind_token_key_per_scope`].
    #[must_use]
    pub fn with_blind_token_key_per_scope(mut self) -> Self {
        self.has_blind_token_key_per_scope = true;
        self
    }

    /// Sets the clock that measures the age of keyrings.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the function from PartitionKey to key scope. The name of a scope must consist of letters,
    /// digits and `-`, as it becomes part of the name of a secret.
    #[must_use]
    pub fn scopes(mut self, rule: impl Fn(&str) -> KeyScope + Send + Sync + 'static) -> Self {
        self.rule = Some(Arc::new(rule));
        self
    }

    /// Reads the keyring of a scope with one request to the vault.
    ///
    /// # Errors
    ///
    /// `is_key_unavailable` if the vault does not answer, refuses access or lacks the secret. `is_invalid` if the
    /// scope's name cannot be part of a secret's name, or the secret is not a keyring.
    pub async fn load(&self, scope: &KeyScope) -> Result<Keyring> {
        let name = self.secret_name(scope)?;
        let response = self.client.get_secret(&name, None).await.map_err(|error| {
            // A refusal of the request itself stays a refusal when it is sent again.
            let status = error.http_status().map(u16::from);
            let retryable = !status.is_some_and(|status| matches!(status, 400..=407 | 409..=428));
            let fault = SealFault::KeyUnavailable { retryable };
            let message = format!("the vault returned no secret `{name}`");
            let is_deleted = status == Some(404);
            let error = Error::seal(fault, message).with_source(error);
            // A missing permission or a disabled secret must not hide rows as destroyed keys do.
            if is_deleted { error } else { error.with_key_withheld() }
        })?;
        // The error of a body that is not understood could quote the secret: it is dropped.
        let secret = response.into_model().ok().and_then(|secret| secret.value);
        let text = secret.map(Zeroizing::new).ok_or_else(|| {
            let fault = SealFault::KeyUnavailable { retryable: false };
            let message = format!("the secret `{name}` of the vault has no value");
            // An answer that is not understood does not say that the keys are destroyed.
            Error::seal(fault, message).with_key_withheld()
        })?;
        Keyring::parse(&text).map_err(|error| {
            let message = format!("the secret `{name}` of the vault: {}", error.message());
            match error.seal_fault() {
                Some(fault) => Error::seal(fault, message),
                None => Error::new(error.kind(), message),
            }
        })
    }

    /// Returns the keyring of a scope, read at most [`KEYRING_LIFETIME`] ago.
    async fn keyring_of_scope(&self, scope: &KeyScope) -> Result<Arc<Keyring>> {
        // No stale keys: after a scope's secret is purged, its keys have to stop working.
        let lifetime =
            Lifetime { clock: &*self.clock, fresh: KEYRING_LIFETIME, stale: Duration::ZERO };
        let load = || -> KeyFuture<'_, Arc<Keyring>> {
            Box::pin(async move { self.load(scope).await.map(Arc::new) })
        };
        Ok(self.rings.get(scope.clone(), lifetime, load).await?.0)
    }

    fn secret_name(&self, scope: &KeyScope) -> Result<String> {
        let name = format!("{}-{scope}", self.prefix);
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if is_name && name.len() <= NAME_CHARACTERS {
            return Ok(name);
        }
        let message = format!(
            "the scope's secret would be named `{}`, but a name in the vault has at most {NAME_CHARACTERS} letters, \
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
        Box::pin(async move { self.keyring_of_scope(scope).await?.primary_key(scope) })
    }

    fn get<'a>(&'a self, scope: &'a KeyScope, id: KeyId) -> KeyFuture<'a, Arc<DataKey>> {
        Box::pin(async move { self.keyring_of_scope(scope).await?.data_key(scope, id) })
    }

    fn fetch_blind_token_key<'a>(
        &'a self,
        scope: &'a KeyScope,
        version: Option<u32>,
    ) -> KeyFuture<'a, Arc<BlindTokenKey>> {
        Box::pin(async move { self.keyring_of_scope(scope).await?.blind_token_key(scope, version) })
    }

    fn has_blind_token_key_per_scope(&self) -> bool {
        self.has_blind_token_key_per_scope
    }

    fn blind_token_scope(&self, partition_key: &str) -> KeyScope {
        if self.has_blind_token_key_per_scope {
            self.scope_of(partition_key)
        } else {
            KeyScope::default_scope()
        }
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
