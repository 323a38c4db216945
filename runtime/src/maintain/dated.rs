//! Creates dated tables ahead of their use, and drops old ones.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use futures_util::{StreamExt, TryStreamExt, stream};

use crate::{
    edm::{InvalidValue, Ticks},
    entity::{
        Schema, TableEntity,
        dated::{DatedTables, Period, TimeWindow},
    },
    error::{Error, ErrorKind, Result},
    guard::Guard,
    key::{DatePart, RowFamily},
    limits::DATED_TABLES,
    store::dated::{
        DatedTableFloor, create_table_with_copies, name_of_period, raise_floor, read_floor,
        read_floor_creating_table,
    },
    table::{Table, every_table::dated_tables_among_names, job::run_when_awaited},
    worker::tables_with_open_work,
};

/// The number of tables that are created or deleted concurrently.
const TABLES_IN_FLIGHT: usize = 8;

/// The tables that [`Table::drop_before`] and [`Table::retain`] dropped or kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dropped {
    /// The deleted tables, including tables of copies, oldest first.
    pub dropped: Vec<String>,
    /// Old tables with open outbox work, which a worker must finish first. The next call drops them.
    pub kept: Vec<String>,
}

/// Creates the dated tables of a window of times. [`Table::create_between`] returns it, and it runs when it is awaited.
#[must_use = "does nothing unless awaited"]
#[derive(Debug)]
pub struct CreateTables<E> {
    table: Table<E>,
    /// The periods, or the error for an invalid window.
    periods: Result<Option<PeriodsToCreate>>,
    allows_many: bool,
}

/// The first and the last period for which tables are created.
#[derive(Debug, Clone, Copy)]
struct PeriodsToCreate {
    dated: &'static DatedTables,
    first: Period,
    last: Period,
}

impl<E> CreateTables<E> {
    /// Allows more than 10,000 tables, which are refused by default: a mistyped year would create millions.
    ///
    /// ```
    /// use entable::prelude::*;
    /// use time::{OffsetDateTime, macros::date};
    ///
    /// #[derive(TableEntity)]
    /// #[table(name = "Logins{at:%Y%m%d}", partition_key = "{user}", row_key = "{at:desc}")]
    /// struct Login { user: String, at: OffsetDateTime }
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let logins: Table<Login> = Client::memory().table();
    /// let years = date!(1990-01-01)..date!(2020-01-01);
    /// assert!(logins.create_between(years.clone()).await.unwrap_err().is_invalid());
    /// assert_eq!(logins.create_between(years).allow_many_tables().await?, 10_957);
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn allow_many_tables(self) -> Self {
        Self { allows_many: true, ..self }
    }
}

run_when_awaited!([E: TableEntity] CreateTables<E> => usize);

impl<E: TableEntity> CreateTables<E> {
    async fn run(self) -> Result<usize> {
        let Some(PeriodsToCreate { dated, first, last }) = self.periods? else { return Ok(0) };
        let count = dated.count_periods(first, last);
        if count > DATED_TABLES && !self.allows_many {
            let message = format!(
                "the window has {count} tables of `{}`, and at most {DATED_TABLES} are created at a time: give a smaller window, or call `allow_many_tables()`",
                dated.template
            );
            return Err(Error::new(ErrorKind::Invalid, message).in_table(dated.template));
        }
        let store = self.table.client().store();
        // Read the floor first: the next call would drop a table below it again.
        let floor = read_floor(store, dated).await?;
        let periods = std::iter::successors(Some(first), |period| dated.period_after(*period));
        let names = periods.take_while(|period| *period <= last).filter_map(|period| {
            let name = name_of_period(dated, period);
            let is_below = |name: &String| {
                name.get(dated.prefix.len()..).is_some_and(|digits| floor.refuses_period(digits))
            };
            (!name.as_ref().is_ok_and(is_below)).then_some(name)
        });
        stream::iter(names)
            .map(|name| async move { create_table_with_copies(store, E::SCHEMA, &name?).await })
            .buffered(TABLES_IN_FLIGHT)
            .try_fold(0, async |made, is_new| Ok(made + usize::from(is_new)))
            .await
    }
}

