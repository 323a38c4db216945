//! Queries of lists: reads the ids in a list, then their entities.

use futures_util::{StreamExt, future::BoxFuture, stream};

use super::{
    plan::{ReadPlan, RowType},
    query_plan::QueryPlan,
    read_page::RowPage,
    request::Request,
};
use crate::{
    access,
    address::Names,
    entity::{Point, Schema, TableEntity, UntypedPath, dated::TimeWindow, head_row_key},
    error::{Error, ErrorKind, Result},
    filter::Filter,
    key::RowFamily,
    page::Cursor,
    plan::{
        IdForm, StoredList, TokenMaker, first_and_last_spill_key,
        outbox::{ListAddress, list_entry_keys, name_of_list_blob},
    },
    row::{Row, error_with_row_keys},
    store::{
        dated::is_dated_table_missing,
        lists::{find_list, read_local_list},
        rows::Store,
    },
};

/// The number of entities that are read concurrently.
pub(crate) const POINT_READS: usize = 32;

/// PartitionKey and RowKey of an entity in a list.
type Keys = (String, String);

/// Reads the lists of a request and returns the keys of their entities, without reading the
/// entities.
pub(crate) async fn read_entity_keys_of_lists<E: TableEntity>(
    plan: &QueryPlan,
) -> Result<Vec<Point<E>>> {
    let mut points = Vec::new();
    let mut cursor = None;
    loop {
        let (page, next) = read_key_page_boxed(plan, E::SCHEMA, cursor.as_ref()).await?;
        // The keys of an entity need not show which dated table it is in.
        let table = plan.table_of_page(cursor.as_ref())?.unwrap_or_default();
        let dated = E::SCHEMA.dated.as_ref();
        let period = dated.and_then(|dated| dated.period_of(Names::ANY_CASE.name(&table)));
        let window = period.map(|period| TimeWindow::at_time(period.start));
        points.extend(
            page.into_iter()
                .map(|(partition_key, id)| Point::at(partition_key, id).with_window(window)),
        );
        match next {
            Some(next) => cursor = Some(next),
            None => return Ok(points),
        }
    }
}

// In a function of its own, so that programs with queries do not compile the reads of lists.
pub(crate) fn read_key_page_boxed<'p>(
    plan: &'p QueryPlan,
    schema: &'static Schema,
    cursor: Option<&'p Cursor>,
) -> BoxFuture<'p, Result<(Vec<Keys>, Option<Cursor>)>> {
    Box::pin(read_key_page(plan, schema, cursor))
}

/// Reads one page of keys: a whole list if the request addresses one list, otherwise the lists of one page.
async fn read_key_page(
    plan: &QueryPlan,
    schema: &'static Schema,
    cursor: Option<&Cursor>,
) -> Result<(Vec<Keys>, Option<Cursor>)> {
    let request = &plan.request;
    if plan.finds_nothing {
        return Ok((Vec::new(), None));
    }
    let remote = request.family().filter(|family| family.is_remote);
    let Some(table) = plan.table_of_page(cursor)? else { return Ok((Vec::new(), None)) };
    if let Some(point) = plan.point_keys()? {
        let keys = ids_of_one_list(request, schema, &table, point).await?;
        return Ok((keys, plan.cursor_at_next_table(cursor)?));
    }
    // Refused here: a list in a blob can only be found by its whole key, not by a scan.
    list_blob_of_request(request)?;
    let RowPage { rows, next } = plan.read_page(cursor).await?;
    let lists = &plan.read.access.keys;
    let mut ids = Vec::new();
    for row in rows {
        let row = row?;
        let (partition_key, row_key) = row.keys();
        // The range contains the lists whose head row is in it. If a bound begins with the key of a head row, it
        // can be between that row and its spill rows, whose list is then outside the range.
        if !lists.contains(partition_key, head_row_key(row_key)) {
            continue;
        }
        let of = if remote.is_some() { IdForm::KeyArrays } else { IdForm::RowKeys };
        let list = StoredList::from_head(row.clone(), of)
            .map_err(|error| error_with_row_keys(&row, error))?;
        let (first_spill, _) = first_and_last_spill_key(row_key, list.spill_row_count());
        if list.spill_row_count() > 0 && !lists.contains(partition_key, &first_spill) {
            // The spill rows are above the range, so the scan does not find them.
            let point = (partition_key.to_owned(), row_key.to_owned());
            ids.extend(ids_of_one_list(request, schema, &table, point).await?);
            continue;
        }
        match remote {
            Some(family) => ids.extend(keys_of(request, schema, family, &table, &list.ids)),
            None => {
                ids.extend(list.ids.into_iter().map(|id| (partition_key.to_owned(), id)));
            }
        }
    }
    Ok((ids, next))
}

