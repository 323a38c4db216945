//! The tables of a query of dated tables: which exist, in which order they are read, and where a
//! cursor points.

use std::sync::Arc;

use crate::{
    address::TableCase,
    entity::dated::{DatedTables, Period},
    error::{Error, ErrorKind, Result},
    page::{Continuation, Cursor},
    store::dated::name_of,
};

/// The tables that a query reads one after the other.
#[derive(Debug, Clone)]
pub(crate) struct QueriedTables {
    pub(crate) dated: &'static DatedTables,
    pub(crate) periods: Periods,
    pub(crate) newest_first: bool,
}

/// The periods whose tables a query reads.
#[derive(Debug, Clone)]
pub(crate) enum Periods {
    /// All periods from the earliest to the latest; `None` for an empty window.
    Window(Option<(Period, Period)>),
    /// The periods whose tables existed when the query was created, earliest first.
    Existing(Arc<[Period]>),
}

impl Periods {
    /// Returns the earliest and the latest period; `None` if there is none.
    fn first_and_last_period(&self) -> Option<(Period, Period)> {
        match self {
            Self::Window(bounds) => *bounds,
            Self::Existing(periods) => periods.first().copied().zip(periods.last().copied()),
        }
    }

    /// Returns a text that identifies the periods of the query.
    // All existing tables are one choice, since a cursor outlives tables that are dropped and
    // created.
    pub(crate) fn periods_as_text(&self) -> String {
        match self {
            Self::Window(bounds) => format!("{bounds:?}"),
            Self::Existing(_) => "all".to_owned(),
        }
    }
}

impl QueriedTables {
    /// Returns the period whose table is read first; `None` if there is none.
    pub(crate) fn first_period(&self) -> Option<Period> {
        let (earliest, latest) = self.periods.first_and_last_period()?;
        Some(if self.newest_first { latest } else { earliest })
    }

    /// Returns the period whose table is read after that of `period`; `None` after the last.
    pub(crate) fn period_after(&self, period: Period) -> Option<Period> {
        let (earliest, latest) = match &self.periods {
            Periods::Window(bounds) => (*bounds)?,
            Periods::Existing(periods) => {
                return match self.newest_first {
                    true => periods.iter().rev().find(|other| **other < period).copied(),
                    false => periods.iter().find(|other| **other > period).copied(),
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

    /// Iterates over all periods in the order in which their tables are read.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Period> {
        std::iter::successors(self.first_period(), |period| self.period_after(*period))
    }

    /// Returns the period of the table that a cursor points into. Without a cursor, returns that of the
    /// first table, or `None` if there is no table.
    ///
    /// # Errors
    ///
    /// `is_invalid_cursor` for a table that the query does not read.
    pub(crate) fn period_of(&self, cursor: Option<&Cursor>) -> Result<Option<Period>> {
        let Some(cursor) = cursor else { return Ok(self.first_period()) };
        // A cursor of one table names none; the empty name is refused below.
        let table = cursor.table.as_deref().unwrap_or_default();
        let period = self.dated.period_of(table, TableCase::Insensitive);
        let is_read = |period: &Period| match &self.periods {
            Periods::Window(bounds) => {
                bounds.is_some_and(|(earliest, latest)| (earliest..=latest).contains(period))
            }
            // A table that was dropped since has no rows, and the next one follows.
            Periods::Existing(_) => true,
        };
        match period.filter(is_read) {
            Some(period) => Ok(Some(period)),
            None => {
                let message = "the cursor stands in a table that the query does not read; begin again without one";
                Err(Error::new(ErrorKind::InvalidCursor, message).in_table(self.dated.template))
            }
        }
    }

    /// Returns the cursor at the beginning of a period's table. It keeps from `so_far` the number of
    /// returned items, and whether pages held rows that are not items.
    pub(crate) fn cursor_at_beginning(
        &self,
        period: Period,
        fingerprint: u64,
        so_far: Option<&Cursor>,
    ) -> Result<Cursor> {
        let (returned, mixed) = so_far.map_or((0, false), |at| (at.returned, at.mixed));
        let at = Continuation { partition_key: String::new(), row_key: None };
        let table = Some(name_of(self.dated, period)?);
        Ok(Cursor { fingerprint, returned, mixed, at, table })
    }
}
