//! Questions: calls of a program, with the rows that each reads or writes and its requests. They are computed from the
//! types, without a store.

use serde::{Deserialize, Serialize};

use super::{
    bulk_cost::BulkWork,
    write_cost::{CostModel, WriteVerb, changes_copy, cost_of_change, is_in_keys, write_cost},
};
use crate::{
    access::CostClass,
    entity::{Column, Schema},
    error::{Error, ErrorKind},
    key::{Form, RowFamily},
    limits::{PAGE_ROWS, saturating_u64},
    plan::TransactionPlan,
    query::list_query::POINT_READS,
};

/// One call of a program, with the requests that follow from its types. Functions of [`patterns`](crate::patterns) make
/// it, such as [`get`](super::get) and [`insert`](super::insert).
#[derive(Debug, Clone)]
pub struct Question {
    /// The verb in words, such as `get` or `replace, no key changes`.
    pub(super) verb: &'static str,
    pub(super) table: String,
    pub(super) filter: String,
    /// The partition that the call reads or writes.
    pub(super) partition: PartitionUse,
    /// The requests of a write to rows in other partitions, for each row family.
    pub(super) elsewhere: Vec<Elsewhere>,
    /// Whether the call deals with remote rows, which are written later than their primaries: it reads such rows, or
    /// writes an entity that has them.
    pub(super) follows: bool,
    /// The error that the call would return without sending a request.
    pub(crate) fault: Option<Error>,
    /// The calls that the question makes: one, or the writes of a transaction.
    pub(crate) calls: Vec<QuestionCall>,
    /// The properties that conditions compare, apart from keys.
    pub(crate) compared: Vec<String>,
    pub(super) work: Work,
    /// The type and the verb of a write of one entity.
    pub(super) write: Option<EntityWrite>,
}

/// A call of a question: the function that asks for it, and the rows that it reads or writes.
#[derive(Debug, Clone)]
pub(crate) struct QuestionCall {
    /// The function's name, such as `get` or `insert`.
    pub(crate) function: &'static str,
    /// The entity type; `None` for a set.
    pub(crate) schema: Option<&'static Schema>,
    /// The row family that is read. `None` for a scan of a table, and for a write, which concerns all families.
    pub(crate) family: Option<&'static RowFamily>,
}

/// A write of one entity: the function that asks for it, its type and verb.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntityWrite {
    pub(super) function: &'static str,
    pub(super) schema: &'static Schema,
    pub(super) verb: WriteVerb,
}

/// The requests of a question, before the number of rows is known.
#[derive(Debug, Clone)]
pub(super) enum Work {
    /// Point reads: one for each part of a wide entity.
    Point {
        parts: u64,
    },
    Query(QueryWork),
    Write(CostModel),
    Bulk(BulkWork),
}

/// The requests of a query, and what their number depends on.
#[derive(Debug, Clone)]
pub(super) struct QueryWork {
    pub(super) class: CostClass,
    /// The `$top` of the first request.
    pub(super) top: Option<u32>,
    pub(super) take: Option<u64>,
    pub(super) rows_per_item: u64,
    pub(super) tables: u64,
    pub(super) lists_tables: bool,
    /// Whether each entity costs a point read, because its id is read from a list.
    pub(super) reads_each: bool,
    /// The partitions of the entities in a list.
    pub(super) primaries: Option<PartitionUse>,
    /// Whether the ids are in a blob.
    pub(super) is_in_blob: bool,
    /// Whether only the ids of a list are read, to count them.
    pub(super) counts_ids: bool,
    /// The number of dated tables that are read at the same time.
    pub(super) tables_at_once: usize,
}

/// The requests of a write to the rows of one remote row family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Elsewhere {
    pub(super) partition: PartitionUse,
    /// Point reads before the transaction.
    pub(super) reads: u64,
    /// Writes before the transaction, which reserve unique values.
    pub(super) reservations: u64,
    /// Writes to the remote rows that the library sends after the call has returned.
    pub(super) writes: u64,
}

/// The pages of a query, in one table or in dated tables.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pages {
    /// Requests that list tables.
    pub(super) lists: u64,
    /// First pages of tables.
    pub(super) first: u64,
    /// First pages that are in flight at the same time.
    pub(super) at_once: u64,
    /// Later pages of tables, one after another.
    pub(super) later: u64,
    /// Rows of all pages.
    pub(super) rows: u64,
    /// Rows of later pages.
    pub(super) later_rows: u64,
    /// The number of tables that have rows.
    pub(super) spread: u64,
    round_trips: u64,
}

/// The partitions of a row family.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct PartitionUse {
    pub(super) table: String,
    /// The template of the PartitionKey.
    pub(super) key: String,
    pub(super) shape: PartitionShape,
}

