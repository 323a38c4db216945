//! Queries of lists: reads the ids in a list, then the entities that they name.

use futures_util::{StreamExt, stream};

use super::{
    columns::columns_of_point, decode::decode_required, prepare::PreparedRequest, request::Request,
};
use crate::{
    address::{RowAddress, RowAt, TableCase},
    backend::ReadRequest,
    entity::{FromRow, Point, Schema, Stored, TableEntity, dated::TimeWindow, head_row_key},
    error::{Error, ErrorKind, Result},
    filter::Filter,
    key::Family,
    page::Cursor,
    plan::{
        IdForm, StoredList, TokenMaker,
        outbox::{ListAddress, list_entry_keys},
        spill_bounds,
    },
    row::{Row, error_with_row_keys},
    store::{
        dated::is_dated_table_missing,
        lists::{find_list, list_blob_name, read_local_list},
        rows::Store,
        sealing::shredded::ShreddedScopes,
    },
};

/// Entities that are read at a time.
const POINT_READS: usize = 32;

/// PartitionKey and RowKey of an entity that a list names.
type Keys = (String, String);

/// Reads the lists of a request and returns the keys of their entities, without reading the
/// entities.
pub(crate) async fn read_entity_keys_of_lists<E: TableEntity>(
    request: &PreparedRequest,
) -> Result<Vec<Point<E>>> {
    let mut points = Vec::new();
    let mut cursor = None;
    loop {
        let (page, next) = read_key_page(request, E::SCHEMA, cursor.as_ref()).await?;
        // The keys of an entity with dated tables need not say which of them it is in.
        let table = request.table_of_page(cursor.as_ref())?.unwrap_or_default();
        let dated = E::SCHEMA.dated.as_ref();
        let period = dated.and_then(|dated| dated.period_of(&table, TableCase::Insensitive));
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

/// Reads one page of keys: a whole list if the request names one list, otherwise the lists of one
/// page.
pub(crate) async fn read_key_page(
    prepared: &PreparedRequest,
    schema: &'static Schema,
    cursor: Option<&Cursor>,
) -> Result<(Vec<Keys>, Option<Cursor>)> {
    let request = &prepared.request;
    if prepared.finds_nothing {
        return Ok((Vec::new(), None));
    }
    let remote = request.family().filter(|family| family.is_remote);
    let Some(table) = prepared.table_of_page(cursor)? else { return Ok((Vec::new(), None)) };
    if let Some(point) = prepared.point_keys()? {
        let keys = ids_of_one_list(request, schema, &table, point).await?;
        return Ok((keys, prepared.cursor_at_next_table(cursor)?));
    }
    // Refused here: a list in a blob is found by its whole key only, not by a scan.
    list_blob_of_request(request)?;
    let (page, next) = prepared.read_page(cursor).await?;
    let lists = &prepared.access.keys;
    let mut ids = Vec::new();
    for row in page {
        let row = row?;
        let (partition_key, row_key) = row.keys();
        // A range of lists has the lists whose head row is in it. A bound that begins with the key of a head row
        // can stand between that row and its spill rows: such a spill row in the range is not of its lists.
        if !lists.contains(partition_key, head_row_key(row_key)) {
            continue;
        }
        let of = if remote.is_some() { IdForm::KeyArrays } else { IdForm::RowKeys };
        let list = StoredList::from_head(row.clone(), of)
            .map_err(|error| error_with_row_keys(&row, error))?;
        let (first_spill, _) = spill_bounds(row_key, list.spill_row_count());
        if list.spill_row_count() > 0 && !lists.contains(partition_key, &first_spill) {
            // The scan does not find the list's spill rows, which are above the range.
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

/// Reads one list of entities in `table`, and returns their keys. A dated table that does not exist has no
/// lists.
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

/// Reads one list of entities in `table`, and returns their keys. Fails if the table does not exist.
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
    let row = RowAddress { table: family.table_beside(table).into_owned(), partition_key, row_key };
    let place = ListAddress { in_blob: family.in_blob, row };
    let list = find_list(&request.store, &place).await?;
    Ok(keys_of(request, schema, family, table, list.ids()))
}

/// Returns the name of the blob that a request reads; `None` if its list is not in a blob.
pub(crate) fn list_blob_of_request(request: &Request) -> Result<Option<String>> {
    if !request.family().is_some_and(|family| family.in_blob) {
        return Ok(None);
    }
    let Some((partition_key, row_key)) = request.access.keys.as_point() else {
        let message = "a list in blobs is found by all of its key: give every part of it";
        return Err(Error::new(ErrorKind::Unsupported, message));
    };
    let table = request.table_to_read();
    let at = RowAt::new(&table, partition_key, row_key);
    list_blob_name(at, request.store.table_case()).map(Some)
}

/// Returns the keys of this table's entities in a remote list, which several tables may share.
fn keys_of(
    request: &Request,
    schema: &'static Schema,
    family: &Family,
    table: &str,
    ids: &[String],
) -> Vec<Keys> {
    let case = request.store.table_case();
    ids.iter().filter_map(|id| list_entry_keys(id, table, schema, family, case)).collect()
}

/// Reads one page of the entities in lists with a point read for each id, in the order of the ids.
///
/// Leaves out an id whose entity does not exist, has expired or does not meet the query's conditions. A remote
/// list is written after its entity, so an id is also left out if its entity does not belong in the list any
/// more. An entity that cannot be read is an error at its place; the error of a request ends the page.
pub(crate) async fn read_entity_page<E: TableEntity, T: FromRow>(
    prepared: &PreparedRequest,
    cursor: Option<&Cursor>,
) -> Result<(Vec<Result<Stored<T>>>, Option<Cursor>)> {
    let (ids, next) = read_key_page(prepared, E::SCHEMA, cursor).await?;
    let request = &prepared.request;
    let table = prepared.table_of_page(cursor)?.unwrap_or_default();
    let table = table.as_str();
    let primary = E::SCHEMA.primary()?;
    let filter = request.conditions_as_filter(primary)?;
    let remote = request.family().filter(|family| family.is_remote);
    let select = match &filter {
        // Whether an entity belongs in a remote list depends on all of its fields.
        Filter::Constant(true) if remote.is_none() => columns_of_point::<E, T>(Some(primary)),
        _ => None,
    };
    let mut reads = stream::iter(ids)
        .map(|(partition_key, row_key)| {
            let select = select.as_deref();
            async move {
                let read =
                    ReadRequest { table, partition_key: &partition_key, row_key: &row_key, select };
                let row =
                    match request.store.read_decrypted(read, request.types_to_decrypt_as()).await {
                        // The table was dropped after the list was read.
                        Err(error) if is_dated_table_missing(&error) && request.is_dated() => None,
                        row => row?,
                    };
                let is_over = |row: &Row| {
                    request.store.is_row_expired(row, request.types_to_decrypt_as(), Some(primary))
                };
                Ok::<_, Error>(row.filter(|row| !is_over(row)))
            }
        })
        .buffered(POINT_READS)
        .boxed();
    // Collected before keys are asked for: a read under way that is not polled could hold the request
    // for the key.
    let mut found = Vec::new();
    while let Some(row) = reads.next().await {
        match row {
            Err(error) if !error.concerns_one_item() => return Err(error),
            row => found.push(row),
        }
    }
    let (mut rows, mut scopes) = (Vec::new(), ShreddedScopes::default());
    for row in found {
        match row {
            Err(error)
                if request.looks_up_by_token()
                    && request.store.is_row_shredded(&mut scopes, &error).await => {}
            Ok(row) => rows.extend(row.map(Ok)),
            Err(error) => rows.push(Err(error)),
        }
    }
    let belongs = match remote {
        Some(family) => Some(MembershipTest::test_for_list::<E>(prepared, family).await?),
        None => None,
    };
    let mut items = Vec::new();
    for row in rows {
        let item = match row {
            Ok(row) => {
                let is_in = match &belongs {
                    Some(belongs) => {
                        let holds = belongs.is_member::<E>(&request.store, &row).await;
                        holds.map_err(|error| error_with_row_keys(&row, error))
                    }
                    None => Ok(true),
                };
                // Compared with the decrypted entity: the ids in a list say nothing about its fields.
                match is_in.and_then(|is_in| Ok(is_in && filter.matches(&row)?)) {
                    Ok(false) => continue,
                    Ok(true) => decode_required::<E, T>(row, primary),
                    Err(error) if error.concerns_one_item() => Err(error),
                    Err(error) => return Err(error),
                }
            }
            Err(error) => Err(error),
        };
        items.push(item.map_err(|error| error.in_table(table)));
    }
    Ok((items, next))
}

/// Tells from an entity's own fields whether it belongs in the remote lists of a request.
struct MembershipTest {
    family: &'static Family,
    keys: crate::access::Keys,
    tokens: TokenMaker,
}

impl MembershipTest {
    async fn test_for_list<E: TableEntity>(
        prepared: &PreparedRequest,
        family: &'static Family,
    ) -> Result<Self> {
        let tokens = prepared.request.store.token_maker_of_type(E::SCHEMA).await?;
        Ok(Self { family, keys: prepared.access.keys.clone(), tokens })
    }

    async fn is_member<E: TableEntity>(&self, store: &Store, row: &Row) -> Result<bool> {
        let derive = || E::SCHEMA.derive_rows(row, &self.tokens);
        let derived = store.run_with_index_keys(&self.tokens, derive).await?;
        let Some(rows) = derived.into_known_rows(E::SCHEMA)? else { return Ok(false) };
        let mut listed = rows.remote_lists.iter().filter(|listed| {
            listed.family.name == self.family.name && listed.family.in_blob == self.family.in_blob
        });
        Ok(listed.any(|listed| self.keys.contains(&listed.partition_key, &listed.row_key)))
    }
}
