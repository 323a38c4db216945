//! Reads single rows, and passes stored rows through the stages of a plan.

use super::plan::{OpenStages, Parts, ReadPlan};
use crate::{
    address::RowAt,
    backend::ReadRequest,
    error::Result,
    plan::wide::{self, PartsRead},
    row::Row,
    store::{replace_by_table_name_error, rows::Store},
};

/// Rows that have passed the stages of a plan.
#[derive(Debug)]
pub(crate) struct OpenedRows {
    pub(crate) rows: Vec<Result<Row>>,
    /// Whether the page held rows that are no items, so that the next page may hold such rows too.
    pub(crate) is_mixed: bool,
}

impl ReadPlan {
    /// Reads the row at an address as a reader sees it. Returns `None` if there is none.
    pub(crate) async fn read_row(&self, store: &Store, at: RowAt<'_>) -> Result<Option<Row>> {
        let RowAt { table, partition_key, row_key } = at;
        let read = ReadRequest { table, partition_key, row_key, select: self.columns.as_deref() };
        let row = match self.parts {
            Parts::Single => {
                let row = store.read(read).await;
                row.map_err(|error| replace_by_table_name_error(error, table))
            }
            // Boxed, as all that a plain entity does not meet: its reads would carry the futures.
            Parts::OfType(schema, _) => Box::pin(store.read_parts(read, schema)).await,
            Parts::OfMembers(members) => Box::pin(store.read_set_member(read, members)).await,
        };
        let row = row.transpose();
        if self.open_stages == OpenStages::NONE {
            return row.transpose();
        }
        let opened = self.open_rows(store, table, row.into_iter().collect()).await?;
        let row = opened.rows.into_iter().next().transpose();
        row.map_err(|error| error.in_table(table))
    }

    /// Passes stored rows of one page or one read through the stages. A row that fails in a stage is
    /// an error at its place.
    ///
    /// # Errors
    ///
    /// Returns the error of a request that a stage sends.
    pub(crate) async fn open_rows(
        &self,
        store: &Store,
        table: &str,
        rows: Vec<Result<Row>>,
    ) -> Result<OpenedRows> {
        if self.open_stages == OpenStages::NONE {
            return Ok(OpenedRows { rows, is_mixed: false });
        }
        Box::pin(self.pass_stages(store, table, rows)).await
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
            rows = store.sealing.open_rows(table, rows, self.kinds, columns).await;
        }
        if stages.contain(OpenStages::CONFIRM) {
            rows = self.replace_reserved_rows(store, table, rows).await;
        }
        let mut is_mixed = rows.len() < found;
        if stages.contain(OpenStages::JOIN) {
            rows = self.join_parts(store, table, rows).await?;
            found = rows.len();
        }
        // After the join: without its part 1, the other parts of an entity would be read once more.
        if stages.contain(OpenStages::EXPIRE) {
            self.drop_expired(store, &mut rows);
            is_mixed |= rows.len() < found;
        }
        // After the join: a part of a wide entity that does not open is missed there.
        if stages.contain(OpenStages::HIDE) {
            rows = store.without_shredded(rows).await;
        }
        if stages.contain(OpenStages::COMPARE)
            && let Ok(wanted) = &self.filter.opened
        {
            // A row that is an error stays: the caller has to see it.
            rows.retain(|row| row.as_ref().map_or(true, |row| wanted.matches(row).unwrap_or(true)));
        }
        Ok(OpenedRows { rows, is_mixed })
    }

    /// Removes the rows whose time is over.
    fn drop_expired(&self, store: &Store, rows: &mut Vec<Result<Row>>) {
        let is_over = |row: &Row| store.is_row_expired(row, self.kinds, self.access.family);
        // A row that is an error stays: the caller has to see it.
        rows.retain(|row| !row.as_ref().is_ok_and(is_over));
    }

    /// Makes one row of the rows of each wide entity in a page.
    async fn join_parts(
        &self,
        store: &Store,
        table: &str,
        mut rows: Vec<Result<Row>>,
    ) -> Result<Vec<Result<Row>>> {
        match self.parts {
            Parts::Single => Ok(rows),
            Parts::OfType(schema, PartsRead::All) => store.join_page(table, schema, rows).await,
            Parts::OfType(schema, PartsRead::One(part)) => {
                let whole = |row| wide::part_as_entity_row(schema, row, part);
                Ok(rows.into_iter().map(|row| row.and_then(whole)).collect())
            }
            Parts::OfMembers(members) => {
                for schema in members.schemas().iter().filter(|schema| schema.is_wide()) {
                    rows = store.join_page(table, schema, rows).await?;
                }
                Ok(rows)
            }
        }
    }
}
