//! A query without its types: what is sent, page by page.

use super::{
    columns::{claimed_family, with_owner},
    encrypted_filter as blind,
    encrypted_filter::Token,
};
use crate::{
    access::CostClass,
    backend::Scan,
    edm::Value,
    entity::{Access, Discriminator, FromRow, Schema, set::Members},
    error::{Error, ErrorKind, Result},
    filter::Filter,
    key::{Family, FamilyKind},
    limits::PAGE_ROWS,
    page::Cursor,
    plan,
    row::Row,
    store::rows::Store,
    store::sealing::open::Reading,
};

/// The properties that a reader needs beside its own: keys, Timestamp, and the type.
pub(crate) const SYSTEM: [&str; 3] = ["PartitionKey", "RowKey", "Timestamp"];

/// What stands for a token where a query is told.
pub(crate) const SOME_TOKEN: &str = "<token>";

/// What is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) store: Store,
    pub(crate) table: String,
    pub(crate) access: Access,
    pub(crate) schema: Option<&'static Schema>,
    pub(crate) members: Option<&'static Members>,
    /// Whose tokens the path lacks, where no type is asked for.
    pub(crate) tokens: Option<&'static Schema>,
    pub(crate) conditions: Vec<Filter>,
    pub(crate) select: Option<Vec<String>>,
    fault: Option<Error>,
    pub(crate) take: Option<u64>,
    page_size: Option<u32>,
    scan_allowed: bool,
    any_order: bool,
    only_older: bool,
    /// Whether the readers of sets hand out copies.
    pub(crate) copies: bool,
}

impl Request {
    pub(crate) fn new(store: Store, table: String, access: Access) -> Self {
        Self {
            store,
            table,
            access,
            schema: None,
            members: None,
            tokens: None,
            conditions: Vec::new(),
            select: None,
            fault: None,
            take: None,
            page_size: None,
            scan_allowed: false,
            any_order: false,
            only_older: false,
            copies: false,
        }
    }

    /// A typed path is as wide as it says: `scan()` is the permission to scan.
    pub(crate) fn typed(self, schema: &'static Schema) -> Self {
        Self { schema: Some(schema), scan_allowed: true, ..self }
    }

    /// A path whose tokens are those of that entity.
    pub(crate) fn with_tokens(self, tokens: Option<&'static Schema>) -> Self {
        Self { tokens, ..self }
    }

    /// Rows of the members of a set.
    pub(crate) fn of_members(self, members: &'static Members) -> Self {
        Self { members: Some(members), ..self }
    }

    /// What the rows are read as.
    pub(crate) fn reading(&self) -> Reading {
        match (self.schema, self.members) {
            (Some(schema), _) => Reading::Typed(schema),
            (None, Some(members)) => Reading::Members(members),
            (None, None) => Reading::Untyped,
        }
    }

    pub(crate) fn condition(&mut self, filter: Result<Filter>) {
        match filter {
            Ok(filter) => match filter.check() {
                Ok(()) => self.conditions.push(filter),
                Err(error) => {
                    self.fault.get_or_insert(error);
                }
            },
            Err(error) => {
                self.fault.get_or_insert(error);
            }
        }
    }

    pub(crate) fn select<T: FromRow>(&mut self) {
        self.select = if self.is_list() { None } else { T::columns(self.access.family) };
    }

    pub(crate) fn page_size(&mut self, rows: u32) {
        self.page_size = Some(rows);
    }

    pub(crate) fn allow_scan(&mut self) {
        self.scan_allowed = true;
    }

    pub(crate) fn any_order(&mut self) {
        self.any_order = true;
    }

    /// Only rows of older versions.
    pub(crate) fn only_older(&mut self) {
        self.only_older = true;
    }

