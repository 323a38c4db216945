//! Plans a query once for all its pages.

use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;

use super::{
    columns::{find_reservable_family, may_be_reserved},
    conditions::SentFilter,
    plan::{ItemParts, OpenStages, ReadFilter, ReadPlan},
    request::Request,
};
use crate::{
    access::CostClass,
    entity::{Needs, UntypedPath},
    error::Result,
    filter::Filter,
    page::{Cursor, text_fingerprint},
    row::Row,
    store::dated::name_of_period,
};

/// A planned query: everything that its pages have in common.
#[derive(Debug)]
pub(crate) struct QueryPlan {
    pub(crate) request: Arc<Request>,
    pub(crate) read: ReadPlan,
    /// Whether all keys of the queried scopes are permanently deleted. The query then finds nothing and sends
    /// nothing.
    pub(crate) finds_nothing: bool,
    /// Whether the filter alone selects the rows of the queried type.
    filter_alone_selects_type: bool,
    /// Distinguishes the query from others that send an equal filter.
    unsent: String,
    fingerprint: OnceLock<u64>,
}

/// The read of a query, and the part of the query that is not in the filter.
struct PlannedRead {
    read: ReadPlan,
    unsent: String,
    finds_nothing: bool,
}

/// A path and its filter, with their blind tokens. Either is `None` if nothing can be found, because all keys of the
/// scopes are permanently deleted.
struct PathAndFilter {
    access: Option<UntypedPath>,
    filter: Option<SentFilter>,
}

impl Request {
    /// Returns whether planning the query may send requests.
    pub(crate) fn sends_requests_to_plan(&self) -> bool {
        self.looks_up_by_token() || self.tables.is_some()
    }

    /// Plans a query that needs no request for its plan.
    pub(crate) fn plan_without_requests(self: Arc<Self>) -> Result<QueryPlan> {
        let planned = self.plan_read_without_tokens().map_err(|error| error.in_table(&self.table));
        Ok(self.into_plan(planned?))
    }

    /// Makes and checks the blind tokens, the filter and the selection. May fetch a key from the client's key
    /// provider. Sends nothing to the store, unless a query of a large window has to list its tables. With a cursor, the
    /// plan is only for the page there: a page inside a table needs no list of tables.
    pub(crate) async fn plan(mut self: Arc<Self>, cursor: Option<&Cursor>) -> Result<QueryPlan> {
        let planned = if self.looks_up_by_token() {
            self.plan_read_with_tokens_boxed().await
        } else {
            self.plan_read_without_tokens()
        };
        let planned = planned.map_err(|error| error.in_table(&self.table))?;
        let is_in_table = cursor.is_some_and(|cursor| !cursor.is_at_table_start());
        let finds_nothing = planned.finds_nothing;
        if let Some(tables) = self.tables.as_ref().filter(|_| !finds_nothing && !is_in_table) {
            let mut tables = tables.clone();
            let listed = tables.list_existing(&self.store, self.allows_many_tables).await;
            listed.map_err(|error| error.in_table(&self.table))?;
            Self::unshared(&mut self).tables = Some(tables);
        }
        Ok(self.into_plan(planned))
    }

    fn into_plan(self: Arc<Self>, planned: PlannedRead) -> QueryPlan {
        let PlannedRead { read, unsent, finds_nothing } = planned;
        let filter_alone_selects_type = self.filter_alone_selects_type(read.parts);
        QueryPlan {
            request: self,
            read,
            finds_nothing,
            filter_alone_selects_type,
            unsent,
            fingerprint: OnceLock::new(),
        }
    }

    fn plan_read_without_tokens(&self) -> Result<PlannedRead> {
        let parts = self.checked_item_rows()?;
        let filter = Some(self.filter_without_tokens(&self.access, parts)?);
        self.plan_read(parts, PathAndFilter { access: Some(self.access.clone()), filter })
    }

