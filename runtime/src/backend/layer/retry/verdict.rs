//! What the rows say about a write whose answer was lost.
//!
//! Reading again proves a write by its operation id. Equal content proves it only for verbs whose
//! success does not mean "I won": upserts, and replace and merge under any version. For an insert,
//! a guarded write and a transaction that holds one it proves nothing: two writers that each add 1
//! to 30 both write 31.

use std::collections::BTreeMap;

use super::op_id::{self, OpId};
use crate::{
    batch::{Batch, Condition, Operation, Verb, Written},
    edm::ValueRef,
    error::{Result, Seen},
    row::Row,
};

/// What to make of a write after its rows were read again.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It was carried out.
    Done(Vec<Written>),
    /// Its guards are as they were: the same request can be made again, and if the first one still
    /// arrives, one of the two fails.
    Again {
        /// A row is in the version that it had: so far the write was certainly not carried out.
        certain: bool,
    },
    /// It cannot be told.
    Unclear {
        seen: Seen,
        /// No operation has a guard: made again, it would overwrite whatever is there.
        unguarded: bool,
    },
}

/// What one row says.
enum Sign {
    /// What the operation wants is there, and its success says no more than that.
    Made,
    /// The row is in the version that the operation wants: it was not carried out so far.
    Unchanged,
    /// The row is absent, as the insert wants: now, if not all the time.
    Free,
    Unclear(Seen),
}

/// Judges a write by its rows as they are now, one for each operation.
pub(super) fn judge(batch: &Batch, rows: &[Option<Row>], id: Option<OpId>) -> Result<Verdict> {
    let operations = || batch.operations().iter().zip(rows);
    if let Some(id) = id {
        let mut stamped = Vec::with_capacity(rows.len());
        for (_, row) in operations() {
            stamped.push(op_id::carries(row.as_ref(), id)?);
        }
        if stamped.contains(&true) {
            let written = operations().zip(stamped).map(|((_, row), ours)| {
                // Another writer's version is not handed out as ours: a write that is guarded by it
                // would overwrite what nobody looked at.
                let etag = row.as_ref().filter(|_| ours).and_then(Row::etag);
                Written { status: 204, etag }
            });
            return Ok(Verdict::Done(written.collect()));
        }
    }
    let (mut all_made, mut guards_hold, mut guarded, mut first) = (true, true, false, None);
    for (operation, row) in operations() {
        let has_guard = is_guarded(operation);
        guarded |= has_guard;
        match sign(operation, row.as_ref())? {
            Sign::Made => continue,
            Sign::Unchanged => return Ok(Verdict::Again { certain: true }),
            Sign::Free => {}
            Sign::Unclear(seen) => {
                guards_hold &= !has_guard;
                first.get_or_insert(seen);
            }
        }
        all_made = false;
    }
    Ok(if all_made {
        Verdict::Done(operations().map(|(_, row)| found(row.as_ref())).collect())
    } else if guarded && guards_hold {
        Verdict::Again { certain: false }
    } else {
        Verdict::Unclear { seen: first.unwrap_or(Seen::Other), unguarded: !guarded }
    })
}

fn is_guarded(operation: &Operation) -> bool {
    operation.verb() == Verb::Insert || matches!(operation.condition(), Some(Condition::Match(_)))
}

fn sign(operation: &Operation, row: Option<&Row>) -> Result<Sign> {
    let Some(row) = row else {
        return Ok(match (operation.verb(), operation.condition()) {
            (Verb::Insert, _) => Sign::Free,
            (Verb::Delete, Some(Condition::Any)) => Sign::Made,
            _ => Sign::Unclear(Seen::Absent),
        });
    };
    if let Some(Condition::Match(etag)) = operation.condition()
        && row.etag().as_ref() == Some(etag)
    {
        return Ok(Sign::Unchanged);
    }
    if operation.verb() == Verb::Delete || !holds(operation, row)? {
        return Ok(Sign::Unclear(Seen::Other));
    }
    Ok(if is_guarded(operation) { Sign::Unclear(Seen::Equal) } else { Sign::Made })
}

/// Whether the row holds what the operation writes: all of it, and after a replacement no more.
fn holds(operation: &Operation, row: &Row) -> Result<bool> {
    let wanted = properties(operation.row())?;
    let found = properties(row)?;
    let merges = matches!(operation.verb(), Verb::Merge | Verb::InsertOrMerge);
    let has = |(name, value): (&&[u8], &ValueRef<'_>)| {
        found.get(*name).is_some_and(|other| same(*other, *value))
    };
    Ok((merges || wanted.len() == found.len()) && wanted.iter().all(has))
}

fn properties(row: &Row) -> Result<BTreeMap<&[u8], ValueRef<'_>>> {
    let mut all = BTreeMap::new();
    let mut properties = row.properties();
    while let Some((name, value)) = properties.next()? {
        if name != op_id::NAME.as_bytes() {
            all.insert(name, value);
        }
    }
    Ok(all)
}

/// Equality as stored: a NaN is the same as itself.
fn same(a: ValueRef<'_>, b: ValueRef<'_>) -> bool {
    match (a, b) {
        (ValueRef::Double(a), ValueRef::Double(b)) => a.to_bits() == b.to_bits() || a == b,
        (a, b) => a == b,
    }
}

fn found(row: Option<&Row>) -> Written {
    Written { status: 204, etag: row.and_then(Row::etag) }
}
