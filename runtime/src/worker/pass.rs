//! A pass: the rows elsewhere that one dirty row names are made what its primary says now.
//!
//! Exactly in this order: the dirty row was read; then the rows elsewhere; then the primary; then
//! every row is written in the version that was read.

use futures_util::future::try_join_all;

use super::{partition::Aged, primary_state::Derived, state::Worker};
use crate::{
    address::RowAt,
    entity::Schema,
    error::{Error, ErrorKind, Result},
    outbox::{
        deadline::WriteDeadline,
        fast_path::{guarded, read_row},
        guard::{Guard, Guards},
        occupied_key::{OccupiedKey, OccupiedKeyAction},
    },
    plan::outbox::{
        CopyAddress, CopyStep, ListMembership, StoredDirtyRow, equal_except_version,
        is_derived_from_version, owner_of_copy, plan_step, previous_owner, reserving_claim,
    },
    row::Row,
    store::derive::is_open,
};

/// What became of a pass.
#[derive(Debug)]
pub(super) enum Passed {
    /// The dirty row can be removed.
    Done(Open),
    /// Everything is as it should be, and has to be looked at again when nobody can change it any
    /// more. Whether something was written.
    Waits(StoredDirtyRow, bool),
    /// A row that it names is claimed, and left to whoever claims it.
    Claimed,
    /// Another actor was first.
    Raced,
    /// It names what this program does not know.
    Unknown,
    Failed(Aged, Error),
}

/// A dirty row whose work is done.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) open: StoredDirtyRow,
    /// Whether the pass wrote something.
    pub(super) wrote: bool,
}

/// What was done with one row elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Done {
    /// It is there, written under condition by this pass.
    Written,
    Deleted,
    /// Nothing: it was as it should be.
    Nothing,
    /// Nothing: it is claimed, or on its way to another primary.
    Left,
    Unknown,
}

/// A pass whose lists elsewhere are still to be written.
#[derive(Debug)]
pub(super) struct Half {
    open: StoredDirtyRow,
    /// Its age was told before the pass began, and is more by now.
    pub(super) second_look: bool,
    pub(super) done: Vec<Done>,
    pub(super) memberships: Vec<ListMembership>,
}

impl Half {
    /// What became of the pass, where everything was done.
    pub(super) fn passed(self, guards: Guards) -> Passed {
        let Self { open, second_look, done, .. } = self;
        let wrote = done.iter().any(|done| matches!(done, Done::Written | Done::Deleted));
        if done.contains(&Done::Left) {
            return Passed::Claimed;
        }
        if done.contains(&Done::Unknown) {
            return Passed::Unknown;
        }
        let is_sure = second_look || !guards.holds(Guard::SecondLook);
        if is_sure || done.iter().all(|done| *done == Done::Written) {
            return Passed::Done(Open { open, wrote });
        }
        Passed::Waits(open, wrote)
    }
}

impl Worker {
    /// Makes a pass over a dirty row.
    pub(super) async fn pass(&self, table: &str, aged: &Aged) -> Passed {
        let flight = WriteDeadline::begin(self.client.outbox());
        match self.half(table, aged, flight).await {
            Ok(half) => half.passed(self.client.outbox().guards),
            Err(error) => Passed::failed(aged, error),
        }
    }

