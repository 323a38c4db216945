//! Transfers an entity from its table to a target: another table, a blob, a file, a search index.

use std::{
    pin::pin,
    sync::{Mutex, PoisonError},
};

use super::typed::Table;
use crate::{
    address::RowAddress,
    backend::BoxFuture,
    entity::{IntoPoint, Stored, TableEntity, UntypedPath, WritableView, own_row},
    error::{BoxError, Error, ErrorKind, Result},
    outbox::{blind_tokens::plan_effect_with_tokens, commit::Commit},
    plan::{self, Change},
    row::Row,
    store::backoff::{self, Attempt},
};

/// A target of [`Table::transfer`], which receives entities that leave their table.
///
/// A table is a target, and so is `BlobTarget` with the feature `blob`. Any other target only needs its own
/// "insert or replace":
///
/// ```
/// use std::{path::PathBuf, sync::Arc};
/// use entable::{backend::BoxFuture, prelude::*, table::Target};
///
/// #[derive(TableEntity)]
/// #[table(name = "Current", partition_key = "{department}", row_key = "empid_{id:06}")]
/// struct Employee { department: String, id: u32, name: String }
///
/// struct Directory(PathBuf);
///
/// impl Target<Employee> for Directory {
///     fn put<'a>(&'a self, one: &'a Stored<Employee>) -> BoxFuture<'a, Result<(), BoxError>> {
///         let path = self.0.join(format!("{:06}", one.id));
///         Box::pin(async move { Ok(std::fs::write(path, &one.name)?) })
///     }
/// }
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// # let path = std::env::temp_dir().join(format!("entable-{}", std::process::id()));
/// # std::fs::create_dir_all(&path)?;
/// let client = Client::memory();
/// let current = client.table::<Employee>();
/// current.create().await?;
/// current.insert(&Employee { department: "Sales".into(), id: 456, name: "Don".into() }).await?;
/// let point = || Employee::primary().department("Sales").id(456);
/// assert!(current.transfer(point(), &Directory(path.clone())).await?);
/// assert!(!current.transfer(point(), &Directory(path.clone())).await?, "it is not here any more");
/// assert!(current.get(point()).await?.is_none());
/// assert_eq!(std::fs::read_to_string(path.join("000456"))?, "Don");
/// # std::fs::remove_dir_all(&path)?;
/// # Ok::<(), BoxError>(()) })?;
/// # Ok::<(), BoxError>(())
/// ```
pub trait Target<E>: Send + Sync {
    /// Inserts the entity into the target or replaces the existing one. May be called several times for one
    /// entity.
    ///
    /// A `Blob` in the entity is only the blob's name. Copy its bytes, because the blob is deleted with the
    /// entity.
    fn put<'a>(&'a self, entity: &'a Stored<E>) -> BoxFuture<'a, Result<(), BoxError>>;

    /// Returns whether the target takes rows as they are stored, including encrypted values, instead of
    /// entities.
    fn takes_rows(&self) -> bool {
        false
    }

    /// Inserts the primary row of an entity of `table` into the target or replaces the existing one. If the
    /// target [takes rows](Self::takes_rows), [`Table::transfer`] calls this instead of [`put`](Self::put).
    fn put_row<'a>(&'a self, table: &'a str, row: &'a Row) -> BoxFuture<'a, Result<(), BoxError>> {
        let _ = (table, row);
        Box::pin(async { Err("the target does not accept rows".into()) })
    }

    /// Returns whether `transfer` copies the entity's blobs with `put_blob` before it puts the row. If not, types
    /// with blobs are refused, because their blobs are deleted with the entity.
    #[doc(hidden)]
    fn takes_blobs(&self) -> bool {
        false
    }

    /// Returns the target as a table, if it is one. [`Table::transfer`] then writes to the table under the ETag
    /// that it read there, instead of calling [`put`](Self::put).
    #[doc(hidden)]
    fn as_table(&self) -> Option<&Table<E>> {
        None
    }

    /// Copies a blob to the target, before the row that points to it. Does nothing if the copy exists. The
    /// default implementation fails with `Unsupported`.
    #[cfg(feature = "blob")]
    #[doc(hidden)]
    fn put_blob<'a>(&'a self, blob: &'a super::BlobReader) -> BoxFuture<'a, Result<()>> {
        let _ = blob;
        let message = "the target does not accept blobs";
        Box::pin(async move { Err(Error::new(ErrorKind::Unsupported, message)) })
    }
}

impl<E: TableEntity + Send + Sync> Target<E> for Table<E> {
    fn put<'a>(&'a self, entity: &'a Stored<E>) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(async move { Ok(self.insert_or_replace(&**entity).await.map(drop)?) })
    }

    fn as_table(&self) -> Option<&Self> {
        Some(self)
    }
}

