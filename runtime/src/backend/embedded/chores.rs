//! What the writer does when nobody waits for it, and what it is asked to do for the file as a
//! whole.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use redb::Database;

use super::{
    layout::{RowTable, TRASH, rows_name},
    store::{Commit, Store},
    view::Reading,
};
use crate::error::{ErrorKind, Result};

/// How long the writer is idle before it makes the file open at once after a crash.
const IDLE: Duration = Duration::from_millis(50);
/// How long after a failure the writer looks at the file again by itself.
const AGAIN: Duration = Duration::from_secs(1);
/// Rows of deleted tables that one transaction reclaims: a write waits no longer than for these.
const RECLAIMED: usize = 2_000;
/// How long readers may hold up work on the file as a whole.
const PATIENCE: Duration = Duration::from_secs(5);

impl Store {
    /// How long to wait for a job before the next chore; `None`: there is none.
    pub(super) fn leisure(&self) -> Option<Duration> {
        if let Some(until) = self.rest {
            return Some(until.saturating_duration_since(Instant::now()));
        }
        let tidy = (!self.tidy && self.unsynced.is_none()).then_some(IDLE);
        let sync = self.unsynced.zip(self.delay());
        let sync = sync.map(|(since, delay)| delay.saturating_sub(since.elapsed()));
        let reclaim = (!self.trash.is_empty()).then_some(Duration::ZERO);
        [tidy, sync, reclaim].into_iter().flatten().min()
    }

    /// The most pressing chore. A failure shows again in the next job.
    pub(super) fn chore(&mut self) {
        let late = |since: Instant| self.delay().is_some_and(|delay| since.elapsed() >= delay);
        let done = match self.trash.last().copied() {
            _ if self.database.is_none() => self.reopen(),
            Some(id) if !self.unsynced.is_some_and(late) => self.reclaim(id, RECLAIMED).map(drop),
            _ => self.sync(),
        };
        self.rest = done.is_err().then(|| Instant::now() + AGAIN);
    }

    /// Brings everything that was acknowledged onto the disk.
    pub(super) fn sync(&mut self) -> Result<()> {
        self.change(Commit::Tidy, |_| Ok(()), |_| true)
    }

    /// As [`sync`](Self::sync), and says what was lost before.
    pub(super) fn flush(&mut self) -> Result<()> {
        match self.lost.take() {
            Some(lost) => Err(lost),
            None if self.unsynced.is_none() => Ok(()),
            None => self.sync(),
        }
    }

    /// Removes rows of a deleted table, and the table when there are none left; true at the end.
    fn reclaim(&mut self, id: u64, rows: usize) -> Result<bool> {
        let name = rows_name(id);
        let gone = self.change(
            Commit::Durable,
            |transaction| {
                let mut table = transaction.open_table(RowTable::new(&name))?;
                let mut removed = 0;
                for item in table.extract_if(|_, _| true)?.take(rows) {
                    item?;
                    removed += 1;
                }
                drop(table);
                let gone = removed < rows;
                if gone {
                    transaction.delete_table(RowTable::new(&name))?;
                    transaction.open_table(TRASH)?.remove(id)?;
                }
                Ok(gone)
            },
            |_| true,
        )?;
        if gone {
            self.trash.retain(|trash| *trash != id);
        }
        self.renew()?;
        Ok(gone)
    }

    /// Gives unused space of the file back to the disk.
    pub(super) fn compact(&mut self) -> Result<()> {
        while let Some(id) = self.trash.last().copied() {
            self.reclaim(id, 10 * RECLAIMED)?;
        }
        self.sync()?;
        let place = self.place.clone();
        self.alone(|database| database.compact().map(drop).map_err(|error| place.engine(error)))?;
        // The next commit would make the file grow by as much again; closing it does not.
        self.reopen()
    }

    /// Looks at every page of the file.
    pub(super) fn verify(&mut self) -> Result<()> {
        let place = self.place.clone();
        self.alone(|database| super::open::verify(&place, database))
    }

    /// Does what needs the whole file, while readers wait.
    fn alone(&mut self, work: impl FnOnce(&mut Database) -> Result<()>) -> Result<()> {
        let view = match self.readings.send_replace(Reading::Paused) {
            Reading::Open(view) => Arc::downgrade(&view),
            Reading::Paused | Reading::Stopped(_) => std::sync::Weak::new(),
        };
        let started = Instant::now();
        while view.strong_count() > 0 && started.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
        let result = match &mut self.database {
            _ if view.strong_count() > 0 => Err(self.place.error(
                ErrorKind::Backend,
                "a scan has been reading a page for seconds, let it go on or drop it, and try again",
            )),
            Some(database) => self.place.guarded(|| work(database)),
            None => Err(self.place.error(ErrorKind::Backend, "it could not be opened again")),
        };
        match result {
            Err(error) if view.strong_count() == 0 => self.reopen().and(Err(error)),
            result => result.and(self.renew()),
        }
    }
}
