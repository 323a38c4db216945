//! Resolvers: a user closure turns each row into an item.

use std::sync::Arc;

use time::OffsetDateTime;

use super::{build::Query, partial_query::PartialQuery};
use crate::{
    edm::Bag,
    entity::{Stored, TableEntity},
    error::Result,
    row::{ETag, Row, error_with_row_keys},
};

impl<E, T: 'static> Query<E, Stored<T>> {
    /// Turns each row into an item with a closure, which receives PartitionKey, RowKey, Timestamp, properties
    /// and ETag. The closure is not called for rows that the query skips. If it returns an error, the query ends.
    ///
    /// ```
    /// use entable::prelude::*;
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// # let client = Client::memory();
    /// # client.create_table("Staff").await?;
    /// # let staff = client.dynamic("Staff");
    /// # staff.insert(&DynamicEntity::new("Sales", "empid_000223").with("Age", 34)).await?;
    /// let ages = staff.query(Keys::partition("Sales")).resolve(|_, row_key, _, properties, _| {
    ///     Ok((row_key.to_owned(), properties.get("Age").and_then(Value::as_i32)))
    /// });
    /// assert_eq!(ages.collect().await?, [("empid_000223".to_owned(), Some(34))]);
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn resolve<R, F>(self, resolver: F) -> Query<E, R>
    where
        F: Fn(&str, &str, Option<OffsetDateTime>, &Bag, &ETag) -> Result<R> + Send + Sync + 'static,
        R: 'static,
    {
        self.map_decode(|decode| {
            Arc::new(move |page, row| {
                decode(page, row)?.map(|stored| resolved(stored.row(), &resolver)).transpose()
            })
        })
    }
}

impl<E: TableEntity, M: 'static> PartialQuery<E, M> {
    /// Turns each copy into an item with a closure, as [`Query::resolve`] does. The properties are those in the
    /// copies.
    pub fn resolve<R, F>(self, resolver: F) -> Query<E, R>
    where
        F: Fn(&str, &str, Option<OffsetDateTime>, &Bag, &ETag) -> Result<R> + Send + Sync + 'static,
        R: 'static,
    {
        let family = self.request.family();
        Query::new(self.request, move |row| {
            let family = family.map_or_else(|| E::SCHEMA.primary(), Ok)?;
            let kind = E::SCHEMA
                .row_kind_of(&row, Some(family))
                .map_err(|error| error_with_row_keys(&row, error))?;
            if kind.is_of_family(family) { resolved(&row, &resolver).map(Some) } else { Ok(None) }
        })
    }
}

fn resolved<R>(
    row: &Row,
    resolver: &impl Fn(&str, &str, Option<OffsetDateTime>, &Bag, &ETag) -> Result<R>,
) -> Result<R> {
    let place = |error| error_with_row_keys(row, error);
    let bag = row.to_bag().map_err(place)?;
    let timestamp = row.timestamp().map(OffsetDateTime::from);
    // Every row that was read has an ETag.
    let etag = row.etag().unwrap_or_else(|| ETag::from(""));
    resolver(row.partition_key(), row.row_key(), timestamp, &bag, &etag).map_err(place)
}
