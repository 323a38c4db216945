//! Rebuilds a local index or list in transactions that write the copies and fail if a primary has changed
//! since it was read.

use std::collections::BTreeMap;

use futures_util::{StreamExt, TryStreamExt, stream};

use super::report::RebuildReport;
use crate::{
    address::RowAt,
    batch::Operation,
    entity::{EntityRows, TableEntity},
    error::{Error, Result},
    key::RowFamily,
    limits::{BATCH_OPERATIONS, saturating_u64},
    maintain::{
        check::Finding,
        rows::{derive_rows_of_primary, read_primary, read_row, touch_primary},
    },
    plan::{ListDelta, StoredAs, StoredList, TokenMaker},
    row::Row,
    store::{lists::read_local_list, sealing::plan::OperationToSeal},
    table::{
        Table,
        bulk::group_writer::{GroupWriteOutcome, GroupWriter, group_consecutive_items},
    },
};

/// The number of rows that are read concurrently.
const READERS: usize = 32;

/// The copy or list entry that a primary derives for the index.
#[derive(Debug, Clone)]
enum IndexRow {
    Copy(Row),
    /// An entry in the list whose head row has this RowKey.
    ListEntry(String),
}

/// A primary, and the row or entry that it derives for the index.
#[derive(Debug, Clone)]
pub(crate) struct IndexedPrimary {
    primary: Row,
    index_row: IndexRow,
}

impl IndexedPrimary {
    /// Returns what a primary derives for the index, if anything.
    pub(crate) fn derive_index_row<E: TableEntity>(
        family: &'static RowFamily,
        primary: &Row,
        tokens: &TokenMaker,
    ) -> Result<Option<Self>> {
        let Some(EntityRows { local_copies, local_list_entries, .. }) =
            derive_rows_of_primary::<E>(primary, tokens)?
        else {
            return Ok(None);
        };
        let copy = local_copies.into_iter().find(|copy| copy.family.name == family.name);
        let entry = local_list_entries.into_iter().find(|entry| entry.family.name == family.name);
        let index_row = match (copy, entry) {
            (Some(copy), _) => IndexRow::Copy(copy.row),
            (None, Some(entry)) => IndexRow::ListEntry(entry.row_key),
            (None, None) => return Ok(None),
        };
        Ok(Some(Self { primary: primary.clone(), index_row }))
    }

    /// Reads the primary again. Returns `None` if it no longer derives anything for the index.
    async fn read_again<E: TableEntity>(
        &self,
        table: &Table<E>,
        family: &'static RowFamily,
    ) -> Result<Option<Self>> {
        match read_primary(table, row_at(table, &self.primary)).await? {
            Some(primary) => {
                let tokens = table.key_token_maker().await?;
                let derive = || Self::derive_index_row::<E>(family, &primary, &tokens);
                table.run_with_blind_token_keys(&tokens, derive).await
            }
            None => Ok(None),
        }
    }

    /// Reads the row that has the copy's key. Returns `None` for a list entry or an unused key.
    async fn read_copy<E: TableEntity>(&self, table: &Table<E>) -> Result<Option<Row>> {
        match &self.index_row {
            IndexRow::Copy(copy) => read_row(table, row_at(table, copy)).await,
            IndexRow::ListEntry(_) => Ok(None),
        }
    }

    fn is_copied_as(&self, found: &Row) -> bool {
        matches!(&self.index_row, IndexRow::Copy(copy) if copy.has_same_content(found))
    }

    fn is_listed_in(&self, lists: &Lists) -> bool {
        match &self.index_row {
            IndexRow::Copy(_) => false,
            IndexRow::ListEntry(head) => lists
                .get(head)
                .and_then(Option::as_ref)
                .is_some_and(|list| list.ids.iter().any(|id| id == self.primary.row_key())),
        }
    }

