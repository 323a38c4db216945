//! A key provider whose keys the process holds in memory.

use std::{collections::BTreeMap, fmt, future::ready, sync::Arc};

use zeroize::Zeroizing;

use crate::{
    blind_token_key::BlindTokenKey,
    data_key::{DataKey, key_not_found_error},
    envelope::KeyId,
    provider::{KeyFuture, KeyProvider, KeyScope, PartitionScopeRule},
    root::RootKey,
};
use entable_core::error::{Error, Result, SealFault};

/// A key provider whose keys the process holds in memory: read from a file, an environment variable or
/// a secret of a key store, or built by code. It is cheap to clone, and `Debug` shows only key ids.
///
/// ```
/// use entable_seal::{KeyScope, Keyring, RootKey};
///
/// let keys = Keyring::builder()
///     .primary(&KeyScope::default_scope(), &RootKey::from_bytes([0x42; 32]))
///     .blind_token_key(&KeyScope::default_scope(), 1, &RootKey::from_bytes([0x43; 32]))
///     .build()?;
/// let same = Keyring::parse(
///     "entable-keyring 1
///      data default primary 4242424242424242424242424242424242424242424242424242424242424242
///      index default 1 current 4343434343434343434343434343434343434343434343434343434343434343",
/// )?;
/// assert_eq!(format!("{keys:?}"), format!("{same:?}"));
/// # Ok::<(), entable_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Keyring {
    pub(super) scopes: Arc<BTreeMap<KeyScope, ScopeKeys>>,
    pub(super) rule: Option<PartitionScopeRule>,
    /// Whether the blind tokens of each scope are made with a key of its own, rather than with the default scope's.
    pub(super) has_blind_token_key_per_scope: bool,
}

/// The keys of one scope.
#[derive(Default)]
pub(super) struct ScopeKeys {
    pub(super) primary: Option<KeyId>,
    pub(super) data: BTreeMap<KeyId, Arc<DataKey>>,
    /// The version of the blind token key that makes new blind tokens.
    pub(super) current: Option<u32>,
    pub(super) index: BTreeMap<u32, Arc<BlindTokenKey>>,
}

impl Keyring {
    /// Makes a keyring with one data key, in the default scope, and without a blind token key.
    ///
    /// ```
    /// use entable_seal::{KeyScope, Keyring, RootKey};
    ///
    /// # let root = [7; 32]; // of a store of secrets
    /// let keys = Keyring::from_bytes(root);
    /// let scope = KeyScope::default_scope();
    /// assert_eq!(keys.key_ids(&scope).len(), 1);
    /// assert!(keys.blind_token_key(&scope, None).unwrap_err().is_key_unavailable());
    /// # let _ = RootKey::from_bytes(root);
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    pub fn from_bytes(root: [u8; 32]) -> Self {
        let mut keys = ScopeKeys::default();
        // The copy of the bytes on the stack is wiped.
        let key = DataKey::from_root(&RootKey::from_bytes(*Zeroizing::new(root)));
        keys.primary = Some(key.id());
        keys.data.insert(key.id(), Arc::new(key));
        let scopes = BTreeMap::from([(KeyScope::default_scope(), keys)]);
        Self { scopes: scopes.into(), rule: None, has_blind_token_key_per_scope: false }
    }

    /// Sets the function from PartitionKey to key scope. Rows with encrypted values or a seal can be
    /// neither written nor read in a scope without keys in the keyring.
    ///
    /// ```
    /// use entable_seal::{KeyScope, Keyring, RootKey};
    ///
    /// let text = Keyring::generate_text()?;
    /// let keys = Keyring::parse(&text)?.with_scopes(|partition_key| KeyScope::named(partition_key));
    /// assert!(keys.primary_key(&KeyScope::named("Sales")).unwrap_err().is_key_unavailable());
    /// # let _ = RootKey::from_bytes([0; 32]);
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    #[must_use]
    pub fn with_scopes(mut self, rule: impl Fn(&str) -> KeyScope + Send + Sync + 'static) -> Self {
        self.rule = Some(Arc::new(rule));
        self
    }

    /// Makes the blind tokens of each scope with a blind token key of its own. Without this call, the default
    /// scope's key makes all tokens. It still makes the tokens of rows whose PartitionKey contains one, because the
    /// scope of a row follows from its PartitionKey.
    ///
    /// A write that needs a token fails with `is_key_unavailable` if the keyring has no blind token key for the
    /// scope. A lookup fails in the same way, unless the keyring has no primary key for the scope either: a shredded
    /// scope reads as empty. `docs/encryption.md` says which values a holder of the default blind token key can
    /// still guess, and how to convert existing rows while the program runs.
    ///
    /// ```
    /// use entable_seal::{KeyProvider, KeyScope, Keyring, RootKey};
    ///
    /// let tenant = KeyScope::named("tenant-7");
    /// let keys = Keyring::builder()
    ///     .primary(&tenant, &RootKey::generate()?)
    ///     .blind_token_key(&tenant, 1, &RootKey::generate()?)
    ///     .build()?
    ///     .with_scopes(KeyScope::named)
    ///     .with_blind_token_key_per_scope();
    /// assert_eq!(keys.blind_token_scope("tenant-7"), tenant);
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    #[must_use]
    pub fn with_blind_token_key_per_scope(mut self) -> Self {
        self.has_blind_token_key_per_scope = true;
        self
    }

