//! Confirms remote suspects. Reads each in the order copy, claim, dirty row, primary. Reads it again after one
//! write deadline, when no writer can still act on older readings. Reports a mismatch if both readings have
//! equal ETags.

use std::{pin::pin, time::Duration};

use futures_util::{StreamExt, stream};

use super::{
    fact::{CopyFactReader, Fact, copy_family_with_primary},
    finding::{Finding, FindingKind, LocalOrRemoteOwner, copy_difference, entry_mismatch},
    scan::{ProgressMeter, TablePager, UnmatchedFacts},
};
use crate::{
    address::RowAt,
    entity::{CopyAndPrimaryFamily, EntityRows, TableEntity},
    error::Result,
    guard::Guard,
    key::RowFamily,
    limits::saturating_u64,
    maintain::rows::{derive_existing, read_primary, read_row},
    outbox::claim_state::{ClaimState, read_claim_state},
    plan::{
        derive::Derived,
        move_mark::move_id,
        outbox::{
            CopyAddress, CopyOwnership, compare_owner_in_copy, copy_with_owner,
            dirty_row_key_of_primary, id_of_reserving_claim, list_entry, owner_of_copy,
        },
    },
    row::{ETag, Row},
    store::lists::find_list,
    table::Table,
    timers,
};

/// The most suspects that wait together for their second reading. Each takes a few hundred bytes.
const SUSPECTS_PER_WAIT: usize = 10_000;

/// The number of suspects that are read concurrently.
const READERS: usize = 16;

/// A remote copy or list entry without a counterpart.
#[derive(Debug)]
struct Suspect {
    family: &'static RowFamily,
    address: CopyAddress,
    /// PartitionKey and RowKey of the primary, or `None` if the copy does not contain them.
    primary: Option<(String, String)>,
    /// Whether the copy or entry exists. `false` if a primary derives it but it was not found.
    is_found: bool,
}

/// A mismatch in one reading. A second, equal reading confirms it.
#[derive(Debug, PartialEq)]
struct Mismatch {
    kind: FindingKind,
    /// The copy's ETag, or `None` for a list, whose ETag changes with every entry.
    copy_etag: Option<ETag>,
    primary_etag: Option<ETag>,
}

/// The result of reading a suspect.
enum Outcome {
    /// The suspect is not a finding. Either nothing is wrong, or copy and primary are both suspects and the
    /// other one reports the mismatch.
    Right,
    /// Open outbox work may still correct the suspect.
    Pending,
    Wrong(Mismatch),
}

/// Confirms the unmatched remote facts of one window.
pub(crate) struct RemoteConfirmer<'t, E> {
    reader: CopyFactReader<'t, E>,
    unmatched: UnmatchedFacts,
    pager: TablePager,
    /// Whether suspects are read again after one write deadline.
    waits: bool,
}

impl<'t, E: TableEntity> RemoteConfirmer<'t, E> {
    /// Creates a confirmer. If `waits` is `false`, it does not wait for a second reading. It then counts the
    /// suspects in the progress and returns no findings.
    pub(crate) fn new(
        reader: CopyFactReader<'t, E>,
        unmatched: UnmatchedFacts,
        waits: bool,
    ) -> Self {
        let pager = TablePager::new(&reader.table.name, &unmatched.scope);
        Self { reader, unmatched, pager, waits }
    }

    /// Returns the confirmed findings among the next suspects, about 10,000 at a time. Returns `None` after the
    /// last.
    pub(crate) async fn next_findings(
        &mut self,
        progress: &mut ProgressMeter,
    ) -> Result<Option<Vec<Finding>>> {
        let mut wrong = Vec::new();
        // Collect suspects from several pages, to wait once for many of them.
        while wrong.len() < SUSPECTS_PER_WAIT {
            let Some(suspects) = self.next_suspects().await? else { break };
            let readings = stream::iter(suspects)
                .map(|suspect| read_suspect(self.reader.table, suspect))
                .buffered(READERS);
            let mut readings = pin!(readings);
            while let Some(reading) = readings.next().await {
                match reading? {
                    (suspect, Outcome::Wrong(mismatch)) => wrong.push((suspect, mismatch)),
                    (_, Outcome::Pending) => progress.counts.pending += 1,
                    (_, Outcome::Right) => {}
                }
            }
        }
        if wrong.is_empty() {
            return Ok(None);
        }
        progress.counts.suspects += saturating_u64(wrong.len());
        if !self.waits {
            return Ok(Some(Vec::new()));
        }
        self.read_again(wrong, progress).await.map(Some)
    }

