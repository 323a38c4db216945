//! Options of the Azure backend: endpoint, credential and time limits.

use std::{fmt, sync::Arc, time::Duration};

use entable_core::{
    backend::TableCase,
    error::{Error, ErrorKind, Result},
};

use crate::{
    account_key::AccountKey,
    connection_string::ConnectionSettings,
    credential::Credential,
    endpoint::{Endpoint, PUBLIC_CLOUD_SUFFIX},
    http_settings::{HttpSettings, certificates_of_pem, check_proxy_address},
    transport::Transport,
};

/// Options to reach an account of Azure Table storage, Cosmos DB's Table API or the emulator.
///
/// ```
/// use std::time::Duration;
/// use entable_azure::AzureOptions;
///
/// let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
/// let options = AzureOptions::from_account_key("myaccount", key)?
///     .endpoint_suffix("core.chinacloudapi.cn")?
///     .timeout(Duration::from_secs(10));
/// assert!(!format!("{options:?}").contains(key));
/// # Ok::<(), entable_core::Error>(())
/// ```
#[derive(Clone)]
pub struct AzureOptions {
    pub(crate) endpoint: Option<Endpoint>,
    pub(crate) queues: Option<Endpoint>,
    pub(crate) secondary: Option<Endpoint>,
    pub(crate) account: Option<String>,
    pub(crate) credential: Credential,
    pub(crate) timeout: Duration,
    pub(crate) http: HttpSettings,
    pub(crate) carrier: Option<Carrier>,
    pub(crate) transport: Option<Arc<dyn Transport>>,
    pub(crate) wrap: Option<Arc<WrapTransport>>,
    pub(crate) scope: Option<String>,
    pub(crate) cosmos: Option<bool>,
    pub(crate) table_case: Option<TableCase>,
    pub(crate) strong_reads: Option<bool>,
    pub(crate) allow_http: bool,
}

/// The library that carries the requests to the service, for
/// [`AzureOptions::carrier`]. Each needs its feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Carrier {
    /// `reqwest`: feature `azure`.
    #[cfg(feature = "azure")]
    Reqwest,
    /// The client of `azure_data_tables` 0.21: feature `azure-data-tables`.
    #[cfg(feature = "azure-data-tables")]
    AzureDataTables,
}

pub(crate) type WrapTransport = dyn Fn(Arc<dyn Transport>) -> Arc<dyn Transport> + Send + Sync;

impl AzureOptions {
    pub(crate) fn new(credential: Credential) -> Self {
        Self {
            endpoint: None,
            queues: None,
            secondary: None,
            account: None,
            credential,
            timeout: Duration::from_secs(30),
            http: HttpSettings::default(),
            carrier: None,
            transport: None,
            wrap: None,
            scope: None,
            cosmos: None,
            table_case: None,
            strong_reads: None,
            allow_http: false,
        }
    }

