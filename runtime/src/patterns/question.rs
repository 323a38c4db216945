//! What a pattern asks, as facts that need no store: the rows that it reads or writes, and its requests.

use serde::{Deserialize, Serialize};

use super::{
    bulk_cost::BulkWork,
    write_cost::{CostModel, WriteVerb, write_cost},
};
use crate::{
    access::CostClass,
    entity::Schema,
    error::{Error, ErrorKind},
    key::{Family, Form},
    limits::PAGE_ROWS,
    plan::TransactionPlan,
    query::list_query::POINT_READS,
};

/// One call of a program, with what follows from the types: its plan, without a store. Functions of
/// [`patterns`](crate::patterns) make it, such as [`get`](super::get) and [`insert`](super::insert).
#[derive(Debug, Clone)]
pub struct Question {
    /// The verb in words, such as `get` or `replace, no key changes`.
    pub(super) verb: &'static str,
    pub(super) table: String,
    pub(super) filter: String,
    /// The partition that the call reads or writes.
    pub(super) partition: PartitionUse,
    /// The other partitions that a write leads to: one row each.
    pub(super) elsewhere: Vec<PartitionUse>,
    /// Whether rows in other partitions follow: those that the call reads, or copies of what it writes.
    pub(super) follows: bool,
    /// The error that the call would return at once.
    pub(crate) fault: Option<Error>,
    /// The calls that the question makes: one, or the writes of a transaction.
    pub(crate) calls: Vec<Call>,
    /// The properties that conditions compare, apart from keys.
    pub(crate) compared: Vec<String>,
    pub(super) work: Work,
}

/// A call of a question: the function that asks for it, and the rows that it reads or writes.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// The function's name, such as `get` or `insert`.
    pub(crate) function: &'static str,
    /// The entity type; `None` for a set.
    pub(crate) schema: Option<&'static Schema>,
    /// The row family that is read. `None` for a scan of a table, and for a write, which concerns all families.
    pub(crate) family: Option<&'static Family>,
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
    /// Whether each entity is read by itself, through the ids in a list.
    pub(super) reads_each: bool,
    /// Whether the ids are in a blob.
    pub(super) is_in_blob: bool,
    /// Whether only the ids of a list are read, to count them.
    pub(super) counts_ids: bool,
    /// The number of dated tables that are read at the same time.
    pub(super) tables_at_once: usize,
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
    /// Point reads before the answer.
    pub(super) reads: u64,
    /// Pages of queries.
    pub(super) scans: u64,
    /// Writes of one row.
    pub(super) writes: u64,
    /// Entity group transactions.
    pub(super) transactions: u64,
    /// Writes that follow after the answer.
    pub(super) after: u64,
    /// Requests to the blob store.
    pub(crate) blobs: u64,
    /// Rows that are read, or operations in the transaction, in the partition of the question.
    pub(super) rows: u64,
    /// Requests that the caller waits for one after another; requests sent together count once.
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
    pub(super) fn of_family(schema: &Schema, family: &Family) -> Self {
        Self {
            table: family.table_given_primary_table(schema.table).into_owned(),
            key: family.partition.text.to_owned(),
            shape: PartitionShape::of_family(family),
        }
    }

    /// Returns the partitions of rows that no family describes.
    pub(super) fn unknown(table: &str) -> Self {
        Self { table: table.to_owned(), key: String::new(), shape: PartitionShape::Fields }
    }
}

impl PartitionShape {
    fn of_family(family: &Family) -> Self {
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
    /// Returns the question that writes an entity.
    pub(super) fn of_write(write: EntityWrite) -> Self {
        let EntityWrite { function, schema, verb } = write;
        let cost = write_cost(schema, verb);
        let primary = schema.primary();
        let of = |family: &&'static Family| PartitionUse::of_family(schema, family);
        let is_elsewhere = |family: &&Family| family.is_remote && !family.in_blob;
        let remote = schema.families.iter().filter(|family| cost.after > 0 && is_elsewhere(family));
        Self {
            verb: verb.words(),
            table: schema.table.to_owned(),
            filter: String::new(),
            partition: primary.as_ref().map_or_else(|_| PartitionUse::unknown(schema.table), of),
            elsewhere: remote.map(|family| of(&family)).collect(),
            follows: cost.after > 0,
            fault: primary.err(),
            calls: vec![Call { function, schema: Some(schema), family: None }],
            compared: Vec::new(),
            work: Work::Write(cost),
        }
    }

    /// Returns the question that inserts many entities of a type.
    pub(super) fn of_bulk_load(schema: &'static Schema) -> Self {
        let (function, verb) = ("insert_all", WriteVerb::Insert);
        let insert = Self::of_write(EntityWrite { function, schema, verb });
        let work = Work::Bulk(BulkWork::of_insert(schema, write_cost(schema, verb)));
        Self { verb: "bulk insert_all", work, ..insert }
    }

    /// Returns the question that makes the writes in one transaction, with so many messages.
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
            table,
        }
    }

    /// Returns the cost class of a read; `None` for a write.
    pub(crate) fn class(&self) -> Option<CostClass> {
        match &self.work {
            Work::Point { .. } => Some(CostClass::Point),
            Work::Query(query) => Some(query.class),
            Work::Write(_) | Work::Bulk(_) => None,
        }
    }

    /// Returns the requests of one call that finds `items` entities, in `tables` dated tables. A bulk load writes
    /// so many entities, to `partitions` partitions.
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

impl QueryWork {
    fn requests(&self, items: u64, tables: Option<u64>) -> Requests {
        let items = self.take.map_or(items, |take| items.min(take));
        if self.reads_each {
            return self.requests_of_list(items);
        }
        let rows = items.saturating_mul(self.rows_per_item);
        // A window above 32 tables reads those that exist, a smaller one asks for each.
        let tables = match self.lists_tables {
            true => tables.unwrap_or(1),
            false => self.tables,
        }
        .max(1);
        let pages_of_table = rows.div_ceil(tables).div_ceil(self.rows_of_page()).max(1);
        let (scans, round_trips) = match tables {
            1 => (pages_of_table, pages_of_table),
            // First pages are read together, later pages of a table when its turn comes.
            _ => (
                pages_of_table.saturating_mul(tables),
                tables
                    .div_ceil(number(self.tables_at_once))
                    .saturating_add(tables.saturating_mul(pages_of_table - 1)),
            ),
        };
        let lists = u64::from(self.lists_tables);
        Requests {
            scans: scans.saturating_add(lists),
            rows,
            round_trips: round_trips.saturating_add(lists),
            ..Requests::default()
        }
    }

    fn rows_of_page(&self) -> u64 {
        u64::from(self.top.unwrap_or(PAGE_ROWS).max(1))
    }

    /// Returns the requests of a query of a list: the ids, which are one row, then each entity.
    fn requests_of_list(&self, items: u64) -> Requests {
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

fn requests_of_write(cost: &CostModel) -> Requests {
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

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
