//! Options of the Azure backend: endpoint, credential and time limits.

use std::{fmt, sync::Arc, time::Duration};

use azure_core::{HttpClient, auth::TokenCredential};

use super::{
    account_key::AccountKey,
    connection_string::ConnectionSettings,
    credential::Credential,
    endpoint::{Endpoint, PUBLIC_CLOUD_SUFFIX},
};
use crate::{
    backend::TableCase,
    error::{Error, ErrorKind, Result},
};

/// Options to reach an account of Azure Table storage, Cosmos DB's Table API or the emulator.
///
/// ```
/// use std::time::Duration;
/// use entable::AzureOptions;
///
/// let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
/// let options = AzureOptions::from_account_key("myaccount", key)?
///     .endpoint_suffix("core.chinacloudapi.cn")?
///     .timeout(Duration::from_secs(10));
/// assert!(!format!("{options:?}").contains(key));
/// # Ok::<(), entable::Error>(())
/// ```
#[derive(Clone)]
pub struct AzureOptions {
    pub(super) endpoint: Option<Endpoint>,
    pub(super) queues: Option<Endpoint>,
    pub(super) account: Option<String>,
    pub(super) credential: Credential,
    pub(super) timeout: Duration,
    pub(super) connect_timeout: Duration,
    pub(super) cosmos: Option<bool>,
    pub(super) table_case: Option<TableCase>,
    pub(super) strong_reads: Option<bool>,
    pub(super) http_client: Option<Arc<dyn HttpClient>>,
    pub(super) proxy: Option<reqwest::Proxy>,
    pub(super) root_certificates: Vec<reqwest::Certificate>,
    pub(super) allow_http: bool,
}

impl AzureOptions {
    fn new(credential: Credential) -> Self {
        Self {
            endpoint: None,
            queues: None,
            account: None,
            credential,
            timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(10),
            cosmos: None,
            table_case: None,
            strong_reads: None,
            http_client: None,
            proxy: None,
            root_certificates: Vec::new(),
            allow_http: false,
        }
    }

    /// Reads a connection string as the Azure portal shows it: `AccountName` and `AccountKey`, or
    /// `SharedAccessSignature`, with `TableEndpoint` or `EndpointSuffix`; or
    /// `UseDevelopmentStorage=true`.
    ///
    /// ```
    /// use entable::{Azure, AzureOptions};
    ///
    /// let text = "AccountName=myaccount;AccountKey=AAECAwQ=;EndpointSuffix=core.windows.net";
    /// let azure = Azure::new(AzureOptions::from_connection_string(text)?)?;
    /// assert_eq!(azure.endpoint(), "https://myaccount.table.core.windows.net");
    ///
    /// let incomplete = AzureOptions::from_connection_string("AccountName=myaccount");
    /// assert!(incomplete.is_err_and(|error| error.is_invalid()));
    /// # Ok::<(), entable::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_invalid` if the text contains no endpoint or no credential. The error never quotes the text.
    pub fn from_connection_string(text: &str) -> Result<Self> {
        let settings = ConnectionSettings::parse(text)?;
        let credential = match (settings.key()?, &settings.sas) {
            (Some(key), _) => Credential::Key(key),
            (None, Some(sas)) => Credential::sas(sas)?,
            (None, None) => {
                return Err(invalid_option_error(
                    "the connection string has neither AccountKey nor SharedAccessSignature",
                ));
            }
        };
        let mut options = Self::new(credential);
        options.endpoint = Some(settings.endpoint()?);
        options.queues = settings.given_queue_endpoint()?;
        options.account = settings.account;
        Ok(options)
    }

    /// Uses an account and one of its keys, on the public cloud unless
    /// [`endpoint_suffix`](Self::endpoint_suffix) or [`endpoint`](Self::endpoint) says otherwise.
    ///
    /// ```
    /// use entable::{Azure, AzureOptions};
    ///
    /// let azure = Azure::new(AzureOptions::from_account_key("myaccount", "AAECAwQ=")?)?;
    /// assert_eq!(azure.endpoint(), "https://myaccount.table.core.windows.net");
    /// assert_eq!(azure.account_key().map(|key| key.account()), Some("myaccount"));
    /// # Ok::<(), entable::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_invalid` if the key is not base64 or the name is no account name.
    pub fn from_account_key(account: &str, key: &str) -> Result<Self> {
        let key = AccountKey::new(account, key)?;
        Self::new(Credential::Key(key)).for_account(account)
    }

