//! Keys that the process holds itself.

mod text;

use std::{collections::BTreeMap, fmt, future::ready, path::Path, sync::Arc};

use zeroize::Zeroizing;

use super::{
    data_key::{DataKey, key_not_found},
    envelope::KeyId,
    index_key::IndexKey,
    provider::{KeyFuture, KeyProvider, KeyScope, ScopeRule},
    root::RootKey,
};
use crate::error::{Error, ErrorKind, Result, SealFault};

/// Keys that the process holds itself: from bytes, a file, an environment variable, or a secret of a
/// key store. Cheap to clone; Debug shows ids only.
///
/// ```
/// use entable::{KeyScope, Keyring, RootKey};
///
/// let keys = Keyring::builder()
///     .primary(&KeyScope::default_scope(), &RootKey::from_bytes([0x42; 32]))
///     .index(&KeyScope::default_scope(), 1, &RootKey::from_bytes([0x43; 32]))
///     .build()?;
/// let same = Keyring::parse(
///     "entable-keyring 1
///      data default primary 4242424242424242424242424242424242424242424242424242424242424242
///      index default 1 current 4343434343434343434343434343434343434343434343434343434343434343",
/// )?;
/// assert_eq!(format!("{keys:?}"), format!("{same:?}"));
/// # Ok::<(), entable::Error>(())
/// ```
#[derive(Clone)]
pub struct Keyring {
    scopes: Arc<BTreeMap<KeyScope, ScopeKeys>>,
    rule: Option<ScopeRule>,
}

/// The keys of one scope.
#[derive(Default)]
struct ScopeKeys {
    primary: Option<KeyId>,
    data: BTreeMap<KeyId, Arc<DataKey>>,
    /// The version in use.
    current: Option<u32>,
    index: BTreeMap<u32, Arc<IndexKey>>,
}

/// Collects the keys of a [`Keyring`].
#[derive(Default)]
pub struct KeyringBuilder {
    scopes: BTreeMap<KeyScope, ScopeKeys>,
    rule: Option<ScopeRule>,
    fault: Option<Error>,
}

impl Keyring {
    /// A builder without keys.
    pub fn builder() -> KeyringBuilder {
        KeyringBuilder::default()
    }

    /// A ring of one data key in the default scope, without an index key.
    pub fn from_bytes(root: [u8; 32]) -> Self {
        let mut keys = ScopeKeys::default();
        let key = DataKey::from_root(&RootKey::from_bytes(*Zeroizing::new(root)));
        keys.primary = Some(key.id());
        keys.data.insert(key.id(), Arc::new(key));
        let scopes = BTreeMap::from([(KeyScope::default_scope(), keys)]);
        Self { scopes: scopes.into(), rule: None }
    }

    /// The ring that the text describes; its format is in `docs/encryption.md`.
    ///
    /// # Errors
    ///
    /// `is_invalid`, naming the line and never what stands in it; a key that is not the pinned one
    /// is [`SealFault::KeyIdMismatch`].
    pub fn parse(text: &str) -> Result<Self> {
        text::parse(text)?.build()
    }

    /// The ring that a file describes.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse); `is_key_unavailable` for a file that cannot be read.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map(Zeroizing::new).map_err(|cause| {
            let fault = SealFault::KeyUnavailable { retryable: false };
            let message = format!("the keyring `{}` cannot be read", path.display());
            Error::seal(fault, message).with_source(cause)
        })?;
        Self::parse(&text)
    }

    /// The ring that an environment variable describes. The environment is seen by child processes
    /// and often by logs: a file is the better place.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse); `is_key_unavailable` for a variable that is not set.
    pub fn from_env(variable: &str) -> Result<Self> {
        // The cause would show what is not text.
        let text = std::env::var(variable).map(Zeroizing::new).map_err(|_| {
            let fault = SealFault::KeyUnavailable { retryable: false };
            let message =
                format!("the environment variable `{variable}` is not set, or is no text");
            Error::seal(fault, message)
        })?;
        Self::parse(&text)
    }

    /// The text of a new ring: a data key and an index key for the default scope, to be kept where
    /// secrets are kept.
    ///
    /// # Errors
    ///
    /// `is_key_unavailable` where the system has no random bytes.
    pub fn generate_text() -> Result<Zeroizing<String>> {
        text::generate()
    }

    /// The same ring, with a rule that gives each partition its scope. A scope that the ring has no
    /// keys for cannot be written or read.
    #[must_use]
    pub fn with_scopes(mut self, rule: impl Fn(&str) -> KeyScope + Send + Sync + 'static) -> Self {
        self.rule = Some(Arc::new(rule));
        self
    }

    /// The primary key of a scope.
    ///
    /// # Errors
    ///
    /// `is_key_unavailable` where the scope has none.
    pub fn primary_key(&self, scope: &KeyScope) -> Result<Arc<DataKey>> {
        let keys = self.scopes.get(scope);
        let key = keys.and_then(|keys| keys.data.get(&keys.primary?));
        key.cloned().ok_or_else(|| no_key(scope, "primary data key"))
    }

    /// The key of that id in a scope.
    ///
    /// # Errors
    ///
    /// `is_decrypt` where the scope does not have it.
    pub fn data_key(&self, scope: &KeyScope, id: KeyId) -> Result<Arc<DataKey>> {
        let key = self.scopes.get(scope).and_then(|keys| keys.data.get(&id));
        key.cloned().ok_or_else(|| key_not_found(id))
    }

    /// The index key of a scope, of that version or the one in use.
    ///
    /// # Errors
    ///
    /// `is_key_unavailable` where the scope has none.
    pub fn index_key(&self, scope: &KeyScope, version: Option<u32>) -> Result<Arc<IndexKey>> {
        let keys = self.scopes.get(scope);
        let key = keys.and_then(|keys| keys.index.get(&version.or(keys.current)?));
        key.cloned().ok_or_else(|| match version {
            None => no_key(scope, "current index key"),
            Some(version) => no_key(scope, &format!("index key of version {version}")),
        })
    }

    /// The ids of a scope's data keys, the primary one first.
    pub fn key_ids(&self, scope: &KeyScope) -> Vec<KeyId> {
        let Some(keys) = self.scopes.get(scope) else { return Vec::new() };
        let others = keys.data.keys().copied().filter(|id| Some(*id) != keys.primary);
        keys.primary.into_iter().chain(others).collect()
    }
}

