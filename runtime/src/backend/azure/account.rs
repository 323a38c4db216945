//! The connection to one storage account. Sends requests through the client of `azure_data_tables`
//! and turns answers into results.

use std::{future::Future, sync::Arc, time::Duration};

use azure_core::{ClientOptions, Context, CustomHeaders, Pipeline, RetryOptions, TransportOptions};
use azure_data_tables::clients::{TableClient, TableServiceClient, TableServiceClientBuilder};
use azure_storage::{CloudLocation, StorageCredentials};

use super::{
    call::{ReadOrWrite, ServiceCall},
    credential::{Credential, Service},
    endpoint::Endpoint,
    options::AzureOptions,
    transport::{AuthorizingTransport, HttpAnswer, HttpExchange, SharedHttpExchange},
};
use crate::{
    backend::TableCase,
    error::{Error, ErrorKind, Result},
    limits,
};

/// The connection to one storage account.
pub(super) struct Account {
    client: TableServiceClient,
    /// The client's pipeline, for requests that the client has no method for.
    pub(super) pipeline: Pipeline,
    /// The address of the tables, without `/` at the end.
    pub(super) endpoint: String,
    /// The host of the endpoint.
    pub(super) host: String,
    /// The port of the endpoint; `None` if it is that of the scheme.
    pub(super) port: Option<u16>,
    /// The path of the endpoint: empty, or `/account`.
    path: String,
    pub(super) credential: Credential,
    pub(super) timeout: Duration,
    pub(super) cosmos: bool,
    pub(super) table_case: TableCase,
    pub(super) strong_reads: bool,
    #[cfg(feature = "azure-queue")]
    pub(super) options: AzureOptions,
}

impl Account {
    pub(super) fn new(options: AzureOptions) -> Result<Self> {
        Self::for_service(options, None)
    }

    /// Makes the connection to a service of an account, such as its queues. For `None`, the service
    /// is its tables: in Azure Storage or in Cosmos DB, as the endpoint or the options say.
    pub(super) fn for_service(options: AzureOptions, service: Option<Service>) -> Result<Self> {
        let endpoint = options.endpoint.clone().ok_or_else(|| {
            let message =
                "a SAS token alone does not tell the account; name it, or give the endpoint";
            Error::new(ErrorKind::Invalid, message)
        })?;
        check_scheme(&options, &endpoint)?;
        let name = account_name(&options, &endpoint)?;
        let cosmos = options.cosmos.unwrap_or(endpoint.cosmos);
        // Both keep tables whose names differ in case alone apart.
        let table_case = options.table_case.unwrap_or(match cosmos || endpoint.emulator {
            true => TableCase::Sensitive,
            false => TableCase::Insensitive,
        });
        let tables = if cosmos { Service::Cosmos } else { Service::Tables };
        let service = service.unwrap_or(tables);
        let transport =
            Arc::new(AuthorizingTransport::new(&endpoint, name.clone(), service, &options)?);
        // The Azure client would repeat each write that got a 5xx or no answer: an insert that had
        // succeeded would then fail as a conflict. `Retry` repeats requests instead.
        let settings = ClientOptions::default()
            .transport(TransportOptions::new_custom_policy(transport))
            .retry(RetryOptions::none());
        // The transport signs requests. A signature that is made in the pipeline would be in the
        // debug log of `azure_core`.
        let credentials = StorageCredentials::anonymous();
        let location = CloudLocation::Custom { account: name, uri: endpoint.url.clone() };
        Ok(Self {
            client: TableServiceClientBuilder::with_location(location, credentials.clone())
                .client_options(settings.clone())
                .build(),
            pipeline: azure_storage::clients::new_pipeline_from_options(settings, credentials),
            host: endpoint.host().to_owned(),
            port: endpoint.explicit_port(),
            path: endpoint.path().to_owned(),
            endpoint: endpoint.url,
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

    /// Returns the client for requests that create or list tables.
    pub(super) fn service_client(&self) -> &TableServiceClient {
        &self.client
    }

    /// Returns the client of a table. Refuses an invalid name, which could change the address of the
    /// request.
    pub(super) fn table_client(&self, name: &str) -> Result<TableClient> {
        limits::check_table_name(name)?;
        Ok(self.client.table_client(name))
    }

    /// Sends a request and returns the answer, whatever its status is. `start` calls the Azure
    /// client with a context that carries the body, path and deadline of the request.
    pub(super) async fn send_request<F, T>(
        &self,
        call: ServiceCall,
        start: impl FnOnce(Context) -> F,
    ) -> Result<HttpAnswer>
    where
        F: Future<Output = azure_core::Result<T>>,
    {
        let read_or_write = call.read_or_write;
        let path = call.address.map(|address| format!("{}/{address}", self.path));
        let exchange = Arc::new(HttpExchange::new(call.body, path, call.deadline));
        let mut context = Context::new();
        context.insert(SharedHttpExchange(Arc::clone(&exchange)));
        context.insert(CustomHeaders::from(call.headers));
        // The HTTP client limits only the time to connect. This limit also ends a wait for a token,
        // and a body that stops half way.
        let sent = tokio::time::timeout(self.timeout, start(context)).await;
        let Ok(sent) = sent else { return Err(self.timeout_error(read_or_write)) };
        // The transport keeps the answer and gives the client an error in any case, so that `sent`
        // tells something only where there is no answer.
        match exchange.take_answer() {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(failure)) => Err(self.send_failure_error(failure, read_or_write)),
            None => {
                let message = "the client library refused to send the request";
                let error = Error::new(ErrorKind::Invalid, message);
                Err(match sent {
                    Err(source) => error.with_source(source),
                    Ok(_) => error,
                })
            }
        }
    }

    /// Returns the answer if its status is a success, else the error for its refusal. A write also
    /// fails if its status is not 201, 202 or 204, since the service sends no other for a write.
    pub(super) fn expect_success(
        &self,
        answer: HttpAnswer,
        read_or_write: ReadOrWrite,
    ) -> Result<HttpAnswer> {
        if !answer.is_success() {
            return Err(self.refusal_error(&answer, read_or_write));
        }
        if read_or_write == ReadOrWrite::Writes && !matches!(answer.status, 201 | 202 | 204) {
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
        Credential::Token(_) => {
            "the endpoint is http, where whoever sees a token can use it; tokens need https"
        }
        Credential::Key(_) | Credential::Sas(_) if endpoint.loopback || options.allow_http => {
            return Ok(());
        }
        Credential::Key(_) | Credential::Sas(_) => {
            "the endpoint is http and not on this machine; use https, or permit it with `allow_http()`"
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
        || Error::new(ErrorKind::Invalid, "the endpoint does not tell the account; name it"),
    )
}
