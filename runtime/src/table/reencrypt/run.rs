//! A re-encryption under way: page by page, transactions of one partition each.

use super::{Reencrypt, ReencryptProgress, ReencryptReport, Unsealed, What};
use crate::{
    backend::{Read, Scan},
    edm::Value,
    entity::{Discriminator, SEAL, Schema, TableEntity},
    error::{Error, ErrorKind, Result},
    filter::Filter,
    key::FamilyKind,
    limits::{BATCH_OPERATIONS, PAGE_ROWS},
    page::{Cursor, fingerprint},
    row::Row,
    seal::{KeyId, id_range},
    table::{backoff, vault::Placed},
};

impl<E: TableEntity> Reencrypt<E> {
    pub(super) async fn run(self) -> Result<ReencryptReport> {
        let place = |error: Error| error.in_table(&self.table.name);
        if let Some(size) = self.page_size.filter(|size| *size == 0 || *size > PAGE_ROWS) {
            let message = format!("a page has 1 to {PAGE_ROWS} rows, not {size}");
            return Err(place(Error::new(ErrorKind::Invalid, message)));
        }
        let mut report = ReencryptReport::default();
        let filter = self.filter();
        let own = fingerprint(&format!("reencrypt\u{0}{}\u{0}{filter}", self.table.name));
        let mut cursor = self.start.clone();
        loop {
            if cursor.as_ref().is_some_and(|cursor| cursor.fingerprint != own) {
                let message = "the cursor belongs to another query or another re-encryption";
                return Err(place(Error::new(ErrorKind::InvalidCursor, message)));
            }
            let page = self.table.client.scan(Scan {
                table: &self.table.name,
                filter: &filter,
                select: None,
                top: self.page_size,
                from: cursor.as_ref().map(|cursor| &cursor.at),
            });
            let page = page.await?;
            report.rows += u64::try_from(page.rows.len()).unwrap_or(u64::MAX);
            for group in groups(page.rows) {
                self.group(group, &mut report).await?;
            }
            cursor = page.next.map(|at| Cursor { fingerprint: own, returned: 0, at });
            if let Some(on_progress) = &self.on_progress {
                let (rows, rewritten) = (report.rows, report.rewritten);
                on_progress(&ReencryptProgress { rows, rewritten, cursor: cursor.clone() });
            }
            if cursor.is_none() {
                return Ok(report);
            }
        }
    }

    fn filter(&self) -> Filter {
        let partition = self.partition.as_deref().map(|key| Filter::eq("PartitionKey", key));
        #[cfg(feature = "legacy-encryption")]
        if let What::Legacy(_) = self.what {
            return Filter::all(partition.into_iter().chain([super::legacy::filter()]));
        }
        let retired = (!self.retired.is_empty()).then(|| sealed_with(E::SCHEMA, &self.retired));
        Filter::all(partition.into_iter().chain(of_type(E::SCHEMA)).chain(retired))
    }

    /// The write that a row needs, if it needs one.
    async fn rewritten(&self, row: &Row) -> Result<Option<Placed>> {
        match &self.what {
            What::Keys => {
                let vault = &self.table.client.vault;
                vault.resealed(&self.table.name, E::SCHEMA, row).await
            }
            #[cfg(feature = "legacy-encryption")]
            What::Legacy(keys) => self.migrated(keys, row).await,
        }
    }

