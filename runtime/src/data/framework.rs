//! Recognises the rows and tables of the outbox, which belong to one store and are never copied to another.

use crate::{
    error::{Error, ErrorKind, Result},
    plan::outbox::{
        DIRECTORY, EXPIRY,
        reserved_keys::{RESERVED, RESERVED_END},
    },
    row::Row,
    store::dated::FLOOR_TABLE,
    worker::POISON_TABLE,
};

/// The library's own tables: the directory of open work, the poison table, the floors of dated tables, and the expiry
/// markers. Their rows only make sense in the store that they were written for.
const FRAMEWORK_TABLES: [&str; 4] = [DIRECTORY, POISON_TABLE, FLOOR_TABLE, EXPIRY];

/// Returns whether the row belongs to the outbox.
pub(crate) fn is_outbox_row(row: &Row) -> bool {
    (RESERVED..RESERVED_END).contains(&row.row_key())
}

/// Returns whether a table belongs to the outbox of one store. Such tables never move: copies leave them
/// out, and imports refuse them.
///
/// ```
/// assert!(entable::data::is_framework_table("EntableDirectory"));
/// assert!(!entable::data::is_framework_table("Staff"));
/// ```
pub fn is_framework_table(name: &str) -> bool {
    // Whether names are case-sensitive depends on the store, which is unknown here. A name that differs only
    // in case is treated as the library's too.
    FRAMEWORK_TABLES.iter().any(|table| table.eq_ignore_ascii_case(name))
}

/// Fails if the table belongs to the outbox.
pub(crate) fn refuse_framework_table(name: &str) -> Result<()> {
    if !is_framework_table(name) {
        return Ok(());
    }
    let message = "the table holds outbox records, which are valid only in their own store; let a worker finish the \
                   work instead";
    Err(Error::new(ErrorKind::Invalid, message).in_table(name))
}
