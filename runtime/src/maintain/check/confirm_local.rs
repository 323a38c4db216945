//! Confirms local suspects: copies and list entries without a counterpart in their partition. Reads each one
//! again together with its primary, and reports it only if two readings are equal.

use std::collections::{BTreeMap, HashSet};

use super::{
    fact::{CopyFactReader, Fact, empty_if_damaged},
    finding::{Finding, FindingKind, LocalOrRemoteOwner, copy_difference, entry_mismatch},
    scan::{CheckScope, UnmatchedFacts, scan_facts},
};
use crate::{
    address::RowAt,
    entity::{CopyRow, TableEntity},
    error::Result,
    key::RowFamily,
    maintain::rows::{derive_existing, read_primary, read_row},
    plan::{StoredList, derive::Derived},
    row::{ETag, Row},
    store::lists::read_local_list,
    table::Table,
};

/// How often a suspect is read while writers keep changing it. After that, the next check decides.
const MAX_READINGS: usize = 4;

/// A copy or list entry without a counterpart in its partition.
struct Suspect {
    family: &'static RowFamily,
    row_key: String,
    /// The RowKey of the entry's primary, or `None` for a copy.
    entry_id: Option<String>,
    /// The RowKeys of the primaries that derive the suspect.
    derived_by: Vec<String>,
    /// The ETag of the row, or `None` if no row was found.
    found: Option<ETag>,
}

impl Suspect {
    fn finding_of_suspect(
        &self,
        table: &str,
        partition_key: &str,
        kind: FindingKind,
        primary: Option<&str>,
    ) -> Finding {
        Finding::local_finding(self.family, table, (partition_key, &self.row_key), kind, primary)
    }

    /// Returns the suspect as a copy without a known primary. `found` is the ETag of the stored copy, or `None` if
    /// no copy was found.
    fn without_owner(&self, found: Option<ETag>) -> Self {
        let (family, row_key) = (self.family, self.row_key.clone());
        Self { family, row_key, entry_id: None, derived_by: Vec::new(), found }
    }
}

/// Returns the confirmed findings among a partition's unmatched facts.
pub(crate) async fn confirm_partition<E: TableEntity>(
    reader: CopyFactReader<'_, E>,
    partition_key: &str,
    unmatched: &UnmatchedFacts,
) -> Result<Vec<Finding>> {
    let table = reader.table;
    let mut findings = Vec::new();
    let mut unowned = Vec::new();
    for suspect in find_suspects(reader, unmatched).await? {
        // A list entry contains its primary, whether or not the entry is correct.
        let owners = match &suspect.entry_id {
            Some(id) => vec![id.clone()],
            None => suspect.derived_by.clone(),
        };
        let found = match owners.as_slice() {
            [] => {
                unowned.push(suspect);
                continue;
            }
            [primary] => {
                let finding = confirm_suspect(table, partition_key, &suspect, primary).await?;
                finding.into_iter().collect()
            }
            several => confirm_contested(table, partition_key, &suspect, several).await?,
        };
        for finding in found {
            // The primary gave the copy up. Another primary may have taken it since, which only a scan
            // shows.
            if finding.kind == FindingKind::Orphan && !finding.is_entry {
                unowned.push(suspect.without_owner(finding.copy_etag));
            } else {
                findings.push(finding);
            }
        }
    }
    findings.extend(confirm_orphans(reader, partition_key, &unmatched.scope, unowned).await?);
    // Sort the findings by key, for the same order in every check.
    findings.sort_by(|a, b| (&a.row_key, &a.primary).cmp(&(&b.row_key, &b.primary)));
    Ok(findings)
}

