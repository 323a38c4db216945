//! The tables of a query of dated tables: which of them exist, the order in which they are read, and the
//! position of a cursor.

use std::sync::Arc;

use crate::{
    address::Names,
    entity::dated::{DatedTables, Period},
    error::{Error, ErrorKind, Result},
    limits::{DATED_TABLES, saturating_u64},
    page::{Continuation, Cursor},
    store::{
        dated::{list_existing_periods, name_of_period},
        rows::Store,
    },
};

/// The tables that a query reads one after another.
#[derive(Debug, Clone)]
pub(crate) struct QueriedTables {
    pub(crate) dated: &'static DatedTables,
    pub(crate) periods: Periods,
    pub(crate) newest_first: bool,
}

/// The periods whose tables a query reads.
#[derive(Debug, Clone)]
pub(crate) enum Periods {
    /// All periods of a window.
    Window(WindowPeriods),
    /// The periods whose tables existed when the query was created, earliest first.
    Existing(Arc<[Period]>),
}

/// The periods whose dated tables can contain rows of a time window.
#[derive(Debug, Clone)]
pub(crate) struct WindowPeriods {
    /// The earliest and the latest period, or `None` for an empty window.
    pub(crate) bounds: Option<(Period, Period)>,
    /// The periods in between whose tables exist, earliest first. `None` if the tables were not listed.
    pub(crate) existing: Option<Arc<[Period]>>,
}

/// The maximum number of tables of a window that are read without listing them: four rounds of eight requests.
///
/// Listing costs one request for each 1,000 tables that exist, and saves one for each table that does not.
const UNLISTED_TABLES: u64 = 32;

impl Periods {
    /// Returns the earliest and the latest period, if there is any.
    fn first_and_last_period(&self) -> Option<(Period, Period)> {
        match self {
            Self::Window(WindowPeriods { bounds, existing: None }) => *bounds,
            Self::Window(WindowPeriods { existing: Some(periods), .. })
            | Self::Existing(periods) => periods.first().copied().zip(periods.last().copied()),
        }
    }

    /// Returns a text that identifies the periods of the query. All existing tables count as one choice, because
    /// tables may be dropped and created during the life of a cursor.
    pub(crate) fn identifying_text(&self) -> String {
        match self {
            Self::Window(window) => format!("{:?}", window.bounds),
            Self::Existing(_) => "all".to_owned(),
        }
    }
}

impl QueriedTables {
    /// Returns the period whose table is read first, if there is any.
    pub(crate) fn first_period(&self) -> Option<Period> {
        let (earliest, latest) = self.periods.first_and_last_period()?;
        Some(if self.newest_first { latest } else { earliest })
    }

    /// Returns the period whose table is read after the table of `period`, or `None` after the last.
    pub(crate) fn period_after(&self, period: Period) -> Option<Period> {
        let (earliest, latest) = match &self.periods {
            Periods::Window(WindowPeriods { bounds, existing: None }) => (*bounds)?,
            Periods::Window(WindowPeriods { existing: Some(periods), .. })
            | Periods::Existing(periods) => {
                return if self.newest_first {
                    periods.iter().rev().find(|other| **other < period).copied()
                } else {
                    periods.iter().find(|other| **other > period).copied()
                };
            }
        };
        let next = if self.newest_first {
            self.dated.period_before(period)
        } else {
            self.dated.period_after(period)
        };
        next.filter(|next| (earliest..=latest).contains(next))
    }

