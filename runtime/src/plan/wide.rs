//! Splits a wide entity over its rows, its parts, and joins them again.
//!
//! Above the store a wide entity is one row: the keys of part 1, the properties of all parts, and an
//! ETag made of all parts' ETags. Only this file knows how parts are named and laid out.

use std::{
    collections::{BTreeSet, HashMap},
    ops::Bound,
};

use crate::{
    access::Keys,
    batch::{Condition, Operation, Verb, Written},
    edm::{Ticks, ValueRef},
    entity::{ColumnSchema, Discriminator, Schema},
    error::{Error, ErrorKind, Result},
    filter::{Comparison, Filter},
    row::{ETag, OPERATION_ID, Row, RowBuilder},
};

/// The property of each part with `{number of parts}_{24 hex digits}`; the digits are a random id
/// of the last write of all parts. In a joined row it holds `{name}:{part}` for each property that
/// the type does not declare and that is not in part 1.
pub(crate) const PARTS: &str = "EntableParts";

/// The system property that every row has and that is asked for with each row.
const TIMESTAMP: &str = "Timestamp";

/// The end of the RowKey of part 1. The end of another part's RowKey has its number instead.
const FIRST: &str = "_01";

/// Returns the RowKey of a part, counted from 1, of the entity whose part 1 has this RowKey.
///
/// # Errors
///
/// `is_invalid` for a RowKey that no part 1 has.
pub(crate) fn part_key(row_key: &str, part: usize) -> Result<String> {
    match row_key.strip_suffix(FIRST) {
        Some(entity) => Ok(format!("{entity}_{part:02}")),
        None => {
            let message = format!(
                "the RowKey `{}` does not end with `{FIRST}`, as that of a wide entity does",
                row_key.escape_debug()
            );
            Err(Error::new(ErrorKind::Invalid, message))
        }
    }
}

/// Returns whether the RowKey has the form of that of part 1.
pub(crate) fn is_first_key(row_key: &str) -> bool {
    row_key.ends_with(FIRST)
}

/// Returns the RowKey of part 1 and the number of the part for the RowKey of any part. Returns
/// `None` if the RowKey does not end with `_` and two digits from `01` on.
fn entity_key(row_key: &str) -> Option<(String, usize)> {
    let (entity, digits) = row_key.rsplit_once('_')?;
    let is_number = digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_digit());
    let part = digits.parse().ok().filter(|part| is_number && *part > 0)?;
    Some(([entity, FIRST].concat(), part))
}

/// Finds the parts of properties. A search begins at the column that the last one found: rows have
/// their properties in the order of the columns, so that most searches compare one name or two.
struct PartFinder {
    columns: &'static [ColumnSchema],
    at: usize,
}

impl PartFinder {
    const fn new(schema: &'static Schema) -> Self {
        Self { columns: schema.columns, at: 0 }
    }

    fn column_of(&mut self, name: &str) -> Option<&'static ColumnSchema> {
        let (before, after) = self.columns.split_at_checked(self.at)?;
        let found = after.iter().chain(before).position(|column| column.holds(name))?;
        self.at = (self.at + found) % self.columns.len();
        self.columns.get(self.at)
    }

    /// Returns the part that stores the property, or `None` if the type does not declare it.
    fn part_of(&mut self, name: &str) -> Option<usize> {
        self.column_of(name).filter(|column| column.stored).map(ColumnSchema::part)
    }
}

/// Returns the version that writes this type marker into part `part`, or `None` for a row of another
/// type.
fn version_of(
    schema: &'static Schema,
    part: usize,
    marker: Option<ValueRef<'_>>,
) -> Option<&'static Schema> {
    let Some(ValueRef::String(marker)) = marker else { return None };
    schema.versions().find(|version| version.parts.get(part - 1) == Some(&marker))
}

/// Returns the most parts that an entity has in any version of its type.
pub(crate) fn most_parts(schema: &'static Schema) -> usize {
    schema.versions().map(|version| version.parts.len()).max().unwrap_or(0)
}

/// Returns whether the rows of a stored entity may be laid out in another way, by an older version.
pub(crate) const fn may_have_other_parts(schema: &Schema) -> bool {
    schema.is_wide() && schema.older.is_some()
}

