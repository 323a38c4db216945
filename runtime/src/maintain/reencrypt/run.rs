//! A re-encryption under way: page by page, transactions of one partition each.

use super::{Reencrypt, ReencryptProgress, ReencryptReport, Unsealed, What};
use crate::{
    address::is_same_table,
    backend::{Read, Scan},
    edm::Value,
    entity::{Discriminator, SEAL, Schema, TableEntity},
    error::{Error, ErrorKind, Result},
    filter::Filter,
    key::FamilyKind,
    limits::{BATCH_OPERATIONS, PAGE_ROWS},
    page::{Continuation, Cursor, fingerprint},
    row::Row,
    seal::{KeyId, envelope_range},
    store::{backoff, sealing::plan::Placed},
};

impl<E: TableEntity> Reencrypt<E> {
    pub(crate) async fn run(self) -> Result<ReencryptReport> {
        let place = |error: Error| error.in_table(&self.table.name);
        if let Some(size) = self.page_size.filter(|size| *size == 0 || *size > PAGE_ROWS) {
            let message = format!("a page has 1 to {PAGE_ROWS} rows, not {size}");
            return Err(place(Error::new(ErrorKind::Invalid, message)));
        }
        let filter = self.filter();
        let own = |table: &str| fingerprint(&format!("reencrypt\u{0}{table}\u{0}{filter}"));
        let mut tables = self.tables();
        let mut cursor = self.start.clone();
        if let Some(start) = &cursor {
            let is_before = |table: &String| own(table) != start.fingerprint;
            tables = tables.into_iter().skip_while(is_before).collect();
            if tables.is_empty() {
                let message = "the cursor belongs to another query or another re-encryption";
                return Err(place(Error::new(ErrorKind::InvalidCursor, message)));
            }
        }
        let mut report = ReencryptReport::default();
        for (at, table) in tables.iter().enumerate() {
            loop {
                let next = self.page(table, &filter, cursor.take(), &mut report).await?;
                let is_over = next.is_none();
                cursor = next.map(|at| Cursor {
                    fingerprint: own(table),
                    returned: 0,
                    mixed: false,
                    at,
                });
                // At the end of a table, the next one begins.
                let told = cursor.clone().or_else(|| Some(first(own(tables.get(at + 1)?))));
                if let Some(on_progress) = &self.on_progress {
                    let (rows, rewritten) = (report.rows, report.rewritten);
                    on_progress(&ReencryptProgress { rows, rewritten, cursor: told });
                }
                if is_over {
                    break;
                }
            }
        }
        Ok(report)
    }

    /// The entity's own table, and those of its copies elsewhere.
    fn tables(&self) -> Vec<String> {
        let mut tables = vec![self.table.name.clone()];
        for family in E::SCHEMA.versions().flat_map(|schema| schema.families) {
            let table = family.table.unwrap_or(&self.table.name);
            if !tables.iter().any(|known| is_same_table(known, table)) {
                tables.push(table.to_owned());
            }
        }
        tables
    }

    /// Seals the rows of one page.
    async fn page(
        &self,
        table: &str,
        filter: &Filter,
        cursor: Option<Cursor>,
        report: &mut ReencryptReport,
    ) -> Result<Option<Continuation>> {
        // A cursor without a row is where a table begins.
        let from = cursor.as_ref().map(|cursor| &cursor.at).filter(|at| **at != nowhere());
        let scan = Scan { table, filter, select: None, top: self.page_size, from };
        let page = match self.table.client.store().scan(scan).await {
            // A table of copies that nothing was written to yet.
            Err(error) if error.is_not_found() && table != self.table.name => return Ok(None),
            page => page?,
        };
        report.rows += u64::try_from(page.rows.len()).unwrap_or(u64::MAX);
        for group in groups(page.rows) {
            self.group(table, group, report).await?;
        }
        Ok(page.next)
    }

