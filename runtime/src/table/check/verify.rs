//! Suspects, looked at again: never reported from one reading.

use std::collections::HashMap;

use super::{
    Finding, FindingKind,
    sweep::{Mark, Suspects, marks, scan},
};
use crate::{
    access::Keys,
    backend::Read,
    entity::{EntityRows, TableEntity},
    error::Result,
    key::{Family, FamilyKind},
    plan::StoredList,
    row::{ETag, Row},
    table::{Table, commit::read_list, request::at},
};

/// Readings of one suspect that may be interrupted by other writers.
const READINGS: usize = 4;

/// A copy or an entry that has no counterpart: who derives it, and which version of it is there.
struct Suspect {
    family: &'static Family,
    row_key: String,
    /// The entry's id; for a copy, nothing.
    id: Option<String>,
    derived_by: Option<String>,
    found: Option<ETag>,
}

/// What is certain to be wrong in a partition.
pub(super) async fn findings<E: TableEntity>(
    table: &Table<E>,
    suspects: Suspects,
) -> Result<Vec<Finding>> {
    let partition_key = &suspects.partition_key;
    let mut findings = Vec::new();
    let mut unowned = Vec::new();
    for suspect in collect(table, &suspects).await? {
        match suspect.derived_by.clone() {
            Some(primary) => {
                findings.extend(read_again(table, partition_key, suspect, primary).await?)
            }
            None => unowned.push(suspect),
        }
    }
    findings.extend(orphans(table, &suspects, unowned).await?);
    Ok(findings)
}

/// The suspects of a partition, by a second scan.
async fn collect<E: TableEntity>(table: &Table<E>, suspects: &Suspects) -> Result<Vec<Suspect>> {
    let mut all: HashMap<(String, Option<String>), Suspect> = HashMap::new();
    each_mark(table, suspects, |mark, row| {
        let is_entry = mark.family.kind == FamilyKind::List;
        let id = if is_entry { mark.primary.clone() } else { None };
        let key = (mark.row_key.clone(), id.clone());
        let is_suspect = suspects.hashes.contains(&mark.hash) || all.contains_key(&key);
        if !is_suspect {
            return;
        }
        let suspect = all.entry(key).or_insert_with(|| Suspect {
            family: mark.family,
            row_key: mark.row_key.clone(),
            id,
            derived_by: None,
            found: None,
        });
        if mark.found {
            suspect.found = row.etag();
        } else {
            suspect.derived_by = mark.primary;
        }
    })
    .await?;
    Ok(all.into_values().collect())
}

async fn each_mark<E: TableEntity>(
    table: &Table<E>,
    suspects: &Suspects,
    mut each: impl FnMut(Mark, &Row),
) -> Result<()> {
    let filter = Keys::partition(&suspects.partition_key).filter();
    let mut from = None;
    loop {
        let (rows, next) = scan(table, &filter, from).await?;
        for row in &rows {
            let marks = marks::<E>(row, &suspects.hasher).map_err(|error| at(row, error))?;
            marks.into_iter().for_each(|mark| each(mark, row));
        }
        match next {
            Some(next) => from = Some(next),
            None => return Ok(()),
        }
    }
}

/// Reads the row, its primary and both again: a mismatch of versions that stood still is real.
async fn read_again<E: TableEntity>(
    table: &Table<E>,
    partition_key: &str,
    suspect: Suspect,
    primary: String,
) -> Result<Option<Finding>> {
    for _ in 0..READINGS {
        let before = reading(table, partition_key, &suspect, &primary).await?;
        let after = reading(table, partition_key, &suspect, &primary).await?;
        if before.versions() != after.versions() {
            continue;
        }
        let kind = after.mismatch::<E>(&suspect, &primary)?;
        return Ok(kind.map(|kind| Finding {
            kind,
            index: suspect.family.name,
            partition_key: partition_key.to_owned(),
            row_key: suspect.row_key,
            primary: Some(primary),
            etag: after.row.and_then(|row| row.etag()),
        }));
    }
    Ok(None)
}

