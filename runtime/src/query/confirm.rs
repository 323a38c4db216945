//! Reading through a unique index in another partition: a row that is claimed is what its primary
//! says by now, or nothing.

use super::{
    columns::{claimed_family, may_be_claimed},
    request::Request,
};
use crate::{
    entity::Schema,
    error::Result,
    filter::Filter,
    key::Family,
    plan::outbox::{CopyAddress, owner_of_copy, previous_owner, reserving_claim},
    row::Row,
    store::{derive::held_by, rows::Store},
};

/// A plain row of that family as readers may see it; `None`: nobody holds its key. A row without
/// a claim is as it is.
pub(crate) async fn confirmed_row(
    store: &Store,
    table: &str,
    schema: &'static Schema,
    family: &'static Family,
    row: Row,
) -> Result<Option<Row>> {
    if !may_be_claimed(family) || reserving_claim(&row)?.is_none() {
        return Ok(Some(row));
    }
    let Some(kinds) = schema.remote_copies_named(family.name) else { return Ok(Some(row)) };
    let name = CopyAddress {
        index: [schema.entity_type, "#", family.name].concat(),
        table: family.table.unwrap_or(table).to_owned(),
        partition_key: row.partition_key().to_owned(),
        row_key: row.row_key().to_owned(),
    };
    let owner = owner_of_copy(&row, kinds, table)?;
    for place in owner.into_iter().chain(previous_owner(&row)?) {
        if let Some(held) = held_by(store, &place, schema, &name).await? {
            return Ok(Some(match row.etag() {
                Some(etag) => held.copy.with_etag(etag),
                None => held.copy,
            }));
        }
    }
    Ok(None)
}

impl Request {
    /// The rows as readers may see them: one that is claimed is asked for.
    pub(crate) async fn confirmed(&self, rows: Vec<Result<Row>>) -> Vec<Result<Row>> {
        let family = self.access.family.filter(|family| may_be_claimed(family));
        let has_claimed = match self.members {
            Some(members) => self.copies && claimed_family(members).is_some(),
            None => family.is_some(),
        };
        if !has_claimed {
            return rows;
        }
        let mut vouched = Vec::with_capacity(rows.len());
        for row in rows {
            match row {
                Ok(row) => vouched.extend(self.confirmed_one(family, row).await.transpose()),
                Err(error) => vouched.push(Err(error)),
            }
        }
        vouched
    }

    async fn confirmed_one(
        &self,
        family: Option<&'static Family>,
        row: Row,
    ) -> Result<Option<Row>> {
        let known = match (self.schema.zip(family), self.members) {
            (Some(known), _) => Some(known),
            (None, Some(members)) => members.match_row(&row)?.and_then(|matched| {
                let schema = members.schemas().get(matched.member())?;
                Some((*schema, matched.family()))
            }),
            (None, None) => None,
        };
        match known {
            Some((schema, family)) if reserving_claim(&row)?.is_some() => {
                let row = confirmed_row(&self.store, &self.table, schema, family, row).await?;
                // What was reserved met the conditions; what the primary says may not.
                let wanted = match self.schema {
                    Some(_) => self.condition_on(family)?,
                    None => Filter::all(self.conditions.clone()),
                };
                Ok(row.map(|row| Ok(wanted.matches(&row)?.then_some(row))).transpose()?.flatten())
            }
            _ => Ok(Some(row)),
        }
    }
}
