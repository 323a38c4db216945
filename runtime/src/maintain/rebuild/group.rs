//! The rows of one page: transactions that hold each primary to its version and write what it
//! derives.

use std::collections::{BTreeMap, HashSet};

use futures_util::{StreamExt, TryStreamExt, stream};

use super::RebuildReport;
use crate::{
    batch::Operation,
    entity::{EntityRows, TableEntity},
    error::{Error, Result},
    key::Family,
    limits::BATCH_OPERATIONS,
    maintain::check::{
        Finding,
        repair::touch,
        verify::{derived, read},
    },
    plan::{ListDelta, StoredAs, StoredList, Tokens},
    row::Row,
    store::{backoff, lists::read_list, sealing::plan::Placed},
    table::Table,
};

/// Attempts before a group is halved: a smaller one is raced less.
const SPLIT: u32 = 3;

/// Reads in flight.
const READS: usize = 32;

/// What a primary derives for the index.
#[derive(Debug, Clone)]
enum What {
    Copy(Row),
    /// The head of the list that it is in.
    Entry(String),
}

/// A primary, and what it derives.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    primary: Row,
    what: What,
}

/// What a primary derives for the index, if anything.
pub(crate) fn derive<E: TableEntity>(
    family: &'static Family,
    primary: &Row,
    tokens: &Tokens,
) -> Result<Option<Item>> {
    let Some(EntityRows { local_copies, local_list_entries, .. }) =
        derived::<E>(Some(primary), tokens)?
    else {
        return Ok(None);
    };
    let copy = local_copies.into_iter().find(|copy| copy.family.name == family.name);
    let entry = local_list_entries.into_iter().find(|entry| entry.family.name == family.name);
    let what = match (copy, entry) {
        (Some(copy), _) => What::Copy(copy.row),
        (None, Some(entry)) => What::Entry(entry.row_key),
        (None, None) => return Ok(None),
    };
    Ok(Some(Item { primary: primary.clone(), what }))
}

/// Whose operation it is.
#[derive(Debug, Clone, Copy)]
enum Role {
    Primary,
    Copy,
    List,
}

/// What became of one attempt.
enum Tried {
    Done,
    TooLarge,
    /// Another writer was first: what is still to be written.
    Again(Vec<Item>),
}

/// The writing of one page.
pub(crate) struct Work<'r, E> {
    pub(crate) table: &'r Table<E>,
    pub(crate) family: &'static Family,
    pub(crate) report: &'r mut RebuildReport,
}

impl<E: TableEntity> Work<'_, E> {
    pub(crate) async fn write(&mut self, items: Vec<Item>) -> Result<()> {
        let mut groups = groups(items);
        groups.reverse();
        while let Some(group) = groups.pop() {
            let halves = self.write_group(group).await?;
            groups.extend(halves.into_iter().rev());
        }
        Ok(())
    }

    /// Writes a group, again where another writer was first; gives back the halves of one that is
    /// too large for a transaction, or so large that writers keep getting into it.
    async fn write_group(&mut self, mut group: Vec<Item>) -> Result<Vec<Vec<Item>>> {
        for attempt in 0..backoff::ATTEMPTS {
            if group.is_empty() {
                return Ok(Vec::new());
            }
            match self.try_once(&mut group).await? {
                Tried::Done => {
                    self.report.written += u64::try_from(group.len()).unwrap_or(u64::MAX);
                    return Ok(Vec::new());
                }
                Tried::Again(left) if attempt < SPLIT || left.len() < 2 => group = left,
                Tried::Again(left) => return Ok(halves(left)),
                Tried::TooLarge => return Ok(halves(group)),
            }
            backoff::wait(&self.table.client.store().random, attempt).await;
        }
        Err(backoff::contended().in_table(&self.table.name))
    }

    async fn try_once(&mut self, group: &mut Vec<Item>) -> Result<Tried> {
        let lists = self.read_lists(group).await?;
        group.retain(|item| match &item.what {
            What::Copy(_) => true,
            What::Entry(head) => !lists
                .get(head)
                .and_then(Option::as_ref)
                .is_some_and(|list| list.ids.iter().any(|id| id == item.primary.row_key())),
        });
        if group.is_empty() {
            return Ok(Tried::Done);
        }
        let (operations, roles) = operations::<E>(group, self.family, &lists)?;
        if operations.len() > BATCH_OPERATIONS && group.len() > 1 {
            return Ok(Tried::TooLarge);
        }
        match self.send(operations).await {
            Ok(()) => Ok(Tried::Done),
            Err(error) if error.is_too_large() && group.len() > 1 => Ok(Tried::TooLarge),
            Err(error) => self.failed(error, &roles, std::mem::take(group)).await.map(Tried::Again),
        }
    }

    async fn send(&self, operations: Vec<Placed>) -> Result<()> {
        self.table.client.store().write(&self.table.name, operations).await.map(drop)
    }

    async fn read_lists(&self, group: &[Item]) -> Result<BTreeMap<String, Option<StoredList>>> {
        let mut heads: BTreeMap<String, String> = BTreeMap::new();
        for item in group {
            if let What::Entry(head) = &item.what {
                heads.insert(head.clone(), item.primary.partition_key().to_owned());
            }
        }
        let table = self.table;
        stream::iter(heads)
            .map(|(head, partition_key)| async move {
                let list =
                    read_list(table.client.store(), &table.name, &partition_key, &head).await?;
                Ok((head, list))
            })
            .buffered(READS)
            .try_collect()
            .await
    }

    /// What is left to be written after another writer was first.
    async fn failed(
        &mut self,
        error: Error,
        roles: &[Role],
        group: Vec<Item>,
    ) -> Result<Vec<Item>> {
        let raced = error.is_not_found() || error.is_conflict() || error.is_precondition_failed();
        let is_lost = error.is_table_missing();
        let role = error.failed_index().and_then(|at| roles.get(at));
        match role {
            Some(Role::Primary) if raced && !is_lost => self.read_again(group).await,
            Some(Role::Copy) if error.is_conflict() => self.settle(group).await,
            Some(Role::List) if raced && !is_lost => Ok(group),
            _ => Err(error),
        }
    }

    /// The primaries as they are now, and what they derive.
    async fn read_again(&self, group: Vec<Item>) -> Result<Vec<Item>> {
        let (table, family) = (self.table, self.family);
        let items: Vec<Option<Item>> = stream::iter(group)
            .map(|item| async move { again(table, family, &item).await })
            .buffered(READS)
            .try_collect()
            .await?;
        Ok(items.into_iter().flatten().collect())
    }

    /// Leaves out the copies that are there: what writers wrote meanwhile, or an earlier run. A key
    /// that holds something else, although the primary still derives it, is a finding.
    async fn settle(&mut self, group: Vec<Item>) -> Result<Vec<Item>> {
        let table = self.table;
        let found: Vec<(Item, Option<Row>)> = stream::iter(group)
            .map(|item| async move {
                let found = match &item.what {
                    What::Copy(row) => read(table, row.partition_key(), row.row_key()).await?,
                    What::Entry(_) => None,
                };
                Ok::<_, Error>((item, found))
            })
            .buffered(READS)
            .try_collect()
            .await?;
        let mut left = Vec::new();
        for (item, found) in found {
            let Some(found) = found else {
                left.push(item);
                continue;
            };
            if item.holds(&found) {
                continue;
            }
            match again(table, self.family, &item).await? {
                Some(now) if now.primary.etag() == item.primary.etag() => {
                    let finding = Finding::stale(
                        self.family,
                        &self.table.name,
                        &found,
                        item.primary.row_key(),
                    );
                    self.report.findings.push(finding);
                }
                now => left.extend(now),
            }
        }
        Ok(left)
    }
}

