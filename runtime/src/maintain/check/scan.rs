//! Scans tables for copies and list entries that are stored but not derived, or derived but not stored. If
//! everything matches, each table is scanned once.
//!
//! A [fact](super::fact) is one such copy or entry. Local facts are compared within a partition, remote facts
//! across all tables. The hash of a fact is removed when its counterpart is read. If more hashes remain than
//! fit into memory, the scan is repeated for each range of hashes.

use std::collections::VecDeque;

use super::fact::{CopyFactReader, Fact, Hashes, has_checkable_remote_families, tables_of};
use crate::{
    access::Keys,
    backend::ScanRequest,
    entity::TableEntity,
    error::Result,
    filter::Filter,
    limits::saturating_u64,
    maintain::rows::decrypt_rows,
    page::Continuation,
    row::Row,
    table::{Table, job::Listener},
};

/// The maximum number of unmatched hashes of a scope in memory. Each takes about 16 bytes. With more, the
/// scope is scanned in several windows.
pub(crate) const MAX_UNMATCHED: usize = 1_000_000;

/// The maximum number of windows of a scope. Only 16 bits of the hashes of equal keys are equal.
const MAX_WINDOWS: u64 = 1 << 16;

/// The counts of a check so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CheckProgress {
    /// Rows that were read.
    pub rows: u64,
    /// The primary entities among them.
    pub primaries: u64,
    /// Partitions that are finished.
    pub partitions: u64,
    /// Remote copies and list entries that did not match, but for which workers have open work in the outbox.
    pub pending: u64,
    /// Remote copies that did not match in the first reading. If they still do not match after one write
    /// deadline (5 minutes by default), they are findings.
    pub suspects: u64,
}

/// Counts what a check has read, and calls the user's callback.
pub(crate) struct ProgressMeter {
    pub(crate) counts: CheckProgress,
    pub(crate) listener: Listener<CheckProgress>,
}

impl ProgressMeter {
    fn add_page(&mut self, rows: usize) {
        self.counts.rows += saturating_u64(rows);
        self.notify_listener();
    }

    /// Calls the user's callback with the counts so far.
    pub(crate) fn notify_listener(&self) {
        self.listener.notify_callback(|| self.counts);
    }
}

/// The rows in which a check compares [facts](super::fact): the copies and list entries that are stored with those that
/// the primaries derive.
#[derive(Debug, Clone)]
pub(crate) enum CheckScope {
    /// The local facts of one partition of the entity's table.
    Partition(String),
    /// The remote facts of all tables.
    Tables(Vec<String>),
}

/// The hashes of a scope with the same remainder modulo `modulus`, a power of two. Facts with equal keys are
/// in the same window, because the low bits of their hashes are equal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HashWindow {
    modulus: u64,
    remainder: u64,
}

impl HashWindow {
    const WHOLE: Self = Self { modulus: 1, remainder: 0 };
}

/// The facts of one scope and window without a counterpart.
#[derive(Debug)]
pub(crate) struct UnmatchedFacts {
    pub(crate) scope: CheckScope,
    window: HashWindow,
    hashes: Hashes,
    limit: usize,
}

impl UnmatchedFacts {
    fn new(scope: CheckScope, window: HashWindow, limit: usize) -> Self {
        Self { scope, window, hashes: Hashes::default(), limit }
    }

    /// Returns whether the check compares the fact. A check of tables compares remote copies and list entries, a check
    /// of one partition compares local ones.
    pub(crate) fn is_fact_in_scope(&self, fact: &Fact<'_>) -> bool {
        fact.family.is_remote == matches!(self.scope, CheckScope::Tables(_))
    }

    /// Returns whether the counterpart of a fact was not read, which makes the fact a suspect.
    pub(crate) fn is_unmatched_fact(&self, fact: &Fact<'_>) -> bool {
        self.is_fact_in_scope(fact) && self.hashes.contains(&fact.hash)
    }

    /// Removes the counterpart of a fact, or stores the fact if its counterpart has not been read.
    fn match_fact(&mut self, fact: &Fact<'_>) {
        let hash = fact.hash;
        if !self.is_fact_in_scope(fact) || hash % self.window.modulus != self.window.remainder {
            return;
        }
        // Both facts of a pair have the same hash. The second removes what the first inserted.
        if !self.hashes.remove(&hash) {
            self.hashes.insert(hash);
        }
        // Only the first window of a scope sets how many windows there are.
        let is_first = self.window.remainder == 0;
        if self.hashes.len() > self.limit && is_first && self.window.modulus < MAX_WINDOWS {
            self.window.modulus *= 2;
            let modulus = self.window.modulus;
            // Twice as many windows halve the number of hashes in memory.
            self.hashes.retain(|hash| hash % modulus == 0);
        }
    }