/// Reads one list of entities in `table` and returns their keys. Returns no keys if a dated table does not
/// exist.
async fn ids_of_one_list(
    request: &Request,
    schema: &'static Schema,
    table: &str,
    point: (String, String),
) -> Result<Vec<Keys>> {
    match read_ids_of_one_list(request, schema, table, point).await {
        Err(error) if is_dated_table_missing(&error) && request.is_dated() => Ok(Vec::new()),
        keys => keys,
    }
}

/// Reads one list of entities in `table` and returns their keys. Fails if the table does not exist.
async fn read_ids_of_one_list(
    request: &Request,
    schema: &'static Schema,
    table: &str,
    (partition_key, row_key): (String, String),
) -> Result<Vec<Keys>> {
    let Some(family) = request.family().filter(|family| family.is_remote) else {
        let list = read_local_list(&request.store, table, &partition_key, &row_key).await?;
        // The row of a list is deleted with its last id.
        let ids = list.map(|list| list.ids).unwrap_or_default();
        return Ok(ids.into_iter().map(|id| (partition_key.clone(), id)).collect());
    };
    let list_table = family.table_given_primary_table(table).into_owned();
    let row = request.store.names().address([list_table, partition_key, row_key]);
    let place = ListAddress { in_blob: family.in_blob, row };
    let list = find_list(&request.store, &place).await?;
    Ok(keys_of(request, schema, family, table, list.ids()))
}

/// Returns the name of the blob that a request reads, or `None` if its list is not in a blob.
pub(crate) fn list_blob_of_request(request: &Request) -> Result<Option<String>> {
    if !request.family().is_some_and(|family| family.in_blob) {
        return Ok(None);
    }
    let Some((partition_key, row_key)) = request.access.keys.as_point() else {
        let message = "a list in blobs needs its whole key; give every part";
        return Err(Error::new(ErrorKind::Unsupported, message));
    };
    let table = request.table_to_read();
    let at = request.store.names().row_at(&table, partition_key, row_key);
    Ok(Some(name_of_list_blob(at)))
}

/// Returns the keys of this table's entities in a remote list. Several tables may share the list.
fn keys_of(
    request: &Request,
    schema: &'static Schema,
    family: &RowFamily,
    table: &str,
    ids: &[String],
) -> Vec<Keys> {
    let table = request.store.names().name(table);
    ids.iter().filter_map(|id| list_entry_keys(id, table, schema, family)).collect()
}

/// One page of the rows of entities in lists.
#[derive(Debug)]
pub(crate) struct EntityRowPage {
    /// The rows. An entity that cannot be read is an error in its place.
    pub(crate) rows: Vec<Result<Row>>,
    /// The table of the entities.
    pub(crate) table: String,
    pub(crate) next: Option<Cursor>,
}

// In a function of its own, so that programs with queries do not compile the reads of lists.
pub(crate) fn read_entity_page_boxed<'p>(
    plan: &'p QueryPlan,
    of: RowType,
    cursor: Option<&'p Cursor>,
) -> BoxFuture<'p, Result<EntityRowPage>> {
    Box::pin(read_entity_page(plan, of, cursor))
}

