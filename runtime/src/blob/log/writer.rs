//! Defines [`LogWriter`], which collects records and stores them in the background.

use std::{
    fmt, mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::{runtime::Handle, time::Instant};

use super::{
    buffer::{HourLines, UnstoredLines},
    flush::{BufferLimits, Flush},
    record::LogRecord,
    source::LogBlobs,
    store_part::{NextBlobNumbers, store_hour_lines},
};
use crate::{
    error::{Error, ErrorKind, Result},
    timers,
};

/// Appends records to a [`BlobLog`](crate::BlobLog). Clones share their buffers.
///
/// A buffered writer fills one buffer while it stores the other. It never stores a record twice, even if an
/// answer of the store is lost. If a store fails, the writer keeps the records for the next flush.
///
/// ```
/// use std::sync::Arc;
/// use entable::{Flush, LogRecord, backend::Memory, object_store::memory::InMemory, prelude::*};
/// use time::macros::datetime;
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let blobs = Arc::new(InMemory::new());
/// let client = Client::builder().backend(Memory::new()).blobs(blobs).build()?;
/// let log = client.blob_log("queue");
/// let writer = log.writer(Flush::buffered());
/// let at = datetime!(2014-07-31 18:05 UTC);
/// writer.append(LogRecord::new(at, ["error", "disk full"])).await?;
/// writer.close().await?;
///
/// let hour = datetime!(2014-07-31 18:00 UTC)..datetime!(2014-07-31 19:00 UTC);
/// let errors = log.read(hour).filter(|r| r.field(0) == Some("error")).collect().await?;
/// assert_eq!(errors.len(), 1);
/// # Ok::<(), Error>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct LogWriter {
    shared: Arc<Shared>,
}

struct Shared {
    source: Arc<LogBlobs>,
    numbers: NextBlobNumbers,
    limits: Option<BufferLimits>,
    state: Mutex<State>,
    /// Whether a task is there that flushes by age.
    has_timer: AtomicBool,
    /// The records that left the buffer and are not stored yet. Only the holder of the lock stores them, which
    /// limits the writer to one flush at a time.
    unstored: tokio::sync::Mutex<UnstoredRecords>,
}

#[derive(Default)]
struct State {
    filling: UnstoredLines,
    /// When the oldest record of `filling` was appended.
    opened: Option<Instant>,
    /// The number of flushes that failed, with the error of the last one.
    failures: u64,
    failure: Option<Error>,
    /// Whether the last flush failed and left records in `unstored`.
    has_failed: bool,
    is_closed: bool,
}

/// Records that left the buffer and are not known to be stored.
#[derive(Default)]
struct UnstoredRecords {
    buffer: UnstoredLines,
    parts: Vec<HourLines>,
}

impl LogWriter {
    pub(super) fn new(source: Arc<LogBlobs>, flush: Flush) -> Self {
        Self {
            shared: Arc::new(Shared {
                source,
                numbers: NextBlobNumbers::default(),
                limits: flush.limits,
                state: Mutex::default(),
                has_timer: AtomicBool::new(false),
                unstored: tokio::sync::Mutex::default(),
            }),
        }
    }

    /// Appends a record. With [`Flush::each`] it returns when the record is stored; otherwise the
    /// record waits in memory for the next flush, and `append` waits only while two buffers are full.
    ///
    /// # Errors
    ///
    /// An error means that the record was not appended. The exception is `is_ambiguous`, after a lost answer
    /// with [`Flush::each`]: the record may be stored. Fails with `is_invalid` for a time outside of the years
    /// 1 to 9999, after [`close`](Self::close), and if the log's name cannot be part of a blob's name. Fails
    /// with `is_unsupported` if the client has no store of blobs, if the store cannot create a blob only where
    /// none exists, and outside of a runtime of tokio. Fails with `is_backend` or `is_denied` if the store
    /// fails, with [`Flush::each`] or while both buffers are full.
    pub async fn append(&self, record: LogRecord) -> Result<()> {
        // Report mistakes in the call now. Failures of the store come later, with a flush.
        record.ticks()?;
        self.shared.source.blob_store()?;
        Handle::try_current().map_err(|error| {
            let message = "a log writer needs a tokio runtime, found none";
            Error::new(ErrorKind::Unsupported, message).with_source(error)
        })?;
        let Some(limits) = self.shared.limits else { return self.store_alone(&record).await };
        while !self.shared.try_push(&record, limits)? {
            // Both buffers are full: wait until one of them is stored.
            self.shared.flush_records(false).await?;
        }
        Ok(())
    }

