//! Sends requests for which `azure_data_tables` has no method.

use azure_core::{Context, Method, Url, headers::Headers};
use azure_storage::clients::finalize_request;

use super::{account::Account, call::ServiceCall, transport::HttpAnswer};
use crate::error::{Error, ErrorKind, Result};

impl Account {
    /// Sends a request that the client has no method for, through the client's pipeline.
    pub(super) async fn send_raw(
        &self,
        call: ServiceCall,
        method: Method,
        path: &str,
        query: &str,
    ) -> Result<HttpAnswer> {
        let url = Url::parse(&format!("{}/{path}?{query}", self.endpoint)).map_err(|error| {
            Error::new(ErrorKind::Invalid, "the request has no address").with_source(error)
        })?;
        self.send_request(call, |context: Context| async move {
            let mut request = finalize_request(url, method, Headers::new(), None)?;
            self.pipeline.send(&context, &mut request).await
        })
        .await
    }
}