    /// Returns the data key that encrypts new values of a scope.
    ///
    /// ```
    /// use entable_seal::{KeyScope, Keyring, RootKey};
    ///
    /// let (scope, root) = (KeyScope::default_scope(), RootKey::from_bytes([7; 32]));
    /// let keys = Keyring::builder().primary(&scope, &root).build()?;
    /// assert_eq!(keys.key_ids(&scope), [keys.primary_key(&scope)?.id()]);
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_key_unavailable` if the scope has no primary key.
    pub fn primary_key(&self, scope: &KeyScope) -> Result<Arc<DataKey>> {
        let keys = self.scopes.get(scope);
        let key = keys.and_then(|keys| keys.data.get(&keys.primary?));
        key.cloned().ok_or_else(|| missing_key_error(scope, "primary data key"))
    }

    /// Returns the data key with id `id` of a scope.
    ///
    /// ```
    /// use entable_seal::{KeyScope, Keyring, RootKey};
    ///
    /// let (scope, root) = (KeyScope::default_scope(), RootKey::from_bytes([7; 32]));
    /// let keys = Keyring::builder().primary(&scope, &root).build()?;
    /// let id = keys.primary_key(&scope)?.id();
    /// assert_eq!(keys.data_key(&scope, id)?.id(), id);
    /// assert!(keys.data_key(&KeyScope::named("HR"), id).unwrap_err().is_decrypt());
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_decrypt` if the scope does not have the key.
    pub fn data_key(&self, scope: &KeyScope, id: KeyId) -> Result<Arc<DataKey>> {
        let key = self.scopes.get(scope).and_then(|keys| keys.data.get(&id));
        key.cloned().ok_or_else(|| key_not_found_error(id))
    }

    /// Returns the blind token key of that version in a scope; for `None`, the one that makes new blind
    /// tokens.
    ///
    /// ```
    /// use entable_seal::{KeyScope, Keyring, RootKey};
    ///
    /// let (scope, root) = (KeyScope::default_scope(), RootKey::from_bytes([7; 32]));
    /// let keys = Keyring::builder().blind_token_key(&scope, 1, &root).build()?;
    /// assert_eq!(keys.blind_token_key(&scope, None)?.version(), 1);
    /// assert!(keys.blind_token_key(&scope, Some(2)).unwrap_err().is_key_unavailable());
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_key_unavailable` if the scope does not have the blind token key.
    pub fn blind_token_key(
        &self,
        scope: &KeyScope,
        version: Option<u32>,
    ) -> Result<Arc<BlindTokenKey>> {
        let keys = self.scopes.get(scope);
        let key = keys.and_then(|keys| keys.index.get(&version.or(keys.current)?));
        key.cloned().ok_or_else(|| match version {
            None => missing_key_error(scope, "current blind token key"),
            Some(version) => {
                missing_key_error(scope, &format!("blind token key of version {version}"))
            }
        })
    }

    /// Returns the ids of the data keys of a scope, the primary key's first.
    ///
    /// ```
    /// use entable_seal::{KeyScope, Keyring, RootKey};
    ///
    /// let scope = KeyScope::default_scope();
    /// let [old, new] = [[7; 32], [8; 32]].map(RootKey::from_bytes);
    /// let keys = Keyring::builder().decrypt_only(&scope, &old).primary(&scope, &new).build()?;
    /// assert_eq!(keys.key_ids(&scope).len(), 2);
    /// assert_eq!(keys.key_ids(&scope)[0], keys.primary_key(&scope)?.id());
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    pub fn key_ids(&self, scope: &KeyScope) -> Vec<KeyId> {
        let Some(keys) = self.scopes.get(scope) else { return Vec::new() };
        let others = keys.data.keys().copied().filter(|id| Some(*id) != keys.primary);
        keys.primary.into_iter().chain(others).collect()
    }
}

fn missing_key_error(scope: &KeyScope, what: &str) -> Error {
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

    fn fetch_blind_token_key<'a>(
        &'a self,
        scope: &'a KeyScope,
        version: Option<u32>,
    ) -> KeyFuture<'a, Arc<BlindTokenKey>> {
        Box::pin(ready(self.blind_token_key(scope, version)))
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
