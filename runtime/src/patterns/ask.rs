//! The functions that create questions. A question is one call that a program makes, and each function has the name of
//! the verb in that call.

use std::collections::BTreeSet;

use super::{
    question::{EntityWrite, PartitionUse, QueryWork, Question, QuestionCall, Work},
    write_cost::WriteVerb,
};
use crate::{
    entity::{
        Discriminator, FromRow, FullView, HoldsProjection, IntoPoint, Needs, Path, Projection,
        TableEntity, UntypedPath,
    },
    key::TOKEN_PLACEHOLDER,
    plan::wide,
    query::{
        Explain, Queried, Query,
        fetched_page::TABLES_IN_FLIGHT,
        plan::{ReadPlan, RowType},
        request::{Request, TOKEN_IN_EXPLAIN},
    },
    table::Client,
};

/// Asks for one entity, as [`Table::get`](crate::Table::get) does.
pub fn get<P: IntoPoint<View: FullView>>(point: P) -> Question {
    of_point::<P::Entity, P::Entity>("get", point.into_point().access())
}

/// Asks for some fields of one entity, as [`Table::get_as`](crate::Table::get_as) does. A partial copy that
/// lacks a field does not compile.
pub fn get_as<P: Projection>(
    point: impl IntoPoint<Entity = P::Entity, View: HoldsProjection<P>>,
) -> Question {
    of_point::<P::Entity, P>("get_as", point.into_point().access())
}

/// Asks for the entities of a path, as [`Table::query`](crate::Table::query) does. The returned query takes
/// conditions and projections, and becomes a [`Question`] as it is.
pub fn query<P>(path: P) -> <P::View as Queried<P::Entity>>::Query
where
    P: Path,
    P::View: Queried<P::Entity>,
{
    Client::memory().table::<P::Entity>().query(path)
}

/// Asks for the result of the query that `make` returns. Calls `make` with a client of an empty store in memory, and
/// sends nothing. The pattern then checks the query that the program runs, instead of a copy of its code.
pub fn read_by<E, T>(make: impl FnOnce(&Client) -> Query<E, T>) -> Question {
    make(&Client::memory()).into()
}

/// Asks for the number of entities, as [`Query::count`] does.
///
/// ```
/// # use entable::prelude::*;
/// use entable::patterns::{self, Pattern};
///
/// # #[derive(TableEntity)]
/// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
/// # pub struct Employee { pub department: String, pub id: u32 }
/// let sales = patterns::query(Employee::primary().department("Sales"));
/// // The service cannot count: each row is read.
/// let pattern = Pattern::partition_scan("how many", patterns::count(sales)).rows(2_500);
/// assert_eq!(pattern.request_count(), 3);
/// ```
pub fn count<E: 'static, T: Send + 'static>(query: Query<E, T>) -> Question {
    let counts_ids = query.counts_ids();
    let mut question = Question::from(query.counting_query());
    question.verb = "count";
    question.calls.iter_mut().for_each(|call| call.function = "count");
    if let Work::Query(work) = &mut question.work {
        work.counts_ids = counts_ids;
        // A count reads page after page.
        work.tables_at_once = 1;
    }
    question
}

