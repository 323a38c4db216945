//! One scan of the table: which copies and entries have no counterpart.

use std::collections::VecDeque;

use super::{
    OnProgress,
    elsewhere::Elsewhere,
    mark::{Hashes, Hashing, Met, met},
};
use crate::{
    access::Keys, backend::Scan, entity::TableEntity, error::Result, filter::Filter,
    page::Continuation, plan::Tokens, query::decode::at, row::Row, table::Table,
};

/// Unmatched rows of a partition that are kept in memory at a time, some 16 bytes each.
pub(crate) const UNMATCHED: usize = 1_000_000;

/// Windows that the part of a hash which follows from the key alone can tell apart.
const WINDOWS: u64 = 1 << 16;

/// What a check has looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CheckProgress {
    /// Rows that were read.
    pub rows: u64,
    /// Primaries among them.
    pub primaries: u64,
    /// Partitions that are finished.
    pub partitions: u64,
    /// Copies elsewhere that did not match, and for whose primary there is open work: workers do it.
    pub pending: u64,
    /// Copies elsewhere that did not match at a first look; those that did not a flight later are
    /// findings.
    pub suspects: u64,
}

/// The hashes of a partition that have no counterpart.
#[derive(Debug)]
pub(crate) struct Suspects {
    pub(crate) partition_key: String,
    pub(crate) hashes: Hashes,
    pub(crate) hashing: Hashing,
}

/// Part of a partition's hashes: those with that remainder. A row and what is derived for its key
/// have the same, so that one window sees both.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(crate) modulus: u64,
    pub(crate) remainder: u64,
}

/// A scan of the table, partition by partition.
pub(crate) struct Sweep<'t, E> {
    table: &'t Table<E>,
    on_progress: Option<OnProgress>,
    hashing: Hashing,
    /// Unmatched hashes that are kept at a time.
    limit: usize,
    buffered: VecDeque<Row>,
    from: Option<Continuation>,
    at_end: bool,
    /// Windows of the last partition that are still to be scanned.
    windows: Vec<(String, Window)>,
    /// What compares the copies elsewhere, which sees the same rows.
    elsewhere: Option<Elsewhere<'t, E>>,
    progress: CheckProgress,
}

impl<'t, E: TableEntity> Sweep<'t, E> {
    pub(crate) fn new(
        table: &'t Table<E>,
        on_progress: Option<OnProgress>,
        limit: usize,
        waits: bool,
    ) -> Self {
        Self {
            elsewhere: Elsewhere::new(table, on_progress.clone(), limit, waits),
            table,
            on_progress,
            hashing: Hashing::new(),
            limit,
            buffered: VecDeque::new(),
            from: None,
            at_end: false,
            windows: Vec::new(),
            progress: CheckProgress::default(),
        }
    }

    pub(crate) fn progress(&self) -> CheckProgress {
        self.progress
    }