    /// Reads a connection string as the Azure portal shows it: `AccountName` and `AccountKey`, or
    /// `SharedAccessSignature`, with `TableEndpoint` or `EndpointSuffix`; or
    /// `UseDevelopmentStorage=true`.
    ///
    /// ```
    /// use entable_azure::{Azure, AzureOptions};
    ///
    /// let text = "AccountName=myaccount;AccountKey=AAECAwQ=;EndpointSuffix=core.windows.net";
    /// let azure = Azure::new(AzureOptions::from_connection_string(text)?)?;
    /// assert_eq!(azure.endpoint(), "https://myaccount.table.core.windows.net");
    ///
    /// let incomplete = AzureOptions::from_connection_string("AccountName=myaccount");
    /// assert!(incomplete.is_err_and(|error| error.is_invalid()));
    /// # Ok::<(), entable_core::Error>(())
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
    /// use entable_azure::{Azure, AzureOptions};
    ///
    /// let azure = Azure::new(AzureOptions::from_account_key("myaccount", "AAECAwQ=")?)?;
    /// assert_eq!(azure.endpoint(), "https://myaccount.table.core.windows.net");
    /// assert_eq!(azure.account_key().map(|key| key.account()), Some("myaccount"));
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_invalid` if the key is not base64 or the name is not a valid account name.
    pub fn from_account_key(account: &str, key: &str) -> Result<Self> {
        let key = AccountKey::new(account, key)?;
        Self::new(Credential::Key(key)).with_public_cloud_account(account)
    }

    /// Uses a shared access signature (SAS): its URL, or its token alone, which also needs
    /// [`account`](Self::account) or [`endpoint`](Self::endpoint).
    ///
    /// ```
    /// use entable_azure::{Azure, AzureOptions};
    ///
    /// let url = "https://myaccount.table.core.windows.net/?sv=2019-02-02&tn=Staff&sp=r&sig=c2ln";
    /// let azure = Azure::new(AzureOptions::from_sas(url)?)?;
    /// assert_eq!(azure.endpoint(), "https://myaccount.table.core.windows.net");
    /// assert!(azure.account_key().is_none());
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_invalid` if the text contains no signature, or if its URL is not a valid endpoint. The error never quotes
    /// the token.
    pub fn from_sas(sas: &str) -> Result<Self> {
        let (endpoint, token) = match sas.trim().split_once("://") {
            Some(_) => {
                let (address, token) = sas.trim().split_once('?').ok_or_else(|| {
                    invalid_option_error("expected a SAS URL with `?` and a token, found no token")
                })?;
                (Some(Endpoint::parse(address)?), token)
            }
            None => (None, sas.trim()),
        };
        let mut options = Self::new(Credential::sas(token)?);
        options.endpoint = endpoint;
        Ok(options)
    }

    /// Uses the emulator at its default address, `http://127.0.0.1:10002`.
    ///
    /// ```
    /// use entable_azure::{Azure, AzureOptions};
    ///
    /// let azure = Azure::new(AzureOptions::emulator())?;
    /// assert_eq!(azure.endpoint(), "http://127.0.0.1:10002/devstoreaccount1");
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    pub fn emulator() -> Self {
        let mut options = Self::new(Credential::Key(AccountKey::emulator()));
        options.endpoint = Some(Endpoint::emulator());
        options
    }

    pub(crate) fn with_public_cloud_account(mut self, account: &str) -> Result<Self> {
        self.endpoint = Some(Endpoint::for_account("https", account, PUBLIC_CLOUD_SUFFIX)?);
        self.account = Some(account.to_owned());
        Ok(self)
    }

