//! `BlobTarget`: entities that leave their table for blobs.

use std::{fmt, sync::Arc};

use object_store::ObjectStore;

use super::{BlobReader, transfer::Target};
use crate::{
    backend::BoxFuture,
    blob::{Blobs, UserBlobStore, archive},
    entity::{Stored, TableEntity},
    error::{BoxError, Error, ErrorKind, Result},
    row::Row,
};

/// A target of [`Table::transfer`](super::Table::transfer) that stores each entity as a JSON blob named
/// `archive/{table}/{PartitionKey}/{RowKey}.json`.
///
/// The JSON is in the service's format: keys, properties with their types, and Timestamp. Encrypted values stay
/// encrypted. The entity's own blobs are copied as they are stored to `archive/_blobs`, under the names that its
/// row contains. If you put the row back, a client that uses this folder as its blob store can read the entity.
/// A put creates the JSON blob or replaces an earlier version of the same entity. It never overwrites a later
/// version or another entity.
///
/// A put costs one request, or three if the blob exists. Each blob of the entity costs three more: a check
/// whether it was copied already, a read and a write. A directory cannot compare versions. If two workers
/// replace one blob in a directory at the same time, the older version may win.
///
/// ```
/// use std::sync::Arc;
/// use entable::{BlobTarget, backend::Memory, object_store::{ObjectStoreExt, memory::InMemory}, prelude::*};
///
/// #[derive(TableEntity)]
/// #[table(name = "Current", partition_key = "{department}", row_key = "empid_{id:06}")]
/// struct Employee { department: String, id: u32, name: String }
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let blobs = Arc::new(InMemory::new());
/// let current = Client::memory().table::<Employee>();
/// current.create().await?;
/// current.insert(&Employee { department: "Sales".into(), id: 456, name: "Don".into() }).await?;
/// let point = Employee::primary().department("Sales").id(456);
/// assert!(current.transfer(point, &BlobTarget::new(blobs.clone(), "archive")).await?);
///
/// let name = "archive/Current/Sales/empid_000456.json".into();
/// let json = blobs.get(&name).await?.bytes().await?;
/// assert!(json.starts_with(br#"{"PartitionKey":"Sales","RowKey":"empid_000456","#));
/// # Ok::<(), BoxError>(()) })?;
/// # Ok::<(), BoxError>(())
/// ```
#[derive(Clone)]
pub struct BlobTarget {
    store: Arc<dyn ObjectStore>,
    folder: String,
}

impl BlobTarget {
    /// Creates a target in a folder of a store. The folder may have several segments, such as `a/b`, or none.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use entable::{BlobTarget, object_store::memory::InMemory};
    ///
    /// let target = BlobTarget::new(Arc::new(InMemory::new()), "archive/2014");
    /// assert!(format!("{target:?}").contains("archive/2014"));
    /// ```
    pub fn new<S: ObjectStore + ?Sized>(store: Arc<S>, folder: impl Into<String>) -> Self {
        Self { store: Arc::new(store), folder: folder.into() }
    }
}

impl<E: TableEntity> Target<E> for BlobTarget {
    /// Stores an entity under the table name that its type declares.
    fn put<'a>(&'a self, entity: &'a Stored<E>) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(async move {
            let row = entity.row();
            if entity.index().is_some()
                || E::SCHEMA.is_sealed()
                || !row.encrypted_names().is_empty()
                || !E::SCHEMA.blobs.is_empty()
            {
                let message = "the target needs the primary row as stored and copies of its blobs, but the entity was \
                               read through an index, was decrypted or has blobs; call `transfer`";
                return Err(Error::new(ErrorKind::Unsupported, message).into());
            }
            self.store_row(E::SCHEMA.table, row).await
        })
    }

    fn takes_rows(&self) -> bool {
        true
    }

    fn takes_blobs(&self) -> bool {
        true
    }

    fn put_blob<'a>(&'a self, blob: &'a BlobReader) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            // `true` admits a directory: these blobs are created and never replaced, so no versions are compared.
            let blobs = Blobs::new(UserBlobStore::new(self.store.clone()), true, "")?;
            blob.copy_to_store(&blobs, &archive::folder_of_copied_blobs(&self.folder)).await
        })
    }

    fn put_row<'a>(&'a self, table: &'a str, row: &'a Row) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(self.store_row(table, row))
    }
}

impl BlobTarget {
    async fn store_row(&self, table: &str, row: &Row) -> Result<(), BoxError> {
        let path = archive::row_blob_path(&self.folder, table, row.keys())?;
        Ok(archive::put_row_if_newer(&self.store, &path, row).await?)
    }
}

impl fmt::Debug for BlobTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlobTarget").field("folder", &self.folder).finish_non_exhaustive()
    }
}
