//! Moves to another partition or table: what each step makes of the rows.

use serde::{Deserialize, Serialize};

use super::{change::Effect, outbox::Place};
use crate::{
    batch::{Condition, Operation},
    edm::ValueRef,
    entity::{EntityRows, Message, Recognition, Schema, Stored, TableEntity, read_any_version},
    error::{Error, ErrorKind, Result},
    row::Row,
};

/// The property of a row that is on its way: the id of the move.
const MOVING: &str = "EntableMoving";
/// The property of a row that arrived: an [`Arrival`], and the version that was carried over.
const MOVED_BY: &str = "EntableMovedBy";

/// Where an entity goes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MoveMessage {
    pub(crate) entity_type: String,
    /// The RowKey that it leaves; the message is in its partition.
    pub(crate) row_key: String,
    pub(crate) to_table: String,
    pub(crate) to_partition: String,
    pub(crate) to_row: String,
}

impl Message for MoveMessage {
    const NAME: &'static str = "entable.move";
    const VERSION: u32 = 1;
}

/// The id of the move that a row is on, if any.
pub(crate) fn move_of(row: &Row) -> Result<Option<&str>> {
    Ok(match row.get(MOVING)? {
        Some(ValueRef::String(id)) => Some(id),
        _ => None,
    })
}

/// Refuses a row that is on its way.
pub(crate) fn stays(current: &Row) -> Result<()> {
    match move_of(current)? {
        None => Ok(()),
        Some(_) => Err(on_its_way(current)),
    }
}

/// The error for a row that takes part in a move.
pub(crate) fn on_its_way(row: &Row) -> Error {
    Error::moving(row.partition_key(), row.row_key())
}

/// The move that a row arrived by, and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) id: String,
    pub(crate) from: Place,
}

impl Arrival {
    /// The move that a row arrived by, if any.
    pub(crate) fn of(row: &Row) -> Result<Option<Self>> {
        let Some(ValueRef::String(text)) = row.get(MOVED_BY)? else { return Ok(None) };
        let parsed: Option<[String; 5]> = serde_json::from_str(text).ok();
        Ok(parsed.map(|[id, table, partition_key, row_key, _]| Self {
            id,
            from: Place { table, partition_key, row_key },
        }))
    }

    fn text(&self, source: &Row) -> String {
        let version = source.etag().map(|etag| etag.to_string()).unwrap_or_default();
        let Place { table, partition_key, row_key } = &self.from;
        serde_json::Value::from(vec![&*self.id, table, partition_key, row_key, &version])
            .to_string()
    }
}

/// The row under other keys, or the same, with one of the moves' properties and without the other.
fn with_keys(
    row: &Row,
    partition_key: &str,
    row_key: &str,
    own: Option<(&str, &str)>,
) -> Result<Row> {
    let mut built = Row::build(partition_key, row_key);
    let mut properties = row.properties();
    while let Some((name, value)) = properties.next()? {
        // Where it came from is kept while it is on its way again: an earlier move may not be over.
        let is_arriving = own.is_some_and(|(own, _)| own == MOVED_BY);
        if name != MOVING.as_bytes() && !(is_arriving && name == MOVED_BY.as_bytes()) {
            built.put(&String::from_utf8_lossy(name), value);
        }
    }
    if let Some((name, id)) = own {
        built.put(name, ValueRef::String(id));
    }
    Ok(built.finish()?.with_encrypted_names_of(row))
}

fn guard(row: &Row) -> Condition {
    Condition::for_etag(row.etag())
}

/// An effect on the primary alone.
fn primary_alone(schema: &'static Schema, operation: Operation) -> Effect {
    Effect::alone(Some(schema), operation, None)
}

