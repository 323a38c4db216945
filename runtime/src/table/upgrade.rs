//! Rewriting the rows of older versions.

use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
};

use super::{Bulk, BulkReport, Progress, Query, Table};
use crate::{
    entity::{Partition, Stored, TableEntity},
    error::Result,
    page::Cursor,
};

/// A rewrite of every row of an older version as the current one: made by
/// [`Table::upgrade_all`], and begun when it is awaited.
///
/// Each row is written under the version that was read, in as few transactions as they fit in; a
/// row that another writer changed meanwhile is read again. Copies and lists follow. It can be
/// stopped at any time and begun again: rows that are done are not found any more.
#[must_use = "nothing is rewritten before it is awaited"]
pub struct Upgrade<E> {
    bulk: Bulk,
    query: Query<E, Stored<E>>,
}

impl<E> fmt::Debug for Upgrade<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upgrade").field("query", &self.query).finish_non_exhaustive()
    }
}

impl<E: TableEntity> Table<E> {
    /// Rewrites every row of an older version as the current one.
    ///
    /// It scans the table for such rows, which is what one does once after a new version.
    ///
    /// ```ignore
    /// let report = staff.upgrade_all().on_progress(|p| bar.set_position(p.done)).await?;
    /// ```
    pub fn upgrade_all(&self) -> Upgrade<E> {
        let query = self.query(E::scan()).edit(super::request::Request::only_older);
        Upgrade { bulk: self.bulk(), query }
    }
}

impl<E: TableEntity> Upgrade<E> {
    /// Only the rows of one partition.
    pub fn within(self, partition: impl Into<Partition<E>>) -> Self {
        let partition_key = partition.into().keys().partition.clone().unwrap_or_default();
        let query = self.query.filter(E::PARTITION_KEY.eq(partition_key));
        Self { query, ..self }
    }

    /// At most so many rows per page, 1 to 1,000: a checkpoint follows each.
    pub fn page_size(self, rows: u32) -> Self {
        Self { query: self.query.page_size(rows), ..self }
    }

    /// At most so many transactions in flight; 8 unless told.
    pub fn concurrency(self, transactions: usize) -> Self {
        Self { bulk: self.bulk.concurrency(transactions), ..self }
    }

    /// Called after every transaction.
    pub fn on_progress(self, report: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        Self { bulk: self.bulk.on_progress(report), ..self }
    }

    /// Called after every page, with the cursor that [`resume`](Self::resume) goes on from.
    pub fn on_checkpoint(self, save: impl Fn(&Cursor) + Send + Sync + 'static) -> Self {
        Self { bulk: self.bulk.on_checkpoint(save), ..self }
    }

    /// Goes on where an earlier rewrite of the same table was, without looking at what comes
    /// before.
    pub fn resume(self, checkpoint: Cursor) -> Self {
        Self { bulk: self.bulk.resume(checkpoint), ..self }
    }
}

impl<E: TableEntity> IntoFuture for Upgrade<E> {
    type Output = Result<BulkReport>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<BulkReport>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            if E::SCHEMA.older.is_none() {
                return Ok(BulkReport::default());
            }
            self.bulk.update_all(self.query, |_| Ok(())).await
        })
    }
}