    /// Returns all windows except the first, which further scans of this scope compare. There are several if
    /// the scope has more hashes than memory allows.
    fn scopes_of_other_windows(&self) -> impl Iterator<Item = (CheckScope, HashWindow)> {
        let HashWindow { modulus, .. } = self.window;
        (1..modulus).map(move |remainder| (self.scope.clone(), HashWindow { modulus, remainder }))
    }
}

/// One page of a table.
pub(crate) struct TablePage {
    pub(crate) table: String,
    /// The rows of the page, with the parts of wide entities joined.
    pub(crate) rows: Vec<Row>,
    /// The number of rows that were read, including each part of a wide entity.
    pub(crate) rows_read: usize,
}

/// Reads the rows of a partition, or of several tables, page by page.
pub(crate) struct TablePager {
    /// The tables that have not been completely read. The current table is last.
    tables: Vec<String>,
    filter: Filter,
    from: Option<Continuation>,
}

impl TablePager {
    /// Creates a pager for the rows of a scope.
    pub(crate) fn new(own_table: &str, scope: &CheckScope) -> Self {
        match scope {
            CheckScope::Partition(partition_key) => Self {
                tables: vec![own_table.to_owned()],
                filter: Keys::partition(partition_key).filter(),
                from: None,
            },
            CheckScope::Tables(tables) => Self {
                tables: tables.iter().rev().cloned().collect(),
                filter: Filter::Constant(true),
                from: None,
            },
        }
    }

