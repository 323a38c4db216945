//! The writer's own way: rows elsewhere are written right after the commit, under the versions that
//! were read before it. Whatever fails is left to a worker.

use std::collections::BTreeMap;

use std::sync::Arc;

use futures_util::future::try_join_all;

use super::{
    deadline::WriteDeadline,
    guard::Guard,
    keys::{ReleasedKey, WantedKey},
    list_retry::write_again,
    remote_list::{is_settled, write_lists},
    state::Outbox,
};
use crate::{
    address::RowAt,
    batch::{Condition, Operation},
    error::{Error, ErrorKind, Result},
    plan::outbox::{
        CopyAddress, CopyChange, CopyStep, DirtyRow, ListAddress, ListMembership, plan_step,
        reserving_claim,
    },
    row::{ETag, Row},
    store::lists::{Lists, find_lists, need_blobs},
};

/// What a transaction concerns elsewhere.
#[derive(Debug)]
pub(crate) struct FastPath {
    table: String,
    flight: WriteDeadline,
    entities: Vec<Entity>,
    /// The lists elsewhere as they were before the commit.
    lists: Lists,
    /// The claim of the transaction.
    claim: Option<String>,
}

/// What it concerns elsewhere for one primary.
#[derive(Debug)]
struct Entity {
    dirty: DirtyRow,
    /// The rows elsewhere as they were before the commit; `None`: they could not be read.
    found: Option<Vec<Option<Row>>>,
    /// The primary's version since the commit.
    version: Option<ETag>,
    /// The version of the dirty row, where the commit created it.
    recorded: Option<ETag>,
}

impl FastPath {
    /// Reads the rows elsewhere that are there by the primaries as they were.
    pub(crate) async fn prepare(outbox: &Outbox, table: &str, dirty: Vec<DirtyRow>) -> Self {
        let flight = WriteDeadline::begin(outbox);
        let memberships = dirty.iter().flat_map(|dirty| &dirty.memberships);
        let lists = find_lists(&outbox.store, places(memberships)).await;
        let mut entities = Vec::new();
        for dirty in dirty {
            let rows = dirty.copy_changes.iter().map(|copy_change| found(outbox, copy_change));
            let found = try_join_all(rows).await.ok();
            entities.push(Entity { dirty, found, version: None, recorded: None });
        }
        Self { table: table.to_owned(), flight, entities, lists, claim: None }
    }

    /// Refuses a change of lists that this client could not write.
    pub(crate) async fn check(&self, outbox: &Outbox) -> Result<()> {
        for membership in self.dirty().flat_map(|dirty| &dirty.memberships) {
            need_blobs(&outbox.store, &membership.address.list_address()).await?;
        }
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entities.is_empty()
    }

    pub(crate) fn dirty(&self) -> impl Iterator<Item = &DirtyRow> {
        self.entities.iter().map(|entity| &entity.dirty)
    }

    /// The keys that have to be claimed.
    pub(crate) fn wanted_keys(&self) -> Vec<WantedKey> {
        let of_entity = |(at, entity): (usize, &Entity)| {
            let DirtyRow { primary, copy_changes, .. } = &entity.dirty;
            let claimed = copy_changes.iter().enumerate().filter(|(_, one)| one.needs_claim());
            let wanted_keys =
                claimed.filter_map(|(place, CopyChange { address: name, kinds, wanted, .. })| {
                    let (name, primary, copy) = (name.clone(), primary.clone(), wanted.clone()?);
                    Some(WantedKey { at: (at, place), name, kinds: *kinds, primary, copy })
                });
            wanted_keys.collect::<Vec<_>>()
        };
        self.entities.iter().enumerate().flat_map(of_entity).collect()
    }

