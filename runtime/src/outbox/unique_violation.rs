//! Finds the entity whose local copy occupies a key that a transaction could not insert.

use super::{
    expired::{RowWithExpiredFlag, read_with_expired_flag},
    state::Outbox,
};
use crate::{
    edm::ValueRef,
    error::{Error, Result},
    key::RowFamily,
    plan::Effect,
    row::Row,
    store::{derive::read_primary_to_derive, sealing::open::ReadAs},
};

/// A local copy that a transaction could not insert because its key is occupied.
pub(crate) struct OccupiedLocalCopy<'w> {
    pub(crate) table: &'w str,
    pub(crate) copy: &'w Row,
    pub(crate) family: &'static RowFamily,
    /// The effect of the verb that inserts the copy.
    pub(crate) effect: &'w Effect,
}

/// A violation of a unique index: another row has the copy's key.
pub(crate) struct UniqueViolation {
    /// The error, with the row and the entity that holds the key.
    pub(crate) error: Error,
    /// The entity that holds the key, if it has expired by the store's date.
    pub(crate) expired: Option<Row>,
}

/// The holder of an occupied key.
enum Holder {
    /// The entity with this PartitionKey and RowKey, which derives the copy. Includes its row if it has expired.
    Entity(String, String, Option<Row>),
    /// No entity: the row is the copy of the entity with this RowKey, which no longer derives it.
    Orphan(String),
    /// A row whose entity is unknown, with a description of the row.
    Row(String),
}

