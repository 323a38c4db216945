//! Prepares a request: the filter, the selection and the fingerprint are made once and serve every
//! page.

use std::borrow::Cow;

use super::{conditions::SentFilter, request::Request};
use crate::{
    access::CostClass,
    backend::ScanRequest,
    entity::Access,
    error::{Error, ErrorKind, Result},
    filter::Filter,
    page::{Cursor, text_fingerprint},
    plan::wide::{self, PartsRead},
    row::Row,
    store::{
        dated::{is_dated_table_missing, name_of},
        replace_by_table_name_error,
    },
};

/// A request with everything that its pages have in common.
#[derive(Debug)]
pub(crate) struct PreparedRequest {
    pub(crate) request: Request,
    /// The access path, with the blind tokens of its keys.
    pub(crate) access: Access,
    /// Whether all keys of the scopes that the request looks up are deleted for good, so that it
    /// finds nothing and sends nothing.
    pub(crate) finds_nothing: bool,
    filter: Filter,
    select: Option<Vec<String>>,
    /// The condition that decrypted rows have to meet beyond the filter that is sent; `None` if the
    /// filter is exact.
    filter_after_opening: Option<Filter>,
    /// Identifies the query, so that a cursor of another query is refused.
    fingerprint: u64,
}

impl Request {
    /// Makes the blind tokens and the filter, and checks them. Sends nothing to the store, but may
    /// fetch a key from the client's key provider.
    pub(crate) async fn prepare_request(self) -> Result<PreparedRequest> {
        let table = self.table.clone();
        self.prepare_unnamed().await.map_err(|error| error.in_table(&table))
    }

    async fn prepare_unnamed(self) -> Result<PreparedRequest> {
        let members = self.members.map(|members| members.schemas()).unwrap_or_default();
        // Before the first page, whose date then corrects the clock that hides expired rows.
        self.store.watch_time_for_expiry(self.schema.into_iter().chain(members.iter().copied()));
        // In a shredded scope nothing is found by blind token, so that the request sends nothing.
        let keyed = match self.path_with_key_tokens(&self.access).await {
            Err(error)
                if self.store.is_lookup_of_shredded_scope(&error, &self.access, &None).await =>
            {
                None
            }
            keyed => Some(keyed?),
        };
        let filter = match &keyed {
            Some(access) => self.filter_to_send(access).await?,
            None => None,
        };
        let finds_nothing = filter.is_none();
        // A request that finds nothing is refused for what another one is refused for.
        let (filter, unsent) = match filter {
            Some(SentFilter { filter, unsent }) => (filter, unsent),
            None => (self.filter_to_explain()?, String::new()),
        };
        let access = keyed.unwrap_or_else(|| self.access.clone());
        self.check_options(&filter)?;
        let select = self.columns_to_read()?;
        let filter_after_opening = self.filter_after_opening()?;
        let columns = select.as_ref().map(|names| names.join(",")).unwrap_or_default();
        let (table, take) =
            (self.store.capabilities().table_case.canonical_table_name(&self.table), self.take);
        let mut text = format!("{table}\u{0}{filter}\u{0}{columns}\u{0}{take:?}");
        if let Some(tables) = &self.tables {
            text.push_str(&format!("\u{0}{}", tables.periods.periods_as_text()));
        }
        text.push_str(&unsent);
        let fingerprint = text_fingerprint(&text);
        Ok(PreparedRequest {
            request: self,
            access,
            finds_nothing,
            filter,
            select,
            filter_after_opening,
            fingerprint,
        })
    }
}

impl Request {
    /// Returns whether items of the request may be joined from several rows.
    fn may_join_rows(&self) -> Result<bool> {
        let is_of_wide = self.members.is_some_and(|members| members.has_wide());
        Ok(is_of_wide || self.parts_read()?.is_some())
    }

    /// Removes the rows that have expired, unless the request asks for expired rows too.
    fn drop_expired(&self, rows: &mut Vec<Result<Row>>) {
        if self.with_expired {
            return;
        }
        let (read_as, family) = (self.types_to_decrypt_as(), self.family());
        let is_over = |row: &Row| self.store.is_row_expired(row, read_as, family);
        // A row that is an error stays: the caller has to see it.
        rows.retain(|row| !row.as_ref().is_ok_and(is_over));
    }
}

impl PreparedRequest {
    /// Returns the keys of the one row that the request reads; `None` if it may read several.
    pub(crate) fn point_keys(&self) -> Result<Option<(String, String)>> {
        let point = self.access.checked_keys()?.as_point();
        Ok(point.map(|(partition_key, row_key)| (partition_key.to_owned(), row_key.to_owned())))
    }

    /// Returns the number that identifies the query.
    pub(crate) const fn query_fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Returns the cost class of a page.
    pub(crate) fn cost_class(&self) -> CostClass {
        CostClass::of_filter(&self.filter)
    }