    /// What compares the copies elsewhere, when all partitions are done.
    pub(crate) fn elsewhere(&mut self) -> Option<Elsewhere<'t, E>> {
        let mut elsewhere = self.elsewhere.take()?;
        elsewhere.progress = self.progress;
        Some(elsewhere)
    }

    /// The suspects of the next partition that has any.
    pub(crate) async fn next_partition(&mut self) -> Result<Option<Suspects>> {
        loop {
            let suspects = match self.windows.pop() {
                Some((partition_key, window)) => self.scan_window(partition_key, window).await?,
                None => match self.scan_partition().await? {
                    Some(suspects) => suspects,
                    None => return Ok(None),
                },
            };
            if !suspects.hashes.is_empty() {
                return Ok(Some(suspects));
            }
        }
    }

    /// The next partition of the scan; half of its hashes, a quarter, .. where there are too many.
    async fn scan_partition(&mut self) -> Result<Option<Suspects>> {
        let Some(first) = self.next_row().await? else { return Ok(None) };
        let tokens = self.table.tokens().await?;
        let mut unmatched = Unmatched::new(first.partition_key(), self.hashing, self.limit);
        let mut row = Some(first);
        while let Some(current) = row {
            let partition = current.key_bytes().map(|(partition, _)| partition);
            if partition != Some(unmatched.suspects.partition_key.as_bytes()) {
                self.buffered.push_front(current);
                break;
            }
            if let Some(elsewhere) = &mut self.elsewhere {
                elsewhere.meet(&current).await?;
            }
            self.progress.primaries += u64::from(unmatched.meet::<E>(&current, &tokens)?);
            row = self.next_row().await?;
        }
        let Unmatched { suspects, window, .. } = unmatched;
        for remainder in 1..window.modulus {
            let window = Window { remainder, ..window };
            self.windows.push((suspects.partition_key.clone(), window));
        }
        self.progress.partitions += 1;
        Ok(Some(suspects))
    }

    /// One more scan of a large partition, for other hashes.
    async fn scan_window(&mut self, partition_key: String, window: Window) -> Result<Suspects> {
        let mut unmatched = Unmatched::new(&partition_key, self.hashing, self.limit);
        unmatched.window = window;
        let tokens = self.table.tokens().await?;
        let mut from = None;
        loop {
            let page = scan(self.table, &Keys::partition(&partition_key).filter(), from).await?;
            for row in &page.0 {
                unmatched.meet::<E>(row, &tokens)?;
            }
            match page.1 {
                Some(next) => from = Some(next),
                None => return Ok(unmatched.suspects),
            }
        }
    }

    async fn next_row(&mut self) -> Result<Option<Row>> {
        while self.buffered.is_empty() && !self.at_end {
            let (rows, next) = scan(self.table, &Filter::Constant(true), self.from.take()).await?;
            self.progress.rows += u64::try_from(rows.len()).unwrap_or(u64::MAX);
            self.buffered.extend(rows);
            self.at_end = next.is_none();
            self.from = next;
            if let Some(on_progress) = &self.on_progress {
                on_progress(self.progress);
            }
        }
        Ok(self.buffered.pop_front())
    }
}

/// One page of rows.
pub(crate) async fn scan<E: TableEntity>(
    table: &Table<E>,
    filter: &Filter,
    from: Option<Continuation>,
) -> Result<(Vec<Row>, Option<Continuation>)> {
    let scan = Scan { table: &table.name, filter, select: None, top: None, from: from.as_ref() };
    let page = table.client.store().scan(scan).await?;
    Ok((table.open_to_check(page.rows).await?, page.next))
}

/// The hashes of a partition that have met no counterpart yet.
pub(crate) struct Unmatched {
    pub(crate) suspects: Suspects,
    pub(crate) window: Window,
    limit: usize,
}

impl Unmatched {
    pub(crate) fn new(partition_key: &str, hashing: Hashing, limit: usize) -> Self {
        let suspects = Suspects {
            partition_key: partition_key.to_owned(),
            hashes: Hashes::default(),
            hashing,
        };
        Self { suspects, window: Window { modulus: 1, remainder: 0 }, limit }
    }

    /// Takes a row; `true`: it is a primary.
    fn meet<E: TableEntity>(&mut self, row: &Row, tokens: &Tokens) -> Result<bool> {
        let hashing = self.suspects.hashing;
        let met = met::<E>(row, tokens, hashing, |mark| self.toggle(mark.hash));
        Ok(met.map_err(|error| at(row, error))? == Met::Primary)
    }

    pub(crate) fn toggle(&mut self, hash: u64) {
        if hash % self.window.modulus != self.window.remainder {
            return;
        }
        let hashes = &mut self.suspects.hashes;
        if !hashes.remove(&hash) {
            hashes.insert(hash);
        }
        // Only the first window finds out how many there are to be.
        if hashes.len() > self.limit && self.window.remainder == 0 && self.window.modulus < WINDOWS
        {
            self.window.modulus *= 2;
            let modulus = self.window.modulus;
            hashes.retain(|hash| hash % modulus == 0);
        }
    }
}
