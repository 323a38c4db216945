//! Suspects, looked at again: never reported from one reading.

use std::collections::{BTreeMap, HashSet};

use super::{
    Finding, FindingKind,
    mark::{Mark, met},
    sweep::{Suspects, scan},
};
use crate::{
    access::Keys,
    backend::Read,
    entity::{EntityRows, TableEntity},
    error::Result,
    key::{Family, FamilyKind},
    plan::{StoredList, Tokens},
    query::decode::at,
    row::{ETag, Row},
    store::lists::read_list,
    table::Table,
};

/// Readings of one suspect that may be interrupted by other writers.
const READINGS: usize = 4;

/// A copy or an entry that has no counterpart: who derives it, and which version of it is there.
struct Suspect {
    family: &'static Family,
    row_key: String,
    /// The entry's id; for a copy, nothing.
    id: Option<String>,
    derived_by: Vec<String>,
    found: Option<ETag>,
}

impl Suspect {
    /// The copy in another version, which nobody is known to derive.
    fn at(&self, found: Option<ETag>) -> Self {
        let (family, row_key) = (self.family, self.row_key.clone());
        Self { family, row_key, id: None, derived_by: Vec::new(), found }
    }

    fn finding(
        &self,
        table: &str,
        partition_key: &str,
        kind: FindingKind,
        primary: Option<&str>,
    ) -> Finding {
        Finding::in_partition(self.family, table, (partition_key, &self.row_key), kind, primary)
    }
}

/// What is certain to be wrong in a partition.
pub(crate) async fn findings<E: TableEntity>(
    table: &Table<E>,
    suspects: Suspects,
) -> Result<Vec<Finding>> {
    let partition_key = &suspects.partition_key;
    let mut findings = Vec::new();
    let mut unowned = Vec::new();
    for suspect in collect(table, &suspects).await? {
        // An entry names its primary, whether that derives it or not.
        let owners = match &suspect.id {
            Some(id) => vec![id.clone()],
            None => suspect.derived_by.clone(),
        };
        let found = match owners.as_slice() {
            [] => {
                unowned.push(suspect);
                continue;
            }
            [primary] => {
                let finding = read_again(table, partition_key, &suspect, primary).await?;
                finding.into_iter().collect()
            }
            several => contested(table, partition_key, &suspect, several).await?,
        };
        for finding in found {
            // The entity that derived the copy left it: another one may have taken it since.
            if finding.kind == FindingKind::Orphan && !finding.is_entry {
                unowned.push(suspect.at(finding.etag));
            } else {
                findings.push(finding);
            }
        }
    }
    findings.extend(orphans(table, &suspects, unowned).await?);
    findings.sort_by(|a, b| (&a.row_key, &a.primary).cmp(&(&b.row_key, &b.primary)));
    Ok(findings)
}

/// The suspects of a partition, by a second scan.
async fn collect<E: TableEntity>(table: &Table<E>, suspects: &Suspects) -> Result<Vec<Suspect>> {
    let mut all: BTreeMap<(String, Option<String>), Suspect> = BTreeMap::new();
    // A row and what is derived for its key need not both be suspects: the second pass over the
    // keys finds the other side of each.
    let mut keys: HashSet<(String, Option<String>)> = HashSet::new();
    each_mark(table, suspects, |mark, _| {
        if suspects.hashes.contains(&mark.hash) {
            keys.insert(key_of(&mark));
        }
    })
    .await?;
    each_mark(table, suspects, |mark, row| {
        let key = key_of(&mark);
        if !keys.contains(&key) {
            return;
        }
        let suspect = all.entry(key).or_insert_with_key(|(row_key, id)| Suspect {
            family: mark.family,
            row_key: row_key.clone(),
            id: id.clone(),
            derived_by: Vec::new(),
            found: None,
        });
        match mark.primary {
            Some(primary) if !mark.found => suspect.derived_by.push(primary.text().to_owned()),
            _ => suspect.found = row.etag(),
        }
    })
    .await?;
    Ok(all.into_values().collect())
}