    /// The unique keys that primaries leave.
    pub(crate) fn left(&self, table: &str, partition_key: &str) -> Vec<ReleasedKey> {
        let of_entity = |entity: &Entity| {
            let place = RowAt::new(table, partition_key, &entity.dirty.primary);
            let leaves = |one: &&CopyChange| one.kinds.copy.unique && one.wanted.is_none();
            let left = entity.dirty.copy_changes.iter().filter(leaves);
            let left = left.map(|one| ReleasedKey {
                place: place.to_owned(),
                name: Some(one.address.clone()),
            });
            left.collect::<Vec<_>>()
        };
        self.entities.iter().flat_map(of_entity).collect()
    }

    /// Takes note of a reservation, which another primary of the transaction may have left.
    pub(crate) fn reserved(&mut self, at: (usize, usize), name: &CopyAddress, row: Row) {
        for (entity_at, entity) in self.entities.iter_mut().enumerate() {
            let Some(found) = &mut entity.found else { continue };
            for (place, slot) in found.iter_mut().enumerate() {
                let is_same =
                    entity.dirty.copy_changes.get(place).is_some_and(|d| d.address == *name);
                if (entity_at, place) == at {
                    *slot = Some(row.clone());
                } else if is_same {
                    *slot = None;
                }
            }
        }
    }

    /// Takes note of the claim.
    pub(crate) fn claimed_by(&mut self, id: &str) {
        self.claim = Some(id.to_owned());
    }

    /// Takes note of what the commit made of a primary and its dirty row. `recorded`: the version of
    /// the latter, where it was not there before.
    pub(crate) fn committed(&mut self, at: usize, version: Option<ETag>, recorded: Option<ETag>) {
        if let Some(entity) = self.entities.get_mut(at) {
            entity.version = version;
            entity.recorded = recorded;
        }
    }

    /// Writes the rows elsewhere.
    pub(crate) async fn finish(self, outbox: Arc<Outbox>) -> Result<()> {
        let (settled, failure) = self.finish_lists(&outbox).await;
        for entity in &self.entities {
            self.finish_entity(&outbox, entity, &settled).await?;
        }
        failure.map_or(Ok(()), Err)
    }

    /// Writes every list elsewhere once, for all entities. Those memberships that need no further
    /// look, and the first failure.
    async fn finish_lists(&self, outbox: &Outbox) -> (Vec<&ListMembership>, Option<Error>) {
        let by_entity = || {
            let dirty = self.entities.iter().map(|entity| &entity.dirty);
            dirty.flat_map(|dirty| {
                dirty.memberships.iter().map(move |membership| (dirty, membership))
            })
        };
        let all: Vec<&ListMembership> = by_entity().map(|(_, membership)| membership).collect();
        let is_first = outbox.guards.holds(Guard::DestinationFirst);
        let again = match is_first {
            true => None,
            false => Some(find_lists(&outbox.store, places(all.iter().copied())).await),
        };
        let lists = again.as_ref().unwrap_or(&self.lists);
        let written = write_lists(outbox, self.flight, lists, &all, true).await;
        let (mut settled, mut failure) = (Vec::new(), None);
        let mut late: BTreeMap<ListAddress, Vec<(&DirtyRow, &ListMembership)>> = BTreeMap::new();
        for (dirty, membership) in by_entity() {
            let place = membership.address.list_address();
            match written.get(&place) {
                Some(Ok(listed)) if is_settled(outbox, membership, *listed) => {
                    settled.push(membership)
                }
                Some(Ok(_)) => {}
                Some(Err(error)) if error.lost_race() && is_first => {
                    late.entry(place).or_default().push((dirty, membership));
                }
                Some(Err(error)) => failure = Some(error.clone()),
                None => failure = Some(unread()),
            }
        }
        for (place, late) in late {
            match write_again(outbox, &self.table, &place, &late).await {
                Ok((now, listed)) => {
                    let now = now.iter().zip(&late);
                    let done = now.filter(|(now, _)| is_settled(outbox, now, listed));
                    settled.extend(done.map(|(_, (_, membership))| *membership));
                }
                Err(error) => failure = Some(error),
            }
        }
        (settled, failure)
    }

