//! Finds rows that have expired by the store's own date, which a writer may replace or delete.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::state::Outbox;
use crate::{
    access::Keys,
    backend::Scan,
    batch::Verb,
    entity::Schema,
    error::Result,
    plan::{Change, Effect, delete_entity, replace_entity},
    row::Row,
    store::sealing::open::Reading,
};

/// The expired rows that stood in the way of one commit; its attempts share them.
#[derive(Debug, Default)]
pub(crate) struct ExpiredRows(Mutex<ExpiredInTheWay>);

#[derive(Debug, Default)]
struct ExpiredInTheWay {
    /// The effect that replaces an expired row under its ETag, by the position of the insert.
    replaced: HashMap<usize, Arc<Effect>>,
    /// The keys of holders of unique values that were examined once: deleted, or found alive.
    judged: HashSet<(String, String)>,
}

impl ExpiredRows {
    fn lock(&self) -> MutexGuard<'_, ExpiredInTheWay> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the effect by which the insert at position `verb` replaces an expired row; `None` if
    /// none was found in its way.
    pub(crate) fn replacement(&self, verb: usize) -> Option<Arc<Effect>> {
        self.lock().replaced.get(&verb).cloned()
    }

    /// Forgets the expired row that an insert was to replace. Returns whether there was one.
    pub(crate) fn forget(&self, verb: usize) -> bool {
        self.lock().replaced.remove(&verb).is_some()
    }

    /// Returns whether an insert whose key is occupied can be tried again: the row in its way has
    /// expired, so that the next attempt replaces it, or has been deleted meanwhile.
    pub(crate) async fn can_replace(
        &self,
        outbox: &Outbox,
        table: &str,
        (verb, change): (usize, &Change),
    ) -> Result<bool> {
        let Change::Blind(effect) = change else { return Ok(false) };
        let ([insert], Some(schema), Some(rows)) =
            (effect.primary.as_slice(), effect.schema, &effect.new)
        else {
            return Ok(false);
        };
        // Other verbs replace a row by its ETag, or whatever it holds.
        if insert.verb() != Verb::Insert || !schema.can_expire() {
            return Ok(false);
        }
        let found = match read_primary(outbox, table, schema, insert.row().keys()).await? {
            // The row is gone meanwhile: the insert itself may succeed now.
            FoundPrimary::Nothing => return Ok(true),
            FoundPrimary::Alive => return Ok(false),
            FoundPrimary::Expired(row) => row,
        };
        let tokens = outbox.store.tokens_of(schema).await?;
        let effect = replace_entity(schema, tokens, &found, rows.clone())?;
        self.lock().replaced.insert(verb, Arc::new(effect));
        Ok(true)
    }

    /// Returns the effect that deletes the holder of a unique value if the holder has expired.
    /// Returns `None` if it is alive or was examined before.
    pub(crate) async fn deletion(
        &self,
        outbox: &Outbox,
        table: &str,
        schema: Option<&'static Schema>,
        (partition_key, row_key): (&str, &str),
    ) -> Result<Option<Effect>> {
        let Some(schema) = schema.filter(|schema| schema.can_expire()) else { return Ok(None) };
        let keys = (partition_key.to_owned(), row_key.to_owned());
        // Examined once for a commit. A second violation by the same holder is reported.
        if !self.lock().judged.insert(keys) {
            return Ok(None);
        }
        let FoundPrimary::Expired(row) =
            read_primary(outbox, table, schema, (partition_key, row_key)).await?
        else {
            return Ok(None);
        };
        let tokens = outbox.store.tokens_of(schema).await?;
        delete_entity(schema, tokens, &row).map(Some)
    }
}

/// What a read of a primary found, judged by the store's date.
enum FoundPrimary {
    Nothing,
    /// A row that has not expired, is no primary of the type, or cannot be read.
    Alive,
    Expired(Row),
}

/// Reads a primary as a page, because a page brings the store's date: a client's clock never
/// decides about a deletion.
async fn read_primary(
    outbox: &Outbox,
    table: &str,
    schema: &'static Schema,
    (partition_key, row_key): (&str, &str),
) -> Result<FoundPrimary> {
    let filter = Keys::point(partition_key, row_key).filter();
    let scan = Scan { table, filter: &filter, select: None, top: None, from: None };
    let page = outbox.store.scan(scan).await?;
    let Some(row) = page.rows.into_iter().next() else { return Ok(FoundPrimary::Nothing) };
    // Without the store's date nothing counts as expired.
    let (Ok(row), Some(date)) = (row, page.date) else { return Ok(FoundPrimary::Alive) };
    if schema.expiry_of_primary(&row).is_none_or(|expiry| expiry > date) {
        return Ok(FoundPrimary::Alive);
    }
    let opened = outbox.store.sealing.open_one(table, row, Reading::Typed(schema), None).await;
    // A row that does not open is kept: its expiry cannot be trusted.
    Ok(opened.map_or(FoundPrimary::Alive, FoundPrimary::Expired))
}
