//! Reads single rows, and opens stored rows: verifies and decrypts them, joins the rows of wide entities, and drops
//! rows that a reader must not get, such as expired ones. Each of these is a stage, and a read runs only the stages in
//! its plan.

use futures_util::future::BoxFuture;

use super::plan::{ItemParts, OpenStages, ReadPlan};
use crate::{
    address::RowAt,
    backend::ReadRequest,
    error::Result,
    plan::wide::{self, WidePartsRead},
    row::Row,
    store::{replace_by_table_name_error, rows::Store},
};

/// Rows after all stages of a plan. A row that failed a stage is an error at its place.
#[derive(Debug)]
pub(crate) struct OpenedRows {
    pub(crate) rows: Vec<Result<Row>>,
    /// Whether the page contained rows that are not items. The next page may then contain such rows too.
    pub(crate) is_mixed: bool,
}

impl ReadPlan {
    /// Returns whether a read takes one request, and the stored row is the item: nothing has to be joined, decrypted or
    /// looked up before.
    pub(crate) fn reads_plain_row(&self) -> bool {
        matches!(self.parts, ItemParts::Single)
            && self.open_stages == OpenStages::NONE
            && !self.access.needs_key_tokens()
            && self.access.family.is_none_or(|family| family.table.is_none())
    }

    /// Reads the row at an address and opens it for a reader. Returns `None` if it does not exist.
    pub(crate) fn read_row<'r>(
        &'r self,
        store: &'r Store,
        at: RowAt<'r>,
    ) -> impl Future<Output = Result<Option<Row>>> + 'r {
        // Taken apart outside the future, which every `get` allocates: it holds the texts alone.
        self.read_row_with_texts(store, at.table_and_key_texts())
    }

    async fn read_row_with_texts(
        &self,
        store: &Store,
        [table, partition_key, row_key]: [&str; 3],
    ) -> Result<Option<Row>> {
        let read = ReadRequest { table, partition_key, row_key, select: self.columns.as_deref() };
        let row = match self.parts {
            ItemParts::Single => {
                let row = store.read(read).await;
                row.map_err(|error| replace_by_table_name_error(error, table))
            }
            // Boxed to keep these futures out of the reads of plain entities.
            ItemParts::OfType(schema, _) => store.read_and_join_parts_boxed(read, schema).await,
            ItemParts::OfMembers(members) => {
                store.read_row_of_entity_set_boxed(read, members).await
            }
        };
        let row = row.transpose();
        if self.open_stages == OpenStages::NONE {
            return row.transpose();
        }
        let opened = self.open_rows(store, table, row.into_iter().collect()).await?;
        let row = opened.rows.into_iter().next().transpose();
        row.map_err(|error| error.in_table(table))
    }

    /// Takes the stored rows of a page or a read through the stages. A row that fails in a stage becomes an error
    /// in its place.
    ///
    /// # Errors
    ///
    /// Fails with the error of a request that a stage sends.
    pub(crate) async fn open_rows(
        &self,
        store: &Store,
        table: &str,
        rows: Vec<Result<Row>>,
    ) -> Result<OpenedRows> {
        if self.open_stages == OpenStages::NONE {
            return Ok(OpenedRows { rows, is_mixed: false });
        }
        self.pass_stages_boxed(store, table, rows).await
    }

    // In a function of its own, so that programs do not compile the stages.
    fn pass_stages_boxed<'r>(
        &'r self,
        store: &'r Store,
        table: &'r str,
        rows: Vec<Result<Row>>,
    ) -> BoxFuture<'r, Result<OpenedRows>> {
        Box::pin(self.pass_stages(store, table, rows))
    }

    async fn pass_stages(
        &self,
        store: &Store,
        table: &str,
        mut rows: Vec<Result<Row>>,
    ) -> Result<OpenedRows> {
        let (stages, columns) = (self.open_stages, self.columns.as_deref());
        let mut found = rows.len();
        if stages.contain(OpenStages::OPEN) {
            rows = store.sealing.unseal_rows(table, rows, self.kinds, columns).await;
        }
        if stages.contain(OpenStages::CONFIRM) {
            rows = self.resolve_reserved_rows(store, table, rows).await;
        }
        let mut is_mixed = rows.len() < found;
        if stages.contain(OpenStages::JOIN) {
            rows = self.join_parts(store, table, rows).await?;
            found = rows.len();
        }
        // After the join, which would otherwise read the other parts of an entity again for lack of part 1.
        if stages.contain(OpenStages::EXPIRE) {
            self.drop_expired(store, &mut rows);
            is_mixed |= rows.len() < found;
        }
        // After the join, which would otherwise miss a part of a wide entity that cannot be decrypted.
        if stages.contain(OpenStages::HIDE) {
            rows = store.without_shredded(rows).await;
        }
        if stages.contain(OpenStages::COMPARE)
            && let Ok(wanted) = &self.filter.opened
        {
            // Keep rows that are errors, because the caller must see them.
            rows.retain(|row| row.as_ref().map_or(true, |row| wanted.matches(row).unwrap_or(true)));
        }
        Ok(OpenedRows { rows, is_mixed })
    }

    /// Removes expired rows.
    fn drop_expired(&self, store: &Store, rows: &mut Vec<Result<Row>>) {
        let is_over = |row: &Row| store.is_row_expired(row, self.kinds, self.access.family);
        // Keep rows that are errors, because the caller must see them.
        rows.retain(|row| !row.as_ref().is_ok_and(is_over));
    }

    /// Joins the rows of each wide entity in a page into one row.
    async fn join_parts(
        &self,
        store: &Store,
        table: &str,
        mut rows: Vec<Result<Row>>,
    ) -> Result<Vec<Result<Row>>> {
        match self.parts {
            ItemParts::Single => Ok(rows),
            ItemParts::OfType(schema, WidePartsRead::All) => {
                store.join_parts_of_page(table, schema, rows).await
            }
            ItemParts::OfType(schema, WidePartsRead::One(part)) => {
                let whole = |row| wide::part_as_entity_row(schema, row, part);
                Ok(rows.into_iter().map(|row| row.and_then(whole)).collect())
            }
            ItemParts::OfMembers(members) => {
                for schema in members.schemas().iter().filter(|schema| schema.is_wide()) {
                    rows = store.join_parts_of_page(table, schema, rows).await?;
                }
                Ok(rows)
            }
        }
    }
}