    /// Returns the RowKey of the copy, or of the head row of the list that contains the entry.
    fn index_row_key(&self) -> &str {
        match &self.index_row {
            IndexRow::Copy(copy) => copy.row_key(),
            IndexRow::ListEntry(head) => head,
        }
    }
}

/// Returns the address of a row in the entity's table.
fn row_at<'r, E: TableEntity>(table: &'r Table<E>, row: &'r Row) -> RowAt<'r> {
    table.row_at(row.partition_key(), row.row_key())
}

/// Gathers primaries of one partition into groups. Two primaries that derive the same copy are put into different
/// groups. The second group then finds the copy of the first and reports it if it differs.
pub(crate) fn group_primaries(
    primaries: Vec<IndexedPrimary>,
    rows_of_primary: usize,
) -> Vec<Vec<IndexedPrimary>> {
    group_consecutive_items(primaries, |group: &[IndexedPrimary], next| {
        let first = group.first().map(|other| other.primary.partition_key());
        let is_copy = matches!(next.index_row, IndexRow::Copy(_));
        let has_key = |key: &str| group.iter().any(|other| other.index_row_key() == key);
        first == Some(next.primary.partition_key())
            // Each primary needs an operation for each of its rows, and one for its copy or entry.
            && group.len() < BATCH_OPERATIONS / (rows_of_primary + 1)
            && !(is_copy && has_key(next.index_row_key()))
    })
}

/// Lists by the RowKey of their head row. `None` if the list does not exist.
type Lists = BTreeMap<String, Option<StoredList>>;

/// The purpose of one operation of a transaction.
#[derive(Debug, Clone, Copy)]
enum Role {
    Primary,
    Copy,
    List,
}

/// Writes groups of primaries with their copies or list entries, and counts them in a report.
pub(crate) struct RebuildWriter<'r, E> {
    pub(crate) table: &'r Table<E>,
    pub(crate) family: &'static RowFamily,
    pub(crate) report: &'r mut RebuildReport,
}

impl<E: TableEntity> GroupWriter for RebuildWriter<'_, E> {
    type Group = Vec<IndexedPrimary>;

    async fn attempt(&mut self, mut group: Self::Group) -> Result<GroupWriteOutcome<Self::Group>> {
        // Read the lists before the write, which uses their ETags.
        let lists = self.read_lists(&group).await?;
        group.retain(|primary| !primary.is_listed_in(&lists));
        if group.is_empty() {
            return Ok(GroupWriteOutcome::Done);
        }
        let operations = self.operations_of_transaction(&group, &lists)?;
        if operations.len() > BATCH_OPERATIONS && group.len() > 1 {
            return Ok(GroupWriteOutcome::TooLarge(group));
        }
        let (roles, operations): (Vec<_>, Vec<_>) = operations.into_iter().unzip();
        match self.table.client.store().seal_and_write(&self.table.name, operations, None).await {
            Ok(_) => {
                self.report.written += saturating_u64(group.len());
                Ok(GroupWriteOutcome::Done)
            }
            Err(error) if error.is_too_large() && group.len() > 1 => {
                Ok(GroupWriteOutcome::TooLarge(group))
            }
            Err(error) => {
                let role = error.failed_index().and_then(|at| roles.get(at)).copied();
                self.resolve_race(error, role, group).await.map(GroupWriteOutcome::LostRace)
            }
        }
    }
}