    /// Uses a shared access signature (SAS): its URL, or its token alone, which also needs
    /// [`account`](Self::account) or [`endpoint`](Self::endpoint).
    ///
    /// ```
    /// use entable::{Azure, AzureOptions};
    ///
    /// let url = "https://myaccount.table.core.windows.net/?sv=2019-02-02&tn=Staff&sp=r&sig=c2ln";
    /// let azure = Azure::new(AzureOptions::from_sas(url)?)?;
    /// assert_eq!(azure.endpoint(), "https://myaccount.table.core.windows.net");
    /// assert!(azure.account_key().is_none());
    /// # Ok::<(), entable::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_invalid` if the text contains no signature. The error never quotes the text.
    pub fn from_sas(sas: &str) -> Result<Self> {
        let (endpoint, token) = match sas.trim().split_once("://") {
            Some(_) => {
                let (address, token) = sas.trim().split_once('?').ok_or_else(|| {
                    invalid_option_error("the SAS URL has no `?` with a token behind it")
                })?;
                (Some(Endpoint::parse(address)?), token)
            }
            None => (None, sas.trim()),
        };
        let mut options = Self::new(Credential::sas(token)?);
        options.endpoint = endpoint;
        Ok(options)
    }

    /// Uses an account and a source of Microsoft Entra tokens, such as a credential of the
    /// `azure_identity` crate.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use azure_core::auth::{AccessToken, TokenCredential};
    /// use entable::{Azure, AzureOptions};
    ///
    /// /// Returns one token. A program takes `azure_identity::create_default_credential()` instead.
    /// #[derive(Debug)]
    /// struct OneToken;
    ///
    /// #[async_trait::async_trait]
    /// impl TokenCredential for OneToken {
    ///     async fn get_token(&self, _scopes: &[&str]) -> azure_core::Result<AccessToken> {
    ///         Ok(AccessToken::new("token", time::OffsetDateTime::now_utc()))
    ///     }
    ///     async fn clear_cache(&self) -> azure_core::Result<()> {
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let azure = Azure::new(AzureOptions::from_token_credential("myaccount", Arc::new(OneToken))?)?;
    /// assert_eq!(azure.endpoint(), "https://myaccount.table.core.windows.net");
    /// assert!(azure.account_key().is_none());
    /// # Ok::<(), entable::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_invalid` if the name is no account name.
    pub fn from_token_credential(
        account: &str,
        credential: Arc<dyn TokenCredential>,
    ) -> Result<Self> {
        Self::new(Credential::Token(credential)).for_account(account)
    }

    /// Uses the emulator at its default address, `http://127.0.0.1:10002`.
    ///
    /// ```
    /// use entable::{Azure, AzureOptions};
    ///
    /// let azure = Azure::new(AzureOptions::emulator())?;
    /// assert_eq!(azure.endpoint(), "http://127.0.0.1:10002/devstoreaccount1");
    /// # Ok::<(), entable::Error>(())
    /// ```
    pub fn emulator() -> Self {
        let mut options = Self::new(Credential::Key(AccountKey::emulator()));
        options.endpoint = Some(Endpoint::emulator());
        options
    }

    fn for_account(mut self, account: &str) -> Result<Self> {
        self.endpoint = Some(Endpoint::for_account("https", account, PUBLIC_CLOUD_SUFFIX)?);
        self.account = Some(account.to_owned());
        Ok(self)
    }

    /// Sets the account, for a SAS token without a URL.
    ///
    /// ```
    /// use entable::{Azure, AzureOptions};
    ///
    /// let options = AzureOptions::from_sas("sv=2019-02-02&tn=Staff&sp=r&sig=c2ln")?;
    /// assert!(Azure::new(options.clone()).is_err_and(|error| error.is_invalid()), "no account");
    /// let azure = Azure::new(options.account("myaccount")?)?;
    /// assert_eq!(azure.endpoint(), "https://myaccount.table.core.windows.net");
    /// # Ok::<(), entable::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_invalid` if the name is no account name.
    pub fn account(self, account: &str) -> Result<Self> {
        self.for_account(account)
    }

