//! The writer thread: takes waiting jobs, commits waiting batches together, does the other jobs one by one,
//! and answers each. Does maintenance while no job waits.

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError},
    time::{Duration, Instant},
};

use entable_core::error::Error;

use crate::{
    job::{BatchAnswer, QueuedBatch, WriterJob},
    shared_store::SharedStore,
    writer_store::WriterStore,
};

/// Largest number of batches of one transaction: enough to share a sync, few enough that the first does
/// not wait long for the last.
const GROUP_BATCHES: usize = 512;
/// Once a transaction has this many bytes of rows, it takes no further batch.
const GROUP_BYTES: usize = 8 * 1024 * 1024;

/// Does jobs, and maintenance while there are none, until all senders of jobs are dropped. Then closes
/// the store. Also ends if a caller has panicked while it wrote at once.
pub(crate) fn run_writer(store: &SharedStore, jobs: &Receiver<WriterJob>) {
    // A failure is ignored: whoever closed the store has got it, and after a panic nothing is left to do.
    let _ = do_jobs(store, jobs);
}

/// Does jobs until the store is closed. Returns `None` if a panic ended it.
fn do_jobs(store: &SharedStore, jobs: &Receiver<WriterJob>) -> Option<()> {
    let mut taken = None;
    let mut last_group = 1;
    let ((), mut pause) = store.run(|_| ())?;
    loop {
        let next = match (taken.take(), pause.maintenance_after) {
            (Some(job), _) => Ok(job),
            (None, Some(time)) => jobs.recv_timeout(time),
            (None, None) => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match next {
            Ok(WriterJob::Write(first)) => {
                let group;
                (group, taken) = gather_group(first, jobs, last_group, pause.for_more_batches);
                last_group = group.len();
                let answers;
                (answers, pause) = store.run(|store| commit_group(store, group))?;
                // Before the answers, so that the next batch of a task may find the store idle.
                store.note_done(last_group);
                answers.into_iter().for_each(Answered::send);
            }
            Ok(WriterJob::Close(answer)) => {
                let (closed, _) = store.run(WriterStore::sync_and_close_file)?;
                // Nobody may wait for the answer any more.
                drop(answer.send(closed));
                return Some(());
            }
            Ok(job) => {
                let has_caller = job.has_caller();
                ((), pause) = store.run(|store| run_job(store, job))?;
                store.note_done(usize::from(has_caller));
            }
            Err(RecvTimeoutError::Timeout) => {
                ((), pause) = store.run(WriterStore::run_maintenance_step)?;
            }
            Err(RecvTimeoutError::Disconnected) => {
                // A failure is ignored: nobody is left to get it, and the engine syncs once more on closing.
                let _ = store.run(WriterStore::sync_and_close_file)?;
                return Some(());
            }
        }
    }
}

fn run_job(store: &mut WriterStore, job: WriterJob) {
    // The result of sending is ignored: a caller that was dropped does not need its answer.
    drop(match job {
        // The loop commits writes in groups itself, so none gets here.
        WriterJob::Write(batch) => {
            commit_group(store, vec![batch]).into_iter().for_each(Answered::send);
            Ok(())
        }
        WriterJob::Create(name, answer) => answer.send(store.create_table(&name)),
        WriterJob::Delete(name, answer) => answer.send(store.delete_table(&name)),
        WriterJob::Configure(table, text, answer) => {
            answer.send(store.set_settings(table.as_deref(), &text))
        }
        WriterJob::Flush(answer) => answer.send(store.flush_commits()),
        WriterJob::Compact(answer) => answer.send(store.compact_file()),
        WriterJob::Verify(answer) => answer.send(store.verify_file_pages()),
        WriterJob::BeginCopy(target, answer) => {
            drop(answer.send(store.begin_copy(target)));
            Ok(())
        }
        WriterJob::ReopenAfterFailedRead => {
            store.reopen_after_failed_read();
            Ok(())
        }
        // The loop looks when maintenance is due before it waits for the next job.
        WriterJob::TimeMaintenance => Ok(()),
        // The loop of the thread handles it, since the store ends with it.
        WriterJob::Close(answer) => answer.send(Ok(())),
    });
}

/// Takes the waiting batches that are committed together with `first`. If a job of another kind
/// comes between, stops there and returns that job too: the caller does it next.
///
/// Waits up to `wait` for as many batches as the last group had: the tasks of that group have their
/// answers and mostly send their next batch at once. Without the wait, the first of these batches would
/// be committed alone, and each round of the tasks would take two syncs.
fn gather_group(
    first: QueuedBatch,
    jobs: &Receiver<WriterJob>,
    last_group: usize,
    wait: Duration,
) -> (Vec<QueuedBatch>, Option<WriterJob>) {
    let mut bytes = first.row_byte_count();
    let mut group = vec![first];
    let mut wait_until = None;
    while group.len() < GROUP_BATCHES && bytes < GROUP_BYTES {
        let next = match jobs.try_recv() {
            Err(TryRecvError::Empty) if group.len() < last_group && !wait.is_zero() => {
                let until = *wait_until.get_or_insert_with(|| Instant::now() + wait);
                jobs.recv_timeout(until.saturating_duration_since(Instant::now())).ok()
            }
            next => next.ok(),
        };
        match next {
            Some(WriterJob::Write(batch)) => {
                bytes += batch.row_byte_count();
                group.push(batch);
            }
            other => return (group, other),
        }
    }
    (group, None)
}

/// The answer to a batch, on its way to the caller.
struct Answered {
    batch: QueuedBatch,
    answer: BatchAnswer,
}

impl Answered {
    fn send(self) {
        // The result is ignored: a caller that was dropped does not need its answer.
        drop(self.batch.answer.send(self.answer));
    }
}

/// Commits a group of batches and returns the answer to each. If the group fails because of a damaged page, commits the
/// batches one by one. Then only batches that need the page fail.
fn commit_group(store: &mut WriterStore, group: Vec<QueuedBatch>) -> Vec<Answered> {
    match store.commit_group(&group) {
        Ok(answers) => {
            let both = group.into_iter().zip(answers);
            both.map(|(batch, answer)| Answered { batch, answer }).collect()
        }
        Err(error) if group.len() > 1 && error.is_corrupt() => {
            group.into_iter().flat_map(|batch| commit_group(store, vec![batch])).collect()
        }
        Err(error) => {
            let failed = |batch| Answered { batch, answer: Err((None, copy_error(&error))) };
            group.into_iter().map(failed).collect()
        }
    }
}

/// Returns a copy of the error for one more caller: its kind, its whole text as the message, and its source
/// as text. Table, keys and code stay only in the text.
fn copy_error(error: &Error) -> Error {
    let copy = Error::new(error.kind(), error.to_string());
    match std::error::Error::source(error) {
        Some(source) => copy.with_source(source.to_string()),
        None => copy,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use tokio::sync::oneshot;

    use super::*;
    use entable_core::{batch::Operation, row::Row};

    const LONG: Duration = Duration::from_secs(3600);

    fn batch() -> QueuedBatch {
        let row = Row::build("p", "r").finish().unwrap();
        let (answer, _) = oneshot::channel();
        let operations = vec![Operation::insert(row)].into();
        QueuedBatch { table: "Staff".to_owned(), operations, deadline: None, answer }
    }

    #[test]
    fn a_group_waits_for_as_many_batches_as_the_last_one_had() {
        let (sender, jobs) = channel();
        let tasks = std::thread::spawn(move || {
            for _ in 0..3 {
                std::thread::sleep(Duration::from_millis(2));
                sender.send(WriterJob::Write(batch())).unwrap();
            }
            sender
        });
        let (group, other) = gather_group(batch(), &jobs, 4, LONG);
        assert_eq!((group.len(), other.is_none()), (4, true));
        drop(tasks.join());
    }

    #[test]
    fn one_task_alone_does_not_wait() {
        let (sender, jobs) = channel();
        let started = Instant::now();
        assert_eq!(gather_group(batch(), &jobs, 1, LONG).0.len(), 1);
        sender.send(WriterJob::Write(batch())).unwrap();
        assert_eq!(gather_group(batch(), &jobs, 1, LONG).0.len(), 2, "what waits comes along");
        assert_eq!(gather_group(batch(), &jobs, 4, Duration::ZERO).0.len(), 1);
        assert!(started.elapsed() < LONG);
    }

    #[test]
    fn the_wait_ends_with_its_time_and_with_another_job() {
        let (sender, jobs) = channel();
        assert_eq!(gather_group(batch(), &jobs, 2, Duration::from_millis(1)).0.len(), 1);
        let (answer, _receiver) = oneshot::channel();
        sender.send(WriterJob::Flush(answer)).unwrap();
        let (group, other) = gather_group(batch(), &jobs, 2, LONG);
        assert_eq!((group.len(), matches!(other, Some(WriterJob::Flush(_)))), (1, true));
        drop(sender);
        assert_eq!(gather_group(batch(), &jobs, 2, LONG).0.len(), 1);
    }
}
