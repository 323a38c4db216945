//! Requests about entities: insert, get, query, and the operations that writes consist of.

use base64::{Engine, engine::general_purpose::STANDARD};
use entable_azure::wire::{read_entity_body, row_address};
use entable_core::{
    Batch, Condition, ETag, Filter, Operation, Verb, Written,
    backend::{ReadRequest, ScanRequest},
    page::Continuation,
};

use crate::{
    address::Resource,
    entity_json::{Shape, page_of},
    failure::Failure,
    request::{Answer, Metadata, Request},
    service::Service,
};

/// How many bytes of memory a byte of a row takes in an answer: the row and its JSON.
const BYTES_PER_BYTE: usize = 4;

/// The preference for an answer without the inserted entity.
const NO_CONTENT: &str = "return-no-content";

/// Returns the `$top` of a query.
pub(crate) fn top_of(request: &Request) -> Result<Option<u32>, Failure> {
    let Some(top) = request.option("$top") else { return Ok(None) };
    match top.parse() {
        Ok(top @ 0..=1000) => Ok(Some(top)),
        _ => Err(Failure::new(400, "InvalidInput")),
    }
}

fn select_of(request: &Request) -> Option<Vec<String>> {
    let select = request.option("$select").filter(|select| !matches!(*select, "" | "*"))?;
    Some(select.split(',').map(|name| name.trim().to_owned()).collect())
}

fn shape<'a>(
    service: &'a Service,
    request: &'a Request,
    table: &'a str,
    metadata: Metadata,
    select: Option<&'a [String]>,
) -> Shape<'a> {
    let select_text = request.option("$select").unwrap_or("");
    Shape {
        select_text,
        base: &request.base,
        account: service.key.account(),
        table,
        metadata,
        select,
    }
}

pub(crate) async fn get(
    service: &Service,
    request: &Request,
    table: &str,
    (partition_key, row_key): (&str, &str),
) -> Result<Answer, Failure> {
    request.grant.check_reading(table)?;
    request.grant.check_row((partition_key, row_key))?;
    let (metadata, select) = (request.metadata()?, select_of(request));
    let select = select.as_deref();
    let row = service.backend.read(ReadRequest { table, partition_key, row_key, select }).await?;
    let row = row.ok_or_else(|| Failure::new(404, "ResourceNotFound"))?;
    let mut room = service.budget.room();
    room.grow(row.byte_len() * BYTES_PER_BYTE)?;
    let json = shape(service, request, table, metadata, select).entity(&row, true)?;
    let etag = row.etag().map(|etag| etag.to_string()).unwrap_or_default();
    let answer = Answer { room: Some(room), ..Answer::json(200, metadata, json) };
    Ok(answer.with("ETag", etag))
}

pub(crate) async fn query(
    service: &Service,
    request: &Request,
    table: &str,
) -> Result<Answer, Failure> {
    request.grant.check_reading(table)?;
    let (metadata, select, top) = (request.metadata()?, select_of(request), top_of(request)?);
    let filter = request.option("$filter").unwrap_or("");
    let filter = request.grant.narrow(Filter::parse(filter)?);
    let from = match request.option("NextPartitionKey") {
        None => None,
        Some(key) => Some(Continuation {
            partition_key: read_token(key)?,
            row_key: request.option("NextRowKey").map(read_token).transpose()?,
        }),
    };
    let select = select.as_deref();
    let scan = ScanRequest { table, filter: &filter, select, top, from: from.as_ref() };
    let _turn = service.budget.turn_to_read().await;
    let page = service.backend.scan(scan).await?;
    let next = request.grant.within(page.next.clone());
    let shape = shape(service, request, table, metadata, select);
    let rows = page.into_rows()?;
    let mut room = service.budget.room();
    room.grow(rows.iter().map(|row| row.byte_len() * BYTES_PER_BYTE).sum())?;
    let rows: Vec<_> = rows.iter().map(|row| shape.entity(row, false)).collect::<Result<_, _>>()?;
    let body = page_of(&rows, metadata, &shape.metadata_address(false));
    let mut answer = Answer { room: Some(room), ..Answer::json(200, metadata, body) };
    if let Some(next) = next {
        answer = answer.with("x-ms-continuation-NextPartitionKey", token(&next.partition_key));
        if let Some(row_key) = next.row_key {
            answer = answer.with("x-ms-continuation-NextRowKey", token(&row_key));
        }
    }
    Ok(answer)
}

/// Writes a key as the service writes it in continuations: `1!length!base64`, with `-` for `=`.
fn token(key: &str) -> String {
    let text = STANDARD.encode(key).replace('=', "-");
    format!("1!{}!{text}", text.len())
}

fn read_token(token: &str) -> Result<String, Failure> {
    let parsed = || {
        let (length, text) = token.strip_prefix("1!")?.split_once('!')?;
        // A `+` of base64 that was not encoded in the address has become a blank.
        let text = text.replace('-', "=").replace(' ', "+");
        (length.parse() == Ok(text.len())).then_some(())?;
        String::from_utf8(STANDARD.decode(text).ok()?).ok()
    };
    parsed().ok_or_else(|| Failure::new(400, "InvalidInput"))
}

