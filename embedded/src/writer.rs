//! The writer thread: takes waiting jobs, commits waiting batches together, does the other jobs one by one,
//! and answers each. Does maintenance while no job waits.

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError},
    time::{Duration, Instant},
};

use entable_core::error::Error;

use crate::{
    job::{QueuedBatch, WriterJob},
    writer_store::WriterStore,
};

/// Largest number of batches of one transaction: enough to share a sync, few enough that the first does
/// not wait long for the last.
const GROUP_BATCHES: usize = 512;
/// Once a transaction has this many bytes of rows, it takes no further batch.
const GROUP_BYTES: usize = 8 * 1024 * 1024;

/// Does jobs, and maintenance while there are none, until all senders of jobs are dropped. Then closes
/// the store.
pub(crate) fn run_writer(mut store: WriterStore, jobs: &Receiver<WriterJob>) {
    let mut taken = None;
    let mut last_group = 1;
    loop {
        let next = match (taken.take(), store.time_to_maintenance()) {
            (Some(job), _) => Ok(job),
            (None, Some(time)) => jobs.recv_timeout(time),
            (None, None) => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match next {
            Ok(WriterJob::Write(first)) => {
                // Half a sync costs less than the second sync that the wait can save.
                let wait = store.last_sync_duration().map_or(Duration::ZERO, |time| time / 2);
                let (group, other) = gather_group(first, jobs, last_group, wait);
                last_group = group.len();
                commit_and_answer(&mut store, group);
                taken = other;
            }
            Ok(WriterJob::Close(answer)) => {
                // Nobody may wait for the answer any more.
                drop(answer.send(store.sync_and_close_file()));
                return;
            }
            Ok(job) => run_job(&mut store, job),
            Err(RecvTimeoutError::Timeout) => store.run_maintenance_step(),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    // A failure is ignored: nobody is left to get it, and the engine syncs once more on closing.
    drop(store.sync_and_close_file());
}

fn run_job(store: &mut WriterStore, job: WriterJob) {
    // The result of sending is ignored: a caller that was dropped does not need its answer.
    drop(match job {
        // The loop commits writes in groups itself, so none gets here.
        WriterJob::Write(batch) => {
            commit_and_answer(store, vec![batch]);
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

/// Commits a group of batches and answers each. If the group fails because of a damaged page, commits the batches one
/// by one. Then only batches that need the page fail.
fn commit_and_answer(store: &mut WriterStore, group: Vec<QueuedBatch>) {
    match store.commit_group(&group) {
        Ok(answers) => {
            for (batch, answer) in group.into_iter().zip(answers) {
                drop(batch.answer.send(answer));
            }
        }
        Err(error) if group.len() > 1 && error.is_corrupt() => {
            group.into_iter().for_each(|batch| commit_and_answer(store, vec![batch]));
        }
        Err(error) => {
            for batch in group {
                drop(batch.answer.send(Err((None, copy_error(&error)))));
            }
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
