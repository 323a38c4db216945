//! The builder of keyrings, which checks that the keys of a scope fit together.

use std::{collections::BTreeMap, fmt, sync::Arc};

use super::ring::{Keyring, ScopeKeys};
use crate::{
    blind_token_key::BlindTokenKey,
    data_key::DataKey,
    provider::{KeyScope, PartitionScopeRule},
    root::RootKey,
};
use entable_core::error::{Error, ErrorKind, Result};

/// Collects the keys of a [`Keyring`]. [`build`](Self::build) refuses a key that was added twice, a
/// second primary key or current blind token key of a scope, and a blind token key of version 0.
#[derive(Default)]
pub struct KeyringBuilder {
    scopes: BTreeMap<KeyScope, ScopeKeys>,
    rule: Option<PartitionScopeRule>,
    pub(super) fault: Option<Error>,
}

impl Keyring {
    /// Returns a builder of a keyring, without keys.
    ///
    /// ```
    /// use entable_seal::{KeyScope, Keyring, RootKey};
    ///
    /// let (scope, root) = (KeyScope::default_scope(), RootKey::from_bytes([7; 32]));
    /// let keys = Keyring::builder().primary(&scope, &root).blind_token_key(&scope, 1, &root).build()?;
    /// assert_eq!(keys.key_ids(&scope).len(), 1);
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    pub fn builder() -> KeyringBuilder {
        KeyringBuilder::default()
    }
}

impl fmt::Debug for KeyringBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&self.scopes).finish()
    }
}

impl KeyringBuilder {
    /// Adds the data key that encrypts new values of a scope.
    ///
    /// ```
    /// use entable_seal::{KeyScope, Keyring, RootKey};
    ///
    /// let scope = KeyScope::default_scope();
    /// let [old, new] = [[7; 32], [8; 32]].map(RootKey::from_bytes);
    ///
    /// let keys = Keyring::builder().primary(&scope, &new).build()?;
    /// assert!(keys.primary_key(&scope).is_ok());
    /// let error = Keyring::builder().primary(&scope, &old).primary(&scope, &new).build().unwrap_err();
    /// assert!(error.is_invalid());
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    #[must_use]
    pub fn primary(self, scope: &KeyScope, root: &RootKey) -> Self {
        self.add_data_key(scope, DataKey::from_root(root), true)
    }

    /// Adds a data key that only decrypts: an earlier primary key, or the next one while it is rolled
    /// out.
    ///
    /// ```
    /// use entable_seal::{KeyScope, Keyring, RootKey};
    ///
    /// let scope = KeyScope::default_scope();
    /// let [old, new] = [[7; 32], [8; 32]].map(RootKey::from_bytes);
    ///
    /// let keys = Keyring::builder().primary(&scope, &new).decrypt_only(&scope, &old).build()?;
    /// assert_eq!(keys.key_ids(&scope).len(), 2);
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    #[must_use]
    pub fn decrypt_only(self, scope: &KeyScope, root: &RootKey) -> Self {
        self.add_data_key(scope, DataKey::from_root(root), false)
    }

    pub(super) fn add_data_key(mut self, scope: &KeyScope, key: DataKey, is_primary: bool) -> Self {
        let keys = self.scopes.entry(scope.clone()).or_default();
        let id = key.id();
        // Two primary keys would make writers disagree about the key in use.
        if is_primary && keys.primary.replace(id).is_some() {
            return self.keep_mistake(scope, "has two primary data keys");
        }
        if keys.data.insert(id, Arc::new(key)).is_some() {
            return self.keep_mistake(scope, &format!("has the data key {id} twice"));
        }
        self
    }

    /// Adds the blind token key that makes new blind tokens of a scope.
    ///
    /// ```
    /// use entable_seal::{KeyScope, Keyring, RootKey};
    ///
    /// let scope = KeyScope::default_scope();
    /// let [old, new] = [[7; 32], [8; 32]].map(RootKey::from_bytes);
    ///
    /// let keys = Keyring::builder().primary(&scope, &new).blind_token_key(&scope, 1, &old).build()?;
    /// assert_eq!(keys.blind_token_key(&scope, None)?.version(), 1);
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    #[must_use]
    pub fn blind_token_key(self, scope: &KeyScope, version: u32, root: &RootKey) -> Self {
        self.add_blind_token_key(scope, version, root, true)
    }

