//! Finds rows that have expired by the store's own date, which a writer may replace or delete.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{blind_tokens::plan_effect_with_tokens, state::Outbox};
use crate::{
    access::Keys,
    backend::ScanRequest,
    edm::Ticks,
    entity::Schema,
    error::Result,
    plan::{Change, Effect, deletion_effect, replacement_effect},
    row::Row,
    store::sealing::open::ReadAs,
};

/// An entity that has expired by the store's date and holds a unique value that a commit takes.
#[derive(Debug)]
pub(crate) struct ExpiredHolder {
    pub(crate) table: String,
    pub(crate) schema: &'static Schema,
    /// The entity as it was read.
    pub(crate) row: Row,
}

impl ExpiredHolder {
    fn is_same_entity(&self, other: &Self) -> bool {
        self.table == other.table && self.row.keys() == other.row.keys()
    }

    /// Returns the change that deletes the entity, under the ETag that was read.
    pub(crate) async fn deletion(&self, outbox: &Outbox) -> Result<Change> {
        deletion_of(outbox, &self.table, self.schema, &self.row).await.map(Change::from_effect)
    }
}

/// The expired rows that were in the way of one commit. Shared by its attempts.
#[derive(Debug, Default)]
pub(crate) struct ExpiredRowsInTheWay(Mutex<ExpiredInTheWay>);

#[derive(Debug, Default)]
struct ExpiredInTheWay {
    /// Effects that replace an expired row under its ETag, by the position of the insert.
    replaced: HashMap<usize, Arc<Effect>>,
    /// The holders of unique values that the last attempt found.
    holders: Vec<ExpiredHolder>,
}

impl ExpiredRowsInTheWay {
    fn lock_rows(&self) -> MutexGuard<'_, ExpiredInTheWay> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the effect with which the insert at position `verb` replaces an expired row, if there is one in its
    /// way.
    pub(crate) fn effect_replacing_expired_row(&self, verb: usize) -> Option<Arc<Effect>> {
        self.lock_rows().replaced.get(&verb).cloned()
    }

    /// Adds holders that must be deleted before the next attempt, each once: one entity may hold several of the values
    /// that the commit takes.
    pub(crate) fn add_holders(&self, holders: impl IntoIterator<Item = ExpiredHolder>) {
        let known = &mut self.lock_rows().holders;
        for holder in holders {
            if !known.iter().any(|known| known.is_same_entity(&holder)) {
                known.push(holder);
            }
        }
    }

    /// Takes the holders that the last attempt found.
    pub(crate) fn take_holders(&self) -> Vec<ExpiredHolder> {
        std::mem::take(&mut self.lock_rows().holders)
    }

    /// Forgets the expired row that an insert was to replace. Returns whether there was one.
    pub(crate) fn forget_expired_row(&self, verb: usize) -> bool {
        self.lock_rows().replaced.remove(&verb).is_some()
    }

    /// Returns whether an insert whose key is occupied can be tried again. This is so if the row in its way has
    /// expired, which the next attempt replaces, or was deleted in the meantime.
    pub(crate) async fn can_retry_occupied_insert(
        &self,
        outbox: &Outbox,
        table: &str,
        (verb, change): (usize, &Change),
    ) -> Result<bool> {
        let (Some(rows), Some(schema)) = (change.inserted_rows(), change.schema()) else {
            return Ok(false);
        };
        if !schema.can_expire() {
            return Ok(false);
        }
        let found = match read_entity_in_the_way(outbox, table, schema, change.keys()).await? {
            // The insert itself may now succeed.
            EntityInTheWay::Gone => return Ok(true),
            EntityInTheWay::Expired(row) => row,
            EntityInTheWay::Stays => return Ok(false),
        };
        let replace = |tokens| replacement_effect(schema, tokens, &found, rows.clone());
        let effect = plan_effect_with_tokens(outbox, table, schema, replace).await?;
        self.lock_rows().replaced.insert(verb, Arc::new(effect));
        Ok(true)
    }
}

/// Returns the effect that deletes an expired entity, under the ETag that was read.
pub(crate) async fn deletion_of(
    outbox: &Outbox,
    table: &str,
    schema: &'static Schema,
    row: &Row,
) -> Result<Effect> {
    let delete = |tokens| deletion_effect(schema, tokens, row);
    plan_effect_with_tokens(outbox, table, schema, delete).await
}

/// The state of an entity that occupies the key or a unique value of a write.
pub(crate) enum EntityInTheWay {
    /// The entity has disappeared in the meantime.
    Gone,
    /// The entity has expired by the store's date.
    Expired(Row),
    /// The entity is alive, cannot be read, or lacks a part.
    Stays,
}

/// Reads an entity that is in the way of a write.
pub(crate) async fn read_entity_in_the_way(
    outbox: &Outbox,
    table: &str,
    schema: &'static Schema,
    keys: (&str, &str),
) -> Result<EntityInTheWay> {
    match read_with_expired_flag(outbox, table, schema, keys).await {
        Ok(None) => Ok(EntityInTheWay::Gone),
        Ok(Some(found)) if found.is_expired => Ok(EntityInTheWay::Expired(found.row)),
        Ok(Some(_)) => Ok(EntityInTheWay::Stays),
        Err(error) if error.is_decode() || error.is_corrupt() => Ok(EntityInTheWay::Stays),
        Err(error) => Err(error),
    }
}

/// A row that was read with the store's date.
#[derive(Debug)]
pub(crate) struct RowWithExpiredFlag {
    /// The row, decrypted if possible, otherwise as it is stored.
    pub(crate) row: Row,
    /// Whether it is a primary of the type that has expired. `false` for a row that cannot be decrypted.
    pub(crate) is_expired: bool,
}

/// Reads a row as a page, because a page contains the store's date. A client's clock never decides about a
/// deletion. For a wide entity, reads all parts in the same request.
///
/// # Errors
///
/// Fails with `is_corrupt` for a wide entity that lacks a part.
pub(crate) async fn read_with_expired_flag(
    outbox: &Outbox,
    table: &str,
    schema: &'static Schema,
    (partition_key, row_key): (&str, &str),
) -> Result<Option<RowWithExpiredFlag>> {
    if schema.is_wide() {
        let keys = (partition_key, row_key);
        let (row, date) = outbox.store.read_wide_with_store_date(table, keys, schema).await?;
        return Ok(
            row.map(|row| RowWithExpiredFlag { is_expired: is_expired(schema, &row, date), row })
        );
    }
    let filter = Keys::point(partition_key, row_key).filter();
    let scan = ScanRequest { table, filter: &filter, select: None, top: None, from: None };
    let page = outbox.store.scan(scan).await?;
    let Some(row) = page.rows.into_iter().next().transpose()? else { return Ok(None) };
    let is_expired = is_expired(schema, &row, page.date);
    let opened =
        outbox.store.sealing.unseal_one_row(table, row.clone(), ReadAs::Typed(schema), None).await;
    Ok(Some(match opened {
        Ok(row) => RowWithExpiredFlag { row, is_expired },
        // Keep a row that cannot be decrypted, whose expiry cannot be trusted.
        Err(_) => RowWithExpiredFlag { row, is_expired: false },
    }))
}

/// Returns whether a primary of the type has expired by the store's date. Without a date, nothing counts as
/// expired.
fn is_expired(schema: &'static Schema, row: &Row, date: Option<Ticks>) -> bool {
    date.is_some_and(|date| schema.is_primary_expired(row, date))
}