fn discriminator_of(schema: &Schema) -> &'static str {
    match schema.discriminator {
        Discriminator::Property(name) => name,
        Discriminator::RowKey => "",
    }
}

fn text_of(name: &[u8]) -> Result<&str> {
    std::str::from_utf8(name).map_err(|_| crate::row::corrupt_row("a property's name is not UTF-8"))
}

/// Returns the operations on the parts that an operation on a joined row amounts to. An operation on
/// an entity of one row stays as it is. `generation` is new in each transaction. `found` holds the
/// ETags of parts by RowKey, `None` for one that does not exist, where a deletion without an ETag
/// met an entity that lacks parts: only the parts that were found are deleted, under their ETags.
///
/// A row of an older version is laid out as that version does. Where the ETag is of an entity with
/// other parts than the row, those that it has too many are deleted, and those that it lacks are
/// written.
///
/// # Errors
///
/// `is_invalid` if the entity was not read with all of its parts, and for keys of no wide entity.
pub(crate) fn split(
    schema: Option<&'static Schema>,
    operation: &Operation,
    generation: &str,
    found: &HashMap<String, Option<ETag>>,
) -> Result<Vec<Operation>> {
    let Some(schema) = schema.filter(|schema| schema.is_wide()) else {
        return Ok(vec![operation.clone()]);
    };
    let row = operation.row();
    let (partition_key, row_key) = row.keys();
    let located = |error: Error| error.at_keys(partition_key, row_key);
    let schema = version_of(schema, 1, row.get(discriminator_of(schema))?).unwrap_or(schema);
    let guards = match operation.condition() {
        Some(Condition::Match(etag)) => Some(guards_of(schema, etag).map_err(located)?),
        _ => None,
    };
    if operation.verb() == Verb::Delete {
        let guards = guards.unwrap_or_else(|| vec![PartGuard::Any; schema.parts.len()]);
        return deletions((partition_key, row_key), &guards, found);
    }
    let count = schema.parts.len();
    let is_blind = guards.is_none();
    let guards = guards.unwrap_or_else(|| vec![PartGuard::Any; count]);
    if operation.verb() == Verb::Merge && guards.len() != count {
        return Err(located(other_count(schema, guards.len())));
    }
    let Split { rows, filled } = Split::of(schema, row).map_err(located)?;
    if operation.verb() == Verb::Merge && is_blind && filled.len() <= 1 {
        let part = filled.first().copied().unwrap_or(1);
        let only = rows.into_iter().nth(part - 1).map(RowBuilder::finish).transpose()?;
        let only = only.map(|only| with_encrypted(schema, row, only, part));
        return Ok(only.map(|only| Operation::merge(only, Condition::Any)).into_iter().collect());
    }
    let generation = format!("{count}_{generation}");
    let mut operations = Vec::with_capacity(count);
    for (at, mut builder) in rows.into_iter().enumerate() {
        builder.put(PARTS, ValueRef::String(&generation));
        let part = with_encrypted(schema, row, builder.finish()?, at + 1);
        operations.push(match (operation.verb(), guards.get(at)) {
            (Verb::Insert, _) => Operation::insert(part),
            (Verb::InsertOrReplace, _) => Operation::insert_or_replace(part),
            (Verb::InsertOrMerge, _) => Operation::insert_or_merge(part),
            // The entity exists if part 1 does. A missing part is written anew.
            (Verb::Replace, _) if is_blind && at > 0 => Operation::insert_or_replace(part),
            // The stored entity has fewer parts. The guards of these keep this one as it is too.
            (Verb::Replace, None) => Operation::insert_or_replace(part),
            (Verb::Replace, Some(PartGuard::Missing)) => Operation::insert(part),
            (Verb::Replace, Some(guard)) => Operation::replace(part, guard.condition()),
            (Verb::Merge | Verb::Delete, guard) => {
                let condition = guard.map_or(Condition::Any, PartGuard::condition);
                Operation::merge(part, condition)
            }
        });
    }
    for (at, guard) in guards.iter().enumerate().skip(count) {
        if !matches!(guard, PartGuard::Missing) {
            let key = part_key(row_key, at + 1)?;
            operations.push(Operation::delete(partition_key, &key, guard.condition())?);
        }
    }
    Ok(operations)
}

