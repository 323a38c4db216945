//! The requests of one call in sending order, each with the partitions that it goes to.

use serde::{Deserialize, Serialize};

use super::{
    question::{
        Elsewhere, PartitionUse, QueryWork, Question, Requests, Work, number, requests_of_write,
    },
    write_cost::CostModel,
};
use crate::{query::list_query::POINT_READS, table::bulk::run::CONCURRENCY};

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum RequestKind {
    /// Reads one row.
    Read,
    /// Reads a page of rows.
    Page,
    /// Lists tables.
    Tables,
    /// Writes one row, or several in an entity group transaction.
    Write,
    /// Reads, writes or deletes a blob.
    Blob,
}

/// Requests of one kind that a call sends in the same stage, to the same partitions. Requests that list tables or
/// concern a blob have no partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Step {
    pub(super) kind: RequestKind,
    /// The partitions that the requests go to. `None` for requests that list tables or concern a blob.
    pub(super) partition: Option<PartitionUse>,
    pub(super) requests: u64,
    /// The number of rows that the requests of the step read or write together.
    pub(super) entities: u64,
    /// The number of partitions that the requests of one call share evenly, such as those of dated tables.
    pub(super) spread: u64,
    /// The number of the stage. Requests of one stage are sent together, after the answers to the previous stage.
    pub(super) stage: u64,
    /// The number of requests of the stage that are in flight at the same time.
    pub(super) at_once: u64,
    /// Whether the requests are sent after the call has returned to its caller.
    pub(super) is_after: bool,
}

impl Step {
    fn new(kind: RequestKind, requests: u64, entities: u64) -> Self {
        Self {
            kind,
            partition: None,
            requests,
            entities,
            spread: 1,
            stage: 0,
            at_once: requests.max(1),
            is_after: false,
        }
    }

    fn of(self, partition: &PartitionUse) -> Self {
        Self { partition: Some(partition.clone()), ..self }
    }

    fn in_stage(self, stage: u64) -> Self {
        Self { stage, ..self }
    }

    fn after_answer(self, stage: u64) -> Self {
        Self { stage, is_after: true, ..self }
    }

    fn at_once(self, at_once: u64) -> Self {
        Self { at_once, ..self }
    }

    fn spread(self, spread: u64) -> Self {
        Self { spread, ..self }
    }
}

impl Question {
    /// Returns the steps of one call that finds `items` entities, in `tables` dated tables. For a bulk load,
    /// `items` is the number of entities that it writes, to `partitions` partitions.
    pub(super) fn steps(&self, items: u64, tables: Option<u64>, partitions: u64) -> Vec<Step> {
        let mut steps = match &self.work {
            Work::Point { parts } => {
                vec![Step::new(RequestKind::Read, *parts, *parts).of(&self.partition)]
            }
            Work::Query(query) if query.reads_each => self.steps_of_list(query, items),
            Work::Query(query) => self.steps_of_pages(query, items, tables),
            Work::Write(cost) => self.steps_of_write(cost),
            Work::Bulk(load) => self.steps_of_bulk_load(&load.requests(items, partitions)),
        };
        steps.retain(|step| step.requests > 0);
        steps
    }

    fn steps_of_pages(&self, query: &QueryWork, items: u64, tables: Option<u64>) -> Vec<Step> {
        let pages = query.predict_pages(items, tables);
        let scan = |requests, rows| {
            Step::new(RequestKind::Page, requests, rows).of(&self.partition).spread(pages.spread)
        };
        let first_rows = pages.rows.saturating_sub(pages.later_rows);
        vec![
            Step::new(RequestKind::Tables, pages.lists, 0).at_once(1),
            scan(pages.first, first_rows).in_stage(1).at_once(pages.at_once),
            scan(pages.later, pages.later_rows).in_stage(2).at_once(1),
        ]
    }

    fn steps_of_list(&self, query: &QueryWork, items: u64) -> Vec<Step> {
        let Requests { reads, .. } = query.requests_of_list(items);
        let ids = if query.is_in_blob {
            Step::new(RequestKind::Blob, 1, 0)
        } else {
            Step::new(RequestKind::Page, 1, 1).of(&self.partition)
        };
        let at_once = number(POINT_READS);
        let entities = Step::new(RequestKind::Read, reads, reads).in_stage(1).at_once(at_once);
        vec![ids, entities.of(query.primaries.as_ref().unwrap_or(&self.partition))]
    }

