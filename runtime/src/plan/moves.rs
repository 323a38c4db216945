//! Plans the steps of a move to another partition or table. A step marks the source as moving, inserts the target,
//! deletes the source, or aborts the move.

use serde::{Deserialize, Serialize};

use super::{effect::Effect, move_mark::refuse_moving, tokens::TokenMaker};
use crate::{
    address::{RowAddress, TableCase},
    batch::{Condition, Operation},
    edm::{Ticks, Value, ValueRef},
    entity::{
        EntityRows, MOVED_BY, MOVING, Message, Recognition, RowSource, Schema, Stored, TableEntity,
        dated::DatedTables, lossy_write_error, read_any_version,
    },
    error::{Error, ErrorKind, Result},
    row::Row,
};

/// The message with which a worker finishes a move. It is stored in the source's partition.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MoveMessage {
    pub(crate) entity_type: String,
    /// The RowKey of the source.
    pub(crate) row_key: String,
    pub(crate) to_table: String,
    pub(crate) to_partition: String,
    pub(crate) to_row: String,
    /// The entity's new time in another dated table, in ticks. `None` if the keys contain the time, if the period
    /// stays the same, and for an entity without dated tables or with a seal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) to_time: Option<i64>,
}

impl Message for MoveMessage {
    const NAME: &'static str = "entable.move";
    const VERSION: u32 = 1;
}

/// The move that inserted a row, and the row's source.
#[derive(Debug, Clone)]
pub(crate) struct MoveOrigin {
    pub(crate) id: String,
    pub(crate) from: RowAddress,
}

impl MoveOrigin {
    /// Reads which move inserted a row. Returns `None` if no move did.
    pub(crate) fn from_target_row(row: &Row) -> Result<Option<Self>> {
        let Some(ValueRef::String(text)) = row.get(MOVED_BY)? else { return Ok(None) };
        let parsed: Option<[String; 5]> = serde_json::from_str(text).ok();
        Ok(parsed.map(|[id, table, partition_key, row_key, _]| Self {
            id,
            from: RowAddress { table, partition_key, row_key },
        }))
    }

    /// Writes the move's id, the address of the source, and the source's ETag as JSON.
    fn to_json(&self, source: &Row) -> String {
        // A source that was read has an ETag.
        let version = source.etag().map(|etag| etag.to_string()).unwrap_or_default();
        let [table, partition_key, row_key] = self.from.as_row_at().table_and_key_texts();
        serde_json::Value::from(vec![&*self.id, table, partition_key, row_key, &version])
            .to_string()
    }

    /// Returns whether both are the same move from the same source, compared as exact strings.
    fn is_same_move(&self, other: &Self) -> bool {
        self.id == other.id
            && self.from.as_row_at().table_and_key_texts()
                == other.from.as_row_at().table_and_key_texts()
    }
}

/// Returns the row with another time in the property that determines its table.
fn row_with_time(row: &Row, dated: &DatedTables, time: Ticks) -> Result<Row> {
    row.with_values(&[(dated.property, Value::DateTime(time))])
}

/// Returns the new time of an entity that moves to another dated table, if the keys do not contain the time. A seal
/// covers the time, but not the message that carries it.
fn time_in_new_table(schema: &Schema, row: &Row, wanted: &Row) -> Result<Option<Ticks>> {
    let Some(dated) = schema.dated.as_ref().filter(|_| !schema.sealed) else { return Ok(None) };
    match (row.get(dated.property)?, wanted.get(dated.property)?) {
        (Some(ValueRef::DateTime(from)), Some(ValueRef::DateTime(to)))
            if dated.period_at(from) != dated.period_at(to) =>
        {
            Ok(Some(to))
        }
        _ => Ok(None),
    }
}

