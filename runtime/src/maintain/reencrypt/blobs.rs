//! Encrypts the blobs of a field that became encrypted: writes the bytes to a new blob, then a row with the
//! new blob's name and key.

use super::report::{ReencryptFailure, ReencryptReport};
use crate::{
    entity::{RowVersion, Schema, TableEntity},
    error::{Error, ErrorKind, Result},
    row::Row,
    store::backoff::{self, Attempt},
    table::Table,
};

/// Returns whether a row is a primary that points to an unencrypted blob in a field that any version encrypts.
pub(super) fn names_plain_blob(schema: &'static Schema, row: &Row) -> Result<bool> {
    if !schema.versions().any(|version| version.blobs.iter().any(|names| names.key.is_some())) {
        return Ok(false);
    }
    if schema.version_of_primary(row)?.is_none() {
        return Ok(false);
    }
    for names in schema.versions().flat_map(|version| version.blobs) {
        let Some(key) = names.key else { continue };
        if row.get(names.name)?.is_some() && row.get(key)?.is_none() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Encrypts the plain blobs of one entity and counts it in the report.
///
/// Replaces the entity as `Table::replace` does: uploads the new blobs, writes the row and its copies, then
/// deletes the plain blobs. A dry run reads the entity and writes nothing.
pub(super) async fn encrypt_plain_blobs<E: TableEntity>(
    table: &Table<E>,
    row: &Row,
    is_dry_run: bool,
    report: &mut ReencryptReport,
) -> Result<()> {
    match replace_until_encrypted(table, row, is_dry_run).await {
        Ok(false) => Ok(()),
        Ok(true) if is_dry_run => {
            report.remaining += 1;
            Ok(())
        }
        Ok(true) => {
            report.rewritten += 1;
            Ok(())
        }
        // An entity that cannot be read or written goes into the report and does not stop the run.
        Err(error) if error.concerns_one_entity() => {
            report.failed.push(ReencryptFailure::of_row(row, error.in_table(&table.name)));
            Ok(())
        }
        Err(error) => Err(error.in_table(&table.name)),
    }
}

/// Replaces an entity until it has no plain blobs. Returns whether it had any.
async fn replace_until_encrypted<E: TableEntity>(
    table: &Table<E>,
    row: &Row,
    is_dry_run: bool,
) -> Result<bool> {
    let (partition_key, row_key) = row.keys();
    let outbox = table.client.outbox();
    let attempts = outbox.options.attempts;
    let replaced = backoff::retry_lost_races(&outbox.store.random, attempts, || async {
        let Some(stored) = table.read_primary(partition_key, row_key).await? else {
            return Ok(Attempt::Done(false));
        };
        if !names_plain_blob(E::SCHEMA, stored.row())? {
            return Ok(Attempt::Done(false));
        }
        check_version(E::SCHEMA, stored.row())?;
        if is_dry_run {
            return Ok(Attempt::Done(true));
        }
        // Kept to distinguish a replaced blob from a missing one.
        let etag = stored.etag();
        match table.replace(&stored).await {
            Ok(_) => Ok(Attempt::Done(true)),
            Err(error) if error.is_row_changed_or_gone() => Ok(Attempt::Raced),
            // Another writer replaced the blob while it was read, or the blob is missing.
            Err(error) if error.is_stale() => {
                let now = table.read_primary(partition_key, row_key).await?;
                // The row has not changed, so its blob is missing, and another attempt would not help.
                if now.is_some_and(|now| now.etag() == etag) {
                    Err(error)
                } else {
                    Ok(Attempt::Raced)
                }
            }
            Err(error) => Err(error),
        }
    });
    let contended = || backoff::contended_attempts_error(attempts).at_keys(partition_key, row_key);
    replaced.await?.ok_or_else(contended)
}

/// Refuses a row of an older version, which a replacement would upgrade.
fn check_version(schema: &'static Schema, row: &Row) -> Result<()> {
    match schema.version_of_primary(row)? {
        Some(RowVersion::Known(found)) if found.version != schema.version => {
            let message = "the row has an older version and its blob is not encrypted; run `upgrade_all()`, which \
                           writes the current version and encrypts the blob";
            Err(Error::new(ErrorKind::UnrecognizedEntity, message)
                .at_keys(row.partition_key(), row.row_key()))
        }
        _ => Ok(()),
    }
}
