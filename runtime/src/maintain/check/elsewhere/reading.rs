//! One look at a suspect, in this order: the copy, who claims it, the dirty row, the primary.

use super::{
    listed,
    side::{Kind, Suspect},
};
use crate::{
    address::RowAt,
    entity::{CopyFamily, EntityRows, TableEntity},
    error::Result,
    maintain::check::{Finding, FindingKind, verify},
    outbox::guard::Guard,
    plan::{
        moves::move_id,
        outbox::{
            claim_row_key, copy_with_owner, dirty_row_key, equal_except_version, is_copy_of,
            owner_of_copy, reserving_claim,
        },
    },
    row::{ETag, Row},
    table::Table,
};

/// What a look at a suspect shows.
#[derive(Debug)]
pub(crate) enum Looked {
    /// All is as it should be, or is told from the other side.
    Right,
    /// There is open work for it.
    Pending,
    Wrong(Box<Held>),
}

/// A suspect that looked wrong, and the versions in which it did.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) suspect: Suspect,
    kind: FindingKind,
    copy: Option<ETag>,
    primary: Option<ETag>,
}

impl Held {
    /// Whether everything stood still since.
    pub(crate) fn is_as(&self, before: &Self) -> bool {
        self.kind == before.kind && self.copy == before.copy && self.primary == before.primary
    }

    pub(crate) fn finding(self) -> Finding {
        let Suspect { kind, name, primary, .. } = self.suspect;
        let (family, is_entry) = match kind {
            Kind::Copy(kinds) => (kinds.copy, false),
            Kind::Entry(family) => (family, true),
        };
        let (primary_partition_key, primary) = primary.unzip();
        Finding {
            kind: self.kind,
            index: family.name,
            table: name.table.clone(),
            partition_key: name.partition_key.clone(),
            row_key: name.row_key.clone(),
            primary_partition_key,
            primary,
            is_entry,
            etag: self.copy,
            elsewhere: Some(Box::new(name)),
        }
    }
}

/// Looks at a suspect.
pub(crate) async fn look<E: TableEntity>(table: &Table<E>, suspect: Suspect) -> Result<Looked> {
    let (copy, times) = match (suspect.kind, &suspect.primary) {
        // A list changes with every entity in it: its version says nothing.
        (Kind::Entry(_), Some((partition_key, row_key))) => {
            (None, listed::times(table, &suspect.name, (partition_key, row_key)).await?)
        }
        _ => (copy(table, &suspect).await?, 0),
    };
    let looks_at_it = table.client.outbox().guards.holds(Guard::CheckOpenWork);
    if looks_at_it && is_claimed(table, &suspect, copy.as_ref()).await? {
        return Ok(Looked::Pending);
    }
    let Some((partition_key, row_key)) = &suspect.primary else {
        // Nobody can say what it should be.
        let Some(copy) = copy else { return Ok(Looked::Right) };
        let (kind, copy) = (FindingKind::Orphan, copy.etag());
        let held = Held { suspect, kind, copy, primary: None };
        return Ok(Looked::Wrong(Box::new(held)));
    };
    let dirty = dirty_row_key(row_key);
    let open = RowAt::new(&table.name, partition_key, &dirty);
    if looks_at_it && table.client.store().row(open).await?.is_some() {
        return Ok(Looked::Pending);
    }
    let primary = verify::read(table, partition_key, row_key).await?;
    if looks_at_it && primary.as_ref().map(move_id).transpose()?.flatten().is_some() {
        return Ok(Looked::Pending);
    }
    let tokens = table.tokens().await?;
    let rows = verify::derived_if_known::<E>(primary.as_ref(), &tokens)?;
    let kind = match (rows, suspect.kind) {
        // What an unknown version derives is not for this program to say.
        (None, _) => None,
        (Some(rows), Kind::Entry(_)) => listed::mismatch(table, &suspect.name, times, rows),
        (Some(rows), Kind::Copy(kinds)) => mismatch(table, &suspect, kinds, copy.as_ref(), rows)?,
    };
    // Each mismatch is told from one side only.
    let is_told_here = |kind: &FindingKind| {
        suspect.found == matches!(kind, FindingKind::Stale | FindingKind::Orphan)
    };
    Ok(match kind.filter(is_told_here) {
        None => Looked::Right,
        Some(kind) => {
            let copy = copy.and_then(|copy| copy.etag());
            let primary = primary.and_then(|primary| primary.etag());
            Looked::Wrong(Box::new(Held { suspect, kind, copy, primary }))
        }
    })
}

/// Whether it is reserved by a claim that may still become true, or has to be settled.
async fn is_claimed<E: TableEntity>(
    table: &Table<E>,
    suspect: &Suspect,
    copy: Option<&Row>,
) -> Result<bool> {
    let Some(copy) = copy else { return Ok(false) };
    let (Some(claim), Kind::Copy(kinds)) = (reserving_claim(copy)?, suspect.kind) else {
        return Ok(false);
    };
    let Some(place) = owner_of_copy(copy, kinds, &table.name)? else { return Ok(false) };
    let claim = claim_row_key(claim);
    let claim = table.client.store().row_or_no_table(place.at().with_row_key(&claim)).await?;
    Ok(claim.is_some())
}

async fn copy<E: TableEntity>(table: &Table<E>, suspect: &Suspect) -> Result<Option<Row>> {
    let name = &suspect.name;
    match table.client.store().row_or_no_table(name.at()).await? {
        Some(row) => {
            let opened = table.open_to_check_in(&name.table, vec![row]).await;
            opened.map(|mut rows| rows.pop())
        }
        None => Ok(None),
    }
}

fn mismatch<E: TableEntity>(
    table: &Table<E>,
    suspect: &Suspect,
    kinds: CopyFamily,
    found: Option<&Row>,
    rows: Option<EntityRows>,
) -> Result<Option<FindingKind>> {
    let copies = rows.into_iter().flat_map(|rows| rows.remote_copies);
    let mut copies = copies.filter(|copy| suspect.name.is_for_copy(&table.name, copy));
    let wanted = copies.next();
    let Some((partition_key, row_key)) = &suspect.primary else { return Ok(None) };
    let owner = RowAt { table: &table.name, partition_key, row_key };
    Ok(match (wanted, found) {
        (Some(_), None) => Some(FindingKind::Missing),
        (None, Some(found)) if is_copy_of(found, kinds, owner)? => Some(FindingKind::Orphan),
        (Some(copy), Some(found)) if is_copy_of(found, kinds, owner)? => {
            let copy = copy_with_owner(&copy.row, kinds, owner, None)?;
            (!equal_except_version(found, &copy)?).then_some(FindingKind::Stale)
        }
        // A row that says it is another's, or of nobody.
        (Some(_), Some(_)) => Some(FindingKind::Contested),
        (None, _) => None,
    })
}
