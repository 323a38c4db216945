//! A new index or list over entities that are there already.

pub(crate) mod elsewhere;
pub(crate) mod group;

use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
    sync::Arc,
};

use crate::{
    entity::{PathBuilder, RowKind, RowVersion, Stored, TableEntity},
    error::Result,
    key::{Family, FamilyKind},
    maintain::check::Finding,
    page::Cursor,
    query::build::Query,
    row::Row,
    table::Table,
};
use group::{Work, derive};

/// How far a rebuild is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RebuildProgress {
    /// Primaries that were read.
    pub primaries: u64,
    /// Copies or entries that were written.
    pub written: u64,
    /// Where [`Rebuild::from`] goes on: all before it is committed. `None` at the end.
    pub cursor: Option<Cursor>,
}

/// What a rebuild did.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RebuildReport {
    /// Primaries that were read.
    pub primaries: u64,
    /// Copies or entries that were written.
    pub written: u64,
    /// Primaries of older versions, which do not have the index: they are in it once they are
    /// upgraded, as [`upgrade_all`](Table::upgrade_all) does.
    pub older: u64,
    /// Keys of the index that hold something else than a primary derives: left as they are. A check
    /// tells a copy that is stale from one that several entities want.
    pub findings: Vec<Finding>,
}

impl RebuildReport {
    /// Whether every entity is in the index.
    pub fn is_complete(&self) -> bool {
        self.findings.is_empty() && self.older == 0
    }
}

type OnProgress = Arc<dyn Fn(&RebuildProgress) + Send + Sync>;

/// A rebuild on its way: await it for a report.
#[must_use = "a rebuild does nothing until it is awaited"]
pub struct Rebuild<E> {
    table: Table<E>,
    family: &'static Family,
    from: Option<Cursor>,
    page_size: Option<u32>,
    on_progress: Option<OnProgress>,
}

impl<E> fmt::Debug for Rebuild<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rebuild")
            .field("table", &self.table)
            .field("index", &self.family.name)
            .finish_non_exhaustive()
    }
}

impl<E: TableEntity> Rebuild<E> {
    /// Goes on where another rebuild of the same index told that it was.
    pub fn from(mut self, cursor: Cursor) -> Self {
        self.from = Some(cursor);
        self
    }

    /// Primaries that are read per request, 1 to 1,000.
    pub fn page_size(mut self, primaries: u32) -> Self {
        self.page_size = Some(primaries);
        self
    }

    /// Called after every page, when all that it says is committed.
    pub fn on_progress(mut self, told: impl Fn(&RebuildProgress) + Send + Sync + 'static) -> Self {
        self.on_progress = Some(Arc::new(told));
        self
    }

    async fn run(self) -> Result<RebuildReport> {
        let mut report = RebuildReport::default();
        if self.family.kind == FamilyKind::Primary {
            return Ok(report);
        }
        let query = self.primaries();
        let mut cursor = self.from.clone().map(|cursor| self.turned(cursor));
        loop {
            let page = query.page(cursor).await?;
            report.primaries += u64::try_from(page.items.len()).unwrap_or(u64::MAX);
            let older = page.items.iter().filter(|stored| self.is_without(stored.row()));
            report.older += u64::try_from(older.count()).unwrap_or(u64::MAX);
            self.write(&page.items, &mut report).await?;
            cursor = page.next;
            if let Some(on_progress) = &self.on_progress {
                on_progress(&RebuildProgress {
                    primaries: report.primaries,
                    written: report.written,
                    cursor: cursor.clone().map(|cursor| self.turned(cursor)),
                });
            }
            if cursor.is_none() {
                return Ok(report);
            }
        }
    }

    /// Writes what the primaries of a page derive; of an index in another partition, what workers
    /// go by.
    async fn write(&self, page: &[Stored<E>], report: &mut RebuildReport) -> Result<()> {
        if self.family.is_remote {
            let primaries: Vec<&Row> = page.iter().map(Stored::row).collect();
            report.written += elsewhere::record(&self.table, self.family, &primaries).await?;
            return Ok(());
        }
        let tokens = self.table.tokens().await?;
        let rows = page.iter().map(|stored| derive::<E>(self.family, stored.row(), &tokens));
        let rows: Vec<_> = rows.filter_map(Result::transpose).collect::<Result<_>>()?;
        Work { table: &self.table, family: self.family, report }.write(rows).await
    }

    /// Whether a primary is of an older version that does not have the index.
    fn is_without(&self, primary: &Row) -> bool {
        let schema = E::SCHEMA;
        let kind = schema.primary().and_then(|family| schema.kind_of(primary, Some(family)));
        match kind {
            Ok(RowKind::Primary(RowVersion::Known(writer))) => {
                writer.version != schema.version
                    && writer.families.iter().all(|family| family.name != self.family.name)
            }
            Ok(RowKind::Primary(RowVersion::Unknown(_))) => true,
            _ => false,
        }
    }

    fn primaries(&self) -> Query<E, Stored<E>> {
        let query = self.table.query(E::scan());
        match self.page_size {
            Some(rows) => query.page_size(rows),
            None => query,
        }
    }

    /// A cursor of the scan as one of this rebuild, and back: the scans of all indexes are one
    /// query, and going on with another's cursor would leave entities out.
    fn turned(&self, cursor: Cursor) -> Cursor {
        let index = crate::key::stable_hash(self.family.name.as_bytes());
        Cursor { fingerprint: cursor.fingerprint ^ index, ..cursor }
    }
}

impl<E: TableEntity> IntoFuture for Rebuild<E> {
    type Output = Result<RebuildReport>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl<E: TableEntity> Table<E> {
    /// Writes the copies of an index, or the lists, for the entities that are there already. Those of
    /// an index in another partition are recorded, and workers write them: it is complete when none
    /// of that is open.
    ///
    /// First let every writer run a program that declares the index: what they write from then on
    /// is in it. Then rebuild, beside them; until it is done, reads through the index do not find
    /// everything. Each page of entities is committed in transactions that hold every primary to
    /// the version that was read, so their ETags change. A rebuild that was interrupted goes on
    /// [`from`](Rebuild::from) the last cursor that it told.
    ///
    /// ```ignore
    /// let report = staff.rebuild(Employee::by_name()).on_progress(|p| save(&p.cursor)).await?;
    /// ```
    ///
    /// # Errors
    ///
    /// The backend's, `is_decode` for a primary that does not fit its type, `is_invalid_cursor` for
    /// the cursor of another rebuild, `is_contended` where other writers kept winning.
    pub fn rebuild(&self, path: impl PathBuilder<Entity = E>) -> Rebuild<E> {
        Rebuild {
            table: self.clone(),
            family: path.family(),
            from: None,
            page_size: None,
            on_progress: None,
        }
    }
}
