//! A pass: makes the remote copies in one dirty row equal to what their primary currently derives.
//!
//! The order of its requests is fixed: read the dirty row, then the copies, then the primary. Then write each copy
//! under the ETag that was read.

use std::time::Duration;

use futures_util::future::try_join_all;

use super::{
    dirty_row::ParsedDirtyRow, partition::OutboxRow, primary_state::DerivedRows, state::Worker,
};
use crate::{
    address::RowAt,
    entity::{CopyAndPrimaryFamily, points_to},
    error::{Error, ErrorKind, Result},
    guard::{ActiveGuards, Guard},
    outbox::claim_state::{ClaimState, read_claim_state},
    outbox::{
        blob_writes::delete_blob,
        deadline::WriteDeadline,
        known_types::Named,
        occupied_key::{OccupiedKey, OccupiedKeyAction},
    },
    plan::outbox::{
        CopyAddress, CopyOwnership, CopyStep, ListMembership, StoredDirtyRow,
        compare_owner_in_copy, equal_except_version, id_of_reserving_claim,
        is_derived_from_version, plan_step_for_row, previous_owner,
    },
    row::Row,
    store::derive::read_primary_to_derive,
};

/// The result of a pass over a dirty row.
#[derive(Debug)]
pub(super) enum PassOutcome {
    /// The dirty row can be deleted.
    Finished(FinishedDirtyRow),
    /// All copies are correct. The dirty row is kept until a pass begins after the write deadline, because a
    /// delayed writer could still change them.
    AwaitsSecondLook(FinishedDirtyRow),
    /// A claim reserves a copy. Only the writer or worker that resolves the claim writes it.
    Claimed,
    /// The dirty row contains an index or a list that this program does not know. The row is kept.
    UnknownType,
    Failed(OutboxRow, Error),
}

/// A dirty row whose copies and lists are correct.
#[derive(Debug)]
pub(super) struct FinishedDirtyRow {
    pub(super) dirty: StoredDirtyRow,
    /// Whether the pass wrote or deleted a copy or a list.
    pub(super) has_written: bool,
    /// The time until no delayed writer can change a copy or a list any more.
    pub(super) until_second_look: Duration,
}

/// The result of a pass for one remote copy or list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopyOutcome {
    /// The copy exists and the pass wrote it under a condition.
    Written,
    /// The copy exists with the content and the ETag of the primary, which was read after it. Delayed writes of
    /// the copy fail or write the same content.
    Current,
    Deleted,
    /// The copy or entry was already correct and was not written. This proves nothing about delayed writes.
    Unchanged,
    /// The copy was not written: a claim reserves its key, or the key now belongs to another primary.
    Claimed,
    UnknownType,
}

/// A copy in a dirty row, as it was read.
#[derive(Debug)]
struct ReadCopy<'d> {
    address: &'d CopyAddress,
    kinds: CopyAndPrimaryFamily,
    /// The row and its primary, or `None` if there is no row.
    found: Option<(Row, CopyOwnership)>,
    /// Whether a claim reserves the row, in which case the pass must not write it.
    is_claimed: bool,
}

/// A pass whose copies are written, but not its remote lists.
#[derive(Debug)]
pub(super) struct PassBeforeLists {
    /// Whether the dirty row was older than the write deadline when the pass began. No delayed writer can then
    /// change a copy after it.
    pub(super) is_second_look: bool,
    until_second_look: Duration,
    pub(super) outcomes: Vec<CopyOutcome>,
    pub(super) memberships: Vec<ListMembership>,
}

impl PassBeforeLists {
    /// Returns the outcome of the pass over `dirty`. Called after its lists are written.
    pub(super) fn finish_pass(self, dirty: StoredDirtyRow, guards: ActiveGuards) -> PassOutcome {
        let Self { is_second_look, until_second_look, outcomes, .. } = self;
        if outcomes.contains(&CopyOutcome::Claimed) {
            return PassOutcome::Claimed;
        }
        if outcomes.contains(&CopyOutcome::UnknownType) {
            return PassOutcome::UnknownType;
        }
        let wrote = |outcome| matches!(outcome, CopyOutcome::Written | CopyOutcome::Deleted);
        let has_written = outcomes.iter().copied().any(wrote);
        let finished = FinishedDirtyRow { dirty, has_written, until_second_look };
        // A conditional write makes every delayed write of that copy fail. A deleted copy has no ETag: until the write
        // deadline has passed, a delayed writer could insert it again.
        let is_right = |outcome| matches!(outcome, CopyOutcome::Written | CopyOutcome::Current);
        let is_all_written = outcomes.iter().copied().all(is_right);
        if is_all_written || is_second_look || !guards.is_guard_enabled(Guard::SecondLook) {
            PassOutcome::Finished(finished)
        } else {
            PassOutcome::AwaitsSecondLook(finished)
        }
    }
}