/// Returns the row with these keys, without the property that marks the source of a move. If `own` is given, sets
/// the property with this name to this value, which marks the source or the target.
fn with_move_mark(
    row: &Row,
    partition_key: &str,
    row_key: &str,
    own: Option<(&str, &str)>,
) -> Result<Row> {
    let mut built = Row::build(partition_key, row_key);
    let mut properties = row.properties();
    while let Some((name, value)) = properties.next()? {
        // Keep `MOVED_BY` on a row that moves again, because its earlier move may not have finished.
        let is_arriving = own.is_some_and(|(own, _)| own == MOVED_BY);
        if name != MOVING.as_bytes() && !(is_arriving && name == MOVED_BY.as_bytes()) {
            built.put(&String::from_utf8_lossy(name), value);
        }
    }
    if let Some((name, id)) = own {
        built.put(name, ValueRef::String(id));
    }
    Ok(built.finish()?.inherit_encrypted_names_of(row))
}

fn etag_condition(row: &Row) -> Condition {
    Condition::for_etag(row.etag())
}

/// Returns the effect of one operation on a primary.
fn primary_only(schema: &'static Schema, operation: Operation) -> Effect {
    Effect::on_primary(Some(schema), operation, None)
}

/// Plans the first step of a move: marks the source as moving, which keeps typed writers away.
///
/// # Errors
///
/// Fails with `is_invalid` if the entity cannot be moved, or if the caller changed fields other than key fields and
/// the time that determines a dated table. Fails with `is_refused_by_move` if the entity is already moving, with
/// `is_lossy` if it has an undeclared encrypted value that this program cannot decrypt, and with
/// `is_precondition_failed` if its ETag is unknown.
pub(crate) fn mark_moving<E: TableEntity>(
    stored: &Stored<E>,
    to_table: &str,
    id: &str,
) -> Result<(Effect, MoveMessage)> {
    let row = stored.row();
    let place = |error: Error| error.at_keys(row.partition_key(), row.row_key());
    let refused = |message: &str| Err(place(Error::new(ErrorKind::Invalid, message)));
    // A copy does not contain its primary's ETag, under which the source is marked.
    if !matches!(stored.source(), RowSource::Primary) {
        return refused(
            "an entity is moved as it was read through its own keys, not through an index, and not under an ETag alone",
        );
    }
    if E::SCHEMA.has_key_tokens() {
        return refused(
            "an entity with `{..:hmac}` in its keys is not moved; insert it where it belongs, then delete it here",
        );
    }
    refuse_moving(row)?;
    if let Some(property) = E::SCHEMA.unknown_of(row)?.first_undecrypted_name() {
        return Err(place(lossy_write_error(property)));
    }
    let wanted = (**stored).to_row().map_err(place)?;
    let to_time = time_in_new_table(E::SCHEMA, row, &wanted)?;
    let mut arrived = with_move_mark(row, wanted.partition_key(), wanted.row_key(), None)?;
    if let (Some(dated), Some(time)) = (&E::SCHEMA.dated, to_time) {
        arrived = row_with_time(&arrived, dated, time)?;
    }
    // Undeclared properties, such as `MOVED_BY`, are carried along.
    let entity = E::SCHEMA.primary().and_then(|family| read_any_version::<E>(&arrived, family));
    let carried = entity.and_then(|entity| entity.to_row()).map_err(place)?;
    if !carried.has_same_content(&wanted) {
        return refused(
            "a move changes nothing but the fields that the keys hold and the time that names a dated table; write other changes with `replace` first",
        );
    }
    let message = MoveMessage {
        entity_type: E::SCHEMA.entity_type.to_owned(),
        row_key: row.row_key().to_owned(),
        to_table: to_table.to_owned(),
        to_partition: wanted.partition_key().to_owned(),
        to_row: wanted.row_key().to_owned(),
        to_time: to_time.map(Ticks::get),
    };
    let marked = with_move_mark(row, row.partition_key(), row.row_key(), Some((MOVING, id)))?;
    let mark = Operation::replace(marked, Condition::unchanged(row)?);
    Ok((primary_only(E::SCHEMA, mark), message))
}

