//! Copies in other partitions and tables, and entries of lists there, compared with their primaries.
//!
//! Like those in the primary's partition they are taken out of a set of hashes as they meet. What is
//! left is read again: the copy, the dirty row, the primary; what looks wrong then is held, and
//! reported only if all is as it was when nobody can write any more what was read before.

pub(crate) mod listed;
pub(crate) mod mend;
pub(crate) mod reading;
pub(crate) mod side;

use std::time::Duration;

use crate::{
    backend::Scan,
    entity::TableEntity,
    error::Result,
    filter::Filter,
    maintain::check::{
        Finding, OnProgress,
        mark::Hashing,
        sweep::{CheckProgress, Unmatched, Window},
    },
    outbox::guard::Guard,
    page::Continuation,
    query::decode::at,
    row::Row,
    table::Table,
};
use futures_util::{StreamExt, stream};
pub(crate) use mend::mend;
use reading::{Held, Looked};
use side::{Suspect, has_copies_elsewhere, sides, tables};
use tokio::time::{Instant, sleep_until};

/// Suspects that are held at a time until they are looked at again, some hundred bytes each.
const SUSPECTS_PER_WAIT: usize = 10_000;

/// Suspects that are read at a time.
const READERS: usize = 16;

/// A check of the copies elsewhere.
pub(crate) struct Elsewhere<'t, E> {
    table: &'t Table<E>,
    /// Where the entity's own rows and its copies are; its own table first.
    tables: Vec<String>,
    limit: usize,
    /// Whether suspects are looked at again, which takes a flight.
    waits: bool,
    unmatched: Unmatched,
    windows: Vec<Window>,
    /// Whether the entity's own table has been seen by another scan already.
    is_first: bool,
    tour: Option<Tour>,
    pub(crate) progress: CheckProgress,
    on_progress: Option<OnProgress>,
}

impl<'t, E: TableEntity> Elsewhere<'t, E> {
    /// `None`: the entity has no such copies.
    pub(crate) fn new(
        table: &'t Table<E>,
        on_progress: Option<OnProgress>,
        limit: usize,
        waits: bool,
    ) -> Option<Self> {
        let unmatched = Unmatched::new("", Hashing::new(), limit);
        has_copies_elsewhere(E::SCHEMA).then(|| Self {
            table,
            tables: tables(table),
            limit,
            waits,
            unmatched,
            windows: Vec::new(),
            is_first: true,
            tour: None,
            progress: CheckProgress::default(),
            on_progress,
        })
    }

    /// Takes a row of the entity's own table.
    pub(crate) async fn meet(&mut self, row: &Row) -> Result<()> {
        let tokens = self.table.tokens().await?;
        self.toggle(&self.table.name, row, &tokens)
    }

    fn toggle(&mut self, at_table: &str, row: &Row, tokens: &crate::plan::Tokens) -> Result<()> {
        let (table, hashing) = (self.table, self.unmatched.suspects.hashing);
        let unmatched = &mut self.unmatched;
        sides(table, at_table, row, tokens, |side| {
            unmatched.toggle(side.hash(hashing, at_table)?);
            Ok(())
        })
        .map_err(|error| at(row, error).in_table(at_table))
    }

    /// What is certain to be wrong among the next suspects; `None`: there are no more.
    pub(crate) async fn next_findings(&mut self) -> Result<Option<Vec<Finding>>> {
        loop {
            if self.tour.is_none() && !self.next_window().await? {
                return Ok(None);
            }
            let mut held = Vec::new();
            while held.len() < SUSPECTS_PER_WAIT {
                let Some(suspects) = self.next_suspects().await? else {
                    self.tour = None;
                    break;
                };
                self.look(suspects, &mut held).await?;
            }
            self.progress.suspects += u64::try_from(held.len()).unwrap_or(u64::MAX);
            let findings = if self.waits { self.confirm(held).await? } else { Vec::new() };
            if !findings.is_empty() {
                return Ok(Some(findings));
            }
        }
    }

    /// Finds the hashes of the next window that have no counterpart. `false`: that was the last one.
    async fn next_window(&mut self) -> Result<bool> {
        loop {
            if std::mem::take(&mut self.is_first) {
                self.scan(1).await?;
                let window = self.unmatched.window;
                let others = 1..window.modulus;
                self.windows.extend(others.map(|remainder| Window { remainder, ..window }));
            } else {
                let Some(window) = self.windows.pop() else { return Ok(false) };
                let hashing = self.unmatched.suspects.hashing;
                self.unmatched = Unmatched::new("", hashing, self.limit);
                self.unmatched.window = window;
                self.scan(0).await?;
            }
            if !self.unmatched.suspects.hashes.is_empty() {
                self.tour = Some(Tour::new(&self.tables, 0));
                return Ok(true);
            }
        }
    }

