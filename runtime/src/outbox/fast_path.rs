//! Writes the remote copies and lists of a transaction immediately after its commit, under the ETags that were
//! read before the commit. Work that fails is left to a worker.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::future::try_join_all;

use super::{
    background::left_to_worker_error,
    blob_writes::{self, delete_blob},
    deadline::WriteDeadline,
    keys::{ReleasedUniqueKey, WantedUniqueKey},
    list_retry::write_list_again,
    remote_list::{is_membership_settled, write_lists},
    state::Outbox,
};
use crate::{
    address::{RowAt, TableName},
    batch::{Batch, Operation},
    error::{Error, Result},
    guard::Guard,
    plan::outbox::{
        CopyAddress, CopyChange, CopyStep, ListAddress, ListMembership, PlannedDirtyRow,
        compare_owner_in_copy, id_of_reserving_claim, plan_step_for_row,
    },
    row::{ETag, Row},
    store::lists::{ListsByAddress, check_blob_store_for_list, find_lists},
};

/// The remote copies and lists of one transaction, as read before its commit.
#[derive(Debug)]
pub(crate) struct FastPath {
    table: String,
    deadline: WriteDeadline,
    entities: Vec<EntityWork>,
    lists: ListsByAddress,
    /// The id of the transaction's claim row, if it takes unique keys.
    claim: Option<String>,
}

/// The remote copies of one entity in the transaction.
#[derive(Debug)]
struct EntityWork {
    dirty: PlannedDirtyRow,
    /// The copies as read before the commit, in the order of the dirty row's changes. `None` if they could not be
    /// read, in which case a worker writes them.
    copies: Option<Vec<Option<Row>>>,
    /// The primary's ETag from the commit. `None` before the commit, and if the commit deleted the primary.
    primary_etag: Option<ETag>,
    /// The dirty row's ETag after the commit, if the commit inserted it.
    dirty_etag: Option<ETag>,
}

impl FastPath {
    /// Reads the copies and lists that a transaction will change, before the commit. A failed read does not fail the
    /// write, but leaves the work to a worker.
    pub(crate) async fn read_before_commit(
        outbox: &Outbox,
        table: &str,
        dirty: Vec<PlannedDirtyRow>,
    ) -> Self {
        // The deadline counts from here, because the copies are written under the ETags that are read now.
        let deadline = outbox.start_deadline();
        let memberships = dirty.iter().flat_map(|dirty| &dirty.memberships);
        let lists = match list_addresses(memberships) {
            addresses if addresses.is_empty() => ListsByAddress::default(),
            addresses => Box::pin(find_lists(&outbox.store, addresses)).await,
        };
        let mut entities = Vec::new();
        for dirty in dirty {
            let copies = dirty.copy_changes.iter().map(|change| read_old_copy(outbox, change));
            // A copy that cannot be read must not fail the write. A worker then does the work.
            let copies = try_join_all(copies).await.ok();
            entities.push(EntityWork { dirty, copies, primary_etag: None, dirty_etag: None });
        }
        Self { table: table.to_owned(), deadline, entities, lists, claim: None }
    }

    /// Fails if this client has no store for a list or a blob that the transaction changes and could not do the
    /// work.
    pub(crate) async fn check_blob_store_if_needed(&self, outbox: &Outbox) -> Result<()> {
        for membership in self.dirty_rows_to_write().flat_map(|dirty| &dirty.memberships) {
            check_blob_store_for_list(&outbox.store, &membership.address.assume_list_address())
                .await?;
        }
        if self.dirty_rows_to_write().any(|dirty| !dirty.old_blobs.is_empty()) {
            blob_writes::check_has_blob_store(outbox)
        } else {
            Ok(())
        }
    }

    /// Fails if the transaction would encrypt a copy with the keys of a different scope than its primary's, and a
    /// program without keys may have chosen that scope.
    pub(crate) fn refuse_untrusted_copy_scopes(&self, outbox: &Outbox) -> Result<()> {
        for dirty in self.dirty_rows_to_write() {
            for change in &dirty.copy_changes {
                let Some(copy) = &change.wanted else { continue };
                let (kinds, owner) = (change.kinds, &dirty.partition_key);
                outbox.store.sealing.refuse_untrusted_copy_scope(
                    kinds.schema,
                    kinds.copy,
                    owner,
                    copy,
                )?;
            }
        }
        Ok(())
    }

