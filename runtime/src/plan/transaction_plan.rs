//! The operations of one entity group transaction: the effects of several verbs, folded per row.
//!
//! The caller's primaries come first, then copies, then lists, so that the failing index tells the
//! caller's mistake from a taken key from a race for a list.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{
    change::Effect,
    list::{ListDelta, StoredList},
    planned::Home,
};
use crate::{
    batch::{Condition, Operation, Verb},
    entity::CopyRow,
    error::{Error, ErrorKind, Result, ServiceCode},
    key::Family,
    row::Row,
};

/// Whose row an operation writes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Role {
    /// The primary of the caller's verb.
    Primary(usize),
    /// A copy under a key that is new to the entity of the verb.
    NewCopy(usize, &'static Family),
    /// A copy under a key that the entity of the verb, or another of the transaction, has already.
    KeptCopy(usize),
    /// A copy under a key that the entity leaves.
    OldCopy,
    /// A row of a list.
    List,
    /// A claim, which the transaction makes true.
    Claim,
    /// A dirty row, by its place among those of the transaction.
    Dirty(usize),
    /// A message, or the receipt of one.
    Note,
    /// The fence of the partition.
    Fence,
}

/// The operations of a transaction, and whose they are.
#[derive(Debug, Default)]
pub(crate) struct TransactionPlan {
    pub(crate) operations: Vec<Operation>,
    pub(crate) roles: Vec<Role>,
    /// Whose rows they write.
    pub(crate) homes: Vec<Home>,
    rows: HashMap<String, usize>,
}

impl TransactionPlan {
    /// The transaction of these effects, in the caller's order. `lists`: what was read of every
    /// list that they change; `missing`: old copies that are known not to be there.
    pub(crate) fn of(
        effects: &[impl AsRef<Effect>],
        lists: &BTreeMap<String, Option<StoredList>>,
        missing: &HashSet<String>,
    ) -> Result<Self> {
        let mut transaction = Self::default();
        for (verb, effect) in effects.iter().enumerate() {
            let effect = effect.as_ref();
            let home = Home::primary(effect.schema)?;
            for operation in &effect.primary {
                transaction.add_primary(verb, home, operation.clone())?;
            }
        }
        for (verb, effect) in effects.iter().enumerate() {
            let taken = |earlier: Option<usize>, copy: &CopyRow| {
                let holder =
                    earlier.and_then(|earlier| effects.get(earlier)?.as_ref().new.as_ref());
                taken_within(copy, verb, holder.map(|rows| &rows.primary))
            };
            transaction.add_copies(verb, effect.as_ref(), missing, taken)?;
        }
        let partition_key = effects
            .iter()
            .find_map(|effect| effect.as_ref().primary.first())
            .map(|operation| operation.row().partition_key().to_owned())
            .unwrap_or_default();
        for (row_key, delta) in list_deltas(effects) {
            let current = lists.get(&row_key).and_then(Option::as_ref);
            for operation in delta.operations((&partition_key, &row_key), current)? {
                transaction.push(Role::List, Home::Framework, operation);
            }
        }
        Ok(transaction)
    }

    /// Adds a row of the outbox; the fence comes last.
    pub(crate) fn record(&mut self, role: Role, operation: Operation) {
        self.push(role, Home::Framework, operation);
    }

    fn push(&mut self, role: Role, home: Home, operation: Operation) {
        self.rows.insert(operation.row().row_key().to_owned(), self.operations.len());
        self.operations.push(operation);
        self.roles.push(role);
        self.homes.push(home);
    }

    fn earlier(&self, row_key: &str) -> Option<(usize, Role)> {
        let at = *self.rows.get(row_key)?;
        Some((at, *self.roles.get(at)?))
    }

