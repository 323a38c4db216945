//! Mending copies elsewhere: nothing is written there. What looks wrong is recorded beside the
//! primaries, as every writer does, and workers make it what the primaries say.

use std::collections::BTreeMap;

use crate::{
    entity::TableEntity,
    error::Result,
    limits::BATCH_OPERATIONS,
    maintain::check::{Finding, FindingKind},
    outbox::registration,
    plan::outbox::{CopyAddress, merge_dirty_row},
    table::Table,
};

/// Copies of one primary that are recorded at a time: a row has room for some 250 names.
const NAMES: usize = 100;

/// The suspects of one partition, by primary.
type Suspects<'f> = BTreeMap<&'f str, Vec<CopyAddress>>;

/// Records the findings elsewhere among these; how many.
pub(crate) async fn mend<E: TableEntity>(table: &Table<E>, findings: &[Finding]) -> Result<u64> {
    let mut partitions: BTreeMap<&str, Suspects<'_>> = BTreeMap::new();
    for finding in findings.iter().filter(|finding| finding.kind != FindingKind::Contested) {
        if let (Some(name), Some(partition_key), Some(primary)) =
            (&finding.elsewhere, &finding.primary_partition_key, &finding.primary)
        {
            let names = partitions.entry(partition_key).or_default().entry(primary).or_default();
            names.push(CopyAddress::clone(name));
        }
    }
    let mut recorded = 0;
    for (partition_key, suspects) in partitions {
        recorded += record(table, partition_key, suspects).await?;
    }
    Ok(recorded)
}

/// Transactions of up to 99 dirty rows and the fence.
async fn record<E: TableEntity>(
    table: &Table<E>,
    partition_key: &str,
    suspects: Suspects<'_>,
) -> Result<u64> {
    let (mut operations, mut names, mut recorded) = (Vec::new(), 0, 0);
    for (primary, mut suspects) in suspects {
        suspects.truncate(NAMES);
        if operations.len() + 1 == BATCH_OPERATIONS || names >= 10 * NAMES {
            send(table, std::mem::take(&mut operations)).await?;
            recorded += std::mem::take(&mut names);
        }
        operations.push(merge_dirty_row(partition_key, primary, &suspects)?);
        names += suspects.len();
    }
    send(table, operations).await?;
    Ok(u64::try_from(recorded + names).unwrap_or(u64::MAX))
}

async fn send<E: TableEntity>(
    table: &Table<E>,
    operations: Vec<crate::batch::Operation>,
) -> Result<()> {
    registration::record(table.client.outbox(), &table.name, operations).await.map(drop)
}