    async fn finish_entity(
        &self,
        outbox: &Outbox,
        entity: &Entity,
        settled: &[&ListMembership],
    ) -> Result<()> {
        let Some(found) = &entity.found else { return Err(unread()) };
        let copy_changes = entity.dirty.copy_changes.iter().zip(found);
        let written = try_join_all(copy_changes.map(|(copy_change, found)| {
            self.finish_row(outbox, entity, copy_change, found.as_ref())
        }))
        .await?;
        let Some(recorded) = &entity.recorded else { return Ok(()) };
        let is_settled = |membership: &ListMembership| {
            settled.iter().any(|settled| std::ptr::eq(*settled, membership))
        };
        if !written.into_iter().all(|written| written)
            || !entity.dirty.memberships.iter().all(is_settled)
        {
            return Ok(());
        }
        let condition = match outbox.guards.holds(Guard::DirtyVersion) {
            true => Condition::Match(recorded.clone()),
            false => Condition::Any,
        };
        let row_key = entity.dirty.row_key();
        let remove = Operation::delete(&entity.dirty.partition_key, &row_key, condition)?;
        outbox.store.apply_one(&self.table, remove).await.map(drop)
    }

    /// `true`: the row is there, written under condition by this writer.
    async fn finish_row(
        &self,
        outbox: &Outbox,
        entity: &Entity,
        copy_change: &CopyChange,
        found: Option<&Row>,
    ) -> Result<bool> {
        let DirtyRow { partition_key, primary, .. } = &entity.dirty;
        let owner = RowAt { table: &self.table, partition_key, row_key: primary };
        let CopyChange { address: name, kinds, wanted, .. } = copy_change;
        let again = match outbox.guards.holds(Guard::DestinationFirst) {
            true => None,
            false => read_row(outbox, name).await?,
        };
        let found = again.as_ref().or(found);
        let claim = found.map(reserving_claim).transpose()?.flatten();
        let is_left = outbox.guards.holds(Guard::ClaimLeft);
        if is_left && claim.is_some() && claim != self.claim.as_deref() {
            return Err(unread());
        }
        let wanted = wanted.as_ref().zip(entity.version.as_ref());
        if copy_change.wanted.is_some() != wanted.is_some() {
            return Err(unread());
        }
        let step = plan_step(*kinds, owner, found, wanted, |_, _, _| Ok(false))?;
        let (operation, is_there) = match step {
            CopyStep::Write(operation) => (operation, true),
            CopyStep::Delete(operation) => (operation, false),
            CopyStep::Keep | CopyStep::NotOurs => return Ok(false),
            CopyStep::Claimed | CopyStep::Occupied => return Err(unread()),
        };
        let operation = guarded(outbox, operation)?;
        self.flight.write(outbox, &name.table, *kinds, operation).await?;
        Ok(is_there)
    }
}

fn places<'l>(memberships: impl Iterator<Item = &'l ListMembership>) -> Vec<ListAddress> {
    memberships.map(|membership| membership.address.list_address()).collect()
}

/// The operation, without its condition where a simulation leaves that out.
pub(crate) fn guarded(outbox: &Outbox, operation: Operation) -> Result<Operation> {
    if outbox.guards.holds(Guard::DestinationVersion) {
        return Ok(operation);
    }
    let row = operation.row();
    Ok(match operation.verb() {
        crate::batch::Verb::Delete => {
            Operation::delete(row.partition_key(), row.row_key(), Condition::Any)?
        }
        _ => Operation::insert_or_replace(row.clone()),
    })
}

async fn found(outbox: &Outbox, copy_change: &CopyChange) -> Result<Option<Row>> {
    if !copy_change.was_there {
        return Ok(None);
    }
    read_row(outbox, &copy_change.address).await
}

/// A row elsewhere as it is.
pub(crate) async fn read_row(outbox: &Outbox, name: &CopyAddress) -> Result<Option<Row>> {
    outbox.store.row(name.at()).await
}

fn unread() -> Error {
    Error::new(ErrorKind::Contended, "the copies in other partitions were left to a worker")
}
