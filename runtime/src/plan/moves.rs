//! Plans the steps of a move to another partition or table. A step marks the source as moving, inserts the target,
//! deletes the source, or aborts the move.

use serde::{Deserialize, Serialize};

use super::{effect::Effect, move_mark::refuse_moving, tokens::TokenMaker};
use crate::{
    address::{Names, RowAddress},
    batch::{Condition, Operation},
    edm::{Value, ValueRef},
    entity::{
        EntityRows, MOVED_BY, MOVED_VALUE, MOVING, Message, Recognition, RowSource, Schema, Stored,
        TableEntity, is_move_property, lossy_write_error, read_any_version,
    },
    error::{Error, ErrorKind, Result, SealFault},
    row::{Row, property_name_from_utf8},
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
    pub(crate) fn from_target_row(names: Names, row: &Row) -> Result<Option<Self>> {
        let Some(ValueRef::String(text)) = row.get(MOVED_BY)? else { return Ok(None) };
        let parsed: Option<[String; 5]> = serde_json::from_str(text).ok();
        Ok(parsed.map(|[id, table, partition_key, row_key, _]| Self {
            id,
            from: names.address([table, partition_key, row_key]),
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

/// A property that the entity has with another value at the target.
type MovedValue = (&'static str, Value);

/// Returns the fields that keys of primaries are made of.
fn key_fields(schema: &Schema) -> Result<Vec<&'static str>> {
    let family = schema.primary()?;
    let mut names: Vec<&'static str> = Vec::new();
    for part in family.partition.parts().chain(family.row.parts()) {
        if !names.contains(&part.field) {
            names.push(part.field);
        }
    }
    Ok(names)
}

/// Returns the properties that a move changes: those that the target's keys are made of, but cannot be read
/// back from, such as `{email:hmac}` and `{email:lower}`, and the time of another dated table.
fn moved_values(schema: &Schema, before: &Row, wanted: &Row) -> Result<Vec<MovedValue>> {
    let mut names = key_fields(schema)?;
    if let Some(dated) = &schema.dated
        && let (Some(ValueRef::DateTime(from)), Some(ValueRef::DateTime(to))) =
            (before.get(dated.property)?, wanted.get(dated.property)?)
        && dated.period_at(from) != dated.period_at(to)
        && !names.contains(&dated.property)
    {
        names.push(dated.property);
    }
    let mut changed = Vec::new();
    for name in names {
        let value = wanted.get(name)?;
        if let Some(value) = value.filter(|_| before.get(name).is_ok_and(|old| old != value)) {
            changed.push((name, value.to_value()));
        }
    }
    Ok(changed)
}

/// Returns the row with these keys, without the properties that mark the source of a move. If `own` is given, sets
/// the property with this name to this value, which marks the source or the target.
fn with_move_mark(
    row: &Row,
    partition_key: &str,
    row_key: &str,
    own: Option<(&str, &str)>,
) -> Result<Row> {
    let mut built = Row::build(partition_key, row_key);
    let mut properties = row.properties();
    // `MOVED_BY` stays on a row that moves again, because its earlier move may not be over.
    let is_arriving = own.is_some_and(|(own, _)| own == MOVED_BY);
    let is_left_out = |name: &str| is_move_property(name) && (name != MOVED_BY || is_arriving);
    while let Some((name, value)) = properties.next()? {
        let name = property_name_from_utf8(name)?;
        if !is_left_out(name) {
            built.put(name, value);
        }
    }
    if let Some((name, id)) = own {
        built.put(name, ValueRef::String(id));
    }
    let encrypted = row.encrypted_names().iter().filter(|name| !is_left_out(name)).cloned();
    Ok(built.finish()?.with_encrypted_names(encrypted))
}

/// Returns the marked source with the values that the entity has at the target. They are stored like the
/// row's own: encrypted if `is_secret` says so, and covered by a seal.
// In the row and not in the message: so they have the protection of the entity's own values, and the move's
// code covers those that are encrypted.
fn with_moved_values(
    marked: Row,
    values: &[MovedValue],
    is_secret: impl Fn(&str) -> bool,
) -> Result<Row> {
    if values.is_empty() {
        return Ok(marked);
    }
    let named = values.iter().map(|(name, value)| ([MOVED_VALUE, name].concat(), value.clone()));
    let named: Vec<(String, Value)> = named.collect();
    let put: Vec<_> = named.iter().map(|(name, value)| (&**name, value.clone())).collect();
    let secret = values.iter().zip(&named).filter(|((own, _), _)| is_secret(own));
    let secret = secret.map(|(_, (name, _))| name.as_str().into());
    let encrypted: Vec<Box<str>> = marked.encrypted_names().iter().cloned().chain(secret).collect();
    Ok(marked.with_values(&put)?.with_encrypted_names(encrypted))
}

/// Returns the values that [`with_moved_values`] put into the source.
///
/// # Errors
///
/// Fails with `is_decrypt` for a value that no move puts there, or that is not encrypted as its field is.
// Otherwise whoever can write the table could have a worker encrypt a value of their choice.
fn values_at_target(schema: &Schema, source: &Row) -> Result<Vec<(String, Value)>> {
    let (mut values, key_fields) = (Vec::new(), key_fields(schema)?);
    let mut properties = source.properties();
    while let Some((name, value)) = properties.next()? {
        let name = property_name_from_utf8(name)?;
        let Some(own) = name.strip_prefix(MOVED_VALUE) else { continue };
        let is_movable = key_fields.contains(&own)
            || schema.dated.as_ref().is_some_and(|dated| dated.property == own);
        if !is_movable || schema.sealed_column(own).is_some() && !source.has_encrypted_name(name) {
            let message =
                "a value of the moving entity was not written by the program that moves it";
            return Err(Error::seal(SealFault::Authentication, message).in_property(name));
        }
        values.push((own.to_owned(), value.to_value()));
    }
    Ok(values)
}

fn etag_condition(row: &Row) -> Condition {
    Condition::for_etag(row.etag())
}

/// Returns the effect of one operation on a primary.
fn primary_only(schema: &'static Schema, operation: Operation) -> Effect {
    Effect::on_primary(Some(schema), operation, None)
}

/// Plans the first step of a move: marks the source as moving, which keeps typed writers away. `tokens` makes
/// the blind tokens in the target's keys. `is_secret` returns whether this client encrypts a property that the type does
/// not declare as encrypted.
///
/// # Errors
///
/// Fails with `is_invalid` if the entity cannot be moved, or if the caller changed fields other than key fields and
/// the time that determines a dated table. Fails with `is_refused_by_move` if the entity is already moving, with
/// `is_lossy` if it has an undeclared encrypted value that this program cannot decrypt, and with
/// `is_precondition_failed` if its ETag is unknown. Fails with `is_key_unavailable` if the target's keys need a blind
/// token that cannot be made.
pub(crate) fn mark_moving<E: TableEntity>(
    stored: &Stored<E>,
    to_table: &str,
    id: &str,
    tokens: &TokenMaker,
    is_secret: impl Fn(&Row, &str) -> bool,
) -> Result<(Effect, MoveMessage)> {
    let row = stored.row();
    let place = |error: Error| error.at_keys(row.partition_key(), row.row_key());
    let refused = |message: &str| Err(place(Error::new(ErrorKind::Invalid, message)));
    // A copy does not contain its primary's ETag, under which the source is marked.
    if !matches!(stored.source(), RowSource::Primary) {
        return refused(
            "a move needs an entity that was read through its own keys, not through an index or with an ETag alone; \
             read it with `get(stored.point())`, change it and move it",
        );
    }
    refuse_moving(row)?;
    if let Some(property) = E::SCHEMA.unknown_properties_of(row)?.first_undecrypted_name() {
        return Err(place(lossy_write_error(property)));
    }
    let family = E::SCHEMA.primary()?;
    let wanted = (**stored).to_row().map_err(place)?;
    let before = read_any_version::<E>(row, family).and_then(|entity| entity.to_row());
    let values = moved_values(E::SCHEMA, &before.map_err(place)?, &wanted)?;
    if !values.is_empty() && !E::SCHEMA.is_current_primary(row)? {
        return refused(
            "the entity is stored in an older version, whose field names may differ; write it unchanged with \
             `replace`, then change it and move it",
        );
    }
    let rows = EntityRows::from_primary_only(wanted.clone());
    let at = tokens.fill_key_tokens_of_rows(E::SCHEMA, rows).map_err(place)?.primary;
    let arrived =
        with_move_mark(row, at.partition_key(), at.row_key(), None)?.with_values(&values)?;
    // Properties that the entity does not declare, such as `MOVED_BY`, are carried along.
    let carried = read_any_version::<E>(&arrived, family).and_then(|entity| entity.to_row());
    if !carried.map_err(place)?.has_same_content(&wanted) {
        return refused(
            "a move can change only the fields in the keys and the time that names a dated table; write other changes \
             with `replace` first, then change the keys and move it",
        );
    }
    if E::SCHEMA.has_key_tokens() {
        // Before the source is locked: where a token of the target's rows cannot be made, nothing arrives.
        derive_moving_rows(E::SCHEMA, &arrived, tokens).map_err(place)?;
    }
    let message = MoveMessage {
        entity_type: E::SCHEMA.entity_type.to_owned(),
        row_key: row.row_key().to_owned(),
        to_table: to_table.to_owned(),
        to_partition: at.partition_key().to_owned(),
        to_row: at.row_key().to_owned(),
    };
    let marked = with_move_mark(row, row.partition_key(), row.row_key(), Some((MOVING, id)))?;
    let marked = with_moved_values(marked, &values, |name| {
        E::SCHEMA.sealed_column(name).is_some()
            || row.has_encrypted_name(name)
            || is_secret(&arrived, name)
    })?;
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
    let values = values_at_target(schema, source)?;
    let values: Vec<_> = values.iter().map(|(name, value)| (&**name, value.clone())).collect();
    let row = row.with_values(&values)?;
    // The message, which names the table, and the row, which holds the time, may not belong together.
    if let Some(dated) = &schema.dated
        && let Some((_, Value::DateTime(time))) =
            values.iter().find(|(name, _)| *name == dated.property)
        && let Some(period) = dated.period_of(Names::ANY_CASE.name(&message.to_table))
        && period != dated.period_at(*time)
    {
        let refusal = "the time of the move does not belong to the table that the entity moves to";
        return Err(Error::new(ErrorKind::Invalid, refusal).in_table(&message.to_table));
    }
    Ok(row)
}

fn derive_moving_rows(
    schema: &'static Schema,
    row: &Row,
    tokens: &TokenMaker,
) -> Result<Option<EntityRows>> {
    schema.derive_rows(row, tokens)?.into_known_rows(schema)
}

/// Returns the rows that a primary derives.
///
/// # Errors
///
/// Fails with `is_unrecognized_entity` if the row is not a primary of this type in a known version.
fn rows_of_primary(schema: &'static Schema, row: &Row, tokens: &TokenMaker) -> Result<EntityRows> {
    derive_moving_rows(schema, row, tokens)?
        .ok_or_else(|| schema.unrecognized_error(&Recognition::Unmarked))
}

/// Plans the step that inserts the entity at the target.
pub(crate) fn insert_target(
    schema: &'static Schema,
    source: &Row,
    message: &MoveMessage,
    arrival: &MoveOrigin,
    tokens: &TokenMaker,
) -> Result<Effect> {
    let row = target_row(schema, source, message, arrival)?;
    let new = Some(rows_of_primary(schema, &row, tokens)?);
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
    tokens: &TokenMaker,
) -> Result<Option<Effect>> {
    // Do not overwrite a row of another move, or one that was rewritten since.
    let is_other = !MoveOrigin::from_target_row(arrival.from.names(), target)?
        .is_some_and(|found| found.is_same_move(arrival));
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
    let old = derive_moving_rows(schema, target, tokens)?;
    let new = Some(rows_of_primary(schema, &row, tokens)?);
    let replace = Operation::replace(row, etag_condition(target));
    Ok(Some(Effect { old, new, ..primary_only(schema, replace) }))
}

/// Plans the last step of a move: deletes the source under the copied version's ETag.
pub(crate) fn delete_source(
    schema: &'static Schema,
    source: &Row,
    tokens: &TokenMaker,
) -> Result<Effect> {
    // Under the copied version's ETag: a later change would otherwise be lost.
    let delete =
        Operation::delete(source.partition_key(), source.row_key(), etag_condition(source))?;
    Ok(Effect { old: derive_moving_rows(schema, source, tokens)?, ..primary_only(schema, delete) })
}

/// Plans the end of a move that the target refuses: removes the mark, which allows the source to be written again.
pub(crate) fn plan_move_mark_removal(schema: &'static Schema, source: &Row) -> Result<Effect> {
    Ok(primary_only(schema, remove_move_mark(source)?))
}

/// Returns the operation that removes the mark of a move from the source.
pub(crate) fn remove_move_mark(source: &Row) -> Result<Operation> {
    let row = with_move_mark(source, source.partition_key(), source.row_key(), None)?;
    Ok(Operation::replace(row, etag_condition(source)))
}
