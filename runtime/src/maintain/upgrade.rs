//! Rewriting the rows of older versions.

use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
};

use crate::{
    entity::{Partition, Path, RowKind, RowVersion, Stored, TableEntity},
    error::Result,
    filter::Filter,
    page::Cursor,
    query::build::Query,
    table::{Bulk, BulkReport, Progress, Table},
};

/// A rewrite of every row of an older version as the current one: made by
/// [`Table::upgrade_all`], and begun when it is awaited.
///
/// Each row is written under the version that was read, in as few transactions as they fit in.
/// Other programs may write meanwhile: a row that one of them changed is read again, and is left
/// alone where it is gone or current by now. A row that cannot be read or converted is in the
/// report, and the others are rewritten. Copies and lists follow. It can be stopped at any time and
/// begun again: rows that are done are not found any more.
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
        let query = self.query(E::scan()).edit(crate::query::request::Request::only_older);
        Upgrade { bulk: self.bulk(), query }
    }
}

impl<E: TableEntity> Upgrade<E> {
    /// Only the rows of one partition.
    pub fn within(self, partition: impl Into<Partition<E>>) -> Self {
        let access = partition.into().access();
        let only = access
            .checked()
            .map(|keys| Filter::eq("PartitionKey", keys.partition.as_deref().unwrap_or_default()));
        Self { query: self.query.edit(|request| request.condition(only)), ..self }
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
            let change = |_: &mut E| Ok(());
            self.bulk.rewrite_all(self.query, change, |now| now.is_none_or(is_current)).await
        })
    }
}

/// Whether the row is one of the current version.
fn is_current<E: TableEntity>(stored: &Stored<E>) -> bool {
    let kind = E::SCHEMA.primary().and_then(|family| E::SCHEMA.kind_of(stored.row(), Some(family)));
    matches!(kind, Ok(RowKind::Primary(RowVersion::Known(schema))) if schema.version == E::SCHEMA.version)
}
