//! Combines the effects of several verbs, row by row, into the operations of one entity group transaction.
//!
//! The primaries come first, then local copies, then local lists. The commit adds the outbox rows last. The planned
//! role at the position of the failed operation shows the cause. For a primary, it is the caller's condition or
//! another writer; for a new copy, a taken key; for a list or an outbox row, a lost race.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{
    effect::Effect,
    list::{ListDelta, StoredList},
    planned::{OperationRole, PlannedOperation, StoredAs},
    wide,
};
use crate::{
    batch::{Condition, Operation, Verb, Written},
    entity::CopyRow,
    error::{Error, ErrorKind, Result, ServiceCode},
    limits::BATCH_OPERATIONS,
    row::{ETag, Row},
};

/// The rows that a commit has read for its transaction, besides the primaries.
#[derive(Debug, Default)]
pub(crate) struct RowsRead {
    /// Every local list that the transaction changes, by the RowKey of its head row.
    pub(crate) lists: BTreeMap<String, ChangedList>,
    /// The RowKeys of local copies that an earlier attempt was to delete and did not find. The plan leaves them out.
    pub(crate) missing: HashSet<String>,
    /// The ETags of parts of wide entities by RowKey. `None` for a part that does not exist.
    pub(crate) parts: HashMap<String, Option<ETag>>,
    /// A new id for each attempt, which marks the parts of a wide entity that are written together.
    pub(crate) generation: String,
}

/// A local list that a transaction changes.
#[derive(Debug)]
pub(crate) struct ChangedList {
    pub(crate) delta: ListDelta,
    /// The list that was read, or `None` if it does not exist.
    pub(crate) stored: Option<StoredList>,
}

/// The operations of one entity group transaction, in sending order.
#[derive(Debug, Default)]
pub(crate) struct TransactionPlan {
    planned: Vec<PlannedOperation>,
}

impl TransactionPlan {
    /// Plans the transaction of these effects in the caller's order. `read` must contain every list that they change.
    ///
    /// # Errors
    ///
    /// Fails if two verbs write the same row or take the same key, or if a list is too large.
    pub(crate) fn new(effects: &[impl AsRef<Effect>], read: &RowsRead) -> Result<Self> {
        let mut transaction = Self::default();
        for (verb, effect) in effects.iter().enumerate() {
            let effect = effect.as_ref();
            let stored_as = StoredAs::storage_kind_of_primary(effect.schema)?;
            for joined in &effect.primary {
                let parts =
                    wide::split_operation(effect.schema, joined, &read.generation, &read.parts)?;
                let may_miss = wide::can_ignore_missing_parts(effect.schema, joined);
                let role = if may_miss {
                    OperationRole::DeletedPart(verb)
                } else {
                    OperationRole::Primary(verb)
                };
                for operation in parts.into_owned() {
                    transaction
                        .add_primary(verb, PlannedOperation { operation, role, stored_as })?;
                }
            }
        }
        // After all primaries: the position of a failed operation then distinguishes primaries from copies.
        transaction.add_all_copies(effects, &read.missing)?;
        let partition_key = effects
            .iter()
            .find_map(|effect| effect.as_ref().primary.first())
            .map(|operation| operation.row().partition_key().to_owned())
            .unwrap_or_default();
        for (row_key, list) in &read.lists {
            let keys = (&*partition_key, &**row_key);
            for operation in list.delta.list_operations(keys, list.stored.as_ref())? {
                transaction.push_framework_row(OperationRole::List, operation);
            }
        }
        Ok(transaction)
    }

    /// Adds the operations on the local copies of all effects.
    fn add_all_copies(
        &mut self,
        effects: &[impl AsRef<Effect>],
        missing: &HashSet<String>,
    ) -> Result<()> {
        for (verb, effect) in effects.iter().enumerate() {
            let taken = |earlier: Option<usize>, copy: &CopyRow| {
                let holder =
                    earlier.and_then(|earlier| effects.get(earlier)?.as_ref().new.as_ref());
                taken_by_two_entities(copy, verb, holder.map(|rows| &rows.primary))
            };
            self.add_copies(verb, effect.as_ref(), missing, taken)?;
        }
        Ok(())
    }

