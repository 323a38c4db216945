//! Sends writes: single operations and entity group transactions.

use azure_core::{Context, Etag};
use azure_data_tables::{IfMatchCondition, clients::TableClient};
use serde::de::IgnoredAny;

use super::{
    account::Account,
    call::{ReadOrWrite, ServiceCall},
    transport::HttpAnswer,
    wire::{self, BatchBody, JsonRow},
};
use crate::{
    backend::row_rules,
    batch::{Batch, Condition, Operation, Verb, Written},
    error::{Error, ErrorKind, Result, ServiceCode},
};

impl Account {
    /// Sends a batch, as a single request or as an entity group transaction.
    pub(super) async fn apply_batch(&self, batch: &Batch) -> Result<Vec<Written>> {
        row_rules::check_not_empty(batch)?;
        for (index, operation) in batch.operations().iter().enumerate() {
            check_etag(operation)
                .map_err(|error| row_rules::operation_error(error, batch, index))?;
        }
        let written = match batch.operations() {
            [operation] => self.apply_single(batch, operation).await.map(|written| vec![written]),
            _ => self.apply_transaction(batch).await,
        };
        written.map_err(|error| {
            let index = error.failed_index().or_else(|| (batch.len() == 1).then_some(0));
            let error = name_missing_table(error, batch);
            match index {
                Some(index) => row_rules::operation_error(error, batch, index),
                None => error.in_table(batch.table()),
            }
        })
    }

    async fn apply_single(&self, batch: &Batch, operation: &Operation) -> Result<Written> {
        let table = batch.table();
        let mut call = ServiceCall::write_call().with_deadline(batch.deadline());
        if let Some(body) = json_body(operation)? {
            call = call.with_body(body);
        }
        if operation.verb() != Verb::Insert {
            call = call.with_encoded_row_address(
                table,
                operation.row().partition_key(),
                operation.row().row_key(),
            );
        }
        let table = self.table_client(table)?;
        let answer =
            self.send_request(call, |context| send_operation(table, operation, context)).await?;
        let answer = self.expect_success(answer, ReadOrWrite::Writes)?;
        let etag = answer.header_value("etag").filter(|_| operation.verb() != Verb::Delete);
        Ok(Written::new(answer.status, etag.map(wire::parse_etag)))
    }

    /// Sends an entity group transaction. The body is written here, because the client's own has faults.
    async fn apply_transaction(&self, batch: &Batch) -> Result<Vec<Written>> {
        let table = self.table_client(batch.table())?;
        let BatchBody { bytes, content_type } = BatchBody::new(&self.endpoint, batch)?;
        let call = ServiceCall::write_call().with_deadline(batch.deadline()).with_body(bytes);
        let call = call.with_header("content-type", content_type);
        // The client puts the key only into the body that it would write, and that body is
        // replaced. Its quotes therefore need no doubling.
        let transaction = table.partition_key_client(batch.partition_key()).transaction();
        let answer =
            self.send_request(call, |context| transaction.context(context).into_future()).await?;
        let answer = self.expect_success(answer, ReadOrWrite::Writes)?;
        self.read_transaction_answer(batch, &answer)
    }

    /// Reads the result of each operation from the body: the HTTP status is 202 even if the transaction
    /// failed.
    fn read_transaction_answer(&self, batch: &Batch, answer: &HttpAnswer) -> Result<Vec<Written>> {
        let text = String::from_utf8_lossy(&answer.body);
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
                "the transaction of {} operations was answered with {} parts, it may have happened",
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
                Written::new(part.status, etag.map(wire::parse_etag))
            })
            .collect())
    }
}

/// Replaces the code `ResourceNotFound` with `TableNotFound` if only the table can be missing, since no
/// operation of the batch needs an existing row. Cosmos DB does not tell the two apart.
fn name_missing_table(error: Error, batch: &Batch) -> Error {
    let needs_row = |operation: &Operation| match operation.verb() {
        Verb::Insert | Verb::InsertOrReplace | Verb::InsertOrMerge => false,
        Verb::Replace | Verb::Merge | Verb::Delete => true,
    };
    match error.is_row_missing() && !batch.operations().iter().any(needs_row) {
        true => error.with_code(ServiceCode::TableNotFound),
        false => error,
    }
}

/// Refuses a text that is no ETag of the service. A text with line ends could otherwise add a header to
/// the request.
fn check_etag(operation: &Operation) -> Result<()> {
    match operation.condition() {
        Some(Condition::Match(etag))
            if !etag.is_weak() || etag.to_string().contains(char::is_control) =>
        {
            let message = "the ETag is not one of the service's; send one back as it was read";
            Err(Error::service(ServiceCode::InvalidInput, message))
        }
        _ => Ok(()),
    }
}

/// Writes the row as JSON. Returns `None` for a delete, which has no body.
fn json_body(operation: &Operation) -> Result<Option<Vec<u8>>> {
    if operation.verb() == Verb::Delete {
        return Ok(None);
    }
    let mut body = Vec::with_capacity(operation.row().as_bytes().len() * 2);
    serde_json::to_writer(&mut body, &JsonRow(operation.row())).map_err(|error| {
        Error::service(ServiceCode::InvalidInput, "the row cannot be written as JSON")
            .with_source(error)
    })?;
    Ok(Some(body))
}

/// Sends one operation with the client's method for its verb. A condition is always passed: without one,
/// the client would overwrite or delete the row in any version.
async fn send_operation(
    table: TableClient,
    operation: &Operation,
    context: Context,
) -> azure_core::Result<()> {
    let row = operation.row();
    if operation.verb() == Verb::Insert {
        // `()` only fills the place of a body: the transport sends the JSON of the row instead.
        let insert = table.insert::<_, IgnoredAny>(())?.context(context);
        return insert.into_future().await.map(drop);
    }
    let entity = table
        .partition_key_client(wire::double_quotes(row.partition_key()))
        .entity_client(wire::double_quotes(row.row_key()));
    let condition = match operation.condition() {
        Some(Condition::Match(etag)) => IfMatchCondition::Etag(Etag::from(etag.to_string())),
        Some(Condition::Any) | None => IfMatchCondition::Any,
    };
    match operation.verb() {
        Verb::Replace => {
            entity.update((), condition)?.context(context).into_future().await.map(drop)
        }
        Verb::Merge => entity.merge((), condition)?.context(context).into_future().await.map(drop),
        Verb::InsertOrReplace => {
            entity.insert_or_replace(())?.context(context).into_future().await.map(drop)
        }
        Verb::InsertOrMerge => {
            entity.insert_or_merge(())?.context(context).into_future().await.map(drop)
        }
        // Inserts have returned above.
        Verb::Insert | Verb::Delete => {
            entity.delete().if_match(condition).context(context).into_future().await.map(drop)
        }
    }
}