impl OccupiedLocalCopy<'_> {
    /// Returns the violation of the index, with the occupying row and its holder. Returns `None` if the row is gone or
    /// has changed, in which case the transaction must be planned again.
    pub(crate) async fn find_violation(&self, outbox: &Outbox) -> Result<Option<UniqueViolation>> {
        // The row disappeared after the store refused the insert. Another attempt may succeed.
        let Some(found) = self.read_current(outbox, self.copy.row_key()).await? else {
            return Ok(None);
        };
        let Some(holder) = self.find_holder(outbox, &found).await? else { return Ok(None) };
        let index = self.family.name;
        let message = match &holder {
            Holder::Entity(partition_key, row_key, _) => {
                let holder = row_key.escape_debug();
                // Every error contains the copy's own PartitionKey. The holder's may differ.
                if partition_key == found.partition_key() {
                    format!("the key of index `{index}` is held by the entity `{holder}`")
                } else {
                    format!(
                        "the key of index `{index}` is held by the entity `{holder}` of the partition `{}`",
                        partition_key.escape_debug()
                    )
                }
            }
            Holder::Orphan(row_key) => format!(
                "the key of index `{index}` is held by an orphan: the entity `{}` no longer has this key; find the \
                 orphan with `check()` and remove it with `repair()`",
                row_key.escape_debug()
            ),
            Holder::Row(what) => format!(
                "the key of index `{index}` is taken by {what}; if no entity has this key, the row is an orphan: `check()` finds it"
            ),
        };
        let error = Error::unique_violation(index, message)
            .in_table(self.table)
            .at_keys(found.partition_key(), found.row_key());
        Ok(Some(match holder {
            Holder::Entity(partition_key, row_key, expired) => {
                UniqueViolation { error: error.held_by(&partition_key, &row_key), expired }
            }
            Holder::Orphan(_) | Holder::Row(_) => UniqueViolation { error, expired: None },
        }))
    }

    /// Returns whether the verb writes the primary with this RowKey.
    fn is_written_by_verb(&self, row_key: &str) -> bool {
        self.effect.primary.iter().any(|operation| operation.row().row_key() == row_key)
    }

    async fn read_current(&self, outbox: &Outbox, row_key: &str) -> Result<Option<Row>> {
        let at = outbox.store.names().row_at(self.table, self.copy.partition_key(), row_key);
        let Some(row) = outbox.store.read_row(at).await? else { return Ok(None) };
        let Some(schema) = self.effect.schema else { return Ok(Some(row)) };
        // A row that cannot be decrypted still occupies the key.
        let opened = outbox.store.sealing.unseal_one_row(
            self.table,
            row.clone(),
            ReadAs::Typed(schema),
            None,
        );
        Ok(Some(opened.await.unwrap_or(row)))
    }

    /// Returns whether a primary derives the local copy with this RowKey.
    async fn derives_copy(&self, outbox: &Outbox, primary: &Row, row_key: &str) -> Result<bool> {
        let Some(schema) = self.effect.schema else { return Ok(false) };
        let tokens = outbox.store.token_maker_of_type(schema).await?;
        let derived = outbox
            .store
            .run_with_blind_token_keys(&tokens, || schema.derive_rows(primary, &tokens));
        let rows = derived.await?.into_known_rows(schema)?;
        let mut copies = rows.iter().flat_map(|rows| &rows.local_copies);
        Ok(copies.any(|copy| copy.row.row_key() == row_key))
    }

    /// Returns the holder of the occupied key, or `None` if the row changed while its entity was read.
    async fn find_holder(&self, outbox: &Outbox, found: &Row) -> Result<Option<Holder>> {
        let Some(schema) = self.effect.schema else { return Ok(Some(describe_row(found))) };
        // A copy that cannot be read still occupies the key.
        let Ok(Some((partition_key, row_key))) = schema.owner_of_copy(found) else {
            return Ok(Some(describe_row(found)));
        };
        let tokens = outbox.store.token_maker_of_type(schema).await?;
        let keys = [&*partition_key, &*row_key];
        let resolve = || tokens.primary_row_key_with_tokens(schema, keys, found);
        let row_key = outbox.store.run_with_blind_token_keys(&tokens, resolve).await?;
        let mut is_expired = false;
        let read = match (schema.can_expire(), schema.is_wide()) {
            // Read as a page, whose date shows whether the holder has expired.
            (true, _) => {
                let keys = (&*partition_key, &*row_key);
                let found = read_with_expired_flag(outbox, self.table, schema, keys).await;
                found.map(|found| {
                    found.map(|RowWithExpiredFlag { row, is_expired: expired }| {
                        is_expired = expired;
                        row
                    })
                })
            }
            (false, true) => {
                let at = outbox.store.names().row_at(self.table, &partition_key, &row_key);
                read_primary_to_derive(&outbox.store, at, Some(schema)).await
            }
            (false, false) => self.read_current(outbox, &row_key).await,
        };
        let primary = match read {
            // A torn entity may hold the key.
            Err(error) if error.is_corrupt() && schema.is_wide() => {
                return Ok(Some(describe_row(found)));
            }
            read => read?,
        };
        let derives = match &primary {
            Some(primary) => Some(self.derives_copy(outbox, primary, found.row_key()).await),
            None => None,
        };
        match derives {
            // Another writer was first with the same entity, so the verb must be planned again.
            Some(Ok(true)) if self.is_written_by_verb(&row_key) => return Ok(None),
            Some(Ok(true)) => {
                let expired = primary.filter(|_| is_expired);
                return Ok(Some(Holder::Entity(partition_key, row_key, expired)));
            }
            // A primary that cannot be read may hold the key.
            Some(Err(_)) => return Ok(Some(describe_row(found))),
            Some(Ok(false)) | None => {}
        }
        // Read the copy again. It is an orphan only if it kept its ETag while its entity was read. Otherwise a writer
        // may have moved the key to another entity.
        let again = self.read_current(outbox, found.row_key()).await?;
        let stood = again.is_some_and(|again| again.etag() == found.etag());
        Ok(stood.then_some(Holder::Orphan(row_key)))
    }
}

/// Describes a row by its type marker, for an error message.
fn describe_row(found: &Row) -> Holder {
    Holder::Row(match found.get("EntityType") {
        Ok(Some(ValueRef::String(marker))) => format!("a row of `{}`", marker.escape_debug()),
        _ => "a row that does not say its type".to_owned(),
    })
}
