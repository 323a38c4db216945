//! Sends writes: single operations and entity group transactions.

use entable_core::{
    __runtime::row::json::{JsonRow, parse_etag},
    backend::rules,
    batch::{Batch, Condition, Operation, Verb, Written},
    error::{Error, ErrorKind, Result, ServiceCode},
};

use crate::{
    account::AccountConnection,
    call::{ReadOrWrite, RequestTarget, ServiceCall},
    transport::{HttpAnswer, Method},
    wire::{self, BatchBody},
};

impl AccountConnection {
    /// Sends a batch, as a single request or as an entity group transaction.
    pub(crate) async fn apply_batch(&self, batch: &Batch) -> Result<Vec<Written>> {
        rules::check_not_empty(batch)?;
        for (index, operation) in batch.operations().iter().enumerate() {
            check_etag(operation)
                .map_err(|error| rules::name_operation_in_error(error, batch, index))?;
        }
        let written = match batch.operations() {
            [operation] => self.apply_single(batch, operation).await.map(|written| vec![written]),
            _ => self.apply_transaction(batch).await,
        };
        written.map_err(|error| {
            let index = error.failed_index().or_else(|| (batch.len() == 1).then_some(0));
            let error = name_missing_table(error, batch);
            match index {
                Some(index) => rules::name_operation_in_error(error, batch, index),
                None => error.in_table(batch.table()),
            }
        })
    }

    async fn apply_single(&self, batch: &Batch, operation: &Operation) -> Result<Written> {
        let call = operation_call(batch.table(), operation)?.with_deadline(batch.deadline());
        let answer = self.send_expecting_success(call).await?;
        let etag = answer.header("etag").filter(|_| operation.verb() != Verb::Delete);
        Ok(Written::new(answer.status(), etag.map(parse_etag)))
    }

    async fn apply_transaction(&self, batch: &Batch) -> Result<Vec<Written>> {
        let BatchBody { bytes, content_type } = BatchBody::new(&self.endpoint.url, batch)?;
        let call = ServiceCall::new(Method::Post, RequestTarget::Batch(batch.table()))
            .with_deadline(batch.deadline())
            .with_body(content_type, bytes);
        let answer = self.send_expecting_success(call).await?;
        self.read_transaction_answer(batch, &answer)
    }

    /// Reads the result of each operation from the body: the HTTP status is 202 even if the transaction
    /// failed.
    fn read_transaction_answer(&self, batch: &Batch, answer: &HttpAnswer) -> Result<Vec<Written>> {
        let text = String::from_utf8_lossy(answer.body());
        let parts = wire::batch_answer_parts(&text);
        if let Some(failed) = parts.iter().find(|part| !(200..300).contains(&part.status)) {
            let found =
                wire::read_refusal(failed.status, failed.body.as_bytes(), failed.error_code);
            // Not every message begins with a position. One beyond the last operation cannot come
            // from the service, and callers look up the operation by it.
            let index = found.index.unwrap_or(0).min(batch.len() - 1);
            return Err(self
                .service_error(failed.status, found, ReadOrWrite::Writes)
                .at_operation(index));
        }
        if parts.len() != batch.len() {
            let message = format!(
                "the service answered a transaction of {} operations with {} parts; the write may have happened",
                batch.len(),
                parts.len()
            );
            return Err(Error::new(ErrorKind::Ambiguous, message));
        }
        let operations = batch.operations().iter();
        Ok(operations
            .zip(parts)
            .map(|(operation, part)| {
                let etag = part.etag.filter(|_| operation.verb() != Verb::Delete);
                Written::new(part.status, etag.map(parse_etag))
            })
            .collect())
    }
}

/// Replaces the code `ResourceNotFound` with `TableNotFound` if no operation of the batch needs an existing row, so
/// only the table can be missing. Cosmos DB does not distinguish the two.
fn name_missing_table(error: Error, batch: &Batch) -> Error {
    let needs_row = |operation: &Operation| match operation.verb() {
        Verb::Insert | Verb::InsertOrReplace | Verb::InsertOrMerge => false,
        Verb::Replace | Verb::Merge | Verb::Delete => true,
    };
    if error.is_row_missing() && !batch.operations().iter().any(needs_row) {
        error.with_code(ServiceCode::TableNotFound)
    } else {
        error
    }
}

/// Refuses text that is not an ETag of the service. Otherwise, text with line breaks could add a header to the request.
fn check_etag(operation: &Operation) -> Result<()> {
    match operation.condition() {
        Some(Condition::Match(etag))
            if !etag.is_weak() || etag.to_string().contains(char::is_control) =>
        {
            let message =
                "the ETag is not in the service's format; pass the ETag exactly as it was read";
            Err(Error::service(ServiceCode::InvalidInput, message))
        }
        _ => Ok(()),
    }
}

/// Encodes a single operation. The header `If-Match` alone distinguishes an update from an upsert: without
/// it, PUT and MERGE insert a missing row.
fn operation_call<'a>(table: &'a str, operation: &'a Operation) -> Result<ServiceCall<'a>> {
    let row = operation.row();
    let method = match operation.verb() {
        Verb::Insert => Method::Post,
        Verb::Replace | Verb::InsertOrReplace => Method::Put,
        Verb::Merge | Verb::InsertOrMerge => Method::Merge,
        Verb::Delete => Method::Delete,
    };
    let (partition_key, row_key) = (row.partition_key(), row.row_key());
    let call = match operation.verb() {
        // Without this header, the answer repeats the row that was sent.
        Verb::Insert => ServiceCall::new(method, RequestTarget::Rows(table))
            .with_header("prefer", "return-no-content"),
        _ => ServiceCall::new(method, RequestTarget::Row { table, partition_key, row_key }),
    };
    let call = match operation.condition() {
        None => call,
        Some(Condition::Any) => call.with_header("if-match", "*"),
        Some(Condition::Match(etag)) => call.with_header("if-match", etag.to_string()),
    };
    if operation.verb() == Verb::Delete {
        return Ok(call);
    }
    let mut body = Vec::with_capacity(row.byte_len() * 2);
    serde_json::to_writer(&mut body, &JsonRow(row)).map_err(|error| {
        Error::service(ServiceCode::InvalidInput, "the row cannot be written as JSON")
            .with_source(error)
    })?;
    Ok(call.with_body("application/json", body))
}
