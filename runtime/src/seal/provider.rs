//! Where keys come from.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use super::{data_key::DataKey, envelope::KeyId, index_key::IndexKey};
use crate::error::Result;

/// A future of a key provider.
pub type KeyFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// The rule that gives a partition its scope.
pub(super) type ScopeRule = Arc<dyn Fn(&str) -> KeyScope + Send + Sync>;

/// A group of rows that has keys of its own: a tenant, say. Whoever destroys the keys of a scope has
/// destroyed what they sealed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyScope(Arc<str>);

impl KeyScope {
    /// The scope of rows that no rule puts into another one.
    pub fn default_scope() -> Self {
        Self::named("default")
    }

    /// The scope of that name. `default` is the default scope's: a rule that makes names out of what
    /// users choose puts something before them.
    pub fn named(name: &str) -> Self {
        Self(name.into())
    }

    /// The scope's name; `default` for the default one.
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

/// Where keys come from: a [`Keyring`](super::Keyring), a key store behind
/// [`CachedKeys`](super::CachedKeys).
///
/// The contract:
///
/// * A key is looked for in the scope that is asked for and in no other.
/// * Keys are authentic: who can write the store's rows must not be able to make a provider give out
///   a key of theirs.
/// * A key that the scope does not have is [`SealFault::KeyNotFound`] from `get`, and
///   `KeyUnavailable` that is not retryable from `primary` and `index`; a store that does not answer
///   is `KeyUnavailable` that is retryable.
/// * It answers in bounded time: reads and writes wait for it, and bound nothing themselves.
///
/// [`SealFault::KeyNotFound`]: crate::SealFault::KeyNotFound
pub trait KeyProvider: Send + Sync + fmt::Debug + 'static {
    /// The scope of the rows of a partition.
    fn scope_of(&self, partition_key: &str) -> KeyScope;

    /// The key that a scope's values are encrypted with now.
    fn primary<'a>(&'a self, scope: &'a KeyScope) -> KeyFuture<'a, Arc<DataKey>>;

    /// The key of that id, for reading.
    fn get<'a>(&'a self, scope: &'a KeyScope, id: KeyId) -> KeyFuture<'a, Arc<DataKey>>;

    /// The key for tokens: of that version, or the one in use now.
    fn index<'a>(
        &'a self,
        scope: &'a KeyScope,
        version: Option<u32>,
    ) -> KeyFuture<'a, Arc<IndexKey>>;
}

/// A shared provider is one.
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

    fn index<'a>(
        &'a self,
        scope: &'a KeyScope,
        version: Option<u32>,
    ) -> KeyFuture<'a, Arc<IndexKey>> {
        (**self).index(scope, version)
    }
}
