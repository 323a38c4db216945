//! Routes a request to what answers it.

use crate::{
    address::{Resource, is_secondary, resource_of},
    batch, entities,
    failure::Failure,
    policies, properties,
    request::{Answer, Request},
    service::Service,
    tables,
};

/// Answers a request that was let in. Each function that it calls checks what the request may do.
pub(crate) async fn answer(service: &Service, request: &Request) -> Result<Answer, Failure> {
    let account = service.key.account();
    let resource = resource_of(&request.path, account)?;
    let verb = match request.verb()? {
        "HEAD" => "GET",
        verb => verb,
    };
    let is_secondary = is_secondary(&request.path, account);
    if is_secondary && verb != "GET" {
        return Err(Failure::new(403, "WriteOperationNotSupportedOnSecondary"));
    }
    match (request.option("comp"), &resource) {
        (None, _) => route(service, request, verb, &resource).await,
        (Some("acl"), Resource::Entities(table)) => {
            policies::answer(service, request, verb, table).await
        }
        (Some("properties"), Resource::Account) => properties::answer(service, request, verb).await,
        (Some("stats"), Resource::Account) => {
            properties::stats(request, is_secondary, service.clock.now())
        }
        _ => Err(Failure::new(400, "InvalidQueryParameterValue")),
    }
}

async fn route(
    service: &Service,
    request: &Request,
    verb: &str,
    resource: &Resource,
) -> Result<Answer, Failure> {
    match (verb, resource) {
        ("POST", Resource::Batch) => batch::answer(service, request).await,
        ("GET", Resource::Tables) => tables::list(service, request).await,
        ("POST", Resource::Tables) => tables::create(service, request).await,
        ("GET", Resource::Table(name)) => tables::get(service, request, name).await,
        ("DELETE", Resource::Table(name)) => tables::delete(service, request, name).await,
        ("GET", Resource::Entities(table)) => entities::query(service, request, table).await,
        ("GET", Resource::Entity { table, partition_key, row_key }) => {
            entities::get(service, request, table, (partition_key, row_key)).await
        }
        (_, Resource::Entities(_) | Resource::Entity { .. }) => {
            entities::write(service, request, resource).await
        }
        _ => Err(Failure::new(405, "MethodNotAllowed")),
    }
}
