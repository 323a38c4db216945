//! Entity group transactions: reads the multipart body of `POST /$batch` and writes the multipart answer.

use entable_core::{Batch, Operation, limits::BATCH_OPERATIONS};
use uuid::Uuid;

use crate::{
    address::{Resource, options_of, resource_of},
    entities,
    failure::Failure,
    request::{Answer, Request},
    service::Service,
};

/// The service's text for one operation too many.
const TOO_MANY: &str =
    "The batch request operation exceeds the maximum 100 changes per change set.";

/// Carries out a batch. The answer has status 202 also if an operation fails.
pub(crate) async fn answer(service: &Service, request: &Request) -> Result<Answer, Failure> {
    let body = std::str::from_utf8(&request.body).map_err(|_| invalid())?;
    let outer = boundary_of(request.header("content-type").unwrap_or(""))?;
    let [changeset] = parts_of(body, outer)?[..] else { return Err(invalid()) };
    let (headers, content) = split_head(changeset)?;
    let mime = header_of(headers, "content-type").unwrap_or("");
    if !mime.starts_with("multipart/mixed") {
        return read_alone(service, read_part(changeset, request)?).await;
    }
    let requests = parts_of(content, boundary_of(mime)?)?;
    let requests =
        requests.into_iter().map(|part| read_part(part, request)).collect::<Result<Vec<_>, _>>()?;
    let parts = match carry_out(service, &requests).await {
        Ok(answers) => answers,
        // An operation that the request may not do refuses the whole request.
        Err(failure) if failure.status == 403 => return Err(failure),
        Err(failure) => vec![failed_part(service, &failure, &requests)],
    };
    Ok(multipart(&parts))
}

/// Carries out a batch of one read, which is outside any changeset and alone in its batch.
async fn read_alone(service: &Service, request: Request) -> Result<Answer, Failure> {
    let resource = resource_of(&request.path, service.key.account())?;
    let Resource::Entity { table, partition_key, row_key } = resource else {
        return Err(invalid());
    };
    if request.verb()? != "GET" {
        return Err(invalid());
    }
    let part = match entities::get(service, &request, &table, (&partition_key, &row_key)).await {
        Err(failure) if failure.status == 403 => return Err(failure),
        Err(failure) => failure.answer(None, &Uuid::new_v4().to_string(), service.clock.now()),
        Ok(answer) => answer,
    };
    let boundary = format!("batchresponse_{}", Uuid::new_v4());
    let mut body = Vec::new();
    push_part(&mut body, &boundary, &part);
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    Ok(Answer { room: part.room, ..accepted(&boundary, body) })
}

async fn carry_out(service: &Service, requests: &[Request]) -> Result<Vec<Answer>, Failure> {
    let mut batch: Option<Batch> = None;
    for (index, request) in requests.iter().enumerate() {
        let at =
            |failure: Failure| Failure { index: Some(failure.index.unwrap_or(index)), ..failure };
        let resource = resource_of(&request.path, service.key.account()).map_err(at)?;
        let (table, operation) = entities::operation(request, &resource).map_err(at)?;
        let batch = batch.get_or_insert_with(|| Batch::new(&table));
        if !batch.table().eq_ignore_ascii_case(&table) {
            return Err(at(Failure::new(400, "CommandsInBatchActOnDifferentPartitions")));
        }
        push(batch, operation).map_err(at)?;
    }
    let batch = batch.ok_or_else(invalid)?;
    let written = service.backend.apply(&batch).await.map_err(Failure::of_execution)?;
    let answered = requests.iter().zip(batch.operations()).zip(&written);
    answered
        .map(|((request, operation), written)| {
            entities::answer_to(service, request, batch.table(), operation, written)
        })
        .collect()
}

/// Adds an operation to a batch. The service has a text of its own for one too many, and looks at the size of a value
/// only when it executes the operation.
fn push(batch: &mut Batch, operation: Operation) -> Result<(), Failure> {
    let is_full = batch.len() == BATCH_OPERATIONS;
    let Err(error) = batch.push(operation) else { return Ok(()) };
    let failure = Failure::from(error);
    if is_full && failure.code == "InvalidInput" {
        return Err(Failure { text: TOO_MANY.to_owned(), ..failure });
    }
    Err(Failure { is_from_execution: failure.code == "PropertyValueTooLarge", ..failure })
}

/// Returns the one part of a failed batch. The error of a single operation has no position if the service finds it
/// while it executes the operation.
fn failed_part(service: &Service, failure: &Failure, requests: &[Request]) -> Answer {
    let index = failure.index.unwrap_or_default();
    let prefix = (requests.len() > 1 || !failure.is_from_execution).then_some(index);
    let id = Uuid::new_v4().to_string();
    let answer = failure.answer(prefix, &id, service.clock.now());
    // The service names the preference of the operation that is one too many, and not of one whose table is missing.
    let preferred = requests.get(index).and_then(entities::preference_of);
    match preferred.filter(|_| failure.text == TOO_MANY) {
        Some(preferred) => answer.with("Preference-Applied", preferred.to_owned()),
        None => answer,
    }
}