impl<E: TableEntity> Table<E> {
    /// Moves an entity to the target: reads it, puts it into the target, and deletes it here under the ETag
    /// that was read. Returns `false` if the entity does not exist here, and then does nothing.
    ///
    /// The entity is in the target before it is deleted here, so it is always in at least one of them. Call
    /// `transfer` from a message handler. A message is delivered again until its handler succeeds, and repeating a
    /// transfer from any point has the same result. If the entity changes in the meantime, it is put again.
    ///
    /// A put that a worker gave up waiting for may reach the target after the deletion here. A table that has the
    /// entity refuses such a put, because `transfer` either inserts the entity or replaces it under the ETag that it
    /// had in the target before the read here. The entity may be inserted a second time only if it was deleted from
    /// the target in the meantime or has expired there. `BlobTarget` compares versions in a similar way. Any other
    /// target must itself refuse a version older than the one it has. [`move_to`](Self::move_to) also refuses other
    /// writers during the move, and writes a receipt in the target that makes a late insertion fail.
    ///
    /// A transfer costs 3 requests for an entity without copies, or 6 if the target already has the entity.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let former = staff.client().table_named::<Employee>("Former");
    /// former.create().await?;
    /// assert!(staff.transfer(at(223), &former).await?);
    /// assert!(!staff.transfer(at(223), &former).await?, "it is not here any more");
    /// assert_eq!(former.get(at(223)).await?.map(|hall| hall.id), Some(223));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with `is_rejected` if the target failed, with the target's error as the source, and with
    /// `is_contended` if the entity kept changing. Fails with `is_not_found` or `is_corrupt` if the target copies
    /// blobs and a blob of the entity is missing or damaged. Fails with `is_unsupported` if the target takes rows
    /// and a row is not the whole entity, as with wide entities that have encrypted values.
    pub fn transfer<'t>(
        &'t self,
        point: impl IntoPoint<Entity = E, View = impl WritableView>,
        target: &'t impl Target<E>,
    ) -> BoxFuture<'t, Result<bool>> {
        Box::pin(self.transfer_entity_at(own_row(point), target))
    }

    async fn transfer_entity_at(
        &self,
        access: UntypedPath,
        target: &impl Target<E>,
    ) -> Result<bool> {
        if target.takes_rows() {
            refuse_rows::<E>(target.takes_blobs())?;
        }
        let target_error = |cause: BoxError| {
            let message = format!("the entity was not put into the target: {cause}");
            Error::new(ErrorKind::Rejected, message).with_source(cause).in_table(&self.name)
        };
        // The address of the entity in a target table. Without an address, the first attempt inserts the entity.
        // An insertion that reserves unique values or copies blobs costs more than a read.
        let address = &Mutex::new(match target.as_table() {
            Some(table) if !E::SCHEMA.is_single_row() => table.address_of_point(&access).await,
            _ => None,
        });
        let transferred =
            backoff::retry_lost_races(&self.client.store().random, backoff::ATTEMPTS, || async {
                // Read the target before the source. If the entity is still here afterwards, it had not left when
                // the target was read, and a change in the target after its departure gives the row another ETag.
                let stored = match target.as_table() {
                    Some(table) => {
                        let stored = table.read_row_to_replace(address).await;
                        stored.map_err(|error| target_error(error.into()))?
                    }
                    None => None,
                };
                let Some(entity) = self.read_point("get", access.clone()).await? else {
                    return Ok(Attempt::Done(false));
                };
                let put = if let Some(table) = target.as_table() {
                    match table.put_over(&entity, stored, address).await {
                        Ok(true) => Ok(()),
                        Ok(false) => return Ok(Attempt::Raced),
                        Err(error) => Err(error.into()),
                    }
                } else if target.takes_rows() {
                    let Some(row) = self.row_as_stored(&entity).await? else {
                        return Ok(Attempt::Raced);
                    };
                    // Blobs go first: no row in the target may point to a missing blob.
                    #[cfg(feature = "blob")]
                    if !self.put_blobs(&entity, target).await? {
                        return Ok(Attempt::Raced);
                    }
                    target.put_row(&self.table_of_stored(&entity)?.name, &row).await
                } else {
                    target.put(&entity).await
                };
                put.map_err(target_error)?;
                match self.delete(&entity).await {
                    Ok(()) => Ok(Attempt::Done(true)),
                    // The entity changed after it was put, so put it again.
                    Err(error) if error.is_precondition_failed() => Ok(Attempt::Raced),
                    // Another worker has transferred it.
                    Err(error) if error.is_lost_race() => Ok(Attempt::Done(false)),
                    Err(error) => Err(error),
                }
            });
        transferred.await?.ok_or_else(|| backoff::contended_error().in_table(&self.name))
    }

    /// Returns the address of the entity at a point. Returns `None` if the point does not determine its dated
    /// table, or if an encryption key for its blind tokens is missing.
    async fn address_of_point(&self, access: &UntypedPath) -> Option<RowAddress> {
        let (table, access) = self.resolve_point(access).await.ok()?;
        let (partition_key, row_key) = access.point().ok()?;
        Some(table.row_at(partition_key, row_key).to_owned())
    }

    /// Reads the row that a put into this table has to replace. Returns it with its address. Returns `None` if the
    /// row does not exist or its address is not known yet.
    async fn read_row_to_replace(
        &self,
        address: &Mutex<Option<RowAddress>>,
    ) -> Result<Option<(RowAddress, Row)>> {
        let at = address.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(at) = at else { return Ok(None) };
        let (schema, store) = (E::SCHEMA, self.client.store());
        let stored =
            if schema.is_single_row() && schema.versions().all(|version| !version.is_wide()) {
                // Only the ETag is needed, which even an undecryptable row has.
                store.read_row(at.as_row_at()).await
            } else {
                let keys = (&*at.partition_key, &*at.row_key);
                store.read_to_overwrite(&at.table, keys, schema, schema.can_replace_torn()).await
            };
        match stored {
            // The insertion recreates a dated table that was dropped.
            Err(error) if error.is_table_missing() && schema.dated.is_some() => Ok(None),
            stored => Ok(stored?.map(|row| (at, row))),
        }
    }

    /// Replaces `stored` by the entity, under the ETag of `stored`. Inserts the entity if `stored` is `None`. Sets
    /// `address` to the address of the entity's row. Returns `false` if the row's version has changed.
    async fn put_over(
        &self,
        entity: &Stored<E>,
        stored: Option<(RowAddress, Row)>,
        address: &Mutex<Option<RowAddress>>,
    ) -> Result<bool> {
        let table = &*self.table_of_entity(entity)?;
        let outbox = table.client.outbox();
        // An entity whose time has changed belongs to another dated table than the one that was
        // read.
        let stored = stored.filter(|(at, _)| at.table == table.name);
        let name = if stored.is_some() { "replace" } else { "insert" };
        let written = async {
            let mut change = table.rows().add_tokens(plan::insert(&**entity)).await?;
            if let (Some((_, row)), Some(rows)) = (&stored, change.inserted_rows()) {
                let replace =
                    |tokens| plan::replacement_effect(E::SCHEMA, tokens, row, rows.clone());
                let effect = plan_effect_with_tokens(outbox, &table.name, E::SCHEMA, replace).await;
                change = Change::from_effect(effect.map_err(|error| error.in_table(&table.name))?);
            }
            let (partition_key, row_key) = change.keys();
            let at = table.row_at(partition_key, row_key).to_owned();
            // After a lost race, the next attempt reads the row to replace at this address.
            *address.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
            match Commit::new(outbox, &table.name, &[change]).run().await {
                Ok(_) => Ok(true),
                // A move has to finish first.
                Err(error) if error.is_refused_by_move() => Err(error.without_operation()),
                Err(error) if error.row_exists() || error.is_row_changed_or_gone() => Ok(false),
                Err(error) => Err(error.without_operation()),
            }
        };
        outbox.store.usage.begin_verb(name, &table.name).run(pin!(written)).await
    }

    /// Copies the entity's blobs to the target. Returns `false` if the entity points to other blobs since it was
    /// read.
    #[cfg(feature = "blob")]
    async fn put_blobs(&self, entity: &Stored<E>, target: &impl Target<E>) -> Result<bool> {
        let table = &self.table_of_stored(entity)?;
        // Use the schema version that wrote the row, whose blobs are deleted with the row.
        let rows = (E::SCHEMA.rows_through)(entity.row(), E::SCHEMA.primary()?)?;
        for value in rows.blobs.iter().filter(|_| target.takes_blobs()) {
            match target.put_blob(&table.blob(&value.blob)).await {
                Ok(()) => {}
                Err(error) if error.is_stale() => return Ok(false),
                Err(error) => return Err(error.in_table(&self.name)),
            }
        }
        Ok(true)
    }

    /// Returns the stored row of an entity, or `None` if the row changed since it was read.
    async fn row_as_stored(&self, entity: &Stored<E>) -> Result<Option<Row>> {
        let row = entity.row();
        if !E::SCHEMA.is_sealed() && row.encrypted_names().is_empty() {
            return Ok(Some(row.clone()));
        }
        // The row in `entity` has been decrypted, so read it again.
        let home = self.table_of_stored(entity)?;
        let at = home.row_at(row.partition_key(), row.row_key());
        let stored = self.client.store().read_row(at).await?;
        Ok(stored.filter(|stored| stored.etag() == row.etag()))
    }
}

/// Refuses types that a target of rows cannot store: types with blobs if the target does not accept blobs, and wide
/// types with encrypted values, which have several rows for each entity.
fn refuse_rows<E: TableEntity>(takes_blobs: bool) -> Result<()> {
    let schema = E::SCHEMA;
    let message = if !schema.blobs.is_empty() && !takes_blobs {
        "the target accepts only rows, so the entity's blobs would be deleted without a copy; transfer it to a table, \
         or to a target that copies blobs"
    } else if schema.is_wide() && schema.is_sealed() {
        "the target accepts one row as stored, but a wide entity with encrypted values has several; transfer it to a \
         table"
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::Unsupported, message).in_table(schema.table))
}