    /// Sets the account, for a SAS token without a URL.
    ///
    /// ```
    /// use entable_azure::{Azure, AzureOptions};
    ///
    /// let options = AzureOptions::from_sas("sv=2019-02-02&tn=Staff&sp=r&sig=c2ln")?;
    /// assert!(Azure::new(options.clone()).is_err_and(|error| error.is_invalid()), "no account");
    /// let azure = Azure::new(options.account("myaccount")?)?;
    /// assert_eq!(azure.endpoint(), "https://myaccount.table.core.windows.net");
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_invalid` if the name is not a valid account name.
    pub fn account(self, account: &str) -> Result<Self> {
        self.with_public_cloud_account(account)
    }

    /// Sets the endpoint suffix of another cloud, such as `core.chinacloudapi.cn` or
    /// `core.usgovcloudapi.net`.
    ///
    /// ```
    /// use entable_azure::{Azure, AzureOptions};
    ///
    /// let options = AzureOptions::from_account_key("myaccount", "AAECAwQ=")?;
    /// let azure = Azure::new(options.endpoint_suffix("core.chinacloudapi.cn")?)?;
    /// assert_eq!(azure.endpoint(), "https://myaccount.table.core.chinacloudapi.cn");
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_invalid` if the options do not name an account yet, or if the suffix makes no valid
    /// address.
    pub fn endpoint_suffix(mut self, suffix: &str) -> Result<Self> {
        let account = self.account.as_deref().ok_or_else(|| {
            invalid_option_error(
                "an endpoint suffix needs an account; give the account first, or give the whole endpoint",
            )
        })?;
        self.endpoint = Some(Endpoint::for_account("https", account, suffix)?);
        Ok(self)
    }

    /// Sets the whole table endpoint, such as `http://127.0.0.1:10002/devstoreaccount1`.
    ///
    /// ```
    /// use entable_azure::{Azure, AzureOptions};
    ///
    /// let options = AzureOptions::from_account_key("myaccount", "AAECAwQ=")?;
    /// let azure = Azure::new(options.endpoint("https://tables.example.com/")?)?;
    /// assert_eq!(azure.endpoint(), "https://tables.example.com");
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_invalid` if the text is not an http or https address, contains a user name, or has an IP address or a host
    /// without a dot and no account in its path.
    pub fn endpoint(mut self, endpoint: &str) -> Result<Self> {
        self.endpoint = Some(Endpoint::parse(endpoint)?);
        Ok(self)
    }

    /// Sets the whole queue endpoint, such as `http://127.0.0.1:10001/devstoreaccount1`. By default it is
    /// the table endpoint with `queue` in place of `table`.
    ///
    /// ```
    /// use entable_azure::{Azure, AzureOptions};
    ///
    /// let emulator = AzureOptions::emulator();
    /// assert!(emulator.clone().queue_endpoint("127.0.0.1:10001").is_err_and(|error| error.is_invalid()));
    /// let azure = Azure::new(emulator.queue_endpoint("http://127.0.0.1:10001/devstoreaccount1")?)?;
    /// assert_eq!(azure.endpoint(), "http://127.0.0.1:10002/devstoreaccount1");
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_invalid` if the text is not an http or https address, contains a user name, or has an IP address or a host
    /// without a dot and no account in its path.
    #[cfg(feature = "azure-queue")]
    pub fn queue_endpoint(mut self, endpoint: &str) -> Result<Self> {
        self.queues = Some(Endpoint::parse(endpoint)?);
        Ok(self)
    }

    /// Sets the whole table endpoint of the account's read-only copy in another region, for
    /// [`PrimaryThenSecondary`](crate::PrimaryThenSecondary). By default it is the table endpoint with
    /// `-secondary` behind the account.
    ///
    /// ```
    /// use entable_azure::{AzureOptions, PrimaryThenSecondary};
    ///
    /// let options = AzureOptions::from_account_key("myaccount", "AAECAwQ=")?
    ///     .endpoint("https://tables.example.com")?;
    /// assert!(PrimaryThenSecondary::new(options.clone()).is_err_and(|error| error.is_invalid()));
    /// let options = options.secondary_endpoint("https://copy.example.com")?;
    /// assert_eq!(PrimaryThenSecondary::new(options)?.secondary_endpoint(), "https://copy.example.com");
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_invalid` if the text is not an http or https address, contains a user name, or has an IP address or a host
    /// without a dot and no account in its path.
    pub fn secondary_endpoint(mut self, endpoint: &str) -> Result<Self> {
        self.secondary = Some(Endpoint::parse(endpoint)?);
        Ok(self)
    }

    /// Sets how long a request may take from the first byte sent to the last byte read; 30 s by default.
    ///
    /// ```
    /// use std::time::Duration;
    /// use entable_azure::AzureOptions;
    ///
    /// let options = AzureOptions::emulator().timeout(Duration::from_secs(5));
    /// assert!(format!("{options:?}").contains("timeout: 5s"));
    /// ```
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how long a connection may take to open. The default is 10 s.
    ///
    /// ```
    /// use std::time::Duration;
    /// use entable_azure::{Azure, AzureOptions};
    ///
    /// let options = AzureOptions::emulator().connect_timeout(Duration::from_millis(500));
    /// assert!(format!("{options:?}").contains("timeout: 30s"), "that of requests stays");
    /// assert!(Azure::new(options).is_ok());
    /// ```
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.http.connect_timeout = timeout;
        self
    }

    /// Sets the scope of Microsoft Entra tokens, in place of the one that follows from the endpoint:
    /// `https://storage.azure.com/.default` for storage accounts of every cloud, and for Cosmos DB
    /// `https://cosmos.azure.com/.default`, or its counterpart in the clouds of China and the US government.
    ///
    /// ```
    /// use entable_azure::AzureOptions;
    ///
    /// let options = AzureOptions::emulator().token_scope("https://storage.azure.us/.default");
    /// assert!(format!("{options:?}").contains("storage.azure.us"));
    /// ```
    #[must_use]
    pub fn token_scope(mut self, scope: impl Into<String>) -> Self {
        self.scope = Some(scope.into());
        self
    }

    /// Sets the library that carries the requests. Needed only if a program has both the features `azure`
    /// and `azure-data-tables`, and wants the second; otherwise it is the one that is there.
    ///
    #[cfg_attr(feature = "azure", doc = "```")]
    #[cfg_attr(not(feature = "azure"), doc = "```ignore")]
    /// use entable_azure::{Azure, AzureOptions, Carrier};
    ///
    /// let azure = Azure::new(AzureOptions::emulator().carrier(Carrier::Reqwest))?;
    /// assert!(format!("{azure:?}").contains("Reqwest"));
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    #[must_use]
    pub fn carrier(mut self, carrier: Carrier) -> Self {
        self.carrier = Some(carrier);
        self
    }

    /// Sets whether the endpoint is Cosmos DB's Table API. By default, the address of the endpoint
    /// decides. This setting overrides it, for an address that does not show the service.
    ///
    /// ```
    /// use entable_azure::{Azure, AzureOptions};
    ///
    /// let options = AzureOptions::from_account_key("myaccount", "AAECAwQ=")?;
    /// let cosmos = options.clone().endpoint("https://tables.example.com")?.cosmos(true);
    /// assert!(Azure::new(cosmos)?.is_cosmos());
    ///
    /// let told = options.endpoint("https://myaccount.table.cosmos.azure.com")?;
    /// assert!(Azure::new(told)?.is_cosmos(), "its address tells");
    /// # Ok::<(), entable_core::Error>(())
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
    /// use entable_azure::{Azure, AzureOptions};
    /// use entable_core::backend::{Backend, TableCase};
    ///
    /// let emulator = AzureOptions::emulator();
    /// assert_eq!(Azure::new(emulator.clone())?.capabilities().table_case, TableCase::Sensitive);
    /// let service = emulator.table_case(TableCase::Insensitive);
    /// assert_eq!(Azure::new(service)?.capabilities().table_case, TableCase::Insensitive);
    /// # Ok::<(), entable_core::Error>(())
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
    /// use entable_azure::{Azure, AzureOptions};
    /// use entable_core::backend::Backend;
    ///
    /// let options = AzureOptions::from_account_key("myaccount", "AAECAwQ=")?;
    /// let options = options.endpoint("https://myaccount.table.cosmos.azure.com")?;
    /// assert!(!Azure::new(options.clone())?.capabilities().strong_reads);
    /// assert!(Azure::new(options.strong_reads(true))?.capabilities().strong_reads);
    /// # Ok::<(), entable_core::Error>(())
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
    /// use entable_azure::{Azure, AzureOptions};
    ///
    /// let options = AzureOptions::from_account_key("myaccount", "AAECAwQ=")?;
    /// let options = options.endpoint("http://tables.example.com")?;
    /// assert!(Azure::new(options.clone()).is_err_and(|error| error.is_invalid()));
    /// assert_eq!(Azure::new(options.allow_http())?.endpoint(), "http://tables.example.com");
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    #[must_use]
    pub fn allow_http(mut self) -> Self {
        self.allow_http = true;
        self
    }

    /// Sends requests through an HTTP proxy, such as `http://proxy.example.com:3128`, in place of the proxy set in the
    /// environment. Without this setting, requests to a loopback address use no proxy.
    ///
    /// ```
    /// use entable_azure::{Azure, AzureOptions};
    ///
    /// assert!(AzureOptions::emulator().proxy("http://proxy.example.com:3128").is_ok());
    /// let wrong = AzureOptions::emulator().proxy("http://:secret");
    /// assert!(wrong.is_err_and(|error| !error.to_string().contains("secret")));
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_invalid` if the text is not an address. The error never quotes it, since it may hold a password.
    pub fn proxy(mut self, address: &str) -> Result<Self> {
        self.http.proxy = Some(check_proxy_address(address)?);
        Ok(self)
    }

    /// Trusts further root certificates, in PEM form, besides those that are built in.
    ///
    /// ```
    /// use entable_azure::AzureOptions;
    ///
    /// let wrong = AzureOptions::emulator().root_certificate(b"no certificate");
    /// assert!(wrong.is_err_and(|error| error.is_invalid()));
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_invalid` if the text contains no certificate in PEM form. `Azure::new` refuses bytes that are
    /// no certificate.
    pub fn root_certificate(mut self, pem: &[u8]) -> Result<Self> {
        self.http.root_certificates.extend(certificates_of_pem(pem)?);
        Ok(self)
    }

    /// Sets the HTTP client, for a transport of the program's own or a test.
    ///
    /// [`Transport`] lists what the client has to keep. The time limit of requests, their signatures and
    /// the checks of answers still apply. [`connect_timeout`](Self::connect_timeout),
    /// [`proxy`](Self::proxy), [`root_certificate`](Self::root_certificate) and
    /// [`carrier`](Self::carrier) have no effect on it.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use entable_azure::{Azure, AzureOptions, HttpAnswer, HttpRequest, SendFailure, Transport};
    /// use entable_core::{BoxError, Error, backend::{Backend, BoxFuture, TableRequest}};
    ///
    /// /// Answers that every table exists already.
    /// #[derive(Debug)]
    /// struct Full;
    ///
    /// impl Transport for Full {
    ///     fn send<'a>(&'a self, _: &'a HttpRequest) -> BoxFuture<'a, Result<HttpAnswer, SendFailure>> {
    ///         let answer = HttpAnswer::new(409).with_header("x-ms-error-code", "TableAlreadyExists");
    ///         Box::pin(async { Ok(answer) })
    ///     }
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let azure = Azure::new(AzureOptions::emulator().transport(Arc::new(Full)))?;
    /// let created = azure.tables(TableRequest::Create("Staff")).await;
    /// assert!(created.is_err_and(|error| error.is_conflict()));
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), BoxError>(())
    /// ```
    #[must_use]
    pub fn transport(mut self, transport: Arc<dyn Transport>) -> Self {
        self.transport = Some(transport);
        self
    }

    /// Puts a transport around the HTTP client, such as one that counts requests or injects faults. `wrap`
    /// gets the client of each service that is opened: of tables, and of queues.
    ///
    #[cfg_attr(any(feature = "azure", feature = "azure-data-tables"), doc = "```")]
    #[cfg_attr(not(any(feature = "azure", feature = "azure-data-tables")), doc = "```ignore")]
    /// use std::sync::{Arc, atomic::{AtomicU32, Ordering}};
    /// use entable_azure::{Azure, AzureOptions, HttpAnswer, HttpRequest, SendFailure, Transport};
    /// use entable_core::{BoxError, Error, backend::{Backend, BoxFuture, TableRequest}};
    ///
    /// /// Counts the requests and passes them on.
    /// #[derive(Debug)]
    /// struct Counted(Arc<dyn Transport>, Arc<AtomicU32>);
    ///
    /// impl Transport for Counted {
    ///     fn send<'a>(&'a self, request: &'a HttpRequest) -> BoxFuture<'a, Result<HttpAnswer, SendFailure>> {
    ///         self.1.fetch_add(1, Ordering::Relaxed);
    ///         self.0.send(request)
    ///     }
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let count = Arc::new(AtomicU32::new(0));
    /// let counter = count.clone();
    /// let options = AzureOptions::emulator()
    ///     .endpoint("http://127.0.0.1:9/devstoreaccount1")?
    ///     .wrap_transport(move |inner| Arc::new(Counted(inner, counter.clone())));
    /// let azure = Azure::new(options)?;
    /// let created = azure.tables(TableRequest::Create("Staff")).await;
    /// assert!(created.is_err(), "nobody listens there");
    /// assert_eq!(count.load(Ordering::Relaxed), 1);
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), BoxError>(())
    /// ```
    #[must_use]
    pub fn wrap_transport(
        mut self,
        wrap: impl Fn(Arc<dyn Transport>) -> Arc<dyn Transport> + Send + Sync + 'static,
    ) -> Self {
        self.wrap = Some(Arc::new(wrap));
        self
    }

    /// Opens the transport for an endpoint.
    pub(crate) fn open_transport(&self, endpoint: &Endpoint) -> Result<Arc<dyn Transport>> {
        let transport = match &self.transport {
            Some(transport) => Arc::clone(transport),
            None => self.open_carrier(endpoint)?,
        };
        Ok(match &self.wrap {
            Some(wrap) => wrap(transport),
            None => transport,
        })
    }

    fn open_carrier(&self, endpoint: &Endpoint) -> Result<Arc<dyn Transport>> {
        match self.carrier.or(Carrier::DEFAULT) {
            #[cfg(feature = "azure")]
            Some(Carrier::Reqwest) => crate::reqwest_transport::open(&self.http, endpoint),
            #[cfg(feature = "azure-data-tables")]
            Some(Carrier::AzureDataTables) => crate::data_tables::open(&self.http, endpoint),
            None => {
                let _ = endpoint;
                Err(invalid_option_error(
                    "there is no HTTP client; enable the feature `azure`, or pass a transport",
                ))
            }
        }
    }
}

