//! The public interface of re-encryptions: options, and the scan of the rows, table by table.

use std::fmt;
#[cfg(feature = "legacy-encryption")]
use std::sync::Arc;

use super::{
    blobs::{encrypt_plain_blobs, names_plain_blob},
    filter::filter_of_encrypted_rows,
    report::{ReencryptFailure, ReencryptProgress, ReencryptReport},
    writer::{ReencryptMode, ReencryptWriter, split_into_batches},
};
#[cfg(feature = "legacy-encryption")]
use crate::seal::legacy::LegacyKeys;
use crate::{
    backend::ScanRequest,
    entity::{Partition, TableEntity},
    error::{Error, ErrorKind, Result},
    filter::Filter,
    limits::{PAGE_ROWS, saturating_u64},
    page::{Continuation, Cursor, PageLoop, text_fingerprint},
    seal::KeyId,
    table::{
        Table,
        bulk::group_writer::write_groups_in_order,
        job::{Listener, run_when_awaited},
    },
};

/// A re-encryption. [`Table::reencrypt`] returns it, and it runs when it is awaited.
///
/// Reads every row of the entity, including copies. Encrypts values that are not encrypted with the key in use,
/// and merges them under the ETag that was read. If another writer was first, it reads the row and encrypts its
/// values again. You can stop it at any time and start it again.
#[must_use = "does nothing unless awaited"]
pub struct Reencrypt<E> {
    table: Table<E>,
    mode: ReencryptMode,
    encrypted_with: Vec<KeyId>,
    partition: Option<String>,
    page_size: Option<u32>,
    start: Option<Cursor>,
    is_dry_run: bool,
    on_progress: Listener<ReencryptProgress>,
}

impl<E> fmt::Debug for Reencrypt<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reencrypt")
            .field("table", &self.table)
            .field("encrypted_with", &self.encrypted_with)
            .field("partition", &self.partition)
            .finish_non_exhaustive()
    }
}

impl<E: TableEntity> Table<E> {
    /// Encrypts all values of the entity again that are not encrypted with the keys in use.
    ///
    /// Call it after a new key has become the primary one in *every* process, and after `pad` of a field has
    /// changed. Also call it after a field was declared encrypted or chosen by `encrypt_if`; this needs
    /// [`PlaintextPolicy::Allow`](crate::store::PlaintextPolicy), which lets a client read unencrypted values.
    ///
    /// Scans the table, or one dated table after another. With [`encrypted_with`](Reencrypt::encrypted_with), the store only
    /// returns rows that are encrypted with given keys.
    ///
    /// Encrypted blobs are not changed, because rows hold their keys. If a field became encrypted, its plain blob is
    /// encrypted into a new blob, and the entity is replaced with its copies. The plain blob is deleted afterwards.
    ///
    /// ```
    /// # use entable::{backend::Memory, prelude::*, Keyring};
    /// #[derive(Debug, Clone, PartialEq, TableEntity)]
    /// #[table(name = "Patients", partition_key = "{clinic}", row_key = "{id:06}")]
    /// struct Patient { clinic: String, id: u32, #[table(encrypt)] diagnosis: String }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let keys = Keyring::from_bytes([7; 32]);
    /// let client = Client::builder().backend(Memory::new()).keys(keys).build()?;
    /// let patients: Table<Patient> = client.table();
    /// patients.create().await?;
    /// let patient = Patient { clinic: "North".into(), id: 1, diagnosis: "none".into() };
    /// patients.insert(&patient).await?;
    /// let report = patients.reencrypt().on_progress(|progress| println!("{progress:?}")).await?;
    /// assert!(report.is_complete() && report.rewritten == 0, "all rows have the key in use");
    /// # Ok(())
    /// # }
    /// ```
    pub fn reencrypt(&self) -> Reencrypt<E> {
        Reencrypt {
            table: self.clone(),
            mode: ReencryptMode::CurrentKeys,
            encrypted_with: Vec::new(),
            partition: None,
            page_size: None,
            start: None,
            is_dry_run: false,
            on_progress: Listener::silent(),
        }
    }

    /// Decrypts every row of the entity that an earlier storage client library encrypted ("client-side
    /// encryption", protocol 1.0). Replaces it with a row in this crate's format under `If-Match`.
    ///
    /// A row belongs to the entity if it contains the entity's type, or if it has no type and the keys of a
    /// primary. In that case it receives the type. Encrypted values stay encrypted, whether declared or not. Run
    /// [`rebuild`](Table::rebuild) afterwards for each index.
    ///
    /// The old libraries did not escape keys. A row whose RowKey contains a `~` that does not begin an
    /// [escape](fn@crate::key::escape), such as `a~b`, is moved in one transaction to the RowKey that its entity
    /// reads, `a~7Eb`. If that key is taken, the row is in the report.
    ///
    /// The report also contains rows in the old format that cannot be decrypted, that do not fit the entity, whose
    /// keys do not match its template, or that have another type. They are left unchanged. The report
    /// [is complete](ReencryptReport::is_complete) when no such row is left. [`dry_run`](Reencrypt::dry_run) counts
    /// the rows that remain and writes nothing.
    ///
    /// ```no_run
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let report = staff.migrate_legacy(entable::seal::legacy::LegacyKeys::new()).await?;
    /// assert!(report.is_complete());
    /// assert_eq!(report.rewritten, 0, "no row is in the old format");
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "legacy-encryption")]
    pub fn migrate_legacy(&self, keys: LegacyKeys) -> Reencrypt<E> {
        Reencrypt { mode: ReencryptMode::FromLegacy(Arc::new(keys)), ..self.reencrypt() }
    }
}

