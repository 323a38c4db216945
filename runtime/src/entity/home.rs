//! The table of an entity: the one that its type declares, or the one that its time names.

use std::borrow::Cow;

use super::{
    Access, Schema, Stored, TableEntity,
    dated::{unspecified_dated_table_error, wrong_table_error},
};
use crate::{
    edm::{InvalidValue, Ticks},
    error::Result,
};

/// Returns the table of a path to one row of an entity with this schema.
///
/// # Errors
///
/// `is_invalid` if the entity's tables are dated and the path does not say which it is in.
pub(crate) fn table_of_path(access: &Access, schema: &Schema) -> Result<Cow<'static, str>> {
    let Some(dated) = &schema.dated else { return Ok(Cow::Borrowed(schema.table)) };
    access.checked_keys()?;
    match access.window.filter(|window| window.is_time) {
        Some(window) => dated
            .name_of(dated.period_at(window.from))
            .map(Cow::Owned)
            .map_err(|invalid| invalid.into_write_error(dated.property)),
        None => Err(unspecified_dated_table_error(dated)),
    }
}

/// Returns the table of an entity whose tables are named by `time`. The declared name stands for a time
/// that no table's name can hold; making the entity's row fails for such a time.
pub fn home_table(schema: &Schema, time: Result<Ticks, InvalidValue>) -> Cow<'static, str> {
    let name = schema.dated.zip(time.ok()).and_then(|(dated, time)| {
        let name = dated.name_of(dated.period_at(time));
        name.ok()
    });
    name.map_or(Cow::Borrowed(schema.table), Cow::Owned)
}

/// Returns the table of the entity as it was read, whatever the value became since.
pub(crate) fn table_of_stored<E: TableEntity>(stored: &Stored<E>) -> Result<Cow<'static, str>> {
    if E::SCHEMA.dated.is_none() {
        return Ok(Cow::Borrowed(E::SCHEMA.table));
    }
    let family = stored.copy_family().map_or(E::SCHEMA.primary(), Ok)?;
    let primary = (E::SCHEMA.primary_in_current_form)(stored.row(), family)?;
    Ok(E::from_row(&primary)?.home_table())
}

/// Returns the table that a stored entity is in.
///
/// # Errors
///
/// `is_invalid` if the value belongs to another table now.
pub(crate) fn table_to_replace_in<E: TableEntity>(stored: &Stored<E>) -> Result<Cow<'static, str>> {
    let table = table_of_stored(stored)?;
    let wanted = stored.home_table();
    if table == wanted { Ok(table) } else { Err(wrong_table_error(&table, &wanted)) }
}
