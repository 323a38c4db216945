//! Options from the types that programs on `azure_data_tables` 0.21 hold.

use std::sync::Arc;

use azure_core_021::auth::{Secret, TokenCredential};
use azure_storage::{
    CloudLocation, StorageCredentials, StorageCredentialsInner, clients::ServiceType,
};
use entable_core::{
    backend::BoxFuture,
    edm::Ticks,
    error::{BoxError, Error, ErrorKind, Result},
};
use zeroize::Zeroizing;

use crate::{
    account_key::AccountKey,
    credential::Credential,
    endpoint::Endpoint,
    options::{AzureOptions, Carrier},
    tokens::{AccessToken, AccessTokenCache, AccessTokenSource},
    wire::encode_query_value,
};

impl AzureOptions {
    /// Uses the location and the credentials of a program on `azure_data_tables` 0.21, and sends requests
    /// through its client. [`carrier`](Self::carrier) can choose another one.
    ///
    /// The credentials are copied: a later `StorageCredentials::replace` has no effect on these options.
    ///
    /// ```
    /// use azure_storage::{CloudLocation, StorageCredentials};
    /// use entable_azure::{Azure, AzureOptions};
    ///
    /// let location = CloudLocation::Emulator { address: "127.0.0.1".into(), port: 10_002 };
    /// let options = AzureOptions::from_storage_credentials(location, StorageCredentials::emulator())?;
    /// let azure = Azure::new(options)?;
    /// assert_eq!(azure.endpoint(), "http://127.0.0.1:10002/devstoreaccount1");
    /// assert!(format!("{azure:?}").contains("AzureDataTables"));
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_invalid` for anonymous credentials, a key that is not base64, or a location without a valid
    /// address; `is_contended` while another task replaces the credentials.
    pub fn from_storage_credentials(
        location: CloudLocation,
        credentials: StorageCredentials,
    ) -> Result<Self> {
        let credentials = credentials.0.try_read().ok_or_else(|| {
            Error::new(ErrorKind::Contended, "the credentials are being replaced; try again")
        })?;
        let url = location.url(ServiceType::Table).map_err(|error| {
            let message = "the location has no valid address";
            Error::new(ErrorKind::Invalid, message).with_source(error)
        })?;
        let mut options = Self::new(credential_of(&credentials)?);
        options.endpoint = Some(Endpoint::parse(url.as_str())?);
        options.account = Some(location.account().to_owned());
        options.carrier = Some(Carrier::AzureDataTables);
        Ok(options)
    }
}

fn credential_of(credentials: &StorageCredentialsInner) -> Result<Credential> {
    match credentials {
        StorageCredentialsInner::Key(account, key) => {
            AccountKey::new(account, key.secret()).map(Credential::Key)
        }
        StorageCredentialsInner::SASToken(pairs) => {
            let pair = |(name, value): &(String, String)| {
                format!("{}={}", encode_query_value(name), encode_query_value(value))
            };
            let query: Vec<String> = pairs.iter().map(pair).collect();
            Credential::sas(&Zeroizing::new(query.join("&")))
        }
        StorageCredentialsInner::BearerToken(token) => {
            Ok(Credential::Token(AccessTokenCache::new(Arc::new(OneToken(token.clone())))))
        }
        StorageCredentialsInner::TokenCredential(source) => {
            let source = OldCredential(Arc::clone(source));
            Ok(Credential::Token(AccessTokenCache::new(Arc::new(source))))
        }
        StorageCredentialsInner::Anonymous => {
            let message = "anonymous credentials cannot open a table; use a key, a SAS or a token";
            Err(Error::new(ErrorKind::Invalid, message))
        }
    }
}

/// A token that the program renews itself.
struct OneToken(Secret);

impl AccessTokenSource for OneToken {
    fn fetch_token<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<AccessToken, BoxError>> {
        let secret = Arc::new(Zeroizing::new(self.0.secret().to_owned()));
        Box::pin(async { Ok(AccessToken { secret, expires: Ticks::MAX }) })
    }
}

/// A credential of `azure_core` 0.21.
struct OldCredential(Arc<dyn TokenCredential>);

impl AccessTokenSource for OldCredential {
    fn fetch_token<'a>(&'a self, scope: &'a str) -> BoxFuture<'a, Result<AccessToken, BoxError>> {
        Box::pin(async move {
            let token = self.0.get_token(&[scope]).await?;
            let secret = Arc::new(Zeroizing::new(token.token.secret().to_owned()));
            Ok(AccessToken { secret, expires: Ticks::try_from(token.expires_on)? })
        })
    }
}