/// The primary as it is now, and what it derives.
async fn again<E: TableEntity>(
    table: &Table<E>,
    family: &'static Family,
    item: &Item,
) -> Result<Option<Item>> {
    match read(table, item.primary.partition_key(), item.primary.row_key()).await? {
        Some(primary) => derive::<E>(family, &primary, &table.tokens().await?),
        None => Ok(None),
    }
}

impl Item {
    fn holds(&self, found: &Row) -> bool {
        matches!(&self.what, What::Copy(copy) if copy.has_same_content(found))
    }

    /// The key that it writes beside the primary.
    fn key(&self) -> &str {
        match &self.what {
            What::Copy(copy) => copy.row_key(),
            What::Entry(head) => head,
        }
    }
}

fn halves(mut group: Vec<Item>) -> Vec<Vec<Item>> {
    let rest = group.split_off(group.len() / 2);
    vec![group, rest]
}

/// Groups of one partition, two operations for each item; the second of two primaries that derive
/// one copy goes to a later group, where it meets the first one's.
fn groups(items: Vec<Item>) -> Vec<Vec<Item>> {
    let mut groups: Vec<Vec<Item>> = Vec::new();
    let mut keys: HashSet<String> = HashSet::new();
    for item in items {
        let is_copy = matches!(item.what, What::Copy(_));
        let joins = groups
            .last()
            .and_then(|group| group.last())
            .is_some_and(|last| last.primary.partition_key() == item.primary.partition_key())
            && groups.last().is_some_and(|group| group.len() < BATCH_OPERATIONS / 2)
            && !(is_copy && keys.contains(item.key()));
        if !joins {
            keys.clear();
            groups.push(Vec::new());
        }
        keys.insert(item.key().to_owned());
        if let Some(group) = groups.last_mut() {
            group.push(item);
        }
    }
    groups
}

/// The guards of the primaries first, then what is written.
fn operations<E: TableEntity>(
    group: &[Item],
    family: &'static Family,
    lists: &BTreeMap<String, Option<StoredList>>,
) -> Result<(Vec<Placed>, Vec<Role>)> {
    let (mut operations, mut roles) = (Vec::new(), Vec::new());
    for item in group {
        operations.push(touch::<E>(&item.primary)?);
        roles.push(Role::Primary);
    }
    let mut deltas: BTreeMap<&str, ListDelta> = BTreeMap::new();
    for item in group {
        match &item.what {
            What::Copy(copy) => {
                let insert = Operation::insert(copy.clone());
                operations.push(Placed::new(insert, StoredAs::Entity(E::SCHEMA, family)));
                roles.push(Role::Copy);
            }
            What::Entry(head) => {
                deltas.entry(head).or_default().add.push(item.primary.row_key().to_owned());
            }
        }
    }
    let partition_key = group.first().map_or("", |item| item.primary.partition_key());
    for (head, delta) in deltas {
        let current = lists.get(head).and_then(Option::as_ref);
        for operation in delta.operations((partition_key, head), current)? {
            operations.push(Placed::new(operation, StoredAs::Framework));
            roles.push(Role::List);
        }
    }
    Ok((operations, roles))
}
