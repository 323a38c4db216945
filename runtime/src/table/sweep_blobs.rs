//! Sweeps out the blobs of a table that no row points to.

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
    entity::{TableEntity, blob_name::table_prefix, points_to},
    error::Result,
    outbox::blob_writes::UPLOAD_TIME,
    store::Store,
};

/// Requests of a sweep that are under way at once.
const SWEEP_IN_FLIGHT: usize = 8;

impl<E: TableEntity> Table<E> {
    /// Removes the table's blobs that no row points to: those of writes that failed after their upload,
    /// and of rows that were deleted untyped. Await it to run it.
    ///
    /// The sweep lists the table's blobs. It reads the row of each blob that is older than the
    /// [`grace`](SweepBlobs::grace()), 24 hours by default: one request per blob. Run it when there is little
    /// other work. A sweep that stopped in the middle can be run again.
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

/// A sweep that was not begun. See [`Table::sweep_blobs`].
#[derive(Debug, Clone)]
#[must_use = "a sweep runs when it is awaited"]
pub struct SweepBlobs {
    store: Store,
    table: String,
    grace: Duration,
}

/// The counts of a sweep of unused blobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SweptBlobs {
    /// Blobs that were removed: no row pointed to them.
    pub removed: u64,
    /// Blobs that rows point to.
    pub kept: u64,
    /// Blobs younger than the [grace](SweepBlobs::grace()), which the sweep left without reading their
    /// rows.
    pub young: u64,
}

impl SweepBlobs {
    /// Sets the age from which on a blob is swept. It is 24 hours unless it is set.
    ///
    /// A row may begin to point to a blob until six hours after its upload began. Set a grace of less than 24
    /// hours only while nobody writes: otherwise the sweep may remove a blob to which a new row points.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    async fn run(self) -> Result<SweptBlobs> {
        let blobs = blobs_of(&self.store).map_err(|error| error.in_table(&self.table))?;
        // The store dates its blobs by its own clock, so that ages go by that clock as well.
        let now = blobs.now().await?;
        let prefix = table_prefix(&self.table, self.store.table_case());
        let looks = blobs.list_blobs(&prefix).map(|listed| async {
            let listed = listed?;
            // A blob that is not named after a row of this table belongs to somebody else.
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

    /// Removes a blob if its row does not point to it.
    // The row is read now, and not taken from any scan: a writer whose upload is as old as the grace can
    // no longer point to it. A table that does not exist is an error, since the blobs may be those of
    // another store of tables.
    async fn look_at_blob(
        &self,
        blobs: &Blobs,
        owner: &RowAddress,
        listed: &ListedBlob,
    ) -> Result<SweptBlobs> {
        let row = self.store.read_row(RowAt { table: &self.table, ..owner.as_row_at() }).await?;
        if row.map(|row| points_to(&row, &listed.name)).transpose()?.unwrap_or_default() {
            return Ok(SweptBlobs { kept: 1, ..SweptBlobs::default() });
        }
        // No condition is needed: the name of a blob is never used for another one.
        blobs.delete_blob(&listed.name).await?;
        Ok(SweptBlobs { removed: 1, ..SweptBlobs::default() })
    }
}

run_when_awaited!([] SweepBlobs => SweptBlobs);