fn key_of(mark: &Mark<'_>) -> (String, Option<String>) {
    (mark.row_key.text().to_owned(), mark.id().map(str::to_owned))
}

async fn each_mark<E: TableEntity>(
    table: &Table<E>,
    suspects: &Suspects,
    mut each: impl FnMut(Mark<'_>, &Row),
) -> Result<()> {
    let tokens = table.tokens().await?;
    let filter = Keys::partition(&suspects.partition_key).filter();
    let mut from = None;
    loop {
        let (rows, next) = scan(table, &filter, from).await?;
        for row in &rows {
            met::<E>(row, &tokens, suspects.hashing, |mark| each(mark, row))
                .map_err(|error| at(row, error))?;
        }
        match next {
            Some(next) => from = Some(next),
            None => return Ok(()),
        }
    }
}

/// Several primaries derive one copy: a finding for each but the one whose copy it is, which no
/// repair can mend. Primaries that another writer changes meanwhile are left to the next check.
async fn contested<E: TableEntity>(
    table: &Table<E>,
    partition_key: &str,
    suspect: &Suspect,
    primaries: &[String],
) -> Result<Vec<Finding>> {
    let before = read_all(table, partition_key, primaries).await?;
    let copy = read(table, partition_key, &suspect.row_key).await?;
    let after = read_all(table, partition_key, primaries).await?;
    if before.iter().map(Row::etag).ne(after.iter().map(Row::etag)) {
        return Ok(Vec::new());
    }
    let tokens = table.tokens().await?;
    let mut deriving = Vec::new();
    for primary in &after {
        let Some(rows) = derived_if_known::<E>(Some(primary), &tokens)? else {
            return Ok(Vec::new());
        };
        let wanted = rows.and_then(|rows| {
            rows.local_copies.into_iter().find(|copy| copy.row.row_key() == suspect.row_key)
        });
        if let Some(wanted) = wanted {
            let holds = copy.as_ref().is_some_and(|copy| copy.has_same_content(&wanted.row));
            deriving.push((!holds, primary.row_key()));
        }
    }
    if let [(_, primary)] = deriving.as_slice() {
        return Ok(read_again(table, partition_key, suspect, primary).await?.into_iter().collect());
    }
    deriving.sort_unstable();
    let others = deriving.into_iter().skip(1).map(|(_, primary)| Finding {
        etag: copy.as_ref().and_then(Row::etag),
        ..suspect.finding(&table.name, partition_key, FindingKind::Contested, Some(primary))
    });
    Ok(others.collect())
}

async fn read_all<E: TableEntity>(
    table: &Table<E>,
    partition_key: &str,
    row_keys: &[String],
) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for row_key in row_keys {
        rows.extend(read(table, partition_key, row_key).await?);
    }
    Ok(rows)
}