/// What is there of a suspect and of its primary.
struct Reading {
    row: Option<Row>,
    ids: Vec<String>,
    primary: Option<Row>,
}

async fn reading<E: TableEntity>(
    table: &Table<E>,
    partition_key: &str,
    suspect: &Suspect,
    primary: &str,
) -> Result<Reading> {
    let (row, ids) = if suspect.id.is_some() {
        let list = read_list(&table.client, &table.name, partition_key, &suspect.row_key).await?;
        list.map_or((None, Vec::new()), |list: StoredList| (Some(list.head().clone()), list.ids))
    } else {
        (read(table, partition_key, &suspect.row_key).await?, Vec::new())
    };
    let primary = read(table, partition_key, primary).await?;
    Ok(Reading { row, ids, primary })
}

pub(super) async fn read<E: TableEntity>(
    table: &Table<E>,
    partition_key: &str,
    row_key: &str,
) -> Result<Option<Row>> {
    let read = Read { table: &table.name, partition_key, row_key, select: None };
    table.client.read(read).await
}

/// The rows that a primary derives, if there is one.
pub(super) fn derived<E: TableEntity>(primary: Option<&Row>) -> Result<Option<EntityRows>> {
    let Some(row) = primary else { return Ok(None) };
    E::from_row(row).and_then(|entity| entity.rows()).map(Some).map_err(|error| at(row, error))
}

impl Reading {
    fn versions(&self) -> [Option<ETag>; 2] {
        [&self.row, &self.primary].map(|row| row.as_ref().and_then(Row::etag))
    }

    fn mismatch<E: TableEntity>(
        &self,
        suspect: &Suspect,
        primary: &str,
    ) -> Result<Option<FindingKind>> {
        let rows = derived::<E>(self.primary.as_ref())?;
        if suspect.id.is_some() {
            let wanted = rows.is_some_and(|rows| {
                rows.entries.iter().any(|entry| entry.row_key == suspect.row_key)
            });
            let is_there = self.ids.iter().any(|id| id == primary);
            return Ok(match (wanted, is_there) {
                (true, false) => Some(FindingKind::Missing),
                (false, true) => Some(FindingKind::Orphan),
                _ => None,
            });
        }
        let wanted = rows.and_then(|rows| {
            rows.copies.into_iter().find(|copy| copy.row.row_key() == suspect.row_key)
        });
        Ok(match (wanted, &self.row) {
            (Some(_), None) => Some(FindingKind::Missing),
            (Some(copy), Some(row)) if copy.row.content() != row.content() => {
                Some(FindingKind::Stale)
            }
            (None, Some(_)) => Some(FindingKind::Orphan),
            _ => None,
        })
    }
}

/// Those of the suspects that no primary derives: a third scan finds no owner, and their rows have
/// the versions that the second one saw. A writer that came to derive one would have written it.
async fn orphans<E: TableEntity>(
    table: &Table<E>,
    suspects: &Suspects,
    mut unowned: Vec<Suspect>,
) -> Result<Vec<Finding>> {
    if unowned.is_empty() {
        return Ok(Vec::new());
    }
    let partition_key = &suspects.partition_key;
    let mut owned = std::collections::HashSet::new();
    each_mark(table, suspects, |mark, _| {
        if !mark.found {
            let is_entry = mark.family.kind == FamilyKind::List;
            owned.insert((mark.row_key, mark.primary.filter(|_| is_entry)));
        }
    })
    .await?;
    unowned.retain(|suspect| !owned.contains(&(suspect.row_key.clone(), suspect.id.clone())));
    let mut findings = Vec::new();
    for suspect in unowned {
        let etag = match &suspect.id {
            None => read(table, partition_key, &suspect.row_key).await?.and_then(|row| row.etag()),
            Some(_) => suspect.found.clone(),
        };
        if etag.is_some() && etag == suspect.found {
            findings.push(Finding {
                kind: FindingKind::Orphan,
                index: suspect.family.name,
                partition_key: partition_key.clone(),
                row_key: suspect.row_key,
                primary: suspect.id,
                etag,
            });
        }
    }
    Ok(findings)
}
