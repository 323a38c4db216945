//! Comparing copies and lists with the primaries that they follow from, and mending what does not
//! match, beside live writers.
//!
//! Rows that match are taken out of a set of hashes as they are met, so that one scan and memory
//! for the unmatched rows do; what stays is read again before it is reported.

pub(crate) mod elsewhere;
pub(crate) mod mark;
pub(crate) mod repair;
pub(crate) mod sweep;
pub(crate) mod verify;

use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
    sync::Arc,
};

use crate::{
    entity::TableEntity,
    error::Result,
    key::Family,
    plan::outbox::CopyAddress,
    row::{ETag, Row},
    table::Table,
};
use elsewhere::Elsewhere;
pub use sweep::CheckProgress;
use sweep::{Sweep, UNMATCHED};

/// What is wrong with a copy or an entry of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FindingKind {
    /// The primary derives it, and it is not there.
    Missing,
    /// It holds something else than the primary derives; for an entry, it is in the list more than
    /// once.
    Stale,
    /// No primary derives it.
    Orphan,
    /// Several primaries derive it, and it holds what another one does: one of them was written by
    /// a program that does not know the index. Repair leaves it; give one of them another value.
    Contested,
}

/// A copy or an entry of a list that does not match its primary.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What is wrong.
    pub kind: FindingKind,
    /// The index or list.
    pub index: &'static str,
    /// The table of the copy.
    pub table: String,
    /// The partition of the copy.
    pub partition_key: String,
    /// The RowKey of the copy, or of the list's head.
    pub row_key: String,
    /// The PartitionKey of the primary, where one is known.
    pub primary_partition_key: Option<String>,
    /// The RowKey of the primary, where one is known.
    pub primary: Option<String>,
    /// Whether it is an entry of a list.
    is_entry: bool,
    /// The version of the copy that was found.
    etag: Option<ETag>,
    /// Its place, where it is in another partition or table than its primary.
    elsewhere: Option<Box<CopyAddress>>,
}

impl Finding {
    fn in_partition(
        family: &'static Family,
        table: &str,
        (partition_key, row_key): (&str, &str),
        kind: FindingKind,
        primary: Option<&str>,
    ) -> Self {
        Self {
            kind,
            index: family.name,
            table: table.to_owned(),
            partition_key: partition_key.to_owned(),
            row_key: row_key.to_owned(),
            primary_partition_key: primary.map(|_| partition_key.to_owned()),
            primary: primary.map(str::to_owned),
            is_entry: false,
            etag: None,
            elsewhere: None,
        }
    }

    /// Whether it is in another partition or table than its primary: repair leaves the rest to
    /// workers.
    pub fn is_elsewhere(&self) -> bool {
        self.elsewhere.is_some()
    }

    /// A copy that holds something else than that primary derives.
    pub(crate) fn stale(family: &'static Family, table: &str, copy: &Row, primary: &str) -> Self {
        let keys = (copy.partition_key(), copy.row_key());
        let stale = Self::in_partition(family, table, keys, FindingKind::Stale, Some(primary));
        Self { etag: copy.etag(), ..stale }
    }
}

/// What a check found.
#[derive(Debug)]
#[non_exhaustive]
pub struct CheckReport<E> {
    /// What does not match.
    pub findings: Vec<Finding>,
    /// What was looked at.
    pub progress: CheckProgress,
    table: Table<E>,
}

impl<E: TableEntity> CheckReport<E> {
    /// Whether everything matches.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// Mends what was found, each under the versions that are read again for it; what another writer
    /// changed meanwhile is left to the next check. Gives back how many were mended.
    ///
    /// Of copies elsewhere it is recorded that they may be wrong, and a worker mends them: nothing
    /// is written there by a repair.
    ///
    /// # Errors
    ///
    /// The backend's.
    pub async fn repair(&self) -> Result<u64> {
        mend(&self.table, &self.findings).await
    }
}

/// Mends findings; how many.
async fn mend<E: TableEntity>(table: &Table<E>, findings: &[Finding]) -> Result<u64> {
    let mut mended = elsewhere::mend(table, findings).await?;
    for finding in findings.iter().filter(|finding| !finding.is_elsewhere()) {
        mended += u64::from(repair::repair(table, finding).await?);
    }
    Ok(mended)
}

type OnProgress = Arc<dyn Fn(CheckProgress) + Send + Sync>;

/// A check on its way: await it for a report, or `repair` to mend as it goes.
#[must_use = "a check does nothing until it is awaited"]
pub struct Check<E> {
    table: Table<E>,
    on_progress: Option<OnProgress>,
    unmatched: usize,
    waits: bool,
}

impl<E> fmt::Debug for Check<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check").field("table", &self.table).finish_non_exhaustive()
    }
}