/// Returns the deletions of an entity's parts. `found` is as in [`split`].
fn deletions(
    (partition_key, row_key): (&str, &str),
    guards: &[PartGuard],
    found: &HashMap<String, Option<ETag>>,
) -> Result<Vec<Operation>> {
    let mut operations = Vec::with_capacity(guards.len());
    for (at, guard) in guards.iter().enumerate() {
        let key = part_key(row_key, at + 1)?;
        let condition = match (guard, found.get(&key)) {
            (PartGuard::Missing, _) | (PartGuard::Any, Some(None)) => continue,
            (PartGuard::Any, Some(Some(etag))) => Condition::Match(etag.clone()),
            (guard, _) => guard.condition(),
        };
        operations.push(Operation::delete(partition_key, &key, condition)?);
    }
    Ok(operations)
}

/// Returns whether an operation deletes an entity's parts whatever their ETags, so that a part that is
/// missing does not matter.
pub(crate) fn may_miss_parts(schema: Option<&'static Schema>, operation: &Operation) -> bool {
    schema.is_some_and(Schema::is_wide)
        && matches!(operation.condition(), Some(Condition::Any))
        && operation.verb() == Verb::Delete
}

/// The properties of a joined row, part by part.
struct Split {
    rows: Vec<RowBuilder>,
    /// The parts that have a property of the joined row.
    filled: BTreeSet<usize>,
}

impl Split {
    fn of(schema: &'static Schema, row: &Row) -> Result<Self> {
        let (partition_key, row_key) = row.keys();
        let keys = (1..=schema.parts.len()).map(|part| part_key(row_key, part));
        let rows = keys.map(|key| key.map(|key| Row::build(partition_key, &key)));
        let mut split = Self { rows: rows.collect::<Result<_>>()?, filled: BTreeSet::new() };
        let unknown = match row.get(PARTS)? {
            Some(ValueRef::String(text)) => text,
            _ => "",
        };
        let discriminator = discriminator_of(schema);
        let mut finder = PartFinder::new(schema);
        let mut properties = row.properties();
        while let Some((name, value)) = properties.next()? {
            match text_of(name)? {
                PARTS => {}
                name if name == discriminator => {
                    for (part, marker) in split.rows.iter_mut().zip(schema.parts) {
                        part.put(name, ValueRef::String(marker));
                    }
                }
                name => {
                    // An older version may have had more parts.
                    let stays = || unknown_in(unknown, name).min(schema.parts.len());
                    let part = finder.part_of(name).unwrap_or_else(stays);
                    if let Some(builder) = split.rows.get_mut(part - 1) {
                        builder.put(name, value);
                        split.filled.insert(part);
                    }
                }
            }
        }
        Ok(split)
    }
}

/// Returns the part of a property that the type does not declare. `text` is the value of `PARTS` in
/// the joined row; a property that it does not name is in part 1.
fn unknown_in(text: &str, name: &str) -> usize {
    let found = text.split(' ').find_map(|each| each.strip_prefix(name)?.strip_prefix(':'));
    found.and_then(|part| part.parse().ok()).filter(|part| *part > 0).unwrap_or(1)
}

/// Marks those properties of a part as stored encrypted that are marked so in the joined row.
fn with_encrypted(schema: &'static Schema, joined: &Row, row: Row, part: usize) -> Row {
    let mut finder = PartFinder::new(schema);
    let mut names: Vec<Box<str>> = Vec::new();
    for name in joined.encrypted_names() {
        let is_here = match finder.part_of(name) {
            Some(declared) => declared == part,
            None => matches!(row.get(name), Ok(Some(_))),
        };
        if is_here {
            names.push(name.clone());
        }
    }
    row.with_encrypted_names(names)
}

/// Stands for the ETag of a missing part in the joined ETag of a torn entity.
const MISSING: &str = "-";

/// The condition of a write on one part.
#[derive(Debug, Clone)]
enum PartGuard {
    /// The part exists.
    Any,
    /// The part has this ETag.
    Match(ETag),
    /// The part does not exist.
    Missing,
}

impl PartGuard {
    fn condition(&self) -> Condition {
        match self {
            Self::Match(etag) => Condition::Match(etag.clone()),
            Self::Any | Self::Missing => Condition::Any,
        }
    }
}