    /// Iterates over all periods in reading order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Period> {
        std::iter::successors(self.first_period(), |period| self.period_after(*period))
    }

    /// Returns the period of the table that a cursor points into. Without a cursor, returns the period of the first
    /// table, or `None` if there is no table.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid_cursor` for a table that the query does not read.
    pub(crate) fn period_of(&self, cursor: Option<&Cursor>) -> Result<Option<Period>> {
        let Some(cursor) = cursor else { return Ok(self.first_period()) };
        // A cursor of a single table has no table name, and the empty name is refused below.
        let table = cursor.table.as_deref().unwrap_or_default();
        let period = self.dated.period_of(Names::ANY_CASE.name(table));
        let is_read = |period: &Period| match &self.periods {
            Periods::Window(window) => {
                window.bounds.is_some_and(|(earliest, latest)| (earliest..=latest).contains(period))
            }
            // A table that was dropped in the meantime has no rows, and the next table follows.
            Periods::Existing(_) => true,
        };
        match period.filter(is_read) {
            Some(period) if cursor.is_at_table_start() => Ok(self.existing_period_from(period)),
            Some(period) => Ok(Some(period)),
            None => {
                let message = "the cursor points to a table that the query does not read; start again without a \
                               cursor";
                Err(Error::new(ErrorKind::InvalidCursor, message).in_table(self.dated.template))
            }
        }
    }

    /// Returns the period. If the tables of the window were listed, returns the next period whose table exists.
    fn existing_period_from(&self, period: Period) -> Option<Period> {
        match &self.periods {
            Periods::Window(WindowPeriods { existing: Some(periods), .. })
                if periods.binary_search(&period).is_err() =>
            {
                self.period_after(period)
            }
            _ => Some(period),
        }
    }

    /// Returns the number of tables, whether they exist or not.
    pub(crate) fn count_tables(&self) -> u64 {
        match &self.periods {
            Periods::Window(WindowPeriods { bounds, .. }) => {
                bounds.map_or(0, |(first, last)| self.dated.count_periods(first, last))
            }
            // A count fits into 64 bits.
            Periods::Existing(periods) => saturating_u64(periods.len()),
        }
    }

    /// Returns whether the query lists the existing tables before it reads, because its window has too many to try
    /// each.
    pub(crate) fn lists_tables(&self) -> bool {
        matches!(self.periods, Periods::Window(_)) && self.count_tables() > UNLISTED_TABLES
    }

    /// Lists the existing tables of a large window, which are then the only ones that are read. A client that may
    /// read rows but not list tables tries each table.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` if the client may not list tables and the window has more than 10,000 tables, unless
    /// `allows_many` is set.
    pub(crate) async fn list_existing(&mut self, store: &Store, allows_many: bool) -> Result<()> {
        let (lists_tables, count) = (self.lists_tables(), self.count_tables());
        let Periods::Window(window) = &mut self.periods else { return Ok(()) };
        let Some((first, last)) = window.bounds.filter(|_| lists_tables) else { return Ok(()) };
        match list_existing_periods(store, self.dated, first, last).await {
            Ok(periods) => window.existing = Some(periods.into()),
            Err(error) if error.is_denied() => {
                if count > DATED_TABLES && !allows_many {
                    return Err(unlisted_tables_error(self.dated, count).with_source(error));
                }
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Returns the cursor at the beginning of a period's table. Takes from `so_far` the number of returned items,
    /// and whether pages contained rows that are not items.
    pub(crate) fn cursor_at_beginning(
        &self,
        period: Period,
        fingerprint: u64,
        so_far: Option<&Cursor>,
    ) -> Result<Cursor> {
        let (returned, mixed) = so_far.map_or((0, false), |at| (at.returned, at.mixed));
        let at = Continuation { partition_key: String::new(), row_key: None };
        let table = Some(name_of_period(self.dated, period)?);
        Ok(Cursor { fingerprint, returned, mixed, at, table, as_of: None })
    }
}

/// Returns the error for a window of too many tables to be tried one by one.
fn unlisted_tables_error(dated: &DatedTables, count: u64) -> Error {
    let message = format!(
        "the window has {count} tables of `{}`, and this client may not list which of them exist: give a window of at most {DATED_TABLES}, let the client list tables, or call `allow_many_tables()` to ask each",
        dated.template
    );
    Error::new(ErrorKind::Invalid, message).in_table(dated.template)
}
