//! Passes over dirty rows that name lists elsewhere: together, so that one list is written once.
//!
//! In the order of every pass: the lists are read, then each dirty row's copies and its primary,
//! then each list is written in the version that was read.

use futures_util::{StreamExt, stream};

use super::{
    partition::Aged,
    pass::{Done, Half, Passed},
    round::ROWS,
    state::Worker,
};
use crate::{
    error::Result,
    outbox::{
        deadline::WriteDeadline,
        guard::Guard,
        remote_list::{ListWrite, ListsWritten, is_settled, write_lists},
    },
    plan::outbox::{ListAddress, ListMembership, StoredDirtyRow},
    store::lists::{Lists, find_lists},
};

/// Dirty rows whose lists are written together: what is added to a list at once stays far below
/// what a transaction takes.
const TOGETHER: usize = 256;

impl Worker {
    /// Makes a pass over each dirty row of a partition.
    pub(super) async fn passes(&self, table: &str, rows: Vec<Aged>) -> Vec<Passed> {
        let (listed, alone): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|aged| !self.places(aged).is_empty());
        let passes = stream::iter(alone)
            .map(|aged| async move { self.pass(table, &aged).await })
            .buffer_unordered(ROWS);
        let mut passed: Vec<Passed> = passes.collect().await;
        for rows in listed.chunks(TOGETHER) {
            passed.extend(self.pass_together(table, rows).await);
        }
        passed
    }

    /// The lists elsewhere that a dirty row names. One that cannot be read has none: its pass says
    /// why.
    fn places(&self, aged: &Aged) -> Vec<ListAddress> {
        let outbox = self.client.outbox();
        let names = StoredDirtyRow::from_row(aged.row.clone())
            .map(|open| open.addresses)
            .unwrap_or_default();
        let lists = names.iter().filter(|name| outbox.known_types.of_list(name).is_some());
        let places = lists.map(|name| name.list_address());
        places.filter(|place| !place.in_blob || self.client.store().has_blobs()).collect()
    }

    async fn pass_together(&self, table: &str, rows: &[Aged]) -> Vec<Passed> {
        let flight = WriteDeadline::begin(self.client.outbox());
        let places = || rows.iter().flat_map(|aged| self.places(aged)).collect::<Vec<_>>();
        let is_first = self.client.outbox().guards.holds(Guard::DestinationFirst);
        let early = if is_first { Some(self.lists(places()).await) } else { None };
        let halves: Vec<_> = rows.iter().map(|aged| self.half(table, aged, flight)).collect();
        let halves: Vec<Result<Half>> = stream::iter(halves).buffered(ROWS).collect().await;
        let lists = match early {
            Some(lists) => lists,
            None => self.lists(places()).await,
        };
        let written = self.write(flight, &lists, &halves).await;
        let passed = rows.iter().zip(halves).map(|(aged, half)| {
            let half = half.and_then(|half| self.whole(half, &lists, &written));
            match half {
                Ok(half) => half.passed(self.client.outbox().guards),
                Err(error) => Passed::failed(aged, error),
            }
        });
        passed.collect()
    }

    /// Reads lists; one that cannot be read fails the passes that need it alone.
    async fn lists(&self, places: Vec<ListAddress>) -> Lists {
        find_lists(self.client.store(), places).await
    }

    /// Writes each list once, with what all passes want of it.
    async fn write(
        &self,
        flight: WriteDeadline,
        lists: &Lists,
        halves: &[Result<Half>],
    ) -> ListsWritten {
        let halves = || halves.iter().filter_map(|half| half.as_ref().ok());
        let memberships: Vec<&ListMembership> =
            halves().flat_map(|half| &half.memberships).collect();
        // What is as it should be is written once more, unless nobody can be under way any more.
        let touch = halves().any(|half| !half.second_look);
        write_lists(self.client.outbox(), flight, lists, &memberships, touch).await
    }

    /// The pass with what was made of its lists.
    fn whole(&self, mut half: Half, lists: &Lists, written: &ListsWritten) -> Result<Half> {
        for membership in std::mem::take(&mut half.memberships) {
            let place = membership.address.list_address();
            if let Some(Err(error)) = lists.get(&place) {
                return Err(error.clone());
            }
            let listed = match written.get(&place) {
                Some(Ok(listed)) => *listed,
                Some(Err(error)) => return Err(error.clone()),
                None => ListWrite::Same,
            };
            let done = match listed {
                listed if is_settled(self.client.outbox(), &membership, listed) => Done::Written,
                ListWrite::Same => Done::Nothing,
                ListWrite::Written | ListWrite::Kept | ListWrite::Gone => Done::Deleted,
            };
            if listed != ListWrite::Same {
                self.memory().stats.written += 1;
            }
            half.done.push(done);
        }
        Ok(half)
    }
}