    /// Reads the next page of the scope's tables, one table after another. Decrypts its rows and joins the parts
    /// of wide entities. Skips tables of copies that do not exist. Returns `None` after the last table.
    ///
    /// # Errors
    ///
    /// Fails if the entity's own table does not exist, if a row does not decode, or if a row other than a copy does
    /// not decrypt.
    pub(crate) async fn next_page<E: TableEntity>(
        &mut self,
        table: &Table<E>,
    ) -> Result<Option<TablePage>> {
        while let Some(name) = self.tables.last().cloned() {
            let from = self.from.take();
            let filter = &self.filter;
            let scan =
                ScanRequest { table: &name, filter, select: None, top: None, from: from.as_ref() };
            match table.client.store().scan(scan).await {
                Ok(page) => {
                    if page.next.is_none() {
                        self.tables.pop();
                    }
                    // After a finished table the continuation is `None`, which starts the next table.
                    self.from.clone_from(&page.next);
                    // A row that does not decode derives unknown copies.
                    let rows = page.into_rows().map_err(|error| error.in_table(&name))?;
                    let mut rows = decrypt_rows(table, &name, rows).await?;
                    let rows_read = rows.len();
                    if E::SCHEMA.is_wide() && name == *table.name {
                        let parts = rows.into_iter().map(Ok).collect();
                        let joined =
                            table.client.store().join_parts_of_page(&name, E::SCHEMA, parts);
                        rows = joined.await?.into_iter().collect::<Result<_>>()?;
                    }
                    return Ok(Some(TablePage { table: name, rows, rows_read }));
                }
                // A table of copies is created with its first copy.
                Err(error) if error.is_table_missing() && name != table.name => {
                    self.tables.pop();
                }
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// Reads every row of a scope once. Calls `each` for every fact, and `on_page` with the number of rows of
/// each page.
pub(crate) async fn scan_facts<E: TableEntity>(
    reader: CopyFactReader<'_, E>,
    scope: &CheckScope,
    mut on_page: impl FnMut(usize),
    mut each: impl FnMut(&Fact<'_>),
) -> Result<()> {
    let mut pager = TablePager::new(&reader.table.name, scope);
    let tokens = reader.table.key_token_maker().await?;
    while let Some(page) = pager.next_page(reader.table).await? {
        for row in &page.rows {
            let read = || reader.read_facts_of_row(&page.table, row, &tokens, &mut each);
            reader.table.run_with_blind_token_keys(&tokens, read).await?;
        }
        on_page(page.rows_read);
    }
    Ok(())
}

/// Scans the tables of an entity for facts without a counterpart, scope by scope.
pub(crate) struct UnmatchedScan<'t, E> {
    reader: CopyFactReader<'t, E>,
    /// The maximum number of hashes of a scope in memory.
    limit: usize,
    /// Reads the entity's table for the first time, page by page.
    own_rows: TablePager,
    /// Rows of the last page whose facts have not been read.
    buffered: VecDeque<Row>,
    /// The scopes and windows that remain to be compared.
    windows: Vec<(CheckScope, HashWindow)>,
    /// The remote facts read so far. `None` if the entity has no remote copies, or after they were compared.
    remote: Option<UnmatchedFacts>,
    pub(crate) progress: ProgressMeter,
}

impl<'t, E: TableEntity> UnmatchedScan<'t, E> {
    /// Creates a scan that keeps at most `limit` hashes of a scope in memory.
    pub(crate) fn new(
        reader: CopyFactReader<'t, E>,
        limit: usize,
        listener: Listener<CheckProgress>,
    ) -> Self {
        // One scan of the own table serves both comparisons: local facts by partition, remote facts in
        // `remote`.
        let own = CheckScope::Tables(vec![reader.table.name.to_string()]);
        let all = CheckScope::Tables(tables_of(reader.table));
        Self {
            own_rows: TablePager::new(&reader.table.name, &own),
            remote: has_checkable_remote_families(E::SCHEMA)
                .then(|| UnmatchedFacts::new(all, HashWindow::WHOLE, limit)),
            reader,
            limit,
            buffered: VecDeque::new(),
            windows: Vec::new(),
            progress: ProgressMeter { counts: CheckProgress::default(), listener },
        }
    }

    /// Returns the next facts without a counterpart: copies that no primary derives, and derived copies that do
    /// not exist. They belong to one scope and window. Returns `None` when everything is compared.
    pub(crate) async fn next_unmatched(&mut self) -> Result<Option<UnmatchedFacts>> {
        loop {
            let unmatched = if let Some((scope, window)) = self.windows.pop() {
                self.scan_window(scope, window).await?
            } else if let Some(unmatched) = self.scan_partition().await? {
                unmatched
            } else if let Some(remote) = self.remote.take() {
                self.scan_other_tables(remote).await?
            } else {
                return Ok(None);
            };
            if !unmatched.hashes.is_empty() {
                return Ok(Some(unmatched));
            }
        }
    }

    /// Reads the next partition of the entity's table and returns its unmatched local facts. Adds its remote
    /// facts to `remote`.
    async fn scan_partition(&mut self) -> Result<Option<UnmatchedFacts>> {
        let Some(first) = self.next_row().await? else { return Ok(None) };
        let tokens = self.reader.table.key_token_maker().await?;
        let scope = CheckScope::Partition(first.partition_key().to_owned());
        // Compare bytes to avoid decoding the key of each row into a string.
        let partition = first.key_bytes().map(|(partition, _)| partition.to_vec());
        let mut unmatched = UnmatchedFacts::new(scope, HashWindow::WHOLE, self.limit);
        let mut row = Some(first);
        while let Some(current) = row {
            if current.key_bytes().map(|(partition, _)| partition) != partition.as_deref() {
                // The first row of the next partition, kept for the next call.
                self.buffered.push_front(current);
                break;
            }
            let remote = &mut self.remote;
            let mut match_both = |fact: &Fact<'_>| {
                unmatched.match_fact(fact);
                if let Some(remote) = remote {
                    remote.match_fact(fact);
                }
            };
            let table = &self.reader.table.name;
            let read = || self.reader.read_facts_of_row(table, &current, &tokens, &mut match_both);
            let is_primary = self.reader.table.run_with_blind_token_keys(&tokens, read).await?;
            self.progress.counts.primaries += u64::from(is_primary);
            row = self.next_row().await?;
        }
        self.windows.extend(unmatched.scopes_of_other_windows());
        self.progress.counts.partitions += 1;
        Ok(Some(unmatched))
    }

    /// Reads the entity's other tables for the first window of remote facts.
    async fn scan_other_tables(&mut self, mut remote: UnmatchedFacts) -> Result<UnmatchedFacts> {
        let others = match &remote.scope {
            CheckScope::Tables(tables) => {
                CheckScope::Tables(tables.iter().skip(1).cloned().collect())
            }
            CheckScope::Partition(_) => CheckScope::Tables(Vec::new()),
        };
        let progress = &mut self.progress;
        scan_facts(
            self.reader,
            &others,
            |rows| progress.add_page(rows),
            |fact| remote.match_fact(fact),
        )
        .await?;
        self.windows.extend(remote.scopes_of_other_windows());
        Ok(remote)
    }

    /// Reads a scope again for another window.
    async fn scan_window(
        &mut self,
        scope: CheckScope,
        window: HashWindow,
    ) -> Result<UnmatchedFacts> {
        let mut unmatched = UnmatchedFacts::new(scope.clone(), window, self.limit);
        let progress = &mut self.progress;
        // The rows of a partition were counted at its first scan.
        let counts_rows = matches!(scope, CheckScope::Tables(_));
        let on_page = |rows| {
            if counts_rows {
                progress.add_page(rows);
            }
        };
        scan_facts(self.reader, &scope, on_page, |fact| unmatched.match_fact(fact)).await?;
        Ok(unmatched)
    }

    async fn next_row(&mut self) -> Result<Option<Row>> {
        while self.buffered.is_empty() {
            let page = self.own_rows.next_page(self.reader.table).await?;
            let Some(page) = page else { return Ok(None) };
            self.progress.add_page(page.rows_read);
            self.buffered.extend(page.rows);
        }
        Ok(self.buffered.pop_front())
    }
}
