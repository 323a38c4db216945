//! Writes on the thread of their caller, which take no change of threads: small batches of a relaxed store, from a caller
//! that writes alone.
//!
//! A caller parks its batch and lets the other tasks run that are ready to. If another job was sent meanwhile, the batch
//! has gone to the writer thread before that job. So batches of several tasks share one commit, which is less work
//! than a commit for each, and no job overtakes another. Otherwise the caller takes the batch back and applies it. It
//! does not even park a batch while another caller waits for an answer, since that one mostly writes again at once.

use std::{
    future::poll_fn,
    mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc::Sender,
    },
    task::Poll,
};

use entable_core::{backend::ReadRequest, batch::Verb, error::Result, row::Row};

use crate::{
    job::{BatchAnswer, QueuedBatch, WriterJob},
    open_writes::ReaderGate,
    options::Durability,
    shared_store::SharedStore,
};

/// Largest number of bytes of the rows of a batch that its caller's thread applies. A hundred inserts of that size hold up
/// other tasks for about as long as a slice of a scan does.
const BYTES_AT_ONCE: usize = 32 * 1024;
/// Largest number of operations of such a batch, unless all are inserts. Others read the stored rows, which may be large.
const OPERATIONS_AT_ONCE: usize = 8;

/// The way of jobs to the writer thread, or past it.
pub(crate) struct WayToWriter {
    is_relaxed: bool,
    parked: Mutex<Parked>,
    /// Number of callers that write, or wait for the answer to a write.
    callers: AtomicUsize,
    /// The open file. The writer thread owns it, and drops it when it ends.
    store: Weak<SharedStore>,
    jobs: Weak<Sender<WriterJob>>,
    gate: Arc<ReaderGate>,
}

/// A caller that writes, counted until it is dropped.
pub(crate) struct WritingCaller<'w>(&'w AtomicUsize);

impl WritingCaller<'_> {
    fn is_alone(&self) -> bool {
        self.0.load(SeqCst) == 1
    }
}

impl Drop for WritingCaller<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// The batch that its caller takes back if no job is sent first.
#[derive(Default)]
struct Parked {
    batch: Option<QueuedBatch>,
    /// The number of the batch that was parked last.
    number: u64,
}

/// A batch that was parked. If its caller gives up, the batch is dropped, unless it was sent.
pub(crate) struct ParkedBatch<'w> {
    way: &'w WayToWriter,
    number: u64,
}

impl ParkedBatch<'_> {
    /// Applies the batch on this thread, once the other tasks have had their turn. Returns `None` if it was sent to the
    /// writer thread.
    pub(crate) async fn apply_or_send(self) -> Option<BatchAnswer> {
        let_others_run().await;
        let batch = self.take()?;
        let answer = self.way.apply(&batch);
        if answer.is_none() {
            self.way.send(WriterJob::Write(batch));
        }
        answer
    }

    /// Takes the batch back. Returns `None` if it was sent.
    fn take(&self) -> Option<QueuedBatch> {
        let mut parked = self.way.parked();
        if parked.number == self.number { parked.batch.take() } else { None }
    }
}

impl Drop for ParkedBatch<'_> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

impl WayToWriter {
    /// Creates the way into a store. `jobs` sends to its writer thread.
    pub(crate) fn new(
        durability: Durability,
        store: &Arc<SharedStore>,
        jobs: &Arc<Sender<WriterJob>>,
        gate: Arc<ReaderGate>,
    ) -> Self {
        Self {
            is_relaxed: matches!(durability, Durability::Relaxed { .. }),
            parked: Mutex::default(),
            callers: AtomicUsize::new(0),
            store: Arc::downgrade(store),
            jobs: Arc::downgrade(jobs),
            gate,
        }
    }