    /// Stores all records that were appended before.
    ///
    /// # Errors
    ///
    /// Fails with `is_backend`, `is_denied`, .. if the store failed. The records stay in the writer
    /// and are stored with the next flush.
    pub async fn flush(&self) -> Result<()> {
        if self.shared.limits.is_none() || !self.shared.has_records() {
            return Ok(());
        }
        self.shared.flush_records(true).await
    }

    /// Stores all records, and refuses those that are appended later, by clones too.
    ///
    /// # Errors
    ///
    /// Fails like [`flush`](Self::flush), and can be called again then.
    pub async fn close(&self) -> Result<()> {
        self.shared.lock_state().is_closed = true;
        self.flush().await
    }

    /// Stores one record as its own blob.
    async fn store_alone(&self, record: &LogRecord) -> Result<()> {
        let shared = self.shared.clone();
        shared.lock_state().check_open()?;
        let mut buffer = UnstoredLines::default();
        buffer.push(record)?;
        let parts = buffer.into_lines_by_hour(&shared.source.random.random_id());
        // Spawned: a caller that stops waiting must not interrupt a put.
        let storing = tokio::spawn(async move {
            for mut part in parts {
                let stored = store_hour_lines(&shared.source, &shared.numbers, &mut part).await;
                stored.map_err(|error| match part.sent_as {
                    Some(_) => {
                        let message =
                            "the blob store's answer was lost; the log record may have been stored";
                        Error::new(ErrorKind::Ambiguous, message).with_source(error)
                    }
                    None => error,
                })?;
            }
            Ok(())
        });
        storing.await.map_err(stopped_task_error)?
    }
}

impl Shared {
    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether records may wait to be stored.
    fn has_records(&self) -> bool {
        // Not waited for: a caller that is not polled would get the lock and hold it.
        let Ok(unstored) = self.unstored.try_lock() else { return true };
        !unstored.is_empty() || self.lock_state().filling.record_count() > 0
    }

    /// Adds a record to the buffer `filling`, and starts a flush if the buffer is full after that. Returns
    /// `false`, without adding the record, if both buffers are full.
    fn try_push(self: &Arc<Self>, record: &LogRecord, limits: BufferLimits) -> Result<bool> {
        let mut state = self.lock_state();
        state.check_open()?;
        if limits.is_reached(&state.filling) && !self.try_seal(&mut state) {
            return Ok(false);
        }
        state.filling.push(record)?;
        state.opened.get_or_insert_with(Instant::now);
        if limits.is_reached(&state.filling) {
            self.try_seal(&mut state);
        }
        self.start_timer(limits);
        Ok(true)
    }

    fn start_timer(self: &Arc<Self>, limits: BufferLimits) {
        if !self.has_timer.swap(true, Ordering::AcqRel) {
            // Spawned through a function: the task's type would contain itself otherwise.
            spawn_timer(TimerMark(Some(self.clone())), limits);
        }
    }

    /// Moves the full buffer into `unstored` and starts a flush of it. Returns `false`, and does nothing, while
    /// another flush runs or `unstored` still has the records of a failed flush.
    fn try_seal(self: &Arc<Self>, state: &mut State) -> bool {
        // Do not wait: a flush that holds this lock also takes the state's lock, which the caller holds. Waiting
        // could deadlock.
        let Ok(mut unstored) = self.unstored.try_lock() else { return false };
        if !unstored.is_empty() {
            return false;
        }
        unstored.buffer = state.take_buffer();
        drop(unstored);
        let (shared, seen) = (self.clone(), state.failures);
        tokio::spawn(async move { shared.flush_now(seen, false).await });
        true
    }

    /// Stores the records that left the buffer, and those in the buffer too if it is full or
    /// `everything` is set. Goes on if the caller stops waiting.
    async fn flush_records(self: &Arc<Self>, everything: bool) -> Result<()> {
        let (shared, seen) = (self.clone(), self.lock_state().failures);
        let flushing = tokio::spawn(async move { shared.flush_now(seen, everything).await });
        flushing.await.map_err(stopped_task_error)?
    }

    /// Flushes in the present task. `seen` is the number of failures when the caller asked: if a
    /// flush failed since, the caller gets its error instead of another attempt.
    async fn flush_now(self: Arc<Self>, seen: u64, everything: bool) -> Result<()> {
        let mut unstored = self.unstored.lock().await;
        {
            let state = self.lock_state();
            if let (true, Some(failure)) = (state.failures != seen, &state.failure) {
                return Err(failure.clone());
            }
        }
        self.store_unstored(&mut unstored).await?;
        {
            let mut state = self.lock_state();
            let is_full = self.limits.is_some_and(|limits| limits.is_reached(&state.filling));
            if is_full || everything {
                unstored.buffer = state.take_buffer();
            }
        }
        self.store_unstored(&mut unstored).await?;
        drop(unstored);
        // Appending may have filled the buffer again while the lock was held.
        let mut state = self.lock_state();
        if self.limits.is_some_and(|limits| limits.is_reached(&state.filling)) {
            self.try_seal(&mut state);
        }
        Ok(())
    }