    /// A pass but for the lists elsewhere that the dirty row names: those are read before, and
    /// written after it.
    pub(super) async fn half(
        &self,
        table: &str,
        aged: &Aged,
        flight: WriteDeadline,
    ) -> Result<Half> {
        let guards = self.client.outbox().guards;
        let second_look = aged.age.is_some_and(|age| age >= self.client.outbox().options.flight);
        let open = StoredDirtyRow::from_row(aged.row.clone())?;
        let primary_read = self.read_primary(table, &open);
        let elsewhere = try_join_all(open.addresses.iter().map(|name| self.read_remote_row(name)));
        let (found, claimed, primary);
        if !guards.holds(Guard::DestinationFirst) {
            primary = primary_read.await?;
            found = elsewhere.await?;
            claimed = self.claimed(table, &open, &found).await?;
        } else if guards.holds(Guard::ClaimBetween) {
            found = elsewhere.await?;
            claimed = self.claimed(table, &open, &found).await?;
            primary = primary_read.await?;
        } else {
            found = elsewhere.await?;
            primary = primary_read.await?;
            claimed = self.claimed(table, &open, &found).await?;
        }
        let derived = self.derived(table, &open, primary.as_ref()).await?;
        let (mut steps, mut memberships) = (Vec::new(), Vec::new());
        for ((name, found), is_claimed) in open.addresses.iter().zip(&found).zip(claimed) {
            if let Some(schema) = self.list_of(name) {
                memberships.push(derived.membership(schema, table, &open, name));
                continue;
            }
            let step = match is_claimed {
                true => Some(CopyStep::Claimed),
                false => self.step(table, &open, name, found.as_ref(), &derived)?,
            };
            steps.push((name, step));
        }
        let own = RowAt::new(table, open.row.partition_key(), &open.primary);
        let done = steps.into_iter().map(|(name, step)| self.take(flight, own, name, step));
        let done = try_join_all(done).await?;
        Ok(Half { open, second_look, done, memberships })
    }

    async fn read_primary(&self, table: &str, open: &StoredDirtyRow) -> Result<Option<Row>> {
        self.client.store().row(RowAt::new(table, open.row.partition_key(), &open.primary)).await
    }

    async fn read_remote_row(&self, name: &CopyAddress) -> Result<Option<Row>> {
        if self.client.outbox().known_types.of_copy(name).is_none() {
            return Ok(None);
        }
        read_row(self.client.outbox(), name).await
    }

