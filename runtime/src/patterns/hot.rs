//! Finds the partitions that get more entities per second than one partition can take.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    markdown::number,
    plan::{Plan, count_to_f64},
    question::{PartitionShape, PartitionUse},
    steps::RequestKind,
};
use crate::limits::PARTITION_ENTITIES_PER_SECOND;

/// Partitions of a row family whose load exceeds the documented limit of one partition,
/// [`PARTITION_ENTITIES_PER_SECOND`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct HotPartition {
    /// The table.
    pub table: String,
    /// The template of the PartitionKey.
    pub partition_key: String,
    /// The entities per second that are read and written in the partition with the most load.
    pub entities_per_second: f64,
    /// The minimum number of partitions that can take the load.
    pub partitions_needed: u64,
    /// The advice for sharing the load among more partitions, as an English clause: "begin the PartitionKey with a
    /// bucket", for example.
    pub cure: String,
}

impl HotPartition {
    /// Returns a sentence with the partition, its load and the advice. Keys and tables are in backquotes.
    pub(super) fn words(&self) -> String {
        format!(
            "`{}` of `{}` gets {} entities/s in one partition and needs {} partitions: {}.",
            self.partition_key,
            self.table,
            number(self.entities_per_second),
            self.partitions_needed,
            self.cure
        )
    }
}

/// The load of the hottest partition of a row family.
#[derive(Debug, Default)]
pub(super) struct HottestPartitionLoad {
    pub(super) reads: f64,
    pub(super) writes: f64,
}

impl HottestPartitionLoad {
    pub(super) fn total(&self) -> f64 {
        self.reads + self.writes
    }
}

impl Plan {
    /// Returns the load of the hottest partition of each row family. This is the sum of the loads of all patterns, each
    /// spread evenly over the number of partitions that the pattern states.
    pub(super) fn partition_loads(&self) -> BTreeMap<&PartitionUse, HottestPartitionLoad> {
        let mut loads: BTreeMap<&PartitionUse, HottestPartitionLoad> = BTreeMap::new();
        for call in &self.calls {
            for step in &call.steps {
                let Some(partition) = &step.partition else { continue };
                let partitions =
                    count_to_f64(call.partitions.max(1)) * count_to_f64(step.spread.max(1));
                let entities = count_to_f64(step.entities) * call.per_second / partitions;
                let load = loads.entry(partition).or_default();
                match step.kind {
                    RequestKind::Write => load.writes += entities,
                    _ => load.reads += entities,
                }
            }
        }
        loads
    }

    /// Returns how many entities per second are read and written in the partition with the most load.
    ///
    /// ```
    /// # use entable::prelude::*;
    /// # #[derive(TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
    /// # pub struct Employee { pub department: String, pub id: u32 }
    /// entable::access_patterns! {
    ///     STAFF;
    ///     "everybody" partition_scan query(Employee::primary().department("Sales")) rows 50 at 8/s over 4;
    ///     "change" write update::<Employee>() at 40/s over 4;
    /// }
    /// // An update reads the entity and writes it.
    /// assert_eq!(STAFF.plan().hottest_load(), 100.0 + 20.0);
    /// ```
    pub fn hottest_load(&self) -> f64 {
        self.partition_loads().values().fold(0.0, |most, load| load.total().max(most))
    }

    /// Returns the partitions that get more load than one partition can take, with the design guide's advice. The load
    /// of a pattern without `over` counts for a single partition.
    pub fn hot_partitions(&self) -> Vec<HotPartition> {
        let target = f64::from(PARTITION_ENTITIES_PER_SECOND);
        let loads = self.partition_loads().into_iter();
        loads
            .filter(|(_, load)| load.total() > target)
            .map(|(partition, load)| HotPartition {
                table: partition.table.clone(),
                partition_key: partition.key.clone(),
                entities_per_second: load.total(),
                partitions_needed: partitions_for(load.total() / target),
                cure: cure_of(partition, &load),
            })
            .collect()
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive number of partitions; a cast saturates"
)]
const fn partitions_for(times_target: f64) -> u64 {
    times_target.ceil() as u64
}

fn cure_of(partition: &PartitionUse, load: &HottestPartitionLoad) -> String {
    match partition.shape {
        PartitionShape::Constant => {
            "all rows share one PartitionKey: begin it with a bucket, such as `{id:bucket(16)}`, or with \
             a field"
        }
        PartitionShape::Time => {
            "the PartitionKey is a time, so all writers meet: begin it with a bucket or a field, and put \
             the time into the RowKey"
        }
        PartitionShape::Fields if load.writes > load.reads => {
            "say with `over` how many partitions share the load; if it is one, add a bucket to the key, or \
             put a queue in front of the writes"
        }
        PartitionShape::Fields => {
            "say with `over` how many partitions share the load; if it is one, read through an index in other \
             partitions, or keep the answer in a `Lookup`"
        }
    }
    .to_owned()
}