impl Worker {
    /// Makes a pass over a dirty row that contains no remote lists.
    pub(super) async fn pass_without_lists(&self, table: &str, row: ParsedDirtyRow) -> PassOutcome {
        let deadline = self.outbox().start_deadline();
        match self.pass_copies(table, &row, &deadline).await {
            Ok(pass) => pass.finish_pass(row.dirty, self.outbox().guards),
            Err(error) => PassOutcome::Failed(row.read, error),
        }
    }

    /// Makes the copies in a dirty row equal to what the primary derives. The caller reads the remote lists before
    /// this and writes them after it.
    pub(super) async fn pass_copies(
        &self,
        table: &str,
        row: &ParsedDirtyRow,
        deadline: &WriteDeadline,
    ) -> Result<PassBeforeLists> {
        let guards = self.outbox().guards;
        let write_deadline = self.outbox().options.write_deadline;
        let mut pass = PassBeforeLists {
            // Decided before the reads: in a second look, the copies are read after every delayed write has
            // ended.
            is_second_look: row.read.is_older_than(write_deadline),
            until_second_look: row.read.time_until_age(write_deadline),
            outcomes: Vec::new(),
            memberships: Vec::new(),
        };
        if row.is_wholly_unknown() {
            pass.outcomes.push(CopyOutcome::UnknownType);
            return Ok(pass);
        }
        let owner = row.primary(self.store().names(), table);
        let copies = async {
            let mut copies = self.read_copies(owner, row).await?;
            self.find_claimed(owner, &mut copies).await?;
            Ok(copies)
        };
        // Read the primary last. A copy that is written under an ETag read before the primary cannot overwrite what
        // a newer version of the primary made of that copy.
        let primary = self.read_primary(owner, row);
        let read = guards.await_in_guarded_order(Guard::DestinationFirst, copies, primary).await?;
        let (mut copies, primary) = read;
        if !guards.is_guard_enabled(Guard::ClaimBetween) {
            // Only a simulation reads the claims this late, to show the damage.
            self.find_claimed(owner, &mut copies).await?;
        }
        let derived = self.derive_rows(table, row, primary.as_ref()).await?;
        pass.outcomes = self.write_copies(deadline, owner, &copies, &derived).await?;
        for (address, named) in row.named_addresses() {
            match named {
                Named::List(schema) => {
                    pass.memberships.push(derived.list_membership(schema, owner, address));
                }
                Named::Unknown => pass.outcomes.push(CopyOutcome::UnknownType),
                Named::Copy(_) | Named::Blob => {}
            }
        }
        self.remove_blobs(deadline, primary.as_ref(), row, &mut pass.outcomes).await?;
        Ok(pass)
    }

