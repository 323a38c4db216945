//! Finds rows that are over by the store's own date, which writers may replace or delete.

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

/// The rows that were over and in the way of one commit.
#[derive(Debug, Default)]
pub(crate) struct ExpiredRows(Mutex<InTheWay>);

#[derive(Debug, Default)]
struct InTheWay {
    /// By the position of an insert: its effect on the row that is over, under the row's ETag.
    replaced: HashMap<usize, Arc<Effect>>,
    /// Keys of the holders of unique values that were deleted, or found to be alive.
    judged: HashSet<(String, String)>,
}

impl ExpiredRows {
    fn lock(&self) -> MutexGuard<'_, InTheWay> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the effect of the insert at a position on the row that is over.
    pub(crate) fn replacement(&self, verb: usize) -> Option<Arc<Effect>> {
        self.lock().replaced.get(&verb).cloned()
    }

    /// Forgets the row that an insert was to replace. Returns whether there was one.
    pub(crate) fn forget(&self, verb: usize) -> bool {
        self.lock().replaced.remove(&verb).is_some()
    }

    /// Returns whether an insert whose key is occupied can be tried again: the row in the way is over,
    /// so that the next attempt replaces it, or it is gone.
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
        if insert.verb() != Verb::Insert || !schema.can_expire() {
            return Ok(false);
        }
        let found = match read_primary(outbox, table, schema, insert.row().keys()).await? {
            Found::Nothing => return Ok(true),
            Found::Alive => return Ok(false),
            Found::Over(row) => row,
        };
        let tokens = outbox.store.tokens_of(schema).await?;
        let effect = replace_entity(schema, tokens, &found, rows.clone())?;
        self.lock().replaced.insert(verb, Arc::new(effect));
        Ok(true)
    }

    /// Returns the effect that deletes the holder of a unique value, if the holder is over. Each holder
    /// is asked for once.
    pub(crate) async fn deletion(
        &self,
        outbox: &Outbox,
        table: &str,
        schema: Option<&'static Schema>,
        (partition_key, row_key): (&str, &str),
    ) -> Result<Option<Effect>> {
        let Some(schema) = schema.filter(|schema| schema.can_expire()) else { return Ok(None) };
        let keys = (partition_key.to_owned(), row_key.to_owned());
        if !self.lock().judged.insert(keys) {
            return Ok(None);
        }
        let Found::Over(row) =
            read_primary(outbox, table, schema, (partition_key, row_key)).await?
        else {
            return Ok(None);
        };
        let tokens = outbox.store.tokens_of(schema).await?;
        delete_entity(schema, tokens, &row).map(Some)
    }
}

/// A row that was read with the store's date.
enum Found {
    Nothing,
    /// A row that is not over, is no primary of the type, or cannot be read.
    Alive,
    Over(Row),
}

/// Reads the primary under some keys in a page, whose date decides whether it is over: a client's clock
/// never deletes.
async fn read_primary(
    outbox: &Outbox,
    table: &str,
    schema: &'static Schema,
    (partition_key, row_key): (&str, &str),
) -> Result<Found> {
    let filter = Keys::point(partition_key, row_key).filter();
    let scan = Scan { table, filter: &filter, select: None, top: None, from: None };
    let page = outbox.store.scan(scan).await?;
    let Some(row) = page.rows.into_iter().next() else { return Ok(Found::Nothing) };
    let (Ok(row), Some(date)) = (row, page.date) else { return Ok(Found::Alive) };
    if schema.expiry_of_primary(&row).is_none_or(|expiry| expiry > date) {
        return Ok(Found::Alive);
    }
    let opened = outbox.store.sealing.open_one(table, row, Reading::Typed(schema), None).await;
    Ok(opened.map_or(Found::Alive, Found::Over))
}