    /// Returns whether the transaction changes no remote copy, no remote list and no stored blob.
    pub(crate) fn is_empty(&self) -> bool {
        self.entities.is_empty()
    }

    /// Returns the dirty rows that the transaction must write.
    pub(crate) fn dirty_rows_to_write(&self) -> impl Iterator<Item = &PlannedDirtyRow> {
        self.entities.iter().map(|entity| &entity.dirty)
    }

    /// Returns the unique keys that must be claimed before the commit.
    pub(crate) fn unique_keys_to_claim(&self) -> Vec<WantedUniqueKey> {
        let mut wanted_keys = Vec::new();
        for (entity_at, entity) in self.entities.iter().enumerate() {
            let PlannedDirtyRow { primary, copy_changes, .. } = &entity.dirty;
            for (change_at, change) in copy_changes.iter().enumerate() {
                let Some(copy) = change.wanted.as_ref().filter(|_| change.needs_claim()) else {
                    continue;
                };
                wanted_keys.push(WantedUniqueKey {
                    position: (entity_at, change_at),
                    address: change.address.clone(),
                    kinds: change.kinds,
                    primary: primary.clone(),
                    copy: copy.clone(),
                });
            }
        }
        wanted_keys
    }

    /// Returns the unique keys that entities of the transaction release, with their current owners.
    pub(crate) fn released_unique_keys(
        &self,
        table: TableName<'_>,
        partition_key: &str,
    ) -> Vec<ReleasedUniqueKey> {
        let mut released_unique_keys = Vec::new();
        for dirty in self.dirty_rows_to_write() {
            let primary = RowAt::new(table, partition_key, &dirty.primary);
            let is_released =
                |change: &&CopyChange| change.kinds.copy.unique && change.wanted.is_none();
            // A unique copy without a wanted row: this transaction releases the key.
            released_unique_keys.extend(dirty.copy_changes.iter().filter(is_released).map(
                |change| ReleasedUniqueKey {
                    primary: primary.to_owned(),
                    address: Some(change.address.clone()),
                },
            ));
        }
        released_unique_keys
    }

    /// Records that the transaction has inserted `reservation` under the key of a copy. The entity at `position` later
    /// replaces the reservation by its copy. Any other entity of the transaction forgets the row that it read under
    /// that key, which keeps it from deleting the reservation.
    pub(crate) fn note_inserted_reservation(
        &mut self,
        position: (usize, usize),
        address: &CopyAddress,
        reservation: Row,
    ) {
        for (entity_at, entity) in self.entities.iter_mut().enumerate() {
            let Some(copies) = &mut entity.copies else { continue };
            let changes = entity.dirty.copy_changes.iter();
            for (change_at, (copy, change)) in copies.iter_mut().zip(changes).enumerate() {
                if (entity_at, change_at) == position {
                    *copy = Some(reservation.clone());
                // The reservation replaced this row and its ETag.
                } else if change.address == *address {
                    *copy = None;
                }
            }
        }
    }

    /// Sets the id of the transaction's claim row.
    pub(crate) fn set_claim(&mut self, id: &str) {
        self.claim = Some(id.to_owned());
    }

    /// Sets the ETags that an entity's primary and dirty row have after the commit. `dirty_etag` is `None` if the
    /// dirty row existed before the commit.
    pub(crate) fn set_committed_etags(
        &mut self,
        entity_at: usize,
        primary_etag: Option<ETag>,
        dirty_etag: Option<ETag>,
    ) {
        if let Some(entity) = self.entities.get_mut(entity_at) {
            entity.primary_etag = primary_etag;
            entity.dirty_etag = dirty_etag;
        }
    }

