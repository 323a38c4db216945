//! Writes many rows in entity group transactions, one per group of rows of a partition. Splits groups that
//! are too large and retries groups that lost a race.

use std::future::Future;

use crate::{error::Result, random::RandomSource, store::backoff};

/// Lost races before a group is split. A smaller transaction loses fewer races.
const RACES_BEFORE_SPLIT: u32 = 3;

/// Rows of one partition that are written in one transaction.
pub(crate) trait Splittable: Sized {
    /// Returns how many rows the group has.
    fn rows(&self) -> usize;

    /// Splits the group into two halves.
    fn split(self) -> [Self; 2];
}

impl<T> Splittable for Vec<T> {
    fn rows(&self) -> usize {
        self.len()
    }

    fn split(mut self) -> [Self; 2] {
        let rest = self.split_off(self.len() / 2);
        [self, rest]
    }
}

/// The outcome of an attempt to write a group.
pub(crate) enum GroupWriteOutcome<G> {
    /// Nothing of the group is left to write.
    Done,
    /// The group does not fit into one transaction. It has more than one row.
    TooLarge(G),
    /// Another writer was first. These rows are left to write, in their currently stored versions.
    LostRace(G),
    /// A failed row was taken out. The remaining rows can be written at once.
    Rest(G),
}

/// Writes one group in one transaction, and decides what a failure means for its rows.
pub(crate) trait GroupWriter {
    /// The rows of one transaction.
    type Group: Splittable + Send;

    /// Attempts to write a group.
    fn attempt(
        &mut self,
        group: Self::Group,
    ) -> impl Future<Output = Result<GroupWriteOutcome<Self::Group>>> + Send;
}

/// Writes groups in order. Halves a group that is too large or has lost three races, and waits a random
/// time after each lost race.
///
/// # Errors
///
/// Fails with the first error of the writer, and with `is_contended` if a group lost 16 races.
pub(crate) async fn write_groups_in_order<W: GroupWriter>(
    writer: &mut W,
    random: &RandomSource,
    groups: impl IntoIterator<Item = W::Group, IntoIter: DoubleEndedIterator>,
) -> Result<()> {
    // The first group is on top of the stack, so both halves of a group are written before later groups.
    let mut waiting: Vec<(W::Group, u32)> =
        groups.into_iter().rev().map(|group| (group, 0)).collect();
    while let Some((group, races)) = waiting.pop() {
        if group.rows() == 0 {
            continue;
        }
        match writer.attempt(group).await? {
            GroupWriteOutcome::Done => {}
            GroupWriteOutcome::Rest(rest) => waiting.push((rest, races)),
            GroupWriteOutcome::LostRace(left) if races < RACES_BEFORE_SPLIT || left.rows() < 2 => {
                backoff::wait_before_retry(random, races).await;
                if races + 1 == backoff::ATTEMPTS {
                    return Err(backoff::contended_error());
                }
                waiting.push((left, races + 1));
            }
            GroupWriteOutcome::TooLarge(group) | GroupWriteOutcome::LostRace(group) => {
                waiting.extend(group.split().into_iter().rev().map(|half| (half, 0)));
            }
        }
    }
    Ok(())
}

/// Gathers consecutive items into groups. An item is added to the last group if `joins` returns
/// `true` for that group and the item. Otherwise the item begins a new group.
pub(crate) fn group_consecutive_items<T>(
    items: impl IntoIterator<Item = T>,
    joins: impl Fn(&[T], &T) -> bool,
) -> Vec<Vec<T>> {
    let mut groups: Vec<Vec<T>> = Vec::new();
    for item in items {
        match groups.last_mut().filter(|group| joins(group, &item)) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups
}
