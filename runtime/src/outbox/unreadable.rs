//! Confirms which copies belong to an entity whose primary does not decode.

use super::state::Outbox;
use crate::{
    entity::{CopyAndPrimaryFamily, CopyRow, RowKind, RowVersion, Schema},
    error::Result,
    plan::{Effect, outbox::owner_of_copy},
    row::Row,
    store::sealing::open::ReadAs,
};

/// Removes copies from the old rows of an effect that do not belong to the entity. The condition of an index, which
/// needs the whole entity, may have kept the entity out of the index, and another entity may have the key.
pub(crate) async fn drop_copies_of_other_owners(
    outbox: &Outbox,
    table: &str,
    mut effect: Effect,
) -> Result<Effect> {
    effect.is_old_unconfirmed = false;
    let (Some(old), Some(schema)) = (&mut effect.old, effect.schema) else { return Ok(effect) };
    let found = std::mem::take(&mut old.local_copies);
    for copy in found {
        if is_own_local_copy(outbox, table, schema, &copy, &old.primary).await? {
            old.local_copies.push(copy);
        }
    }
    let found = std::mem::take(&mut old.remote_copies);
    for copy in found {
        if is_own_remote_copy(outbox, table, schema, &copy, &old.primary).await? {
            old.remote_copies.push(copy);
        }
    }
    Ok(effect)
}

/// Returns whether the row at the keys of a local copy is a copy of this primary.
async fn is_own_local_copy(
    outbox: &Outbox,
    table: &str,
    schema: &'static Schema,
    copy: &CopyRow,
    primary: &Row,
) -> Result<bool> {
    let (partition_key, row_key) = copy.row.keys();
    let at = outbox.store.names().row_at(table, partition_key, row_key);
    let Some(found) = outbox.store.read_row(at).await? else { return Ok(false) };
    let read_as = ReadAs::Typed(schema);
    let opened = outbox.store.sealing.unseal_one_row(table, found.clone(), read_as, None).await;
    let found = opened.unwrap_or(found);
    let kind = schema.row_kind_among_families(&found, |family| family.name == copy.family.name)?;
    let RowKind::Copy(family, RowVersion::Known(writer)) = kind else { return Ok(false) };
    match (writer.owner)(&found, family, writer.version) {
        Ok(Some((partition_key, row_key))) => {
            let tokens = outbox.store.token_maker_of_type(schema).await?;
            let keys = [&*partition_key, &*row_key];
            let resolve = || tokens.primary_row_key_with_tokens(schema, keys, &found);
            let row_key = outbox.store.run_with_blind_token_keys(&tokens, resolve).await?;
            Ok((&*partition_key, &*row_key) == primary.keys())
        }
        // The copy does not contain its owner. Without a condition, the entity has a copy with these keys.
        Ok(None) | Err(_) => Ok(!family.conditional),
    }
}

/// Returns whether a remote copy may belong to this primary. Only reads copies of indexes with a condition: the code
/// that deletes a remote copy checks its owner, but a unique key that the entity does not hold must be claimed.
async fn is_own_remote_copy(
    outbox: &Outbox,
    table: &str,
    schema: &'static Schema,
    copy: &CopyRow,
    primary: &Row,
) -> Result<bool> {
    if !copy.family.conditional {
        return Ok(true);
    }
    let copies = copy.family.table_given_primary_table(table);
    let (partition_key, row_key) = copy.row.keys();
    let names = outbox.store.names();
    let at = names.row_at(&copies, partition_key, row_key);
    let found = outbox.store.row_if_table_exists(at).await?;
    let (Some(found), Some(primary_family)) = (found, schema.primary_family_of_copy(copy.family))
    else {
        // If the copy has yet to be written, it is already in the primary's dirty row.
        return Ok(false);
    };
    let kinds = CopyAndPrimaryFamily { copy: copy.family, primary: primary_family, schema };
    let owner = owner_of_copy(&found, kinds, names.name(table))?;
    let (partition_key, row_key) = primary.keys();
    let own = names.row_at(table, partition_key, row_key);
    Ok(owner.is_some_and(|owner| own == owner.as_row_at()))
}
