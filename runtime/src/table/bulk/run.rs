//! A bulk write under way.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use futures_util::{
    StreamExt,
    future::{Either, poll_immediate, select},
    stream::FuturesUnordered,
};

use super::{
    BulkReport, Failure, OnProgress, Progress, Rewritable,
    group::{Group, Groups, Item},
    rewrite::{Rewrite, is_overtaken},
};
use crate::{
    error::{BoxError, Error, Result},
    outbox::{
        commit::{commit, resolve_change},
        registration::register_all,
    },
    plan::Unresolved,
    table::Client,
};

/// Partitions that wait for more changes and are registered together.
const REGISTERED: usize = 1_600;

/// What a run works with.
pub(super) struct Work {
    pub(super) client: Client,
    pub(super) concurrency: usize,
    pub(super) on_progress: Option<OnProgress>,
}

/// Groups in the making, transactions in flight, and what became of the rest.
pub(super) struct Run {
    work: Work,
    groups: Groups,
    flights: FuturesUnordered<Pin<Box<dyn Future<Output = Landed> + Send>>>,
    /// What every transaction in flight writes.
    in_flight: Vec<(u64, Arc<Group>)>,
    sent: u64,
    next_index: u64,
    report: BulkReport,
    lost: Vec<(u64, String, String)>,
}

/// What a transaction, with its retries, came to.
struct Landed {
    id: u64,
    done: u64,
    requests: u64,
    failed: Vec<(Item, Error)>,
}

impl Run {
    pub(super) fn new(work: Work) -> Self {
        Self {
            work,
            groups: Groups::default(),
            flights: FuturesUnordered::new(),
            in_flight: Vec::new(),
            sent: 0,
            next_index: 0,
            report: BulkReport::default(),
            lost: Vec::new(),
        }
    }

    /// Takes the next entity of the input.
    pub(super) async fn add(
        &mut self,
        table: String,
        verb: Result<Unresolved>,
        done_when_missing: bool,
    ) {
        let index = self.next_index;
        self.next_index += 1;
        let item = Item { index, done_when_missing };
        let change = match verb {
            Ok(verb) => resolve_change(self.work.client.outbox(), &table, verb).await,
            Err(error) => Err(error),
        };
        let placed = change.and_then(|change| self.groups.put(table.clone(), change, item));
        match placed {
            Ok(ready) => {
                self.send_all(ready).await;
            }
            Err(error) => {
                self.fail(item, error.in_table(&table));
                self.tell();
            }
        }
    }

    /// Waits for the input, while the transactions in flight go on; a group that has waited for
    /// `linger` then does not wait for more.
    pub(super) async fn next<T>(&mut self, input: impl Future<Output = T>, linger: Duration) -> T {
        let mut input = pin!(input);
        if let Some(item) = poll_immediate(input.as_mut()).await {
            return item;
        }
        while let Some(due) = self.groups.due(linger) {
            let timer = pin!(tokio::time::sleep_until(due));
            if let Either::Left((item, _)) = select(pin!(self.beside(input.as_mut())), timer).await
            {
                return item;
            }
            let overdue = self.groups.overdue(linger);
            self.send_all(overdue).await;
        }
        self.beside(input).await
    }

    /// Waits for the input, while the transactions in flight go on.
    pub(super) async fn beside<T>(&mut self, input: impl Future<Output = T>) -> T {
        let mut input = pin!(input);
        while !self.flights.is_empty() {
            match select(input.as_mut(), self.flights.next()).await {
                Either::Left((item, _)) => return item,
                Either::Right((Some(landed), _)) => self.landed(landed),
                Either::Right((None, _)) => {}
            }
        }
        input.await
    }

    /// Sends groups. Where one needs a registration for its partition, those that wait for more
    /// changes are registered with it: they will need one, and many cost little more than one.
    async fn send_all(&mut self, groups: Vec<Group>) {
        let outbox = self.work.client.outbox();
        let is_new = |(table, key): &(String, String)| !outbox.registrations.has(table, key);
        let mut places: Vec<_> = groups.iter().filter_map(Group::fenced).filter(is_new).collect();
        if !places.is_empty() {
            let waiting = self.groups.fenced().filter(is_new);
            places.extend(waiting.take(REGISTERED));
            places.sort_unstable();
            places.dedup();
            if places.len() > 1 {
                let prepared = prepare(self.work.client.clone(), places);
                self.beside(prepared).await;
            }
        }
        for group in groups {
            self.send(group).await;
        }
    }

