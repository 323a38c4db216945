//! Credentials of `azure_core` 1.x as sources of tokens.

use std::sync::Arc;

use azure_core::credentials::TokenCredential;
use entable_core::{
    backend::BoxFuture,
    edm::Ticks,
    error::{BoxError, Result},
};
use zeroize::Zeroizing;

use crate::{
    credential::Credential,
    options::AzureOptions,
    tokens::{AccessToken, AccessTokenCache, AccessTokenSource},
};

/// A credential of `azure_core`.
struct AzureCoreCredential(Arc<dyn TokenCredential>);

impl AccessTokenSource for AzureCoreCredential {
    fn fetch_token<'a>(&'a self, scope: &'a str) -> BoxFuture<'a, Result<AccessToken, BoxError>> {
        Box::pin(async move {
            let token = self.0.get_token(&[scope], None).await?;
            let secret = Arc::new(Zeroizing::new(token.token.secret().to_owned()));
            Ok(AccessToken { secret, expires: Ticks::try_from(token.expires_on)? })
        })
    }
}

impl AzureOptions {
    /// Uses an account and a source of Microsoft Entra tokens, such as a credential of the
    /// `azure_identity` crate 1.x. Tokens are kept, shared by all clients of these options, and renewed
    /// five minutes before they expire.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use azure_core::credentials::{AccessToken, TokenRequestOptions};
    /// use entable_azure::{Azure, AzureOptions, TokenCredential};
    ///
    /// /// Returns one token. A program takes `azure_identity::DeveloperToolsCredential::new(None)?` instead.
    /// #[derive(Debug)]
    /// struct OneToken;
    ///
    /// #[async_trait::async_trait]
    /// impl TokenCredential for OneToken {
    ///     async fn get_token(
    ///         &self,
    ///         _scopes: &[&str],
    ///         _options: Option<TokenRequestOptions<'_>>,
    ///     ) -> azure_core::Result<AccessToken> {
    ///         Ok(AccessToken::new("token", time::OffsetDateTime::now_utc()))
    ///     }
    /// }
    ///
    /// let azure = Azure::new(AzureOptions::from_token_credential("myaccount", Arc::new(OneToken))?)?;
    /// assert_eq!(azure.endpoint(), "https://myaccount.table.core.windows.net");
    /// assert!(azure.account_key().is_none());
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_invalid` if the name is not a valid account name.
    pub fn from_token_credential(
        account: &str,
        credential: Arc<dyn TokenCredential>,
    ) -> Result<Self> {
        let tokens = AccessTokenCache::new(Arc::new(AzureCoreCredential(credential)));
        Self::new(Credential::Token(tokens)).with_public_cloud_account(account)
    }
}