impl<E: TableEntity> RebuildWriter<'_, E> {
    async fn read_lists(&self, group: &[IndexedPrimary]) -> Result<Lists> {
        let mut heads: BTreeMap<String, String> = BTreeMap::new();
        for IndexedPrimary { primary, index_row } in group {
            if let IndexRow::ListEntry(head) = index_row {
                heads.insert(head.clone(), primary.partition_key().to_owned());
            }
        }
        let table = self.table;
        stream::iter(heads)
            .map(|(head, partition_key)| async move {
                let store = table.client.store();
                let list = read_local_list(store, &table.name, &partition_key, &head).await?;
                Ok((head, list))
            })
            .buffered(READERS)
            .try_collect()
            .await
    }

    /// Returns the operations of a transaction, each with its purpose.
    fn operations_of_transaction(
        &self,
        group: &[IndexedPrimary],
        lists: &Lists,
    ) -> Result<Vec<(Role, OperationToSeal)>> {
        let mut operations = Vec::new();
        for IndexedPrimary { primary, .. } in group {
            // The touch goes first and fails the whole transaction if a primary changed.
            let touches = touch_primary(self.table, primary)?.into_iter();
            operations.extend(touches.map(|touch| (Role::Primary, touch)));
        }
        let mut deltas: BTreeMap<&str, ListDelta> = BTreeMap::new();
        for IndexedPrimary { primary, index_row } in group {
            match index_row {
                IndexRow::Copy(copy) => {
                    let insert = Operation::insert(copy.clone());
                    let stored_as = StoredAs::Entity(E::SCHEMA, self.family);
                    operations.push((Role::Copy, OperationToSeal::new(insert, stored_as)));
                }
                IndexRow::ListEntry(head) => {
                    deltas.entry(head).or_default().add.push(primary.row_key().to_owned());
                }
            }
        }
        let partition_key = group.first().map_or("", |first| first.primary.partition_key());
        for (head, delta) in deltas {
            let current = lists.get(head).and_then(Option::as_ref);
            for operation in delta.list_operations((partition_key, head), current)? {
                let to_seal = OperationToSeal::new(operation, StoredAs::Framework);
                operations.push((Role::List, to_seal));
            }
        }
        Ok(operations)
    }

    /// Returns the primaries that remain to be written after another writer was first. Fails if the error is not
    /// a lost race.
    async fn resolve_race(
        &mut self,
        error: Error,
        role: Option<Role>,
        group: Vec<IndexedPrimary>,
    ) -> Result<Vec<IndexedPrimary>> {
        match role {
            Some(Role::Primary) if error.is_lost_race() => self.read_primaries_again(group).await,
            // The copy exists: either another writer was first, or it is stale.
            Some(Role::Copy) if error.row_exists() => self.drop_existing_copies(group).await,
            // The next attempt reads the list again.
            Some(Role::List) if error.is_lost_race() => Ok(group),
            _ => Err(error),
        }
    }

    async fn read_primaries_again(
        &self,
        group: Vec<IndexedPrimary>,
    ) -> Result<Vec<IndexedPrimary>> {
        let (table, family) = (self.table, self.family);
        let primaries: Vec<Option<IndexedPrimary>> = stream::iter(group)
            .map(|primary| async move { primary.read_again(table, family).await })
            .buffered(READERS)
            .try_collect()
            .await?;
        Ok(primaries.into_iter().flatten().collect())
    }

    /// Drops the primaries whose copy exists. If the copy differs although the primary has not changed, reports it
    /// as a finding.
    async fn drop_existing_copies(
        &mut self,
        group: Vec<IndexedPrimary>,
    ) -> Result<Vec<IndexedPrimary>> {
        let table = self.table;
        let read: Vec<(IndexedPrimary, Option<Row>)> = stream::iter(group)
            .map(|primary| async move {
                let found = primary.read_copy(table).await?;
                Ok::<_, Error>((primary, found))
            })
            .buffered(READERS)
            .try_collect()
            .await?;
        let mut left = Vec::new();
        for (before, found) in read {
            let Some(found) = found else {
                left.push(before);
                continue;
            };
            if before.is_copied_as(&found) {
                continue;
            }
            match before.read_again(table, self.family).await? {
                // The primary has not changed, so no writer is just writing the copy.
                Some(now) if now.primary.etag() == before.primary.etag() => {
                    let primary = before.primary.row_key();
                    let finding =
                        Finding::stale_local_copy(self.family, &table.name, &found, primary);
                    self.report.findings.push(finding);
                }
                now => left.extend(now),
            }
        }
        Ok(left)
    }
}