    /// Reads one page of the tables and returns its suspects, or `None` at the end.
    async fn next_suspects(&mut self) -> Result<Option<Vec<Suspect>>> {
        let table = self.reader.table;
        let Some(page) = self.pager.next_page(table).await? else { return Ok(None) };
        let tokens = table.key_token_maker().await?;
        let mut suspects = Vec::new();
        for row in &page.rows {
            let mut keep = |fact: &Fact<'_>| {
                if self.unmatched.is_unmatched_fact(fact) {
                    let primary = fact.primary.map(|keys| keys.partition_and_row_key());
                    suspects.push(Suspect {
                        family: fact.family,
                        address: fact.remote_address(E::SCHEMA, table.table_name()),
                        primary: primary.map(|(p, r)| (p.to_owned(), r.to_owned())),
                        is_found: fact.is_found,
                    });
                }
            };
            let read = || self.reader.read_facts_of_row(&page.table, row, &tokens, &mut keep);
            table.run_with_blind_token_keys(&tokens, read).await?;
        }
        Ok(Some(suspects))
    }

    /// Waits until every write that began before the first reading has ended, then reads the suspects again.
    /// Returns the suspects whose two readings are equal.
    async fn read_again(
        &self,
        wrong: Vec<(Suspect, Mismatch)>,
        progress: &mut ProgressMeter,
    ) -> Result<Vec<Finding>> {
        let outbox = self.reader.table.client.outbox();
        let own = &self.reader.table.name;
        if !outbox.guards.is_guard_enabled(Guard::CheckTwice) {
            return Ok(wrong
                .into_iter()
                .map(|(suspect, first)| finding_of_suspect(suspect, first, own))
                .collect());
        }
        progress.notify_listener();
        // Wait one second more, so the wait cannot end at the moment when a write may still begin.
        let deadline = outbox.options.write_deadline.saturating_add(Duration::from_secs(1));
        // Send nothing in the meantime. The program's own writers may continue.
        timers::sleep(deadline).await;
        let (suspects, before): (Vec<_>, Vec<_>) = wrong.into_iter().unzip();
        let readings = stream::iter(suspects)
            .map(|suspect| read_suspect(self.reader.table, suspect))
            .buffered(READERS);
        let mut readings = pin!(readings.zip(stream::iter(before)));
        let mut findings = Vec::new();
        while let Some((reading, before)) = readings.next().await {
            match reading? {
                // Equal ETags of copy and primary prove that neither was written since the first
                // reading.
                (suspect, Outcome::Wrong(now)) if now == before => {
                    findings.push(finding_of_suspect(suspect, now, own));
                }
                (_, Outcome::Pending) => progress.counts.pending += 1,
                _ => {}
            }
        }
        Ok(findings)
    }
}

fn finding_of_suspect(suspect: Suspect, mismatch: Mismatch, primary_table: &str) -> Finding {
    let Suspect { family, address, primary, .. } = suspect;
    let (primary_partition_key, primary) = primary.unzip();
    Finding {
        kind: mismatch.kind,
        index: family.name,
        table: address.row.table.clone(),
        partition_key: address.row.partition_key.clone(),
        row_key: address.row.row_key.clone(),
        primary_partition_key,
        primary,
        primary_table: primary_table.to_owned(),
        is_entry: family.is_list(),
        copy_etag: mismatch.copy_etag,
        remote_address: Some(Box::new(address)),
    }
}

/// Reads a suspect and returns it together with the outcome.
async fn read_suspect<E: TableEntity>(
    table: &Table<E>,
    suspect: Suspect,
) -> Result<(Suspect, Outcome)> {
    let outcome = read_outcome(table, &suspect).await?;
    Ok((suspect, outcome))
}