/// How the PartitionKey of a question's rows is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum PartitionShape {
    /// All rows are in one partition.
    Constant,
    /// The key is a time.
    Time,
    /// The key is made of fields.
    Fields,
}

/// The requests of one call, and the rows in them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Requests {
    /// Point reads that the call waits for before it returns.
    pub(super) reads: u64,
    /// Pages of queries.
    pub(super) scans: u64,
    /// Writes of one row.
    pub(super) writes: u64,
    /// Entity group transactions.
    pub(super) transactions: u64,
    /// The writes that the library sends after it has answered the call.
    pub(super) after: u64,
    /// Requests to the blob store.
    pub(crate) blobs: u64,
    /// The rows that are read, or the operations of the transaction, in the partition that the call reads or writes.
    pub(super) rows: u64,
    /// The latency of the call in round trips. Requests that are sent together count once.
    #[serde(default)]
    pub(crate) round_trips: u64,
    /// Entities that a bulk load writes; 0 for any other call.
    #[serde(default)]
    pub(crate) entities: u64,
}

impl Requests {
    /// Returns the number of requests to the table store before the answer.
    pub(super) fn before(self) -> u64 {
        self.reads + self.scans + self.writes + self.transactions
    }

    /// Returns the number of all requests to the table store.
    pub(crate) fn total(self) -> u64 {
        self.before() + self.after
    }
}

impl PartitionUse {
    /// Returns the partitions of a family's rows, in the default table of the entity.
    pub(super) fn of_family(schema: &Schema, family: &RowFamily) -> Self {
        Self {
            table: family.table_given_primary_table(schema.table).into_owned(),
            key: family.partition.text.to_owned(),
            shape: PartitionShape::of_family(family),
        }
    }

    /// Returns the partitions of rows whose row family is unknown, in `table`.
    pub(super) fn unknown(table: &str) -> Self {
        Self { table: table.to_owned(), key: String::new(), shape: PartitionShape::Fields }
    }
}

impl PartitionShape {
    fn of_family(family: &RowFamily) -> Self {
        let is_time = |form: Form| matches!(form, Form::Date(_));
        let parts = || family.partition.parts();
        match parts().next() {
            None => Self::Constant,
            Some(_) if parts().all(|part| is_time(part.form)) => Self::Time,
            Some(_) => Self::Fields,
        }
    }
}

impl Question {
    /// Returns the question of a program that writes an entity.
    pub(super) fn of_write(write: EntityWrite) -> Self {
        Self::of_change(write, None)
    }

    /// Returns the question that writes an entity. A verb that changes no key changes this property alone, or all
    /// properties outside keys if it is `None`.
    fn of_change(write: EntityWrite, changed: Option<&str>) -> Self {
        let EntityWrite { function, schema, verb } = write;
        let cost = cost_of_change(schema, verb, changed);
        let primary = schema.primary();
        let remote = schema.families.iter().filter(|family| family.is_remote && !family.in_blob);
        Self {
            verb: verb.words(),
            table: schema.table.to_owned(),
            filter: String::new(),
            partition: primary.as_ref().map_or_else(
                |_| PartitionUse::unknown(schema.table),
                |family| PartitionUse::of_family(schema, family),
            ),
            elsewhere: remote
                .map(|family| Elsewhere::of_family(schema, verb, changed, family))
                .collect(),
            follows: cost.after > 0,
            fault: primary.err(),
            calls: vec![QuestionCall { function, schema: Some(schema), family: None }],
            compared: Vec::new(),
            work: Work::Write(cost),
            write: Some(write),
        }
    }

    /// Returns the question that inserts many entities of a type.
    pub(super) fn of_bulk_load(schema: &'static Schema) -> Self {
        let (function, verb) = ("insert_all", WriteVerb::Insert);
        let insert = Self::of_write(EntityWrite { function, schema, verb });
        let work = Work::Bulk(BulkWork::from_insert_cost(schema, write_cost(schema, verb)));
        Self { verb: "bulk insert_all", work, write: None, ..insert }
    }

    /// Returns the question that makes the writes in one transaction, with `messages` messages.
    pub(super) fn of_transaction(writes: &[EntityWrite], messages: usize) -> Self {
        let single: Vec<Self> = writes.iter().copied().map(Self::of_write).collect();
        let costs: Vec<CostModel> =
            writes.iter().map(|write| write_cost(write.schema, write.verb)).collect();
        let cost = CostModel::of_transaction(&costs, messages);
        let first = single.first();
        let table = first.map_or_else(String::new, |first| first.table.clone());
        let fault = single.iter().find_map(|write| write.fault.clone());
        let refused = || transaction_fault(&table, writes, cost.operations);
        Self {
            verb: "transaction",
            filter: String::new(),
            partition: first
                .map_or_else(|| PartitionUse::unknown(&table), |first| first.partition.clone()),
            elsewhere: single.iter().flat_map(|write| write.elsewhere.clone()).collect(),
            follows: cost.after > 0,
            fault: fault.or_else(refused),
            calls: single.iter().flat_map(|write| write.calls.clone()).collect(),
            compared: Vec::new(),
            work: Work::Write(cost),
            write: None,
            table,
        }
    }

