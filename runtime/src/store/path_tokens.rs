//! Adds blind tokens to the keys of paths.

use std::borrow::Cow;

use futures_util::future::BoxFuture;

use super::rows::Store;
use crate::{
    entity::{Schema, UntypedPath},
    error::{Error, ErrorKind, Result},
};

impl Store {
    /// Adds blind tokens to the keys of a path. May fetch blind token keys. `schema` is the type that the path's keys
    /// belong to. Returns a path without `{..:hmac}` parts unchanged.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` if the path needs tokens and has no type, and with the errors of the key provider.
    pub(crate) async fn path_with_key_tokens<'a>(
        &self,
        schema: Option<&'static Schema>,
        access: &'a UntypedPath,
    ) -> Result<Cow<'a, UntypedPath>> {
        if !access.needs_key_tokens() {
            return Ok(Cow::Borrowed(access));
        }
        // Boxed because few paths need tokens, and the future of every verb would reserve space for them.
        self.fill_key_tokens_boxed(schema, access).await.map(Cow::Owned)
    }

    // In a function of its own, so that programs do not compile the lookup of keys.
    fn fill_key_tokens_boxed<'r>(
        &'r self,
        schema: Option<&'static Schema>,
        access: &'r UntypedPath,
    ) -> BoxFuture<'r, Result<UntypedPath>> {
        Box::pin(self.fill_key_tokens(schema, access))
    }

    async fn fill_key_tokens(
        &self,
        schema: Option<&'static Schema>,
        access: &UntypedPath,
    ) -> Result<UntypedPath> {
        let Some(schema) = schema else {
            let message =
                "the path's keys contain a blind token, which only a typed query can make";
            return Err(Error::new(ErrorKind::Invalid, message));
        };
        let tokens = self.shared_token_maker().await?;
        let fill = || tokens.fill_tokens_of_path(schema, access);
        self.run_with_blind_token_keys(&tokens, fill).await
    }

    /// Adds blind tokens to the keys of a path for a read. Returns `None` if all keys of the rows' scope are
    /// permanently deleted, because a lookup by blind token then finds nothing.
    ///
    /// # Errors
    ///
    /// Fails as [`path_with_key_tokens`](Self::path_with_key_tokens) does.
    pub(crate) async fn path_for_lookup(
        &self,
        schema: Option<&'static Schema>,
        access: &UntypedPath,
    ) -> Result<Option<UntypedPath>> {
        match self.fill_key_tokens(schema, access).await {
            Err(error) if self.is_lookup_of_shredded_scope(&error, access, &None).await => Ok(None),
            keyed => keyed.map(Some),
        }
    }
}