/// Splits the ETag of a joined row into what it says of each part. An entity of an older version may
/// have another number of them.
// The service's ETags hold no spaces.
fn guards_of(schema: &'static Schema, etag: &ETag) -> Result<Vec<PartGuard>> {
    let text = etag.to_string();
    let guards = text.split(' ').map(|etag| match etag {
        MISSING => PartGuard::Missing,
        etag => PartGuard::Match(ETag::from(etag)),
    });
    let guards: Vec<PartGuard> = guards.collect();
    if schema.versions().any(|version| version.parts.len() == guards.len()) {
        return Ok(guards);
    }
    Err(other_count(schema, guards.len()))
}

fn other_count(schema: &Schema, found: usize) -> Error {
    let message = format!(
        "the ETag is of {found} of the entity's {} rows: read the whole entity before it is written",
        schema.parts.len()
    );
    Error::new(ErrorKind::Invalid, message)
}

fn joined_etag(etags: impl Iterator<Item = Option<ETag>>) -> Option<ETag> {
    let texts: Option<Vec<String>> = etags.map(|etag| etag.map(|etag| etag.to_string())).collect();
    texts.map(|texts| ETag::from(texts.join(" ").as_str()))
}

/// Returns the answer for an entity of the answers for its rows. It has no ETag if not all parts were
/// written.
pub(crate) fn join_answers(
    schema: Option<&'static Schema>,
    answers: &[&Written],
) -> Option<Written> {
    let last = (*answers.last()?).clone();
    let Some(schema) = schema.filter(|schema| schema.is_wide()) else { return Some(last) };
    let is_whole = answers.len() == schema.parts.len();
    let etag = joined_etag(answers.iter().map(|answer| answer.etag.clone()));
    Some(Written {
        status: answers.first()?.status,
        etag: etag.filter(|_| is_whole),
        timestamp: answers.iter().filter_map(|answer| answer.timestamp).max(),
    })
}

/// The rows of an entity, put together.
#[derive(Debug)]
pub(crate) enum Joined {
    /// None of the rows exists.
    Absent,
    /// The joined row: one write wrote all parts that were read.
    Whole(Row),
    /// The row under the key of a part is of another type.
    Foreign(Row),
    /// That part is missing, or was not written together with the others.
    Torn(usize),
}

/// Joins the parts of the entity with these keys, in the order of their numbers, as the version lays
/// them out that wrote the first of them. Where not all of them were read, the ETag is that of the
/// parts which were.
///
/// # Errors
///
/// `is_corrupt` for a damaged row.
pub(crate) fn join(
    schema: &'static Schema,
    (partition_key, row_key): (&str, &str),
    parts: &[(usize, Option<Row>)],
) -> Result<Joined> {
    let discriminator = discriminator_of(schema);
    let mut rows: Vec<(usize, &Row)> = Vec::with_capacity(parts.len());
    let mut writer = None;
    for (part, row) in parts {
        let Some(row) = row else { continue };
        // No part of the entity has a higher number than the writer knows.
        if writer.is_some_and(|writer: &'static Schema| *part > writer.parts.len()) {
            continue;
        }
        let version = version_of(schema, *part, row.get(discriminator)?);
        let Some(version) = version else { return Ok(Joined::Foreign(row.clone())) };
        let written_by: &'static Schema = writer.get_or_insert(version);
        if !std::ptr::eq(version, written_by) {
            return Ok(Joined::Torn(*part));
        }
        rows.push((*part, row));
    }
    let (Some(writer), Some((_, first))) = (writer, rows.first()) else {
        return Ok(Joined::Absent);
    };
    let is_found = |part: usize| rows.iter().any(|(found, _)| *found == part);
    // The caller chose the parts by the layout of this version.
    let asked: Vec<usize> = match std::ptr::eq(writer, schema) {
        true => parts.iter().map(|(part, _)| *part).collect(),
        false => (1..=writer.parts.len()).collect(),
    };
    let mut asked = asked.into_iter().filter(|part| *part <= writer.parts.len());
    if let Some(part) = asked.find(|part| !is_found(*part)) {
        return Ok(Joined::Torn(part));
    }
    if let Some(part) = other_generation(writer, first, &rows)? {
        return Ok(Joined::Torn(part));
    }
    build(writer, (partition_key, row_key), &rows).map(Joined::Whole)
}

