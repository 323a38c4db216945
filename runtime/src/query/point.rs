//! Reads the one row that a path with a complete key leads to.

use std::borrow::Cow;

use futures_util::future::BoxFuture;

use super::plan::ReadPlan;
use crate::{
    backend::ReadRequest,
    error::Result,
    row::Row,
    store::{
        rows::{RowRead, Store},
        sealing::open::ReadAs,
    },
};

impl ReadPlan {
    /// Reads the row that the plan's path leads to. `table` is the table of the entities. Returns `None` if the
    /// row does not exist or has expired.
    pub(crate) async fn read_point(&mut self, store: &Store, table: &str) -> Result<Option<Row>> {
        if self.access.needs_key_tokens() && !self.fill_key_tokens_boxed(store, table).await? {
            return Ok(None);
        }
        let point = self.access.point().map_err(|error| error.in_table(table));
        let (partition_key, row_key) = point?;
        let family = self.access.family;
        let table =
            family.map_or(Cow::Borrowed(table), |family| family.table_given_primary_table(table));
        self.read_row(store, store.names().row_at(&table, partition_key, row_key)).await
    }

    /// Sends the read of the row that the plan's path leads to, for a plan that
    /// [reads a plain row](Self::reads_plain_row) of `table`.
    pub(crate) fn send_plain_read<'r>(
        &'r self,
        store: &'r Store,
        table: &'r str,
    ) -> Result<RowRead<'r>> {
        let point = self.access.point().map_err(|error| error.in_table(table));
        let (partition_key, row_key) = point?;
        store.send_read(ReadRequest {
            table,
            partition_key,
            row_key,
            select: self.columns.as_deref(),
        })
    }

    // In a function of its own, so that programs do not compile the lookup of keys.
    fn fill_key_tokens_boxed<'r>(
        &'r mut self,
        store: &'r Store,
        table: &'r str,
    ) -> BoxFuture<'r, Result<bool>> {
        Box::pin(self.fill_key_tokens(store, table))
    }

    /// Adds blind tokens to the keys of the path. Returns `false` if nothing can be found, because all keys of
    /// the rows' scope are permanently deleted.
    async fn fill_key_tokens(&mut self, store: &Store, table: &str) -> Result<bool> {
        let schema = match self.kinds {
            ReadAs::Typed(schema) => Some(schema),
            ReadAs::Members(_) | ReadAs::Untyped => None,
        };
        let keyed = store.path_for_lookup(schema, &self.access).await;
        let Some(keyed) = keyed.map_err(|error| error.in_table(table))? else { return Ok(false) };
        self.access = keyed;
        Ok(true)
    }
}
