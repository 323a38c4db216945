//! The public interface of a check: its options, its report, and repair.

use std::fmt;

use super::{
    confirm_local::confirm_partition,
    confirm_remote::RemoteConfirmer,
    fact::CopyFactReader,
    finding::{Finding, FindingKind},
    repair_local::repair_local,
    repair_remote::repair_remote,
    scan::{CheckProgress, CheckScope, MAX_UNMATCHED, UnmatchedScan},
};
use crate::{
    entity::TableEntity,
    error::Result,
    table::{
        Table,
        job::{Listener, run_when_awaited},
    },
};

/// The findings of a check.
#[derive(Debug)]
#[non_exhaustive]
pub struct CheckReport<E> {
    /// The copies and list entries that differ from what their primaries derive.
    pub findings: Vec<Finding>,
    /// The counts of the rows that were read.
    pub progress: CheckProgress,
    table: Table<E>,
}

impl<E: TableEntity> CheckReport<E> {
    /// Returns whether every copy and list matches.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// Repairs the findings after reading their ETags again. Leaves rows that another writer changed in the
    /// meantime to the next check. Returns how many findings were repaired or recorded.
    ///
    /// Does not write remote copies. A dirty row records that they may be wrong, and a worker writes them.
    ///
    /// # Errors
    ///
    /// Fails with the first error of the backend.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// assert_eq!(staff().await?.check().repair().await?, 0, "nothing was wrong");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn repair(&self) -> Result<u64> {
        repair_all(&self.table, &self.findings).await
    }
}

/// Writes the counts on one line. The alternate form `{:#}` also writes a line for each finding.
impl<E> fmt::Display for CheckReport<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CheckProgress { rows, partitions, pending, .. } = self.progress;
        write!(f, "read {rows} rows in {partitions} partitions: ")?;
        let kinds =
            [FindingKind::Missing, FindingKind::Stale, FindingKind::Orphan, FindingKind::Contested];
        let mut separator = "";
        for kind in kinds {
            let count = self.findings.iter().filter(|finding| finding.kind == kind).count();
            if count > 0 {
                write!(f, "{separator}{count} {kind}")?;
                separator = ", ";
            }
        }
        if self.findings.is_empty() {
            f.write_str("all copies and lists match")?;
        }
        match pending {
            0 => Ok(()),
            pending => write!(f, "; {pending} pending"),
        }?;
        let listed = if f.alternate() { self.findings.as_slice() } else { &[] };
        listed.iter().try_for_each(|finding| write!(f, "\n{finding}"))
    }
}

/// Repairs findings, grouped by the tables of their primaries. Returns how many were repaired or recorded.
async fn repair_all<E: TableEntity>(table: &Table<E>, findings: &[Finding]) -> Result<u64> {
    let mut repaired = 0;
    for findings in findings.chunk_by(|a, b| a.primary_table == b.primary_table) {
        let Some(first) = findings.first() else { continue };
        let table = table.sibling_table(&first.primary_table);
        match repair_table(&table, findings).await {
            // The table was dropped in the meantime, together with its findings.
            Err(error) if table.is_dated_table_gone(&error) => {}
            count => repaired += count?,
        }
    }
    Ok(repaired)
}

/// Repairs findings whose primaries are in one table.
async fn repair_table<E: TableEntity>(table: &Table<E>, findings: &[Finding]) -> Result<u64> {
    // Remote findings first, to let workers begin while local findings are repaired.
    let mut repaired = repair_remote(table, findings).await?;
    for finding in findings.iter().filter(|finding| !finding.is_remote()) {
        repaired += u64::from(repair_local(table, finding).await?);
    }
    Ok(repaired)
}

/// A check that runs when it is awaited. [`repair`](Self::repair) repairs while it checks.
#[must_use = "does nothing unless awaited"]
pub struct Check<E> {
    table: Table<E>,
    on_progress: Listener<CheckProgress>,
    max_unmatched: usize,
    waits: bool,
}

impl<E> fmt::Debug for Check<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check").field("table", &self.table).finish_non_exhaustive()
    }
}

impl<E: TableEntity> Check<E> {
    /// Calls `report` after every page.
    pub fn on_progress(mut self, report: impl Fn(CheckProgress) + Send + Sync + 'static) -> Self {
        self.on_progress = Listener::new(move |progress| report(*progress));
        self
    }

    /// Sets how many unmatched rows a check keeps in memory. These are stored copies and list entries whose
    /// primary has not been read, and derived ones that have not been found. The limit applies to each
    /// partition, and once to all remote rows. Beyond it, rows are read more than once. For tests.
    #[doc(hidden)]
    pub fn max_unmatched_rows(mut self, rows: usize) -> Self {
        self.max_unmatched = rows;
        self
    }

