//! Confirms rows that were read through a unique remote index. A reserved row is replaced by the copy that
//! its primary currently derives.

use super::{columns::may_be_reserved, plan::ReadPlan};
use crate::{
    entity::Schema,
    error::{Error, Result},
    key::RowFamily,
    plan::outbox::{CopyAddress, id_of_reserving_claim, owner_of_copy, previous_owner},
    row::Row,
    store::{
        key_owner::{OwnerDerivesKey, find_owner_holding_key},
        rows::Store,
        sealing::open::ReadAs,
    },
};

/// Returns the copy of the entity that derives the key of a reserved row, with the ETag of the reserved row.
/// Returns `None` if no entity derives the key.
async fn find_held_copy(
    store: &Store,
    table: &str,
    schema: &'static Schema,
    family: &'static RowFamily,
    row: Row,
) -> Result<Option<Row>> {
    let Some(kinds) = schema.find_remote_copy_family(family.name, |_| true) else {
        return Ok(Some(row));
    };
    let names = store.names();
    let name = CopyAddress::for_copy_in_family(names.name(table), family, &row);
    let owner = owner_of_copy(&row, kinds, names.name(table))?;
    // Check the new owner first: while a key changes hands, both entities may derive it.
    for place in owner.into_iter().chain(previous_owner(names, &row)?) {
        // A missing owner table means there is no row to show. Only a writer that takes the key
        // distinguishes this from a key without an owner.
        if let OwnerDerivesKey::Holds(held) =
            find_owner_holding_key(store, place.as_row_at(), schema, &name).await?
        {
            // Use the ETag of the row that was read, under which a writer may change it.
            return Ok(Some(match row.etag() {
                Some(etag) => held.copy.with_etag(etag),
                None => held.copy,
            }));
        }
    }
    // No entity derives the key, at least not yet: the reserving transaction may still fail.
    Ok(None)
}

impl ReadPlan {
    /// Replaces reserved rows by the copies that their primaries currently derive. Drops rows whose key no
    /// entity derives. Costs one read for each reserved row, and nothing for other rows.
    pub(super) async fn resolve_reserved_rows(
        &self,
        store: &Store,
        table: &str,
        rows: Vec<Result<Row>>,
    ) -> Vec<Result<Row>> {
        let mut confirmed = Vec::with_capacity(rows.len());
        for row in rows {
            match row {
                Ok(row) => {
                    let row = self.replace_reserved_row(store, table, row).await;
                    confirmed.extend(row.transpose());
                }
                Err(error) => confirmed.push(Err(error)),
            }
        }
        confirmed
    }

    async fn replace_reserved_row(
        &self,
        store: &Store,
        table: &str,
        row: Row,
    ) -> Result<Option<Row>> {
        if id_of_reserving_claim(&row)?.is_none() {
            return Ok(Some(row));
        }
        let known = self.type_and_family_of(&row)?.filter(|(_, family)| may_be_reserved(family));
        let Some((schema, family)) = known else { return Ok(Some(row)) };
        let held = find_held_copy(store, table, schema, family, row).await?;
        // The reserved row met the conditions, but the copy that the primary derives may not.
        let wanted = self.filter.opened.as_ref().map_err(Error::clone)?;
        Ok(held.map(|row| Ok(wanted.matches(&row)?.then_some(row))).transpose()?.flatten())
    }

    /// Returns the type and row family of a row in a typed read or a set, or `None` for any other row.
    fn type_and_family_of(
        &self,
        row: &Row,
    ) -> Result<Option<(&'static Schema, &'static RowFamily)>> {
        Ok(match self.kinds {
            ReadAs::Typed(schema) => self.access.family.map(|family| (schema, family)),
            ReadAs::Members(members) => members.match_row(row)?.and_then(|matched| {
                let schema = members.schemas().get(matched.member_index())?;
                Some((*schema, matched.family()))
            }),
            ReadAs::Untyped => None,
        })
    }
}
