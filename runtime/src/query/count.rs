//! Counts the items of a query or checks for a first one, without reading whole rows.

use std::sync::Arc;

use futures_util::TryStreamExt;

use super::{build::Query, partial_query::PartialQuery, plan::ItemOrigin};
use crate::{
    entity::{Schema, TableEntity},
    error::Result,
    page::PageLoop,
};

impl<E: 'static, T: Send + 'static> Query<E, T> {
    /// Counts the items that [`collect`](Self::collect) would return. Reads only keys and types, in one request
    /// for every 1,000 rows, because the service cannot count.
    ///
    /// Whole rows are read only if they must be decrypted first: for a condition on an encrypted field, and for
    /// entities with `seal`. A row that could not be decoded is counted. For a remote list, the entities are read,
    /// because the list may still contain entities that have left it.
    ///
    /// # Errors
    ///
    /// Fails with the first error of a request, and with `is_unrecognized_entity` for a row of an unknown
    /// version.
    ///
    /// ```
    /// use entable::prelude::*;
    ///
    /// #[derive(TableEntity)]
    /// #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
    /// pub struct Employee { pub department: String, pub id: u32, pub age: i32 }
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let staff = Client::memory().table::<Employee>();
    /// staff.create().await?;
    /// for id in 1..=3 {
    ///     staff.insert(&Employee { department: "Sales".into(), id, age: 30 + id as i32 }).await?;
    /// }
    /// let sales = staff.query(Employee::primary().department("Sales"));
    /// assert_eq!(sales.count().await?, 3);
    /// assert!(!sales.filter(Employee::AGE.gt(40)).exists().await?);
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn count(&self) -> Result<u64> {
        let Some(run) = self.counting_query().plan(None).await? else { return Ok(0) };
        let (mut count, mut pages) = (0, PageLoop::from_start());
        while let Some(cursor) = pages.take_position() {
            let page = run.page_of_results(cursor).await?;
            for item in page.items {
                item?;
                count += 1;
            }
            pages.continue_at(page.next);
        }
        Ok(count)
    }

    /// Returns whether the query has an item. Sends one request for one row, and more only while rows of other
    /// types come first.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// assert!(staff.query(sales()).filter(Employee::LAST_NAME.eq("Hall")).exists().await?);
    /// assert!(!staff.query(sales()).filter(Employee::AGE.gt(60)).exists().await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails as [`count`](Self::count) does.
    pub async fn exists(&self) -> Result<bool> {
        if self.request.take == Some(0) {
            return Ok(false);
        }
        // Any row is enough, so the order of the store's rows does not matter.
        let counted = self.counting_query().any_order().take(1);
        counted.stream().try_next().await.map(|found| found.is_some())
    }

    /// Returns whether a count reads only the ids of a local list.
    pub(crate) fn counts_ids(&self) -> bool {
        let request = &self.request;
        let is_remote = request.family().is_some_and(|family| family.is_remote);
        // Ids do not show which entities have expired.
        let can_expire = request.schema.is_none_or(Schema::can_expire);
        request.reads_list() && !is_remote && request.conditions.is_empty() && !can_expire
    }

    /// Returns a query that yields `()` for each item of this query. Where possible, it reads only the
    /// properties that decide which rows are items, such as keys and type, or only the ids of a local list.
    pub(crate) fn counting_query(&self) -> Query<E, ()> {
        let mut query = self.clone();
        if !self.request.reads_list() {
            query.request_mut().only_deciding_properties = true;
            return query.map_decode(|_| {
                Arc::new(|page, row| Ok(page.plan.is_row_an_item(&row?)?.then_some(())))
            });
        }
        // A local list is written together with its entities, so its ids are the items.
        if let Some(schema) = self.request.schema.filter(|_| self.counts_ids()) {
            query.request_mut().origin_of_items = ItemOrigin::IdsOfLists(schema);
            return query.map_decode(|_| Arc::new(|_, row| row.map(|_| Some(()))));
        }
        query.map_decode(|decode| Arc::new(move |page, row| Ok(decode(page, row)?.map(drop))))
    }
}

impl<E: TableEntity, M: 'static> PartialQuery<E, M> {
    /// Counts the copies on the path, as [`Query::count`] does.
    ///
    /// # Errors
    ///
    /// Fails as [`Query::count`] does.
    pub async fn count(&self) -> Result<u64> {
        self.counting_query().count().await
    }

    /// Returns whether the query has an item: a partial copy on the path that meets the conditions. Sends the
    /// same requests as [`Query::exists`].
    ///
    /// ```
    /// use entable::prelude::*;
    ///
    /// #[derive(TableEntity)]
    /// #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}",
    ///         index(ByEmail, row_key = "email_{email:lower}", only(id)))]
    /// pub struct Employee { pub department: String, pub id: u32, pub email: String, pub age: i32 }
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let staff = Client::memory().table::<Employee>();
    /// staff.create().await?;
    /// let email = Employee::by_email().department("Sales").email("jones@contoso.com");
    /// assert!(!staff.query(email).exists().await?);
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails as [`Query::count`] does.
    pub async fn exists(&self) -> Result<bool> {
        self.counting_query().exists().await
    }

    fn counting_query(&self) -> Query<E, ()> {
        // The rows are not decoded, because each counting query replaces this function.
        Query::new(self.request.clone(), |_| Ok(Some(())))
    }
}