    /// Writes the lists and copies after the commit, then deletes the dirty rows that need no second look. If any work
    /// is left to a worker, fails with the last failure.
    pub(crate) async fn write_after_commit(mut self, outbox: Arc<Outbox>) -> Result<()> {
        if !outbox.guards.is_guard_enabled(Guard::DestinationFirst) {
            self.read_rows_again(&outbox).await?;
        }
        // Lists go first, because a dirty row may only be deleted after everything in it is written.
        let (settled, failure) = if self.lists.is_empty() {
            (Vec::new(), None)
        } else {
            // Boxed because most commits change no list, and all of them would reserve space for this future.
            Box::pin(self.finish_lists(&outbox)).await
        };
        for entity in &self.entities {
            self.finish_entity(&outbox, entity, &settled).await?;
        }
        failure.map_or(Ok(()), Err)
    }

    /// Reads the copies and lists again, after the commit. Only for simulations: in this order, an older version can
    /// overwrite a newer one.
    async fn read_rows_again(&mut self, outbox: &Outbox) -> Result<()> {
        let memberships = self.entities.iter().flat_map(|entity| &entity.dirty.memberships);
        self.lists = find_lists(&outbox.store, list_addresses(memberships)).await;
        for entity in &mut self.entities {
            let changes = entity.dirty.copy_changes.iter();
            let read = changes.map(|change| outbox.store.read_row(change.address.as_row_at()));
            let read = try_join_all(read).await?;
            // If the second read finds nothing, keep the first.
            for (copy, read) in entity.copies.iter_mut().flatten().zip(read) {
                *copy = read.or(copy.take());
            }
        }
        Ok(())
    }

    /// Writes every remote list once, for all entities. Returns the memberships that no delayed writer can undo, and
    /// the last failure.
    async fn finish_lists(&self, outbox: &Outbox) -> (Vec<&ListMembership>, Option<Error>) {
        let with_dirty = || {
            self.dirty_rows_to_write()
                .flat_map(|dirty| dirty.memberships.iter().map(move |one| (dirty, one)))
        };
        let all: Vec<&ListMembership> = with_dirty().map(|(_, membership)| membership).collect();
        // Write even entries that already exist, which stops older writers.
        let written = write_lists(outbox, &self.deadline, &self.lists, &all, true).await;
        let (mut settled, mut failure) = (Vec::new(), None);
        let mut late: BTreeMap<ListAddress, Vec<(&PlannedDirtyRow, &ListMembership)>> =
            BTreeMap::new();
        for (dirty, membership) in with_dirty() {
            let address = membership.address.assume_list_address();
            match written.get(&address) {
                Some(Ok(write)) if is_membership_settled(outbox, membership, *write) => {
                    settled.push(membership)
                }
                // Written, but a delayed writer could undo it. Keep the dirty row.
                Some(Ok(_)) => {}
                // Writers of one list collide often, so make another attempt.
                Some(Err(error)) if error.is_lost_race() => {
                    late.entry(address).or_default().push((dirty, membership));
                }
                Some(Err(error)) => failure = Some(error.clone()),
                None => failure = Some(left_to_worker_error()),
            }
        }
        for (address, late) in late {
            match write_list_again(outbox, &self.table, &address, &late).await {
                Ok((current, write)) => {
                    let current = current.iter().zip(&late);
                    let is_settled = |(current, _): &(&ListMembership, _)| {
                        is_membership_settled(outbox, current, write)
                    };
                    let now_settled = current.filter(is_settled);
                    settled.extend(now_settled.map(|(_, (_, membership))| *membership));
                }
                Err(error) => failure = Some(error),
            }
        }
        (settled, failure)
    }