fn no_key(scope: &KeyScope, what: &str) -> Error {
    let fault = SealFault::KeyUnavailable { retryable: false };
    Error::seal(fault, format!("the scope `{}` has no {what}", scope.name().escape_debug()))
}

impl KeyProvider for Keyring {
    fn scope_of(&self, partition_key: &str) -> KeyScope {
        self.rule.as_ref().map_or_else(KeyScope::default_scope, |rule| rule(partition_key))
    }

    fn primary<'a>(&'a self, scope: &'a KeyScope) -> KeyFuture<'a, Arc<DataKey>> {
        Box::pin(ready(self.primary_key(scope)))
    }

    fn get<'a>(&'a self, scope: &'a KeyScope, id: KeyId) -> KeyFuture<'a, Arc<DataKey>> {
        Box::pin(ready(self.data_key(scope, id)))
    }

    fn index<'a>(
        &'a self,
        scope: &'a KeyScope,
        version: Option<u32>,
    ) -> KeyFuture<'a, Arc<IndexKey>> {
        Box::pin(ready(self.index_key(scope, version)))
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&*self.scopes).finish()
    }
}

impl fmt::Debug for ScopeKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopeKeys")
            .field("primary", &self.primary)
            .field("data", &self.data.keys())
            .field("current", &self.current)
            .field("index", &self.index.keys())
            .finish()
    }
}

impl fmt::Debug for KeyringBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&self.scopes).finish()
    }
}

impl KeyringBuilder {
    /// Adds the key that a scope's values are encrypted with.
    #[must_use]
    pub fn primary(self, scope: &KeyScope, root: &RootKey) -> Self {
        self.data(scope, DataKey::from_root(root), true)
    }

    /// Adds a key that reads only: an earlier primary, or the next one while it is rolled out.
    #[must_use]
    pub fn decrypt_only(self, scope: &KeyScope, root: &RootKey) -> Self {
        self.data(scope, DataKey::from_root(root), false)
    }

    fn data(mut self, scope: &KeyScope, key: DataKey, is_primary: bool) -> Self {
        let keys = self.scopes.entry(scope.clone()).or_default();
        let id = key.id();
        if is_primary && keys.primary.replace(id).is_some() {
            return self.refuse(scope, "has two primary data keys");
        }
        if keys.data.insert(id, Arc::new(key)).is_some() {
            return self.refuse(scope, &format!("has the data key {id} twice"));
        }
        self
    }

    /// Adds an index key and has it be the one in use.
    #[must_use]
    pub fn index(self, scope: &KeyScope, version: u32, root: &RootKey) -> Self {
        self.token(scope, version, root, true)
    }

    /// Adds an index key of another version, for a time in which both are looked up.
    #[must_use]
    pub fn index_only(self, scope: &KeyScope, version: u32, root: &RootKey) -> Self {
        self.token(scope, version, root, false)
    }

    fn token(mut self, scope: &KeyScope, version: u32, root: &RootKey, is_current: bool) -> Self {
        // A token tells the version modulo four, counted from 1.
        if version == 0 {
            return self.refuse(scope, "has an index key of version 0, they count from 1");
        }
        let keys = self.scopes.entry(scope.clone()).or_default();
        if is_current && keys.current.replace(version).is_some() {
            return self.refuse(scope, "has two current index keys");
        }
        let key = Arc::new(IndexKey::from_root(root, version));
        if keys.index.insert(version, key).is_some() {
            return self.refuse(scope, &format!("has index key version {version} twice"));
        }
        self
    }

    /// Sets the rule that gives each partition its scope.
    #[must_use]
    pub fn scopes(mut self, rule: impl Fn(&str) -> KeyScope + Send + Sync + 'static) -> Self {
        self.rule = Some(Arc::new(rule));
        self
    }

    fn refuse(mut self, scope: &KeyScope, why: &str) -> Self {
        let message = format!("the scope `{}` {why}", scope.name().escape_debug());
        self.fault.get_or_insert_with(|| Error::new(ErrorKind::Invalid, message));
        self
    }

    /// The ring.
    ///
    /// # Errors
    ///
    /// `is_invalid` for two primaries or two current index keys in a scope, for a key that is given
    /// twice, and for an index key of version 0.
    pub fn build(self) -> Result<Keyring> {
        match self.fault {
            Some(fault) => Err(fault),
            None => Ok(Keyring { scopes: self.scopes.into(), rule: self.rule }),
        }
    }
}
