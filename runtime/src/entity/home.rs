//! The table of an entity: the declared table, or the dated table for the period of the entity's time.

use std::borrow::Cow;

use super::{
    Schema, Stored, TableEntity, UntypedPath,
    dated::{unspecified_dated_table_error, wrong_table_error},
};
use crate::{
    edm::{InvalidValue, Ticks},
    error::Result,
    key::RowFamily,
};

/// Returns the table of a path to one row of an entity with this schema.
///
/// # Errors
///
/// Fails with `is_invalid` if the entity's tables are dated and the path does not determine the table.
pub(crate) fn table_of_path(access: &UntypedPath, schema: &Schema) -> Result<Cow<'static, str>> {
    let Some(dated) = &schema.dated else { return Ok(Cow::Borrowed(schema.table)) };
    access.checked_keys()?;
    match access.window.filter(|window| window.is_time) {
        Some(window) => dated
            .name_of_period(dated.period_at(window.from))
            .map(Cow::Owned)
            .map_err(|invalid| invalid.into_write_error(dated.property)),
        None => Err(unspecified_dated_table_error(dated)),
    }
}

/// Returns the dated table for `time`. Returns the declared name for a time that no table name can represent;
/// building the entity's row fails for such a time.
pub fn dated_home_table(schema: &Schema, time: Result<Ticks, InvalidValue>) -> Cow<'static, str> {
    let name = schema.dated.zip(time.ok()).and_then(|(dated, time)| {
        let name = dated.name_of_period(dated.period_at(time));
        name.ok()
    });
    name.map_or(Cow::Borrowed(schema.table), Cow::Owned)
}

/// Returns the table of the entity's primary as it was read, regardless of later changes to the value.
pub(crate) fn table_of_stored<E: TableEntity>(stored: &Stored<E>) -> Result<Cow<'static, str>> {
    if E::SCHEMA.dated.is_none() {
        return Ok(Cow::Borrowed(E::SCHEMA.table));
    }
    let family = stored.copy_family().map_or(E::SCHEMA.primary(), Ok)?;
    Ok(entity_as_read(stored, family)?.home_table())
}

/// Returns the entity as it was read from its row of `family`, without later changes to the value.
pub(super) fn entity_as_read<E: TableEntity>(
    stored: &Stored<E>,
    family: &'static RowFamily,
) -> Result<E> {
    let primary = (E::SCHEMA.primary_in_current_form)(stored.row(), family)?;
    E::from_row(&primary)
}

/// Returns the table of a stored entity that is about to be replaced. A replacement never moves an entity to
/// another table.
///
/// # Errors
///
/// Fails with `is_invalid` if the value has changed and now belongs to another table.
pub(crate) fn table_to_replace_in<E: TableEntity>(stored: &Stored<E>) -> Result<Cow<'static, str>> {
    let table = table_of_stored(stored)?;
    let wanted = stored.home_table();
    if table == wanted { Ok(table) } else { Err(wrong_table_error(&table, &wanted)) }
}