    /// Writes the copies of one entity and deletes its old blobs. Then deletes its dirty row, unless a change needs a
    /// second look.
    async fn finish_entity(
        &self,
        outbox: &Outbox,
        entity: &EntityWork,
        settled: &[&ListMembership],
    ) -> Result<()> {
        let Some(copies) = &entity.copies else { return Err(left_to_worker_error()) };
        let writes = entity.dirty.copy_changes.iter().zip(copies);
        let are_written = try_join_all(
            writes.map(|(change, copy)| self.write_copy(outbox, entity, change, copy.as_ref())),
        )
        .await?;
        // Deleted last: until then a copy may still contain the name.
        let owner = outbox.store.names().row_at(
            &self.table,
            &entity.dirty.partition_key,
            &entity.dirty.primary,
        );
        for name in entity.dirty.old_blobs.iter().filter_map(|old| old.owned_blob_name(owner)) {
            self.deadline.send_if_before_deadline(delete_blob(outbox, name)).await?;
        }
        // An existing dirty row contains work of other writers, so a worker deletes it.
        let Some(dirty_etag) = &entity.dirty_etag else { return Ok(()) };
        let is_settled =
            |membership: &ListMembership| settled.iter().any(|one| std::ptr::eq(*one, membership));
        // A delayed writer could insert a deleted copy again, because there is no ETag to stop it. Keep the dirty
        // row for a worker's second look.
        if !are_written.into_iter().all(|is_written| is_written)
            || !entity.dirty.memberships.iter().all(is_settled)
        {
            return Ok(());
        }
        let seen =
            outbox.guards.condition_if_guarded(Guard::DirtyVersion, Some(dirty_etag.clone()));
        let row_key = entity.dirty.row_key();
        let delete = Operation::delete(&entity.dirty.partition_key, &row_key, seen)?;
        outbox.store.apply(&Batch::single(&self.table, delete)?).await.map(drop)
    }

    /// Writes or deletes one copy. Returns `true` if the copy exists and was written under a condition, and `false` if
    /// it was deleted or not touched.
    async fn write_copy(
        &self,
        outbox: &Outbox,
        entity: &EntityWork,
        change: &CopyChange,
        found: Option<&Row>,
    ) -> Result<bool> {
        let PlannedDirtyRow { partition_key, primary, .. } = &entity.dirty;
        let owner = outbox.store.names().row_at(&self.table, partition_key, primary);
        let CopyChange { address, kinds, wanted, .. } = change;
        let claim = found.map(id_of_reserving_claim).transpose()?.flatten();
        // The transaction that owns the claim may still arrive, and needs its reservation.
        let is_claimed_by_other = claim.is_some() && claim != self.claim.as_deref();
        // Overwriting it would give the key away before that transaction is decided.
        if is_claimed_by_other && outbox.guards.is_guard_enabled(Guard::ClaimLeft) {
            return Err(left_to_worker_error());
        }
        // Without an ETag, the row would be written unconditionally.
        if found.is_some_and(|found| found.etag().is_none()) {
            return Err(left_to_worker_error());
        }
        let wanted = wanted.as_ref().zip(entity.primary_etag.as_ref());
        // Without the primary's ETag, the copy could not record the version it was derived from.
        if change.wanted.is_some() != wanted.is_some() {
            return Err(left_to_worker_error());
        }
        let found = match found {
            Some(found) => Some((found, compare_owner_in_copy(found, *kinds, owner)?)),
            None => None,
        };
        let (operation, is_there) =
            match plan_step_for_row(*kinds, owner, found, wanted, |_, _, _| Ok(false))? {
                CopyStep::Write(operation) => (operation, true),
                CopyStep::Delete(operation) => (operation, false),
                // Nothing was written, which proves nothing about delayed writers.
                CopyStep::Keep | CopyStep::NotOurs => return Ok(false),
                CopyStep::Claimed | CopyStep::Occupied => return Err(left_to_worker_error()),
            };
        // The write is conditional, either on the ETag from before the commit or on the key's absence.
        let operation = outbox.guards.keep_remote_condition_if_guarded(operation)?;
        self.deadline.write_copy(&outbox.store, &address.row.table, *kinds, operation).await?;
        Ok(is_there)
    }
}

/// Returns the address of the list for each membership, which is the wanted or unwanted entry of a primary.
fn list_addresses<'l>(memberships: impl Iterator<Item = &'l ListMembership>) -> Vec<ListAddress> {
    memberships.map(|membership| membership.address.assume_list_address()).collect()
}

/// Reads a copy that the primary had before the change. A copy that it did not have counts as absent, and the
/// later insertion fails if there is a row.
async fn read_old_copy(outbox: &Outbox, change: &CopyChange) -> Result<Option<Row>> {
    if !change.was_there {
        return Ok(None);
    }
    outbox.store.read_row(change.address.as_row_at()).await
}