    /// Returns the operations in sending order.
    pub(crate) fn planned_operations(&self) -> &[PlannedOperation] {
        &self.planned
    }

    /// Fails with `is_too_large` if the transaction, with this many operations to come, has more operations than
    /// the service accepts.
    pub(crate) fn check_operation_count(&self, table: &str, to_come: usize) -> Result<()> {
        let operations = self.planned.len() + to_come;
        if operations <= BATCH_OPERATIONS {
            return Ok(());
        }
        let message = format!(
            "an entity group transaction has at most {BATCH_OPERATIONS} operations, copies, lists and the outbox \
             included; this one has {operations}"
        );
        let error = Error::new(ErrorKind::TooLarge, message);
        Err(error.with_code(ServiceCode::InvalidInput).in_table(table))
    }

    /// Adds an operation on one of the library's rows. The fence must be added last.
    pub(crate) fn push_framework_row(&mut self, role: OperationRole, operation: Operation) {
        self.planned.push(PlannedOperation { operation, role, stored_as: StoredAs::Framework });
    }

    fn earlier_operation(&mut self, row_key: &str) -> Option<&mut PlannedOperation> {
        // At most a hundred operations: searching them is faster than building a map. Keys are compared as bytes,
        // because to read one as text checks it.
        self.planned.iter_mut().rfind(|planned| {
            let keys = planned.operation.row().key_bytes();
            keys.is_some_and(|(_, earlier)| earlier == row_key.as_bytes())
        })
    }

    fn add_primary(&mut self, verb: usize, planned: PlannedOperation) -> Result<()> {
        let row = planned.operation.row();
        if let Some(PlannedOperation {
            role: OperationRole::Primary(earlier) | OperationRole::DeletedPart(earlier),
            ..
        }) = self.earlier_operation(row.row_key())
        {
            return Err(row_written_twice_error(*earlier, verb)
                .at_operation(verb)
                .at_keys(row.partition_key(), row.row_key()));
        }
        self.planned.push(planned);
        Ok(())
    }

    fn add_copies(
        &mut self,
        verb: usize,
        effect: &Effect,
        missing: &HashSet<String>,
        taken: impl Fn(Option<usize>, &CopyRow) -> Error,
    ) -> Result<()> {
        let old = effect.old.as_ref().map(|rows| rows.local_copies.as_slice()).unwrap_or_default();
        let new = effect.new.as_ref().map(|rows| rows.local_copies.as_slice()).unwrap_or_default();
        for copy in old {
            let is_kept = new.iter().any(|new| have_same_key(copy, new));
            if !is_kept && !missing.contains(copy.row.row_key()) {
                let row = &copy.row;
                let operation =
                    // Without a condition, because the primary's ETag protects its local copies.
                    Operation::delete(row.partition_key(), row.row_key(), Condition::Any)?;
                let stored_as = StoredAs::storage_kind_of_copy(effect.schema, copy.family);
                self.join_with_earlier(PlannedOperation {
                    operation,
                    role: OperationRole::OldCopy,
                    stored_as,
                })
                .map_err(|earlier| taken(earlier, copy))?;
            }
        }
        // A copy's key need not contain the primary's RowKey. Write the copy even if only the RowKey changes: a
        // check during concurrent writes relies on one owner per version of a copy.
        let has_moved = effect
            .old
            .as_ref()
            .zip(effect.new.as_ref())
            .is_some_and(|(old, new)| old.primary.row_key() != new.primary.row_key());
        for copy in new {
            let (role, operation) = match old.iter().find(|old| have_same_key(old, copy)) {
                Some(old) if !has_moved && old.row.has_same_content(&copy.row) => continue,
                Some(_) => {
                    (OperationRole::KeptCopy(verb), Operation::insert_or_replace(copy.row.clone()))
                }
                None => {
                    (OperationRole::NewCopy(verb, copy.family), Operation::insert(copy.row.clone()))
                }
            };
            let stored_as = StoredAs::storage_kind_of_copy(effect.schema, copy.family);
            self.join_with_earlier(PlannedOperation { operation, role, stored_as })
                .map_err(|earlier| taken(earlier, copy))?;
        }
        Ok(())
    }

