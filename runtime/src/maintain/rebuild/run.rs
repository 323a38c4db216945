//! The public interface of a rebuild: its options, and the scan of the primaries.

use std::fmt;

use super::{
    local::{IndexedPrimary, RebuildWriter, group_primaries},
    remote::record_primaries,
    report::{RebuildProgress, RebuildReport},
};
use crate::{
    entity::{PathBuilder, RowVersion, Stored, TableEntity},
    error::Result,
    key::{RowFamily, stable_hash},
    limits::saturating_u64,
    page::{Cursor, PageLoop},
    query::build::Query,
    row::Row,
    table::{
        Table,
        bulk::group_writer::write_groups_in_order,
        job::{Listener, run_when_awaited},
    },
};

/// A rebuild of one index or list, from [`Table::rebuild`]. It runs when it is awaited.
///
/// Writes copies and list entries that are missing. Copies and entries that no primary derives any more stay, and so do
/// stale copies in the primary's partition. A [check](Table::check) with `repair` corrects these.
#[must_use = "does nothing unless awaited"]
pub struct Rebuild<E> {
    table: Table<E>,
    family: &'static RowFamily,
    from: Option<Cursor>,
    page_size: Option<u32>,
    on_progress: Listener<RebuildProgress>,
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
    /// Continues an earlier rebuild of the same index from a cursor of its progress.
    pub fn from(mut self, cursor: Cursor) -> Self {
        self.from = Some(cursor);
        self
    }

    /// Sets how many primaries are read per request, 1 to 1,000.
    pub fn page_size(mut self, primaries: u32) -> Self {
        self.page_size = Some(primaries);
        self
    }

    /// Calls `report` after every page, once everything in it is committed.
    pub fn on_progress(
        mut self,
        report: impl Fn(&RebuildProgress) + Send + Sync + 'static,
    ) -> Self {
        self.on_progress = Listener::new(report);
        self
    }

    async fn run(self) -> Result<RebuildReport> {
        let mut report = RebuildReport::default();
        // Primaries are not an index, so there is nothing to write.
        if self.family.is_primary() {
            return Ok(report);
        }
        let query = self.query_primaries().await?;
        let Some(run) = query.plan(None).await? else { return Ok(report) };
        let from = self.from.clone().map(|cursor| self.convert_cursor(cursor));
        let (mut pages, mut made_for) = (PageLoop::from_cursor(from), None);
        while let Some(cursor) = pages.take_position() {
            let table = self.table.sibling_table(&query.request.table_of_page(cursor.as_ref())?);
            if self.family.has_dated_tables() && made_for.as_ref() != Some(&table.name) {
                // A table created before the index was declared has no table for the index's copies.
                let copies = self.family.table_given_primary_table(&table.name);
                self.table.client.create_table_if_not_exists(&copies).await?;
                made_for = Some(table.name.clone());
            }
            let page = run.page(cursor).await?;
            report.primaries += saturating_u64(page.items.len());
            let older = page.items.iter().filter(|stored| self.lacks_index(stored.row()));
            report.older += saturating_u64(older.count());
            match self.write_page(&table, &page.items, &mut report).await {
                // The table and its rows were dropped after the page was read.
                Err(error) if table.is_dated_table_gone(&error) => {}
                written => written?,
            }
            // Advance the cursor only after its page is committed.
            pages.continue_at(page.next);
            self.on_progress.notify_callback(|| RebuildProgress {
                primaries: report.primaries,
                written: report.written,
                cursor: pages.cursor().cloned().map(|cursor| self.convert_cursor(cursor)),
            });
        }
        Ok(report)
    }