    /// Writes the copies that differ from what the primary derives. Returns the outcome of each.
    async fn write_copies(
        &self,
        deadline: &WriteDeadline,
        owner: RowAt<'_>,
        copies: &[ReadCopy<'_>],
        derived: &DerivedRows<'_>,
    ) -> Result<Vec<CopyOutcome>> {
        let mut steps = Vec::new();
        for copy in copies {
            let step = if copy.is_claimed {
                CopyStep::Claimed
            } else {
                self.plan_copy(owner, copy, derived)?
            };
            steps.push((copy, step));
        }
        let writes =
            steps.into_iter().map(|(copy, step)| self.write_copy(deadline, owner, copy, step));
        try_join_all(writes).await
    }

    /// Deletes the blobs in a dirty row and adds the outcomes. Keeps them if a copy was not written.
    async fn remove_blobs(
        &self,
        deadline: &WriteDeadline,
        primary: Option<&Row>,
        row: &ParsedDirtyRow,
        outcomes: &mut Vec<CopyOutcome>,
    ) -> Result<()> {
        let is_left = |outcome| matches!(outcome, CopyOutcome::Claimed | CopyOutcome::UnknownType);
        // A copy that was not written may still point to the blob.
        let left = outcomes.iter().copied().find(|outcome| is_left(*outcome));
        for (address, named) in row.named_addresses() {
            if matches!(named, Named::Blob) {
                outcomes.push(match left {
                    Some(left) => left,
                    // Deleted last: until then a copy may still contain the name.
                    None => self.remove_blob(deadline, primary, &address.row.row_key).await?,
                });
            }
        }
        Ok(())
    }

    /// Deletes a blob, unless the primary points to it.
    async fn remove_blob(
        &self,
        deadline: &WriteDeadline,
        primary: Option<&Row>,
        name: &str,
    ) -> Result<CopyOutcome> {
        if !primary.map(|primary| points_to(primary, name)).transpose()?.unwrap_or_default() {
            deadline.send_if_before_deadline(delete_blob(self.outbox(), name)).await?;
            self.lock_memory().stats.written += 1;
        }
        // No writer can write a blob of this name again, so no second look is needed.
        Ok(CopyOutcome::Written)
    }

    async fn read_primary(&self, at: RowAt<'_>, row: &ParsedDirtyRow) -> Result<Option<Row>> {
        let mut known = row.named.iter().filter_map(|named| named.schema());
        let wide = known.find(|schema| schema.is_wide());
        read_primary_to_derive(self.store(), at, wide).await
    }

    /// Returns the write that corrects a remote copy.
    fn plan_copy(
        &self,
        owner: RowAt<'_>,
        ReadCopy { address, kinds, found, .. }: &ReadCopy<'_>,
        derived: &DerivedRows<'_>,
    ) -> Result<CopyStep> {
        let found = found.as_ref().map(|(row, owner)| (row, *owner));
        let version = derived.primary.and_then(Row::etag);
        let wanted = derived.wanted_copy(kinds.schema, address, owner.table);
        // The copy has the form of the version that wrote the primary.
        let kinds = wanted.as_ref().map_or(*kinds, |(kinds, _)| *kinds);
        let wanted = wanted.as_ref().map(|(_, copy)| copy).zip(version.as_ref());
        let names = owner.table.names();
        let needs_version = self.outbox().guards.is_guard_enabled(Guard::CurrentByVersion);
        let step = plan_step_for_row(kinds, owner, found, wanted, |found, copy, version| {
            // Equal content may come from an older version, whose writer may still overwrite it. An equal version is
            // not enough either: another program may have changed the copy.
            let is_current = !needs_version || is_derived_from_version(found, version)?;
            Ok(is_current && equal_except_version(found, copy, names)?)
        })?;
        Ok(match step {
            // A unique key that moves with its entity belongs to the move's target before the source is
            // deleted.
            CopyStep::Occupied if derived.is_move_source()? => CopyStep::Claimed,
            step => step,
        })
    }

    /// Reads the copies in a dirty row, each with the primary that it belongs to.
    async fn read_copies<'d>(
        &self,
        primary: RowAt<'_>,
        row: &'d ParsedDirtyRow,
    ) -> Result<Vec<ReadCopy<'d>>> {
        let known = row.named_addresses().filter_map(|(address, named)| match named {
            Named::Copy(kinds) => Some((address, kinds)),
            Named::List(_) | Named::Blob | Named::Unknown => None,
        });
        let reads = known.map(|(address, kinds)| async move {
            let row = self.store().read_row(address.as_row_at()).await?;
            let owner = |row: &Row| compare_owner_in_copy(row, kinds, primary);
            let owner = row.as_ref().map(owner).transpose()?;
            Ok::<_, Error>(ReadCopy { address, kinds, found: row.zip(owner), is_claimed: false })
        });
        try_join_all(reads).await
    }

    /// Records for each copy whether a claim reserves it.
    async fn find_claimed(&self, primary: RowAt<'_>, copies: &mut [ReadCopy<'_>]) -> Result<()> {
        let names = primary.table.names();
        let leaves_claimed = self.outbox().guards.is_guard_enabled(Guard::ClaimLeft);
        for copy in copies {
            copy.is_claimed = false;
            let Some((row, owner)) = &copy.found else { continue };
            let Some(id) = id_of_reserving_claim(row)? else { continue };
            let is_own = *owner == CopyOwnership::Ours;
            let previous = previous_owner(names, row)?;
            // The reservation of a claim that is gone is written like any copy. So is the reservation of a dead claim,
            // unless it was taken over: it may then have to be returned to its previous owner.
            let is_reserved = is_own
                && leaves_claimed
                && match read_claim_state(self.store(), primary, id).await? {
                    ClaimState::Alive => true,
                    ClaimState::Dead => previous.is_some(),
                    ClaimState::Gone => false,
                };
            let is_taken_over =
                !is_own && previous.is_some_and(|previous| previous.as_row_at() == primary);
            copy.is_claimed = is_reserved || is_taken_over;
        }
        Ok(())
    }

    /// Writes one copy, if necessary.
    async fn write_copy(
        &self,
        deadline: &WriteDeadline,
        primary: RowAt<'_>,
        copy: &ReadCopy<'_>,
        step: CopyStep,
    ) -> Result<CopyOutcome> {
        let guards = self.outbox().guards;
        let (operation, outcome) = match step {
            CopyStep::Write(operation) => (operation, CopyOutcome::Written),
            CopyStep::Delete(operation) => (operation, CopyOutcome::Deleted),
            CopyStep::Keep if !guards.is_guard_enabled(Guard::CurrentByVersion) => {
                // Counted as written without a write. Only a simulation does this.
                return Ok(CopyOutcome::Written);
            }
            // Leave the copy unchanged. Keep the dirty row for a second look, because a delayed write
            // could still arrive. If reads may lag, a delayed writer may have read an older primary after this copy.
            CopyStep::Keep if self.store().capabilities().strong_reads => {
                return Ok(CopyOutcome::Current);
            }
            CopyStep::Keep | CopyStep::NotOurs => return Ok(CopyOutcome::Unchanged),
            CopyStep::Claimed => return Ok(CopyOutcome::Claimed),
            CopyStep::Occupied => {
                return Err(self.resolve_occupied(deadline, primary, copy).await?);
            }
        };
        let operation = guards.keep_remote_condition_if_guarded(operation)?;
        let ReadCopy { address, kinds, .. } = copy;
        deadline.write_copy(self.store(), &address.row.table, *kinds, operation).await?;
        self.lock_memory().stats.written += 1;
        Ok(outcome)
    }

    /// Returns the error for a copy whose key is occupied by another primary's copy. If the index is unique and
    /// the other primary no longer derives the key, deletes that copy. The next pass then inserts the wanted one.
    async fn resolve_occupied(
        &self,
        deadline: &WriteDeadline,
        primary: RowAt<'_>,
        &ReadCopy { address, kinds, .. }: &ReadCopy<'_>,
    ) -> Result<Error> {
        if !kinds.copy.unique {
            return Ok(occupied_key_error(address));
        }
        let changed = || {
            Error::new(ErrorKind::Contended, "another entity took the copy's key in the meantime")
        };
        // The row is gone, and the next pass inserts the wanted copy.
        let Some(found) = self.store().read_row(address.as_row_at()).await? else {
            return Ok(changed());
        };
        let key = OccupiedKey { outbox: self.outbox(), primary, released: &[], address, kinds };
        Ok(match key.decide_action(&found).await? {
            OccupiedKeyAction::Violation(error, _) => error,
            OccupiedKeyAction::Remove(operation) => {
                // Delete under the ETag that was read before the owners, which lets a renewed claim on
                // it win.
                deadline.write_copy(self.store(), &address.row.table, kinds, operation).await?;
                changed()
            }
            OccupiedKeyAction::TakeOver(_)
            | OccupiedKeyAction::Busy(_)
            | OccupiedKeyAction::Pending(_) => changed(),
        })
    }
}

/// Returns the error for a key that another entity's copy occupies in an index that is not unique.
fn occupied_key_error(address: &CopyAddress) -> Error {
    let message = "the key of the copy is held by another entity's copy";
    let index = address.split_index().map_or("", |(_, index)| index);
    Error::unique_violation(index, message).at_row(address.as_row_at())
}
