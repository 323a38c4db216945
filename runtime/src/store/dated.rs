//! Creates dated tables and maintains their floors. A floor is the first period whose table may still be created.
//!
//! A floor only rises. A program raises it before it drops tables, which keeps writers from creating them again.

use super::{backoff, rows::Store};
use crate::{
    access::Keys,
    backend::{NameRange, ScanRequest},
    batch::{Batch, Condition, Operation},
    edm::{Ticks, ValueRef},
    entity::{
        Schema,
        dated::{DatedTables, Period},
    },
    error::{Error, ErrorKind, Result, ServiceCode},
    plan::outbox::reserved_keys::{FORMAT, FORMAT_NAME, TYPE_NAME},
    row::{ETag, Row},
};

/// The table that stores the floors of dated tables.
pub(crate) const FLOOR_TABLE: &str = "EntableTables";

/// The PartitionKey of all floor rows.
const FLOOR_PARTITION: &str = "floor";

/// The property with the digits of the floor's period.
const FLOOR_PROPERTY: &str = "Floor";

/// The floor of an entity's dated tables, as read.
#[derive(Debug, Default)]
pub(crate) struct DatedTableFloor {
    /// The digits of the first period whose table may be created, or `None` if all may.
    pub(crate) digits: Option<String>,
    etag: Option<ETag>,
    is_table_missing: bool,
    /// The store's date in its answer, or `None` if it sends none.
    pub(crate) date: Option<Ticks>,
}

impl DatedTableFloor {
    /// Returns whether the table of a period, given by its digits, is below the floor and must not be created. The
    /// digits of one date form sort like its periods.
    pub(crate) fn refuses_period(&self, digits: &str) -> bool {
        self.digits.as_deref().is_some_and(|floor| digits < floor)
    }
}

/// Returns the RowKey of the floor: the table name before the date, and the form of the date, such as `Ym`.
fn row_key(store: &Store, dated: &DatedTables) -> String {
    format!("{}_{}", store.names().name(dated.prefix).form(), dated.form.replace('%', ""))
}

/// Reads the floor of an entity's dated tables in one request. The floor is the first period whose table may still be
/// created. There is no floor if the table of floors is missing.
pub(crate) async fn read_floor(store: &Store, dated: &DatedTables) -> Result<DatedTableFloor> {
    let filter = Keys::point(FLOOR_PARTITION, row_key(store, dated)).filter();
    let scan =
        ScanRequest { table: FLOOR_TABLE, filter: &filter, select: None, top: None, from: None };
    // Read as a page, which contains the store's date.
    let page = match store.scan(scan).await {
        Err(error) if error.is_table_missing() => {
            return Ok(DatedTableFloor { is_table_missing: true, ..DatedTableFloor::default() });
        }
        page => page?,
    };
    let date = page.date;
    let Some(row) = page.rows.into_iter().next().transpose()? else {
        return Ok(DatedTableFloor { date, ..DatedTableFloor::default() });
    };
    match row.get(FLOOR_PROPERTY)? {
        Some(ValueRef::String(digits)) => Ok(DatedTableFloor {
            digits: Some(digits.to_owned()),
            etag: row.etag(),
            date,
            ..DatedTableFloor::default()
        }),
        _ => {
            let message = "the floor of dated tables is not text: another program changed the row";
            let error = Error::new(ErrorKind::Decode, message);
            Err(error
                .in_table(FLOOR_TABLE)
                .at_keys(FLOOR_PARTITION, row.row_key())
                .in_property(FLOOR_PROPERTY))
        }
    }
}

/// Reads the floor. Creates the table of floors if it is missing, because only then the answer has the store's date.
pub(crate) async fn read_floor_creating_table(
    store: &Store,
    dated: &DatedTables,
) -> Result<DatedTableFloor> {
    let floor = read_floor(store, dated).await?;
    if !floor.is_table_missing {
        return Ok(floor);
    }
    store.create_table_if_not_exists(FLOOR_TABLE).await?;
    read_floor(store, dated).await
}

