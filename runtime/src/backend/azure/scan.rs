//! Sends queries, one page at a time.

use azure_data_tables::{Filter, Select, Top};
use futures_util::StreamExt;
use serde::de::IgnoredAny;

use super::{
    account::Account,
    call::{ReadOrWrite, ServiceCall},
    read::{pick_properties_unless_selected, select_list},
    screen::AnswerScreen,
    wire::{self, QueryFilter},
};
use crate::{
    backend::{Rows, ScanRequest, page_bounds::checked_page_size},
    error::{Error, ErrorKind, Result},
    page::Continuation,
};

impl Account {
    /// Reads one page of a query.
    pub(super) async fn scan_page(&self, request: ScanRequest<'_>) -> Result<Rows> {
        let name_table = |error: Error| error.in_table(request.table);
        let most = checked_page_size(&request)?;
        let mut query = self.table_client(request.table).map_err(name_table)?.query();
        if let QueryFilter::Matching(text) = wire::to_query_filter(request.filter) {
            query = query.filter(Filter::new(text));
        }
        if let Some(select) = select_list(request.select) {
            query = query.select(Select::new(select));
        }
        if let Some(top) = request.top {
            query = query.top(Top::new(top));
        }
        if let Some(from) = request.from {
            query = query.initial_partition_key(from.partition_key.clone());
            if let Some(row_key) = &from.row_key {
                query = query.initial_row_key(row_key.clone());
            }
        }
        let answer = self
            .send_request(ServiceCall::read_call(), |context| async move {
                let mut pages = query.context(context).into_stream::<IgnoredAny>();
                pages.next().await.transpose()
            })
            .await
            .map_err(name_table)?;
        let answer = self.expect_success(answer, ReadOrWrite::Reads).map_err(name_table)?;
        let next = answer.header_value("x-ms-continuation-nextpartitionkey").map(|partition_key| {
            let row_key = answer.header_value("x-ms-continuation-nextrowkey").map(str::to_owned);
            Continuation { partition_key: partition_key.to_owned(), row_key }
        });
        // An emulator answers with a continuation that leads to the first row, for ever.
        let next = next.filter(|_| most > 0);
        check_progress(request.from, next.as_ref()).map_err(name_table)?;
        let date = answer.header_value("date").and_then(wire::parse_http_date);
        let screen = AnswerScreen::new(&request);
        let rows = wire::decode_page(&answer.body).map_err(name_table)?;
        let rows = rows
            .into_iter()
            .filter_map(|row| row.and_then(|row| screen.keep_matching_row(row)).transpose());
        let rows = rows
            .map(|row| row.and_then(|row| pick_properties_unless_selected(row, request.select)));
        Ok(Rows { rows: rows.map(|row| row.map_err(name_table)).collect(), next, date })
    }
}

/// Fails if the continuation of an answer equals the one that was sent: a caller that reads to the end
/// would never stop.
pub(super) fn check_progress<T: PartialEq + ?Sized>(
    from: Option<&T>,
    next: Option<&T>,
) -> Result<()> {
    if from.is_none() || from != next {
        return Ok(());
    }
    let message = "the answer's continuation token is the one that was sent, which would lead on for \
                   ever; check proxies";
    Err(Error::new(ErrorKind::Backend, message))
}
