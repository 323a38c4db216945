//! Joins the parts of wide entities in a page of rows.

use std::collections::HashMap;

use super::{
    join::{JoinedRow, join_parts},
    layout::{
        discriminator_property, first_row_key_and_part_number, maximum_parts_of_versions,
        version_of_part,
    },
    torn::torn_error,
};
use crate::{
    entity::Schema,
    error::{Error, Result},
    row::Row,
};

/// Returns a part's row as a row of the entity, with the keys of part 1 and the entity's type.
///
/// # Errors
///
/// Fails with `is_corrupt` for a damaged row.
pub(crate) fn part_as_entity_row(schema: &'static Schema, row: Row, part: usize) -> Result<Row> {
    let keys = first_row_key_and_part_number(row.row_key()).filter(|(_, found)| *found == part);
    let Some((row_key, _)) = keys else { return Ok(row) };
    let partition_key = row.partition_key().to_owned();
    // A row that is only counted has no type.
    if row.get(discriminator_property(schema))?.is_none() {
        return Ok(row);
    }
    let joined = join_parts(schema, (&partition_key, &row_key), &[(part, Some(row))])?;
    match joined {
        JoinedRow::Whole(row) | JoinedRow::Foreign(row) => Ok(row),
        JoinedRow::Absent | JoinedRow::Torn(_) => {
            Err(torn_error(schema, (&partition_key, &row_key), part))
        }
    }
}

/// An item of a page of rows.
#[derive(Debug)]
pub(crate) enum PageItem {
    /// A whole entity, a row of another type, or an error.
    Ready(Result<Row>),
    /// The entity with these keys has rows outside the page, or is torn. `first_part` is the lowest number of its
    /// parts in the page.
    Incomplete { partition_key: String, row_key: String, first_part: usize },
}

/// The rows of one entity in a page.
struct Group {
    partition_key: String,
    row_key: String,
    /// The lowest number of the entity's parts in the page, including errors.
    first_part: usize,
    parts: Vec<(usize, Option<Row>)>,
    error: Option<Error>,
}

/// Joins the rows of a page that are parts of one entity. Each entity is in the place of its first row.
pub(crate) fn join_parts_in_page(schema: &'static Schema, rows: Vec<Result<Row>>) -> Vec<PageItem> {
    let mut places: Vec<std::result::Result<usize, Result<Row>>> = Vec::with_capacity(rows.len());
    let mut groups: Vec<Group> = Vec::new();
    let mut by_keys = HashMap::new();
    for row in rows {
        let Some((partition_key, row_key, part)) = keys_of_part(schema, &row) else {
            places.push(Err(row));
            continue;
        };
        let at = *by_keys.entry((partition_key.clone(), row_key.clone())).or_insert_with(|| {
            places.push(Ok(groups.len()));
            let parts = (1..=maximum_parts_of_versions(schema)).map(|part| (part, None)).collect();
            groups.push(Group { partition_key, row_key, first_part: part, parts, error: None });
            groups.len() - 1
        });
        let Some(group) = groups.get_mut(at) else { continue };
        group.first_part = group.first_part.min(part);
        match row {
            Ok(row) => {
                if let Some((_, slot)) = group.parts.get_mut(part - 1) {
                    *slot = Some(row);
                }
            }
            Err(error) => {
                group.error.get_or_insert(error);
            }
        }
    }
    let mut groups: Vec<Option<Group>> = groups.into_iter().map(Some).collect();
    let items = places.into_iter().filter_map(|place| match place {
        Err(row) => Some(PageItem::Ready(row)),
        Ok(at) => groups.get_mut(at).and_then(Option::take).map(|group| group.into_item(schema)),
    });
    items.collect()
}

impl Group {
    fn into_item(self, schema: &'static Schema) -> PageItem {
        let Self { partition_key, row_key, first_part, parts, error } = self;
        if let Some(error) = error {
            return match first_part {
                1 => PageItem::Ready(Err(error)),
                // The page with part 1 may have already returned the error.
                _ => PageItem::Incomplete { partition_key, row_key, first_part },
            };
        }
        match join_parts(schema, (&partition_key, &row_key), &parts) {
            Ok(JoinedRow::Whole(row) | JoinedRow::Foreign(row)) => PageItem::Ready(Ok(row)),
            Err(error) => PageItem::Ready(Err(error.at_keys(&partition_key, &row_key))),
            Ok(JoinedRow::Absent | JoinedRow::Torn(_)) => {
                PageItem::Incomplete { partition_key, row_key, first_part }
            }
        }
    }
}

/// Returns the keys of the entity that a row belongs to, and the number of the row's part. For an error, uses the
/// keys in the error. Returns `None` for a row of another type.
fn keys_of_part(schema: &'static Schema, row: &Result<Row>) -> Option<(String, String, usize)> {
    let (partition_key, row_key) = match row {
        Ok(row) => row.keys(),
        Err(error) => error.keys()?,
    };
    let (first, part) = first_row_key_and_part_number(row_key)?;
    if part > maximum_parts_of_versions(schema) {
        return None;
    }
    if let Ok(row) = row {
        version_of_part(schema, part, row.get(discriminator_property(schema)).ok()?)?;
    }
    Some((partition_key.to_owned(), first, part))
}