    /// Sets the endpoint suffix of another cloud, such as `core.chinacloudapi.cn` or
    /// `core.usgovcloudapi.net`.
    ///
    /// ```
    /// use entable::{Azure, AzureOptions};
    ///
    /// let options = AzureOptions::from_account_key("myaccount", "AAECAwQ=")?;
    /// let azure = Azure::new(options.endpoint_suffix("core.chinacloudapi.cn")?)?;
    /// assert_eq!(azure.endpoint(), "https://myaccount.table.core.chinacloudapi.cn");
    /// # Ok::<(), entable::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_invalid` if the options do not name an account yet, or if the suffix makes no valid
    /// address.
    pub fn endpoint_suffix(mut self, suffix: &str) -> Result<Self> {
        let account = self.account.as_deref().ok_or_else(|| {
            invalid_option_error(
                "an endpoint suffix needs an account; name it first, or give the whole endpoint",
            )
        })?;
        self.endpoint = Some(Endpoint::for_account("https", account, suffix)?);
        Ok(self)
    }

    /// Sets the whole table endpoint, such as `http://127.0.0.1:10002/devstoreaccount1`.
    ///
    /// ```
    /// use entable::{Azure, AzureOptions};
    ///
    /// let options = AzureOptions::from_account_key("myaccount", "AAECAwQ=")?;
    /// let azure = Azure::new(options.endpoint("https://tables.example.com/")?)?;
    /// assert_eq!(azure.endpoint(), "https://tables.example.com");
    /// # Ok::<(), entable::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_invalid` if the text is no http or https address, names a user, or has an IP address or a host
    /// without a dot and no account in its path.
    pub fn endpoint(mut self, endpoint: &str) -> Result<Self> {
        self.endpoint = Some(Endpoint::parse(endpoint)?);
        Ok(self)
    }

    /// Sets the whole queue endpoint, such as `http://127.0.0.1:10001/devstoreaccount1`. By default it is
    /// the table endpoint with `queue` in place of `table`.
    ///
    /// ```
    /// use entable::{Azure, AzureOptions};
    ///
    /// let emulator = AzureOptions::emulator();
    /// assert!(emulator.clone().queue_endpoint("127.0.0.1:10001").is_err_and(|error| error.is_invalid()));
    /// let azure = Azure::new(emulator.queue_endpoint("http://127.0.0.1:10001/devstoreaccount1")?)?;
    /// assert_eq!(azure.endpoint(), "http://127.0.0.1:10002/devstoreaccount1");
    /// # Ok::<(), entable::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_invalid` if the text is no http or https address, names a user, or has an IP address or a host
    /// without a dot and no account in its path.
    #[cfg(feature = "azure-queue")]
    pub fn queue_endpoint(mut self, endpoint: &str) -> Result<Self> {
        self.queues = Some(Endpoint::parse(endpoint)?);
        Ok(self)
    }

    /// Sets how long a request may take from the first byte sent to the last byte read; 30 s by default.
    ///
    /// ```
    /// use std::time::Duration;
    /// use entable::AzureOptions;
    ///
    /// let options = AzureOptions::emulator().timeout(Duration::from_secs(5));
    /// assert!(format!("{options:?}").contains("timeout: 5s"));
    /// ```
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how long a connection may take to open; 10 s by default.
    ///
    /// ```
    /// use std::time::Duration;
    /// use entable::{Azure, AzureOptions};
    ///
    /// let options = AzureOptions::emulator().connect_timeout(Duration::from_millis(500));
    /// assert!(format!("{options:?}").contains("timeout: 30s"), "that of requests stays");
    /// assert!(Azure::new(options).is_ok());
    /// ```
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets whether the endpoint is Cosmos DB's Table API. By default, the address of the endpoint
    /// decides. This setting overrides it, for an address that does not show the service.
    ///
    /// ```
    /// use entable::{Azure, AzureOptions};
    ///
    /// let options = AzureOptions::from_account_key("myaccount", "AAECAwQ=")?;
    /// let cosmos = options.clone().endpoint("https://tables.example.com")?.cosmos(true);
    /// assert!(Azure::new(cosmos)?.is_cosmos());
    ///
    /// let told = options.endpoint("https://myaccount.table.cosmos.azure.com")?;
    /// assert!(Azure::new(told)?.is_cosmos(), "its address tells");
    /// # Ok::<(), entable::Error>(())
    /// ```
    #[must_use]
    pub fn cosmos(mut self, cosmos: bool) -> Self {
        self.cosmos = Some(cosmos);
        self
    }

