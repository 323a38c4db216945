//! Routes a request to what answers it.

use std::sync::Arc;

use entable::{AccountKey, Clock, backend::Backend};

use crate::{
    address::{Resource, resource_of},
    batch,
    budget::Budget,
    entities,
    failure::Failure,
    request::{Answer, Request},
    tables,
};

/// The store, and the account under whose name it is served.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) key: AccountKey,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) budget: Budget,
}

impl Service {
    /// Answers a request that was let in.
    pub(crate) async fn answer(&self, request: &Request) -> Result<Answer, Failure> {
        let resource = resource_of(&request.path, self.key.account())?;
        let verb = request.verb()?;
        if request.option("comp").is_some() || resource == Resource::Account {
            return Err(Failure::new(501, "NotImplemented"));
        }
        let verb = if verb == "HEAD" { "GET" } else { verb };
        match (verb, &resource) {
            ("POST", Resource::Batch) => batch::answer(self, request).await,
            ("GET", Resource::Tables) => tables::list(self, request).await,
            ("POST", Resource::Tables) => tables::create(self, request).await,
            ("DELETE", Resource::Table(name)) => tables::delete(self, name).await,
            ("GET", Resource::Entities(table)) => entities::query(self, request, table).await,
            ("GET", Resource::Entity { table, partition_key, row_key }) => {
                entities::get(self, request, table, (partition_key, row_key)).await
            }
            (_, Resource::Entities(_) | Resource::Entity { .. }) => {
                entities::write(self, request, &resource).await
            }
            _ => Err(Failure::new(405, "MethodNotAllowed")),
        }
    }
}