impl<E: TableEntity> Reencrypt<E> {
    /// Limits the re-encryption to rows with a declared property that is encrypted with `key`, which the store
    /// filters. Call it several times to add keys. The filter misses rows in which `key` only encrypts properties
    /// that `encrypt_if` chose. To find those, do not set this option.
    pub fn encrypted_with(mut self, key: KeyId) -> Self {
        self.encrypted_with.push(key);
        self
    }

    /// Limits the re-encryption to one partition.
    pub fn within(self, partition: impl Into<Partition<E>>) -> Self {
        let partition = partition.into().keys().partition.clone().unwrap_or_default();
        Self { partition: Some(partition), ..self }
    }

    /// Sets how many rows are read per page, 1 to 1,000. Progress is reported after each page.
    pub fn page_size(self, rows: u32) -> Self {
        Self { page_size: Some(rows), ..self }
    }

    /// Continues an earlier re-encryption from a cursor of its progress.
    pub fn resume(self, cursor: Cursor) -> Self {
        Self { start: Some(cursor), ..self }
    }

    /// Writes nothing. Reads, decrypts and converts every row that has to be written, and counts it in
    /// [`ReencryptReport::remaining`]. Use it as a rehearsal, and to count what is left.
    pub fn dry_run(self) -> Self {
        Self { is_dry_run: true, ..self }
    }

    /// Calls `report` after every page.
    pub fn on_progress(self, report: impl Fn(&ReencryptProgress) + Send + Sync + 'static) -> Self {
        Self { on_progress: Listener::new(report), ..self }
    }

    async fn run(self) -> Result<ReencryptReport> {
        let locate = |error: Error| error.in_table(&self.table.name);
        if let Some(size) = self.page_size.filter(|size| *size == 0 || *size > PAGE_ROWS) {
            let message = format!("a page has 1 to {PAGE_ROWS} rows, not {size}");
            return Err(locate(Error::new(ErrorKind::Invalid, message)));
        }
        let filter = self.filter_of_rows_to_write();
        // The fingerprint of a cursor includes its table.
        let fingerprint_of =
            |table: &str| text_fingerprint(&format!("reencrypt\u{0}{table}\u{0}{filter}"));
        let mut tables = self.tables_to_scan().await?;
        let mut cursor = self.start.clone();
        if let Some(start) = &cursor {
            let begins = |table: &ScannedTable<E>| fingerprint_of(&table.name) == start.fingerprint;
            let first = match (
                tables.iter().position(begins),
                self.first_table_after(&tables, start),
            ) {
                (Some(found), _) => found,
                // The cursor's table and its rows were dropped, so start with the next table.
                (None, Some(next)) => {
                    cursor = None;
                    next
                }
                (None, None) => {
                    let message = "the cursor belongs to another query or re-encryption; start again without a cursor";
                    return Err(locate(Error::new(ErrorKind::InvalidCursor, message)));
                }
            };
            // The tables before the cursor's table are finished.
            tables.drain(..first);
        }
        let mut report = ReencryptReport::default();
        for (position, table) in tables.iter().enumerate() {
            let mut pages = PageLoop::from_cursor(cursor.take());
            while let Some(from) = pages.take_position() {
                let next = self.write_page(table, &filter, from, &mut report).await?;
                pages.continue_at(next.map(|at| table.cursor_at(fingerprint_of(&table.name), at)));
                self.on_progress.notify_callback(|| ReencryptProgress {
                    rows: report.rows,
                    rewritten: report.rewritten,
                    // After the end of a table, the next one begins.
                    cursor: pages.cursor().cloned().or_else(|| {
                        let next = tables.get(position + 1)?;
                        Some(next.cursor_at(fingerprint_of(&next.name), start_of_table()))
                    }),
                });
            }
        }
        // Failed rows are still in the old form.
        report.remaining += saturating_u64(report.failed.len());
        Ok(report)
    }