/// Reads copy, claim, dirty row and primary, in this order. A writer records its work before it changes the
/// primary. If there was no dirty row, the primary, which is read last, therefore contains no unfinished
/// change.
async fn read_outcome<E: TableEntity>(table: &Table<E>, suspect: &Suspect) -> Result<Outcome> {
    let kinds = copy_family_with_primary::<E>(suspect.family).filter(|_| suspect.family.is_copy());
    let (copy, times) = match (kinds, &suspect.primary) {
        (None, Some(primary)) => (None, times_in_list(table, &suspect.address, primary).await?),
        _ => (read_row(table, suspect.address.as_row_at()).await?, 0),
    };
    let looks_for_work = table.client.outbox().guards.is_guard_enabled(Guard::CheckOpenWork);
    // Read the claim before the primary: if the claim is gone, it was resolved, and the primary shows the
    // result.
    if looks_for_work && is_claimed(table, kinds, copy.as_ref()).await? {
        return Ok(Outcome::Pending);
    }
    let copy_etag = copy.as_ref().and_then(Row::etag);
    let Some((partition_key, row_key)) = &suspect.primary else {
        // A copy that names no primary belongs to none.
        return Ok(match copy {
            Some(_) => {
                let kind = FindingKind::Orphan;
                Outcome::Wrong(Mismatch { kind, copy_etag, primary_etag: None })
            }
            None => Outcome::Right,
        });
    };
    let owner = table.row_at(partition_key, row_key);
    let dirty_row_key_of_primary = dirty_row_key_of_primary(row_key);
    let dirty_row = owner.with_row_key(&dirty_row_key_of_primary);
    if looks_for_work && table.client.store().read_row(dirty_row).await?.is_some() {
        return Ok(Outcome::Pending);
    }
    let primary = read_primary(table, owner).await?;
    // The entity is being moved, and its target may already own the copy.
    if looks_for_work && primary.as_ref().map(move_id).transpose()?.flatten().is_some() {
        return Ok(Outcome::Pending);
    }
    let tokens = table.key_token_maker().await?;
    // This program does not know which copies a primary of an unknown version should have.
    let derive = || derive_existing::<E>(primary.as_ref(), &tokens);
    let derived = table.run_with_blind_token_keys(&tokens, derive).await?;
    if let Derived::UnknownVersion(_) = derived {
        return Ok(Outcome::Right);
    }
    let rows = derived.into_known_rows(E::SCHEMA)?;
    let kind = match kinds {
        Some(kinds) => {
            let copy = match copy.as_ref() {
                Some(copy) => Some((copy, copy_ownership(kinds, copy, owner)?)),
                None => None,
            };
            copy_mismatch(&suspect.address, kinds, owner, copy, rows)?
        }
        None => {
            let is_wanted = rows.is_some_and(|rows| {
                let mut lists = rows.remote_lists.iter();
                lists.any(|list| suspect.address.is_same_address_as_list(owner.table, list))
            });
            entry_mismatch(is_wanted, times)
        }
    };
    // A mismatch has two sides: the copy that exists, and the primary that should have another one. Report
    // each kind from only one side.
    let is_reported_here = |kind: &FindingKind| {
        suspect.is_found == matches!(kind, FindingKind::Stale | FindingKind::Orphan)
    };
    Ok(match kind.filter(is_reported_here) {
        Some(kind) => {
            let primary_etag = primary.as_ref().and_then(Row::etag);
            Outcome::Wrong(Mismatch { kind, copy_etag, primary_etag })
        }
        None => Outcome::Right,
    })
}

/// Returns how a remote copy differs from the copy that its primary derives, if it does.
fn copy_mismatch(
    address: &CopyAddress,
    kinds: CopyAndPrimaryFamily,
    owner: RowAt<'_>,
    found: Option<(&Row, LocalOrRemoteOwner)>,
    rows: Option<EntityRows>,
) -> Result<Option<FindingKind>> {
    let ownership = found.map_or(LocalOrRemoteOwner::OfPrimary, |(_, ownership)| ownership);
    let mut copies = rows.into_iter().flat_map(|rows| rows.remote_copies);
    let wanted = copies.find(|copy| address.is_same_address_as_copy(owner.table, copy));
    let wanted = wanted.map(|copy| copy_with_owner(&copy.row, kinds, owner, None)).transpose()?;
    let names = owner.table.names();
    copy_difference(wanted.as_ref(), found.map(|(found, _)| found), ownership, names)
}

/// Returns which primary a stored copy belongs to.
fn copy_ownership(
    kinds: CopyAndPrimaryFamily,
    copy: &Row,
    owner: RowAt<'_>,
) -> Result<LocalOrRemoteOwner> {
    Ok(match compare_owner_in_copy(copy, kinds, owner)? {
        CopyOwnership::Ours => LocalOrRemoteOwner::OfPrimary,
        CopyOwnership::Another => LocalOrRemoteOwner::OfAnother,
    })
}

/// Returns how often a remote list contains the entry of a primary.
async fn times_in_list<E: TableEntity>(
    table: &Table<E>,
    address: &CopyAddress,
    (partition_key, row_key): &(String, String),
) -> Result<usize> {
    let list = match find_list(table.client.store(), &address.assume_list_address()).await {
        // The table is created with its first list.
        Err(error) if error.is_table_missing() || error.is_decode() => return Ok(0),
        list => list?,
    };
    let owner = table.row_at(partition_key, row_key);
    let entry = list_entry(owner, E::SCHEMA, address);
    Ok(list.ids().iter().filter(|id| **id == entry).count())
}

/// Returns whether a claim reserves the copy. The claim's transaction may then still commit, or a worker
/// resolves the claim.
async fn is_claimed<E: TableEntity>(
    table: &Table<E>,
    kinds: Option<CopyAndPrimaryFamily>,
    copy: Option<&Row>,
) -> Result<bool> {
    let (Some(copy), Some(kinds)) = (copy, kinds) else { return Ok(false) };
    let Some(claim) = id_of_reserving_claim(copy)? else { return Ok(false) };
    let Some(owner) = owner_of_copy(copy, kinds, table.table_name())? else { return Ok(false) };
    // If the table of the claim is missing, the claim may still exist.
    Ok(read_claim_state(table.client.store(), owner.as_row_at(), claim).await? != ClaimState::Gone)
}
