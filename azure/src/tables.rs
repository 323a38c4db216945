//! Sends requests that create, delete and list tables.

use entable_core::{
    backend::{NameRange, TableNames, TableRequest},
    error::{Error, Result, ServiceCode},
    filter::Filter,
    limits,
};

use crate::{
    account::AccountConnection,
    call::{RequestTarget, ServiceCall},
    scan::check_progress,
    transport::Method,
    wire,
};

impl AccountConnection {
    /// Creates, deletes or lists tables. An error of the first two names the table.
    pub(crate) async fn send_table_request(&self, request: TableRequest<'_>) -> Result<TableNames> {
        match request {
            TableRequest::Create(name) => {
                self.create_table(name).await.map_err(|error| error.in_table(name))
            }
            TableRequest::Delete(name) => {
                self.delete_table(name).await.map_err(|error| error.in_table(name))
            }
            TableRequest::List { from, within } => self.list_tables(from, within).await,
        }
    }

    async fn create_table(&self, name: &str) -> Result<TableNames> {
        limits::check_table_name(name)?;
        // A valid name has no character that JSON escapes.
        let body = format!("{{\"TableName\":\"{name}\"}}");
        let call = ServiceCall::new(Method::Post, RequestTarget::Tables)
            .with_header("prefer", "return-no-content")
            .with_body("application/json", body);
        self.send_expecting_success(call).await.map(|_| TableNames::default())
    }

    async fn delete_table(&self, name: &str) -> Result<TableNames> {
        if limits::check_table_name(name).is_err() {
            // An invalid name is the name of no table: the error is the service's for a missing table.
            let message = "the specified resource does not exist";
            return Err(Error::service(ServiceCode::ResourceNotFound, message));
        }
        let call = ServiceCall::new(Method::Delete, RequestTarget::Table(name));
        self.send_expecting_success(call).await.map(|_| TableNames::default())
    }

    /// Reads one page of table names.
    async fn list_tables(
        &self,
        from: Option<&str>,
        within: Option<NameRange<'_>>,
    ) -> Result<TableNames> {
        let mut call = ServiceCall::new(Method::Get, RequestTarget::Tables);
        // Cosmos DB lists in no order: all names are read.
        if let Some(range) = within.filter(|_| !self.cosmos) {
            call = call.with_query("$filter", filter_of_names(range).to_string());
        }
        if let Some(from) = from {
            call = call.with_query("NextTableName", from);
        }
        let answer = self.send_expecting_success(call).await?;
        let next = answer.header("x-ms-continuation-nexttablename").map(str::to_owned);
        check_progress(from, next.as_deref())?;
        Ok(TableNames { names: wire::decode_table_names(answer.body())?, next })
    }
}

/// Returns the filter for the names in a range, in the case of the range and in lower case.
// The service ignores case in names of tables, and does not document how a filter compares them: as they
// were created, or in lower case.
fn filter_of_names(range: NameRange<'_>) -> Filter {
    let between = |first: &str, last: &str| {
        Filter::ge("TableName", first).and_all(Filter::le("TableName", last))
    };
    let (first, last) = (range.first.to_ascii_lowercase(), range.last.to_ascii_lowercase());
    let as_given = between(range.first, range.last);
    if first == range.first && last == range.last {
        return as_given;
    }
    Filter::any([as_given, between(&first, &last)])
}