/// The value of `PARTS` in the joined row of a torn entity.
const TORN: &str = "torn";

/// Joins the parts that are left of a torn entity, whichever write they are of. The ETag says which
/// parts are missing. Returns `None` if none is left.
///
/// # Errors
///
/// `is_corrupt` for a damaged row.
pub(crate) fn join_torn(
    schema: &'static Schema,
    (partition_key, row_key): (&str, &str),
    parts: &[(usize, Option<Row>)],
) -> Result<Option<Row>> {
    let discriminator = discriminator_of(schema);
    let mut rows: Vec<(usize, &Row)> = Vec::with_capacity(parts.len());
    let mut writer = None;
    for (part, row) in parts {
        let Some(row) = row else { continue };
        if let Some(version) = version_of(schema, *part, row.get(discriminator)?) {
            writer.get_or_insert(version);
            rows.push((*part, row));
        }
    }
    let Some(writer) = writer else { return Ok(None) };
    let joined = build(writer, (partition_key, row_key), &rows)?;
    let mut torn = Row::build(partition_key, row_key);
    let mut properties = joined.properties();
    while let Some((name, value)) = properties.next()? {
        let name = text_of(name)?;
        if name != PARTS {
            torn.put(name, value);
        }
    }
    torn.put(PARTS, ValueRef::String(TORN));
    let last = rows.last().map_or(0, |(part, _)| *part);
    // As many as a version has.
    let counts = schema.versions().map(|version| version.parts.len());
    let count = counts.filter(|count| *count >= last).min().unwrap_or(last);
    let etags = (1..=count).map(|part| {
        let found = rows.iter().find(|(found, _)| *found == part);
        let etag = found.and_then(|(_, row)| row.etag());
        etag.map_or_else(|| MISSING.to_owned(), |etag| etag.to_string())
    });
    let etag = etags.collect::<Vec<_>>().join(" ");
    let torn = torn.finish()?.with_encrypted_names_of(&joined);
    Ok(Some(torn.with_etag(ETag::from(etag.as_str()))))
}

/// Returns whether a joined row is what is left of a torn entity.
pub(crate) fn is_torn(joined: &Row) -> bool {
    matches!(joined.get(PARTS), Ok(Some(ValueRef::String(TORN))))
}

/// Returns the first part whose `PARTS` differs from that of the first row, or the first row's part
/// if its `PARTS` names another number of parts than the type has. Returns `None` for a single row.
fn other_generation(schema: &Schema, first: &Row, rows: &[(usize, &Row)]) -> Result<Option<usize>> {
    if rows.len() < 2 {
        return Ok(None);
    }
    let count = format!("{}_", schema.parts.len());
    let expected = match first.get(PARTS)? {
        Some(ValueRef::String(text)) if text.starts_with(&count) => Some(ValueRef::String(text)),
        _ => None,
    };
    for (part, row) in rows {
        if expected.is_none() || row.get(PARTS)? != expected {
            return Ok(Some(*part));
        }
    }
    Ok(None)
}

