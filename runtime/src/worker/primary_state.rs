//! What a primary says its rows elsewhere are.

use super::state::Worker;
use crate::{
    address::RowAt,
    entity::{CopyFamily, EntityRows, Schema},
    error::Result,
    plan::{
        moves::move_id,
        outbox::{CopyAddress, ListMembership, StoredDirtyRow, list_entry},
    },
    row::Row,
    store::derive::derived,
};

/// What a primary derives, by type.
pub(super) struct Derived<'p> {
    pub(super) primary: Option<&'p Row>,
    rows: Vec<(&'static Schema, Option<EntityRows>)>,
}

impl Worker {
    /// What the primary derives by each type that the dirty row names: from its plain form, with the
    /// tokens of its keys.
    pub(super) async fn derived<'p>(
        &self,
        table: &str,
        open: &StoredDirtyRow,
        primary: Option<&'p Row>,
    ) -> Result<Derived<'p>> {
        let mut rows: Vec<(&'static Schema, Option<EntityRows>)> = Vec::new();
        for name in &open.addresses {
            let outbox = self.client.outbox();
            let copy = outbox.known_types.of_copy(name).map(|(schema, _)| schema);
            let Some(schema) = copy.or_else(|| outbox.known_types.of_list(name)) else { continue };
            if rows.iter().any(|(known, _)| std::ptr::eq(*known, schema)) {
                continue;
            }
            let of_primary = match primary {
                Some(primary) => derived(self.client.store(), table, schema, primary).await?,
                None => None,
            };
            rows.push((schema, of_primary));
        }
        Ok(Derived { primary, rows })
    }
}

impl Derived<'_> {
    /// Whether the primary is on its way to another place.
    pub(super) fn is_moving(&self) -> Result<bool> {
        Ok(self.primary.map(move_id).transpose()?.flatten().is_some())
    }

    /// What the primary derives for a place, with the kinds of rows of the version that it is in.
    pub(super) fn wanted(
        &self,
        schema: &'static Schema,
        name: &CopyAddress,
        table: &str,
    ) -> Result<Option<(CopyFamily, Row)>> {
        let known = self.rows.iter().find(|(known, _)| std::ptr::eq(*known, schema));
        let rows = known.and_then(|(_, rows)| rows.as_ref());
        let copy = rows
            .and_then(|rows| rows.remote_copies.iter().find(|copy| name.is_for_copy(table, copy)));
        let Some(copy) = copy else { return Ok(None) };
        let Some(primary) = schema.primary_of_copy(copy.family) else { return Ok(None) };
        Ok(Some((CopyFamily { copy: copy.family, primary, schema }, copy.row.clone())))
    }

    /// Whether the primary shall be in a list elsewhere, and as what.
    pub(super) fn membership(
        &self,
        schema: &'static Schema,
        table: &str,
        open: &StoredDirtyRow,
        name: &CopyAddress,
    ) -> ListMembership {
        let known = self.rows.iter().find(|(known, _)| std::ptr::eq(*known, schema));
        let rows = known.and_then(|(_, rows)| rows.as_ref());
        let mut listed = rows.iter().flat_map(|rows| &rows.remote_lists);
        let wanted = listed.any(|listed| name.is_for_list(table, listed));
        let owner = RowAt::new(table, open.row.partition_key(), &open.primary);
        ListMembership {
            entry: list_entry(owner, schema, name),
            address: name.clone(),
            is_wanted: wanted,
        }
    }
}