    pub(crate) fn family(&self) -> Option<&'static Family> {
        self.access.family
    }

    /// The filter as it is told: what only a verb can make stands for itself.
    pub(crate) fn filter(&self) -> Result<Filter> {
        let token = |property: &str, _: &Value| self.companion(property, SOME_TOKEN);
        self.filter_of(&self.access, &token)
    }

    /// The filter as it is sent: keys, type, conditions.
    pub(crate) fn filter_of(&self, access: &Access, token: Token<'_>) -> Result<Filter> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let mut filter = access.checked()?.filter();
        if let Some(condition) = self.type_condition() {
            filter = filter.and_all(condition);
        }
        // A list holds ids: the conditions are for its entities.
        let conditions = if self.is_list() { &[] } else { self.conditions.as_slice() };
        for condition in conditions {
            let condition = match self.schema {
                Some(_) => plan::key_conditions(condition, access)?,
                None => condition.clone(),
            };
            self.check_plain(&condition)?;
            filter = filter.and_all(blind::widened(&condition, token)?);
        }
        Ok(filter)
    }

    /// The keys, where the request is for one row.
    pub(crate) async fn point(&self) -> Result<Option<(String, String)>> {
        let access = self.keyed(&self.access).await?;
        let point = access.checked()?.as_point();
        Ok(point.map(|(partition_key, row_key)| (partition_key.to_owned(), row_key.to_owned())))
    }

    /// The conditions alone, as they are for rows of that family.
    pub(crate) fn condition_on(&self, family: &'static Family) -> Result<Filter> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let access = Access {
            family: Some(family),
            keys: crate::access::Keys::whole_table(),
            parts: Vec::new(),
            fault: None,
            open: None,
        };
        let mut filter = Filter::Constant(true);
        for condition in &self.conditions {
            filter = filter.and_all(plan::key_conditions(condition, &access)?);
        }
        Ok(filter)
    }

    pub(crate) fn is_list(&self) -> bool {
        self.access.family.is_some_and(|family| family.kind == FamilyKind::List)
    }

    /// The table of the rows that are read: of a list, where it has one of its own.
    pub(crate) fn rows_table(&self) -> &str {
        let list = self.access.family.filter(|_| self.is_list());
        list.and_then(|family| family.table).unwrap_or(&self.table)
    }

    /// Rows of other types are left out by the service only where no bounds of the keys do it.
    fn type_condition(&self) -> Option<Filter> {
        let schema = self.schema?;
        let Discriminator::Property(name) = schema.discriminator else { return None };
        let family = self.access.family?;
        if self.only_older {
            return Some(older_condition(name, schema));
        }
        let keys = &self.access.keys;
        let apart = keys.partition.is_some()
            && (keys.bounds_row_key() || !family.partition.literal_prefix().is_empty());
        (!apart).then(|| versions_condition(name, schema, family))
    }

    /// The properties that are asked for; `None`: all.
    pub(crate) fn selected(&self) -> Option<Vec<String>> {
        let mut columns = self.select.clone()?;
        if self.schema.is_some_and(is_read_whole) || self.members.is_some_and(has_sealed) {
            return None;
        }
        // What is compared once rows are open has to be in them.
        for condition in self.conditions.iter().filter(|condition| blind::has_blind(condition)) {
            condition.visit_properties(&mut |property| columns.push(property.to_owned()));
        }
        let family = match self.members {
            Some(members) if self.copies => claimed_family(members),
            _ => self.access.family,
        };
        Some(with_owner(with_system(columns, self.schema), family))
    }

    pub(crate) fn class(&self) -> CostClass {
        // A query that is refused still has its path.
        let filter = self.filter().unwrap_or_else(|_| self.access.keys.filter());
        CostClass::of_filter(&filter)
    }

    /// What the service is told of the size of a page.
    ///
    /// As many rows as there are items left to take, which is one request where every row is an
    /// item. Once a page had rows of other types, nobody knows how many more there are: from then on
    /// pages are as large as they can be, so that the requests are as few as they can be.
    pub(crate) fn top(&self, cursor: Option<&Cursor>) -> Option<u32> {
        let is_mixed = cursor.is_some_and(|cursor| cursor.mixed);
        let returned = cursor.map_or(0, |cursor| cursor.returned);
        let left = self.take.filter(|_| !is_mixed).map(|take| take.saturating_sub(returned));
        let left = left.and_then(|left| u32::try_from(left).ok()).filter(|left| *left <= PAGE_ROWS);
        match (left, self.page_size) {
            (Some(left), Some(size)) => Some(left.min(size)),
            (left, size) => left.or(size),
        }
    }

    /// Everything that makes it this query and no other.
    fn fingerprint(&self, filter: &Filter) -> u64 {
        let select = self.selected().map(|names| names.join(",")).unwrap_or_default();
        let text =
            format!("{}\u{0}{filter}\u{0}{select}\u{0}{:?}", self.table.to_lowercase(), self.take);
        crate::page::fingerprint(&text)
    }

    /// One page from `cursor` on, with the cursor of the next.
    ///
    /// A row that does not open is an error of its own.
    pub(crate) async fn page(
        &self,
        cursor: Option<&Cursor>,
    ) -> Result<(Vec<Result<Row>>, Option<Cursor>)> {
        let place = |error: Error| error.in_table(&self.table);
        let filter = self.sent_filter().await.map_err(place)?;
        self.check(&filter).map_err(place)?;
        let fingerprint = self.fingerprint(&filter);
        if cursor.is_some_and(|cursor| cursor.fingerprint != fingerprint) {
            return Err(place(Error::new(
                ErrorKind::InvalidCursor,
                "the cursor belongs to another query: table, path, filter, selection and `take` have to be the same",
            )));
        }
        let select = self.selected();
        let rows = self
            .store
            .scan(Scan {
                table: self.rows_table(),
                filter: &filter,
                select: select.as_deref(),
                top: self.top(cursor),
                from: cursor.map(|cursor| &cursor.at),
            })
            .await?;
        let next = rows.next.map(|at| {
            let (returned, mixed) = cursor.map_or((0, false), |at| (at.returned, at.mixed));
            Cursor { fingerprint, returned, mixed, at }
        });
        let vault = &self.store.sealing;
        let opened =
            vault.open(self.rows_table(), rows.rows, self.reading(), select.as_deref()).await;
        let mut opened = self.confirmed(opened).await;
        if let Some(wanted) = self.after_opening().map_err(place)? {
            opened
                .retain(|row| row.as_ref().map_or(true, |row| wanted.matches(row).unwrap_or(true)));
        }
        Ok((opened, next))
    }

    fn check(&self, filter: &Filter) -> Result<()> {
        if let Some(size) = self.page_size.filter(|size| *size == 0 || *size > PAGE_ROWS) {
            let message = format!("a page has 1 to {PAGE_ROWS} rows, not {size}");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        if !self.scan_allowed && CostClass::of_filter(filter) == CostClass::TableScan {
            let message = format!(
                "the filter `{filter}` reads the whole table; give the PartitionKey, or call `allow_scan()`"
            );
            return Err(Error::new(ErrorKind::ScanRefused, message));
        }
        let store = self.store.capabilities();
        if self.take.is_some() && !store.ordered && !self.any_order {
            // One row is the first in any order.
            if CostClass::of_filter(filter) != CostClass::Point {
                let message = format!(
                    "the rows of the {} store come in no order, so that its first ones are any; call \
                     `any_order()` if any will do, or read all and sort them",
                    store.name
                );
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
        }
        Ok(())
    }
}

/// Whether rows of the entity are read with all of their properties: those of an older version have
/// other names, and a row is vouched for as a whole.
pub(crate) fn is_read_whole(schema: &'static Schema) -> bool {
    schema.older.is_some() || schema.sealed
}

fn has_sealed(members: &'static Members) -> bool {
    members.schemas().iter().any(|schema| schema.sealed)
}

/// Rows of a family in all versions, so that a newer one is an error and not left out.
fn versions_condition(name: &str, schema: &Schema, family: &Family) -> Filter {
    if schema.older.is_none() {
        return Filter::eq(name, family.marker);
    }
    let copy = family.marker.find('#').and_then(|at| family.marker.get(at..)).unwrap_or_default();
    let first = Filter::eq(name, [schema.entity_type, copy].concat());
    let versions = [schema.entity_type, ".v"].concat();
    let after = [schema.entity_type, ".w"].concat();
    first | (Filter::ge(name, versions) & Filter::lt(name, after))
}

/// The primaries of the versions before.
fn older_condition(name: &str, schema: &'static Schema) -> Filter {
    let markers = schema.versions().skip(1).flat_map(|older| {
        let another = (older.version == 1).then(|| [schema.entity_type, ".v1"].concat());
        [older.marker.to_owned()].into_iter().chain(another)
    });
    Filter::any(markers.map(|marker| Filter::eq(name, marker)))
}

pub(crate) fn with_system(columns: Vec<String>, schema: Option<&Schema>) -> Vec<String> {
    let marker = match schema.map(|schema| schema.discriminator) {
        Some(Discriminator::Property(name)) => Some(name),
        _ => None,
    };
    let system = SYSTEM.into_iter().chain(marker).map(str::to_owned);
    let mut names: Vec<String> = Vec::new();
    for name in system.chain(columns) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}