    /// Sets whether names that differ in case alone mean one table. By default, case counts on Cosmos
    /// DB and on emulators, which are recognised by the account in the path of the address or by a host
    /// under `.localhost`. Elsewhere, case does not count. Set `Sensitive` for an emulator that is
    /// reached under another address: otherwise two entities could hold one unique value.
    ///
    /// ```
    /// use entable::{Azure, AzureOptions, backend::{Backend, TableCase}};
    ///
    /// let emulator = AzureOptions::emulator();
    /// assert_eq!(Azure::new(emulator.clone())?.capabilities().table_case, TableCase::Sensitive);
    /// let service = emulator.table_case(TableCase::Insensitive);
    /// assert_eq!(Azure::new(service)?.capabilities().table_case, TableCase::Insensitive);
    /// # Ok::<(), entable::Error>(())
    /// ```
    #[must_use]
    pub fn table_case(mut self, case: TableCase) -> Self {
        self.table_case = Some(case);
        self
    }

    /// Sets whether each read shows every write that was acknowledged before. The default is `true`,
    /// but `false` on Cosmos DB, whose default consistency level lets reads lag behind the writes of
    /// other clients. Set `true` for an account whose level is strong.
    ///
    /// Without such reads, unique values in other partitions and moves between partitions are refused
    /// with `is_unsupported`, and workers take no partition out of the directory of open work.
    ///
    /// ```
    /// use entable::{Azure, AzureOptions, backend::Backend};
    ///
    /// let options = AzureOptions::from_account_key("myaccount", "AAECAwQ=")?;
    /// let options = options.endpoint("https://myaccount.table.cosmos.azure.com")?;
    /// assert!(!Azure::new(options.clone())?.capabilities().strong_reads);
    /// assert!(Azure::new(options.strong_reads(true))?.capabilities().strong_reads);
    /// # Ok::<(), entable::Error>(())
    /// ```
    #[must_use]
    pub fn strong_reads(mut self, strong: bool) -> Self {
        self.strong_reads = Some(strong);
        self
    }

    /// Permits an account key or a SAS over `http://` to another machine. Without this setting,
    /// `http://` needs a loopback address. Whoever sees a request over `http://` can change it. Whoever
    /// sees a SAS can also make other requests with it. Tokens of Microsoft Entra need `https://` in
    /// any case.
    ///
    /// ```
    /// use entable::{Azure, AzureOptions};
    ///
    /// let options = AzureOptions::from_account_key("myaccount", "AAECAwQ=")?;
    /// let options = options.endpoint("http://tables.example.com")?;
    /// assert!(Azure::new(options.clone()).is_err_and(|error| error.is_invalid()));
    /// assert_eq!(Azure::new(options.allow_http())?.endpoint(), "http://tables.example.com");
    /// # Ok::<(), entable::Error>(())
    /// ```
    #[must_use]
    pub fn allow_http(mut self) -> Self {
        self.allow_http = true;
        self
    }

    /// Sends requests through an HTTP proxy, such as `http://proxy.example.com:3128`, in place of the
    /// proxy that the environment names. Without this setting, requests to a loopback address use no
    /// proxy.
    ///
    /// ```
    /// use entable::{Azure, AzureOptions};
    ///
    /// let options = AzureOptions::emulator().proxy("http://proxy.example.com:3128")?;
    /// assert!(Azure::new(options).is_ok());
    /// let wrong = AzureOptions::emulator().proxy("http://:secret");
    /// assert!(wrong.is_err_and(|error| !error.to_string().contains("secret")));
    /// # Ok::<(), entable::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_invalid` if the text is no address. The error never quotes it, since it may hold a password.
    pub fn proxy(mut self, address: &str) -> Result<Self> {
        let proxy = reqwest::Proxy::all(address.trim());
        self.proxy =
            Some(proxy.map_err(|_| invalid_option_error("the address of the proxy is not valid"))?);
        Ok(self)
    }

    /// Trusts a further root certificate, in PEM form, besides those that are built in.
    ///
    /// ```
    /// use entable::AzureOptions;
    ///
    /// let wrong = AzureOptions::emulator().root_certificate(b"no certificate");
    /// assert!(wrong.is_err_and(|error| error.is_invalid()));
    /// # Ok::<(), entable::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_invalid` if the bytes are no certificate.
    pub fn root_certificate(mut self, pem: &[u8]) -> Result<Self> {
        let certificates = reqwest::Certificate::from_pem_bundle(pem);
        let certificates = certificates
            .ok()
            .filter(|found| !found.is_empty())
            .ok_or_else(|| invalid_option_error("the text has no certificate in PEM form"))?;
        self.root_certificates.extend(certificates);
        Ok(self)
    }