/// Scans a partition again for the keys of its unmatched facts, then a third time for every fact with one of
/// these keys.
async fn find_suspects<E: TableEntity>(
    reader: CopyFactReader<'_, E>,
    unmatched: &UnmatchedFacts,
) -> Result<Vec<Suspect>> {
    let key_of = |fact: &Fact<'_>| {
        (fact.keys.partition_and_row_key().1.to_owned(), fact.entry_id().map(str::to_owned))
    };
    // The counterpart of an unmatched fact may itself have been matched: a stale copy of one primary may equal
    // the copy that another should have. The second scan finds both sides of each key.
    let mut keys: HashSet<(String, Option<String>)> = HashSet::new();
    scan_facts(
        reader,
        &unmatched.scope,
        |_| {},
        |fact| {
            if unmatched.is_unmatched_fact(fact) {
                keys.insert(key_of(fact));
            }
        },
    )
    .await?;
    let mut suspects: BTreeMap<(String, Option<String>), Suspect> = BTreeMap::new();
    scan_facts(
        reader,
        &unmatched.scope,
        |_| {},
        |fact| {
            let key = key_of(fact);
            if !unmatched.is_fact_in_scope(fact) || !keys.contains(&key) {
                return;
            }
            let suspect = suspects.entry(key).or_insert_with_key(|(row_key, entry_id)| Suspect {
                family: fact.family,
                row_key: row_key.clone(),
                entry_id: entry_id.clone(),
                derived_by: Vec::new(),
                found: None,
            });
            match fact.primary {
                Some(primary) if !fact.is_found => {
                    suspect.derived_by.push(primary.partition_and_row_key().1.to_owned());
                }
                _ => suspect.found = fact.row.etag(),
            }
        },
    )
    .await?;
    Ok(suspects.into_values().collect())
}

/// Reads a suspect and its primary until two consecutive readings have equal ETags. Returns their mismatch,
/// or `None` if they match or writers kept changing the rows.
async fn confirm_suspect<E: TableEntity>(
    table: &Table<E>,
    partition_key: &str,
    suspect: &Suspect,
    primary: &str,
) -> Result<Option<Finding>> {
    let is_entry = suspect.entry_id.is_some();
    let at = table.row_at(partition_key, &suspect.row_key);
    for _ in 0..MAX_READINGS {
        // Read twice: a write between the reads of copy and primary changes an ETag.
        let before =
            RereadSuspect::read_copy_and_primary(table, at, is_entry, Some(primary)).await?;
        let after =
            RereadSuspect::read_copy_and_primary(table, at, is_entry, Some(primary)).await?;
        if before.etags_read() != after.etags_read() {
            continue;
        }
        return Ok(after.kind.map(|kind| Finding {
            is_entry,
            copy_etag: after.found.as_ref().and_then(Row::etag),
            ..suspect.finding_of_suspect(&table.name, partition_key, kind, Some(primary))
        }));
    }
    Ok(None)
}

/// A local copy or list and its primary, read again to confirm a suspect. The primary was read last and is at
/// least as new as the copy.
pub(crate) struct RereadSuspect {
    /// How the copy or entry differs from what the primary derives, if it does.
    pub(crate) kind: Option<FindingKind>,
    /// The stored copy, or the list's stored head row.
    pub(crate) found: Option<Row>,
    pub(crate) list: Option<StoredList>,
    pub(crate) primary: Option<Row>,
    /// The copy that the primary derives.
    pub(crate) wanted: Option<CopyRow>,
}

impl RereadSuspect {
    /// Reads the copy or list at `at`, then the primary with RowKey `primary`, and compares them.
    pub(crate) async fn read_copy_and_primary<E: TableEntity>(
        table: &Table<E>,
        at: RowAt<'_>,
        is_entry: bool,
        primary: Option<&str>,
    ) -> Result<Self> {
        let tokens = table.key_token_maker().await?;
        let (found, list) = if is_entry {
            let list = read_local_list(
                table.client.store(),
                at.table.as_str(),
                at.partition_key,
                at.row_key,
            );
            // A repair inserts a missing list head, which fails if the list is damaged.
            let list = empty_if_damaged(list.await)?;
            (list.as_ref().map(|list| list.head_row().clone()), list)
        } else {
            (read_row(table, at).await?, None)
        };
        let stored = match primary {
            Some(primary) => read_primary(table, at.with_row_key(primary)).await?,
            None => None,
        };
        let derive = || derive_existing::<E>(stored.as_ref(), &tokens);
        let derived = table.run_with_blind_token_keys(&tokens, derive).await?;
        let mut reread = Self { kind: None, found, list, primary: stored, wanted: None };
        // This program does not know which copies a primary of an unknown version should have.
        if let Derived::UnknownVersion(_) = derived {
            return Ok(reread);
        }
        let rows = derived.into_known_rows(E::SCHEMA)?;
        if is_entry {
            let is_wanted = rows.is_some_and(|rows| {
                rows.local_list_entries.iter().any(|entry| entry.row_key == at.row_key)
            });
            let ids = reread.list.iter().flat_map(|list| &list.ids);
            let times = ids.filter(|id| Some(id.as_str()) == primary).count();
            reread.kind = entry_mismatch(is_wanted, times);
        } else {
            let copies = rows.into_iter().flat_map(|rows| rows.local_copies);
            reread.wanted = copies.into_iter().find(|copy| copy.row.row_key() == at.row_key);
            let wanted = reread.wanted.as_ref().map(|copy| &copy.row);
            let names = table.client.store().names();
            reread.kind =
                copy_difference(wanted, reread.found.as_ref(), LocalOrRemoteOwner::Local, names)?;
        }
        Ok(reread)
    }

