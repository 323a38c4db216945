//! Upgrades entities: rewrites the rows of older versions as the current version.

use std::fmt;

use crate::{
    entity::{Partition, Path, Stored, TableEntity},
    error::Result,
    filter::Filter,
    page::Cursor,
    query::build::Query,
    table::{Bulk, BulkReport, Progress, Table, job::run_when_awaited},
};

/// Rewrites every entity of an older version as the current one. [`Table::upgrade_all`] returns it, and it runs
/// when it is awaited.
///
/// Each entity is written under the ETag that was read, together with its copies and lists. A transaction writes
/// many entities. Other programs may write at the same time. An entity that one of them changed is read again,
/// and skipped if it was deleted or upgraded. An entity that cannot be read or converted is in the report, and
/// the others are still rewritten. You can stop an upgrade at any time and start it again. It no longer finds
/// entities that were upgraded.
#[must_use = "does nothing unless awaited"]
pub struct Upgrade<E> {
    table: Table<E>,
    bulk: Bulk,
    query: Query<E, Stored<E>>,
}

impl<E> fmt::Debug for Upgrade<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upgrade").field("query", &self.query).finish_non_exhaustive()
    }
}

impl<E: TableEntity> Table<E> {
    /// Rewrites every entity of an older version as the current one.
    ///
    /// Scans the table for such entities, or one dated table after another. Run it once after you introduce a new
    /// version.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let report = staff().await?.upgrade_all().await?;
    /// assert_eq!(report.done, 0, "no row is of an older version");
    /// # Ok(())
    /// # }
    /// ```
    pub fn upgrade_all(&self) -> Upgrade<E> {
        let query = self
            .query(E::scan())
            .edit_request(crate::query::request::Request::restrict_to_older_versions);
        Upgrade { table: self.clone(), bulk: self.bulk(), query }
    }
}

impl<E: TableEntity> Upgrade<E> {
    /// Limits the upgrade to one partition.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let report = staff.upgrade_all().within(Employee::primary().department("Sales")).await?;
    /// assert!(report.is_complete());
    /// # Ok(())
    /// # }
    /// ```
    pub fn within(self, partition: impl Into<Partition<E>>) -> Self {
        let access = partition.into().access();
        let only = access
            .checked_keys()
            .map(|keys| Filter::eq("PartitionKey", keys.partition.as_deref().unwrap_or_default()));
        Self { query: self.query.edit_request(|request| request.add_condition(only)), ..self }
    }

    /// Sets how many rows are read per page, 1 to 1,000. A checkpoint follows each page except the last.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// assert!(staff.upgrade_all().page_size(100).await?.is_complete());
    /// # Ok(())
    /// # }
    /// ```
    pub fn page_size(self, rows: u32) -> Self {
        Self { query: self.query.page_size(rows), ..self }
    }

    /// Sets how many transactions may be in flight. The default is 8, or as many as the store
    /// welcomes if the client [adapts its rate](crate::ClientBuilder::adaptive_rate).
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// assert!(staff.upgrade_all().concurrency(2).await?.is_complete());
    /// # Ok(())
    /// # }
    /// ```
    pub fn concurrency(self, transactions: usize) -> Self {
        Self { bulk: self.bulk.concurrency(transactions), ..self }
    }

    /// Calls `report` after every transaction.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let report = staff.upgrade_all().on_progress(|progress| println!("{} done", progress.done)).await?;
    /// assert_eq!(report.done, 0, "no row is of an older version");
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_progress(self, report: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        Self { bulk: self.bulk.on_progress(report), ..self }
    }

    /// Calls `save` after every page except the last, once all entities up to that point are written, skipped or
    /// failed. `save` receives a cursor for [`resume`](Self::resume).
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let report = staff.upgrade_all().on_checkpoint(|cursor| println!("{cursor}")).await?;
    /// assert!(report.is_complete());
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_checkpoint(self, save: impl Fn(&Cursor) + Send + Sync + 'static) -> Self {
        Self { bulk: self.bulk.on_checkpoint(save), ..self }
    }

    /// Continues an earlier upgrade of the table from a checkpoint. Does not read the rows before it.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// use std::sync::{Arc, Mutex};
    ///
    /// let staff = staff().await?;
    /// let last = Arc::new(Mutex::new(None));
    /// let kept = last.clone();
    /// let save = move |cursor: &Cursor| *kept.lock().unwrap() = Some(cursor.clone());
    /// staff.upgrade_all().page_size(1).on_checkpoint(save).await?;
    /// if let Some(checkpoint) = last.lock().unwrap().take() {
    ///     assert!(staff.upgrade_all().resume(checkpoint).await?.is_complete());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn resume(self, checkpoint: Cursor) -> Self {
        Self { bulk: self.bulk.resume(checkpoint), ..self }
    }
}

run_when_awaited!([E: TableEntity] Upgrade<E> => BulkReport);

impl<E: TableEntity> Upgrade<E> {
    async fn run(self) -> Result<BulkReport> {
        if E::SCHEMA.older.is_none() {
            return Ok(BulkReport::default());
        }
        let query = match self.table.all_tables_to_query().await? {
            Some(tables) => self.query.edit_request(|request| request.tables = Some(tables)),
            None => self.query,
        };
        let change = |_: &mut E| Ok(());
        self.bulk.rewrite_entities(query, change, |now| now.is_none_or(is_current)).await
    }
}

/// Returns whether a row is of the current version.
fn is_current<E: TableEntity>(stored: &Stored<E>) -> bool {
    E::SCHEMA.is_current_primary(stored.row()).unwrap_or(false)
}