fn multipart(parts: &[Answer]) -> Answer {
    let (outer, inner) = (
        format!("batchresponse_{}", Uuid::new_v4()),
        format!("changesetresponse_{}", Uuid::new_v4()),
    );
    let mut body = format!("--{outer}\r\nContent-Type: multipart/mixed; boundary={inner}\r\n\r\n")
        .into_bytes();
    for part in parts {
        push_part(&mut body, &inner, part);
    }
    body.extend_from_slice(format!("--{inner}--\r\n--{outer}--\r\n").as_bytes());
    accepted(&outer, body)
}

fn accepted(boundary: &str, body: Vec<u8>) -> Answer {
    Answer { body, ..Answer::of_status(202) }
        .with("Content-Type", format!("multipart/mixed; boundary={boundary}"))
}

fn push_part(body: &mut Vec<u8>, boundary: &str, part: &Answer) {
    let reason = hyper::StatusCode::from_u16(part.status).ok();
    let reason = reason.and_then(|status| status.canonical_reason()).unwrap_or("");
    body.extend_from_slice(
        format!(
            "--{boundary}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
             HTTP/1.1 {} {reason}\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\n",
            part.status
        )
        .as_bytes(),
    );
    let has_content =
        part.headers.iter().any(|(name, _)| *name == "DataServiceId" || *name == "Content-Type");
    let version = if has_content { "3.0" } else { "1.0" };
    body.extend_from_slice(format!("DataServiceVersion: {version};\r\n").as_bytes());
    for (name, value) in &part.headers {
        body.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    body.extend_from_slice(b"\r\n");
    body.extend_from_slice(&part.body);
    body.extend_from_slice(b"\r\n");
}

fn invalid() -> Failure {
    Failure::new(400, "InvalidInput")
}

fn boundary_of(content_type: &str) -> Result<&str, Failure> {
    let mut parameters = content_type.split(';').map(str::trim);
    let found = parameters.find_map(|parameter| parameter.strip_prefix("boundary="));
    let found = found.map(|boundary| boundary.trim_matches('"')).filter(|found| !found.is_empty());
    found.ok_or_else(invalid)
}

/// Splits a multipart body at the lines that are its boundary. The closing line must be there.
fn parts_of<'a>(body: &'a str, boundary: &str) -> Result<Vec<&'a str>, Failure> {
    let (open, close) = (format!("--{boundary}"), format!("--{boundary}--"));
    let (mut parts, mut begin, mut at) = (Vec::new(), None, 0);
    for line in body.split_inclusive('\n') {
        let text = line.trim_end();
        if text == open || text == close {
            if let Some(part) = begin.and_then(|begin| body.get(begin..at)) {
                parts.push(part);
            }
            if text == close {
                return Ok(parts);
            }
            begin = Some(at + line.len());
        }
        at += line.len();
    }
    Err(invalid())
}

fn split_head(part: &str) -> Result<(&str, &str), Failure> {
    let part = part.trim_start_matches(['\r', '\n']);
    part.split_once("\r\n\r\n").or_else(|| part.split_once("\n\n")).ok_or_else(invalid)
}

fn headers_of(head: &str) -> impl Iterator<Item = (&str, &str)> {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim(), value.trim()))
}

fn header_of<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    headers_of(head).find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// Reads the request inside one part of a changeset.
fn read_part(part: &str, whole: &Request) -> Result<Request, Failure> {
    let (_, content) = split_head(part)?;
    // A request without body may end with its headers.
    let (head, body) = match split_head(content) {
        Ok(split) => split,
        Err(_) => (content.trim(), ""),
    };
    let (line, headers) = head.split_once('\n').unwrap_or((head, ""));
    let mut words = line.split_ascii_whitespace();
    let (Some(method), Some(address), Some("HTTP/1.1")) =
        (words.next(), words.next(), words.next())
    else {
        return Err(invalid());
    };
    let target = address
        .split_once("://")
        .map_or(address, |(_, rest)| rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/"));
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let headers = headers_of(headers).map(|(name, value)| (name.to_owned(), value.to_owned()));
    Ok(Request {
        method: method.to_owned(),
        path: path.to_owned(),
        base: whole.base.clone(),
        options: options_of(query)?,
        headers: headers.collect(),
        body: whole.body.slice_ref(body.trim().as_bytes()),
        grant: whole.grant.clone(),
    })
}