    /// Takes every row of all tables but the first so many.
    async fn scan(&mut self, without: usize) -> Result<()> {
        let mut tour = Tour::new(&self.tables, without);
        let tokens = self.table.tokens().await?;
        while let Some((name, rows)) = tour.next_page(self.table).await? {
            self.progress.rows += u64::try_from(rows.len()).unwrap_or(u64::MAX);
            for row in &rows {
                self.toggle(&name, row, &tokens)?;
            }
            self.tell();
        }
        Ok(())
    }

    /// The suspects of the next page.
    async fn next_suspects(&mut self) -> Result<Option<Vec<Suspect>>> {
        let Some(tour) = &mut self.tour else { return Ok(None) };
        let Some((name, rows)) = tour.next_page(self.table).await? else { return Ok(None) };
        let tokens = self.table.tokens().await?;
        let known = &self.unmatched.suspects;
        let mut suspects = Vec::new();
        for row in &rows {
            sides(self.table, &name, row, &tokens, |side| {
                if known.hashes.contains(&side.hash(known.hashing, &name)?) {
                    suspects.push(side.suspect(&self.table.name));
                }
                Ok(())
            })
            .map_err(|error| at(row, error))?;
        }
        Ok(Some(suspects))
    }

    /// Reads suspects for the first time, and holds those that look wrong.
    async fn look(&mut self, suspects: Vec<Suspect>, held: &mut Vec<Held>) -> Result<()> {
        let table = self.table;
        let looks = stream::iter(suspects)
            .map(|suspect| async move { reading::look(table, suspect).await })
            .buffered(READERS);
        let mut looks = std::pin::pin!(looks);
        while let Some(looked) = looks.next().await {
            match looked? {
                Looked::Wrong(wrong) => held.push(*wrong),
                Looked::Pending => self.progress.pending += 1,
                Looked::Right => {}
            }
        }
        Ok(())
    }

    /// Reads what is held again, a flight later.
    async fn confirm(&mut self, held: Vec<Held>) -> Result<Vec<Finding>> {
        if held.is_empty() || !self.table.client.outbox().guards.holds(Guard::CheckTwice) {
            return Ok(held.into_iter().map(Held::finding).collect());
        }
        self.tell();
        // A tick more than the flight, so that nothing begins when it ends.
        let flight = self.table.client.outbox().options.flight + Duration::from_secs(1);
        sleep_until(Instant::now() + flight).await;
        let table = self.table;
        let looks = stream::iter(held)
            .map(|before| async move {
                let looked = reading::look(table, before.suspect.clone()).await?;
                Ok((before, looked))
            })
            .buffered(READERS);
        let mut looks = std::pin::pin!(looks);
        let mut findings = Vec::new();
        while let Some(looked) = looks.next().await {
            match looked? {
                (before, Looked::Wrong(after)) if after.is_as(&before) => {
                    findings.push(after.finding());
                }
                (_, Looked::Pending) => self.progress.pending += 1,
                _ => {}
            }
        }
        Ok(findings)
    }

    fn tell(&self) {
        if let Some(on_progress) = &self.on_progress {
            on_progress(self.progress);
        }
    }
}

/// A way through the rows of several tables, a page at a time.
struct Tour {
    /// The tables still to be seen, the next one last.
    tables: Vec<String>,
    from: Option<Continuation>,
}

impl Tour {
    fn new(tables: &[String], without: usize) -> Self {
        Self { tables: tables.iter().skip(without).rev().cloned().collect(), from: None }
    }

    /// The next page, and its table.
    async fn next_page<E: TableEntity>(
        &mut self,
        table: &Table<E>,
    ) -> Result<Option<(String, Vec<Row>)>> {
        loop {
            let Some(name) = self.tables.last().cloned() else { return Ok(None) };
            let filter = &Filter::Constant(true);
            let from = self.from.take();
            let scan = Scan { table: &name, filter, select: None, top: None, from: from.as_ref() };
            match table.client.store().scan(scan).await {
                Ok(page) => {
                    if page.next.is_none() {
                        self.tables.pop();
                    }
                    self.from = page.next;
                    return Ok(Some((
                        name.clone(),
                        table.open_to_check_in(&name, page.rows).await?,
                    )));
                }
                // No copies are there.
                Err(error) if error.is_table_missing() && name != table.name => {
                    self.tables.pop();
                }
                Err(error) => return Err(error),
            }
        }
    }
}
