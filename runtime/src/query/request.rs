//! Describes a query without its types: store, table, path, conditions, selected properties, and the
//! limits on items and page size.

use std::{borrow::Cow, sync::Arc};

use super::{
    columns::{
        any_member_seals_rows, columns_with_owner, columns_with_system, find_reservable_family,
        is_read_whole,
    },
    encrypted_filter::has_encrypted_condition,
    plan::{ItemOrigin, ItemParts},
    tables::{Periods, QueriedTables, WindowPeriods},
};
use crate::{
    access::CostClass,
    edm::Value,
    entity::{
        Needs, RowKind, RowVersion, Schema, SetMembers, TableEntity, UntypedPath,
        dated::DatedTables, set::Members,
    },
    error::{Error, ErrorKind, Result},
    filter::{Comparison, Filter},
    key::RowFamily,
    limits::PAGE_ROWS,
    outbox::state::{BulkWriteTarget, Outbox},
    page::Cursor,
    plan::{
        TokenScope,
        wide::{self, WidePartsRead},
    },
    row::Row,
    store::{dated::name_of_period, rows::Store, sealing::open::ReadAs},
};

/// Replaces the blind tokens in `explain`, which makes none.
pub(crate) const TOKEN_IN_EXPLAIN: &str = "<token>";

/// Decides whether a row whose type is not in a set is an item of the set.
pub(crate) type AcceptsNonMemberRow = fn(&Row) -> Result<bool>;

/// Paths, conditions and options of a query, before it runs. Creating a request sends nothing.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) store: Store,
    pub(crate) table: String,
    pub(crate) access: UntypedPath,
    pub(crate) origin_of_items: ItemOrigin,
    pub(crate) schema: Option<&'static Schema>,
    pub(crate) members: Option<&'static Members>,
    /// What reads of the type or the members must do.
    pub(crate) needs: Needs,
    /// The entity type whose keys the path contains, if the query itself has no type (`schema`). The path may
    /// need blind tokens of that type.
    pub(crate) tokens: Option<&'static Schema>,
    pub(crate) conditions: Vec<Filter>,
    /// The scopes from `in_scopes`. A condition on an encrypted property compares their blind tokens if the
    /// scope does not follow from the path.
    pub(crate) scopes: Vec<TokenScope>,
    pub(crate) select: Option<Vec<String>>,
    /// The properties that a query of a list selects from its entities.
    pub(crate) select_of_entities: Option<Vec<String>>,
    pub(crate) fault: Option<Error>,
    pub(crate) take: Option<u64>,
    pub(crate) page_size: Option<u32>,
    /// Whether a stream requests the next page before the items of the last one are used up.
    pub(crate) reads_ahead: bool,
    pub(crate) scan_allowed: bool,
    pub(crate) any_order: bool,
    pub(crate) only_older: bool,
    /// Whether the query also returns expired rows.
    pub(crate) with_expired: bool,
    /// Whether a query of a set also returns index copies.
    pub(crate) copies: bool,
    /// Whether rows are only counted, which only needs their keys and type.
    pub(crate) only_deciding_properties: bool,
    accepts_non_member: AcceptsNonMemberRow,
    /// Where writes to the found entities go. A query itself writes nothing.
    pub(crate) origin: Option<BulkWriteTarget>,
    /// Whether more than 10,000 dated tables may be read one by one.
    pub(crate) allows_many_tables: bool,
    /// The tables that are read one after another, or `None` for one table. If set, `table` is their name
    /// template.
    pub(crate) tables: Option<QueriedTables>,
}

impl Request {
    pub(crate) fn new(store: Store, table: String, access: UntypedPath) -> Self {
        Self {
            store,
            table,
            access,
            origin_of_items: ItemOrigin::Rows,
            schema: None,
            members: None,
            needs: Needs::NONE,
            tokens: None,
            conditions: Vec::new(),
            scopes: Vec::new(),
            select: None,
            select_of_entities: None,
            fault: None,
            take: None,
            page_size: None,
            reads_ahead: false,
            scan_allowed: false,
            any_order: false,
            only_older: false,
            with_expired: false,
            copies: false,
            only_deciding_properties: false,
            accepts_non_member: |_| Ok(false),
            origin: None,
            allows_many_tables: false,
            tables: None,
        }
    }

    /// Returns a request that no other query shares, to change it.
    // In a function of its own, so that programs do not compile the copy of a request.
    pub(crate) fn unshared(request: &mut Arc<Self>) -> &mut Self {
        Arc::make_mut(request)
    }

    /// Sets the outbox of the client that creates the query, and the table of the entities that it finds.
    pub(crate) fn with_outbox_and_table(self, outbox: &Arc<Outbox>, table: &str) -> Self {
        let origin = BulkWriteTarget { outbox: outbox.clone(), table: table.to_owned() };
        Self { origin: Some(origin), ..self }
    }

