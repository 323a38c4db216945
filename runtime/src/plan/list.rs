//! Index entities: one row with the ids of many entities, and further rows where they do not fit.
//!
//! The head row holds JSON arrays of RowKeys in `Ids00`, `Ids01`, ..; what is over goes to spill
//! rows `{head}~s0001`, .., which the head counts in `Spills`. Every change writes the head under
//! its ETag, so that the head's version is the list's.

use std::collections::HashSet;

use crate::{
    batch::{Condition, Operation},
    edm::ValueRef,
    error::{Error, ErrorKind, Result},
    limits,
    row::Row,
};

/// The EntityType of every row of a list.
pub(crate) const MARKER: &str = "entable.list";

/// Properties with ids that a row has at most: 14 of 64 KiB stay below 1 MiB.
const CHUNKS: usize = 14;

/// What stands between the head's key and the number of a spill row.
const SPILL: &str = "~s";

/// Spill rows that a head may count: what the four digits of their keys can number.
const MOST_SPILLS: usize = 9999;

/// What the ids of a list are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Ids {
    /// RowKeys, in the list's own partition.
    #[default]
    RowKeys,
    /// What leads to entities anywhere, each an array of texts; handled as JSON.
    Anywhere,
}

/// What the entities of a transaction change in one list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ListDelta {
    pub(crate) of: Ids,
    pub(crate) add: Vec<String>,
    pub(crate) remove: Vec<String>,
}

/// A list as it was read.
#[derive(Debug, Clone)]
pub(crate) struct StoredList {
    head: Row,
    of: Ids,
    /// The ids of the head and of each spill row; `None`: the row is not there.
    rows: Vec<Option<Vec<String>>>,
    pub(crate) ids: Vec<String>,
}

impl StoredList {
    /// A list from its head row; spills are added with [`extend`](Self::extend).
    pub(crate) fn of(head: Row, of: Ids) -> Result<Self> {
        let spills = match head.get("Spills")? {
            Some(ValueRef::Int32(count)) => usize::try_from(count).unwrap_or(0).min(MOST_SPILLS),
            _ => 0,
        };
        let ids = ids_of(&head, of)?;
        let mut rows = vec![None; spills + 1];
        if let Some(first) = rows.first_mut() {
            *first = Some(ids.clone());
        }
        Ok(Self { head, of, rows, ids })
    }

    pub(crate) fn extend(&mut self, spill: &Row) -> Result<()> {
        let ids = ids_of(spill, self.of)?;
        self.ids.extend(ids.iter().cloned());
        let number = spill.row_key().rsplit_once(SPILL).and_then(|(_, digits)| digits.parse().ok());
        let slot = number.and_then(|number: usize| self.rows.get_mut(number));
        if let Some(slot) = slot {
            *slot = Some(ids);
        }
        Ok(())
    }

    pub(crate) fn spills(&self) -> usize {
        self.rows.len().saturating_sub(1)
    }

    pub(crate) fn head(&self) -> &Row {
        &self.head
    }

    /// The rows after a change: ids keep their order, new ones come last. A row that holds what it
    /// held is `None`, so that a change of a long list sends few of its rows.
    fn changed(&self, delta: &ListDelta) -> Vec<Option<Vec<String>>> {
        let removed: HashSet<&String> = delta.remove.iter().collect();
        let mut seen = HashSet::new();
        let mut rows: Vec<(Vec<String>, bool)> = Vec::new();
        for row in &self.rows {
            let ids = row.as_deref().unwrap_or_default();
            let kept = ids.iter().filter(|id| !removed.contains(id) && seen.insert(*id));
            let kept: Vec<String> = kept.cloned().collect();
            rows.push((kept.clone(), row.as_ref() != Some(&kept)));
        }
        let added: Vec<String> = delta.add.iter().filter(|id| seen.insert(*id)).cloned().collect();
        if let Some((last, is_changed)) = rows.last_mut().filter(|_| !added.is_empty()) {
            last.extend(added);
            *is_changed = true;
        }
        let all: Vec<String> = rows.iter().flat_map(|(ids, _)| ids).cloned().collect();
        if chunks_of(&all, self.of).len() <= CHUNKS {
            return if all.is_empty() { Vec::new() } else { vec![Some(all)] };
        }
        let last = rows.pop().unwrap_or_default();
        let mut changed: Vec<Option<Vec<String>>> =
            rows.into_iter().map(|(ids, is_changed)| is_changed.then_some(ids)).collect();
        if last.1 {
            let chunks = chunks_of(&last.0, self.of);
            changed.extend(chunks.chunks(CHUNKS).map(|row| Some(row.concat())));
        } else {
            changed.push(None);
        }
        while changed.last().is_some_and(|row| row.as_ref().is_some_and(Vec::is_empty)) {
            changed.pop();
        }
        // The head counts the rows and carries the version: it is always written.
        if let Some(head) = changed.first_mut()
            && head.is_none()
        {
            *head = self.rows.first().cloned().flatten();
        }
        changed
    }
}

/// What one row of a list holds, in that form.
pub(crate) fn ids_of(row: &Row, of: Ids) -> Result<Vec<String>> {
    let mut ids = Vec::new();
    for chunk in 0..CHUNKS {
        let name = chunk_name(chunk);
        let Some(value) = row.get(&name)? else { break };
        let parsed: Option<Vec<String>> = match value {
            ValueRef::String(text) => of.parse(text),
            _ => None,
        };
        let parsed = parsed.ok_or_else(|| {
            Error::new(ErrorKind::Decode, "expected a JSON array of what leads to entities")
                .at_keys(row.partition_key(), row.row_key())
                .in_property(&name)
        })?;
        ids.extend(parsed);
    }
    Ok(ids)
}

