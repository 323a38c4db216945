//! Requests about tables: create, delete, list.

use entable_core::{
    Error, Filter, Row, ValueRef,
    backend::{NameRange, TableRequest},
};

use crate::{
    entity_json::{page_of, quoted},
    failure::Failure,
    grant::Action,
    request::{Answer, Metadata, Request},
    service::Service,
};

/// The most bytes of a request that creates a table.
const BODY_BYTES: usize = 64 * 1024;
/// The most names in one page.
const PAGE: usize = 1000;

pub(crate) async fn create(service: &Service, request: &Request) -> Result<Answer, Failure> {
    request.grant.check(Action::CreateTable)?;
    let metadata = request.metadata()?;
    if request.body.len() > BODY_BYTES {
        return Err(Failure::new(413, "RequestBodyTooLarge"));
    }
    let body: serde_json::Value =
        serde_json::from_slice(&request.body).map_err(|_| Failure::new(400, "InvalidInput"))?;
    let name = body.get("TableName").and_then(|name| name.as_str());
    let name = name.ok_or_else(|| Failure::new(400, "PropertiesNeedValue"))?;
    service.backend.tables(TableRequest::Create(name)).await?;
    let location = format!("{}/Tables('{name}')", request.base);
    if request.header("prefer") == Some("return-no-content") {
        return Ok(Answer::of_status(204)
            .with("Preference-Applied", "return-no-content".to_owned())
            .with("DataServiceId", location.clone())
            .with("Location", location));
    }
    let json = table_json(service, &request.base, name, metadata, true);
    Ok(Answer::json(201, metadata, json).with("Location", location))
}

pub(crate) async fn delete(
    service: &Service,
    request: &Request,
    name: &str,
) -> Result<Answer, Failure> {
    request.grant.check(Action::DeleteTable)?;
    match service.backend.tables(TableRequest::Delete(name)).await.map_err(Failure::from) {
        Ok(_) => Ok(Answer::of_status(204)),
        // A name that no table can have is the name of no table: the service does not look at it.
        Err(failure) if failure.status == 400 => Err(Failure::new(404, "ResourceNotFound")),
        Err(failure) => Err(failure),
    }
}

/// Answers with one table.
pub(crate) async fn get(
    service: &Service,
    request: &Request,
    name: &str,
) -> Result<Answer, Failure> {
    request.grant.check(Action::ListTables)?;
    let metadata = request.metadata()?;
    let within = Some(NameRange { first: name, last: name });
    let list = service.backend.tables(TableRequest::List { from: Some(name), within }).await?;
    let found = list.names.iter().find(|found| found.eq_ignore_ascii_case(name));
    let name = found.ok_or_else(|| Failure::new(404, "ResourceNotFound"))?;
    Ok(Answer::json(200, metadata, table_json(service, &request.base, name, metadata, true)))
}

pub(crate) async fn list(service: &Service, request: &Request) -> Result<Answer, Failure> {
    request.grant.check(Action::ListTables)?;
    let metadata = request.metadata()?;
    let filter = Filter::parse(request.option("$filter").unwrap_or(""))?;
    let top = crate::entities::top_of(request)?.map_or(PAGE, |top| top as usize);
    let mut from = request.option("NextTableName").map(str::to_owned);
    let mut found = Vec::new();
    while found.len() <= top {
        let list = TableRequest::List { from: from.as_deref(), within: None };
        let page = service.backend.tables(list).await?;
        for name in page.names {
            if matches(&filter, &name)? {
                found.push(name);
            }
        }
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    // The next page begins at the first name that did not fit.
    let next = found.get(top).cloned().or(from);
    found.truncate(top);
    let items: Vec<_> = found
        .iter()
        .map(|name| table_json(service, &request.base, name, metadata, false))
        .collect();
    let body = page_of(&items, metadata, &format!("{}/$metadata#Tables", request.base));
    let answer = Answer::json(200, metadata, body);
    Ok(match next {
        Some(next) => answer.with("x-ms-continuation-NextTableName", next.to_ascii_lowercase()),
        None => answer,
    })
}

fn matches(filter: &Filter, name: &str) -> Result<bool, Error> {
    filter.matches(&Row::build("", "").with("TableName", ValueRef::String(name))?.finish()?)
}

fn table_json(
    service: &Service,
    base: &str,
    name: &str,
    metadata: Metadata,
    alone: bool,
) -> String {
    let mut members = Vec::new();
    if alone && metadata != Metadata::None {
        members.push(("odata.metadata", format!("{base}/$metadata#Tables/@Element")));
    }
    if metadata == Metadata::Full {
        members.push(("odata.type", format!("{}.Tables", service.key.account())));
        members.push(("odata.id", format!("{base}/Tables('{name}')")));
        members.push(("odata.editLink", format!("Tables('{name}')")));
    }
    members.push(("TableName", name.to_owned()));
    let members: Vec<_> =
        members.iter().map(|(name, text)| format!("\"{name}\":{}", quoted(text))).collect();
    format!("{{{}}}", members.join(","))
}