    /// Sets the property that the write changes, for a verb that changes no key. Partial copies that lack the property
    /// are not written again. Without this call, the plan counts every copy that holds a property outside of keys.
    ///
    /// ```
    /// # use entable::prelude::*;
    /// use entable::patterns::{self, Pattern};
    ///
    /// # #[derive(TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}",
    /// #         index(ByName, row_key = "name_{last_name}_{id:06}", only(email)))]
    /// # pub struct Employee { pub department: String, pub id: u32, pub last_name: String, pub email: String, pub age: i32 }
    /// let birthday = patterns::update::<Employee>().changing(Employee::AGE);
    /// let moved = patterns::update::<Employee>().changing(Employee::EMAIL);
    /// assert_eq!(Pattern::write("birthday", birthday).operation_count(), 1);
    /// assert_eq!(Pattern::write("new e-mail", moved).operation_count(), 2);
    /// ```
    #[must_use]
    pub fn changing<E, F, K>(self, column: Column<E, F, K>) -> Self {
        let property = column.name();
        let fault = match self.write {
            Some(write) if write.verb.keeps_keys() => {
                let schema = write.schema;
                let is_key = is_in_keys(schema, property);
                if schema.column(property).is_some() && !is_key {
                    return Self::of_change(write, Some(property));
                }
                let (name, entity) = (property, schema.entity);
                if is_key {
                    format!("`{name}` is in a key of `{entity}`: ask for `replace_keys`")
                } else {
                    format!("`{entity}` has no property `{name}`: name a column of `{entity}`")
                }
            }
            _ => format!(
                "`{}` does not change one property: use `changing` with `replace`, `patch_at`, `update`, \
                 `insert_or_replace` or `insert_or_merge`",
                self.verb
            ),
        };
        Self { fault: Some(Error::new(ErrorKind::Invalid, fault)), ..self }
    }

    /// Returns the cost class of a read; `None` for a write.
    pub(crate) fn class(&self) -> Option<CostClass> {
        match &self.work {
            Work::Point { .. } => Some(CostClass::Point),
            Work::Query(query) => Some(query.class),
            Work::Write(_) | Work::Bulk(_) => None,
        }
    }

    /// Returns the requests of one call that finds `items` entities, in `tables` dated tables. For a
    /// bulk load, `items` is the number of entities that it writes, to `partitions` partitions.
    pub(super) fn requests(&self, items: u64, tables: Option<u64>, partitions: u64) -> Requests {
        match &self.work {
            Work::Point { parts } => {
                // The parts of a wide entity are read together.
                Requests { reads: *parts, rows: *parts, round_trips: 1, ..Requests::default() }
            }
            Work::Query(query) => query.requests(items, tables),
            Work::Write(cost) => requests_of_write(cost),
            Work::Bulk(load) => load.requests(items, partitions),
        }
    }

    /// Returns the number of operations in the largest transaction of a write; 0 for a read.
    pub(super) fn largest_transaction(&self, items: u64, partitions: u64) -> u64 {
        match &self.work {
            Work::Point { .. } | Work::Query(_) => 0,
            Work::Write(cost) => number(cost.operations),
            Work::Bulk(load) => load.largest_transaction(items, partitions),
        }
    }
}

/// Returns the error of a transaction that writes nothing, or that is certain to be refused.
fn transaction_fault(table: &str, writes: &[EntityWrite], operations: usize) -> Option<Error> {
    if operations == 0 {
        let message =
            "the transaction writes nothing: add a write, as `transaction().insert::<Order>()`";
        return Some(Error::new(ErrorKind::Invalid, message));
    }
    if let Some(other) = writes.iter().find(|write| write.schema.table != table) {
        let message = format!(
            "a transaction writes to one table, and this one to `{table}` and `{}`: write to the other table in a transaction of its own, or `emit` a message",
            other.schema.table
        );
        return Some(Error::new(ErrorKind::Invalid, message));
    }
    TransactionPlan::default().check_operation_count(table, operations).err()
}

