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

/// What the entities of a transaction change in one list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ListDelta {
    pub(crate) add: Vec<String>,
    pub(crate) remove: Vec<String>,
}

/// A list as it was read.
#[derive(Debug, Clone)]
pub(crate) struct StoredList {
    head: Row,
    spills: usize,
    pub(crate) ids: Vec<String>,
}

impl StoredList {
    /// A list from its head row; spills are added with [`extend`](Self::extend).
    pub(crate) fn of(head: Row) -> Result<Self> {
        let spills = match head.get("Spills")? {
            Some(ValueRef::Int32(count)) => usize::try_from(count).unwrap_or(0),
            _ => 0,
        };
        let ids = ids_of(&head)?;
        Ok(Self { head, spills, ids })
    }

    pub(crate) fn extend(&mut self, spill: &Row) -> Result<()> {
        self.ids.extend(ids_of(spill)?);
        Ok(())
    }

    pub(crate) fn spills(&self) -> usize {
        self.spills
    }

    pub(crate) fn head(&self) -> &Row {
        &self.head
    }

    /// The list after a change: ids keep their order, new ones come last.
    fn changed(&self, delta: &ListDelta) -> Vec<String> {
        let removed: HashSet<&String> = delta.remove.iter().collect();
        let mut seen = HashSet::new();
        let kept = self.ids.iter().filter(|id| !removed.contains(id));
        kept.chain(&delta.add).filter(|id| seen.insert(*id)).cloned().collect()
    }
}

fn ids_of(row: &Row) -> Result<Vec<String>> {
    let mut ids = Vec::new();
    for chunk in 0..CHUNKS {
        let name = chunk_name(chunk);
        let Some(value) = row.get(&name)? else { break };
        let parsed: Option<Vec<String>> = match value {
            ValueRef::String(text) => serde_json::from_str(text).ok(),
            _ => None,
        };
        let parsed = parsed.ok_or_else(|| {
            Error::new(ErrorKind::Decode, "expected a JSON array of row keys")
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
    format!("{head}~s{spill:04}")
}

/// The key of the head that a row of a list belongs to: a text part never has `~s`.
pub(crate) fn head_key(row_key: &str) -> &str {
    row_key.split_once("~s").map_or(row_key, |(head, _)| head)
}

/// The ids that one row of a list holds.
pub(crate) fn ids_in(row: &Row) -> Result<Vec<String>> {
    ids_of(row)
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
    pub(crate) fn operations(
        &self,
        (partition_key, row_key): (&str, &str),
        current: Option<&StoredList>,
    ) -> Result<Vec<Operation>> {
        let Some(current) = current else {
            return if self.add.is_empty() {
                Ok(Vec::new())
            } else {
                let rows = rows_of(partition_key, row_key, &self.add)?;
                Ok(rows.into_iter().map(Operation::insert).collect())
            };
        };
        let guard = current.head.etag().map_or(Condition::Any, Condition::Match);
        let ids = current.changed(self);
        let rows = if ids.is_empty() { Vec::new() } else { rows_of(partition_key, row_key, &ids)? };
        let written = rows.len().saturating_sub(1);
        let mut operations = Vec::new();
        let mut rows = rows.into_iter();
        operations.push(match rows.next() {
            Some(head) => Operation::replace(head, guard),
            None => Operation::delete(partition_key, row_key, guard)?,
        });
        operations.extend(rows.map(Operation::insert_or_replace));
        for spill in written + 1..=current.spills {
            operations.push(Operation::delete(
                partition_key,
                &spill_key(row_key, spill),
                Condition::Any,
            )?);
        }
        Ok(operations)
    }
}

/// The head row and the spill rows of these ids.
fn rows_of(partition_key: &str, row_key: &str, ids: &[String]) -> Result<Vec<Row>> {
    let chunks = chunks_of(ids);
    let spills = chunks.len().div_ceil(CHUNKS).saturating_sub(1);
    let mut rows = Vec::new();
    for (at, chunks) in chunks.chunks(CHUNKS).enumerate() {
        let key = if at == 0 { row_key.to_owned() } else { spill_key(row_key, at) };
        let mut row = Row::build(partition_key, &key);
        row.put("EntityType", ValueRef::String(MARKER));
        if at == 0 && spills > 0 {
            row.put("Spills", ValueRef::Int32(i32::try_from(spills).unwrap_or(i32::MAX)));
        }
        for (chunk, text) in chunks.iter().enumerate() {
            row.put(&chunk_name(chunk), ValueRef::String(text));
        }
        rows.push(row.finish()?);
    }
    Ok(rows)
}

/// The ids as JSON arrays, each below the limit of a property.
fn chunks_of(ids: &[String]) -> Vec<String> {
    let mut chunks = Vec::new();
    let mut chunk = String::from("[");
    let mut units = 1;
    for id in ids {
        let text = serde_json::Value::String(id.clone()).to_string();
        let added = limits::utf16_units(&text) + 1;
        if units + added > limits::STRING_UNITS {
            chunk.push(']');
            chunks.push(std::mem::replace(&mut chunk, String::from("[")));
            units = 1;
        }
        if chunk.len() > 1 {
            chunk.push(',');
        }
        chunk.push_str(&text);
        units += added;
    }
    chunk.push(']');
    chunks.push(chunk);
    chunks
}
