//! The connection to one storage account: authorizes requests, sends them through the transport and
//! turns answers into results.

use std::{sync::Arc, time::Duration};

use entable_core::{
    __runtime::timers::instant_after,
    backend::TableCase,
    error::{Error, ErrorKind, Result},
};
use time::OffsetDateTime;
use tokio::time::{Instant, timeout_at};

use crate::{
    call::{ReadOrWrite, ServiceCall},
    credential::{Authorization, Credential, Service, SignedResource},
    endpoint::Endpoint,
    options::AzureOptions,
    transport::{HttpAnswer, HttpRequest, Method, Transport},
    wire::HttpDate,
};

/// The connection to one storage account.
pub(crate) struct AccountConnection {
    pub(crate) transport: Arc<dyn Transport>,
    /// The address of the tables, or of the queues, without `/` at the end.
    pub(crate) endpoint: Endpoint,
    /// The name of the account, which signatures contain.
    name: String,
    service: Service,
    /// The scope that Microsoft Entra tokens are requested for.
    scope: String,
    pub(crate) credential: Credential,
    pub(crate) timeout: Duration,
    pub(crate) cosmos: bool,
    pub(crate) table_case: TableCase,
    pub(crate) strong_reads: bool,
    #[cfg(feature = "azure-queue")]
    pub(crate) options: AzureOptions,
}

impl AccountConnection {
    pub(crate) fn new(options: AzureOptions) -> Result<Self> {
        Self::for_service(options, None)
    }

    /// Makes the connection to a service of an account, such as its queues. For `None`, the service
    /// is its tables: in Azure Storage or in Cosmos DB, as the endpoint or the options say.
    pub(crate) fn for_service(options: AzureOptions, service: Option<Service>) -> Result<Self> {
        let endpoint = options.endpoint.clone().ok_or_else(|| {
            let message =
                "a SAS token does not contain the account's name; give the account or the endpoint as well";
            Error::new(ErrorKind::Invalid, message)
        })?;
        check_scheme(&options, &endpoint)?;
        let name = account_name(&options, &endpoint)?;
        let cosmos = options.cosmos.unwrap_or(endpoint.cosmos);
        // Both keep tables whose names differ in case alone apart.
        let table_case = options.table_case.unwrap_or(if cosmos || endpoint.emulator {
            TableCase::Sensitive
        } else {
            TableCase::Insensitive
        });
        let tables = if cosmos { Service::Cosmos } else { Service::Tables };
        let service = service.unwrap_or(tables);
        Ok(Self {
            transport: options.open_transport(&endpoint)?,
            name,
            service,
            scope: options.scope.clone().unwrap_or_else(|| endpoint.token_scope(service)),
            endpoint,
            credential: options.credential.clone(),
            timeout: options.timeout,
            cosmos,
            table_case,
            // By default, Cosmos DB lets a read lag behind the writes of other clients.
            strong_reads: options.strong_reads.unwrap_or(!cosmos),
            #[cfg(feature = "azure-queue")]
            options,
        })
    }

    /// Returns the name of the account, without the suffix of a read-only copy.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Sends a request and returns the answer, whatever its status is.
    pub(crate) async fn send(&self, call: ServiceCall<'_>) -> Result<HttpAnswer> {
        call.check_table_name()?;
        let call = if self.cosmos { call.with_tunnelled_merge() } else { call };
        let (read_or_write, deadline) = (call.read_or_write(), call.deadline);
        // The transport limits only the time to connect. This limit also ends a wait for a token,
        // and a body that stops half way.
        let end = instant_after(Instant::now(), self.timeout);
        let request = timeout_at(end, self.authorize(call)).await;
        let request = request.map_err(|_| self.token_timeout_error())??;
        // Fetching a token may have taken long: nothing is awaited between here and the transport.
        if let Some(deadline) = deadline {
            deadline.check()?;
        }
        let answer = timeout_at(end, self.transport.send(&request)).await;
        let answer = answer.map_err(|_| self.timeout_error(read_or_write))?;
        let answer = answer.map_err(|failure| self.send_failure_error(failure, read_or_write))?;
        if let (401, Credential::Token(tokens)) = (answer.status(), &self.credential) {
            tokens.forget_token(&self.scope);
        }
        Ok(answer)
    }

