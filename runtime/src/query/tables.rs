//! The tables of a query of dated tables: which there are, in which order, and where a cursor stands.

use crate::{
    address::TableCase,
    entity::dated::{DatedTables, Period},
    error::{Error, ErrorKind, Result},
    page::{Continuation, Cursor},
    store::dated::name_of,
};

/// The tables that a query reads one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueriedTables {
    pub(crate) dated: &'static DatedTables,
    /// The earliest and the latest period; `None` for an empty window.
    pub(crate) periods: Option<(Period, Period)>,
    pub(crate) newest_first: bool,
}

impl QueriedTables {
    /// Returns the period whose table is read first.
    pub(crate) fn first(&self) -> Option<Period> {
        let (earliest, latest) = self.periods?;
        Some(if self.newest_first { latest } else { earliest })
    }

    /// Returns the period whose table is read next; `None` after the last.
    pub(crate) fn after(&self, period: Period) -> Option<Period> {
        let (earliest, latest) = self.periods?;
        let next =
            if self.newest_first { self.dated.previous(period) } else { self.dated.next(period) };
        next.filter(|next| (earliest..=latest).contains(next))
    }

    /// Iterates over all periods in the order in which their tables are read.
    pub(crate) fn iter(self) -> impl Iterator<Item = Period> {
        std::iter::successors(self.first(), move |period| self.after(*period))
    }

    /// Returns the period whose table a cursor stands in; that of the first table without one.
    ///
    /// # Errors
    ///
    /// `is_invalid_cursor` for a table that the query does not read.
    pub(crate) fn period_of(&self, cursor: Option<&Cursor>) -> Result<Option<Period>> {
        let Some(cursor) = cursor else { return Ok(self.first()) };
        let table = cursor.table.as_deref().unwrap_or_default();
        let period = self.dated.period_of(table, TableCase::Insensitive);
        let is_read = |period: &Period| {
            self.periods.is_some_and(|(earliest, latest)| (earliest..=latest).contains(period))
        };
        match period.filter(is_read) {
            Some(period) => Ok(Some(period)),
            None => {
                let message = "the cursor stands in a table that the query does not read; begin again without one";
                Err(Error::new(ErrorKind::InvalidCursor, message).in_table(self.dated.template))
            }
        }
    }

    /// Returns the cursor at the beginning of a period's table, after what `so_far` has counted.
    pub(crate) fn cursor_at(
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