macro_rules! writes {
    ($($(#[$doc:meta])* $name:ident = $verb:ident;)*) => { $(
        $(#[$doc])*
        pub fn $name<E: TableEntity>() -> Question {
            let function = stringify!($name);
            Question::of_write(EntityWrite { function, schema: E::SCHEMA, verb: WriteVerb::$verb })
        }
    )* };
}

writes! {
    /// Inserts an entity that has a copy in each of its indexes, into lists that exist.
    insert = Insert;
    /// Replaces an entity that was read; no key of its copies and lists changes.
    replace = Replace;
    /// Replaces an entity that was read, so that the key of each copy and list changes.
    replace_keys = ReplaceKeys;
    /// Merges a field that the copies hold, and that is in no key.
    patch_at = PatchAt;
    /// Reads an entity, changes it and writes it; no key of its copies and lists changes.
    update = Update;
    /// Inserts an entity or replaces the stored one; no key of its copies and lists changes.
    insert_or_replace = InsertOrReplace;
    /// Inserts an entity or merges it into the stored one; no key of its copies and lists changes.
    insert_or_merge = InsertOrMerge;
    /// Deletes an entity that was read.
    delete = Delete;
    /// Deletes an entity by its keys.
    delete_at = DeleteAt;
}

/// Inserts many entities, as [`Bulk::insert_all`](crate::Bulk::insert_all) does with eight transactions in flight: as
/// many as the pattern's `rows`, spread evenly over its `over` partitions. The plan assumes that the entities arrive
/// partition by partition, that each has lists of its own, and that 100 rows are smaller than 4 MiB.
///
/// ```
/// # use entable::prelude::*;
/// use entable::patterns::{self, Pattern};
///
/// # #[derive(TableEntity)]
/// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}",
/// #         index(ByName, row_key = "name_{last_name}_{id:06}"))]
/// # pub struct Employee { pub department: String, pub id: u32, pub last_name: String }
/// let pattern = Pattern::write("import", patterns::insert_all::<Employee>()).rows(1_000).over(4);
/// // 250 employees a department, 50 with their copies in a transaction.
/// assert_eq!((pattern.request_count(), pattern.operation_count()), (20, 100));
/// // Eight transactions are in flight.
/// assert_eq!(pattern.round_trips(), 3);
/// ```
pub fn insert_all<E: TableEntity>() -> Question {
    Question::of_bulk_load(E::SCHEMA)
}

fn of_point<E: TableEntity, T: FromRow>(verb: &'static str, access: UntypedPath) -> Question {
    let schema = E::SCHEMA;
    let filter = access.keys.filter().to_string().replace(TOKEN_PLACEHOLDER, TOKEN_IN_EXPLAIN);
    let fault = access.checked_keys().err();
    let client = Client::memory();
    let plan = ReadPlan::for_row(client.store(), RowType::of::<E, T>(), access);
    let (columns, family, fault) = match plan {
        Ok(plan) => (plan.columns, plan.access.family, fault),
        Err(error) => (None, None, Some(error)),
    };
    let is_wide =
        schema.needs().contain(Needs::PARTS) && family.is_some_and(|family| family.is_primary());
    let parts =
        if is_wide { wide::part_numbers_to_read(schema, columns.as_deref()).len() } else { 1 };
    Question {
        verb,
        table: family
            .map_or(schema.table.into(), |family| family.table_given_primary_table(schema.table))
            .into(),
        filter,
        partition: family.map_or_else(
            || PartitionUse::unknown(schema.table),
            |family| PartitionUse::of_family(schema, family),
        ),
        elsewhere: Vec::new(),
        // A reserved copy is replaced by what its owner derives.
        follows: family.is_some_and(|family| family.is_remote && !family.unique),
        fault,
        calls: vec![QuestionCall { function: verb, schema: Some(schema), family }],
        compared: Vec::new(),
        work: Work::Point { parts: u64::try_from(parts).unwrap_or(1) },
        write: None,
    }
}

/// Returns the names of the properties that the query's conditions compare, each once. Leaves out the keys and the
/// property with the entity type.
fn compared_properties(request: &Request) -> Vec<String> {
    let mut names = BTreeSet::new();
    let mut add = |name: &str| {
        names.insert(name.to_owned());
    };
    let filter = request.item_rows().and_then(|parts| request.filter_to_explain(parts));
    match filter.as_ref().ok().filter(|_| !request.reads_list()) {
        Some(filter) => filter.visit_properties(&mut |name| add(name)),
        // The filter of a list finds ids, and that of a refused query is unknown.
        None => {
            let conditions = request.conditions.iter();
            conditions.for_each(|condition| condition.visit_properties(&mut |name| add(name)));
        }
    }
    let type_name = match request.schema.map(|schema| schema.discriminator) {
        Some(Discriminator::Property(name)) => name,
        _ => "",
    };
    let is_compared = |name: &String| !["PartitionKey", "RowKey", type_name].contains(&&**name);
    names.into_iter().filter(is_compared).collect()
}

impl<E, T> From<Query<E, T>> for Question {
    fn from(query: Query<E, T>) -> Self {
        let Explain {
            class,
            table,
            filter,
            top,
            tables,
            lists_tables,
            reads_each,
            blob,
            fault,
            ..
        } = query.explain();
        let request = &query.request;
        let family = request.family();
        // A page size out of range is refused too, which `explain` does not say.
        let fault = fault.or_else(|| {
            let filter = request.item_rows().and_then(|parts| request.filter_to_explain(parts));
            filter.and_then(|filter| request.check_options(&filter)).err()
        });
        let call = QuestionCall { function: "query", schema: request.schema, family };
        let primaries = request
            .schema
            .filter(|_| reads_each)
            .and_then(|schema| Some(PartitionUse::of_family(schema, schema.primary().ok()?)));
        let rows_per_item = request.item_rows().map_or(1, |parts| u64::from(parts.rows_per_item()));
        Self {
            verb: if reads_each { "query of a list" } else { "query" },
            filter,
            partition: family.zip(request.schema).map_or_else(
                || PartitionUse::unknown(&table),
                |(family, schema)| PartitionUse::of_family(schema, family),
            ),
            table,
            elsewhere: Vec::new(),
            follows: family.is_some_and(|family| family.is_remote && !family.unique),
            fault,
            calls: vec![call],
            compared: compared_properties(request),
            work: Work::Query(QueryWork {
                class,
                top,
                take: request.take,
                rows_per_item,
                tables,
                lists_tables,
                reads_each,
                primaries,
                is_in_blob: blob.is_some(),
                counts_ids: false,
                tables_at_once: TABLES_IN_FLIGHT,
            }),
            write: None,
        }
    }
}
