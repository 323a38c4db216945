//! Reads wide entities, whose properties are in several rows (the parts).

use futures_util::future::{BoxFuture, try_join_all};

use super::{
    rows::{Store, replace_by_table_name_error},
    sealing::open::ReadAs,
};
use crate::{
    backend::ReadRequest,
    edm::Ticks,
    entity::{Schema, set::Members},
    error::{Error, Result},
    filter::Filter,
    plan::wide::{self, JoinedRow, PageItem},
    row::Row,
};

impl Store {
    // In a function of its own, so that programs do not compile the read.
    pub(crate) fn read_row_of_entity_set_boxed<'r>(
        &'r self,
        request: ReadRequest<'r>,
        members: &'static Members,
    ) -> BoxFuture<'r, Result<Option<Row>>> {
        Box::pin(self.read_row_of_entity_set(request, members))
    }

    /// Reads a row of a set. For part 1 of a wide member, reads all its parts. Returns `None` for any other part.
    pub(crate) async fn read_row_of_entity_set(
        &self,
        request: ReadRequest<'_>,
        members: &'static Members,
    ) -> Result<Option<Row>> {
        let row = self.read_row_decrypted(request, ReadAs::Members(members)).await?;
        match row.as_ref().and_then(|row| members.wide_member_of(row)) {
            Some((_, schema)) if wide::is_key_of_first_part(request.row_key) => {
                self.read_and_join_parts(request, schema).await
            }
            Some(_) => Ok(None),
            None => Ok(row),
        }
    }

    // In a function of its own, so that programs do not compile the join.
    pub(crate) fn read_and_join_parts_boxed<'r>(
        &'r self,
        request: ReadRequest<'r>,
        schema: &'static Schema,
    ) -> BoxFuture<'r, Result<Option<Row>>> {
        Box::pin(self.read_and_join_parts(request, schema))
    }

    /// Reads the parts of a wide entity with the selected properties in parallel. If they do not belong together,
    /// reads all parts again with one query.
    pub(crate) async fn read_and_join_parts(
        &self,
        request: ReadRequest<'_>,
        schema: &'static Schema,
    ) -> Result<Option<Row>> {
        let ReadRequest { table, partition_key, row_key, select } = request;
        let located = |error: Error| error.in_table(table).at_keys(partition_key, row_key);
        let parts = wide::part_numbers_to_read(schema, select);
        // A property of an older version may have another name.
        let select = select.filter(|_| schema.older.is_none()).map(wide::names_with_generation);
        let reads = parts.iter().map(|part| {
            let select = select.as_deref();
            async move {
                let row_key = &wide::row_key_of_part(row_key, *part).map_err(located)?;
                let read = self.read(ReadRequest { table, partition_key, row_key, select }).await;
                let row = read.map_err(|error| replace_by_table_name_error(error, table))?;
                Ok::<_, Error>((*part, row))
            }
        });
        // In parallel: the generations of the parts reveal a write in between.
        let rows = try_join_all(reads).await?;
        let rows = self.decrypt_each_part(table, rows, schema, select.as_deref()).await?;
        match wide::join_parts(schema, (partition_key, row_key), &rows).map_err(located)? {
            JoinedRow::Whole(row) | JoinedRow::Foreign(row) => {
                self.accept_joined(schema, table, row).map(Some)
            }
            // If part 1 was not read, missing parts say nothing about the entity.
            JoinedRow::Absent if parts.contains(&1) => Ok(None),
            JoinedRow::Absent | JoinedRow::Torn(_) => {
                self.read_snapshot(table, (partition_key, row_key), schema).await
            }
        }
    }

    /// Reads all parts of a wide entity with one query. This is one request and a snapshot, unless the store splits
    /// the page.
    ///
    /// # Errors
    ///
    /// Fails with `is_corrupt` if a part is missing or was not written with the others.
    async fn read_snapshot(
        &self,
        table: &str,
        keys: (&str, &str),
        schema: &'static Schema,
    ) -> Result<Option<Row>> {
        let (row, _) = self.read_wide_with_store_date(table, keys, schema).await?;
        Ok(row)
    }

    /// Reads all parts of a wide entity with one query. Also returns the store's date in the first answer, or
    /// `None` if the store sends none. The query is one request and a snapshot, unless the store splits the page.
    ///
    /// # Errors
    ///
    /// Fails with `is_corrupt` if a part is missing or was not written with the others.
    pub(crate) async fn read_wide_with_store_date(
        &self,
        table: &str,
        keys: (&str, &str),
        schema: &'static Schema,
    ) -> Result<(Option<Row>, Option<Ticks>)> {
        let (rows, date) = self.read_sealed_parts_with_date(table, keys, schema).await?;
        let rows = self.decrypt_each_part(table, rows, schema, None).await?;
        Ok((self.join_decrypted_parts(schema, table, keys, &rows)?, date))
    }

    /// Reads and decrypts a primary before it is deleted or overwritten. For a torn entity, returns the existing
    /// parts if `may_end_torn` is set, and fails with `is_corrupt` otherwise.
    pub(crate) async fn read_to_overwrite(
        &self,
        table: &str,
        keys: (&str, &str),
        schema: &'static Schema,
        may_end_torn: bool,
    ) -> Result<Option<Row>> {
        let read = ReadRequest { table, partition_key: keys.0, row_key: keys.1, select: None };
        match self.read_decrypted(read, ReadAs::Typed(schema)).await {
            // Some parts are missing or differ. A verb that ends the entity takes what is left.
            Err(error) if error.is_corrupt() && may_end_torn && schema.is_wide() => {
                self.read_even_if_torn(table, keys, schema).await
            }
            row => row,
        }
    }

    /// Reads the existing parts of a wide entity, whether or not they belong together.
    pub(crate) async fn read_even_if_torn(
        &self,
        table: &str,
        keys: (&str, &str),
        schema: &'static Schema,
    ) -> Result<Option<Row>> {
        let rows = self.read_sealed_parts(table, keys, schema).await?;
        let rows = self.decrypt_each_part(table, rows, schema, None).await?;
        match wide::join_parts(schema, keys, &rows)? {
            JoinedRow::Whole(row) | JoinedRow::Foreign(row) => Ok(Some(row)),
            JoinedRow::Absent => Ok(None),
            JoinedRow::Torn(_) => wide::join_torn(schema, keys, &rows),
        }
    }

    /// Reads all parts of a wide entity with one query, without decrypting them. This is one request, unless the
    /// store splits the page. Includes parts that only an older version uses.
    pub(super) async fn read_sealed_parts(
        &self,
        table: &str,
        keys: (&str, &str),
        schema: &'static Schema,
    ) -> Result<Vec<(usize, Option<Row>)>> {
        let (rows, _) = self.read_sealed_parts_with_date(table, keys, schema).await?;
        Ok(rows)
    }

    /// Reads all parts of a wide entity as [`read_sealed_parts`](Self::read_sealed_parts) does. Also returns the
    /// date of the first answer.
    async fn read_sealed_parts_with_date(
        &self,
        table: &str,
        (partition_key, row_key): (&str, &str),
        schema: &'static Schema,
    ) -> Result<(Vec<(usize, Option<Row>)>, Option<Ticks>)> {
        let located = |error: Error| error.in_table(table).at_keys(partition_key, row_key);
        let count = wide::maximum_parts_of_versions(schema);
        let keys = (1..=count).map(|part| wide::row_key_of_part(row_key, part));
        let keys: Vec<String> = keys.collect::<Result<_>>().map_err(located)?;
        let last = keys.last().map(String::as_str).unwrap_or_default();
        // One range contains all parts, and one page of it is a snapshot.
        let filter = Filter::eq("PartitionKey", partition_key)
            & Filter::ge("RowKey", row_key)
            & Filter::le("RowKey", last);
        let mut rows: Vec<(usize, Option<Row>)> = (1..=count).map(|part| (part, None)).collect();
        let (mut pages, mut date) = (self.pages(table, filter), None);
        while let Some(page) = pages.next_page().await? {
            date = date.or(page.date);
            for row in page.rows {
                let row = row?;
                let part = keys.iter().position(|key| key == row.row_key());
                // Other rows in that range are not parts of the entity.
                if let Some((_, slot)) = part.and_then(|part| rows.get_mut(part)) {
                    *slot = Some(row);
                }
            }
        }
        Ok((rows, date))
    }

    /// Decrypts the parts of a wide entity.
    pub(super) async fn decrypt_each_part(
        &self,
        table: &str,
        rows: Vec<(usize, Option<Row>)>,
        schema: &'static Schema,
        select: Option<&[String]>,
    ) -> Result<Vec<(usize, Option<Row>)>> {
        let mut opened = Vec::with_capacity(rows.len());
        for (part, row) in rows {
            let row = match row {
                Some(row) => {
                    let opened = self
                        .sealing
                        .unseal_one_row(table, row, ReadAs::Typed(schema), select)
                        .await;
                    Some(opened.map_err(|error| error.in_table(table))?)
                }
                None => None,
            };
            opened.push((part, row));
        }
        Ok(opened)
    }

    /// Joins the rows of a page that are parts of wide entities. If an entity's rows are in two pages, reads it
    /// again and returns it, or its error, with the page that has its first row.
    pub(crate) async fn join_parts_of_page(
        &self,
        table: &str,
        schema: &'static Schema,
        rows: Vec<Result<Row>>,
    ) -> Result<Vec<Result<Row>>> {
        let mut joined = Vec::new();
        for item in wide::join_parts_in_page(schema, rows) {
            let (partition_key, row_key, first_part) = match item {
                PageItem::Ready(row) => {
                    joined.push(row.and_then(|row| self.accept_joined(schema, table, row)));
                    continue;
                }
                PageItem::Incomplete { partition_key, row_key, first_part } => {
                    (partition_key, row_key, first_part)
                }
            };
            let keys = (partition_key.as_str(), row_key.as_str());
            match self.read_incomplete(table, keys, schema, first_part).await {
                Ok(row) => joined.extend(row.map(Ok)),
                Err(error) if error.concerns_one_item() => joined.push(Err(error)),
                Err(error) => return Err(error),
            }
        }
        Ok(joined)
    }

    /// Reads all parts of a wide entity that has rows in a page, starting with part `first_part`. Returns `None` if
    /// the entity has an earlier part, because the page of that part returns the entity or its error.
    ///
    /// # Errors
    ///
    /// Fails with `is_corrupt` if a part is missing or was not written with the others.
    async fn read_incomplete(
        &self,
        table: &str,
        keys: (&str, &str),
        schema: &'static Schema,
        first_part: usize,
    ) -> Result<Option<Row>> {
        let rows = self.read_sealed_parts(table, keys, schema).await?;
        let mut stored = rows.iter().filter(|(_, row)| row.is_some());
        if stored.next().is_some_and(|(part, _)| *part < first_part) {
            return Ok(None);
        }
        let rows = self.decrypt_each_part(table, rows, schema, None).await?;
        self.join_decrypted_parts(schema, table, keys, &rows)
    }

    /// Joins the decrypted parts of a snapshot. Returns `None` if there are none. If a row with a part's key has
    /// another type, returns that row unchanged.
    ///
    /// # Errors
    ///
    /// Fails with `is_corrupt` if a part is missing or was not written with the others, and with `is_decrypt`
    /// if the upgrade of an older version would fill an encrypted field with a plain value.
    pub(super) fn join_decrypted_parts(
        &self,
        schema: &'static Schema,
        table: &str,
        keys: (&str, &str),
        rows: &[(usize, Option<Row>)],
    ) -> Result<Option<Row>> {
        let joined = join_parts_of_entity(schema, table, keys, rows)?;
        joined.map(|row| self.accept_joined(schema, table, row)).transpose()
    }

    /// Returns a joined and decrypted entity, unless the upgrade of an older version would fill an encrypted field
    /// with a plain value. Single parts do not show this, because the parts are upgraded together.
    fn accept_joined(&self, schema: &'static Schema, table: &str, row: Row) -> Result<Row> {
        match self.sealing.refuse_plain_upgrade_of_entity(schema, &row) {
            Ok(()) => Ok(row),
            Err(error) => Err(error.in_table(table).at_keys(row.partition_key(), row.row_key())),
        }
    }
}

/// Joins the parts of a snapshot, decrypted or in stored form. Returns `None` if there are none. If a row with a
/// part's key has another type, returns that row unchanged.
///
/// # Errors
///
/// Fails with `is_corrupt` if a part is missing or was not written with the others.
pub(super) fn join_parts_of_entity(
    schema: &'static Schema,
    table: &str,
    keys: (&str, &str),
    rows: &[(usize, Option<Row>)],
) -> Result<Option<Row>> {
    let located = |error: Error| error.in_table(table).at_keys(keys.0, keys.1);
    match wide::join_parts(schema, keys, rows).map_err(located)? {
        JoinedRow::Whole(row) | JoinedRow::Foreign(row) => Ok(Some(row)),
        JoinedRow::Absent => Ok(None),
        JoinedRow::Torn(part) => Err(wide::torn_error(schema, keys, part).in_table(table)),
    }
}
