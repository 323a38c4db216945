//! Lists (index entities): one head row with the ids of many entities, and spill rows for ids that
//! do not fit.
//!
//! The head row contains JSON arrays of ids in `Ids00`, `Ids01`, and so on. More ids are in spill rows
//! `{head}~s0001`, and so on, which the head row counts in `Spills`. Every change writes the head row under its
//! ETag. The head's ETag is therefore the version of the whole list.

use std::collections::HashSet;

use crate::{
    batch::{Condition, Operation},
    edm::ValueRef,
    entity::{LIST_MARKER, SPILL, TYPE_NAME},
    error::{Error, ErrorKind, Result},
    limits,
    row::Row,
};

/// The maximum number of properties with ids in one row: 14 of 64 KiB are less than 1 MiB.
const CHUNKS_PER_ROW: usize = 14;

/// The maximum number of spill rows of a list, because their RowKeys have four digits.
const MAX_SPILLS: usize = 9999;

/// The form of the ids in a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum IdForm {
    /// RowKeys of entities in the list's own partition: a local list.
    #[default]
    RowKeys,
    /// JSON arrays with the keys of entities in any partition: a remote list.
    KeyArrays,
}

/// The ids that a transaction adds to one list and removes from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ListDelta {
    pub(crate) form: IdForm,
    pub(crate) add: Vec<String>,
    pub(crate) remove: Vec<String>,
}

/// A list that was read from the store.
#[derive(Debug, Clone)]
pub(crate) struct StoredList {
    head: Row,
    form: IdForm,
    /// The ids of the head row and of each spill row. `None` for a row that does not exist.
    rows: Vec<Option<Vec<String>>>,
    pub(crate) ids: Vec<String>,
}

impl StoredList {
    /// Creates a list from its head row. [`add_spill_row`](Self::add_spill_row) adds the spill rows.
    ///
    /// # Errors
    ///
    /// Fails with `is_decode` if the number of spill rows is negative or not a number, and if the ids of the row cannot
    /// be read.
    pub(crate) fn from_head(head: Row, form: IdForm) -> Result<Self> {
        let spills = read_spill_count(&head)?;
        let ids = read_ids_of_row(&head, form)?;
        let mut rows = vec![None; spills + 1];
        if let Some(first) = rows.first_mut() {
            *first = Some(ids.clone());
        }
        Ok(Self { head, form, rows, ids })
    }

    /// Adds the ids of a spill row, which holds ids that did not fit into the head row.
    pub(crate) fn add_spill_row(&mut self, spill: &Row) -> Result<()> {
        let ids = read_ids_of_row(spill, self.form)?;
        self.ids.extend(ids.iter().cloned());
        let number = spill.row_key().rsplit_once(SPILL).and_then(|(_, digits)| digits.parse().ok());
        let slot = number.and_then(|number: usize| self.rows.get_mut(number));
        if let Some(slot) = slot {
            *slot = Some(ids);
        }
        Ok(())
    }

    /// Returns the number of spill rows according to the head row.
    pub(crate) fn spill_row_count(&self) -> usize {
        self.rows.len().saturating_sub(1)
    }

    /// Returns the head row.
    pub(crate) fn head_row(&self) -> &Row {
        &self.head
    }

    /// Returns the ids of each row after a change, or `None` for a row that does not change. A change of a long
    /// list then sends few rows. Ids keep their order, and new ones come last.
    fn rows_after(&self, delta: &ListDelta) -> Vec<Option<Vec<String>>> {
        let removed: HashSet<&String> = delta.remove.iter().collect();
        // A repeated id is kept once.
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
        // All ids fit into the head row again, so the spill rows are deleted.
        if split_into_chunks(&all, self.form).len() <= CHUNKS_PER_ROW {
            return if all.is_empty() { Vec::new() } else { vec![Some(all)] };
        }
        // A list has at least its head row.
        let last = rows.pop().unwrap_or_default();
        let mut changed: Vec<Option<Vec<String>>> =
            rows.into_iter().map(|(ids, is_changed)| is_changed.then_some(ids)).collect();
        if last.1 {
            let chunks = split_into_chunks(&last.0, self.form);
            changed.extend(chunks.chunks(CHUNKS_PER_ROW).map(|row| Some(row.concat())));
        } else {
            changed.push(None);
        }
        // Empty spill rows at the end are deleted, and the head row counts fewer.
        while changed.last().is_some_and(|row| row.as_ref().is_some_and(Vec::is_empty)) {
            changed.pop();
        }
        // The head row counts the spill rows and its ETag is the list's version, so it is always written.
        if let Some(head) = changed.first_mut()
            && head.is_none()
        {
            *head = self.rows.first().cloned().flatten();
        }
        changed
    }
}

