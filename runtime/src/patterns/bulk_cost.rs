//! Computes the requests of a bulk load, whose transactions are as full as the transactions of [`Bulk`](crate::Bulk).

use super::{question::Requests, write_cost::CostModel};
use crate::{
    entity::Schema,
    limits::{saturating_u64, saturating_usize},
    table::bulk::{group::room_for_changes, run::CONCURRENCY},
};

/// A bulk load of new entities of one type, which arrive partition by partition.
#[derive(Debug, Clone)]
pub(super) struct BulkWork {
    /// The cost of one insert.
    insert: CostModel,
    /// Whether transactions of one partition wait for each other, because they may write the same list.
    is_in_turn: bool,
}

/// The number and sizes of the transactions of a bulk load. The numbers of entities in two partitions differ by at most
/// one.
#[derive(Debug, Clone, Copy)]
struct Groups {
    /// The number of all transactions.
    all: u64,
    /// The number of full transactions in the partition with the most entities.
    full_of_partition: u64,
    partitions: u64,
    /// The number of partitions whose last transaction is not full.
    with_rest: u64,
    /// The number of transactions that write a single entity.
    of_one: u64,
    /// The number of entities in the largest transaction.
    largest: u64,
    /// The number of entities in the largest transaction that is not full; 0 if all are full.
    largest_rest: u64,
}

impl BulkWork {
    /// Creates the bulk load of entities that cost `insert` each.
    pub(super) fn from_insert_cost(schema: &Schema, insert: CostModel) -> Self {
        Self {
            insert,
            is_in_turn: schema.families.iter().any(|family| family.is_list() && !family.is_remote),
        }
    }

    /// Returns the number of operations that a transaction has once for all of its entities: the write of the
    /// partition's fence, and the deletion of the claim that reserved unique keys.
    fn shared_rows(&self) -> usize {
        usize::from(self.insert.has_fence()) + usize::from(self.insert.has_claim())
    }

    /// Returns the number of entities in a full transaction.
    fn entities_of_transaction(&self) -> u64 {
        let shared = self.shared_rows();
        let of_entity = self.insert.operations - shared;
        number(room_for_changes(shared).checked_div(of_entity).unwrap_or(1).max(1))
    }

    fn groups(&self, entities: u64, partitions: u64) -> Groups {
        let partitions = partitions.clamp(1, entities.max(1));
        let full = self.entities_of_transaction();
        let (less, with_more) = (entities / partitions, entities % partitions);
        let of = |count: u64, entities: u64| (count, entities.div_ceil(full), entities % full);
        let sizes = [of(with_more, less + 1), of(partitions - with_more, less)];
        let sum = |each: &dyn Fn((u64, u64, u64)) -> u64| {
            sizes.iter().fold(0_u64, |sum, size| sum.saturating_add(each(*size)))
        };
        let most = less + u64::from(with_more > 0);
        Groups {
            all: sum(&|(count, groups, _)| count.saturating_mul(groups)),
            full_of_partition: most / full,
            partitions,
            with_rest: sum(&|(count, _, rest)| if rest > 0 { count } else { 0 }),
            of_one: match full {
                1 => entities,
                _ => sum(&|(count, _, rest)| if rest == 1 { count } else { 0 }),
            },
            largest: most.min(full),
            largest_rest: sizes
                .iter()
                .map(|(count, _, rest)| if *count > 0 { *rest } else { 0 })
                .max()
                .unwrap_or(0),
        }
    }

    /// Returns the requests of a load of `entities` entities, spread evenly over `partitions` partitions.
    pub(super) fn requests(&self, entities: u64, partitions: u64) -> Requests {
        let groups = self.groups(entities, partitions);
        let insert = &self.insert;
        let each = |count: usize| number(count).saturating_mul(entities);
        // An entity of one row alone is one write, and no transaction.
        let writes = if insert.operations == 1 { groups.of_one } else { 0 };
        let claims = u64::from(insert.has_claim());
        let reserved = insert.reservations - usize::from(insert.has_claim());
        let own_rows = insert.operations - self.shared_rows();
        Requests {
            reads: each(insert.reads),
            writes: writes
                .saturating_add(each(reserved))
                .saturating_add(claims.saturating_mul(groups.all)),
            transactions: groups.all - writes,
            after: each(insert.after),
            blobs: each(insert.uploads),
            rows: each(own_rows)
                .saturating_add(number(self.shared_rows()).saturating_mul(groups.all)),
            round_trips: self.round_trips(groups),
            entities,
            ..Requests::default()
        }
    }

    /// Returns how many round trips the load takes with its transactions in flight at the same time. Full transactions
    /// come first, because the rest of each partition is sent at the end.
    fn round_trips(&self, groups: Groups) -> u64 {
        let of = |entities: u64| {
            let entities = saturating_usize(entities);
            number(self.insert.stages.for_equal_writes(entities).round_trips() + 1)
        };
        let (of_full, of_rest) = (of(groups.largest), of(groups.largest_rest));
        let at_once = number(CONCURRENCY);
        let full = groups.all - groups.with_rest;
        if self.is_in_turn {
            // Each full transaction waits for the one before it of its partition, and keeps later ones waiting.
            let first = groups.full_of_partition.saturating_sub(1);
            let waits = first.saturating_mul(groups.partitions);
            let in_turn = waits.saturating_add(u64::from(full > 0)).saturating_mul(of_full);
            let rests = groups.with_rest.div_ceil(at_once).saturating_mul(of_rest);
            return in_turn.saturating_add(rests);
        }
        let begin = (full / at_once).saturating_mul(of_full);
        let busy = full % at_once;
        if groups.with_rest == 0 {
            return begin.saturating_add(if busy > 0 { of_full } else { 0 });
        }
        // The rests that are done after `time` round trips, while the last full transactions are in flight.
        let done = |time: u64| {
            let later = time.saturating_sub(of_full) / of_rest;
            busy.saturating_mul(later)
                .saturating_add((at_once - busy).saturating_mul(time / of_rest))
        };
        let latest = of_full.saturating_add(groups.with_rest.saturating_mul(of_rest));
        let last = first_that(latest, |time| done(time) >= groups.with_rest);
        begin.saturating_add(if busy > 0 { last.max(of_full) } else { last })
    }

    /// Returns the number of operations in the largest transaction.
    pub(super) fn largest_transaction(&self, entities: u64, partitions: u64) -> u64 {
        let own_rows = number(self.insert.operations - self.shared_rows());
        let largest = self.groups(entities, partitions).largest;
        own_rows.saturating_mul(largest).saturating_add(number(self.shared_rows()))
    }
}

/// Returns the smallest number for which `holds` is true. Requires that `holds` is true for `last`, and for every
/// number above one for which it is true.
fn first_that(last: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut fails_below, mut holds_from) = (0, last);
    while fails_below < holds_from {
        let middle = fails_below + (holds_from - fails_below) / 2;
        if holds(middle) {
            holds_from = middle;
        } else {
            fails_below = middle + 1;
        }
    }
    holds_from
}

fn number(count: usize) -> u64 {
    saturating_u64(count)
}