    /// Reads one page from `cursor` on, decrypts and confirms its rows, and returns them with the
    /// cursor of the next page.
    ///
    /// A row that cannot be decrypted is an error at its place.
    pub(crate) async fn read_page(
        &self,
        cursor: Option<&Cursor>,
    ) -> Result<(Vec<Result<Row>>, Option<Cursor>)> {
        let request = &self.request;
        if self.finds_nothing {
            return Ok((Vec::new(), None));
        }
        // With another filter a cursor would skip or repeat rows, and nobody would notice.
        if cursor.is_some_and(|cursor| cursor.fingerprint != self.fingerprint) {
            return Err(Error::new(
                ErrorKind::InvalidCursor,
                "the cursor belongs to another query: table, path, filter, selection and `take` have to be the same",
            )
            .in_table(&request.table));
        }
        let Some(tables) = &request.tables else {
            return self.read_rows(&request.table_to_read(), cursor).await;
        };
        let Some(period) = tables.period_of(cursor)? else { return Ok((Vec::new(), None)) };
        let table = name_of(tables.dated, period)?;
        let table_to_read = match request.family() {
            Some(family) => family.table_beside(&table),
            None => Cow::Borrowed(&*table),
        };
        let (rows, next) = self.read_rows(&table_to_read, cursor).await?;
        let next = match (next, tables.period_after(period)) {
            (Some(next), _) => Some(Cursor { table: Some(table), ..next }),
            (None, Some(after)) => {
                Some(tables.cursor_at_beginning(after, self.fingerprint, cursor)?)
            }
            (None, None) => None,
        };
        Ok((rows, next))
    }

    /// Returns the table of the entities that the page at `cursor` finds; `None` if the query reads
    /// no table.
    pub(crate) fn table_of_page(&self, cursor: Option<&Cursor>) -> Result<Option<String>> {
        match &self.request.tables {
            Some(tables) => {
                let period = tables.period_of(cursor)?;
                period.map(|period| name_of(tables.dated, period)).transpose()
            }
            None => Ok(Some(self.request.table.clone())),
        }
    }

    /// Returns the cursor at the beginning of the next table; `None` after the last table, and for
    /// a query of one table.
    pub(crate) fn cursor_at_next_table(&self, cursor: Option<&Cursor>) -> Result<Option<Cursor>> {
        let Some(tables) = &self.request.tables else { return Ok(None) };
        let after = tables.period_of(cursor)?.and_then(|period| tables.period_after(period));
        after.map(|period| tables.cursor_at_beginning(period, self.fingerprint, cursor)).transpose()
    }

    /// Reads one page of a table from `cursor` on. A dated table that does not exist has no rows.
    async fn read_rows(
        &self,
        table: &str,
        cursor: Option<&Cursor>,
    ) -> Result<(Vec<Result<Row>>, Option<Cursor>)> {
        let (request, select) = (&self.request, self.select.as_deref());
        let scan = ScanRequest {
            table,
            filter: &self.filter,
            select,
            top: request.page_limit(cursor),
            from: cursor.filter(|cursor| !cursor.begins_table()).map(|cursor| &cursor.at),
        };
        let page = match request.store.scan(scan).await {
            Err(error) if is_dated_table_missing(&error) && request.is_dated() => {
                return Ok((Vec::new(), None));
            }
            page => page,
        };
        let page = page.map_err(|error| replace_by_table_name_error(error, table))?;
        let found = page.rows.len();
        let opened = request
            .store
            .sealing
            .open_rows(table, page.rows, request.types_to_decrypt_as(), select)
            .await;
        let mut rows = request.replace_reserved_rows(opened).await;
        let joins = request.may_join_rows()?;
        if !joins {
            request.drop_expired(&mut rows);
        }
        // Some rows were no items: `top` asks for full pages from now on.
        let mut is_less = rows.len() < found;
        match request.parts_read()? {
            Some((schema, PartsRead::All)) => {
                rows = request.store.join_page(table, schema, rows).await?;
            }
            Some((schema, PartsRead::One(part))) => {
                let whole = |row| wide::part_as_entity_row(schema, row, part);
                rows = rows.into_iter().map(|row| row.and_then(whole)).collect();
            }
            None => {}
        }
        let members = request.members.map(|members| members.schemas()).unwrap_or_default();
        for schema in members.iter().filter(|schema| schema.is_wide()) {
            rows = request.store.join_page(table, schema, rows).await?;
        }
        if joins {
            // After the join: without its part 1, the other parts of an entity would be read once more.
            let joined = rows.len();
            request.drop_expired(&mut rows);
            is_less |= rows.len() < joined;
        }
        let next = page.next.map(|at| {
            let (returned, mixed) = cursor.map_or((0, false), |at| (at.returned, at.mixed));
            let mixed = mixed || is_less;
            Cursor { fingerprint: self.fingerprint, returned, mixed, at, table: None }
        });
        if request.looks_up_by_token() {
            // After the join: a part of a wide entity that does not open is missed there.
            rows = request.store.without_shredded(rows).await;
        }
        if let Some(wanted) = &self.filter_after_opening {
            // A row that is an error stays: the caller has to see it.
            rows.retain(|row| row.as_ref().map_or(true, |row| wanted.matches(row).unwrap_or(true)));
        }
        Ok((rows, next))
    }
}