    fn filter(&self) -> Filter {
        let partition = self.partition.as_deref().map(|key| Filter::eq("PartitionKey", key));
        #[cfg(feature = "legacy-encryption")]
        if let What::Legacy(_) = self.what {
            return Filter::all(
                partition.into_iter().chain([crate::maintain::reencrypt::legacy::filter()]),
            );
        }
        let retired = (!self.retired.is_empty()).then(|| sealed_with(E::SCHEMA, &self.retired));
        Filter::all(partition.into_iter().chain(of_type(E::SCHEMA)).chain(retired))
    }

    /// The write that a row needs, if it needs one.
    async fn rewritten(&self, row: &Row) -> Result<Option<Placed>> {
        match &self.what {
            What::Keys => {
                let vault = &self.table.client.store().sealing;
                vault.sealing_update(&self.table.name, E::SCHEMA, row).await
            }
            #[cfg(feature = "legacy-encryption")]
            What::Legacy(keys) => self.migrated(keys, row).await,
        }
    }

    /// Seals the rows of one partition, again where another writer was first.
    async fn group(
        &self,
        table: &str,
        mut rows: Vec<Row>,
        report: &mut ReencryptReport,
    ) -> Result<()> {
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
                        report.failed.push(unsealed(&row, error.in_table(table)));
                    }
                    Err(error) => return Err(error.in_table(table)),
                }
            }
            let written = u64::try_from(placed.len()).unwrap_or(u64::MAX);
            let error = match self.table.client.store().write(table, placed).await {
                Ok(_) => {
                    report.rewritten += written;
                    return Ok(());
                }
                Err(error) => error,
            };
            rows = self.after(table, error, kept, attempt, report).await?;
            attempt += 1;
        }
        Ok(())
    }

    /// What is still to be written after a transaction failed.
    async fn after(
        &self,
        table: &str,
        error: Error,
        mut rows: Vec<Row>,
        attempt: u32,
        report: &mut ReencryptReport,
    ) -> Result<Vec<Row>> {
        let at = error.failed_index().unwrap_or(0);
        if error.is_too_large() && rows.len() > 1 {
            // Halves, one after the other.
            let rest = rows.split_off(rows.len() / 2);
            Box::pin(self.group(table, rows, report)).await?;
            return Ok(rest);
        }
        if let (true, Some(row)) = (error.is_too_large(), rows.pop()) {
            report.failed.push(unsealed(&row, error));
            return Ok(Vec::new());
        }
        let raced = error.is_precondition_failed() || error.is_not_found();
        if !raced || at >= rows.len() || attempt >= backoff::ATTEMPTS * 4 {
            return Err(error);
        }
        backoff::wait(&self.table.client.store().random, attempt.min(backoff::ATTEMPTS - 1)).await;
        let row = rows.remove(at);
        let (partition_key, row_key) = (row.partition_key(), row.row_key());
        let read = Read { table, partition_key, row_key, select: None };
        rows.extend(self.table.client.store().read(read).await?);
        Ok(rows)
    }
}

/// Whether the row is what is wrong, so that the others go on.
fn is_of_row(error: &Error) -> bool {
    error.is_decrypt() || error.is_key_unavailable() || error.is_decode()
}

/// Where a table begins.
fn first(fingerprint: u64) -> Cursor {
    Cursor { fingerprint, returned: 0, mixed: false, at: nowhere() }
}

fn nowhere() -> Continuation {
    Continuation { partition_key: String::new(), row_key: None }
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
            let (mut from, mut to) = envelope_range(*key);
            if name == SEAL {
                for bound in [&mut from, &mut to] {
                    // A seal begins as an envelope does but for its second byte.
                    if let Some(byte) = bound.get_mut(1) {
                        *byte = 0x5e;
                    }
                }
            }
            Filter::ge(name, Value::Binary(from.into()))
                & Filter::lt(name, Value::Binary(to.into()))
        })
    });
    Filter::any(each)
}
