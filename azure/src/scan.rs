//! Sends queries, one page at a time.

use entable_core::{
    backend::{Rows, ScanRequest, rules::checked_page_size},
    error::{Error, ErrorKind, Result},
    page::Continuation,
};

use crate::{
    account::AccountConnection,
    call::{RequestTarget, ServiceCall},
    read::{pick_properties_unless_selected, select_list},
    screen::AnswerConditions,
    transport::Method,
    wire::{self, QueryFilter},
};

impl AccountConnection {
    /// Reads one page of a query.
    pub(crate) async fn scan_page(&self, request: ScanRequest<'_>) -> Result<Rows> {
        let name_table = |error: Error| error.in_table(request.table);
        let most = checked_page_size(&request)?;
        let answer = self.send_expecting_success(query_call(&request)).await.map_err(name_table)?;
        let next = answer.header("x-ms-continuation-nextpartitionkey").map(|partition_key| {
            let row_key = answer.header("x-ms-continuation-nextrowkey").map(str::to_owned);
            Continuation { partition_key: partition_key.to_owned(), row_key }
        });
        // An emulator answers with a continuation that leads to the first row, for ever.
        let next = next.filter(|_| most > 0);
        check_progress(request.from, next.as_ref()).map_err(name_table)?;
        let date = answer.header("date").and_then(wire::parse_http_date);
        let screen = AnswerConditions::new(&request);
        let rows = wire::decode_page(answer.body()).map_err(name_table)?;
        let rows = rows
            .into_iter()
            .filter_map(|row| row.and_then(|row| screen.keep_matching_row(row)).transpose());
        let rows = rows
            .map(|row| row.and_then(|row| pick_properties_unless_selected(row, request.select)));
        Ok(Rows { rows: rows.map(|row| row.map_err(name_table)).collect(), next, date })
    }
}

/// Encodes the request for one page.
fn query_call<'a>(request: &ScanRequest<'a>) -> ServiceCall<'a> {
    let mut call = ServiceCall::new(Method::Get, RequestTarget::Rows(request.table));
    if let QueryFilter::Matching(text) = wire::to_query_filter(request.filter) {
        call = call.with_query("$filter", text);
    }
    if let Some(select) = select_list(request.select) {
        call = call.with_query("$select", select);
    }
    if let Some(top) = request.top {
        call = call.with_query("$top", top.to_string());
    }
    if let Some(from) = request.from {
        call = call.with_query("NextPartitionKey", &from.partition_key);
        if let Some(row_key) = &from.row_key {
            call = call.with_query("NextRowKey", row_key);
        }
    }
    call
}

/// Fails if the continuation of an answer equals the one that was sent: a caller that reads to the end
/// would never stop.
pub(crate) fn check_progress<T: PartialEq + ?Sized>(
    from: Option<&T>,
    next: Option<&T>,
) -> Result<()> {
    if from.is_none() || from != next {
        return Ok(());
    }
    let message = "the answer repeats the request's continuation token, so the scan would never end; check proxies \
                   between this program and the service";
    Err(Error::new(ErrorKind::Backend, message))
}