fn chunk_name(chunk: usize) -> String {
    format!("Ids{chunk:02}")
}

fn spill_key(head: &str, spill: usize) -> String {
    format!("{head}{SPILL}{spill:04}")
}

/// The key of the head that a row of a list belongs to: a text part never has `~s`.
pub(crate) fn head_key(row_key: &str) -> &str {
    row_key.split_once(SPILL).map_or(row_key, |(head, _)| head)
}

/// The ids that one row of a list holds.
pub(crate) fn ids_in(row: &Row) -> Result<Vec<String>> {
    ids_of(row, Ids::RowKeys)
}

/// The keys of the first and the last spill row.
pub(crate) fn spill_bounds(head: &str, spills: usize) -> (String, String) {
    (spill_key(head, 1), spill_key(head, spills))
}

impl ListDelta {
    pub(crate) fn is_empty(&self) -> bool {
        self.add.is_empty() && self.remove.is_empty()
    }

    /// The operations that bring a list to what it has to be, all guarded by the head's version.
    ///
    /// # Errors
    ///
    /// `is_too_large` where the list has more rows than can be numbered, or than a transaction takes
    /// at once.
    pub(crate) fn operations(
        &self,
        (partition_key, row_key): (&str, &str),
        current: Option<&StoredList>,
    ) -> Result<Vec<Operation>> {
        let operations = self.all_operations((partition_key, row_key), current)?;
        let is_numbered = |operation: &Operation| {
            let spill = operation.row().row_key().rsplit_once(SPILL);
            spill.is_none_or(|(_, number)| number.len() <= MOST_SPILLS.to_string().len())
        };
        if operations.len() > limits::BATCH_OPERATIONS || !operations.iter().all(is_numbered) {
            let message = "the ids of the list take more rows than a transaction can write: keep the list in blobs, `list(.., in_blob)`";
            let error = Error::new(ErrorKind::TooLarge, message);
            return Err(error.at_keys(partition_key, row_key));
        }
        Ok(operations)
    }

    fn all_operations(
        &self,
        (partition_key, row_key): (&str, &str),
        current: Option<&StoredList>,
    ) -> Result<Vec<Operation>> {
        let Some(current) = current else {
            if self.add.is_empty() {
                return Ok(Vec::new());
            }
            let rows = chunks_of(&self.add, self.of);
            let rows: Vec<_> = rows.chunks(CHUNKS).map(<[_]>::concat).collect();
            let spills = rows.len().saturating_sub(1);
            let rows = rows.iter().enumerate();
            return rows
                .map(|(at, ids)| {
                    let ids = (ids.as_slice(), self.of);
                    row_of(partition_key, row_key, at, spills, ids).map(Operation::insert)
                })
                .collect();
        };
        let guard = Condition::for_etag(current.head.etag());
        let rows = current.changed(self);
        let spills = rows.len().saturating_sub(1);
        let mut operations = Vec::new();
        for (at, ids) in rows.iter().enumerate() {
            let Some(ids) = ids else { continue };
            let row = row_of(partition_key, row_key, at, spills, (ids, self.of))?;
            operations.push(match at {
                0 => Operation::replace(row, guard.clone()),
                _ => Operation::insert_or_replace(row),
            });
        }
        if rows.is_empty() {
            operations.push(Operation::delete(partition_key, row_key, guard)?);
        }
        for (at, row) in current.rows.iter().enumerate().skip(rows.len().max(1)) {
            if row.is_some() {
                let spill = spill_key(row_key, at);
                operations.push(Operation::delete(partition_key, &spill, Condition::Any)?);
            }
        }
        Ok(operations)
    }
}

/// The head row or a spill row of a list.
fn row_of(
    partition_key: &str,
    head: &str,
    at: usize,
    spills: usize,
    (ids, of): (&[String], Ids),
) -> Result<Row> {
    let key = if at == 0 { head.to_owned() } else { spill_key(head, at) };
    let mut row = Row::build(partition_key, &key);
    row.put("EntityType", ValueRef::String(MARKER));
    if at == 0 && spills > 0 {
        row.put("Spills", ValueRef::Int32(i32::try_from(spills).unwrap_or(i32::MAX)));
    }
    for (chunk, ids) in chunks_of(ids, of).iter().enumerate() {
        let ids: Vec<String> = ids.iter().map(|id| of.json(id)).collect();
        row.put(&chunk_name(chunk), ValueRef::String(&format!("[{}]", ids.join(","))));
    }
    row.finish()
}

impl Ids {
    /// An id as it stands in the array.
    fn json(self, id: &str) -> String {
        match self {
            Self::RowKeys => serde_json::Value::String(id.to_owned()).to_string(),
            Self::Anywhere => id.to_owned(),
        }
    }

    /// The ids of an array.
    fn parse(self, array: &str) -> Option<Vec<String>> {
        match self {
            Self::RowKeys => serde_json::from_str(array).ok(),
            Self::Anywhere => {
                let ids: Vec<Vec<String>> = serde_json::from_str(array).ok()?;
                Some(ids.into_iter().map(|id| serde_json::Value::from(id).to_string()).collect())
            }
        }
    }
}

/// The ids in pieces whose JSON arrays are each below the limit of a property; one piece at least.
fn chunks_of(ids: &[String], of: Ids) -> Vec<Vec<String>> {
    let mut chunks = vec![Vec::new()];
    let mut units = 1;
    for id in ids {
        let added = limits::utf16_units(&of.json(id)) + 1;
        if units + added > limits::STRING_UNITS {
            chunks.push(Vec::new());
            units = 1;
        }
        if let Some(chunk) = chunks.last_mut() {
            chunk.push(id.clone());
        }
        units += added;
    }
    chunks
}
