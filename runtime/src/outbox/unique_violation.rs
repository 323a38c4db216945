//! A key of an index that is taken: whose it is.

use super::state::Outbox;
use crate::{
    address::RowAt,
    edm::ValueRef,
    error::{Error, ErrorKind, Result},
    key::Family,
    plan::Effect,
    row::Row,
    store::sealing::open::Reading,
};

/// A copy that an entity wants and that is there already.
pub(crate) struct Wanted<'w> {
    pub(crate) table: &'w str,
    pub(crate) copy: &'w Row,
    pub(crate) family: &'static Family,
    /// What the verb that wants it does.
    pub(crate) effect: &'w Effect,
}

/// Who holds the key.
enum Holder {
    /// The entity with these keys derives it.
    Entity(String, String),
    /// The copy of an entity that does not derive it any more.
    Orphan(String),
    /// A row that does not tell.
    Row(String),
}

impl Wanted<'_> {
    /// The violation of the index, naming the row in the way and the entity that holds it; `None`:
    /// the row is gone, or changed since: what was planned is out of date.
    pub(crate) async fn violation(&self, outbox: &Outbox) -> Result<Option<Error>> {
        let Some(found) = self.read(outbox, self.copy.row_key()).await? else { return Ok(None) };
        let Some(holder) = self.holder(outbox, &found).await? else { return Ok(None) };
        let index = self.family.name;
        let message = match &holder {
            Holder::Entity(_, row_key) => {
                format!(
                    "the key of index `{index}` is held by the entity `{}`",
                    row_key.escape_debug()
                )
            }
            Holder::Orphan(row_key) => format!(
                "the key of index `{index}` is held by an orphan: the entity `{}` does not derive it any more; `check()` finds it, `repair()` removes it",
                row_key.escape_debug()
            ),
            Holder::Row(what) => format!(
                "the key of index `{index}` is taken by {what}; if no entity has this key, the row is an orphan: `check()` finds it"
            ),
        };
        let error = Error::new(ErrorKind::UniqueViolation, message)
            .with_index(index)
            .in_table(self.table)
            .at_keys(found.partition_key(), found.row_key());
        Ok(Some(match holder {
            Holder::Entity(partition_key, row_key) => error.held_by(&partition_key, &row_key),
            Holder::Orphan(_) | Holder::Row(_) => error,
        }))
    }

    fn is_own(&self, row_key: &str) -> bool {
        self.effect.primary.iter().any(|operation| operation.row().row_key() == row_key)
    }

    async fn read(&self, outbox: &Outbox, row_key: &str) -> Result<Option<Row>> {
        let at = RowAt::new(self.table, self.copy.partition_key(), row_key);
        let Some(row) = outbox.store.row(at).await? else { return Ok(None) };
        let Some(schema) = self.effect.schema else { return Ok(Some(row)) };
        // One that does not open is in the way all the same.
        let opened =
            outbox.store.sealing.open_one(self.table, row.clone(), Reading::Typed(schema), None);
        Ok(Some(opened.await.unwrap_or(row)))
    }

    /// What the primary derives, if it derives the copy with that RowKey.
    async fn derives(&self, outbox: &Outbox, primary: &Row, row_key: &str) -> Result<bool> {
        let Some(schema) = self.effect.schema else { return Ok(false) };
        let tokens = outbox.store.tokens_of(schema).await?;
        let rows = schema.derive(primary, &tokens)?.into_known_rows(schema)?;
        let mut copies = rows.iter().flat_map(|rows| &rows.local_copies);
        Ok(copies.any(|copy| copy.row.row_key() == row_key))
    }

    /// Whose the row is; `None`: it changed while that was looked up.
    async fn holder(&self, outbox: &Outbox, found: &Row) -> Result<Option<Holder>> {
        let Some(schema) = self.effect.schema else { return Ok(Some(told(found))) };
        // A copy that cannot be read is in the way all the same.
        let Ok(Some((partition_key, row_key))) = schema.owner_of_copy(found) else {
            return Ok(Some(told(found)));
        };
        let tokens = outbox.store.tokens_of(schema).await?;
        let row_key = tokens.resolve_row_key(schema, &row_key, found)?;
        let primary = self.read(outbox, &row_key).await?;
        let derives = match &primary {
            Some(primary) => Some(self.derives(outbox, primary, found.row_key()).await),
            None => None,
        };
        match derives {
            // Another writer was first with this very entity.
            Some(Ok(true)) if self.is_own(&row_key) => return Ok(None),
            Some(Ok(true)) => return Ok(Some(Holder::Entity(partition_key, row_key))),
            Some(Err(_)) => return Ok(Some(told(found))),
            Some(Ok(false)) | None => {}
        }
        // Only a copy that stood still while its entity was read is known to be nobody's.
        let again = self.read(outbox, found.row_key()).await?;
        let stood = again.is_some_and(|again| again.etag() == found.etag());
        Ok(stood.then_some(Holder::Orphan(row_key)))
    }
}

/// What the row says of itself.
fn told(found: &Row) -> Holder {
    Holder::Row(match found.get("EntityType") {
        Ok(Some(ValueRef::String(marker))) => format!("a row of `{}`", marker.escape_debug()),
        _ => "a row that does not say its type".to_owned(),
    })
}
