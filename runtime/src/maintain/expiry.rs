//! Writes missing expiry markers, which workers need to find expired rows.

use crate::{
    edm::Ticks, entity::TableEntity, error::Result, filter::Comparison, limits::saturating_u64,
    outbox::expiry::write_expiry_markers, query::columns::columns_with_system, table::Table,
};

impl<E: TableEntity> Table<E> {
    /// Writes the markers through which workers find expiring entities. Returns the number of these entities. Call
    /// it once after you declare `expires = field` for a table that has rows, and after rows were written with
    /// [`dynamic`](crate::Client::dynamic), by an import, or by a copy from another store.
    ///
    /// Reads the table, or each dated table. Costs one request for each 1,000 rows that can expire, and one for
    /// each partition and hour in which entities expire. You can repeat it.
    ///
    /// # Errors
    ///
    /// Returns the first error of a request.
    ///
    /// ```
    /// use entable::prelude::*;
    /// use time::OffsetDateTime;
    ///
    /// #[derive(TableEntity)]
    /// #[table(name = "Sessions", partition_key = "{user}", row_key = "{id:06}", expires = until)]
    /// pub struct Session { pub user: String, pub id: u32, pub until: Option<OffsetDateTime> }
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let sessions = Client::memory().table::<Session>();
    /// sessions.create().await?;
    /// sessions.insert(&Session { user: "don".into(), id: 7, until: None }).await?;
    /// assert_eq!(sessions.mark_expiring().await?, 0);
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn mark_expiring(&self) -> Result<u64> {
        if !E::SCHEMA.can_expire() {
            return Ok(0);
        }
        let mut found = 0;
        for table in self.every_table().await? {
            match table.mark_rows(&mut found).await {
                Err(error) if table.is_dated_table_gone(&error) => {}
                marked => marked?,
            }
        }
        Ok(found)
    }

    /// Writes the markers for the rows of one table, and counts the rows that expire.
    async fn mark_rows(&self, found: &mut u64) -> Result<()> {
        let (schema, store) = (E::SCHEMA, self.client.store());
        // The comparison excludes rows without a time of expiry.
        let filter = schema.expiry_comparison_filter(Comparison::Ge, Ticks::MIN_PROPERTY);
        let select = columns_with_system(Vec::new(), Some(schema));
        let mut pages = store.pages(&self.name, filter).with_columns(select);
        while let Some(page) = pages.next_page().await? {
            let rows = page.rows.into_iter().collect::<Result<Vec<_>>>()?;
            let expiring = rows.iter().filter_map(|row| {
                let time = schema.expiry_of_primary(row)?;
                Some((schema.entity_type, row.partition_key(), time))
            });
            let expiring: Vec<_> = expiring.collect();
            *found += saturating_u64(expiring.len());
            // Page by page: if it stops, the markers written so far are valid.
            write_expiry_markers(self.client.outbox(), &self.name, expiring).await?;
        }
        Ok(())
    }
}