/// Builds the joined row of an entity's rows.
fn build(
    schema: &'static Schema,
    (partition_key, row_key): (&str, &str),
    rows: &[(usize, &Row)],
) -> Result<Row> {
    let discriminator = discriminator_of(schema);
    let mut joined = Row::build(partition_key, row_key);
    joined.put(discriminator, ValueRef::String(schema.marker));
    let mut finder = PartFinder::new(schema);
    let mut strays: Vec<(&str, ValueRef<'_>)> = Vec::new();
    let mut unknown: Vec<(&str, usize)> = Vec::new();
    for (part, row) in rows {
        let mut properties = row.properties();
        while let Some((name, value)) = properties.next()? {
            let name = text_of(name)?;
            if name == discriminator || name == PARTS || name == OPERATION_ID {
                continue;
            }
            match finder.part_of(name) {
                Some(declared) if declared == *part => joined.put(name, value),
                Some(_) => strays.push((name, value)),
                None if unknown.iter().any(|(known, _)| *known == name) => {}
                None => {
                    unknown.push((name, *part));
                    joined.put(name, value);
                }
            }
        }
    }
    // A program with another layout has stored a declared property in another part. The value in
    // the part that declares the property wins if both exist.
    for (at, (name, value)) in strays.iter().enumerate() {
        let own = finder.part_of(name);
        let own = rows.iter().find(|(part, _)| Some(*part) == own);
        let is_stored = own.map(|(_, row)| row.get(name)).transpose()?.flatten().is_some();
        let is_given = strays.iter().take(at).any(|(before, _)| before == name);
        if own.is_some() && !is_stored && !is_given {
            joined.put(name, *value);
        }
    }
    let unknown: Vec<String> = unknown
        .iter()
        .filter(|(_, part)| *part > 1)
        .map(|(name, part)| format!("{name}:{part}"))
        .collect();
    if !unknown.is_empty() {
        joined.put(PARTS, ValueRef::String(&unknown.join(" ")));
    }
    let newest: Option<Ticks> = rows.iter().filter_map(|(_, row)| row.timestamp()).max();
    let row = match newest {
        Some(newest) => joined.finish_at(newest)?,
        None => joined.finish()?,
    };
    let row = match joined_etag(rows.iter().map(|(_, row)| row.etag())) {
        Some(etag) => row.with_etag(etag),
        None => row,
    };
    let mut encrypted: Vec<Box<str>> = Vec::new();
    for name in rows.iter().flat_map(|(_, row)| row.encrypted_names()) {
        if **name != *PARTS && !encrypted.contains(name) {
            encrypted.push(name.clone());
        }
    }
    Ok(row.with_encrypted_names(encrypted))
}

/// Returns the error for an entity whose rows do not belong together in a snapshot.
pub(crate) fn torn_error(
    schema: &'static Schema,
    (partition_key, row_key): (&str, &str),
    part: usize,
) -> Error {
    let remedy = match schema.is_single_row() {
        true => "`insert_or_replace` or `delete_at` ends that",
        false => "`delete_at` ends that, and `check().repair()` removes the copies that are left",
    };
    let message = format!(
        "part {part} of `{}` is missing or was not written with the other parts: another program deleted or replaced a row of the entity; {remedy}",
        schema.entity
    );
    Error::new(ErrorKind::Corrupt, message).at_keys(partition_key, row_key)
}

/// Returns the parts that store the properties of these names. A property that the type does not
/// declare counts for part 1; keys, the discriminator and `PARTS`, which every part has, for none.
pub(crate) fn parts_with(
    schema: &'static Schema,
    names: impl IntoIterator<Item = impl AsRef<str>>,
) -> BTreeSet<usize> {
    let mut finder = PartFinder::new(schema);
    let parts = names.into_iter().filter_map(|name| match name.as_ref() {
        "PartitionKey" | "RowKey" => None,
        name if name == discriminator_of(schema) || name == PARTS => None,
        name => match finder.column_of(name) {
            Some(column) => column.stored.then(|| column.part()),
            None => Some(1),
        },
    });
    parts.collect()
}

/// Returns the parts that a point read for these properties reads, `None` for all.
pub(crate) fn parts_of_point(
    schema: &'static Schema,
    select: Option<&[String]>,
) -> BTreeSet<usize> {
    let names = match select {
        // A property of an older version may be in another part.
        Some(names) if schema.older.is_none() => names,
        _ => return (1..=schema.parts.len()).collect(),
    };
    let mut parts = stored_parts(schema, names);
    if parts.is_empty() {
        parts.insert(1);
    }
    parts
}

/// Returns the parts that store what a read asks for. The Timestamp is asked for with every row.
fn stored_parts(schema: &'static Schema, names: &[String]) -> BTreeSet<usize> {
    parts_with(schema, names.iter().filter(|name| *name != TIMESTAMP))
}

/// Returns the names with `PARTS` added, so that an answer to a `$select` shows whether one write
/// wrote all parts.
pub(crate) fn with_generation(names: &[String]) -> Vec<String> {
    names.iter().cloned().chain([PARTS.to_owned()]).collect()
}

/// The rows that a query of a wide entity reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartsRead {
    /// All parts of each entity, which come joined.
    All,
    /// This part of each entity alone.
    One(usize),
}

