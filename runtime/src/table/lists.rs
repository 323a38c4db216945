//! Index entities: from a list to the entities in it.

use futures_util::{StreamExt, TryStreamExt, stream};

use super::{
    commit::read_list,
    decode::{at, decode_required},
    request::Request,
};
use crate::{
    backend::Read,
    entity::{FromRow, Point, Stored, TableEntity},
    error::Result,
    filter::Filter,
    page::Cursor,
    plan::StoredList,
    row::Row,
};

/// Entities that are read at a time.
const POINT_READS: usize = 32;

/// The keys of the entities in the lists of a request.
pub(super) async fn points<E: TableEntity>(request: &Request) -> Result<Vec<Point<E>>> {
    let mut points = Vec::new();
    let mut cursor = None;
    loop {
        let (page, next) = ids(request, cursor.as_ref()).await?;
        points.extend(page.into_iter().map(|(partition_key, id)| Point::at(partition_key, id)));
        match next {
            Some(next) => cursor = Some(next),
            None => return Ok(points),
        }
    }
}

/// One page of ids: the whole list where the request names one, else the lists of one page.
async fn ids(
    request: &Request,
    cursor: Option<&Cursor>,
) -> Result<(Vec<(String, String)>, Option<Cursor>)> {
    if let Some((partition_key, row_key)) = request.point().await? {
        let list = read_list(&request.client, &request.table, &partition_key, &row_key).await?;
        let ids = list.map(|list| list.ids).unwrap_or_default();
        return Ok((ids.into_iter().map(|id| (partition_key.clone(), id)).collect(), None));
    }
    let (page, next) = request.page(cursor).await?;
    let mut ids = Vec::new();
    for row in page {
        let row = row?;
        let partition_key = row.partition_key().to_owned();
        let list = StoredList::of(row.clone()).map_err(|error| at(&row, error))?;
        ids.extend(list.ids.into_iter().map(|id| (partition_key.clone(), id)));
    }
    Ok((ids, next))
}

/// One page of the entities in lists: a point read each, in the order of the ids. An id whose
/// entity is gone meanwhile is left out.
pub(super) async fn page<E: TableEntity, T: FromRow>(
    request: &Request,
    cursor: Option<&Cursor>,
) -> Result<(Vec<Result<Stored<T>>>, Option<Cursor>)> {
    let (ids, next) = ids(request, cursor).await?;
    let primary = E::SCHEMA.primary()?;
    let filter = request.condition_on(primary)?;
    let select = match &filter {
        Filter::Constant(true) => super::decode::selected::<E, T>(Some(primary)),
        _ => None,
    };
    let rows: Vec<Option<Row>> = stream::iter(ids)
        .map(|(partition_key, row_key)| {
            let select = select.as_deref();
            async move {
                let read = Read {
                    table: &request.table,
                    partition_key: &partition_key,
                    row_key: &row_key,
                    select,
                };
                request.client.read_as(read, request.reading()).await
            }
        })
        .buffered(POINT_READS)
        .try_collect()
        .await?;
    let mut items = Vec::new();
    for row in rows.into_iter().flatten() {
        if filter.matches(&row)? {
            let item = decode_required::<E, T>(row, primary);
            items.push(item.map_err(|error| error.in_table(&request.table)));
        }
    }
    Ok((items, next))
}
