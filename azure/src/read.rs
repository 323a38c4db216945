//! Sends point reads.

use entable_core::{
    __runtime::row::json::parse_etag,
    backend::{
        ReadRequest,
        rules::{check_read_keys, select_properties},
    },
    error::{Error, ErrorKind, Result, ServiceCode},
    limits,
    row::Row,
};

use crate::{
    account::AccountConnection,
    call::{ReadOrWrite, RequestTarget, ServiceCall},
    transport::Method,
    wire,
};

impl AccountConnection {
    /// Reads one row by its keys. Returns `None` if the row does not exist.
    pub(crate) async fn read_row(&self, request: ReadRequest<'_>) -> Result<Option<Row>> {
        let ReadRequest { table, partition_key, row_key, select } = request;
        let name_row = |error: Error| error.in_table(table).at_keys(partition_key, row_key);
        check_read_keys(table, partition_key, row_key)?;
        let target = RequestTarget::Row { table, partition_key, row_key };
        let mut call = ServiceCall::new(Method::Get, target);
        if let Some(select) = select_list(select) {
            call = call.with_query("$select", select);
        }
        let answer = self.send(call).await.map_err(name_row)?;
        if answer.status() == 404 {
            let error = self.refusal_error(&answer, ReadOrWrite::Reads);
            // A missing table is an error and no missing row. Cosmos DB has one code for both, so
            // that a read there finds no row in a missing table.
            return match error.service_code() {
                Some(ServiceCode::ResourceNotFound | ServiceCode::EntityNotFound) => Ok(None),
                _ => Err(name_row(error)),
            };
        }
        let answer = self.expect_success(answer, ReadOrWrite::Reads).map_err(name_row)?;
        let row = wire::decode_row(answer.body()).map_err(name_row)?;
        if (row.partition_key(), row.row_key()) != (partition_key, row_key) {
            let message = "the answer is not the requested row; check proxies between this program and the service";
            return Err(name_row(Error::new(ErrorKind::Backend, message)));
        }
        // A condition needs the ETag as it was sent. One that is derived from the Timestamp can
        // differ: the emulator writes zeros at the end of the time.
        let row = match answer.header("etag") {
            Some(etag) => row.with_etag(parse_etag(etag)),
            None => row,
        };
        pick_properties_unless_selected(row, select).map(Some)
    }
}

/// Returns the row with only the selected properties if `$select` had too many names to send and the service returned
/// the whole row. Otherwise returns the row unchanged.
pub(crate) fn pick_properties_unless_selected(row: Row, select: Option<&[String]>) -> Result<Row> {
    if select.is_none() || select_list(select).is_some() {
        return Ok(row);
    }
    // `select_properties` builds a new row, whose ETag would be the one of its Timestamp.
    let etag = row.etag();
    let picked = select_properties(&row, select)?;
    Ok(match etag {
        Some(etag) => picked.with_etag(etag),
        None => picked,
    })
}

/// Returns the text of `$select`: the wanted properties, and keys and Timestamp, which every row needs.
/// Returns `None` to get whole rows, if `select` is `None` or has too many names. In the second case,
/// `pick_properties_unless_selected` picks the properties later.
pub(crate) fn select_list(select: Option<&[String]>) -> Option<String> {
    let mut names = String::from("PartitionKey,RowKey,Timestamp");
    let is_own = |name: &&String| !matches!(name.as_str(), "PartitionKey" | "RowKey" | "Timestamp");
    let own = || select.into_iter().flatten().filter(is_own);
    // The service accepts 255 names, including three system properties. No row has more properties than that.
    if select.is_none() || own().count() > limits::PROPERTIES {
        return None;
    }
    for name in own() {
        names.push(',');
        names.push_str(name);
    }
    Some(names)
}
