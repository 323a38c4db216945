//! Derives from the current primary which remote copies and list entries should exist.

use super::{dirty_row::ParsedDirtyRow, state::Worker};
use crate::{
    address::{RowAt, TableName},
    entity::{CopyAndPrimaryFamily, EntityRows, Schema},
    error::Result,
    plan::{
        move_mark::move_id,
        outbox::{CopyAddress, ListMembership, list_entry},
    },
    row::Row,
    store::derive::derive_stored_primary,
};

/// The rows that one primary derives, by entity type.
pub(super) struct DerivedRows<'p> {
    pub(super) primary: Option<&'p Row>,
    /// The derived rows of each type, or `None` if the primary does not exist or has another type.
    by_type: Vec<(&'static Schema, Option<EntityRows>)>,
}

impl Worker {
    /// Derives the rows of a primary, once for each known type in its dirty row.
    pub(super) async fn derive_rows<'p>(
        &self,
        table: &str,
        dirty: &ParsedDirtyRow,
        primary: Option<&'p Row>,
    ) -> Result<DerivedRows<'p>> {
        let mut by_type: Vec<(&'static Schema, Option<EntityRows>)> = Vec::new();
        for schema in dirty.named.iter().filter_map(|named| named.schema()) {
            // Several addresses of one type need one derivation.
            if by_type.iter().any(|(derived, _)| derived.is_of_same_struct(schema)) {
                continue;
            }
            let rows = match primary {
                Some(primary) => {
                    derive_stored_primary(self.store(), table, schema, primary).await?
                }
                None => None,
            };
            by_type.push((schema, rows));
        }
        Ok(DerivedRows { primary, by_type })
    }
}

impl DerivedRows<'_> {
    /// Returns whether the primary is the source of a move that has not ended.
    pub(super) fn is_move_source(&self) -> Result<bool> {
        Ok(self.primary.map(move_id).transpose()?.flatten().is_some())
    }

    fn of_type(&self, schema: &'static Schema) -> Option<&EntityRows> {
        let mut by_type = self.by_type.iter();
        by_type.find(|(derived, _)| derived.is_of_same_struct(schema))?.1.as_ref()
    }

    /// Returns the copy that the primary derives for an address, with the copy's row family in the version that
    /// wrote the primary. Returns `None` if the primary derives no such copy.
    pub(super) fn wanted_copy(
        &self,
        schema: &'static Schema,
        address: &CopyAddress,
        table: TableName<'_>,
    ) -> Option<(CopyAndPrimaryFamily, Row)> {
        let mut copies = self.of_type(schema)?.remote_copies.iter();
        let copy = copies.find(|copy| address.is_same_address_as_copy(table, copy))?;
        let primary = schema.primary_family_of_copy(copy.family)?;
        Some((CopyAndPrimaryFamily { copy: copy.family, primary, schema }, copy.row.clone()))
    }

    /// Returns the primary's entry in a remote list, and whether the list should contain it.
    pub(super) fn list_membership(
        &self,
        schema: &'static Schema,
        owner: RowAt<'_>,
        address: &CopyAddress,
    ) -> ListMembership {
        let mut lists = self.of_type(schema).into_iter().flat_map(|rows| &rows.remote_lists);
        let is_wanted = lists.any(|list| address.is_same_address_as_list(owner.table, list));
        let entry = list_entry(owner, schema, address);
        ListMembership { entry, address: address.clone(), is_wanted }
    }
}