impl Carrier {
    /// The carrier of options that name none.
    const DEFAULT: Option<Self> = {
        #[cfg(feature = "azure")]
        let carrier = Some(Self::Reqwest);
        #[cfg(all(feature = "azure-data-tables", not(feature = "azure")))]
        let carrier = Some(Self::AzureDataTables);
        #[cfg(not(any(feature = "azure", feature = "azure-data-tables")))]
        let carrier = None;
        carrier
    };
}

impl fmt::Debug for AzureOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AzureOptions")
            .field("endpoint", &self.endpoint.as_ref().map(|endpoint| &*endpoint.url))
            .field("credential", &self.credential)
            .field("scope", &self.scope)
            .field("timeout", &self.timeout)
            .field("carrier", &self.carrier.or(Carrier::DEFAULT))
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

    #[cfg(all(feature = "azure", feature = "azure-data-tables"))]
    #[test]
    fn with_both_transports_the_options_say_which_one_carries() {
        use azure_storage::{CloudLocation, StorageCredentials};
        let carrier = |options: AzureOptions| format!("{:?}", crate::Azure::new(options).unwrap());
        let emulator = AzureOptions::emulator;
        assert!(carrier(emulator()).contains("Reqwest"));
        let old = carrier(emulator().carrier(Carrier::AzureDataTables));
        assert!(old.contains("DataTables"), "{old}");
        let location = CloudLocation::Emulator { address: "127.0.0.1".into(), port: 10_002 };
        let credentials = StorageCredentials::emulator();
        let options = AzureOptions::from_storage_credentials(location, credentials).unwrap();
        assert!(carrier(options.clone()).contains("DataTables"));
        assert!(carrier(options.carrier(Carrier::Reqwest)).contains("Reqwest"));
    }
}