    /// Makes the request read dated tables. `name` is the table that the caller opened: the
    /// template, or one of the tables.
    pub(crate) fn for_dated_tables(mut self, dated: &'static DatedTables, name: &str) -> Self {
        let Some(window) = self.access.window else { return self };
        let periods = dated.first_and_last_period_in(window);
        let named = dated.period_of(self.store.names().name(name));
        if window.is_time {
            match (periods, named) {
                (Some((period, _)), Some(named)) if period != named => {
                    // The path fixes a time outside the period of the table that the caller opened.
                    let message = format!(
                        "the path's time belongs to another table than `{name}`; open the table of that time"
                    );
                    let error = Error::new(ErrorKind::Invalid, message).in_table(name);
                    self.fault.get_or_insert(error);
                }
                (Some((period, _)), None) if name == dated.template => {
                    match name_of_period(dated, period) {
                        Ok(table) => {
                            if let Some(origin) = &mut self.origin {
                                origin.table.clone_from(&table);
                            }
                            self.table = match self.access.family.filter(|_| !self.reads_list()) {
                                Some(family) => {
                                    family.table_given_primary_table(&table).into_owned()
                                }
                                None => table,
                            };
                        }
                        Err(error) => {
                            self.fault.get_or_insert(error);
                        }
                    }
                }
                _ => {}
            }
            return self;
        }
        let is_all = name == dated.template;
        if is_all {
            let newest_first =
                self.access.family.is_some_and(|family| dated.is_newest_first(family));
            let periods = Periods::Window(WindowPeriods { bounds: periods, existing: None });
            self.tables = Some(QueriedTables { dated, periods, newest_first });
        }
        if !is_all || !dated.has_whole_periods(window) {
            let bound = |comparison, time| {
                Filter::compare(dated.property, comparison, Value::DateTime(time))
            };
            let from = bound(Comparison::Ge, window.from);
            self.add_condition(Ok(from.and_all(bound(Comparison::Lt, window.until))));
        }
        self
    }

    /// Returns the table of the entities on the page at `cursor`, or the name template if the query reads no
    /// table. A query through remote copies reads a different table than the entities are in.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid_cursor` for a cursor in a table that the query does not read.
    pub(crate) fn table_of_page(&self, cursor: Option<&Cursor>) -> Result<String> {
        if let Some(tables) = &self.tables
            && let Some(period) = tables.period_of(cursor)?
        {
            return name_of_period(tables.dated, period);
        }
        Ok(self.origin.as_ref().map_or(&self.table, |origin| &origin.table).clone())
    }

    /// Returns how many tables the query covers, whether they exist or not.
    pub(crate) fn count_tables(&self) -> u64 {
        self.tables.as_ref().map_or(1, QueriedTables::count_tables)
    }

    /// Returns whether the entities are in dated tables.
    pub(crate) fn is_dated(&self) -> bool {
        let dated = self.schema_of_keys().and_then(|schema| schema.dated.as_ref());
        let table = self.origin.as_ref().map_or(&self.table, |origin| &origin.table);
        let table = self.store.names().name(table);
        self.tables.is_some() || dated.is_some_and(|dated| dated.period_of(table).is_some())
    }

    /// Makes the request one for a single entity type. Allows scans, because a typed path requests a scan
    /// explicitly with `scan()`.
    pub(crate) fn for_entity<E: TableEntity>(self) -> Self {
        let needs = const { E::SCHEMA.needs() };
        Self { schema: Some(E::SCHEMA), needs, scan_allowed: true, ..self }
    }

    /// Sets the entity type whose keys the path contains.
    pub(crate) fn with_schema_of_keys(self, tokens: Option<&'static Schema>) -> Self {
        Self { tokens, ..self }
    }

    /// Makes the request read its rows as members of a set.
    pub(crate) fn for_set<S: SetMembers>(self, accepts_non_member: AcceptsNonMemberRow) -> Self {
        let needs = const { S::MEMBERS.needs() };
        Self { members: Some(S::MEMBERS), needs, accepts_non_member, ..self }
    }

