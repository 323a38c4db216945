//! Deletes everything that a query finds.

use std::{borrow::Cow, fmt};

use super::{
    pipeline::Pipeline,
    report::{BulkReport, Progress},
};
use crate::{
    entity::Stored,
    error::{Error, ErrorKind, Result},
    page::PageLoop,
    query::build::Query,
    store::InFlight,
    table::{
        Client,
        job::{Listener, run_when_awaited},
        writable::Rewritable,
    },
};

/// Deletes everything that a query finds. [`Query::delete_all`] returns it, and it runs when it is awaited.
///
/// Each entity is deleted together with its copies and list entries, under the ETag that the query read. A
/// transaction deletes up to 100 rows. An entity that another writer changed in between is kept and listed in
/// the report. An entity that is already gone counts as deleted. You can stop the deletion at any time and run
/// it again to delete the rest.
#[must_use = "does nothing unless awaited"]
pub struct DeleteAll<Q, T> {
    query: Query<Q, Stored<T>>,
    concurrency: InFlight,
    on_progress: Listener<Progress>,
}

impl<Q, T> fmt::Debug for DeleteAll<Q, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeleteAll")
            .field("query", &self.query)
            .field("concurrency", &self.concurrency)
            .finish_non_exhaustive()
    }
}

impl<Q: 'static, T: Rewritable + Send + 'static> Query<Q, Stored<T>> {
    /// Deletes every entity that the query finds, when the result is awaited.
    ///
    /// If the first page cannot be read, the whole deletion fails. If a later page cannot be read, the deletion
    /// stops, and the error is the last failure in the report.
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
    ///     staff.insert(&Employee { department: "Sales".into(), id, age: 64 + id as i32 }).await?;
    /// }
    /// let sales = staff.query(Employee::primary().department("Sales"));
    /// let retired = sales.clone().filter(Employee::AGE.ge(66));
    /// let report = retired.delete_all().on_progress(|p| println!("{}", p.done)).await?;
    /// assert_eq!((report.done, report.is_complete()), (2, true));
    /// assert_eq!(sales.count().await?, 1);
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn delete_all(&self) -> DeleteAll<Q, T> {
        DeleteAll {
            query: self.clone(),
            concurrency: InFlight::Default(8),
            on_progress: Listener::silent(),
        }
    }
}

impl<Q, T> DeleteAll<Q, T> {
    /// Sets how many transactions may be in flight. The default is 8, or as many as the store
    /// welcomes if the client [adapts its rate](crate::ClientBuilder::adaptive_rate).
    pub fn concurrency(self, transactions: usize) -> Self {
        Self { concurrency: InFlight::at_most(transactions), ..self }
    }

    /// Calls `report` after every transaction.
    pub fn on_progress(self, report: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        Self { on_progress: Listener::new(move |progress| report(*progress)), ..self }
    }
}

run_when_awaited!([Q: 'static, T: Rewritable + Send + 'static] DeleteAll<Q, T> => BulkReport);

impl<Q: 'static, T: Rewritable + Send + 'static> DeleteAll<Q, T> {
    async fn run(self) -> Result<BulkReport> {
        let Self { query, concurrency, on_progress } = self;
        let Some(origin) = query.request.origin.clone() else {
            let message = "the query was not made by a client, so nothing can be deleted by it";
            return Err(Error::new(ErrorKind::Unsupported, message));
        };
        let client = Client::sharing_outbox(origin.outbox.clone());
        let mut pipeline = Pipeline::new(client, concurrency, on_progress);
        let Some(run) = query.plan(None).await? else { return Ok(pipeline.finish_all().await) };
        let mut pages = PageLoop::from_start();
        while let Some(cursor) = pages.take_position() {
            let is_first = cursor.is_none();
            let page = match pipeline.drive_transactions_while(run.page_of_results(cursor)).await {
                Ok(page) => page,
                Err(error) if is_first => return Err(error),
                // Rows of earlier pages are deleted or on their way, so the error goes into the report.
                Err(error) => {
                    // An error joins no group, so there is nothing to wait for.
                    drop(pipeline.add_item(origin.table.clone(), Err(error), true));
                    break;
                }
            };
            for item in page.items {
                let (table, removal) = match item {
                    // A query over a window of times reads several tables.
                    Ok(stored) if query.request.tables.is_some() => {
                        let table = T::home(&stored).map(Cow::into_owned);
                        let removal = T::removal(&stored);
                        (
                            table.as_ref().map_or_else(|_| origin.table.clone(), Clone::clone),
                            table.and(removal),
                        )
                    }
                    item => {
                        let removal = item.and_then(|stored| T::removal(&stored));
                        (origin.table.clone(), removal)
                    }
                };
                // Only the absence of the row matters, not who deleted it.
                let removal = removal.map(|change| change.0);
                if let Some(sent) = pipeline.add_item(table, removal, true) {
                    sent.await;
                }
            }
            pages.continue_at(page.next);
        }
        Ok(pipeline.finish_all().await)
    }
}
