//! The trait that provides data keys and blind token keys, and the scopes they belong to.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use crate::{blind_token_key::BlindTokenKey, data_key::DataKey, envelope::KeyId};
use entable_core::error::Result;

/// The future that the functions of a key provider return.
pub type KeyFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// A function from PartitionKey to key scope.
pub(crate) type PartitionScopeRule = Arc<dyn Fn(&str) -> KeyScope + Send + Sync>;

/// A group of rows with its own keys, such as the rows of one tenant. Destroying the keys of a scope
/// destroys all values that they encrypt.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyScope(Arc<str>);

impl KeyScope {
    /// Returns the scope `default`, which rows belong to unless a rule says otherwise.
    ///
    /// ```
    /// # use entable_seal::KeyScope;
    /// assert_eq!(KeyScope::default_scope(), KeyScope::default());
    /// assert_eq!(KeyScope::default_scope().name(), "default");
    /// ```
    pub fn default_scope() -> Self {
        Self::named("default")
    }

    /// Returns the scope named `name`. The name `default` is the default scope: put a prefix before
    /// names that users choose.
    ///
    /// ```
    /// # use entable_seal::KeyScope;
    /// assert_ne!(KeyScope::named("tenant_7"), KeyScope::named("tenant_8"));
    /// ```
    pub fn named(name: &str) -> Self {
        Self(name.into())
    }

    /// Returns the name of the scope.
    ///
    /// ```
    /// # use entable_seal::KeyScope;
    /// assert_eq!(KeyScope::named("tenant_7").name(), "tenant_7");
    /// ```
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl Default for KeyScope {
    fn default() -> Self {
        Self::default_scope()
    }
}

impl fmt::Display for KeyScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A source of keys: a [`Keyring`](crate::Keyring), or a remote key store behind
/// [`CachedKeys`](crate::CachedKeys).
///
/// An implementation keeps this contract:
///
/// * It looks for a key only in the scope that it is asked for.
/// * Keys are authentic: a writer of the table's rows must not be able to make the provider return a
///   key of the writer's choice.
/// * For a key that the scope does not have, `get` fails with [`SealFault::KeyNotFound`], and
///   `primary` and `fetch_blind_token_key` fail with a `KeyUnavailable` that is not retryable: it says that the keys are
///   destroyed, and lookups by blind tokens then find nothing. If the key store does not answer, or refuses
///   to, as for a missing permission, all three fail with a `KeyUnavailable` that is retryable. `CachedKeys`
///   with [`stale_for_decrypt`](crate::CachedKeys::stale_for_decrypt) decrypts with its expired keys
///   meanwhile, after a refusal, too.
/// * It answers in bounded time: reads and writes wait for it without a limit of their own.
/// * A provider around another provider passes on all of its functions, also those that have a body here.
///
/// [`SealFault::KeyNotFound`]: entable_core::SealFault::KeyNotFound
pub trait KeyProvider: Send + Sync + fmt::Debug + 'static {
    /// Returns the key scope of a partition.
    fn scope_of(&self, partition_key: &str) -> KeyScope;

    /// Returns the key that encrypts new values of a scope.
    fn primary<'a>(&'a self, scope: &'a KeyScope) -> KeyFuture<'a, Arc<DataKey>>;

    /// Returns the data key with id `id`, to decrypt values.
    fn get<'a>(&'a self, scope: &'a KeyScope, id: KeyId) -> KeyFuture<'a, Arc<DataKey>>;

    /// Returns the blind token key of that version; for `None`, the blind token key that makes new blind
    /// tokens.
    fn fetch_blind_token_key<'a>(
        &'a self,
        scope: &'a KeyScope,
        version: Option<u32>,
    ) -> KeyFuture<'a, Arc<BlindTokenKey>>;

    /// Returns whether scopes have blind token keys of their own. If `false`, every blind token is made with the
    /// blind token key of the default scope, whatever `blind_token_scope` returns.
    fn has_blind_token_key_per_scope(&self) -> bool {
        false
    }

    /// Returns the scope whose blind token key makes the blind tokens of rows in a partition. A row whose
    /// PartitionKey contains a blind token always has the default scope, since the token is computed before the
    /// PartitionKey is known.
    ///
    /// A scope that has no blind token key gets none of another scope: what needs one fails with
    /// `is_key_unavailable`.
    fn blind_token_scope(&self, partition_key: &str) -> KeyScope {
        let _ = partition_key;
        KeyScope::default_scope()
    }
}

/// Passes every call on to the shared provider.
impl<P: KeyProvider + ?Sized> KeyProvider for Arc<P> {
    fn scope_of(&self, partition_key: &str) -> KeyScope {
        (**self).scope_of(partition_key)
    }

    fn primary<'a>(&'a self, scope: &'a KeyScope) -> KeyFuture<'a, Arc<DataKey>> {
        (**self).primary(scope)
    }

    fn get<'a>(&'a self, scope: &'a KeyScope, id: KeyId) -> KeyFuture<'a, Arc<DataKey>> {
        (**self).get(scope, id)
    }

    fn fetch_blind_token_key<'a>(
        &'a self,
        scope: &'a KeyScope,
        version: Option<u32>,
    ) -> KeyFuture<'a, Arc<BlindTokenKey>> {
        (**self).fetch_blind_token_key(scope, version)
    }

    fn has_blind_token_key_per_scope(&self) -> bool {
        (**self).has_blind_token_key_per_scope()
    }

    fn blind_token_scope(&self, partition_key: &str) -> KeyScope {
        (**self).blind_token_scope(partition_key)
    }
}