/// Reads the row, its primary and both again: a mismatch of versions that stood still is real.
async fn read_again<E: TableEntity>(
    table: &Table<E>,
    partition_key: &str,
    suspect: &Suspect,
    primary: &str,
) -> Result<Option<Finding>> {
    let tokens = table.tokens().await?;
    for _ in 0..READINGS {
        let before = reading(table, partition_key, suspect, primary).await?;
        let after = reading(table, partition_key, suspect, primary).await?;
        if before.versions() != after.versions() {
            continue;
        }
        let kind = after.mismatch::<E>(suspect, primary, &tokens)?;
        return Ok(kind.map(|kind| Finding {
            is_entry: suspect.id.is_some(),
            etag: after.row.and_then(|row| row.etag()),
            ..suspect.finding(&table.name, partition_key, kind, Some(primary))
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
        let list =
            read_list(table.client.store(), &table.name, partition_key, &suspect.row_key).await?;
        list.map_or((None, Vec::new()), |list: StoredList| (Some(list.head().clone()), list.ids))
    } else {
        (read(table, partition_key, &suspect.row_key).await?, Vec::new())
    };
    let primary = read(table, partition_key, primary).await?;
    Ok(Reading { row, ids, primary })
}

pub(crate) async fn read<E: TableEntity>(
    table: &Table<E>,
    partition_key: &str,
    row_key: &str,
) -> Result<Option<Row>> {
    let read = Read { table: &table.name, partition_key, row_key, select: None };
    match table.client.store().read(read).await? {
        Some(row) => table.open_to_check(vec![row]).await.map(|mut rows| rows.pop()),
        None => Ok(None),
    }
}

/// The rows that a primary derives, by the version that wrote it; none where there is no primary,
/// or a row of another type.
pub(crate) fn derived<E: TableEntity>(
    primary: Option<&Row>,
    tokens: &Tokens,
) -> Result<Option<EntityRows>> {
    let Some(row) = primary else { return Ok(None) };
    let rows = E::SCHEMA.derive(row, tokens).and_then(|rows| rows.into_known_rows(E::SCHEMA));
    rows.map_err(|error| at(row, error))
}

/// The same; `None`: the primary is of a version that this program does not know, and what that
/// derives is not for it to say.
pub(crate) fn derived_if_known<E: TableEntity>(
    primary: Option<&Row>,
    tokens: &Tokens,
) -> Result<Option<Option<EntityRows>>> {
    match derived::<E>(primary, tokens) {
        Err(error) if error.is_unrecognized_entity() => Ok(None),
        rows => rows.map(Some),
    }
}

impl Reading {
    fn versions(&self) -> [Option<ETag>; 2] {
        [&self.row, &self.primary].map(|row| row.as_ref().and_then(Row::etag))
    }

    fn mismatch<E: TableEntity>(
        &self,
        suspect: &Suspect,
        primary: &str,
        tokens: &Tokens,
    ) -> Result<Option<FindingKind>> {
        let Some(rows) = derived_if_known::<E>(self.primary.as_ref(), tokens)? else {
            return Ok(None);
        };
        if suspect.id.is_some() {
            let wanted = rows.is_some_and(|rows| {
                rows.local_list_entries.iter().any(|entry| entry.row_key == suspect.row_key)
            });
            let times = self.ids.iter().filter(|id| *id == primary).count();
            return Ok(match (wanted, times) {
                (true, 0) => Some(FindingKind::Missing),
                (false, 1..) => Some(FindingKind::Orphan),
                (true, 2..) => Some(FindingKind::Stale),
                (true, 1) | (false, 0) => None,
            });
        }
        let wanted = rows.and_then(|rows| {
            rows.local_copies.into_iter().find(|copy| copy.row.row_key() == suspect.row_key)
        });
        Ok(match (wanted, &self.row) {
            (Some(_), None) => Some(FindingKind::Missing),
            (Some(copy), Some(row)) if !copy.row.has_same_content(row) => Some(FindingKind::Stale),
            (None, Some(_)) => Some(FindingKind::Orphan),
            _ => None,
        })
    }
}

/// Those of the copies that no primary derives: one more scan finds no owner, and they have the
/// versions that the scan before it saw. A writer that came to derive one would have written it.
async fn orphans<E: TableEntity>(
    table: &Table<E>,
    suspects: &Suspects,
    mut unowned: Vec<Suspect>,
) -> Result<Vec<Finding>> {
    if unowned.is_empty() {
        return Ok(Vec::new());
    }
    let partition_key = &suspects.partition_key;
    let mut owned = HashSet::new();
    each_mark(table, suspects, |mark, _| {
        if !mark.found && mark.family.kind == FamilyKind::Copy {
            owned.insert(mark.row_key.text().to_owned());
        }
    })
    .await?;
    unowned.retain(|suspect| !owned.contains(&suspect.row_key));
    let mut findings = Vec::new();
    for suspect in unowned {
        let row = read(table, partition_key, &suspect.row_key).await?;
        let etag = row.and_then(|row| row.etag());
        if etag.is_some() && etag == suspect.found {
            findings.push(Finding {
                etag,
                ..suspect.finding(&table.name, partition_key, FindingKind::Orphan, None)
            });
        }
    }
    Ok(findings)
}
