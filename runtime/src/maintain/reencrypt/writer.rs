//! Encrypts rows again, and writes them in transactions of one partition each.

#[cfg(feature = "legacy-encryption")]
use std::sync::Arc;

#[cfg(feature = "legacy-encryption")]
use super::legacy::{convert_row, filter_of_legacy_rows};
use super::{
    filter::filter_of_type_rows,
    report::{ReencryptFailure, ReencryptReport},
};
#[cfg(feature = "legacy-encryption")]
use crate::seal::legacy::LegacyKeys;
use crate::{
    address::RowAt,
    entity::{RowKind, RowVersion, TableEntity},
    error::Result,
    filter::Filter,
    limits::BATCH_OPERATIONS,
    row::Row,
    store::sealing::plan::OperationToSeal,
    table::{
        Table,
        bulk::group_writer::{GroupWriteOutcome, GroupWriter, group_consecutive_items},
    },
};

/// Says how a re-encryption rewrites rows.
#[derive(Clone)]
pub(super) enum ReencryptMode {
    /// Encrypts values that are not encrypted with the keys in use.
    CurrentKeys,
    /// Decrypts the format of an earlier library and encrypts in this crate's format.
    #[cfg(feature = "legacy-encryption")]
    FromLegacy(Arc<LegacyKeys>),
}

impl ReencryptMode {
    /// Returns a filter for the rows that may have to be written; `None` for all rows.
    pub(super) fn filter_of_rows_to_write<E: TableEntity>(&self) -> Option<Filter> {
        match self {
            Self::CurrentKeys => filter_of_type_rows(E::SCHEMA),
            // These rows may have no type.
            #[cfg(feature = "legacy-encryption")]
            Self::FromLegacy(_) => Some(filter_of_legacy_rows()),
        }
    }

    /// Returns the write that a row needs; `None` if it needs none.
    async fn plan_write_of_row<E: TableEntity>(
        &self,
        table: &Table<E>,
        row: &Row,
    ) -> Result<Option<OperationToSeal>> {
        match self {
            Self::CurrentKeys => match E::SCHEMA.row_kind_of(row, None)? {
                // Only a program that knows the version can tell what is encrypted in it, and how.
                RowKind::Primary(RowVersion::Unknown(version))
                | RowKind::Copy(_, RowVersion::Unknown(version))
                | RowKind::UnknownCopy(RowVersion::Unknown(version)) => {
                    Err(E::SCHEMA.unknown_version_error(version))
                }
                // The filter finds it for its name alone: its version has no such index.
                RowKind::UnknownCopy(RowVersion::Known(_)) => Ok(None),
                _ => {
                    let sealing = &table.client.store().sealing;
                    sealing.sealing_update(&table.name, E::SCHEMA, row).await
                }
            },
            #[cfg(feature = "legacy-encryption")]
            Self::FromLegacy(keys) => convert_row(table, keys, row).await,
        }
    }
}

/// Splits rows into groups, each of one partition and of at most 100 rows, as a transaction takes.
pub(super) fn split_into_batches(rows: Vec<Row>) -> Vec<Vec<Row>> {
    group_consecutive_items(rows, |group: &[Row], row| {
        group.first().map(Row::partition_key) == Some(row.partition_key())
            && group.len() < BATCH_OPERATIONS
    })
}

/// Writes groups of rows of one table, each row under the ETag that was read, and counts them in a
/// report.
pub(super) struct ReencryptWriter<'r, E> {
    pub(super) table: &'r Table<E>,
    pub(super) mode: &'r ReencryptMode,
    /// Whether the rows are only counted, and not written.
    pub(super) is_dry_run: bool,
    /// The table of the rows: the entity's own, or a table of its remote copies.
    pub(super) at_table: &'r str,
    pub(super) report: &'r mut ReencryptReport,
}

impl<E: TableEntity> GroupWriter for ReencryptWriter<'_, E> {
    type Group = Vec<Row>;

    async fn attempt(&mut self, group: Vec<Row>) -> Result<GroupWriteOutcome<Vec<Row>>> {
        let mut operations: Vec<OperationToSeal> = Vec::new();
        let mut rows: Vec<Row> = Vec::new();
        for row in group {
            match self.mode.plan_write_of_row(self.table, &row).await {
                Ok(None) => {}
                Ok(Some(operation)) => {
                    operations.push(operation);
                    rows.push(row);
                }
                Err(error) if error.concerns_one_row() => {
                    let error = error.in_table(self.at_table);
                    self.report.failed.push(ReencryptFailure::of_row(&row, error));
                }
                Err(error) => return Err(error.in_table(self.at_table)),
            }
        }
        // Decrypted and encrypted as in a real run, so that its failures are reported too.
        if self.is_dry_run {
            self.report.remaining += u64::try_from(rows.len()).unwrap_or(u64::MAX);
            return Ok(GroupWriteOutcome::Done);
        }
        let store = self.table.client.store();
        let error = match store.seal_and_write(self.at_table, operations).await {
            Ok(_) => {
                self.report.rewritten += u64::try_from(rows.len()).unwrap_or(u64::MAX);
                return Ok(GroupWriteOutcome::Done);
            }
            Err(error) => error,
        };
        if error.is_too_large() {
            if rows.len() > 1 {
                return Ok(GroupWriteOutcome::TooLarge(rows));
            }
            self.report
                .failed
                .extend(rows.iter().map(|row| ReencryptFailure::of_row(row, error.clone())));
            return Ok(GroupWriteOutcome::Done);
        }
        // Without a position the group had one operation.
        let position = error.failed_index().unwrap_or(0);
        if !error.is_superseded() || position >= rows.len() {
            return Err(error);
        }
        // Only the row that changed is read again; the others go into the next attempt as they are.
        let changed = rows.remove(position);
        let (partition_key, row_key) = changed.keys();
        rows.extend(store.read_row(RowAt::new(self.at_table, partition_key, row_key)).await?);
        Ok(GroupWriteOutcome::LostRace(rows))
    }
}
