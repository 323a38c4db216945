//! The request of a query, without its types: table, path, conditions, properties and sizes.

use super::{
    columns::{has_sealed_member, is_read_whole, reservable_family, with_owner, with_system},
    encrypted_filter::has_encrypted,
};
use crate::{
    access::CostClass,
    entity::{Access, FromRow, Schema, set::Members},
    error::{Error, ErrorKind, Result},
    filter::Filter,
    key::Family,
    limits::PAGE_ROWS,
    page::Cursor,
    store::{rows::Store, sealing::open::Reading},
};

/// Stands for a blind token in `explain`, which makes none.
pub(crate) const TOKEN_IN_EXPLAIN: &str = "<token>";

/// Everything that a query says before it is run. Making one sends nothing.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) store: Store,
    pub(crate) table: String,
    pub(crate) access: Access,
    pub(crate) schema: Option<&'static Schema>,
    pub(crate) members: Option<&'static Members>,
    /// The entity whose keys the path leads to, where no type is asked for: its keys may need blind
    /// tokens.
    pub(crate) tokens: Option<&'static Schema>,
    pub(crate) conditions: Vec<Filter>,
    pub(crate) select: Option<Vec<String>>,
    pub(crate) fault: Option<Error>,
    pub(crate) take: Option<u64>,
    page_size: Option<u32>,
    scan_allowed: bool,
    any_order: bool,
    pub(crate) only_older: bool,
    /// Whether a query of a set also returns index copies.
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

    /// Makes it a request for one entity type. A typed path needs no `allow_scan`: `scan()` says it.
    pub(crate) fn typed(self, schema: &'static Schema) -> Self {
        Self { schema: Some(schema), scan_allowed: true, ..self }
    }

    /// Names the entity whose keys the path leads to.
    pub(crate) fn with_keys_of(self, tokens: Option<&'static Schema>) -> Self {
        Self { tokens, ..self }
    }

    /// Makes it a request for the members of a set.
    pub(crate) fn of_members(self, members: &'static Members) -> Self {
        Self { members: Some(members), ..self }
    }

    /// Returns what the rows are decrypted as.
    pub(crate) fn reading(&self) -> Reading {
        match (self.schema, self.members) {
            (Some(schema), _) => Reading::Typed(schema),
            (None, Some(members)) => Reading::Members(members),
            (None, None) => Reading::Untyped,
        }
    }

    /// Adds a condition; a faulty one is returned by the verb that runs the query.
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

    /// Asks for the properties of `T` alone.
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

    /// Restricts a typed request to rows of older versions.
    pub(crate) fn only_older(&mut self) {
        self.only_older = true;
    }

    pub(crate) fn family(&self) -> Option<&'static Family> {
        self.access.family
    }

    /// Returns whether the path leads to a list of ids.
    pub(crate) fn is_list(&self) -> bool {
        self.access.family.is_some_and(|family| family.is_list())
    }

    /// Returns the table that is read: a list may have a table of its own.
    pub(crate) fn rows_table(&self) -> &str {
        let list = self.access.family.filter(|_| self.is_list());
        list.and_then(|family| family.table).unwrap_or(&self.table)
    }

    /// Returns the properties to ask for; `None` asks for all.
    pub(crate) fn columns_to_read(&self) -> Option<Vec<String>> {
        let mut columns = self.select.clone()?;
        if self.schema.is_some_and(is_read_whole) || self.members.is_some_and(has_sealed_member) {
            return None;
        }
        // Conditions that are compared after decryption need their properties in the row.
        for condition in self.conditions.iter().filter(|condition| has_encrypted(condition)) {
            condition.visit_properties(&mut |property| columns.push(property.to_owned()));
        }
        let family = match self.members {
            Some(members) if self.copies => reservable_family(members),
            _ => self.access.family,
        };
        Some(with_owner(with_system(columns, self.schema), family))
    }

    /// Returns `$top`: how many rows the next page may have.
    ///
    /// It is the number of items left to take, which makes one request where every row is an item.
    /// Once a page had rows of other types, nobody knows how many more follow: later pages are as
    /// large as the service allows, so that there are as few requests as possible.
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

    /// Refuses a page size out of range, a table scan that the caller did not allow, and `take` or
    /// `first` on a store that returns rows in no order.
    pub(crate) fn check(&self, filter: &Filter) -> Result<()> {
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
