//! The one thread that writes: it takes what waits, commits it together, and answers one by one.

use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};

use super::{
    job::{Job, Write},
    store::Store,
};
use crate::error::Error;

/// Batches of one transaction: enough to share a sync, few enough that the first does not wait long
/// for the last.
const GROUP_BATCHES: usize = 512;
/// Bytes of one transaction, about.
const GROUP_BYTES: usize = 8 * 1024 * 1024;

/// Works until no handle is left.
pub(super) fn run(mut store: Store, jobs: &Receiver<Job>) {
    let mut waiting = None;
    loop {
        let next = match (waiting.take(), store.leisure()) {
            (Some(job), _) => Ok(job),
            (None, Some(leisure)) => jobs.recv_timeout(leisure),
            (None, None) => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match next {
            Ok(Job::Write(first)) => waiting = write(&mut store, first, jobs),
            Ok(job) => work(&mut store, job),
            Err(RecvTimeoutError::Timeout) => store.chore(),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    store.close();
}

fn work(store: &mut Store, job: Job) {
    // Who no longer waits for an answer does not get one.
    drop(match job {
        Job::Write(write) => {
            commit(store, vec![write]);
            Ok(())
        }
        Job::Create(name, answer) => answer.send(store.create(&name)),
        Job::Delete(name, answer) => answer.send(store.delete(&name)),
        Job::Flush(answer) => answer.send(store.flush()),
        Job::Compact(answer) => answer.send(store.compact()),
        Job::Verify(answer) => answer.send(store.verify()),
    });
}

/// Commits what waits together with `first`; gives back the job of another kind that came then.
fn write(store: &mut Store, first: Write, jobs: &Receiver<Job>) -> Option<Job> {
    let mut bytes = first.bytes();
    let mut group = vec![first];
    let mut other = None;
    while group.len() < GROUP_BATCHES && bytes < GROUP_BYTES {
        match jobs.try_recv() {
            Ok(Job::Write(write)) => {
                bytes += write.bytes();
                group.push(write);
            }
            Ok(job) => {
                other = Some(job);
                break;
            }
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
        }
    }
    commit(store, group);
    other
}

/// Commits a group and answers; one that fails as a whole is tried batch by batch, so that a batch
/// that hits a damaged page does not take the others with it.
fn commit(store: &mut Store, group: Vec<Write>) {
    match store.commit(&group) {
        Ok(answers) => {
            for (write, answer) in group.into_iter().zip(answers) {
                drop(write.answer.send(answer));
            }
        }
        Err(error) if group.len() > 1 && error.is_corrupt() => {
            group.into_iter().for_each(|write| commit(store, vec![write]));
        }
        Err(error) => {
            for write in group {
                drop(write.answer.send(Err((None, copy_of(&error)))));
            }
        }
    }
}

/// The same error for one more waiter.
fn copy_of(error: &Error) -> Error {
    let copy = Error::new(error.kind(), error.to_string());
    match std::error::Error::source(error) {
        Some(source) => copy.with_source(source.to_string()),
        None => copy,
    }
}
