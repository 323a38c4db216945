//! How many requests a load keeps in flight. A load writes or reads many entities: a bulk write, a fan-out of reads, a
//! worker.

use std::future::Future;

use futures_util::{
    Stream, StreamExt,
    stream::{self, FuturesOrdered, FuturesUnordered, SelectAll},
};

use super::rows::Store;
use crate::backend::layer::SharedWindow;

/// How many requests a load may have in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InFlight {
    /// This many, or as many as the client's window has room for if the client adapts its rate.
    Default(usize),
    /// The user's bound. The window of a client that adapts its rate can only lower it.
    AtMost(usize),
}

impl InFlight {
    /// Returns the user's bound, raised to 1: with 0, the first request would wait for ever.
    pub(crate) const fn at_most(requests: usize) -> Self {
        Self::AtMost(if requests == 0 { 1 } else { requests })
    }
}

/// A load that is under way. All loads of a client share its window.
#[derive(Debug)]
pub(crate) struct Load {
    limit: InFlight,
    window: Option<SharedWindow>,
}

impl Store {
    /// Begins a load, which ends when the result is dropped.
    pub(crate) fn begin_load(&self, limit: InFlight) -> Load {
        let window = self.adaptive_rate.as_ref().map(|rate| rate.share_window());
        Load { limit, window }
    }
}

impl Load {
    /// Returns how many requests may be in flight at this moment. At least 1.
    pub(crate) fn in_flight(&self) -> usize {
        match (self.limit, &self.window) {
            (InFlight::Default(requests) | InFlight::AtMost(requests), None) => requests,
            (InFlight::Default(_), Some(window)) => window.part(),
            (InFlight::AtMost(most), Some(window)) => window.part().min(most),
        }
    }

    /// Runs futures concurrently and returns their results in the order of the futures.
    pub(crate) fn run_in_order<F: Future>(
        self,
        futures: impl Iterator<Item = F>,
    ) -> impl Stream<Item = F::Output> {
        self.keep_running(futures, FuturesOrdered::new(), FuturesOrdered::len)
    }

    /// Runs futures concurrently and returns their results as they arrive.
    pub(crate) fn run_unordered<F: Future>(
        self,
        futures: impl Iterator<Item = F>,
    ) -> impl Stream<Item = F::Output> {
        self.keep_running(futures, FuturesUnordered::new(), FuturesUnordered::len)
    }

    /// Polls streams concurrently and returns their items as they arrive.
    pub(crate) fn merge_streams<S: Stream + Unpin>(
        self,
        streams: impl Iterator<Item = S>,
    ) -> impl Stream<Item = S::Item> {
        self.keep_running(streams, SelectAll::new(), SelectAll::len)
    }

    /// Keeps `running` filled with as many tasks as may be in flight, and returns its items. `len` counts the tasks in
    /// it.
    fn keep_running<T, S: Stream + Extend<T> + Unpin>(
        self,
        tasks: impl Iterator<Item = T>,
        running: S,
        len: fn(&S) -> usize,
    ) -> impl Stream<Item = S::Item> {
        stream::unfold((self, tasks, running), move |(load, mut tasks, mut running)| async move {
            loop {
                let room = load.in_flight().saturating_sub(len(&running));
                running.extend(tasks.by_ref().take(room));
                // `None` if all that were running have ended without an item. Others may be left.
                match running.next().await {
                    Some(item) => return Some((item, (load, tasks, running))),
                    None => running.extend([tasks.next()?]),
                }
            }
        })
    }
}