    /// Sends a request and returns the answer if its status is a success.
    pub(crate) async fn send_expecting_success(&self, call: ServiceCall<'_>) -> Result<HttpAnswer> {
        let read_or_write = call.read_or_write();
        let answer = self.send(call).await?;
        self.expect_success(answer, read_or_write)
    }

    /// Adds the date to a request, then signs the request or adds a token.
    async fn authorize(&self, mut call: ServiceCall<'_>) -> Result<HttpRequest> {
        if call.method != Method::Get {
            // The service wants a Content-Length, also of an empty body.
            let length = call.body.len().to_string();
            call = call.with_header("content-length", length);
        }
        let call = call.with_header("x-ms-date", HttpDate(OffsetDateTime::now_utc()).to_string());
        let mut url = call.url_without_query(&self.endpoint.url);
        let resource = SignedResource {
            service: self.service,
            account: &self.name,
            path: url.get(self.endpoint.origin().len()..).unwrap_or_default(),
            scope: &self.scope,
        };
        let authorization = self.credential.authorize(&call, resource).await?;
        let mut query = call.encoded_query();
        let call = match authorization {
            Authorization::Header(value) => call.with_header("authorization", value),
            Authorization::Query(token) => {
                if !query.is_empty() {
                    query.push('&');
                }
                query.push_str(&token);
                call
            }
        };
        if !query.is_empty() {
            url.push('?');
            url.push_str(&query);
        }
        Ok(call.into_request(url))
    }

    /// Returns the answer if its status is a success, else the error for its refusal. A write also
    /// fails if its status is not 201, 202 or 204, since the service sends no other for a write.
    pub(crate) fn expect_success(
        &self,
        answer: HttpAnswer,
        read_or_write: ReadOrWrite,
    ) -> Result<HttpAnswer> {
        if !answer.is_success() {
            return Err(self.refusal_error(&answer, read_or_write));
        }
        if read_or_write == ReadOrWrite::Writes && !matches!(answer.status(), 201 | 202 | 204) {
            return Err(self.foreign_answer_error(&answer, read_or_write));
        }
        Ok(answer)
    }
}

/// Fails if a credential would be sent over http. A key or a SAS token may be sent over http to
/// this machine, or with `allow_http`.
fn check_scheme(options: &AzureOptions, endpoint: &Endpoint) -> Result<()> {
    let message = match &options.credential {
        _ if endpoint.is_https() => return Ok(()),
        Credential::Token(_) => "the endpoint uses http, which would expose the token; use https",
        Credential::Key(_) | Credential::Sas(_) if endpoint.loopback || options.allow_http => {
            return Ok(());
        }
        Credential::Key(_) | Credential::Sas(_) => {
            "the endpoint uses http and is not on this machine; use https, or call `allow_http()`"
        }
    };
    Err(Error::new(ErrorKind::Invalid, message))
}

/// Returns the account's name from the key, else from the options, else from the endpoint. Fails if
/// none of them contains the name.
fn account_name(options: &AzureOptions, endpoint: &Endpoint) -> Result<String> {
    // The account of the key comes first: a signature names the account, and the service checks it
    // with the keys of that account.
    let of_key = match &options.credential {
        Credential::Key(key) => Some(key.account().to_owned()),
        _ => None,
    };
    of_key.or_else(|| options.account.clone()).or_else(|| endpoint.account.clone()).ok_or_else(
        || {
            Error::new(
                ErrorKind::Invalid,
                "the endpoint does not contain the account's name; give the account as well",
            )
        },
    )
}