/// Reads one page of the entities in lists, with one point read per id, in the order of the ids.
///
/// Skips an id if its entity does not exist, has expired or does not meet the query's conditions. A remote list
/// is written after its entities, so an id is also skipped if its entity no longer belongs in the list. An entity
/// that cannot be read is an error in its place. An error of a request ends the page.
async fn read_entity_page(
    plan: &QueryPlan,
    of: RowType,
    cursor: Option<&Cursor>,
) -> Result<EntityRowPage> {
    let (ids, next) = read_key_page(plan, of.schema, cursor).await?;
    let request = &plan.request;
    let table = plan.table_of_page(cursor)?.unwrap_or_default();
    let family = of.schema.primary()?;
    let filter = request.conditions_as_filter(family)?;
    let remote = request.family().filter(|family| family.is_remote);
    let of = match &filter {
        // Whether an entity belongs in a remote list depends on all of its fields.
        Filter::Constant(true) if remote.is_none() => of,
        _ => of.whole(),
    };
    let access = UntypedPath::of_keys(Some(family), access::Keys::whole_table());
    let each = ReadPlan::for_row(&request.store, of, access)?;
    let found = read_each_entity(request, &each, &table, ids).await?;
    let belongs = match remote {
        Some(list) => Some(MembershipTest::test_for_list(plan, of.schema, list).await?),
        None => None,
    };
    let mut rows = Vec::with_capacity(found.len());
    for row in found {
        let is_item = match &row {
            Ok(row) => is_item_of_list(&request.store, row, belongs.as_ref(), &filter).await,
            // A row that cannot be read is an item.
            Err(_) => Ok(true),
        };
        match is_item {
            Ok(false) => {}
            Ok(true) => rows.push(row),
            Err(error) if error.concerns_one_item() => rows.push(Err(error)),
            Err(error) => return Err(error),
        }
    }
    Ok(EntityRowPage { rows, table, next })
}

/// Returns whether an entity belongs in the lists and meets the conditions.
async fn is_item_of_list(
    store: &Store,
    row: &Row,
    belongs: Option<&MembershipTest>,
    conditions: &Filter,
) -> Result<bool> {
    if let Some(belongs) = belongs {
        let is_member = belongs.is_member(store, row).await;
        if !is_member.map_err(|error| error_with_row_keys(row, error))? {
            return Ok(false);
        }
    }
    // Compare the decrypted entity, because ids say nothing about its fields.
    conditions.matches(row)
}

/// Reads the entities with these keys, several concurrently. Skips entities that do not exist.
async fn read_each_entity(
    request: &Request,
    each: &ReadPlan,
    table: &str,
    keys: Vec<Keys>,
) -> Result<Vec<Result<Row>>> {
    let read = |(partition_key, row_key): Keys| async move {
        let at = request.store.names().row_at(table, &partition_key, &row_key);
        match each.read_row(&request.store, at).await {
            // The table was dropped after the list was read.
            Err(error) if is_dated_table_missing(&error) && request.is_dated() => Ok(None),
            row => row,
        }
    };
    let mut reads = stream::iter(keys).map(read).buffered(POINT_READS).boxed();
    // Collect first, then ask for encryption keys: a read that is not polled could hold the key request
    // that others wait for.
    let mut found = Vec::new();
    while let Some(row) = reads.next().await {
        match row {
            Err(error) if !error.concerns_one_item() => return Err(error),
            row => found.extend(row.transpose()),
        }
    }
    if request.looks_up_by_token() {
        Ok(request.store.without_shredded(found).await)
    } else {
        Ok(found)
    }
}

/// Decides from an entity's own fields whether it belongs in the remote lists of a request.
struct MembershipTest {
    schema: &'static Schema,
    family: &'static RowFamily,
    keys: access::Keys,
    tokens: TokenMaker,
}

impl MembershipTest {
    async fn test_for_list(
        plan: &QueryPlan,
        schema: &'static Schema,
        family: &'static RowFamily,
    ) -> Result<Self> {
        let tokens = plan.request.store.token_maker_of_type(schema).await?;
        Ok(Self { schema, family, keys: plan.read.access.keys.clone(), tokens })
    }

    async fn is_member(&self, store: &Store, row: &Row) -> Result<bool> {
        let derive = || self.schema.derive_rows(row, &self.tokens);
        let derived = store.run_with_blind_token_keys(&self.tokens, derive).await?;
        let Some(rows) = derived.into_known_rows(self.schema)? else { return Ok(false) };
        let mut listed = rows.remote_lists.iter().filter(|listed| {
            listed.family.name == self.family.name && listed.family.in_blob == self.family.in_blob
        });
        Ok(listed.any(|listed| self.keys.contains(&listed.partition_key, &listed.row_key)))
    }
}