    /// Returns the steps of a bulk load: all reads, then all reservations, all transactions and all copies.
    fn steps_of_bulk_load(&self, load: &Requests) -> Vec<Step> {
        let step = |kind, requests, partition: &PartitionUse| {
            Step::new(kind, requests, requests).of(partition).at_once(number(CONCURRENCY))
        };
        let elsewhere = |count: fn(&Elsewhere) -> u64| {
            let of_entity: u64 = self.elsewhere.iter().map(count).sum();
            of_entity.saturating_mul(load.entities)
        };
        let reads = load.reads.saturating_sub(elsewhere(|one| one.reads));
        let reserved = elsewhere(|one| one.reservations);
        let writes = load.writes.saturating_sub(reserved);
        // Without reservations, a write is an entity of one row that is left alone.
        let alone = if reserved == 0 { writes } else { 0 };
        let transactions = Step {
            entities: load.rows.saturating_sub(alone),
            ..step(RequestKind::Write, load.transactions, &self.partition)
        };
        let after = load.after.saturating_sub(elsewhere(|one| one.writes));
        let uploads = Step::new(RequestKind::Blob, load.blobs, 0).at_once(number(CONCURRENCY));
        let mut steps = vec![step(RequestKind::Read, reads, &self.partition), uploads];
        let each = |one: &Elsewhere, kind, requests: u64| {
            step(kind, requests.saturating_mul(load.entities), &one.partition)
        };
        let families = || self.elsewhere.iter();
        steps.extend(families().map(|one| each(one, RequestKind::Read, one.reads)));
        steps.push(step(RequestKind::Write, writes, &self.partition).in_stage(1));
        let reservations =
            families().map(|one| each(one, RequestKind::Write, one.reservations).in_stage(2));
        steps.extend(reservations);
        steps.push(transactions.in_stage(3));
        let copies =
            families().map(|one| each(one, RequestKind::Write, one.writes).after_answer(4));
        steps.extend(copies);
        steps.push(step(RequestKind::Write, after, &self.partition).after_answer(5));
        steps
    }

    /// Returns the steps of a write. The requests to other partitions are known for each row family. The rest of the
    /// cost is in the primary's partition.
    fn steps_of_write(&self, cost: &CostModel) -> Vec<Step> {
        let Requests { reads, writes, transactions, after, rows, round_trips, .. } =
            requests_of_write(cost);
        let elsewhere =
            |count: fn(&Elsewhere) -> u64| self.elsewhere.iter().map(count).sum::<u64>();
        let reserved = elsewhere(|one| one.reservations);
        // The claim comes first, then all reservations together; a write of one row needs no transaction.
        let claims = (writes + transactions).saturating_sub(1).saturating_sub(reserved);
        let uploads = number(cost.uploads);
        let write_stages = 1 + u64::from(uploads > 0) + 2 * u64::from(claims > 0);
        let read_stages = round_trips.saturating_sub(write_stages);
        let own_reads = reads.saturating_sub(elsewhere(|one| one.reads));
        let mut steps = Vec::new();
        let reads = std::iter::once((own_reads, &self.partition))
            .chain(self.elsewhere.iter().map(|one| (one.reads, &one.partition)));
        let mut stage = 0;
        for (requests, partition) in reads {
            for _ in 0..requests {
                // Reads of one stage are sent together: what exceeds the number of stages joins the last one.
                let last = read_stages.saturating_sub(1);
                steps.push(
                    Step::new(RequestKind::Read, 1, 1).of(partition).in_stage(stage.min(last)),
                );
                stage += 1;
            }
        }
        let stage = read_stages;
        steps.push(Step::new(RequestKind::Blob, uploads, 0).in_stage(stage));
        let stage = stage + 1;
        let write = |requests, entities| Step::new(RequestKind::Write, requests, entities);
        steps.push(write(claims, claims).of(&self.partition).in_stage(stage));
        let reservations = self.elsewhere.iter().map(|one| {
            write(one.reservations, one.reservations).of(&one.partition).in_stage(stage + 1)
        });
        steps.extend(reservations);
        steps.push(write(1, rows).of(&self.partition).in_stage(stage + 2));
        let copies = self
            .elsewhere
            .iter()
            .map(|one| write(one.writes, one.writes).of(&one.partition).after_answer(stage + 3));
        steps.extend(copies);
        let removals = Step::new(RequestKind::Blob, number(cost.removals), 0);
        steps.push(removals.after_answer(stage + 3));
        let own_after = after.saturating_sub(elsewhere(|one| one.writes));
        steps.push(write(own_after, own_after).of(&self.partition).after_answer(stage + 4));
        steps
    }
}