    /// Skips the second reading of remote suspects and the wait before it, which is 5 minutes by default. Suspects are
    /// counted in [`suspects`](CheckProgress::suspects), but not reported or repaired.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let report = staff().await?.check().without_waiting().await?;
    /// assert!(report.is_clean());
    /// # Ok(())
    /// # }
    /// ```
    pub fn without_waiting(mut self) -> Self {
        self.waits = false;
        self
    }

    /// Checks, and calls `each` with every finding as soon as it is confirmed. Memory stays bounded, however
    /// many findings there are.
    ///
    /// # Errors
    ///
    /// Fails with the first error of the backend, and with `is_decode` for a primary that does not fit its type.
    pub async fn for_each(self, mut each: impl FnMut(Finding)) -> Result<CheckProgress> {
        let mut counts = CheckProgress::default();
        for table in self.table.every_table().await? {
            let mut steps = self.steps_of_table(&table, counts);
            while let Some(findings) = steps.next_step().await? {
                findings.into_iter().for_each(&mut each);
            }
            counts = steps.scan.progress.counts;
        }
        Ok(counts)
    }

    /// Checks and repairs at the same time. Returns how many findings were repaired, or recorded for workers.
    ///
    /// # Errors
    ///
    /// Fails with the first error of the backend, and with `is_decode` for a primary that does not fit its type.
    pub async fn repair(self) -> Result<u64> {
        let (mut counts, mut repaired) = (CheckProgress::default(), 0);
        for table in self.table.every_table().await? {
            let mut steps = self.steps_of_table(&table, counts);
            while let Some(findings) = steps.next_step().await? {
                repaired += repair_all(&table, &findings).await?;
            }
            counts = steps.scan.progress.counts;
        }
        Ok(repaired)
    }

    /// Returns the steps of the check of one table. They add to the counts of earlier tables.
    fn steps_of_table<'t>(&self, table: &'t Table<E>, counts: CheckProgress) -> CheckSteps<'t, E> {
        let reader = CopyFactReader::new(table);
        let mut scan = UnmatchedScan::new(reader, self.max_unmatched, self.on_progress.clone());
        scan.progress.counts = counts;
        CheckSteps { reader, scan, remote: None, waits: self.waits }
    }
}

/// A running check: first the local facts, partition by partition, then all remote facts.
struct CheckSteps<'t, E> {
    reader: CopyFactReader<'t, E>,
    scan: UnmatchedScan<'t, E>,
    /// Confirms the current window of remote facts. `None` between windows.
    remote: Option<RemoteConfirmer<'t, E>>,
    waits: bool,
}

impl<E: TableEntity> CheckSteps<'_, E> {
    /// Returns the findings of the next step. Returns `None` when everything is checked or a dated table was
    /// dropped in the meantime.
    async fn next_step(&mut self) -> Result<Option<Vec<Finding>>> {
        match self.next_findings().await {
            Err(error) if self.reader.table.is_dated_table_gone(&error) => Ok(None),
            findings => findings,
        }
    }

    async fn next_findings(&mut self) -> Result<Option<Vec<Finding>>> {
        loop {
            if let Some(remote) = &mut self.remote {
                if let Some(findings) = remote.next_findings(&mut self.scan.progress).await? {
                    return Ok(Some(findings));
                }
                self.remote = None;
            }
            let Some(unmatched) = self.scan.next_unmatched().await? else { return Ok(None) };
            if let CheckScope::Partition(partition_key) = &unmatched.scope {
                let findings = confirm_partition(self.reader, partition_key, &unmatched).await?;
                return Ok(Some(findings));
            }
            self.remote = Some(RemoteConfirmer::new(self.reader, unmatched, self.waits));
        }
    }
}

run_when_awaited!([E: TableEntity] Check<E> => CheckReport<E>);

impl<E: TableEntity> Check<E> {
    async fn run(self) -> Result<CheckReport<E>> {
        let table = self.table.clone();
        let mut findings = Vec::new();
        let progress = self.for_each(|finding| findings.push(finding)).await?;
        Ok(CheckReport { findings, progress, table })
    }
}

impl<E: TableEntity> Table<E> {
    /// Compares every copy and every list of the entity with the primaries that derive them.
    ///
    /// If everything matches, the entity's table and each table with copies are scanned once. A mismatch is read
    /// again before it is reported, so a concurrent write is never mistaken for an error. Remote mismatches are
    /// read again after [`OutboxOptions::WRITE_DEADLINE`](crate::OutboxOptions), 5 minutes by default. The check waits
    /// that long once, or once for each 10,000 of them. [`without_waiting`](Check::without_waiting) only counts
    /// them. Dated tables are checked one after another.
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
    /// assert_eq!(report.to_string(), "read 1 rows in 1 partitions: 1 missing");
    /// assert_eq!(report.repair().await?, 1);
    /// assert!(staff.check().await?.is_clean());
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check(&self) -> Check<E> {
        Check {
            table: self.clone(),
            on_progress: Listener::silent(),
            max_unmatched: MAX_UNMATCHED,
            waits: true,
        }
    }
}