    /// The type whose list the name means, where this client can write it.
    fn list_of(&self, name: &CopyAddress) -> Option<&'static Schema> {
        let can_write = !name.list_address().in_blob || self.client.store().has_blobs();
        self.client.outbox().known_types.of_list(name).filter(|_| can_write)
    }

    /// What has to be done with a row elsewhere; `None`: this program does not know its index.
    fn step(
        &self,
        table: &str,
        open: &StoredDirtyRow,
        name: &CopyAddress,
        found: Option<&Row>,
        derived: &Derived<'_>,
    ) -> Result<Option<CopyStep>> {
        let outbox = self.client.outbox();
        let Some((schema, kinds)) = outbox.known_types.of_copy(name) else { return Ok(None) };
        let owner = RowAt::new(table, open.row.partition_key(), &open.primary);
        let version = derived.primary.and_then(Row::etag);
        let wanted = derived.wanted(schema, name, table)?;
        let kinds = wanted.as_ref().map_or(kinds, |(kinds, _)| *kinds);
        let wanted = wanted.as_ref().map(|(_, copy)| copy).zip(version.as_ref());
        let by_version = outbox.guards.holds(Guard::CurrentByVersion);
        let taken =
            plan_step(kinds, owner, found, wanted, |found, copy, version| match by_version {
                // What another program changed says the same version, and does not hold the same.
                true => {
                    Ok(is_derived_from_version(found, version)?
                        && equal_except_version(found, copy)?)
                }
                false => equal_except_version(found, copy),
            })?;
        Ok(Some(match taken {
            // A value that moves on with its entity is the target's before the source is gone.
            CopyStep::Occupied if derived.is_moving()? => CopyStep::Claimed,
            taken => taken,
        }))
    }

    /// Which of the rows elsewhere are claimed, so that only who claims them, or settles the claim,
    /// writes them.
    async fn claimed(
        &self,
        table: &str,
        open: &StoredDirtyRow,
        found: &[Option<Row>],
    ) -> Result<Vec<bool>> {
        let own = RowAt::new(table, open.row.partition_key(), &open.primary);
        let leaves = self.client.outbox().guards.holds(Guard::ClaimLeft);
        let mut claimed = Vec::with_capacity(found.len());
        for (name, found) in open.addresses.iter().zip(found) {
            let known = self.client.outbox().known_types.of_copy(name);
            let claim = found.as_ref().map(reserving_claim).transpose()?.flatten();
            let (Some(found), Some(id), Some((_, kinds))) = (found, claim, known) else {
                claimed.push(false);
                continue;
            };
            let owner = owner_of_copy(found, kinds, table)?;
            let is_own = owner.is_some_and(|owner| owner.at().is_same_row(own));
            let from = previous_owner(found)?;
            let is_left = is_own
                && leaves
                && match is_open(self.client.store(), own, id).await? {
                    Some(is_alive) => is_alive || from.is_some(),
                    None => false,
                };
            // One that was taken over is settled with its claim, and only so.
            claimed
                .push(is_left || (!is_own && from.is_some_and(|from| from.at().is_same_row(own))));
        }
        Ok(claimed)
    }

    async fn take(
        &self,
        flight: WriteDeadline,
        own: RowAt<'_>,
        name: &CopyAddress,
        step: Option<CopyStep>,
    ) -> Result<Done> {
        let (operation, done) = match step {
            None => return Ok(Done::Unknown),
            Some(CopyStep::Write(operation)) => (operation, Done::Written),
            Some(CopyStep::Delete(operation)) => (operation, Done::Deleted),
            Some(CopyStep::Keep) if !self.client.outbox().guards.holds(Guard::CurrentByVersion) => {
                return Ok(Done::Written);
            }
            Some(CopyStep::Keep | CopyStep::NotOurs) => return Ok(Done::Nothing),
            Some(CopyStep::Claimed) => return Ok(Done::Left),
            Some(CopyStep::Occupied) => return Err(self.contested(flight, own, name).await?),
        };
        let Some((_, kinds)) = self.client.outbox().known_types.of_copy(name) else {
            return Ok(Done::Unknown);
        };
        let operation = guarded(self.client.outbox(), operation)?;
        flight.write(self.client.outbox(), &name.table, kinds, operation).await?;
        self.memory().stats.written += 1;
        Ok(done)
    }

    /// Why a row cannot be written that another primary has. One that nobody holds the key of any
    /// more goes, and the pass is made again.
    async fn contested(
        &self,
        flight: WriteDeadline,
        own: RowAt<'_>,
        name: &CopyAddress,
    ) -> Result<Error> {
        let known =
            self.client.outbox().known_types.of_copy(name).filter(|(_, kinds)| kinds.copy.unique);
        let Some((_, kinds)) = known else { return Ok(taken(name)) };
        let again = || Error::new(ErrorKind::Contended, "the place of the copy changed meanwhile");
        let Some(found) = read_row(self.client.outbox(), name).await? else { return Ok(again()) };
        let (outbox, table) = (&**self.client.outbox(), own.table);
        let contender = OccupiedKey { outbox, table, place: own, releasing: &[], name, kinds };
        Ok(match contender.meet(&found).await? {
            OccupiedKeyAction::Violation(error) => error,
            OccupiedKeyAction::Remove(operation) => {
                flight.write(self.client.outbox(), &name.table, kinds, operation).await?;
                again()
            }
            OccupiedKeyAction::Adopt(_)
            | OccupiedKeyAction::Busy
            | OccupiedKeyAction::Pending(_) => again(),
        })
    }
}

impl Passed {
    pub(super) fn failed(aged: &Aged, error: Error) -> Self {
        match error {
            error if is_raced(&error) => Self::Raced,
            error if error.is_unrecognized_entity() => Self::Unknown,
            error => Self::Failed(aged.clone(), error),
        }
    }
}

/// Whether another actor was first, or the pass took too long: it is made again.
fn is_raced(error: &Error) -> bool {
    error.lost_race() || error.is_contended()
}

fn taken(name: &CopyAddress) -> Error {
    let message = "the place of the copy is taken by another entity's copy";
    let index = name.split_index().map_or("", |(_, index)| index);
    Error::new(ErrorKind::UniqueViolation, message).with_index(index).at_row(name.at())
}