    fn etags_read(&self) -> [Option<ETag>; 2] {
        [&self.found, &self.primary].map(|row| row.as_ref().and_then(Row::etag))
    }
}

/// Confirms a copy that several primaries derive. Returns a finding for each of them except the one whose copy
/// is stored. Returns nothing if a primary changes in the meantime, and the next check decides.
async fn confirm_contested<E: TableEntity>(
    table: &Table<E>,
    partition_key: &str,
    suspect: &Suspect,
    primaries: &[String],
) -> Result<Vec<Finding>> {
    let before = read_all(table, partition_key, primaries).await?;
    let copy = read_row(table, table.row_at(partition_key, &suspect.row_key)).await?;
    // Read the primaries before and after the copy, which shows that all of them existed at one time.
    let after = read_all(table, partition_key, primaries).await?;
    if before.iter().map(Row::etag).ne(after.iter().map(Row::etag)) {
        return Ok(Vec::new());
    }
    let tokens = table.key_token_maker().await?;
    let mut deriving = Vec::new();
    for primary in &after {
        let derive = || derive_existing::<E>(Some(primary), &tokens);
        let derived = table.run_with_blind_token_keys(&tokens, derive).await?;
        if let Derived::UnknownVersion(_) = derived {
            return Ok(Vec::new());
        }
        let rows = derived.into_known_rows(E::SCHEMA)?;
        let wanted = rows.and_then(|rows| {
            rows.local_copies.into_iter().find(|copy| copy.row.row_key() == suspect.row_key)
        });
        if let Some(wanted) = wanted {
            // `false` sorts before `true`, so the primary whose copy is stored comes first.
            let is_stored = copy.as_ref().is_some_and(|copy| copy.has_same_content(&wanted.row));
            deriving.push((!is_stored, primary.row_key()));
        }
    }
    // Only one primary still derives the copy, so this is an ordinary mismatch.
    if let [(_, primary)] = deriving.as_slice() {
        return Ok(confirm_suspect(table, partition_key, suspect, primary)
            .await?
            .into_iter()
            .collect());
    }
    // The owner of the stored copy sorts first.
    deriving.sort_unstable();
    let others = deriving.into_iter().skip(1).map(|(_, primary)| Finding {
        copy_etag: copy.as_ref().and_then(Row::etag),
        ..suspect.finding_of_suspect(
            &table.name,
            partition_key,
            FindingKind::Contested,
            Some(primary),
        )
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
        rows.extend(read_primary(table, table.row_at(partition_key, row_key)).await?);
    }
    Ok(rows)
}

/// Confirms copies that no primary derives: another scan finds no owner, and their ETags are unchanged since
/// the previous scan. A writer that made a primary derive one of them would have written the copy and changed
/// its ETag.
async fn confirm_orphans<E: TableEntity>(
    reader: CopyFactReader<'_, E>,
    partition_key: &str,
    scope: &CheckScope,
    mut unowned: Vec<Suspect>,
) -> Result<Vec<Finding>> {
    if unowned.is_empty() {
        return Ok(Vec::new());
    }
    let mut owned = HashSet::new();
    scan_facts(
        reader,
        scope,
        |_| {},
        |fact| {
            let Fact { family, .. } = fact;
            if !fact.is_found && !family.is_remote && family.is_copy() {
                owned.insert(fact.keys.partition_and_row_key().1.to_owned());
            }
        },
    )
    .await?;
    unowned.retain(|suspect| !owned.contains(&suspect.row_key));
    let mut findings = Vec::new();
    for suspect in unowned {
        let at = reader.table.row_at(partition_key, &suspect.row_key);
        let row = read_row(reader.table, at).await?;
        let etag = row.and_then(|row| row.etag());
        // The row changed after the scan, so a writer is using it.
        if etag.is_some() && etag == suspect.found {
            let table = &reader.table.name;
            findings.push(Finding {
                copy_etag: etag,
                ..suspect.finding_of_suspect(table, partition_key, FindingKind::Orphan, None)
            });
        }
    }
    Ok(findings)
}