    /// Seals the rows of one partition, again where another writer was first.
    async fn group(&self, mut rows: Vec<Row>, report: &mut ReencryptReport) -> Result<()> {
        let mut attempt = 0;
        while !rows.is_empty() {
            let mut placed: Vec<Placed> = Vec::new();
            let mut kept: Vec<Row> = Vec::new();
            for row in rows {
                match self.rewritten(&row).await {
                    Ok(None) => {}
                    Ok(Some(operation)) => {
                        placed.push(operation);
                        kept.push(row);
                    }
                    Err(error) if is_of_row(&error) => {
                        report.failed.push(unsealed(&row, error.in_table(&self.table.name)));
                    }
                    Err(error) => return Err(error.in_table(&self.table.name)),
                }
            }
            let written = u64::try_from(placed.len()).unwrap_or(u64::MAX);
            let error = match self.table.client.write(&self.table.name, placed).await {
                Ok(_) => {
                    report.rewritten += written;
                    return Ok(());
                }
                Err(error) => error,
            };
            rows = self.after(error, kept, attempt, report).await?;
            attempt += 1;
        }
        Ok(())
    }

    /// What is still to be written after a transaction failed.
    async fn after(
        &self,
        error: Error,
        mut rows: Vec<Row>,
        attempt: u32,
        report: &mut ReencryptReport,
    ) -> Result<Vec<Row>> {
        let at = error.failed_index().unwrap_or(0);
        if error.is_too_large() && rows.len() > 1 {
            // Halves, one after the other.
            let rest = rows.split_off(rows.len() / 2);
            Box::pin(self.group(rows, report)).await?;
            return Ok(rest);
        }
        let raced = error.is_precondition_failed() || error.is_not_found();
        if !raced || at >= rows.len() || attempt >= backoff::ATTEMPTS * 4 {
            return Err(error);
        }
        backoff::wait(attempt.min(backoff::ATTEMPTS - 1)).await;
        let row = rows.remove(at);
        let (partition_key, row_key) = (row.partition_key(), row.row_key());
        let read = Read { table: &self.table.name, partition_key, row_key, select: None };
        rows.extend(self.table.client.read(read).await?);
        Ok(rows)
    }
}

/// Whether the row is what is wrong, so that the others go on.
fn is_of_row(error: &Error) -> bool {
    error.is_decrypt() || error.is_key_unavailable() || error.is_decode()
}

fn unsealed(row: &Row, error: Error) -> Unsealed {
    let (partition_key, row_key) = (row.partition_key().to_owned(), row.row_key().to_owned());
    Unsealed { partition_key, row_key, error }
}

/// Rows of one partition each, as many as a transaction takes.
fn groups(rows: Vec<Row>) -> Vec<Vec<Row>> {
    let mut groups: Vec<Vec<Row>> = Vec::new();
    for row in rows {
        match groups.last_mut() {
            Some(group)
                if group.len() < BATCH_OPERATIONS
                    && group.last().is_some_and(|l| l.partition_key() == row.partition_key()) =>
            {
                group.push(row);
            }
            _ => groups.push(vec![row]),
        }
    }
    groups
}

/// The entity's rows and copies in all versions, where their type is a property.
fn of_type(schema: &'static Schema) -> Option<Filter> {
    let Discriminator::Property(name) = schema.discriminator else { return None };
    let markers = schema.versions().flat_map(|version| {
        let kept = version.families.iter().filter(|family| family.kind != FamilyKind::List);
        kept.map(|family| Filter::eq(name, family.marker))
    });
    Some(Filter::any(markers))
}

/// Rows with a declared property that is sealed with one of the keys.
fn sealed_with(schema: &'static Schema, keys: &[KeyId]) -> Filter {
    let columns = schema.sealed_columns();
    let seal = schema.sealed.then_some(SEAL);
    let names = columns.iter().map(|column| &*column.name).chain(seal);
    let each = names.flat_map(|name| {
        keys.iter().map(move |key| {
            let (mut from, mut to) = id_range(*key);
            if name == SEAL {
                for bound in [&mut from, &mut to] {
                    // A seal begins as an envelope does but for its second byte.
                    if let Some(byte) = bound.get_mut(1) {
                        *byte = 0x5e;
                    }
                }
            }
            Filter::ge(name, Value::Binary(from.into())) & Filter::lt(name, Value::Binary(to.into()))
        })
    });
    Filter::any(each)
}