    /// Returns the entity type whose keys the path contains, or `None` for an untyped path.
    pub(crate) fn schema_of_keys(&self) -> Option<&'static Schema> {
        self.schema.or(self.tokens)
    }

    /// Returns the entity types whose declarations are used to decrypt the rows: one type, the members of a
    /// set, or none for an untyped query.
    pub(crate) fn types_to_decrypt_as(&self) -> ReadAs {
        match (self.schema, self.members) {
            (Some(schema), _) => ReadAs::Typed(schema),
            (None, Some(members)) => ReadAs::Members(members),
            (None, None) => ReadAs::Untyped,
        }
    }

    /// Adds a condition. The verb that runs the query fails with the error of the first faulty condition.
    pub(crate) fn add_condition(&mut self, filter: Result<Filter>) {
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

    /// Returns whether a row is an item of the query. Only the row's keys and type were read.
    ///
    /// # Errors
    ///
    /// Fails for a row of an unknown version of the type. Fails for a row whose type is not in the set, unless the
    /// set has an `other` variant.
    pub(crate) fn is_row_an_item(&self, row: &Row) -> Result<bool> {
        match (self.schema, self.members) {
            (Some(schema), _) => {
                let family = self.family().map_or(schema.primary(), Ok)?;
                match schema.row_kind_of(row, Some(family))? {
                    RowKind::Primary(RowVersion::Unknown(version))
                    | RowKind::Copy(_, RowVersion::Unknown(version)) => {
                        Err(schema.unknown_version_error(version))
                    }
                    kind => Ok(kind.is_of_family(family)),
                }
            }
            (None, Some(members)) => match members.match_row(row)? {
                Some(matched) => Ok(self.copies || matched.family().is_primary()),
                None if members.skips_unmatched_row(row, self.copies)? => Ok(false),
                None if (self.accepts_non_member)(row)? => Ok(true),
                None => Err(members.unrecognized_error(row)),
            },
            (None, None) => Ok(true),
        }
    }

    /// Restricts a typed request to rows of older versions, expired rows included.
    pub(crate) fn restrict_to_older_versions(&mut self) {
        self.only_older = true;
        self.with_expired = true;
    }

    pub(crate) fn family(&self) -> Option<&'static RowFamily> {
        self.access.family
    }

    /// Returns whether the path reads a list of ids.
    pub(crate) fn reads_list(&self) -> bool {
        self.access.family.is_some_and(|family| family.is_list())
    }

    /// Returns the table that is read. A list may have its own table.
    pub(crate) fn table_to_read(&self) -> Cow<'_, str> {
        let list = self.access.family.filter(|_| self.reads_list());
        list.map_or(Cow::Borrowed(&*self.table), |family| {
            family.table_given_primary_table(&self.table)
        })
    }

    /// Returns the properties to request, or `None` for all.
    pub(crate) fn columns_to_read(&self, parts: ItemParts) -> Option<Vec<String>> {
        let columns = self.own_columns_to_read(parts)?;
        Some(match parts {
            ItemParts::OfType(_, WidePartsRead::All) | ItemParts::OfMembers(_) => {
                wide::names_with_generation(&columns)
            }
            ItemParts::OfType(_, WidePartsRead::One(_)) | ItemParts::Single => columns,
        })
    }

    fn own_columns_to_read(&self, parts: ItemParts) -> Option<Vec<String>> {
        let is_opened = self.conditions.iter().any(has_encrypted_condition);
        if self.only_deciding_properties
            && !is_opened
            && !self.schema.is_some_and(|schema| schema.sealed)
        {
            return self.columns_to_count(parts);
        }
        let mut columns =
            if self.only_deciding_properties { Vec::new() } else { self.select.clone()? };
        if self.schema.is_some_and(is_read_whole) || self.members.is_some_and(any_member_seals_rows)
        {
            return None;
        }
        // If one condition is encrypted, all conditions are compared again after decryption, so the row
        // needs the properties of all of them.
        for condition in self.conditions.iter().filter(|_| is_opened) {
            condition.visit_properties(&mut |property| columns.push(property.to_owned()));
        }
        let family = match self.members {
            Some(members) if self.copies => find_reservable_family(members),
            _ => self.access.family,
        };
        Some(columns_with_owner(columns_with_system(columns, self.schema), family))
    }

    /// Returns the properties that decide whether a row is an item.
    fn columns_to_count(&self, parts: ItemParts) -> Option<Vec<String>> {
        let mut columns: Vec<String> = ["PartitionKey", "RowKey"].map(str::to_owned).into();
        match (self.schema, self.members) {
            (Some(schema), _) => {
                if let Some(name) = schema.type_property()
                    && (schema.can_expire() || !self.filter_alone_selects_type(parts))
                {
                    columns.push(name.to_owned());
                }
                columns.extend(schema.expiry_properties().map(str::to_owned));
                columns = columns_with_owner(columns, self.family());
            }
            // A seal covers the whole row.
            (None, Some(members)) if any_member_seals_rows(members) => return None,
            (None, Some(members)) => {
                columns.extend(members.always_selected_columns());
                columns = columns_with_owner(
                    columns,
                    find_reservable_family(members).filter(|_| self.copies),
                );
            }
            (None, None) => {}
        }
        columns.dedup();
        Some(columns)
    }

    /// Returns which rows make up an item. Checks the options of the request first.
    ///
    /// # Errors
    ///
    /// Fails with the error of a faulty option, and as [`item_rows`](Self::item_rows) does.
    pub(crate) fn checked_item_rows(&self) -> Result<ItemParts> {
        self.fault.clone().map_or_else(|| self.item_rows(), Err)
    }

    /// Returns which rows make up an item.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` for a condition on a property in another part than the selected properties, and for
    /// a condition on a property in a query of a set with wide members.
    pub(crate) fn item_rows(&self) -> Result<ItemParts> {
        // Most types are not wide, and their queries need not check any condition here.
        if !self.needs.contain(Needs::PARTS) {
            return Ok(ItemParts::Single);
        }
        let mut compared = Vec::new();
        for condition in &self.conditions {
            condition.visit_properties(&mut |name| compared.push(name.to_owned()));
        }
        if let Some(members) = self.members {
            refuse_properties(members, &compared)?;
            return Ok(ItemParts::OfMembers(members));
        }
        // A copy is one row.
        let is_of_parts = self.family().is_none_or(RowFamily::is_primary);
        let Some(schema) = self.schema.filter(|_| is_of_parts) else {
            return Ok(ItemParts::Single);
        };
        let select =
            if self.only_deciding_properties { Some(&[][..]) } else { self.select.as_deref() };
        let read = wide::choose_parts_to_read(schema, select, &compared)?;
        Ok(ItemParts::OfType(schema, read))
    }

    /// Returns `$top`, the maximum number of rows in the next page, or `None` for the service's maximum.
    ///
    /// The value is the number of items left to take, for which one request is enough if every row is an item. After
    /// a page with rows of other types, later pages have the service's maximum size, because the number of such rows
    /// is unknown.
    pub(crate) fn page_limit(&self, parts: ItemParts, cursor: Option<&Cursor>) -> Option<u32> {
        let is_mixed = cursor.is_some_and(|cursor| cursor.mixed);
        let returned = cursor.map_or(0, |cursor| cursor.returned);
        let left = self.take.filter(|_| !is_mixed).map(|take| take.saturating_sub(returned));
        // A limit above 1,000 exceeds a page, and the service's own limit is used.
        let left = left.and_then(|left| u32::try_from(left).ok()).filter(|left| *left <= PAGE_ROWS);
        let items = match (left, self.page_size) {
            (Some(left), Some(size)) => Some(left.min(size)),
            (left, size) => left.or(size),
        };
        match parts.rows_per_item() {
            1 => items,
            // Full entities per page save another request for the rest of the last one.
            rows => Some(items.unwrap_or(PAGE_ROWS).min(PAGE_ROWS / rows) * rows),
        }
    }

    /// Returns the cost class of the request with this filter.
    pub(crate) fn cost_class(&self, filter: &Filter) -> CostClass {
        match self.schema.zip(self.family()) {
            Some((schema, family)) => schema.cost_class(family, filter),
            None => CostClass::of_filter(filter),
        }
    }

    /// Refuses a page size out of range and a table scan that the caller did not allow. On stores without an order,
    /// refuses `take` and `first`, unless the caller called `any_order` or the query reads one row.
    pub(crate) fn check_options(&self, filter: &Filter) -> Result<()> {
        if let Some(size) = self.page_size.filter(|size| *size == 0 || *size > PAGE_ROWS) {
            let message = format!("a page has 1 to {PAGE_ROWS} rows, not {size}");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        if !self.scan_allowed && CostClass::of_filter(filter) == CostClass::TableScan {
            let message = format!(
                "the filter `{filter}` would read the whole table; give the PartitionKey, or call `allow_scan()`"
            );
            return Err(Error::new(ErrorKind::ScanRefused, message));
        }
        let store = self.store.capabilities();
        if self.take.is_some() && !store.ordered && !self.any_order {
            // A single row is the first in any order.
            if CostClass::of_filter(filter) != CostClass::Point {
                let message = format!(
                    "the {} store returns rows in no order, so the first ones are arbitrary; call `any_order()` to \
                     accept any rows, or read all rows and sort them",
                    store.name
                );
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
        }
        Ok(())
    }
}

/// Refuses a condition on a property in a set with wide members, because only some parts of an entity would
/// match. Conditions on keys and on the type match the first part, which represents the whole entity.
fn refuse_properties(members: &'static Members, compared: &[String]) -> Result<()> {
    let is_of_all = |name: &String| {
        ["PartitionKey", "RowKey"].contains(&name.as_str())
            || members.discriminator_properties().any(|discriminator| discriminator == name)
    };
    match compared.iter().find(|name| !is_of_all(name)) {
        None => Ok(()),
        Some(name) => {
            let message = format!(
                "a filter on `{name}` of the set `{}`, which has wide members, would find only some of an entity's \
                 rows; compare keys and types, or query one type",
                members.set_name()
            );
            Err(Error::new(ErrorKind::Invalid, message).in_property(name))
        }
    }
}
