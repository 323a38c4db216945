//! One scan of the table: which copies and entries have no counterpart.

use std::{
    collections::{HashSet, VecDeque},
    hash::{BuildHasher, RandomState},
};

use super::OnProgress;
use crate::{
    access::Keys,
    backend::Scan,
    edm::ValueRef,
    entity::{Recognition, TableEntity},
    error::Result,
    filter::Filter,
    key::{Family, FamilyKind},
    page::Continuation,
    plan::{LIST_MARKER, head_key, ids_in},
    row::Row,
    table::{Table, request::at},
};

/// Unmatched rows of a partition that are kept in memory at a time, some 16 bytes each.
const UNMATCHED: usize = 1_000_000;

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
}

/// One side of a match: a copy or an entry that a primary derives, or that is there.
#[derive(Debug, Clone)]
pub(super) struct Mark {
    pub(super) family: &'static Family,
    /// The RowKey of the copy, or of the list's head.
    pub(super) row_key: String,
    /// The primary that derives it; for an entry that is there, the id.
    pub(super) primary: Option<String>,
    /// Whether it is there, rather than derived.
    pub(super) found: bool,
    pub(super) hash: u64,
}

/// The copies and entries that a row is or derives.
pub(super) fn marks<E: TableEntity>(row: &Row, hasher: &RandomState) -> Result<Vec<Mark>> {
    let mut marks = Vec::new();
    for family in E::SCHEMA.families {
        match family.kind {
            FamilyKind::Primary if is_ours::<E>(row, family)? => {
                let rows = E::from_row(row)?.rows()?;
                let primary = || Some(row.row_key().to_owned());
                marks.extend(rows.copies.iter().map(|copy| Mark {
                    family: copy.family,
                    row_key: copy.row.row_key().to_owned(),
                    primary: primary(),
                    found: false,
                    hash: hasher.hash_one(copy.row.content()),
                }));
                marks.extend(rows.entries.into_iter().map(|entry| Mark {
                    family: entry.family,
                    hash: hasher.hash_one((&entry.row_key, &entry.id)),
                    row_key: entry.row_key,
                    primary: Some(entry.id),
                    found: false,
                }));
                return Ok(marks);
            }
            FamilyKind::Copy if is_ours::<E>(row, family)? => {
                marks.push(Mark {
                    family,
                    row_key: row.row_key().to_owned(),
                    primary: None,
                    found: true,
                    hash: hasher.hash_one(row.content()),
                });
                return Ok(marks);
            }
            FamilyKind::List if is_list(row, family)? => {
                let head = head_key(row.row_key());
                marks.extend(ids_in(row)?.into_iter().map(|id| Mark {
                    family,
                    row_key: head.to_owned(),
                    hash: hasher.hash_one((head, &id)),
                    primary: Some(id),
                    found: true,
                }));
                return Ok(marks);
            }
            _ => {}
        }
    }
    Ok(marks)
}

fn is_ours<E: TableEntity>(row: &Row, family: &Family) -> Result<bool> {
    Ok(E::SCHEMA.recognize(row, family)? == Recognition::Ours)
}

fn is_list(row: &Row, family: &Family) -> Result<bool> {
    Ok(row.get("EntityType")? == Some(ValueRef::String(LIST_MARKER))
        && family.row.matches(head_key(row.row_key())))
}

/// The hashes of a partition that have no counterpart.
#[derive(Debug)]
pub(super) struct Suspects {
    pub(super) partition_key: String,
    pub(super) hashes: HashSet<u64>,
    pub(super) hasher: RandomState,
}

/// Part of a partition's hashes: those with that remainder.
#[derive(Debug, Clone, Copy)]
struct Window {
    modulus: u64,
    remainder: u64,
}

/// A scan of the table, partition by partition.
pub(super) struct Sweep<'t, E> {
    table: &'t Table<E>,
    on_progress: Option<OnProgress>,
    hasher: RandomState,
    buffered: VecDeque<Row>,
    from: Option<Continuation>,
    at_end: bool,
    /// Windows of the last partition that are still to be scanned.
    windows: Vec<(String, Window)>,
    progress: CheckProgress,
}

impl<'t, E: TableEntity> Sweep<'t, E> {
    pub(super) fn new(table: &'t Table<E>, on_progress: Option<OnProgress>) -> Self {
        Self {
            table,
            on_progress,
            hasher: RandomState::new(),
            buffered: VecDeque::new(),
            from: None,
            at_end: false,
            windows: Vec::new(),
            progress: CheckProgress::default(),
        }
    }

    pub(super) fn progress(&self) -> CheckProgress {
        self.progress
    }

    /// The suspects of the next partition that has any.
    pub(super) async fn next_partition(&mut self) -> Result<Option<Suspects>> {
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
        let mut unmatched = Unmatched::new(first.partition_key(), self.hasher.clone());
        let mut row = Some(first);
        while let Some(current) = row {
            if current.partition_key() != unmatched.suspects.partition_key {
                self.buffered.push_front(current);
                break;
            }
            self.progress.primaries += u64::from(unmatched.meet::<E>(&current)?);
            row = self.next_row().await?;
        }
        let Unmatched { suspects, window } = unmatched;
        for remainder in 1..window.modulus {
            let window = Window { remainder, ..window };
            self.windows.push((suspects.partition_key.clone(), window));
        }
        self.progress.partitions += 1;
        Ok(Some(suspects))
    }

    /// One more scan of a large partition, for other hashes.
    async fn scan_window(&mut self, partition_key: String, window: Window) -> Result<Suspects> {
        let mut unmatched = Unmatched::new(&partition_key, self.hasher.clone());
        unmatched.window = window;
        let mut from = None;
        loop {
            let page = scan(self.table, &Keys::partition(&partition_key).filter(), from).await?;
            for row in &page.0 {
                unmatched.meet::<E>(row)?;
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
pub(super) async fn scan<E: TableEntity>(
    table: &Table<E>,
    filter: &Filter,
    from: Option<Continuation>,
) -> Result<(Vec<Row>, Option<Continuation>)> {
    let scan = Scan { table: &table.name, filter, select: None, top: None, from: from.as_ref() };
    let page = table.client.scan(scan).await?;
    Ok((page.rows, page.next))
}

/// The hashes of a partition that have met no counterpart yet.
struct Unmatched {
    suspects: Suspects,
    window: Window,
}

impl Unmatched {
    fn new(partition_key: &str, hasher: RandomState) -> Self {
        let suspects =
            Suspects { partition_key: partition_key.to_owned(), hashes: HashSet::new(), hasher };
        Self { suspects, window: Window { modulus: 1, remainder: 0 } }
    }

    /// Takes a row; `true`: it is a primary.
    fn meet<E: TableEntity>(&mut self, row: &Row) -> Result<bool> {
        let marks = marks::<E>(row, &self.suspects.hasher).map_err(|error| at(row, error))?;
        let is_primary = marks.first().is_some_and(|mark| !mark.found);
        for mark in marks {
            self.toggle(mark.hash);
        }
        Ok(is_primary)
    }

    fn toggle(&mut self, hash: u64) {
        if hash % self.window.modulus != self.window.remainder {
            return;
        }
        let hashes = &mut self.suspects.hashes;
        if !hashes.remove(&hash) {
            hashes.insert(hash);
        }
        if hashes.len() > UNMATCHED && self.window.remainder == 0 {
            self.window.modulus *= 2;
            let modulus = self.window.modulus;
            hashes.retain(|hash| hash % modulus == 0);
        }
    }
}