    /// Returns the entity's own tables, each followed by the tables of its remote copies.
    async fn tables_to_scan(&self) -> Result<Vec<ScannedTable<E>>> {
        let names = self.table.client.store().names();
        let mut tables: Vec<ScannedTable<E>> = Vec::new();
        for own in self.table.every_table().await? {
            tables.push(ScannedTable { name: own.name.clone(), own: own.clone() });
            for family in E::SCHEMA.versions().flat_map(|schema| schema.families) {
                let name = family.table_given_primary_table(&own.name);
                if !tables.iter().any(|known| names.is_same_table(&known.name, &name)) {
                    tables.push(ScannedTable { name: name.into_owned(), own: own.clone() });
                }
            }
        }
        Ok(tables)
    }

    /// Returns the position of the first table with a later period than the cursor's table, or the number of tables
    /// if there is none. Returns `None` if the cursor is not in a dated table, or this handle is for a single table.
    fn first_table_after(&self, tables: &[ScannedTable<E>], cursor: &Cursor) -> Option<usize> {
        self.table.dated_tables_if_all_periods()?;
        let period_of_table =
            self.table.sibling_table(cursor.table.as_deref()?).period_of_table()?;
        let is_later =
            |table: &ScannedTable<E>| table.own.period_of_table() > Some(period_of_table);
        // Nothing is left after the last table, which is not an error.
        Some(tables.iter().position(is_later).unwrap_or(tables.len()))
    }

    fn filter_of_rows_to_write(&self) -> Filter {
        let partition = self.partition.as_deref().map(|key| Filter::eq("PartitionKey", key));
        let rows = self.mode.filter_of_rows_to_write::<E>();
        let is_by_key = matches!(self.mode, ReencryptMode::CurrentKeys);
        let encrypted_with = (is_by_key && !self.encrypted_with.is_empty())
            .then(|| filter_of_encrypted_rows(E::SCHEMA, &self.encrypted_with));
        Filter::all(partition.into_iter().chain(rows).chain(encrypted_with))
    }

    /// Reads one page of a table and encrypts its rows. Returns where the next page begins, or `None` at the end
    /// of the table.
    async fn write_page(
        &self,
        scanned: &ScannedTable<E>,
        filter: &Filter,
        cursor: Option<Cursor>,
        report: &mut ReencryptReport,
    ) -> Result<Option<Continuation>> {
        let from = cursor.as_ref().map(|cursor| &cursor.at).filter(|at| **at != start_of_table());
        let at_table = scanned.name.as_str();
        let scan = ScanRequest { table: at_table, filter, select: None, top: self.page_size, from };
        let store = self.table.client.store();
        let table = &scanned.own;
        let page = match store.scan(scan).await {
            // A table of copies is created with its first copy.
            Err(error) if error.is_not_found() && at_table != table.name => return Ok(None),
            Err(error) if table.is_dated_table_gone(&error) => return Ok(None),
            page => page?,
        };
        report.rows += saturating_u64(page.rows.len());
        // Rows of other tables are copies, which are written with their primaries.
        let is_own = store.names().is_same_table(at_table, &table.name)
            && matches!(self.mode, ReencryptMode::CurrentKeys);
        let (mut rows, mut plain) = (Vec::with_capacity(page.rows.len()), Vec::new());
        for row in page.rows {
            match row {
                // The writer reports a row that cannot be classified.
                Ok(row) if is_own && names_plain_blob(E::SCHEMA, &row).unwrap_or_default() => {
                    plain.push(row);
                }
                Ok(row) => rows.push(row),
                Err(error) => {
                    report.failed.push(ReencryptFailure::undecodable(error.in_table(at_table)))
                }
            }
        }
        let (mode, is_dry_run) = (&self.mode, self.is_dry_run);
        let mut writer = ReencryptWriter { table, mode, is_dry_run, at_table, report };
        let written =
            write_groups_in_order(&mut writer, &store.random, split_into_batches(rows)).await;
        match written {
            Err(error) if table.is_dated_table_gone(&error) => return Ok(None),
            written => written.map_err(|error| error.in_table(at_table))?,
        }
        // After the rows, because an entity with a plain blob is replaced individually.
        for row in &plain {
            encrypt_plain_blobs(table, row, is_dry_run, report).await?;
        }
        Ok(page.next)
    }
}

/// A table to scan: one of the entity's own tables, or one with copies.
struct ScannedTable<E> {
    name: String,
    own: Table<E>,
}

impl<E: TableEntity> ScannedTable<E> {
    /// Returns a cursor at a position in this table. If there are several tables, the cursor contains the table's
    /// name, because the table may be dropped before the cursor is used.
    fn cursor_at(&self, fingerprint: u64, at: Continuation) -> Cursor {
        let table = self.own.period_of_table().map(|_| self.own.name.clone());
        Cursor { fingerprint, returned: 0, mixed: false, at, table, as_of: None }
    }
}

/// Returns the continuation that represents the start of a table. The service never returns it.
fn start_of_table() -> Continuation {
    Continuation { partition_key: String::new(), row_key: None }
}

run_when_awaited!([E: TableEntity] Reencrypt<E> => ReencryptReport);