    /// Returns the position of the operation that failed, or `None` if the error concerns the whole transaction.
    pub(crate) fn failed_position(&self, error: &Error) -> Option<usize> {
        // A transaction of one operation is sent as a single request, whose error has no position.
        error.failed_index().or_else(|| (self.planned.len() == 1).then_some(0))
    }

    /// Returns the verb whose primary or copy the operation at this position writes, or `None` for the library's rows.
    pub(crate) fn verb_at(&self, position: usize) -> Option<usize> {
        match self.planned.get(position)?.role {
            OperationRole::Primary(verb)
            | OperationRole::DeletedPart(verb)
            | OperationRole::NewCopy(verb, _)
            | OperationRole::KeptCopy(verb) => Some(verb),
            OperationRole::OldCopy
            | OperationRole::List
            | OperationRole::Claim
            | OperationRole::Dirty(_)
            | OperationRole::MessageOrReceipt
            | OperationRole::Fence => None,
        }
    }

    /// Adds an operation on a copy. If the transaction already has an operation on that row, combines both. A key
    /// that one entity releases and another takes becomes one replacement.
    ///
    /// # Errors
    ///
    /// Fails unless the two are the halves of such a replacement, or both delete the copy. The error is the
    /// position of the verb whose entity already has the key, or `None` if the row belongs to no verb.
    fn join_with_earlier(&mut self, later: PlannedOperation) -> Result<(), Option<usize>> {
        let Some(earlier) = self.earlier_operation(later.operation.row().row_key()) else {
            self.planned.push(later);
            return Ok(());
        };
        let (row, verb, stored_as) = match (earlier.role, later.role) {
            // One deletion serves both, because a transaction may contain each row once.
            (OperationRole::OldCopy, OperationRole::OldCopy) => return Ok(()),
            (
                OperationRole::OldCopy,
                OperationRole::NewCopy(verb, _) | OperationRole::KeptCopy(verb),
            ) => (later.operation.row().clone(), verb, later.stored_as),
            (
                OperationRole::NewCopy(verb, _) | OperationRole::KeptCopy(verb),
                OperationRole::OldCopy,
            ) => (earlier.operation.row().clone(), verb, earlier.stored_as),
            (
                OperationRole::Primary(verb)
                | OperationRole::DeletedPart(verb)
                | OperationRole::NewCopy(verb, _)
                | OperationRole::KeptCopy(verb),
                _,
            ) => return Err(Some(verb)),
            (
                OperationRole::OldCopy
                | OperationRole::List
                | OperationRole::Claim
                | OperationRole::Dirty(_)
                | OperationRole::MessageOrReceipt
                | OperationRole::Fence,
                _,
            ) => return Err(None),
        };
        // Replace whatever the row contains: the deletion and the insertion became one write.
        let operation = Operation::insert_or_replace(row);
        *earlier = PlannedOperation { operation, role: OperationRole::KeptCopy(verb), stored_as };
        Ok(())
    }

    /// Returns the position of the operation on the row with this RowKey.
    pub(crate) fn position_of_row_key(&self, row_key: &str) -> Option<usize> {
        self.planned.iter().rposition(|planned| planned.operation.row().row_key() == row_key)
    }

    /// Returns the ETag of the row at this position after a write. For a part of a wide entity, returns the ETag of
    /// the whole entity.
    pub(crate) fn etag_at(&self, position: usize, written: &[Written]) -> Option<ETag> {
        let planned = self.planned.get(position)?;
        if let (OperationRole::Primary(verb), Some((schema, _))) =
            (planned.role, planned.stored_as.type_and_family())
            && schema.is_wide()
        {
            let answer = self.answers_of_verbs(verb + 1, written).pop().flatten()?;
            return answer.etag;
        }
        written.get(position)?.etag.clone()
    }