/// Returns whether a query reads all parts of each entity or only one. `select` names the
/// properties that it returns, `None` for all; `conditions` names those that its filter compares.
///
/// # Errors
///
/// `is_invalid`, naming property and part, if the filter compares a property and the query reads
/// more parts than the one that stores it, or if an older version may store it elsewhere.
pub(crate) fn parts_read(
    schema: &'static Schema,
    select: Option<&[String]>,
    conditions: &[String],
) -> Result<PartsRead> {
    let mut parts = match select {
        Some(names) => stored_parts(schema, names),
        None => (1..=schema.parts.len()).collect(),
    };
    let mut each = conditions.iter().map(|name| (name, parts_with(schema, [name])));
    let compared = each.find_map(|(name, parts)| parts.first().map(|part| (name, *part)));
    if let (Some((name, _)), Some(older)) = (compared, schema.older) {
        let message = format!(
            "a filter on `{name}` of `{}`, which is wide and has an older version `{}`, whose rows may have it in another part: compare keys, or drop `upgrade_from` after `upgrade_all()`",
            schema.entity, older.entity
        );
        return Err(Error::new(ErrorKind::Invalid, message).in_property(name));
    }
    if may_have_other_parts(schema) {
        return Ok(PartsRead::All);
    }
    if let Some((name, part)) = compared {
        parts.extend(parts_with(schema, conditions));
        if parts.len() > 1 {
            let message = format!(
                "a filter on `{name}`, which is in part {part} of `{}`, finds rows of that part alone: ask for a projection with `.select::<P>()` that has fields of part {part} only",
                schema.entity
            );
            return Err(Error::new(ErrorKind::Invalid, message).in_property(name));
        }
    }
    Ok(match parts.len() {
        0 => PartsRead::One(1),
        1 => PartsRead::One(parts.first().copied().unwrap_or(1)),
        _ => PartsRead::All,
    })
}

/// Returns the type markers of the parts that a query reads, in each version.
pub(crate) fn markers_of(schema: &'static Schema, read: PartsRead) -> Vec<&'static str> {
    let of_version = |version: &'static Schema| match read {
        PartsRead::All => version.parts,
        PartsRead::One(part) => version.parts.get(part - 1..part).unwrap_or_default(),
    };
    schema.versions().flat_map(of_version).copied().collect()
}

/// Adjusts RowKey bounds that are keys of part 1, so that all parts of an entity are selected or
/// none.
pub(crate) fn with_all_parts(schema: &'static Schema, keys: &Keys) -> Keys {
    let last = |key: &String| part_key(key, most_parts(schema)).unwrap_or_else(|_| key.clone());
    let lower = match &keys.lower {
        Bound::Excluded(key) => Bound::Excluded(last(key)),
        other => other.clone(),
    };
    let upper = match &keys.upper {
        Bound::Included(key) => Bound::Included(last(key)),
        other => other.clone(),
    };
    Keys { lower, upper, ..keys.clone() }
}

/// Rewrites the filter's comparisons with RowKeys of part 1, so that all parts of an entity meet
/// each comparison or none does.
pub(crate) fn condition_on_all_parts(schema: &'static Schema, filter: &Filter) -> Filter {
    let each = |one: &Filter| condition_on_all_parts(schema, one);
    let Filter::Compare { property, comparison, value } = filter else {
        return match filter {
            Filter::And(all) => Filter::all(all.iter().map(each)),
            Filter::Or(any) => Filter::any(any.iter().map(each)),
            Filter::Not(filter) => !each(filter),
            other => other.clone(),
        };
    };
    let (ValueRef::String(first), "RowKey") = (value.as_ref(), property.as_str()) else {
        return filter.clone();
    };
    let last = part_key(first, most_parts(schema)).unwrap_or_else(|_| first.to_owned());
    let is_it = || Filter::ge("RowKey", first) & Filter::le("RowKey", last.as_str());
    match comparison {
        Comparison::Eq => is_it(),
        Comparison::Ne => !is_it(),
        Comparison::Gt | Comparison::Le => Filter::compare("RowKey", *comparison, last),
        Comparison::Ge | Comparison::Lt => Filter::compare("RowKey", *comparison, first),
    }
}