impl<E: TableEntity> Table<E> {
    /// Creates the dated tables for all periods in a window of times, with their tables of copies and lists, if
    /// they do not exist. The window's end is exclusive. Tables below the floor are skipped. Returns the number
    /// of entity tables that were created.
    ///
    /// Costs one request for each table, and one for the floor. The service is slow on a new table at first, so
    /// create the table before its first row is written.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` for an entity without dated tables, a window that ends before it begins, a window of
    /// more than 10,000 tables unless [`allow_many_tables`](CreateTables::allow_many_tables) allows it, and a time that table
    /// names cannot represent.
    ///
    /// ```
    /// use entable::prelude::*;
    /// use time::{OffsetDateTime, macros::date};
    ///
    /// #[derive(TableEntity)]
    /// #[table(name = "Logins{at:%Y%m%d}", partition_key = "{user}", row_key = "{at:desc}")]
    /// struct Login { user: String, at: OffsetDateTime }
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let client = Client::memory();
    /// let logins: Table<Login> = client.table();
    /// assert_eq!(logins.create_between(date!(2014-07-30)..date!(2014-08-01)).await?, 2);
    /// assert_eq!(client.tables().await?, ["Logins20140730", "Logins20140731"]);
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn create_between<T: DatePart>(&self, window: Range<T>) -> CreateTables<E> {
        let periods = self.periods_to_create(&window);
        CreateTables { table: self.clone(), periods, allows_many: false }
    }

    /// Returns how the tables are dated, and the first and the last period of a window. Returns `None` for an
    /// empty window.
    fn periods_to_create<T: DatePart>(&self, window: &Range<T>) -> Result<Option<PeriodsToCreate>> {
        let dated = self.all_dated_tables("create_between")?;
        let ticks = |time: &T| ticks_of(dated, time.to_ticks());
        let (from, until) = (ticks(&window.start)?, ticks(&window.end)?);
        if from > until {
            let message = "the window ends before it begins; give the earlier time first";
            return Err(Error::new(ErrorKind::Invalid, message).in_table(dated.template));
        }
        let periods = dated.first_and_last_period_in(TimeWindow { from, until, is_time: false });
        Ok(periods.map(|(first, last)| PeriodsToCreate { dated, first, last }))
    }

    /// Drops every table whose whole period is before a time. First raises the floor to that time's period. Tables
    /// below the floor are never created again, and a write to one fails with `is_not_found`.
    ///
    /// A table with open outbox work is kept and reported, and the next call drops it. Rows that are written to a
    /// table while it is being dropped are lost with it. If a request fails, call the verb again. Dropped tables
    /// remain dropped, and the floor keeps its value.
    ///
    /// Costs one request for each table, and about four more: two for the floor, one per page of the table names,
    /// and one per page of the directory of open work.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` for an entity without dated tables, and with the first error of a request.
    ///
    /// ```
    /// use entable::prelude::*;
    /// use time::{OffsetDateTime, macros::date};
    ///
    /// #[derive(TableEntity)]
    /// #[table(name = "Logins{at:%Y%m%d}", partition_key = "{user}", row_key = "{at:desc}")]
    /// struct Login { user: String, at: OffsetDateTime }
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let logins: Table<Login> = Client::memory().table();
    /// logins.create_between(date!(2014-07-30)..date!(2014-08-02)).await?;
    /// let dropped = logins.drop_before(date!(2014-08-01)).await?;
    /// assert_eq!(dropped.dropped, ["Logins20140730", "Logins20140731"]);
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn drop_before<T: DatePart>(&self, time: T) -> Result<Dropped> {
        let dated = self.all_dated_tables("drop_before")?;
        let time = ticks_of(dated, time.to_ticks())?;
        let floor = read_floor(self.client().store(), dated).await?;
        self.drop_tables_below(dated, dated.period_at(time), floor).await
    }

    /// Drops every table that is older than a number of days, by the store's own date. A table is kept if it
    /// covers any time of the last `days` days. Works like [`drop_before`](Self::drop_before).
    ///
    /// # Errors
    ///
    /// Fails as [`drop_before`](Self::drop_before) does, and with `is_unsupported` for a store that does not
    /// report its time.
    ///
    /// ```
    /// use entable::prelude::*;
    /// use time::{OffsetDateTime, macros::date};
    ///
    /// #[derive(TableEntity)]
    /// #[table(name = "Logins{at:%Y%m%d}", partition_key = "{user}", row_key = "{at:desc}")]
    /// struct Login { user: String, at: OffsetDateTime }
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let logins: Table<Login> = Client::memory().table();
    /// logins.create_between(date!(2014-07-30)..date!(2014-08-01)).await?;
    /// assert_eq!(logins.retain(60).await?.dropped.len(), 2);
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn retain(&self, days: u32) -> Result<Dropped> {
        let dated = self.all_dated_tables("retain")?;
        let floor = read_floor_creating_table(self.client().store(), dated).await?;
        let Some(now) = floor.date else {
            let message = "the store does not report its time; give a date with `drop_before`";
            return Err(Error::new(ErrorKind::Unsupported, message).in_table(dated.template));
        };
        let span = i64::from(days).saturating_mul(24 * 3600 * Ticks::PER_SECOND);
        let Some(time) = now.get().checked_sub(span).and_then(Ticks::new) else {
            // Nothing is older than the calendar.
            return Ok(Dropped::default());
        };
        self.drop_tables_below(dated, dated.period_at(time), floor).await
    }

