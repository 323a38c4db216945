//! Reading through a unique index in another partition: a row that is claimed is what its primary
//! says by now, or nothing.

use super::{Client, outbox::held_by};
use crate::{
    entity::Schema,
    error::Result,
    key::Family,
    plan::outbox::{Name, OF_OWNER, claim_of, from_of, place_of},
    row::Row,
};

/// Whether rows of the family may be reservations.
pub(super) fn may_be_claimed(family: &Family) -> bool {
    family.unique && family.elsewhere
}

/// The properties with what tells whose a reservation is, where rows of the family may be some.
pub(super) fn with_owner(mut columns: Vec<String>, family: Option<&'static Family>) -> Vec<String> {
    if family.is_some_and(may_be_claimed) {
        columns.extend(OF_OWNER.map(str::to_owned));
    }
    columns
}

impl Client {
    /// A plain row of that family as readers may see it; `None`: nobody holds its key. A row without
    /// a claim is as it is.
    pub(super) async fn vouched(
        &self,
        table: &str,
        schema: &'static Schema,
        family: &'static Family,
        row: Row,
    ) -> Result<Option<Row>> {
        if !may_be_claimed(family) || claim_of(&row)?.is_none() {
            return Ok(Some(row));
        }
        let Some(kinds) = schema.elsewhere_named(family.name) else { return Ok(Some(row)) };
        let name = Name {
            index: [schema.entity_type, "#", family.name].concat(),
            table: family.table.unwrap_or(table).to_owned(),
            partition_key: row.partition_key().to_owned(),
            row_key: row.row_key().to_owned(),
        };
        let owner = place_of(&row, kinds, table)?;
        for place in owner.into_iter().chain(from_of(&row)?) {
            if let Some(held) = held_by(self, &place, schema, &name).await? {
                return Ok(Some(match row.etag() {
                    Some(etag) => held.copy.with_etag(etag),
                    None => held.copy,
                }));
            }
        }
        Ok(None)
    }
}
