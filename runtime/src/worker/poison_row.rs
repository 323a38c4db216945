//! The format of rows in the poison table: an outbox row, with notes about its place and its failure. An outbox
//! row without room for the notes is stored in two parts.

use std::collections::HashMap;

use crate::{
    edm::ValueRef,
    error::Result,
    limits::PROPERTIES,
    plan::outbox::truncate_error,
    row::{Row, RowBuilder},
};

/// The only PartitionKey of the poison table, which is the version of its format.
pub(super) const POISON_PARTITION: &str = "1";
/// The properties that are added to a row in the poison table: its original place, and its last error.
const NOTES: [&str; 4] = ["PoisonTable", "PoisonPartition", "PoisonRow", "PoisonError"];
/// The property in both parts of a row, with the number of parts.
const PARTS: &str = "PoisonParts";
/// The text that the second part's RowKey adds to the first part's.
const SECOND_PART: &str = "_2";
/// The maximum number of properties of the outbox row in one of two parts.
const PROPERTIES_OF_PART: usize = PROPERTIES - NOTES.len() - 1;

/// The properties that an outbox row loses when it is put back. Its attempts are then counted from zero.
const RETRY_STATE: [&str; 4] = ["Failures", "Delayed", "Leased", "Poison"];

/// Returns the rows that store an outbox row with these notes in the poison table under the RowKey `key`: one
/// row, or two parts if one row is too small.
pub(super) fn build_poison_rows(
    key: &str,
    outbox_row: &Row,
    [table, error]: [&str; 2],
) -> Result<Vec<Row>> {
    let (partition_key, row_key) = outbox_row.keys();
    let notes = [table, partition_key, row_key, truncate_error(error)];
    let mut whole = PoisonPart::with_notes(key, notes);
    put_outbox_row(outbox_row, |name, value| whole.put(name, value))?;
    let whole = whole.row.finish()?;
    match whole.check() {
        Err(error) if error.is_too_large() => {}
        // A row that the store refuses for another reason is refused when it is written.
        _ => return Ok(vec![whole]),
    }
    let keys = [key.to_owned(), [key, SECOND_PART].concat()];
    // Each part has the notes: a program that does not know parts treats each as separate work.
    let [mut first, mut second] = keys.map(|key| {
        let mut part = PoisonPart::with_notes(&key, notes);
        part.row.put(PARTS, ValueRef::Int32(2));
        part
    });
    put_outbox_row(outbox_row, |name, value| {
        // The smaller part takes the property, unless it has the maximum number of properties.
        let (smaller, larger) = if first.bytes <= second.bytes {
            (&mut first, &mut second)
        } else {
            (&mut second, &mut first)
        };
        let has_room = smaller.properties < PROPERTIES_OF_PART;
        if has_room { smaller.put(name, value) } else { larger.put(name, value) }
    })?;
    Ok(vec![first.row.finish()?, second.row.finish()?])
}

/// Calls `put` with each property of an outbox row. Omits the names of the notes, because a row cannot contain a
/// property twice. Only a forged outbox row has such properties.
fn put_outbox_row(row: &Row, mut put: impl FnMut(&str, ValueRef<'_>)) -> Result<()> {
    let mut properties = row.properties();
    while let Some((name, value)) = properties.next()? {
        if !is_note(name) {
            put(&String::from_utf8_lossy(name), value);
        }
    }
    Ok(())
}

/// Returns whether a property with this name was added when the row was put aside.
fn is_note(name: &[u8]) -> bool {
    NOTES.iter().chain(&[PARTS]).any(|note| note.as_bytes() == name)
}

/// A row of the poison table that is being built.
struct PoisonPart {
    row: RowBuilder,
    /// The number of properties of the outbox row.
    properties: usize,
    /// The bytes that the service counts for these properties, without a constant for each.
    bytes: usize,
}

impl PoisonPart {
    fn with_notes(key: &str, notes: [&str; 4]) -> Self {
        let mut row = Row::build(POISON_PARTITION, key);
        for (name, note) in NOTES.into_iter().zip(notes) {
            row.put(name, ValueRef::String(note));
        }
        Self { row, properties: 0, bytes: 0 }
    }

    fn put(&mut self, name: &str, value: ValueRef<'_>) {
        self.row.put(name, value);
        self.properties += 1;
        self.bytes += 2 * name.len() + value.service_size();
    }
}

/// A row of the poison table as it was read.
pub(super) struct StoredPoison {
    /// The stored rows: one row, or two if the work and its notes do not fit into one.
    pub(super) rows: Vec<Row>,
    /// Whether the work is complete. `false` if it was stored in two rows and one of them is missing.
    pub(super) is_whole: bool,
}

/// The notes about work in the poison table.
pub(super) struct PoisonNotes {
    /// The original table of the outbox row.
    pub(super) table: String,
    /// The text of the last error.
    pub(super) error: String,
}

/// Joins the parts of rows of the poison table, which may be in any order. A part without its counterpart is
/// returned alone.
pub(super) fn join_parts(rows: Vec<Row>) -> Result<Vec<StoredPoison>> {
    let mut second_parts = HashMap::new();
    let mut stored = Vec::with_capacity(rows.len());
    for row in rows {
        let is_part = row.get(PARTS)?.is_some();
        match row.row_key().strip_suffix(SECOND_PART).filter(|_| is_part).map(str::to_owned) {
            Some(first_key) => drop(second_parts.insert(first_key, row)),
            None => stored.push(StoredPoison { rows: vec![row], is_whole: !is_part }),
        }
    }
    for poison in stored.iter_mut().filter(|poison| !poison.is_whole) {
        let second = poison.rows.first().and_then(|first| second_parts.remove(first.row_key()));
        poison.is_whole = second.is_some();
        poison.rows.extend(second);
    }
    let mut left: Vec<_> = second_parts.into_values().collect();
    left.sort_by(|a, b| a.row_key().cmp(b.row_key()));
    stored.extend(left.into_iter().map(|row| StoredPoison { rows: vec![row], is_whole: false }));
    Ok(stored)
}

impl StoredPoison {
    /// Returns the notes, and the original outbox row without its retry state. If a note or a part is missing, returns
    /// the row without it, which lets the other rows be listed. The error text then contains what is missing, or the
    /// last of several missing items. Fails for a row that does not decode.
    pub(super) fn notes_and_outbox_row(&self) -> Result<(PoisonNotes, Row)> {
        let mut texts: [String; 4] = Default::default();
        let mut lacks = None;
        for (name, slot) in NOTES.into_iter().zip(&mut texts) {
            match self.rows.first().map(|row| row.get(name)).transpose()?.flatten() {
                Some(ValueRef::String(text)) => text.clone_into(slot),
                _ => lacks = Some(name),
            }
        }
        let [table, partition_key, row_key, mut error] = texts;
        if let Some(name) = lacks {
            error = format!("the poisoned row lacks the text `{name}`; {error}");
        }
        if !self.is_whole {
            error = format!("the poisoned row lacks its other part; {error}");
        }
        let mut outbox_row = Row::build(&partition_key, &row_key);
        for part in &self.rows {
            put_outbox_row(part, |name, value| {
                if !RETRY_STATE.contains(&name) {
                    outbox_row.put(name, value);
                }
            })?;
        }
        Ok((PoisonNotes { table, error }, outbox_row.finish()?))
    }
}