    fn add_primary(&mut self, verb: usize, home: Home, operation: Operation) -> Result<()> {
        if let Some((_, Role::Primary(earlier))) = self.earlier(operation.row().row_key()) {
            let row = operation.row();
            let message = format!(
                "an entity group transaction writes a row once, and operations {earlier} and {verb} write the same"
            );
            return Err(Error::service(ServiceCode::InvalidDuplicateRow, message)
                .at_operation(verb)
                .at_keys(row.partition_key(), row.row_key()));
        }
        self.push(Role::Primary(verb), home, operation);
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
            let kept = new.iter().any(|new| same_key(copy, new));
            if !kept && !missing.contains(copy.row.row_key()) {
                let row = &copy.row;
                let delete = Operation::delete(row.partition_key(), row.row_key(), Condition::Any)?;
                let home = Home::copy(effect.schema, copy.family);
                self.fold(Role::OldCopy, home, delete).map_err(|earlier| taken(earlier, copy))?;
            }
        }
        // A copy that need not hold the primary's RowKey is written when that changes too, so that
        // a copy that stood still has had one owner: what a check beside writers goes by.
        let moved = effect
            .old
            .as_ref()
            .zip(effect.new.as_ref())
            .is_some_and(|(old, new)| old.primary.row_key() != new.primary.row_key());
        for copy in new {
            let (role, operation) = match old.iter().find(|old| same_key(old, copy)) {
                Some(old) if !moved && old.row.has_same_content(&copy.row) => continue,
                Some(_) => (Role::KeptCopy(verb), Operation::insert_or_replace(copy.row.clone())),
                None => (Role::NewCopy(verb, copy.family), Operation::insert(copy.row.clone())),
            };
            let home = Home::copy(effect.schema, copy.family);
            self.fold(role, home, operation).map_err(|earlier| taken(earlier, copy))?;
        }
        Ok(())
    }

    /// The verb that an operation is there for, where it is one's alone.
    pub(crate) fn verb_of(&self, operation: usize) -> Option<usize> {
        match self.roles.get(operation)? {
            Role::Primary(verb) | Role::NewCopy(verb, _) | Role::KeptCopy(verb) => Some(*verb),
            Role::OldCopy
            | Role::List
            | Role::Claim
            | Role::Dirty(_)
            | Role::Note
            | Role::Fence => None,
        }
    }

    /// Adds an operation on a copy, or joins it with the one that the transaction has on its row:
    /// a key that one entity leaves and another takes is replaced. Where another verb's entity has
    /// the key, the error is that verb.
    fn fold(&mut self, role: Role, home: Home, operation: Operation) -> Result<(), Option<usize>> {
        let Some((at, earlier)) = self.earlier(operation.row().row_key()) else {
            self.push(role, home, operation);
            return Ok(());
        };
        let (row, role, home) = match (earlier, role) {
            (Role::OldCopy, Role::OldCopy) => return Ok(()),
            (Role::OldCopy, Role::NewCopy(verb, _) | Role::KeptCopy(verb)) => {
                (operation.row().clone(), Role::KeptCopy(verb), home)
            }
            (Role::NewCopy(verb, _) | Role::KeptCopy(verb), Role::OldCopy) => {
                let both = self.operations.get(at).zip(self.homes.get(at));
                let Some((earlier, home)) = both else { return Ok(()) };
                (earlier.row().clone(), Role::KeptCopy(verb), *home)
            }
            (Role::Primary(verb) | Role::NewCopy(verb, _) | Role::KeptCopy(verb), _) => {
                return Err(Some(verb));
            }
            (
                Role::OldCopy
                | Role::List
                | Role::Claim
                | Role::Dirty(_)
                | Role::Note
                | Role::Fence,
                _,
            ) => return Err(None),
        };
        let slots = (self.operations.get_mut(at), self.roles.get_mut(at), self.homes.get_mut(at));
        if let (Some(slot), Some(slot_role), Some(slot_home)) = slots {
            *slot = Operation::insert_or_replace(row);
            *slot_role = role;
            *slot_home = home;
        }
        Ok(())
    }

    /// The operation that writes the row of that key.
    pub(crate) fn position(&self, row_key: &str) -> Option<usize> {
        self.rows.get(row_key).copied()
    }

    /// The operation that carries the result of each verb, by the verb.
    pub(crate) fn results(&self, verbs: usize) -> Vec<Option<usize>> {
        let mut results = vec![None; verbs];
        for (at, (role, operation)) in self.roles.iter().zip(&self.operations).enumerate() {
            let Role::Primary(verb) = role else { continue };
            if let Some(slot) = results.get_mut(*verb)
                && (slot.is_none() || operation.verb() != Verb::Delete)
            {
                *slot = Some(at);
            }
        }
        results
    }
}

fn same_key(a: &CopyRow, b: &CopyRow) -> bool {
    a.family.name == b.family.name && a.row.row_key() == b.row.row_key()
}

/// Two entities of the transaction derive one copy; `holder`: the primary of the other one.
fn taken_within(copy: &CopyRow, verb: usize, holder: Option<&Row>) -> Error {
    let index = copy.family.name;
    let message = match holder {
        Some(holder) => format!(
            "the key of index `{index}` is held by the entity `{}` of the same transaction",
            holder.row_key().escape_debug()
        ),
        None => format!("two entities of the transaction have the same key of index `{index}`"),
    };
    let error = Error::new(ErrorKind::UniqueViolation, message)
        .with_index(copy.family.name)
        .at_operation(verb)
        .at_keys(copy.row.partition_key(), copy.row.row_key());
    match holder {
        Some(holder) => error.held_by(holder.partition_key(), holder.row_key()),
        None => error,
    }
}

/// What the effects change in lists, by the RowKey of the list's head.
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
        delta.remove.retain(|id| !delta.add.contains(id));
    }
    deltas.retain(|_, delta| !delta.is_empty());
    deltas
}