/// The first step: the row says that it is on its way, so that typed writers keep off.
pub(crate) fn departing<E: TableEntity>(
    stored: &Stored<E>,
    to_table: &str,
    id: &str,
) -> Result<(Effect, MoveMessage)> {
    let row = stored.row();
    let place = |error: Error| error.at_keys(row.partition_key(), row.row_key());
    let refused = |message: &str| Err(place(Error::new(ErrorKind::Invalid, message)));
    if stored.copy_family().is_some() {
        return refused(
            "an entity is moved as it was read through its own keys, not through an index",
        );
    }
    if E::SCHEMA.has_tokens() {
        return refused(
            "an entity with `{..:hmac}` in its keys is not moved; insert it where it belongs, then delete it here",
        );
    }
    stays(row)?;
    let wanted = (**stored).to_row().map_err(place)?;
    let arrived = with_keys(row, wanted.partition_key(), wanted.row_key(), None)?;
    // What the entity does not know travels with it, such as where it came from before.
    let entity = E::SCHEMA.primary().and_then(|family| read_any_version::<E>(&arrived, family));
    let carried = entity.and_then(|entity| entity.to_row()).map_err(place)?;
    if !carried.has_same_content(&wanted) {
        return refused(
            "a move changes nothing but the fields that the keys hold; write other changes with `replace` first",
        );
    }
    let journey = MoveMessage {
        entity_type: E::SCHEMA.entity_type.to_owned(),
        row_key: row.row_key().to_owned(),
        to_table: to_table.to_owned(),
        to_partition: wanted.partition_key().to_owned(),
        to_row: wanted.row_key().to_owned(),
    };
    let marked = with_keys(row, row.partition_key(), row.row_key(), Some((MOVING, id)))?;
    Ok((primary_alone(E::SCHEMA, Operation::replace(marked, guard(row))), journey))
}

/// The source as it is where it arrives.
fn arrived(source: &Row, journey: &MoveMessage, arrival: &Arrival) -> Result<Row> {
    let own = arrival.text(source);
    with_keys(source, &journey.to_partition, &journey.to_row, Some((MOVED_BY, &own)))
}

/// The rows that follow from a primary.
fn rows_of(schema: &'static Schema, row: &Row) -> Result<EntityRows> {
    let rows = (schema.derived)(row)?;
    rows.ok_or_else(|| schema.unrecognized_error(&Recognition::Unmarked))
}

/// The step in the target: the entity appears there.
pub(crate) fn arriving(
    schema: &'static Schema,
    source: &Row,
    journey: &MoveMessage,
    arrival: &Arrival,
) -> Result<Effect> {
    let row = arrived(source, journey, arrival)?;
    let new = Some(rows_of(schema, &row)?);
    Ok(Effect { new, ..primary_alone(schema, Operation::insert(row)) })
}

/// What brings an entity that arrived before to what the source says since, if that changed: its
/// properties are set, those that only the target has stay.
pub(crate) fn renewing(
    schema: &'static Schema,
    source: &Row,
    target: &Row,
    journey: &MoveMessage,
    arrival: &Arrival,
) -> Result<Option<Effect>> {
    let is_other = Arrival::of(target)?.as_ref() != Some(arrival);
    if is_other || target.get(MOVED_BY)? == Some(ValueRef::String(&arrival.text(source))) {
        return Ok(None);
    }
    let mut bag = target.to_bag()?;
    for (name, value) in arrived(source, journey, arrival)?.to_bag()?.iter() {
        bag.set(name, value.clone());
    }
    let mut row = Row::build(target.partition_key(), target.row_key());
    for (name, value) in bag.iter() {
        row.put(name, value.as_ref());
    }
    let row = row.finish()?.with_encrypted_names_of(source);
    let (old, new) = ((schema.derived)(target)?, Some(rows_of(schema, &row)?));
    let replace = Operation::replace(row, guard(target));
    Ok(Some(Effect { old, new, ..primary_alone(schema, replace) }))
}

/// The last step: the entity is gone where it was, in the version that was carried over.
pub(crate) fn leaving(schema: &'static Schema, source: &Row) -> Result<Effect> {
    let delete = Operation::delete(source.partition_key(), source.row_key(), guard(source))?;
    Ok(Effect { old: (schema.derived)(source)?, ..primary_alone(schema, delete) })
}

/// A move that cannot be: the entity stays, and can be written again.
pub(crate) fn staying(schema: &'static Schema, source: &Row) -> Result<Effect> {
    Ok(primary_alone(schema, unmarked(source)?))
}

/// The row without the mark of its move.
pub(crate) fn unmarked(source: &Row) -> Result<Operation> {
    let row = with_keys(source, source.partition_key(), source.row_key(), None)?;
    Ok(Operation::replace(row, guard(source)))
}