/// Raises the floor to a period, unless it is already higher. `floor` is the floor that was read.
pub(crate) async fn raise_floor(
    store: &Store,
    dated: &DatedTables,
    period: Period,
    mut floor: DatedTableFloor,
) -> Result<()> {
    let digits = digits_of_period(dated, period)?;
    for attempt in 0..backoff::ATTEMPTS {
        if floor.digits.as_ref().is_some_and(|floor| *floor >= digits) {
            return Ok(());
        }
        if floor.is_table_missing {
            store.create_table_if_not_exists(FLOOR_TABLE).await?;
        }
        let mut row = Row::build(FLOOR_PARTITION, &row_key(store, dated));
        row.put(TYPE_NAME, ValueRef::String("entable.floor"));
        row.put(FORMAT_NAME, ValueRef::Int32(FORMAT));
        row.put(FLOOR_PROPERTY, ValueRef::String(&digits));
        let row = row.finish()?;
        // Under the ETag that was read, a lower floor cannot overwrite a higher one.
        let write = match floor.etag {
            Some(etag) => Operation::replace(row, Condition::Match(etag)),
            None => Operation::insert(row),
        };
        match store.apply(&Batch::single(FLOOR_TABLE, write)?).await {
            Ok(_) => return Ok(()),
            // After a lost answer, read again: the floor may already be raised.
            Err(error)
                if error.is_row_changed_or_gone()
                    || error.row_exists()
                    || error.is_answer_lost() => {}
            Err(error) => return Err(error),
        }
        backoff::wait_before_retry(&store.random, attempt).await;
        // Another program may have raised it in the meantime, perhaps far enough.
        floor = read_floor(store, dated).await?;
    }
    Err(backoff::contended_error().in_table(FLOOR_TABLE))
}

/// Creates the table of a period with the tables of its copies and lists, unless it is below the floor. Returns whether
/// the table was created. If `reads_floor` is `false`, does not read the floor; only a simulation omits this guard.
///
/// # Errors
///
/// Fails with `is_not_found` and the floor for a table below the floor.
pub(crate) async fn create_dated_table(
    store: &Store,
    schema: &Schema,
    dated: &DatedTables,
    period: Period,
    (table, reads_floor): (&str, bool),
) -> Result<bool> {
    if !reads_floor {
        return create_table_with_copies(store, schema, table).await;
    }
    let digits = digits_of_period(dated, period)?;
    let floor = read_floor(store, dated).await?;
    if floor.refuses_period(&digits) {
        return Err(below_floor(dated, table, &floor));
    }
    create_table_with_copies(store, schema, table).await
}

/// Creates a table of an entity with the tables of its copies and lists. Returns whether the table was created.
pub(crate) async fn create_table_with_copies(
    store: &Store,
    schema: &Schema,
    table: &str,
) -> Result<bool> {
    // Create the tables of copies first. If the table of the entities exists, they then exist too, without a
    // check.
    for name in tables_of_derived_rows(schema, table) {
        store.create_table_if_not_exists(&name).await?;
    }
    store.create_table_if_not_exists(table).await
}

/// Returns the tables of the copies and lists of an entity in `table`, each once.
pub(crate) fn tables_of_derived_rows(schema: &Schema, table: &str) -> Vec<String> {
    let families = schema.families.iter().filter(|family| family.has_dated_tables());
    let mut names: Vec<_> =
        families.map(|family| family.table_given_primary_table(table).into_owned()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the error for a table below the floor, which must not be created.
fn below_floor(dated: &DatedTables, table: &str, floor: &DatedTableFloor) -> Error {
    let floor = floor.digits.as_deref().unwrap_or_default();
    let message = format!(
        "the table is below the floor of `{}`: tables before `{}{floor}` were dropped and are not created again",
        dated.template, dated.prefix
    );
    Error::service(ServiceCode::TableNotFound, message).in_table(table)
}

/// Returns the periods from `first` to `last` whose tables exist, earliest first. Costs one request for each 1,000 of
/// these tables. A store that cannot list a range of names lists all tables.
pub(crate) async fn list_existing_periods(
    store: &Store,
    dated: &DatedTables,
    first: Period,
    last: Period,
) -> Result<Vec<Period>> {
    let (first_name, last_name) = (name_of_period(dated, first)?, name_of_period(dated, last)?);
    let within = NameRange { first: &first_name, last: &last_name };
    let names = store.list_table_names(Some(within)).await?;
    let rule = store.names();
    let mut periods: Vec<Period> = names
        .iter()
        .filter_map(|name| dated.period_of(rule.name(name)))
        .filter(|period| (first..=last).contains(period))
        .collect();
    periods.sort_unstable();
    Ok(periods)
}

/// Returns the digits of a period at the end of its table's name.
pub(crate) fn digits_of_period(dated: &DatedTables, period: Period) -> Result<String> {
    dated.digits_of_period(period).map_err(|invalid| invalid.into_write_error(dated.property))
}

/// Returns the name of a period's table.
pub(crate) fn name_of_period(dated: &DatedTables, period: Period) -> Result<String> {
    dated.name_of_period(period).map_err(|invalid| invalid.into_write_error(dated.property))
}

/// Returns whether the error means that a dated table does not exist: it was never created, was dropped, or is being
/// dropped.
pub(crate) fn is_dated_table_missing(error: &Error) -> bool {
    error.is_table_missing() || error.is_table_being_deleted()
}