/// Returns how many spill rows a head row counts, at most [`MAX_SPILLS`]. Another program may have written any number.
fn read_spill_count(head: &Row) -> Result<usize> {
    let count = match head.get("Spills")? {
        None => return Ok(0),
        Some(ValueRef::Int32(count)) => usize::try_from(count).ok(),
        Some(_) => None,
    };
    let count = count.ok_or_else(|| {
        Error::new(ErrorKind::Decode, "expected the number of the list's further rows, 0 or more")
            .at_keys(head.partition_key(), head.row_key())
            .in_property("Spills")
    })?;
    Ok(count.min(MAX_SPILLS))
}

/// Reads the ids in one row of a list.
///
/// # Errors
///
/// Fails with `is_decode` if a property is not an array of ids of this form.
pub(crate) fn read_ids_of_row(row: &Row, form: IdForm) -> Result<Vec<String>> {
    let mut ids = Vec::new();
    for chunk in 0..CHUNKS_PER_ROW {
        let name = chunk_name(chunk);
        let Some(value) = row.get(&name)? else { break };
        let parsed: Option<Vec<String>> = match value {
            ValueRef::String(text) => form.parse(text),
            _ => None,
        };
        let parsed = parsed.ok_or_else(|| {
            Error::new(ErrorKind::Decode, "expected a JSON array of entity ids")
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

/// Reads the RowKeys in one row of a local list.
pub(crate) fn read_row_keys(row: &Row) -> Result<Vec<String>> {
    read_ids_of_row(row, IdForm::RowKeys)
}

/// Returns the RowKeys of the first and the last spill row of a list with `spills` spill rows.
pub(crate) fn first_and_last_spill_key(head: &str, spills: usize) -> (String, String) {
    (spill_key(head, 1), spill_key(head, spills))
}

impl ListDelta {
    /// Returns whether nothing is added or removed.
    pub(crate) fn is_empty(&self) -> bool {
        self.add.is_empty() && self.remove.is_empty()
    }

    /// Returns the operations that change a list. The operation on the head row has a condition on its ETag, which also
    /// protects the spill rows.
    ///
    /// # Errors
    ///
    /// Fails with `is_too_large` if the list needs more rows than can be numbered or than fit into one transaction.
    pub(crate) fn list_operations(
        &self,
        (partition_key, row_key): (&str, &str),
        current: Option<&StoredList>,
    ) -> Result<Vec<Operation>> {
        let operations = self.all_operations((partition_key, row_key), current)?;
        // A number of five digits would sort among numbers of four digits, and a range of spill rows would miss rows.
        let is_numbered = |operation: &Operation| {
            let spill = operation.row().row_key().rsplit_once(SPILL);
            spill.is_none_or(|(_, number)| number.len() <= MAX_SPILLS.to_string().len())
        };
        if operations.len() > limits::BATCH_OPERATIONS || !operations.iter().all(is_numbered) {
            let message = "the list's ids take more rows than a transaction can write; keep the list in blobs with \
                           `list(.., in_blob)`";
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
            let rows = split_into_chunks(&self.add, self.form);
            let rows: Vec<_> = rows.chunks(CHUNKS_PER_ROW).map(<[_]>::concat).collect();
            let spills = rows.len().saturating_sub(1);
            let rows = rows.iter().enumerate();
            return rows
                .map(|(at, ids)| {
                    let ids = (ids.as_slice(), self.form);
                    // Insert, to read a list again that another writer creates in the meantime, instead of overwriting
                    // it.
                    list_row(partition_key, row_key, at, spills, ids).map(Operation::insert)
                })
                .collect();
        };
        let guard = Condition::for_etag(current.head.etag());
        let rows = current.rows_after(self);
        let spills = rows.len().saturating_sub(1);
        let mut operations = Vec::new();
        for (at, ids) in rows.iter().enumerate() {
            let Some(ids) = ids else { continue };
            let row = list_row(partition_key, row_key, at, spills, (ids, self.form))?;
            operations.push(match at {
                0 => Operation::replace(row, guard.clone()),
                // Without a condition: every change of a spill row also writes the head row under its
                // ETag.
                _ => Operation::insert_or_replace(row),
            });
        }
        if rows.is_empty() {
            // Delete a list without ids, so queries need not read it.
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

/// Builds the head row (`at` is 0) or a spill row of a list.
fn list_row(
    partition_key: &str,
    head: &str,
    at: usize,
    spills: usize,
    (ids, form): (&[String], IdForm),
) -> Result<Row> {
    let key = if at == 0 { head.to_owned() } else { spill_key(head, at) };
    let mut row = Row::build(partition_key, &key);
    row.put(TYPE_NAME, ValueRef::String(LIST_MARKER));
    if at == 0 && spills > 0 {
        row.put("Spills", ValueRef::Int32(limits::saturating_i32(spills)));
    }
    for (chunk, ids) in split_into_chunks(ids, form).iter().enumerate() {
        let ids: Vec<String> = ids.iter().map(|id| form.to_json(id)).collect();
        row.put(&chunk_name(chunk), ValueRef::String(&format!("[{}]", ids.join(","))));
    }
    row.finish()
}

impl IdForm {
    /// Returns an id as an element of the JSON array.
    fn to_json(self, id: &str) -> String {
        match self {
            Self::RowKeys => serde_json::Value::String(id.to_owned()).to_string(),
            Self::KeyArrays => id.to_owned(),
        }
    }

    /// Parses a JSON array of ids. Returns `None` if it has another form.
    fn parse(self, array: &str) -> Option<Vec<String>> {
        match self {
            Self::RowKeys => serde_json::from_str(array).ok(),
            Self::KeyArrays => {
                let ids: Vec<Vec<String>> = serde_json::from_str(array).ok()?;
                Some(ids.into_iter().map(|id| serde_json::Value::from(id).to_string()).collect())
            }
        }
    }
}

/// Splits ids into chunks whose JSON arrays fit into one property each. Returns at least one chunk.
fn split_into_chunks(ids: &[String], form: IdForm) -> Vec<Vec<String>> {
    let mut chunks = vec![Vec::new()];
    let mut units = 1;
    // 1 for the opening bracket. Each id adds a comma or the closing bracket.
    for id in ids {
        let added = limits::utf16_units(&form.to_json(id)) + 1;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn rows_of_head(spills: ValueRef<'_>) -> Result<usize> {
        let mut head = Row::build("x", "tag_all");
        head.put(TYPE_NAME, ValueRef::String(LIST_MARKER));
        head.put("Ids00", ValueRef::String(r#"["1"]"#));
        head.put("Spills", spills);
        StoredList::from_head(head.finish()?, IdForm::RowKeys).map(|list| list.rows.len())
    }

    #[test]
    fn a_head_with_a_damaged_count_of_rows_is_an_error() {
        for damaged in [ValueRef::Int32(-1), ValueRef::Int32(i32::MIN), ValueRef::String("2")] {
            let error = rows_of_head(damaged).unwrap_err();
            assert!(error.is_decode() && error.to_string().contains("Spills"), "{error}");
        }
    }

    #[test]
    fn a_count_of_rows_is_bounded() {
        assert_eq!(rows_of_head(ValueRef::Int32(2)).unwrap(), 3);
        assert_eq!(rows_of_head(ValueRef::Int32(i32::MAX)).unwrap(), MAX_SPILLS + 1);
    }
}