    /// Stores what left the buffer. What it cannot store stays.
    async fn store_unstored(self: &Arc<Self>, unstored: &mut UnstoredRecords) -> Result<()> {
        if unstored.parts.is_empty() {
            let batch = self.source.random.random_id();
            unstored.parts = mem::take(&mut unstored.buffer).into_lines_by_hour(&batch);
            // The last part is stored first, so let it be the earliest hour.
            unstored.parts.reverse();
        }
        while let Some(part) = unstored.parts.last_mut() {
            let stored = store_hour_lines(&self.source, &self.numbers, part).await;
            if let Err(error) = stored {
                {
                    let mut state = self.lock_state();
                    state.failures += 1;
                    state.failure = Some(error.clone());
                    state.has_failed = true;
                }
                if let Some(limits) = self.limits {
                    // Nobody may append again, so a timer has to repeat the flush.
                    self.start_timer(limits);
                }
                tracing::warn!(log = %self.source.log, %error, "storing log records failed; keeping them for the next \
                                                                attempt");
                return Err(error);
            }
            unstored.parts.pop();
        }
        self.lock_state().has_failed = false;
        Ok(())
    }
}

/// The least time between two flushes that a timer starts while the store fails.
const PAUSE_AFTER_FAILURE: std::time::Duration = std::time::Duration::from_secs(1);

/// Marks a writer as having a task that flushes by age. The mark ends when it is dropped, also by the end of
/// the runtime: a writer that outlives its runtime then gets a new task in the next one.
struct TimerMark(Option<Arc<Shared>>);

fn spawn_timer(mark: TimerMark, limits: BufferLimits) {
    tokio::spawn(mark.flush_by_age(limits));
}

impl TimerMark {
    /// Stores records that reach the age limit, and records of a failed flush, until none are left.
    async fn flush_by_age(mut self, limits: BufferLimits) {
        while let Some(shared) = &self.0 {
            let due = {
                let state = shared.lock_state();
                if state.opened.is_none() && !state.has_failed {
                    // While the state is locked: a record that is appended next starts a task.
                    shared.has_timer.store(false, Ordering::Release);
                    None
                } else {
                    Some(state.opened.unwrap_or_else(Instant::now).checked_add(limits.after))
                }
            };
            let Some(Some(due)) = due else {
                // Without a due time, the limit is beyond what the clock can show: the writer stays
                // marked, since the timer is never due.
                self.0 = None;
                return;
            };
            timers::sleep(due.saturating_duration_since(Instant::now())).await;
            let (seen, is_old, has_failed) = {
                let state = shared.lock_state();
                let old = |opened: Instant| opened.elapsed() >= limits.after;
                (state.failures, state.opened.is_some_and(old), state.has_failed)
            };
            if (is_old || has_failed) && shared.clone().flush_now(seen, is_old).await.is_err() {
                // `store_unstored` has reported the failure.
                timers::sleep(limits.after.max(PAUSE_AFTER_FAILURE)).await;
            }
        }
    }
}

impl Drop for TimerMark {
    fn drop(&mut self) {
        if let Some(shared) = &self.0 {
            shared.has_timer.store(false, Ordering::Release);
        }
    }
}

impl State {
    fn check_open(&self) -> Result<()> {
        if self.is_closed {
            return Err(Error::new(ErrorKind::Invalid, "the log writer was closed"));
        }
        Ok(())
    }

    fn take_buffer(&mut self) -> UnstoredLines {
        self.opened = None;
        mem::take(&mut self.filling)
    }
}

impl UnstoredRecords {
    fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.buffer.record_count() == 0
    }
}

impl BufferLimits {
    fn is_reached(&self, buffer: &UnstoredLines) -> bool {
        buffer.record_count() > 0
            && (buffer.record_count() >= self.records || buffer.byte_count() >= self.bytes)
    }
}

/// Returns the error for a task that ended before its work was done.
fn stopped_task_error(error: tokio::task::JoinError) -> Error {
    let message = "the task that stores log records stopped; some records may have been stored";
    Error::new(ErrorKind::Ambiguous, message).with_source(error)
}

impl fmt::Debug for LogWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogWriter").field("log", &self.shared.source.log).finish_non_exhaustive()
    }
}
