//! Passes over dirty rows (rows that list what may be wrong in other partitions) with remote lists. They run together, which lets each list be written once.
//!
//! Order of requests: read the lists, then each dirty row's copies and its primary, then write each list under
//! the version that was read. Dirty rows whose lists do not fit into memory together wait for the next such
//! pass.

use futures_util::{StreamExt, future::BoxFuture, stream};

use super::{
    dirty_row::ParsedDirtyRow,
    partition::OutboxRow,
    pass::{CopyOutcome, PassBeforeLists, PassOutcome},
    state::{ROWS_AT_ONCE, Worker},
};
use crate::{
    error::Result,
    guard::Guard,
    outbox::{
        deadline::WriteDeadline,
        remote_list::{ListAfterWrite, ListWriteResults, is_membership_settled, write_lists},
    },
    plan::outbox::{ListAddress, ListMembership},
    store::backoff::contended_error,
    store::lists::{ListsByAddress, find_lists, read_lists_until_bytes},
};

/// The number of dirty rows whose lists are written together. It keeps the entries that one write adds to a
/// list far below a transaction's limits.
const ROWS_TOGETHER: usize = 256;

/// The number of bytes of lists in memory at a time. The lists of a single dirty row may exceed it.
const BYTES_TOGETHER: usize = 8 * 1024 * 1024;

/// The addresses of the remote lists in a dirty row that this client can write, and the row.
type RowWithLists = (Vec<ListAddress>, ParsedDirtyRow);

impl Worker {
    /// Makes a pass over each dirty row of a partition. Rows with remote lists are passed over together.
    pub(super) async fn pass_over_rows(
        &self,
        table: &str,
        rows: Vec<OutboxRow>,
    ) -> Vec<PassOutcome> {
        let mut outcomes = Vec::new();
        let mut parsed = Vec::new();
        for row in rows {
            match self.parse_dirty_row(table, &row) {
                Ok(dirty) => parsed.push((dirty.writable_lists(), dirty)),
                Err(error) => outcomes.push(PassOutcome::Failed(row, error)),
            }
        }
        let (without, mut left): (Vec<_>, Vec<_>) =
            parsed.into_iter().partition(|(lists, _)| lists.is_empty());
        let passes = stream::iter(without)
            .map(|(_, row)| self.pass_without_lists(table, row))
            .buffer_unordered(ROWS_AT_ONCE);
        outcomes.extend(passes.collect::<Vec<_>>().await);
        while !left.is_empty() {
            let after = left.split_off(left.len().min(ROWS_TOGETHER));
            let (done, held_back) = self.pass_together(table, left).await;
            outcomes.extend(done);
            left = held_back;
            left.extend(after);
        }
        outcomes
    }

    /// Makes the passes over dirty rows, each with its lists. Returns their outcomes, and the rows that have to
    /// wait because all lists do not fit into memory together.
    async fn pass_together(
        &self,
        table: &str,
        rows: Vec<RowWithLists>,
    ) -> (Vec<PassOutcome>, Vec<RowWithLists>) {
        // Started before the lists are read, because the write of each list depends on that read.
        let deadline = self.outbox().start_deadline();
        let guards = self.outbox().guards;
        let (wanted, mut rows): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        let mut held_back = Vec::new();
        let (lists, passes) = if guards.is_guard_enabled(Guard::DestinationFirst) {
            let lists = read_lists_until_bytes(self.store(), &wanted, BYTES_TOGETHER).await;
            // Take all rows whose lists were read, wherever they are: each list is then written once.
            let is_read = |(wanted, _): &RowWithLists| {
                wanted.iter().all(|address| lists.contains_key(address))
            };
            let (ready, late) = wanted.into_iter().zip(rows).partition::<Vec<_>, _>(is_read);
            rows = ready.into_iter().map(|(_, row)| row).collect();
            held_back = late;
            (lists, self.passes_before_lists(table, &rows, &deadline).await)
        } else {
            let passes = self.passes_before_lists(table, &rows, &deadline).await;
            (find_lists(self.store(), wanted.concat()).await, passes)
        };
        let written = self.write_lists_of_passes(&deadline, &lists, &passes).await;
        let outcomes = rows.into_iter().zip(passes).map(|(row, pass)| {
            match pass.and_then(|pass| self.add_list_outcomes(pass, &lists, &written)) {
                Ok(pass) => pass.finish_pass(row.dirty, guards),
                Err(error) => PassOutcome::Failed(row.read, error),
            }
        });
        (outcomes.collect(), held_back)
    }

    /// Makes the passes up to the point where the lists are written.
    fn passes_before_lists<'p>(
        &'p self,
        table: &'p str,
        rows: &'p [ParsedDirtyRow],
        deadline: &'p WriteDeadline,
    ) -> BoxFuture<'p, Vec<Result<PassBeforeLists>>> {
        let passes: Vec<_> =
            rows.iter().map(|row| self.pass_copies(table, row, deadline)).collect();
        Box::pin(stream::iter(passes).buffered(ROWS_AT_ONCE).collect())
    }

    /// Writes each list once, with the entries of all passes.
    async fn write_lists_of_passes(
        &self,
        deadline: &WriteDeadline,
        lists: &ListsByAddress,
        passes: &[Result<PassBeforeLists>],
    ) -> ListWriteResults {
        let passes = || passes.iter().filter_map(|pass| pass.as_ref().ok());
        let memberships: Vec<&ListMembership> =
            passes().flat_map(|pass| &pass.memberships).collect();
        // Rewrite even an unchanged list, to make every writer fail that read it before. In a second look there is
        // no such writer.
        let rewrite_unchanged = passes().any(|pass| !pass.is_second_look);
        write_lists(self.outbox(), deadline, lists, &memberships, rewrite_unchanged).await
    }

    /// Adds the results of its lists to a pass. Fails only this pass if one of its lists was not read or not
    /// written.
    fn add_list_outcomes(
        &self,
        mut pass: PassBeforeLists,
        lists: &ListsByAddress,
        written: &ListWriteResults,
    ) -> Result<PassBeforeLists> {
        for membership in std::mem::take(&mut pass.memberships) {
            let address = membership.address.assume_list_address();
            match lists.get(&address) {
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.clone()),
                // A list that was not read has no version to be written under, so the next round does the work.
                None => return Err(contended_error()),
            }
            let write = match written.get(&address) {
                Some(Ok(write)) => *write,
                Some(Err(error)) => return Err(error.clone()),
                None => ListAfterWrite::Unchanged,
            };
            let outcome = match write {
                write if is_membership_settled(self.outbox(), &membership, write) => {
                    CopyOutcome::Written
                }
                ListAfterWrite::Unchanged => CopyOutcome::Unchanged,
                // Written, but a delayed writer may undo it. Like a deletion, it requires a second look.
                ListAfterWrite::Rows | ListAfterWrite::Blob | ListAfterWrite::Deleted => {
                    CopyOutcome::Deleted
                }
            };
            if write != ListAfterWrite::Unchanged {
                self.lock_memory().stats.written += 1;
            }
            pass.outcomes.push(outcome);
        }
        Ok(pass)
    }
}
