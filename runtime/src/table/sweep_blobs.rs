//! Removes the blobs of a table that no row points to.

use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};

use super::{
    blob_content::{blobs_of, owner_in_blob_name},
    job::run_when_awaited,
    typed::Table,
};
use crate::{
    address::{RowAddress, RowAt},
    blob::{Blobs, content::ListedBlob},
    entity::{TableEntity, blob::name::blob_prefix_of_table, points_to},
    error::Result,
    outbox::blob_writes::UPLOAD_TIME,
    store::Store,
};

/// Requests of a sweep that may be in flight.
const SWEEP_IN_FLIGHT: usize = 8;

impl<E: TableEntity> Table<E> {
    /// Removes the table's blobs that no row points to. Such blobs come from writes that failed after their upload,
    /// and from rows that were deleted untyped. The sweep runs when you await it.
    ///
    /// The sweep lists the table's blobs. For each blob older than the [`grace`](SweepBlobs::grace()), 24 hours by
    /// default, it reads the blob's row in one request. Run it when there is little other work. You can repeat a
    /// sweep that was interrupted.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use entable::{Blob, backend::Memory, object_store::memory::InMemory, prelude::*};
    /// # #[derive(TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
    /// # pub struct Employee {
    /// #     pub department: String,
    /// #     pub id: u32,
    /// #     #[table(blob)]
    /// #     pub photo: Option<Blob>,
    /// # }
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// # let store = Arc::new(InMemory::new());
    /// # let client = Client::builder().backend(Memory::new()).blobs(store).build()?;
    /// let staff = client.table::<Employee>();
    /// staff.create().await?;
    /// let swept = staff.sweep_blobs().await?;
    /// assert_eq!((swept.removed, swept.kept, swept.young), (0, 0, 0));
    /// # Ok::<(), Error>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sweep_blobs(&self) -> SweepBlobs {
        let (store, table) = (self.client.store().clone(), self.name.clone());
        SweepBlobs { store, table, grace: UPLOAD_TIME * 4 }
    }
}

/// A sweep that has not started. [`Table::sweep_blobs`] returns it.
#[derive(Debug, Clone)]
#[must_use = "does nothing unless awaited"]
pub struct SweepBlobs {
    store: Store,
    table: String,
    grace: Duration,
}

/// The counts of a sweep of unused blobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SweptBlobs {
    /// Blobs that were removed because no row pointed to them.
    pub removed: u64,
    /// Blobs that rows point to.
    pub kept: u64,
    /// Blobs younger than the [grace](SweepBlobs::grace()). The sweep did not read their rows.
    pub young: u64,
}

impl SweepBlobs {
    /// Sets the minimum age of blobs that are swept. The default is 24 hours.
    ///
    /// A row may begin to point to a blob up to six hours after its upload began. Only set a grace of less than 24
    /// hours while nobody writes. Otherwise the sweep may remove a blob that a new row points to.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    async fn run(self) -> Result<SweptBlobs> {
        let blobs = blobs_of(&self.store).map_err(|error| error.in_table(&self.table))?;
        // The store dates blobs by its own clock, so their ages are computed with that clock.
        let now = blobs.now().await?;
        let prefix = blob_prefix_of_table(self.store.names().name(&self.table));
        let looks = blobs.list_blobs(&prefix).map(|listed| async {
            let listed = listed?;
            // A blob that is not named after a row of this table belongs to something else.
            let Some(owner) = owner_in_blob_name(&self.store, &self.table, &listed.name) else {
                return Ok(SweptBlobs::default());
            };
            if !now.is_blob_older_than(self.grace, &listed) {
                return Ok(SweptBlobs { young: 1, ..SweptBlobs::default() });
            }
            self.look_at_blob(blobs, &owner, &listed).await
        });
        let swept = looks.buffer_unordered(SWEEP_IN_FLIGHT);
        let sum = |sum: SweptBlobs, one: SweptBlobs| async move {
            Ok(SweptBlobs {
                removed: sum.removed + one.removed,
                kept: sum.kept + one.kept,
                young: sum.young + one.young,
            })
        };
        swept.try_fold(SweptBlobs::default(), sum).await
    }

    /// Removes a blob if its row does not point to it. Reads the row now instead of using a scan: if an upload is as
    /// old as the grace, its writer can no longer point to the blob. Fails if the table does not exist, because the
    /// blobs may belong to another store of tables.
    async fn look_at_blob(
        &self,
        blobs: &Blobs,
        owner: &RowAddress,
        listed: &ListedBlob,
    ) -> Result<SweptBlobs> {
        let row = self
            .store
            .read_row(RowAt { table: self.store.names().name(&self.table), ..owner.as_row_at() })
            .await?;
        if row.map(|row| points_to(&row, &listed.name)).transpose()?.unwrap_or_default() {
            return Ok(SweptBlobs { kept: 1, ..SweptBlobs::default() });
        }
        // Needs no condition, because the name of a blob is never reused.
        blobs.delete_blob(&listed.name).await?;
        Ok(SweptBlobs { removed: 1, ..SweptBlobs::default() })
    }
}

run_when_awaited!([] SweepBlobs => SweptBlobs);