    /// Adds a blind token key that is only used to look values up, while blind tokens of two versions
    /// are stored.
    ///
    /// ```
    /// use entable_seal::{KeyScope, Keyring, RootKey};
    ///
    /// let scope = KeyScope::default_scope();
    /// let [old, new] = [[7; 32], [8; 32]].map(RootKey::from_bytes);
    ///
    /// let keys = Keyring::builder().blind_token_key_for_lookups(&scope, 1, &old).blind_token_key(&scope, 2, &new).build()?;
    /// assert_eq!(keys.blind_token_key(&scope, None)?.version(), 2);
    /// assert_eq!(keys.blind_token_key(&scope, Some(1))?.version(), 1);
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    #[must_use]
    pub fn blind_token_key_for_lookups(
        self,
        scope: &KeyScope,
        version: u32,
        root: &RootKey,
    ) -> Self {
        self.add_blind_token_key(scope, version, root, false)
    }

    fn add_blind_token_key(
        mut self,
        scope: &KeyScope,
        version: u32,
        root: &RootKey,
        is_current: bool,
    ) -> Self {
        // A blind token holds the version modulo 4, counted from 1. Version 0 would read as 4.
        if version == 0 {
            return self
                .keep_mistake(scope, "has a blind token key of version 0, versions begin at 1");
        }
        let keys = self.scopes.entry(scope.clone()).or_default();
        if is_current && keys.current.replace(version).is_some() {
            return self.keep_mistake(scope, "has two current blind token keys");
        }
        let key = Arc::new(BlindTokenKey::from_root(root, version));
        if keys.index.insert(version, key).is_some() {
            return self
                .keep_mistake(scope, &format!("has blind token key version {version} twice"));
        }
        self
    }

    /// Sets the function from PartitionKey to key scope. Without one, all rows are in the default scope.
    ///
    /// ```
    /// use entable_seal::{KeyScope, Keyring, RootKey};
    ///
    /// let (scope, root) = (KeyScope::named("HR"), RootKey::from_bytes([7; 32]));
    /// let builder = Keyring::builder().primary(&scope, &root);
    /// let keys = builder.scopes(|partition_key| KeyScope::named(partition_key)).build()?;
    /// assert!(keys.primary_key(&scope).is_ok());
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    #[must_use]
    pub fn scopes(mut self, rule: impl Fn(&str) -> KeyScope + Send + Sync + 'static) -> Self {
        self.rule = Some(Arc::new(rule));
        self
    }

    /// Keeps the first mistake, which [`build`](Self::build) returns.
    fn keep_mistake(mut self, scope: &KeyScope, why: &str) -> Self {
        let message = format!("the scope `{}` {why}", scope.name().escape_debug());
        self.fault.get_or_insert_with(|| Error::new(ErrorKind::Invalid, message));
        self
    }

    /// Builds the keyring.
    ///
    /// ```
    /// use entable_seal::{KeyScope, Keyring, RootKey};
    ///
    /// let (scope, root) = (KeyScope::default_scope(), RootKey::from_bytes([7; 32]));
    /// assert!(Keyring::builder().primary(&scope, &root).build().is_ok());
    /// assert!(Keyring::builder().blind_token_key(&scope, 0, &root).build().unwrap_err().is_invalid());
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_invalid` for two primary keys or two current blind token keys in a scope, a key that is added twice,
    /// or a blind token key of version 0.
    pub fn build(self) -> Result<Keyring> {
        match self.fault {
            Some(fault) => Err(fault),
            None => {
                let (scopes, rule) = (self.scopes.into(), self.rule);
                Ok(Keyring { scopes, rule, has_blind_token_key_per_scope: false })
            }
        }
    }
}