    /// Raises the floor to a period and drops the tables below it.
    async fn drop_tables_below(
        &self,
        dated: &'static DatedTables,
        floor_period: Period,
        floor: DatedTableFloor,
    ) -> Result<Dropped> {
        let client = self.client();
        // Raise the floor before listing the tables: a writer that creates one later then finds the floor.
        raise_floor(client.store(), dated, floor_period, floor).await?;
        let all = client.tables().await?;
        let rule = client.store().names();
        let is_old = |period: &Period| *period < floor_period;
        let mut names = dated_tables_among_names(dated, &all, rule);
        names.retain(|(period, _)| is_old(period));
        let mut copies: Vec<(Period, String)> = Vec::new();
        for (prefix, template) in prefixes_of_copies(E::SCHEMA) {
            let of_copies = DatedTables { prefix, template, ..*dated };
            copies.extend(dated_tables_among_names(&of_copies, &all, rule));
        }
        copies.retain(|(period, _)| is_old(period));
        if names.is_empty() && copies.is_empty() {
            return Ok(Dropped::default());
        }
        let own: Vec<String> = names.iter().map(|(_, name)| name.clone()).collect();
        // Read after the floor was raised, to find all work that was recorded before.
        let open = if client.outbox().guards.is_guard_enabled(Guard::OpenWorkKept) {
            tables_with_open_work(client, &own).await?
        } else {
            BTreeSet::new()
        };
        let (kept, mut idle): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|(_, name)| open.contains(name));
        // The copies of a kept table must be kept too.
        copies.retain(|(period, _)| kept.iter().all(|(other, _)| other != period));
        // Drop tables of copies last, because a table of entities must always have them.
        for tables in [&idle, &copies] {
            let names: Vec<String> = tables.iter().map(|(_, name)| name.clone()).collect();
            stream::iter(names)
                .map(|name| async move {
                    match client.delete_table_if_exists(&name).await {
                        // Another program is dropping it.
                        Err(error) if error.is_table_being_deleted() => Ok(()),
                        deleted => deleted.map(drop),
                    }
                })
                .buffered(TABLES_IN_FLIGHT)
                .try_collect::<()>()
                .await?;
        }
        idle.extend(copies);
        idle.sort();
        let names = |tables: Vec<(Period, String)>| tables.into_iter().map(|(_, name)| name);
        let (dropped, kept) = (names(idle).collect(), names(kept).collect());
        Ok(Dropped { dropped, kept })
    }

    /// Returns how the entity's dated tables are named. `verb` is the caller's method, for the error.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` if the tables are not dated, or if the caller opened a single one.
    fn all_dated_tables(&self, verb: &str) -> Result<&'static DatedTables> {
        let message = match &E::SCHEMA.dated {
            Some(dated) if dated.template == self.name() => return Ok(dated),
            Some(_) => format!(
                "`{verb}` works on all dated tables of the entity; open them with `client.table()`"
            ),
            None => {
                format!("`{verb}` needs dated tables, such as `name = \"Logins{{at:%Y%m%d}}\"`")
            }
        };
        Err(Error::new(ErrorKind::Invalid, message).in_table(self.name()))
    }
}

/// Returns the names of the dated tables of copies and lists. Keys are the text before the period, values the
/// templates of the whole names.
fn prefixes_of_copies(schema: &Schema) -> BTreeMap<&'static str, &'static str> {
    let families: &'static [RowFamily] = schema.families;
    let templates = families.iter().filter_map(|family| family.table);
    templates.filter_map(|table| Some((table.split_once('{')?.0, table))).collect()
}

fn ticks_of(dated: &DatedTables, time: Result<Ticks, InvalidValue>) -> Result<Ticks> {
    time.map_err(|invalid| invalid.into_write_error(dated.property).in_table(dated.template))
}