impl<E: TableEntity> Check<E> {
    /// Called after every page.
    pub fn on_progress(mut self, report: impl Fn(CheckProgress) + Send + Sync + 'static) -> Self {
        self.on_progress = Some(Arc::new(report));
        self
    }

    /// Unmatched rows of one partition that are kept in memory; past it, a partition is read more
    /// than once. For tests.
    #[doc(hidden)]
    pub fn unmatched_rows(mut self, rows: usize) -> Self {
        self.unmatched = rows;
        self
    }

    /// Does not look again at copies in other partitions and tables, which takes the flight: they
    /// are counted as [`suspects`](CheckProgress::suspects), and nothing of them is reported or
    /// mended.
    pub fn without_waiting(mut self) -> Self {
        self.waits = false;
        self
    }

    /// Gives every finding to `each` as soon as it is certain; memory stays bounded however many
    /// there are.
    ///
    /// # Errors
    ///
    /// The backend's; `is_decode` for a primary that does not fit its type.
    pub async fn for_each(self, mut each: impl FnMut(Finding)) -> Result<CheckProgress> {
        let mut run = self.run();
        while let Some(findings) = run.next().await? {
            findings.into_iter().for_each(&mut each);
        }
        Ok(run.progress())
    }

    /// Checks and mends as it goes. Gives back how many were mended, or recorded for workers.
    ///
    /// # Errors
    ///
    /// As [`for_each`](Self::for_each).
    pub async fn repair(self) -> Result<u64> {
        let (mut run, mut mended) = (self.run(), 0);
        while let Some(findings) = run.next().await? {
            mended += mend(&self.table, &findings).await?;
        }
        Ok(mended)
    }

    fn run(&self) -> Run<'_, E> {
        let on_progress = self.on_progress.clone();
        Run {
            table: &self.table,
            sweep: Sweep::new(&self.table, on_progress, self.unmatched, self.waits),
            elsewhere: None,
        }
    }
}

/// A check on its way: partition by partition, then all copies elsewhere.
struct Run<'t, E> {
    table: &'t Table<E>,
    sweep: Sweep<'t, E>,
    elsewhere: Option<Elsewhere<'t, E>>,
}

impl<E: TableEntity> Run<'_, E> {
    /// What is found next; `None`: all has been looked at.
    async fn next(&mut self) -> Result<Option<Vec<Finding>>> {
        if self.elsewhere.is_none() {
            if let Some(suspects) = self.sweep.next_partition().await? {
                return verify::findings(self.table, suspects).await.map(Some);
            }
            self.elsewhere = self.sweep.elsewhere();
        }
        match &mut self.elsewhere {
            Some(elsewhere) => elsewhere.next_findings().await,
            None => Ok(None),
        }
    }

    fn progress(&self) -> CheckProgress {
        self.elsewhere.as_ref().map_or(self.sweep.progress(), |elsewhere| elsewhere.progress)
    }
}

impl<E: TableEntity> IntoFuture for Check<E> {
    type Output = Result<CheckReport<E>>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let table = self.table.clone();
            let mut findings = Vec::new();
            let progress = self.for_each(|finding| findings.push(finding)).await?;
            Ok(CheckReport { findings, progress, table })
        })
    }
}

impl<E: TableEntity> Table<E> {
    /// Compares every copy and every list of this entity with the primaries that they follow from.
    ///
    /// One scan of the table where everything matches, and of each other table with copies; what does
    /// not is read again before it is reported, so that a writer at work is never taken for a mistake.
    /// Copies in other partitions and tables that do not match are read again after
    /// [`OutboxOptions::FLIGHT`](crate::OutboxOptions), 5 minutes unless told, for which the
    /// check waits once, or once for each 10,000 of them;
    /// [`without_waiting`](Check::without_waiting) leaves that out.
    ///
    /// ```
    /// use entable::{maintain::FindingKind, prelude::*};
    ///
    /// #[derive(TableEntity)]
    /// #[table(
    ///     name = "Staff",
    ///     partition_key = "{department}",
    ///     row_key = "empid_{id:06}",
    ///     index(ByName, row_key = "name_{name}_{id:06}")
    /// )]
    /// pub struct Employee { pub department: String, pub id: u32, pub name: String }
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let client = Client::memory();
    /// let staff = client.table::<Employee>();
    /// staff.create().await?;
    /// staff.insert(&Employee { department: "Sales".into(), id: 223, name: "Jones".into() }).await?;
    /// // Another program removes a copy.
    /// client.dynamic("Staff").delete("Sales", "name_Jones_000223", entable::Condition::Any).await?;
    ///
    /// let report = staff.check().await?;
    /// assert_eq!(report.findings[0].kind, FindingKind::Missing);
    /// assert_eq!(report.repair().await?, 1);
    /// assert!(staff.check().await?.is_clean());
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check(&self) -> Check<E> {
        Check { table: self.clone(), on_progress: None, unmatched: UNMATCHED, waits: true }
    }
}
