//! Writes dirty rows with primaries. They contain the remote copies and lists that workers have to examine.

use crate::{
    batch::Operation,
    entity::TableEntity,
    error::Result,
    limits::{BATCH_OPERATIONS, saturating_u64},
    outbox::registration,
    table::{
        Table,
        bulk::group_writer::{
            GroupWriteOutcome, GroupWriter, group_consecutive_items, write_groups_in_order,
        },
    },
};

/// The maximum number of addresses in the dirty rows of one transaction. Each takes a few KiB at most, and a
/// request may have 4 MiB.
const ADDRESSES_PER_TRANSACTION: usize = 1_000;

/// A write of one dirty row.
pub(crate) struct DirtyRowOperation {
    pub(crate) operation: Operation,
    /// The number of copies and lists in the dirty row.
    pub(crate) addresses: usize,
}

/// Writes dirty rows in transactions of up to 99 rows and the fence. Only consecutive rows of one partition
/// share a transaction. Returns how many addresses they contain.
pub(crate) async fn record_dirty_rows<E: TableEntity>(
    table: &Table<E>,
    rows: impl IntoIterator<Item = DirtyRowOperation>,
) -> Result<u64> {
    let groups = group_consecutive_items(rows, |group: &[DirtyRowOperation], row| {
        let partition_of = |row: &DirtyRowOperation| row.operation.row().partition_key().to_owned();
        let addresses: usize = group.iter().map(|row| row.addresses).sum();
        group.first().map(partition_of) == Some(partition_of(row))
            && group.len() + 1 < BATCH_OPERATIONS
            && addresses < ADDRESSES_PER_TRANSACTION
    });
    let mut writer = DirtyRowWriter { table, recorded: 0 };
    write_groups_in_order(&mut writer, &table.client.store().random, groups).await?;
    Ok(writer.recorded)
}

struct DirtyRowWriter<'t, E> {
    table: &'t Table<E>,
    recorded: u64,
}

impl<E: TableEntity> GroupWriter for DirtyRowWriter<'_, E> {
    type Group = Vec<DirtyRowOperation>;

    async fn attempt(&mut self, group: Self::Group) -> Result<GroupWriteOutcome<Self::Group>> {
        let table = self.table;
        let operations = group.iter().map(|row| row.operation.clone()).collect();
        match registration::record_outbox_rows(table.client.outbox(), &table.name, operations).await
        {
            Ok(_) => {
                let addresses = group.iter().map(|row| row.addresses).sum::<usize>();
                self.recorded += saturating_u64(addresses);
                Ok(GroupWriteOutcome::Done)
            }
            Err(error) if error.is_too_large() && group.len() > 1 => {
                Ok(GroupWriteOutcome::TooLarge(group))
            }
            Err(error) => Err(error),
        }
    }
}