impl Elsewhere {
    fn of_family(
        schema: &'static Schema,
        verb: WriteVerb,
        changed: Option<&str>,
        family: &'static RowFamily,
    ) -> Self {
        let is_list = family.is_list();
        let is_kept = verb.keeps_keys() && !changes_copy(schema, family, changed);
        let (reads, writes) = match verb {
            _ if is_kept => (0, 0),
            WriteVerb::Insert => (u64::from(is_list), 1),
            // One row comes and one goes. Only the list of the new one is read too: a new copy has no row yet.
            WriteVerb::ReplaceKeys => (1 + u64::from(is_list), 2),
            _ => (1, 1),
        };
        let takes_key = matches!(verb, WriteVerb::Insert | WriteVerb::ReplaceKeys);
        Self {
            partition: PartitionUse::of_family(schema, family),
            reads,
            reservations: u64::from(takes_key && family.unique && !is_list),
            writes,
        }
    }
}

impl QueryWork {
    fn requests(&self, items: u64, tables: Option<u64>) -> Requests {
        if self.reads_each {
            return self.requests_of_list(items);
        }
        let pages = self.predict_pages(items, tables);
        Requests {
            scans: pages.lists.saturating_add(pages.first).saturating_add(pages.later),
            rows: pages.rows,
            round_trips: pages.round_trips,
            ..Requests::default()
        }
    }

    /// Returns the pages of a query that finds `found` entities. They, and the missing tables, are spread evenly over a
    /// window of dated tables.
    pub(super) fn predict_pages(&self, found: u64, tables: Option<u64>) -> Pages {
        let items = self.take.map_or(found, |take| found.min(take));
        // A window above 32 tables reads those that exist, a smaller one asks for each.
        let default = if self.lists_tables { 1 } else { self.tables };
        let existing = tables.unwrap_or(default).min(self.tables).max(1);
        let asked = if self.lists_tables { existing } else { self.tables.max(1) };
        let items_of_table = found.div_ceil(existing);
        // The query ends in the table in which it has found enough.
        let used =
            if items < found { items.div_ceil(items_of_table.max(1)).max(1) } else { existing };
        let items_of_last = if items < found {
            items.saturating_sub(items_of_table.saturating_mul(used - 1))
        } else {
            items_of_table
        };
        let last = asked.saturating_mul(used).div_ceil(existing);
        // First pages are read together, later pages of a table when its turn comes.
        let at_once = number(self.tables_at_once).max(1);
        let first = last.div_ceil(at_once).saturating_mul(at_once).min(asked);
        let page = (u64::from(self.top.unwrap_or(PAGE_ROWS)) / self.rows_per_item.max(1)).max(1);
        let later_pages = |items: u64| items.div_ceil(page).saturating_sub(1);
        let later = later_pages(items_of_table)
            .saturating_mul(used - 1)
            .saturating_add(later_pages(items_of_last));
        let later_items = items_of_table
            .saturating_sub(page)
            .saturating_mul(used - 1)
            .saturating_add(items_of_last.saturating_sub(page));
        let first_items = existing
            .saturating_mul(first)
            .div_ceil(asked)
            .saturating_mul(items_of_table.min(page))
            .min(found.saturating_sub(later_items));
        let rows = |items: u64| items.saturating_mul(self.rows_per_item);
        // A page of a list of tables has as many names as a page has rows.
        let lists = if self.lists_tables { existing.div_ceil(PAGE_ROWS.into()) } else { 0 };
        Pages {
            lists,
            first,
            at_once,
            later,
            rows: rows(first_items.saturating_add(later_items)),
            later_rows: rows(later_items),
            spread: existing,
            round_trips: last.div_ceil(at_once).saturating_add(later).saturating_add(lists),
        }
    }

    /// Returns the requests of a query of a list: the ids, which are one row, then each entity.
    pub(super) fn requests_of_list(&self, items: u64) -> Requests {
        let items = self.take.map_or(items, |take| items.min(take));
        let blobs = u64::from(self.is_in_blob);
        let reads = if self.counts_ids { 0 } else { items };
        Requests {
            scans: 1 - blobs,
            blobs,
            reads,
            rows: reads.saturating_add(1),
            round_trips: reads.div_ceil(number(POINT_READS)).saturating_add(1),
            ..Requests::default()
        }
    }
}

pub(super) fn requests_of_write(cost: &CostModel) -> Requests {
    let is_transaction = cost.operations > 1;
    Requests {
        reads: number(cost.reads),
        scans: 0,
        writes: number(cost.reservations + usize::from(!is_transaction)),
        transactions: u64::from(is_transaction),
        after: number(cost.after),
        blobs: number(cost.uploads + cost.removals),
        rows: number(cost.operations),
        round_trips: number(cost.round_trips()),
        entities: 0,
    }
}

pub(super) fn number(count: usize) -> u64 {
    saturating_u64(count)
}
