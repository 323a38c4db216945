//! What a primary row derives: its copies and lists, from its decrypted form.

use super::rows::Store;
use crate::{
    address::RowAt,
    entity::{CopyFamily, EntityRows, Schema},
    error::Result,
    plan::outbox::{CopyAddress, claim_row_key, copy_with_owner, is_claim_alive},
    row::{ETag, Row},
};

/// What a primary derives: from its plain form, with the tokens of its keys.
pub(crate) async fn derived(
    store: &Store,
    table: &str,
    schema: &'static Schema,
    primary: &Row,
) -> Result<Option<EntityRows>> {
    let plain = store.opened(table, primary.clone(), schema).await?;
    let tokens = store.tokens_of(schema).await?;
    schema.derive(&plain, &tokens)?.into_known_rows(schema)
}

/// A copy that a primary derives, and the version of the primary.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) kinds: CopyFamily,
    pub(crate) copy: Row,
    version: ETag,
}

impl Held {
    /// The copy as it is stored.
    pub(crate) fn stored(&self, primary: RowAt<'_>) -> Result<Row> {
        copy_with_owner(&self.copy, self.kinds, primary, Some(&self.version))
    }
}

/// What a primary derives for a key, if it does.
pub(crate) async fn held_by(
    store: &Store,
    at: RowAt<'_>,
    schema: &'static Schema,
    name: &CopyAddress,
) -> Result<Option<Held>> {
    let Some(primary) = store.row_or_no_table(at).await? else { return Ok(None) };
    let Some(version) = primary.etag() else { return Ok(None) };
    let rows = derived(store, at.table, schema, &primary).await?;
    let copies = rows.into_iter().flat_map(|rows| rows.remote_copies);
    let Some(copy) = copies.into_iter().find(|copy| name.is_for_copy(at.table, copy)) else {
        return Ok(None);
    };
    let Some(primary) = schema.primary_of_copy(copy.family) else { return Ok(None) };
    let kinds = CopyFamily { copy: copy.family, primary, schema };
    Ok(Some(Held { kinds, copy: copy.row, version }))
}

/// Whether the transaction of a claim in the partition of a primary may still come; `None`: the
/// claim is gone.
pub(crate) async fn is_open(store: &Store, primary: RowAt<'_>, id: &str) -> Result<Option<bool>> {
    let claim = store.row_or_no_table(primary.with_row_key(&claim_row_key(id))).await?;
    claim.as_ref().map(is_claim_alive).transpose()
}