/// Returns the row of the source as stored at the target.
fn target_row(
    schema: &Schema,
    source: &Row,
    message: &MoveMessage,
    arrival: &MoveOrigin,
) -> Result<Row> {
    let own = arrival.to_json(source);
    let row =
        with_move_mark(source, &message.to_partition, &message.to_row, Some((MOVED_BY, &own)))?;
    let Some(time) = message.to_time.and_then(Ticks::new) else { return Ok(row) };
    // The message is not covered by a seal, and its time belongs to the table in it.
    let dated = schema.dated.as_ref().filter(|_| !schema.sealed).filter(|dated| {
        let period = dated.period_of(&message.to_table, TableCase::Insensitive);
        period == Some(dated.period_at(time))
    });
    match dated {
        Some(dated) => row_with_time(&row, dated, time),
        None => {
            let refusal = "the time of the move is not one of the table that the entity moves to";
            Err(Error::new(ErrorKind::Invalid, refusal).in_table(&message.to_table))
        }
    }
}

// `mark_moving` refuses keys with blind tokens, so no step of a move makes any.
fn derive_moving_rows(schema: &'static Schema, row: &Row) -> Result<Option<EntityRows>> {
    schema.derive_rows(row, &TokenMaker::without_keys())?.into_known_rows(schema)
}

/// Returns the rows that a primary derives.
///
/// # Errors
///
/// Fails with `is_unrecognized_entity` if the row is not a primary of this type in a known version.
fn rows_of_primary(schema: &'static Schema, row: &Row) -> Result<EntityRows> {
    derive_moving_rows(schema, row)?
        .ok_or_else(|| schema.unrecognized_error(&Recognition::Unmarked))
}

/// Plans the step that inserts the entity at the target.
pub(crate) fn insert_target(
    schema: &'static Schema,
    source: &Row,
    message: &MoveMessage,
    arrival: &MoveOrigin,
) -> Result<Effect> {
    let row = target_row(schema, source, message, arrival)?;
    let new = Some(rows_of_primary(schema, &row)?);
    Ok(Effect { new, ..primary_only(schema, Operation::insert(row)) })
}

/// Plans the step that writes a changed source to its target again, after the target was inserted. Keeps properties
/// that only the target has. Returns `None` if the source has not changed, or if another move inserted the target.
pub(crate) fn update_inserted_target(
    schema: &'static Schema,
    source: &Row,
    target: &Row,
    message: &MoveMessage,
    arrival: &MoveOrigin,
) -> Result<Option<Effect>> {
    // Do not overwrite a row of another move, or one that was rewritten since.
    let is_other =
        !MoveOrigin::from_target_row(target)?.is_some_and(|found| found.is_same_move(arrival));
    if is_other || target.get(MOVED_BY)? == Some(ValueRef::String(&arrival.to_json(source))) {
        return Ok(None);
    }
    // Keep properties that were added at the target after the arrival.
    let mut bag = target.to_bag()?;
    for (name, value) in target_row(schema, source, message, arrival)?.to_bag()?.iter() {
        bag.set(name, value.clone());
    }
    let mut row = Row::build(target.partition_key(), target.row_key());
    for (name, value) in bag.iter() {
        row.put(name, value.as_ref());
    }
    let row = row.finish()?.inherit_encrypted_names_of(source);
    let (old, new) = (derive_moving_rows(schema, target)?, Some(rows_of_primary(schema, &row)?));
    let replace = Operation::replace(row, etag_condition(target));
    Ok(Some(Effect { old, new, ..primary_only(schema, replace) }))
}

/// Plans the last step of a move: deletes the source under the copied version's ETag.
pub(crate) fn delete_source(schema: &'static Schema, source: &Row) -> Result<Effect> {
    // Under the copied version's ETag: a later change would otherwise be lost.
    let delete =
        Operation::delete(source.partition_key(), source.row_key(), etag_condition(source))?;
    Ok(Effect { old: derive_moving_rows(schema, source)?, ..primary_only(schema, delete) })
}

/// Plans the end of a move that the target refuses: removes the mark, which allows the source to be written again.
pub(crate) fn plan_mark_removal(schema: &'static Schema, source: &Row) -> Result<Effect> {
    Ok(primary_only(schema, remove_mark(source)?))
}

/// Returns the operation that removes the mark of a move from the source.
pub(crate) fn remove_mark(source: &Row) -> Result<Operation> {
    let row = with_move_mark(source, source.partition_key(), source.row_key(), None)?;
    Ok(Operation::replace(row, etag_condition(source)))
}