/// Reads the operation that a writing request asks for, if it may ask for it.
pub(crate) fn operation(
    request: &Request,
    resource: &Resource,
) -> Result<(String, Operation), Failure> {
    let (table, operation) = read_operation(request, resource)?;
    request.grant.check_write(&table, &operation)?;
    Ok((table, operation))
}

fn read_operation(request: &Request, resource: &Resource) -> Result<(String, Operation), Failure> {
    let condition = condition_of(request)?;
    match (request.verb()?, resource) {
        ("POST", Resource::Entities(table)) => {
            let row = read_entity_body(&request.body, None)?;
            if preference_of(request) != Some(NO_CONTENT) {
                // An insert whose answer cannot be written must not happen.
                request.metadata()?;
            }
            Ok((table.clone(), Operation::insert(row)))
        }
        (verb, Resource::Entity { table, partition_key, row_key }) => {
            let keys = (partition_key.as_str(), row_key.as_str());
            let row = || read_entity_body(&request.body, Some(keys));
            let operation = match (verb, condition) {
                ("PUT", None) => Operation::insert_or_replace(row()?),
                ("PUT", Some(condition)) => Operation::replace(row()?, condition),
                ("MERGE" | "PATCH", None) => Operation::insert_or_merge(row()?),
                ("MERGE" | "PATCH", Some(condition)) => Operation::merge(row()?, condition),
                ("DELETE", Some(condition)) => Operation::delete(keys.0, keys.1, condition)?,
                ("DELETE", None) => return Err(Failure::new(400, "InvalidInput")),
                _ => return Err(Failure::new(405, "MethodNotAllowed")),
            };
            Ok((table.clone(), operation))
        }
        _ => Err(Failure::new(405, "MethodNotAllowed")),
    }
}

fn condition_of(request: &Request) -> Result<Option<Condition>, Failure> {
    if request.header("if-none-match").is_some() {
        return Err(Failure::new(400, "InvalidInput"));
    }
    match request.header("if-match") {
        None => Ok(None),
        Some("*") => Ok(Some(Condition::Any)),
        Some(text) => {
            let etag = ETag::from(text);
            if !etag.is_weak() {
                let text = format!(
                    "The etag value '{text}' specified in one of the request headers is not valid. Please make sure only \
                     one etag value is specified and is valid."
                );
                return Err(Failure::with_text(400, "InvalidInput", &text));
            }
            // The store compares the time of an ETag, not its text.
            let etag = etag.timestamp().map_or(etag, ETag::from_timestamp);
            Ok(Some(Condition::Match(etag)))
        }
    }
}

/// Returns what the client asks to get back.
pub(crate) fn preference_of(request: &Request) -> Option<&str> {
    request.header("prefer").filter(|preferred| preferred.starts_with("return-"))
}

/// Carries out one write.
pub(crate) async fn write(
    service: &Service,
    request: &Request,
    resource: &Resource,
) -> Result<Answer, Failure> {
    let (table, operation) = operation(request, resource)?;
    let batch = Batch::single(table, operation)?;
    let written = service.backend.apply(&batch).await?;
    let (Some(written), Some(operation)) = (written.first(), batch.operations().first()) else {
        return Err(Failure::new(500, "InternalError"));
    };
    answer_to(service, request, batch.table(), operation, written)
}

/// Returns the answer to an operation that was carried out, alone or in a batch.
pub(crate) fn answer_to(
    service: &Service,
    request: &Request,
    table: &str,
    operation: &Operation,
    written: &Written,
) -> Result<Answer, Failure> {
    let etag = written.etag.as_ref().map(ToString::to_string);
    let tagged = |answer: Answer| match &etag {
        Some(etag) => answer.with("ETag", etag.clone()),
        None => answer,
    };
    if operation.verb() != Verb::Insert {
        return Ok(tagged(Answer::of_status(204)));
    }
    let (partition_key, row_key) = operation.row().keys();
    let location = format!("{}/{}", request.base, row_address(table, partition_key, row_key));
    let preferred = preference_of(request);
    let applied = |answer: Answer| match preferred {
        Some(preferred) => answer.with("Preference-Applied", preferred.to_owned()),
        None => answer,
    };
    if preferred == Some(NO_CONTENT) {
        let answer = Answer::of_status(204).with("DataServiceId", location.clone());
        return Ok(applied(tagged(answer.with("Location", location))));
    }
    let metadata = request.metadata()?;
    let row = match written.timestamp {
        Some(timestamp) => operation.row().with_timestamp(timestamp),
        None => operation.row().clone(),
    };
    let json = shape(service, request, table, metadata, None).entity(&row, true)?;
    Ok(applied(tagged(Answer::json(201, metadata, json).with("Location", location))))
}