    /// Returns the result of each verb, which is the store's answer for its primary. A verb that deletes one row
    /// and writes another gets the answer for the written row.
    pub(crate) fn answers_of_verbs(
        &self,
        verbs: usize,
        written: &[Written],
    ) -> Vec<Option<Written>> {
        let mut schemas = vec![None; verbs];
        let mut answers: Vec<(Vec<&Written>, Vec<&Written>)> = vec![Default::default(); verbs];
        for (planned, answer) in self.planned.iter().zip(written) {
            let (OperationRole::Primary(verb) | OperationRole::DeletedPart(verb)) = planned.role
            else {
                continue;
            };
            if let (Some((kept, deleted)), Some(schema)) =
                (answers.get_mut(verb), schemas.get_mut(verb))
            {
                *schema = planned.stored_as.type_and_family().map(|(schema, _)| schema);
                let is_delete = planned.operation.verb() == Verb::Delete;
                if is_delete { deleted.push(answer) } else { kept.push(answer) }
            }
        }
        let joined = answers.iter().zip(schemas).map(|((kept, deleted), schema)| {
            wide::join_part_answers(schema, if kept.is_empty() { deleted } else { kept })
        });
        joined.collect()
    }
}

fn have_same_key(a: &CopyRow, b: &CopyRow) -> bool {
    a.family.name == b.family.name && a.row.row_key() == b.row.row_key()
}

/// Returns the error for two entities of a transaction that take the same key of an index. `holder` is the other
/// entity's primary.
fn taken_by_two_entities(copy: &CopyRow, verb: usize, holder: Option<&Row>) -> Error {
    let index = copy.family.name;
    let message = match holder {
        Some(holder) => format!(
            "the key of index `{index}` is held by the entity `{}` of the same transaction",
            holder.row_key().escape_debug()
        ),
        None => format!("two entities of the transaction have the same key of index `{index}`"),
    };
    let error = Error::unique_violation(index, message)
        .at_operation(verb)
        .at_keys(copy.row.partition_key(), copy.row.row_key());
    match holder {
        Some(holder) => error.held_by(holder.partition_key(), holder.row_key()),
        None => error,
    }
}

/// Returns the changes to local lists that effects cause, by the RowKey of the list's head row.
pub(crate) fn list_deltas(effects: &[impl AsRef<Effect>]) -> BTreeMap<String, ListDelta> {
    let mut deltas: BTreeMap<String, ListDelta> = BTreeMap::new();
    for effect in effects {
        let effect = effect.as_ref();
        let old =
            effect.old.as_ref().map(|rows| rows.local_list_entries.as_slice()).unwrap_or_default();
        let new =
            effect.new.as_ref().map(|rows| rows.local_list_entries.as_slice()).unwrap_or_default();
        for entry in old.iter().filter(|entry| !new.contains(entry)) {
            deltas.entry(entry.row_key.clone()).or_default().remove.push(entry.id.clone());
        }
        for entry in new.iter().filter(|entry| !old.contains(entry)) {
            deltas.entry(entry.row_key.clone()).or_default().add.push(entry.id.clone());
        }
    }
    for delta in deltas.values_mut() {
        // Removed by one entity and added by another: keep the id.
        delta.remove.retain(|id| !delta.add.contains(id));
    }
    deltas.retain(|_, delta| !delta.is_empty());
    deltas
}

/// Returns the error for a transaction with two operations on one row.
pub(crate) fn row_written_twice_error(earlier: usize, later: usize) -> Error {
    let message = format!(
        "operations {earlier} and {later} write the same row, but an entity group transaction may write a row only \
         once"
    );
    Error::service(ServiceCode::InvalidDuplicateRow, message)
}
