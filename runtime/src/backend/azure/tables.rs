//! Sends requests that create, delete and list tables.

use futures_util::StreamExt;

use super::{
    account::Account,
    call::{ReadOrWrite, ServiceCall},
    scan::check_progress,
    wire,
};
use crate::{
    backend::{TableNames, TableRequest},
    error::{Error, Result, ServiceCode},
    limits,
};

impl Account {
    /// Creates, deletes or lists tables. An error of the first two names the table.
    pub(super) async fn send_table_request(&self, request: TableRequest<'_>) -> Result<TableNames> {
        match request {
            TableRequest::Create(name) => {
                self.create_table(name).await.map_err(|error| error.in_table(name))
            }
            TableRequest::Delete(name) => {
                self.delete_table(name).await.map_err(|error| error.in_table(name))
            }
            TableRequest::List { from } => self.list_tables(from).await,
        }
    }

    async fn create_table(&self, name: &str) -> Result<TableNames> {
        let table = self.table_client(name)?;
        let call = ServiceCall::write_call().with_header("prefer", "return-no-content");
        let answer = self
            .send_request(call, |context| table.create().context(context).into_future())
            .await?;
        self.expect_success(answer, ReadOrWrite::Writes).map(|_| TableNames::default())
    }

    async fn delete_table(&self, name: &str) -> Result<TableNames> {
        if limits::check_table_name(name).is_err() {
            // An invalid name is the name of no table: the error is the service's for a missing table.
            let message = "the specified resource does not exist";
            return Err(Error::service(ServiceCode::ResourceNotFound, message));
        }
        let table = self.table_client(name)?;
        let answer = self
            .send_request(ServiceCall::write_call(), |context| {
                table.delete().context(context).into_future()
            })
            .await?;
        self.expect_success(answer, ReadOrWrite::Writes).map(|_| TableNames::default())
    }

    /// Reads one page of table names. The client cannot continue a list, so a later page is requested
    /// through its pipeline with the continuation in the query.
    async fn list_tables(&self, from: Option<&str>) -> Result<TableNames> {
        let answer = match from {
            None => {
                let list = self.service_client().list();
                self.send_request(ServiceCall::read_call(), |context| async move {
                    list.context(context).into_stream().next().await.transpose()
                })
                .await?
            }
            Some(token) => {
                let query = format!("NextTableName={}", wire::encode_query_value(token));
                self.send_raw(ServiceCall::read_call(), azure_core::Method::Get, "Tables", &query)
                    .await?
            }
        };
        let answer = self.expect_success(answer, ReadOrWrite::Reads)?;
        let next = answer.header_value("x-ms-continuation-nexttablename").map(str::to_owned);
        check_progress(from, next.as_deref())?;
        Ok(TableNames { names: wire::decode_table_names(&answer.body)?, next })
    }
}
