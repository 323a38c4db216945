//! Resolvers: a closure decides what a row becomes.

use std::sync::Arc;

use time::OffsetDateTime;

use super::{Query, decode::at, query::Source};
use crate::{
    edm::Bag,
    entity::Stored,
    error::Result,
    row::{ETag, Row},
};

impl<E, T: 'static> Query<E, Stored<T>> {
    /// What a closure makes of each row: it is given PartitionKey, RowKey, Timestamp, properties
    /// and ETag. Rows that the query skips never come to it; what it fails with ends the query.
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
        let resolve = Arc::new(move |row: &Row| {
            let bag = row.to_bag()?;
            let timestamp = row.timestamp().map(OffsetDateTime::from);
            let etag = row.etag().unwrap_or_else(|| ETag::from(""));
            resolver(row.partition_key(), row.row_key(), timestamp, &bag, &etag)
                .map_err(|error| at(row, error))
        });
        self.map_source(|source| match source {
            Source::Rows(decode) => Source::Rows(Arc::new(move |row| {
                decode(row)?.map(|stored| resolve(stored.row())).transpose()
            })),
            Source::Lists(fetch) => Source::Lists(Arc::new(move |request, cursor| {
                let (page, resolve) = (fetch(request, cursor), resolve.clone());
                Box::pin(async move {
                    let (items, next) = page.await?;
                    let items: Result<Vec<R>> =
                        items.iter().map(|stored| resolve(stored.row())).collect();
                    Ok((items?, next))
                })
            })),
        })
    }
}