    /// Sets another HTTP client, for a transport of the program's own or a test.
    ///
    /// The time limit of requests, their signatures and the limits of answers still apply. The given
    /// client has to check certificates. It must not follow redirects, since a signature would go
    /// along. It must not repeat requests, since an insert that succeeded would then fail with
    /// `Conflict`. It must not write URLs or headers to a log, nor quote URLs in errors, since a SAS
    /// is part of a URL. [`connect_timeout`](Self::connect_timeout), [`proxy`](Self::proxy) and
    /// [`root_certificate`](Self::root_certificate) have no effect on it.
    ///
    /// ```
    /// use std::sync::{Arc, atomic::{AtomicU32, Ordering}};
    /// use entable::{Azure, AzureOptions, prelude::*};
    ///
    /// /// Counts the requests and lets them fail.
    /// #[derive(Debug, Default)]
    /// struct Offline(AtomicU32);
    ///
    /// #[async_trait::async_trait]
    /// impl azure_core::HttpClient for Offline {
    ///     async fn execute_request(
    ///         &self,
    ///         _request: &azure_core::Request,
    ///     ) -> azure_core::Result<azure_core::Response> {
    ///         self.0.fetch_add(1, Ordering::Relaxed);
    ///         Err(azure_core::Error::message(azure_core::error::ErrorKind::Io, "offline"))
    ///     }
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let transport = Arc::new(Offline::default());
    /// let options = AzureOptions::emulator().http_client(transport.clone());
    /// let client = Client::builder().backend(Azure::new(options)?).build()?;
    /// let refused = client.create_table("Staff").await;
    /// assert!(refused.is_err());
    /// assert_eq!(transport.0.load(Ordering::Relaxed), 1);
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), BoxError>(())
    /// ```
    #[must_use]
    pub fn http_client(mut self, client: Arc<dyn HttpClient>) -> Self {
        self.http_client = Some(client);
        self
    }
}

impl fmt::Debug for AzureOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AzureOptions")
            .field("endpoint", &self.endpoint.as_ref().map(|endpoint| &*endpoint.url))
            .field("credential", &self.credential)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

fn invalid_option_error(message: &str) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    fn url(options: Result<AzureOptions>) -> String {
        options.unwrap().endpoint.unwrap().url
    }

    #[test]
    fn every_form_of_connection_string_is_read() {
        let public = format!(
            "DefaultEndpointsProtocol=https;AccountName=me;AccountKey={KEY};EndpointSuffix=core.windows.net"
        );
        assert_eq!(
            url(AzureOptions::from_connection_string(&public)),
            "https://me.table.core.windows.net"
        );
        let china = format!("accountname=me;accountkey={KEY};endpointsuffix=core.chinacloudapi.cn");
        assert_eq!(
            url(AzureOptions::from_connection_string(&china)),
            "https://me.table.core.chinacloudapi.cn"
        );
        let sas = "TableEndpoint=https://me.table.core.windows.net/;SharedAccessSignature=sv=2019-02-02&sig=a%3D";
        assert_eq!(
            url(AzureOptions::from_connection_string(sas)),
            "https://me.table.core.windows.net"
        );
        let emulator = AzureOptions::from_connection_string("UseDevelopmentStorage=true");
        assert_eq!(url(emulator), url(Ok(AzureOptions::emulator())));
        assert_eq!(url(Ok(AzureOptions::emulator())), "http://127.0.0.1:10002/devstoreaccount1");
    }

    #[test]
    fn a_connection_string_without_credential_or_endpoint_is_refused() {
        for wrong in [
            "",
            "AccountName=me",
            "AccountKey=AAAA",
            "SharedAccessSignature=sig=x",
            "TableEndpoint=https://me.table.core.windows.net",
            "nonsense",
            "AccountName=me;AccountKey=???;EndpointSuffix=core.windows.net",
        ] {
            assert!(
                AzureOptions::from_connection_string(wrong).unwrap_err().is_invalid(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_sas_is_read_as_url_and_as_token() {
        let sas =
            AzureOptions::from_sas("https://me.table.core.windows.net/People?sv=1&sig=s3cret")
                .unwrap();
        assert_eq!(sas.endpoint.clone().unwrap().url, "https://me.table.core.windows.net");
        assert!(!format!("{sas:?}").contains("s3cret"));
        let token = AzureOptions::from_sas("?sv=1&sig=s3cret").unwrap().account("me").unwrap();
        assert_eq!(token.endpoint.unwrap().url, "https://me.table.core.windows.net");
        let error =
            AzureOptions::from_sas("https://me.table.core.windows.net/People?s3cret").unwrap_err();
        assert!(error.is_invalid() && !format!("{error:?}").contains("s3cret"));
    }
}
