//! Encrypts rows again and writes them in transactions, each for one partition.

#[cfg(feature = "legacy-encryption")]
use std::sync::Arc;

#[cfg(feature = "legacy-encryption")]
use super::legacy::{convert_row, filter_of_legacy_rows, spelled_key_taken_error};
use super::{
    filter::filter_of_type_rows,
    report::{ReencryptFailure, ReencryptReport},
};
#[cfg(feature = "legacy-encryption")]
use crate::seal::legacy::LegacyKeys;
use crate::{
    entity::{RowKind, RowVersion, TableEntity},
    error::{Error, Result},
    filter::Filter,
    limits::{BATCH_OPERATIONS, saturating_u64},
    row::Row,
    store::sealing::plan::OperationToSeal,
    table::{
        Table,
        bulk::group_writer::{GroupWriteOutcome, GroupWriter, group_consecutive_items},
    },
};

/// How a re-encryption rewrites rows.
#[derive(Clone)]
pub(super) enum ReencryptMode {
    /// Encrypts values that are not encrypted with the keys in use.
    CurrentKeys,
    /// Decrypts the format of an earlier library and encrypts in this crate's format.
    #[cfg(feature = "legacy-encryption")]
    FromLegacy(Arc<LegacyKeys>),
}

impl ReencryptMode {
    /// Returns a filter for the rows that may have to be written, or `None` for all rows.
    pub(super) fn filter_of_rows_to_write<E: TableEntity>(&self) -> Option<Filter> {
        match self {
            Self::CurrentKeys => filter_of_type_rows(E::SCHEMA),
            // These rows may have no type.
            #[cfg(feature = "legacy-encryption")]
            Self::FromLegacy(_) => Some(filter_of_legacy_rows()),
        }
    }

    /// Returns the writes that a row needs, if any.
    async fn plan_writes_of_row<E: TableEntity>(
        &self,
        table: &Table<E>,
        row: &Row,
    ) -> Result<Vec<OperationToSeal>> {
        match self {
            Self::CurrentKeys => match E::SCHEMA.row_kind_of(row, None)? {
                // Only a program that knows the version knows what is encrypted in it, and how.
                RowKind::Primary(RowVersion::Unknown(version))
                | RowKind::Copy(_, RowVersion::Unknown(version))
                | RowKind::UnknownCopy(RowVersion::Unknown(version)) => {
                    Err(E::SCHEMA.unknown_version_error(version))
                }
                // The filter matches the row's type name, but its version has no such index.
                RowKind::UnknownCopy(RowVersion::Known(_)) => Ok(Vec::new()),
                _ => {
                    let sealing = &table.client.store().sealing;
                    let update = sealing.sealing_update(&table.name, E::SCHEMA, row).await?;
                    Ok(update.into_iter().collect())
                }
            },
            #[cfg(feature = "legacy-encryption")]
            Self::FromLegacy(keys) => convert_row(table, keys, row).await,
        }
    }
}

/// Splits rows into groups for transactions, each with at most 100 rows of one partition.
pub(super) fn split_into_batches(rows: Vec<Row>) -> Vec<Vec<Row>> {
    group_consecutive_items(rows, |group: &[Row], row| {
        group.first().map(Row::partition_key) == Some(row.partition_key())
            && group.len() < BATCH_OPERATIONS
    })
}

/// Writes groups of rows of one table, each row under the ETag that was read. Counts them in a report.
pub(super) struct ReencryptWriter<'r, E> {
    pub(super) table: &'r Table<E>,
    pub(super) mode: &'r ReencryptMode,
    /// Whether the rows are only counted.
    pub(super) is_dry_run: bool,
    /// The table of the rows: the entity's own, or a table of its remote copies.
    pub(super) at_table: &'r str,
    pub(super) report: &'r mut ReencryptReport,
}

/// The rows of a group that have to be written, and their operations.
#[derive(Default)]
struct PlannedGroup {
    rows: Vec<Row>,
    operations: Vec<OperationToSeal>,
    /// For each operation, the position of its row in `rows`.
    owners: Vec<usize>,
}

impl<E: TableEntity> ReencryptWriter<'_, E> {
    /// Plans the writes of a group. Reports and leaves out rows that cannot be written.
    async fn plan_group(&mut self, group: Vec<Row>) -> Result<PlannedGroup> {
        let mut planned = PlannedGroup::default();
        for row in group {
            match self.mode.plan_writes_of_row(self.table, &row).await {
                Ok(operations) if operations.is_empty() => {}
                Ok(operations) => {
                    planned.owners.extend(operations.iter().map(|_| planned.rows.len()));
                    planned.operations.extend(operations);
                    planned.rows.push(row);
                }
                Err(error) if error.concerns_one_row() => self.report_failure(&row, error),
                Err(error) => return Err(error.in_table(self.at_table)),
            }
        }
        Ok(planned)
    }

    fn report_failure(&mut self, row: &Row, error: Error) {
        let error = error.in_table(self.at_table);
        self.report.failed.push(ReencryptFailure::of_row(row, error));
    }

    /// Decides what a failed transaction means for the rows of its group. `position` is the position of the row whose
    /// operation failed.
    async fn handle_failure(
        &mut self,
        error: Error,
        mut rows: Vec<Row>,
        position: usize,
    ) -> Result<GroupWriteOutcome<Vec<Row>>> {
        if error.is_too_large() {
            if rows.len() > 1 {
                return Ok(GroupWriteOutcome::TooLarge(rows));
            }
            rows.iter().for_each(|row| self.report_failure(row, error.clone()));
            return Ok(GroupWriteOutcome::Done);
        }
        if position >= rows.len() {
            return Err(error);
        }
        #[cfg(feature = "legacy-encryption")]
        if error.row_exists() {
            let row = rows.remove(position);
            self.report_failure(&row, spelled_key_taken_error(&row));
            return Ok(GroupWriteOutcome::Rest(rows));
        }
        if !error.is_row_changed_or_gone() {
            return Err(error);
        }
        // Read only the changed row again. The others go into the next attempt as they are.
        let changed = rows.remove(position);
        let (partition_key, row_key) = changed.keys();
        let store = self.table.client.store();
        let at = store.names().row_at(self.at_table, partition_key, row_key);
        rows.extend(store.read_row(at).await?);
        Ok(GroupWriteOutcome::LostRace(rows))
    }
}

impl<E: TableEntity> GroupWriter for ReencryptWriter<'_, E> {
    type Group = Vec<Row>;

    async fn attempt(&mut self, group: Vec<Row>) -> Result<GroupWriteOutcome<Vec<Row>>> {
        let PlannedGroup { rows, operations, owners } = self.plan_group(group).await?;
        let count = saturating_u64(rows.len());
        // Encrypt even in a dry run, which reports the failures of a real one.
        if self.is_dry_run {
            self.report.remaining += count;
            return Ok(GroupWriteOutcome::Done);
        }
        // A row has at most two operations, so the group has several rows.
        if operations.len() > BATCH_OPERATIONS {
            return Ok(GroupWriteOutcome::TooLarge(rows));
        }
        let store = self.table.client.store();
        match store.seal_and_write(self.at_table, operations, None).await {
            Ok(_) => {
                self.report.rewritten += count;
                Ok(GroupWriteOutcome::Done)
            }
            Err(error) => {
                // An error without a position means that the group had one row.
                let failed = owners.get(error.failed_index().unwrap_or(0)).copied();
                self.handle_failure(error, rows, failed.unwrap_or(usize::MAX)).await
            }
        }
    }
}