    fn plan_read_with_tokens_boxed(&self) -> BoxFuture<'_, Result<PlannedRead>> {
        Box::pin(self.plan_read_with_tokens())
    }

    async fn plan_read_with_tokens(&self) -> Result<PlannedRead> {
        // Blind tokens find nothing in a shredded scope, so the request is not sent.
        let access = if self.access.needs_key_tokens() {
            self.store.path_for_lookup(self.schema_of_keys(), &self.access).await?
        } else {
            Some(self.access.clone())
        };
        let parts = self.checked_item_rows()?;
        let filter = match &access {
            Some(access) => self.filter_to_send(access, parts).await?,
            None => None,
        };
        self.plan_read(parts, PathAndFilter { access, filter })
    }

    fn plan_read(&self, parts: ItemParts, keyed: PathAndFilter) -> Result<PlannedRead> {
        if self.needs.contain(Needs::EXPIRY) {
            // Before the first page: its date corrects the clock that hides expired rows.
            self.store.estimate_store_time();
        }
        let PathAndFilter { access, filter } = keyed;
        let finds_nothing = filter.is_none();
        // A request that finds nothing is refused for the same reasons as any other.
        let SentFilter { filter, unsent } = match filter {
            Some(sent) => sent,
            None => SentFilter { filter: self.filter_to_explain(parts)?, unsent: String::new() },
        };
        self.check_options(&filter)?;
        let access = access.unwrap_or_else(|| self.access.clone());
        let open_stages = self.open_stages(parts);
        let opened = if open_stages.checks_conditions_after_opening() {
            self.filter_on_opened_rows()
        } else {
            Ok(Filter::Constant(true))
        };
        if open_stages.contain(OpenStages::COMPARE) {
            opened.as_ref().map_err(Clone::clone)?;
        }
        let read = ReadPlan {
            access,
            kinds: self.types_to_decrypt_as(),
            parts,
            columns: self.columns_to_read(parts),
            filter: ReadFilter { sent: filter, opened },
            open_stages,
        };
        Ok(PlannedRead { read, unsent, finds_nothing })
    }

    /// Returns the stages for the rows of the query.
    fn open_stages(&self, parts: ItemParts) -> OpenStages {
        let may_be_reserved = match (self.schema, self.members) {
            (Some(_), _) => self.family().is_some_and(may_be_reserved),
            (None, Some(members)) => self.copies && find_reservable_family(members).is_some(),
            (None, None) => false,
        };
        OpenStages::NONE
            .and_if(self.store.sealing.unseals_rows(self.needs), OpenStages::OPEN)
            .and_if(may_be_reserved, OpenStages::CONFIRM)
            .and_if(!matches!(parts, ItemParts::Single), OpenStages::JOIN)
            .and_if(self.needs.contain(Needs::EXPIRY) && !self.with_expired, OpenStages::EXPIRE)
            .and_if(self.looks_up_by_token(), OpenStages::HIDE)
            .and_if(self.compares_opened_rows(), OpenStages::COMPARE)
    }
}

impl QueryPlan {
    /// Returns a number that identifies the query and allows cursors of other queries to be refused. Computed on
    /// demand, because only queries of several pages have cursors.
    pub(crate) fn fingerprint(&self) -> u64 {
        *self.fingerprint.get_or_init(|| text_fingerprint(&self.identifying_text()))
    }

    fn identifying_text(&self) -> String {
        let Self { request, read, unsent, .. } = self;
        let columns = read.columns.as_ref().map(|names| names.join(",")).unwrap_or_default();
        let (table, take) = (request.store.names().name(&request.table).form(), request.take);
        let mut text = format!("{table}\u{0}{}\u{0}{columns}\u{0}{take:?}", read.filter.sent);
        if let Some(tables) = &request.tables {
            text.push_str(&format!("\u{0}{}", tables.periods.identifying_text()));
        }
        text.push_str(unsent);
        text
    }

    /// Returns whether a row is an item of a query that only counts.
    ///
    /// # Errors
    ///
    /// Fails as [`Request::is_row_an_item`] does.
    pub(crate) fn is_row_an_item(&self, row: &Row) -> Result<bool> {
        // The type was not requested if the filter has compared it.
        if self.filter_alone_selects_type { Ok(true) } else { self.request.is_row_an_item(row) }
    }

    /// Returns the keys of the row if the query reads a single row.
    pub(crate) fn point_keys(&self) -> Result<Option<(String, String)>> {
        let point = self.read.access.checked_keys()?.as_point();
        Ok(point.map(|(partition_key, row_key)| (partition_key.to_owned(), row_key.to_owned())))
    }

    /// Returns the cost class of a page.
    pub(crate) fn cost_class(&self) -> CostClass {
        self.request.cost_class(&self.read.filter.sent)
    }

    /// Returns the table of the entities on the page at `cursor`, or `None` if the query reads no table.
    pub(crate) fn table_of_page(&self, cursor: Option<&Cursor>) -> Result<Option<String>> {
        match &self.request.tables {
            Some(tables) => {
                let period = tables.period_of(cursor)?;
                period.map(|period| name_of_period(tables.dated, period)).transpose()
            }
            None => Ok(Some(self.request.table.clone())),
        }
    }

    /// Returns the cursor at the beginning of the next table. Returns `None` after the last table, and for a
    /// query of one table.
    pub(crate) fn cursor_at_next_table(&self, cursor: Option<&Cursor>) -> Result<Option<Cursor>> {
        let Some(tables) = &self.request.tables else { return Ok(None) };
        let after = tables.period_of(cursor)?.and_then(|period| tables.period_after(period));
        after
            .map(|period| tables.cursor_at_beginning(period, self.fingerprint(), cursor))
            .transpose()
    }
}
