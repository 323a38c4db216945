//! The format of rows in the poison table: an outbox row, with notes about where it was and why it
//! failed. An outbox row that has no room for the notes is stored in two parts.

use std::collections::HashMap;

use crate::{
    edm::ValueRef,
    error::Result,
    limits::PROPERTIES,
    plan::outbox::truncate_error,
    row::{Row, RowBuilder},
};

/// The only PartitionKey of the poison table: the version of its format.
pub(super) const POISON_PARTITION: &str = "1";
/// The properties that are added to a row in the poison table: where the row was, and its last
/// error.
const NOTES: [&str; 4] = ["PoisonTable", "PoisonPartition", "PoisonRow", "PoisonError"];
/// The property that both parts of a row have, with the number of parts.
const PARTS: &str = "PoisonParts";
/// The text after the RowKey of the first part in the RowKey of the second part.
const SECOND_PART: &str = "_2";
/// Most properties of the outbox row in one of two parts.
const PROPERTIES_OF_PART: usize = PROPERTIES - NOTES.len() - 1;

/// The properties that an outbox row loses when it is put back, so that its attempts are counted
/// anew.
const RETRY_STATE: [&str; 4] = ["Failures", "Delayed", "Leased", "Poison"];

/// Returns the rows that put an outbox row with these notes into the poison table under the RowKey
/// `key`: one row, or two parts if one row cannot hold all.
pub(super) fn poison_rows(
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
    // Each part has the notes: a program that knows no parts then takes each for work of its own.
    let [mut first, mut second] = keys.map(|key| {
        let mut part = PoisonPart::with_notes(&key, notes);
        part.row.put(PARTS, ValueRef::Int32(2));
        part
    });
    put_outbox_row(outbox_row, |name, value| {
        // The smaller part takes the property, unless it has as many properties as a row can have.
        let (smaller, larger) = match first.bytes <= second.bytes {
            true => (&mut first, &mut second),
            false => (&mut second, &mut first),
        };
        let has_room = smaller.properties < PROPERTIES_OF_PART;
        if has_room { smaller.put(name, value) } else { larger.put(name, value) }
    })?;
    Ok(vec![first.row.finish()?, second.row.finish()?])
}

/// Calls `put` with each property of an outbox row. Leaves out the names of the notes, which no
/// outbox row has unless somebody forged it: a row cannot have a property twice.
fn put_outbox_row(row: &Row, mut put: impl FnMut(&str, ValueRef<'_>)) -> Result<()> {
    let mut properties = row.properties();
    while let Some((name, value)) = properties.next()? {
        if !is_note(name) {
            put(&String::from_utf8_lossy(name), value);
        }
    }
    Ok(())
}

/// Returns whether a property with that name was added when the row was put aside.
fn is_note(name: &[u8]) -> bool {
    NOTES.iter().chain(&[PARTS]).any(|note| note.as_bytes() == name)
}

/// A row of the poison table that is being built.
struct PoisonPart {
    row: RowBuilder,
    /// Number of properties of the outbox row.
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
    /// The row, or its two parts.
    pub(super) rows: Vec<Row>,
    /// Whether no part is missing.
    pub(super) is_whole: bool,
}

/// The notes about work in the poison table.
pub(super) struct PoisonNotes {
    /// The table in which the outbox row was.
    pub(super) table: String,
    /// The text of the last error.
    pub(super) error: String,
}

/// Joins the parts of rows of the poison table, which may be in any order. A part without its other part
/// stays alone.
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
    /// Returns the notes, and the outbox row as it was, without its retry state. A row that lacks one of
    /// the notes or a part is returned without it, so that the other rows can be listed too; the text of
    /// the error names what is missing, or the last of several. Fails for a row that does not decode.
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