/// Returns a row of one part as a row of the entity: with the keys of part 1 and the entity's type.
///
/// # Errors
///
/// `is_corrupt` for a damaged row.
pub(crate) fn entity_of_part(schema: &'static Schema, row: Row, part: usize) -> Result<Row> {
    let keys = entity_key(row.row_key()).filter(|(_, found)| *found == part);
    let Some((row_key, _)) = keys else { return Ok(row) };
    let partition_key = row.partition_key().to_owned();
    // A row that is only counted has no type.
    if row.get(discriminator_of(schema))?.is_none() {
        return Ok(row);
    }
    let joined = join(schema, (&partition_key, &row_key), &[(part, Some(row))])?;
    match joined {
        Joined::Whole(row) | Joined::Foreign(row) => Ok(row),
        Joined::Absent | Joined::Torn(_) => {
            Err(torn_error(schema, (&partition_key, &row_key), part))
        }
    }
}

/// An item of a page of rows.
#[derive(Debug)]
pub(crate) enum PageItem {
    /// A whole entity, a row of another type, or an error.
    Ready(Result<Row>),
    /// The entity with these keys has rows outside of the page, or is torn. `begins_here`: its part 1 is
    /// in the page, so that no other page has the entity.
    Incomplete { partition_key: String, row_key: String, begins_here: bool },
}

/// The rows of one entity in a page.
struct Group {
    partition_key: String,
    row_key: String,
    parts: Vec<(usize, Option<Row>)>,
    error: Option<Error>,
}

/// Joins the rows of a page that are parts of one entity. Each entity stands where its first row
/// does.
pub(crate) fn join_page(schema: &'static Schema, rows: Vec<Result<Row>>) -> Vec<PageItem> {
    let mut places: Vec<std::result::Result<usize, Result<Row>>> = Vec::with_capacity(rows.len());
    let mut groups: Vec<Group> = Vec::new();
    let mut by_keys = HashMap::new();
    for row in rows {
        let Some((partition_key, row_key, part)) = keys_of_part(schema, &row) else {
            places.push(Err(row));
            continue;
        };
        let at = *by_keys.entry((partition_key.clone(), row_key.clone())).or_insert_with(|| {
            places.push(Ok(groups.len()));
            let parts = (1..=most_parts(schema)).map(|part| (part, None)).collect();
            groups.push(Group { partition_key, row_key, parts, error: None });
            groups.len() - 1
        });
        let Some(group) = groups.get_mut(at) else { continue };
        match row {
            Ok(row) => {
                if let Some((_, slot)) = group.parts.get_mut(part - 1) {
                    *slot = Some(row);
                }
            }
            Err(error) => {
                group.error.get_or_insert(error);
            }
        }
    }
    let mut groups: Vec<Option<Group>> = groups.into_iter().map(Some).collect();
    let items = places.into_iter().filter_map(|place| match place {
        Err(row) => Some(PageItem::Ready(row)),
        Ok(at) => groups.get_mut(at).and_then(Option::take).map(|group| group.into_item(schema)),
    });
    items.collect()
}

impl Group {
    fn into_item(self, schema: &'static Schema) -> PageItem {
        let Self { partition_key, row_key, parts, error } = self;
        if let Some(error) = error {
            return PageItem::Ready(Err(error));
        }
        match join(schema, (&partition_key, &row_key), &parts) {
            Ok(Joined::Whole(row) | Joined::Foreign(row)) => PageItem::Ready(Ok(row)),
            Err(error) => PageItem::Ready(Err(error.at_keys(&partition_key, &row_key))),
            Ok(Joined::Absent | Joined::Torn(_)) => {
                let begins_here = parts.first().is_some_and(|(_, row)| row.is_some());
                PageItem::Incomplete { partition_key, row_key, begins_here }
            }
        }
    }
}

/// Returns the keys of the entity that a row belongs to, and the number of the row's part. For an
/// error it uses the keys that the error names. Returns `None` for a row of another type.
fn keys_of_part(schema: &'static Schema, row: &Result<Row>) -> Option<(String, String, usize)> {
    let (partition_key, row_key) = match row {
        Ok(row) => row.keys(),
        Err(error) => error.keys()?,
    };
    let (first, part) = entity_key(row_key)?;
    if part > most_parts(schema) {
        return None;
    }
    if let Ok(row) = row {
        version_of(schema, part, row.get(discriminator_of(schema)).ok()?)?;
    }
    Some((partition_key.to_owned(), first, part))
}