    /// Sends a group, when there is room and no transaction in flight writes one of its rows.
    async fn send(&mut self, group: Group) {
        while self.flights.len() >= self.work.concurrency
            || self.in_flight.iter().any(|(_, other)| other.meets(&group))
        {
            self.land().await;
        }
        let id = self.sent;
        self.sent += 1;
        let group = Arc::new(group);
        self.in_flight.push((id, group.clone()));
        self.flights.push(Box::pin(fly(self.work.client.clone(), id, group)));
    }

    async fn land(&mut self) {
        if let Some(landed) = self.flights.next().await {
            self.landed(landed);
        }
    }

    fn landed(&mut self, landed: Landed) {
        self.in_flight.retain(|(id, _)| *id != landed.id);
        self.report.done += landed.done;
        self.report.requests += landed.requests;
        for (item, error) in landed.failed {
            self.fail(item, error);
        }
        self.tell();
    }

    fn fail(&mut self, item: Item, error: Error) {
        if is_overtaken(&error)
            && let Some((partition_key, row_key)) = error.keys()
        {
            self.lost.push((item.index, partition_key.to_owned(), row_key.to_owned()));
        }
        self.report.failed.push(Failure { index: item.index, error });
    }

    fn tell(&self) {
        if let Some(on_progress) = &self.work.on_progress {
            on_progress(Progress {
                done: self.report.done,
                failed: u64::try_from(self.report.failed.len()).unwrap_or(u64::MAX),
                requests: self.report.requests,
            });
        }
    }

    async fn settle(&mut self) {
        let rest = self.groups.drain();
        self.send_all(rest).await;
        while !self.flights.is_empty() {
            self.land().await;
        }
    }

    /// Changes the entities again that another writer changed first, once all others are written.
    pub(super) async fn retry_lost_races<T: Rewritable>(
        &mut self,
        rewrite: &mut Rewrite<T, impl FnMut(&mut T) -> Result<(), BoxError>>,
    ) {
        self.settle().await;
        for (index, partition_key, row_key) in std::mem::take(&mut self.lost) {
            let again = rewrite.again(&partition_key, &row_key, &mut self.report.requests).await;
            self.retried(index, again);
        }
    }

    /// What became of an entity that was tried again.
    fn retried(&mut self, index: u64, result: Result<()>) {
        self.report.failed.retain(|failure| failure.index != index);
        match result {
            Ok(()) => self.report.done += 1,
            Err(error) => self.report.failed.push(Failure { index, error }),
        }
        self.tell();
    }

    pub(super) async fn finish(mut self) -> BulkReport {
        self.settle().await;
        self.report.failed.sort_by_key(|failure| failure.index);
        self.report
    }
}

fn prepare(
    client: Client,
    places: Vec<(String, String)>,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move { register_all(client.outbox(), places).await })
}

/// Sends a group. A change that fails is taken out and the others are sent again; a group whose
/// copies and lists make it too large is sent in halves.
async fn fly(client: Client, id: u64, group: Arc<Group>) -> Landed {
    let mut landed = Landed { id, done: 0, requests: 0, failed: Vec::new() };
    let mut waiting = vec![group.again()];
    while let Some(mut group) = waiting.pop() {
        if group.items.is_empty() {
            continue;
        }
        landed.requests += 1;
        let error = match commit(client.outbox(), &group.table, &group.changes).await {
            Ok(_) => {
                landed.done += u64::try_from(group.items.len()).unwrap_or(u64::MAX);
                continue;
            }
            Err(error) => error,
        };
        if error.is_too_large() && group.items.len() > 1 {
            waiting.extend(group.halves().into_iter().rev());
            continue;
        }
        let failed = error.failed_index().and_then(|at| group.drop_change(at));
        match failed {
            Some(item) if item.done_when_missing && error.is_row_missing() => {
                landed.done += 1;
            }
            Some(item) => landed.failed.push((item, error.without_operation())),
            None => {
                landed.failed.extend(group.items.drain(..).map(|item| (item, error.clone())));
            }
        }
        waiting.push(group);
    }
    landed
}