    /// Counts a caller that is about to write, until it has its answer.
    pub(crate) fn enter(&self) -> WritingCaller<'_> {
        self.callers.fetch_add(1, SeqCst);
        WritingCaller(&self.callers)
    }

    /// Reads one row in the writes that were applied at once and are not committed. Returns `None`, without waiting, if
    /// the row has to be read in a snapshot, after [`make_writes_visible`](Self::make_writes_visible).
    pub(crate) fn read_open_writes(&self, request: ReadRequest<'_>) -> Option<Result<Option<Row>>> {
        if !self.gate.is_closed() {
            return None;
        }
        self.store.upgrade()?.try_read_open_writes(request)
    }

    /// Has the writes committed that were applied at once, so that the newest snapshot has everything that was
    /// acknowledged before the call. Returns `false` if the writer thread has ended before it could commit them.
    pub(crate) async fn make_writes_visible(&self) -> bool {
        if self.gate.is_closed() { Box::pin(self.wait_at_gate()).await } else { true }
    }

    async fn wait_at_gate(&self) -> bool {
        let _waiting = self.gate.enter();
        while self.gate.is_closed() {
            let Some(store) = self.store.upgrade() else { return false };
            if store.try_commit_open_writes() {
                break;
            }
            drop(store);
            // Another caller that holds the store applies a small batch, and then commits it for the waiting readers. The
            // writer thread commits before it begins its job.
            tokio::task::yield_now().await;
        }
        true
    }

    /// Sends a job to the writer thread, after the batch that is parked. Drops the job if the thread has ended.
    pub(crate) fn send(&self, job: WriterJob) {
        self.send_in_order(&mut self.parked(), job);
    }

    /// Parks a small batch if its caller writes alone and the commit does not wait for the disk. Otherwise sends it to the
    /// writer thread and returns `None`.
    pub(crate) fn park_or_send(
        &self,
        batch: QueuedBatch,
        caller: &WritingCaller<'_>,
    ) -> Option<ParkedBatch<'_>> {
        let mut parked = self.parked();
        let may_park = self.is_relaxed
            && caller.is_alone()
            && parked.batch.is_none()
            && is_small(&batch)
            && self.store.upgrade().is_some_and(|store| store.is_idle());
        if !may_park {
            self.send_in_order(&mut parked, WriterJob::Write(batch));
            return None;
        }
        parked.batch = Some(batch);
        parked.number += 1;
        Some(ParkedBatch { way: self, number: parked.number })
    }

    fn parked(&self) -> MutexGuard<'_, Parked> {
        // No code that can panic runs under the lock.
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the parked batch, if there is one, and a job. The lock keeps others from sending in between.
    fn send_in_order(&self, parked: &mut Parked, job: WriterJob) {
        let (Some(store), Some(jobs)) = (self.store.upgrade(), self.jobs.upgrade()) else { return };
        let before = parked.batch.take().map(WriterJob::Write);
        for job in before.into_iter().chain([job]) {
            store.note_sent();
            // A thread that has ended drops the job, and with it the channel for the answer.
            drop(jobs.send(job));
        }
    }

    /// Applies a batch on this thread. Returns `None`, and changes nothing, if the writer thread has to do it.
    fn apply(&self, batch: &QueuedBatch) -> Option<BatchAnswer> {
        let shared = self.store.upgrade()?;
        let mut store = shared.lock_if_idle()?;
        let was_synced = store.unsynced.is_none();
        let answer = store.write_at_once(batch);
        if was_synced
            && store.unsynced.is_some()
            && let Some(jobs) = self.jobs.upgrade()
        {
            // The thread may wait without limit. If it has ended, there is nothing to sync.
            drop(jobs.send(WriterJob::TimeMaintenance));
        }
        answer
    }
}

fn is_small(batch: &QueuedBatch) -> bool {
    let operations = &batch.operations;
    let are_few = operations.len() <= OPERATIONS_AT_ONCE
        || operations.iter().all(|operation| operation.verb() == Verb::Insert);
    are_few && batch.row_byte_count() <= BYTES_AT_ONCE
}

/// Lets the other tasks of this thread run that are ready to.
async fn let_others_run() {
    let mut has_yielded = false;
    let yield_once = poll_fn(|context| {
        if mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    });
    yield_once.await;
}
