//! Starts the client's operation for each request.

use std::{fmt, sync::Arc};

use azure_core_021::{
    ClientOptions, Context, Pipeline, RetryOptions, TransportOptions, Url, headers::Headers,
};
use azure_data_tables::{
    IfMatchCondition,
    clients::{EntityClient, TableClient, TableServiceClient, TableServiceClientBuilder},
};
use azure_storage::{CloudLocation, StorageCredentials, clients::finalize_request};
use entable_core::{backend::BoxFuture, error::Result};
use futures_util::StreamExt;
use serde::de::IgnoredAny;

use super::sender::{Exchange, Sender};
use crate::{
    endpoint::Endpoint,
    http_settings::HttpSettings,
    transport::{HttpAnswer, HttpRequest, Method, Resource, SendFailure, Transport},
};

/// The client of an account. Its operations write neither names, keys nor rows: the last policy of the
/// pipeline replaces what they write.
struct DataTables {
    service: TableServiceClient,
    table: TableClient,
    row: EntityClient,
    /// The client's pipeline, for requests that the client has no operation for.
    pipeline: Pipeline,
    url: Url,
}

/// Opens the client of an account.
pub(crate) fn open(settings: &HttpSettings, endpoint: &Endpoint) -> Result<Arc<dyn Transport>> {
    let sender = Arc::new(Sender::open(settings, endpoint)?);
    // The client would repeat each write that got a 5xx or no answer: an insert that had succeeded would
    // then fail as a conflict. `Retry` repeats requests instead.
    let options = ClientOptions::default()
        .transport(TransportOptions::new_custom_policy(sender))
        .retry(RetryOptions::none());
    // Requests are signed before they come here. A signature that is made in the pipeline would be in the
    // debug log of `azure_core`.
    let credentials = StorageCredentials::anonymous();
    let account = endpoint.account.clone().unwrap_or_default();
    let location = CloudLocation::Custom { account, uri: endpoint.url.clone() };
    let service = TableServiceClientBuilder::with_location(location, credentials.clone())
        .client_options(options.clone())
        .build();
    let table = service.table_client("Table");
    Ok(Arc::new(DataTables {
        row: table.partition_key_client("").entity_client(""),
        table,
        service,
        pipeline: azure_storage::clients::new_pipeline_from_options(options, credentials),
        url: endpoint.to_url()?,
    }))
}

impl Transport for DataTables {
    fn send<'a>(
        &'a self,
        request: &'a HttpRequest,
    ) -> BoxFuture<'a, Result<HttpAnswer, SendFailure>> {
        Box::pin(async move {
            let exchange = Exchange::new(request)?;
            let mut context = Context::new();
            context.insert(Arc::clone(&exchange));
            // The client gets an error in any case, since its answer was taken: only a refusal to send
            // has more to say.
            let refused = self.start_operation(request, context).await.err();
            exchange.take_answer().unwrap_or_else(|| {
                let refused = refused.map(Into::into);
                Err(SendFailure::NotSent(refused.unwrap_or_else(|| "not sent".into())))
            })
        })
    }
}

impl DataTables {
    async fn start_operation(
        &self,
        request: &HttpRequest,
        context: Context,
    ) -> azure_core_021::Result<()> {
        let is_conditional = request.header("if-match").is_some();
        match (request.resource, request.method) {
            (Resource::Tables, Method::Get) => {
                self.service.list().context(context).into_stream().next().await;
                Ok(())
            }
            (Resource::Tables, _) => self.table.create().context(context).await.map(drop),
            (Resource::Table, _) => self.table.delete().context(context).await.map(drop),
            (Resource::Rows, Method::Get) => {
                let query = self.table.query().context(context);
                query.into_stream::<IgnoredAny>().next().await;
                Ok(())
            }
            (Resource::Rows, _) => {
                self.table.insert::<_, IgnoredAny>(())?.context(context).await.map(drop)
            }
            (Resource::Row, Method::Get) => {
                self.row.get::<IgnoredAny>().context(context).await.map(drop)
            }
            (Resource::Row, Method::Delete) => self.row.delete().context(context).await.map(drop),
            (Resource::Row, _) if is_conditional => self.start_update(request, context).await,
            (Resource::Row, Method::Put) => {
                self.row.insert_or_replace(())?.context(context).await.map(drop)
            }
            (Resource::Row, _) => self.row.insert_or_merge(())?.context(context).await.map(drop),
            (Resource::Batch, _) => {
                let transaction = self.table.partition_key_client("").transaction();
                transaction.context(context).await.map(drop)
            }
            (Resource::Path, _) => self.send_through_pipeline(context).await,
        }
    }

    async fn start_update(
        &self,
        request: &HttpRequest,
        context: Context,
    ) -> azure_core_021::Result<()> {
        let any = IfMatchCondition::Any;
        match request.method {
            Method::Put => self.row.update((), any)?.context(context).await.map(drop),
            _ => self.row.merge((), any)?.context(context).await.map(drop),
        }
    }

    async fn send_through_pipeline(&self, context: Context) -> azure_core_021::Result<()> {
        let (url, method) = (self.url.clone(), azure_core_021::Method::Get);
        let mut request = finalize_request(url, method, Headers::new(), None)?;
        self.pipeline.send(&context, &mut request).await.map(drop)
    }
}

impl fmt::Debug for DataTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AzureDataTables")
    }
}