    /// Writes the copies or entries that a page of primaries derives for the index, or records them for workers.
    async fn write_page(
        &self,
        table: &Table<E>,
        page: &[Stored<E>],
        report: &mut RebuildReport,
    ) -> Result<()> {
        let family = self.family;
        if family.is_remote {
            let primaries: Vec<&Row> = page.iter().map(Stored::row).collect();
            report.written += record_primaries(table, family, &primaries).await?;
            return Ok(());
        }
        let tokens = table.key_token_maker().await?;
        let mut primaries = Vec::new();
        for stored in page {
            let derive = || IndexedPrimary::derive_index_row::<E>(family, stored.row(), &tokens);
            primaries.extend(table.run_with_blind_token_keys(&tokens, derive).await?);
        }
        let mut writer = RebuildWriter { table, family, report };
        // A wide primary needs an operation for each of its parts.
        let groups = group_primaries(primaries, E::SCHEMA.parts.len().max(1));
        let written =
            write_groups_in_order(&mut writer, &table.client.store().random, groups).await;
        written.map_err(|error| error.in_table(&table.name))
    }

    /// Returns whether a primary is of a version that does not declare the index.
    fn lacks_index(&self, primary: &Row) -> bool {
        let schema = E::SCHEMA;
        match schema.version_of_primary(primary) {
            Ok(Some(RowVersion::Known(writer))) => {
                writer.version != schema.version
                    && writer.families.iter().all(|family| family.name != self.family.name)
            }
            Ok(Some(RowVersion::Unknown(_))) => true,
            Ok(None) | Err(_) => false,
        }
    }

    async fn query_primaries(&self) -> Result<Query<E, Stored<E>>> {
        // Include expired entities, which may be renewed, and which workers find through an index.
        let mut query = self.table.query(E::scan());
        query.request_mut().with_expired = true;
        if let Some(tables) = self.table.all_tables_to_query().await? {
            query.request_mut().tables = Some(tables);
        }
        Ok(match self.page_size {
            Some(rows) => query.page_size(rows),
            None => query,
        })
    }

    /// Turns a cursor of the scan into a cursor of this rebuild, or the other way round.
    ///
    /// A cursor contains a fingerprint of its query, and a query refuses a cursor with another fingerprint. The rebuilds
    /// of all indexes scan with the same query, so a cursor of one rebuild would be accepted by another, which would
    /// then skip entities. This function therefore mixes the index's name into the fingerprint with an XOR, which a
    /// second call undoes.
    fn convert_cursor(&self, cursor: Cursor) -> Cursor {
        let index = stable_hash(self.family.name.as_bytes());
        Cursor { fingerprint: cursor.fingerprint ^ index, ..cursor }
    }
}

run_when_awaited!([E: TableEntity] Rebuild<E> => RebuildReport);

impl<E: TableEntity> Table<E> {
    /// Writes the missing copies of an index, or the missing entries of its lists, for existing entities. Copies and
    /// lists in other partitions are recorded in the outbox and written by workers. Such an index is complete when the
    /// outbox has no open work.
    ///
    /// A rebuild never deletes anything. Copies and list entries that no primary derives any more stay. In the
    /// primary's partition, a stale copy (one that differs from what its primary derives) also stays, and
    /// [`RebuildReport::findings`] contains it. In another partition, a worker replaces it. To correct whatever stays,
    /// run a [check](Self::check) with `repair`.
    ///
    /// First deploy the program that declares the index to every writer, whose writes then maintain the index. Then
    /// rebuild while they write. Until the rebuild is done, reads through the index miss entities. The rows of a
    /// local index are committed in transactions that also touch each primary under the ETag that was read, which
    /// changes the ETags of the primaries. To continue an interrupted rebuild, call [`from`](Rebuild::from) with the
    /// last cursor of its progress. Dated tables are rebuilt one after another.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let report = staff.rebuild(Employee::by_last_name()).on_progress(|p| println!("{p:?}")).await?;
    /// assert!(report.is_complete());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with the first error of the backend, with `is_decode` for a primary that does not fit its type, with
    /// `is_invalid_cursor` for the cursor of another rebuild, and with `is_contended` if a group of entities lost 16
    /// races against other writers.
    pub fn rebuild(&self, path: impl PathBuilder<Entity = E>) -> Rebuild<E> {
        Rebuild {
            table: self.clone(),
            family: path.family(),
            from: None,
            page_size: None,
            on_progress: Listener::silent(),
        }
    }
}
